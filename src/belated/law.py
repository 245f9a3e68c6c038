"""What a delay law is, and the helpers that laws share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from belated.inputs import Between, InvalidInput
from belated.marks import compiled


@compiled
def smallest(law: Any, guess: float, q: float) -> float:
    """The smallest whole d with `law.cdf(d) >= q` > 0, given the real solution `guess` up to rounding errors."""
    # np.ceil, for math.ceil makes an integer, which wraps when compiled.
    d = float(np.ceil(guess))
    # Rounding matters beside a whole number and, as 1 - q loses its digits, in the far tail; elsewhere d is the answer.
    beside = abs(guess - np.rint(guess)) < 1e-9 * (1.0 + abs(guess))
    return searched(law, d, q) if d < 1e15 and (beside or q > 1.0 - 1e-6) else d


@compiled
def searched(law: Any, start: float, q: float) -> float:
    """The smallest whole d with `law.cdf(d) >= q` > 0, looked for around `start`; some d must have it."""
    low, high, reach = start - 1.0, start, 1.0
    while low >= 0.0 and law.cdf(low) >= q:
        low, high, reach = low - reach, low, 2.0 * reach
    while law.cdf(high) < q:
        low, high, reach = high, high + reach, 2.0 * reach
    middle = float(np.floor((low + high) / 2.0))
    while low < middle < high:  # until they are neighbours, as whole numbers or as floats
        if law.cdf(middle) >= q:
            high = middle
        else:
            low = middle
        middle = float(np.floor((low + high) / 2.0))
    return high


@compiled
def first_at_least(levels: Any, q: float) -> int:
    """The first index i with `levels[i] >= q` (levels ascend), or their number."""
    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        if levels[middle] >= q:
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True)
class Law:
    """What every delay law is. Derive a frozen dataclass and give it `quantile` and `cdf`."""

    memory: ClassVar[int] = 0
    """How many numbers an arm carries from round to round, for laws that are not i.i.d."""
    iid: ClassVar[bool] = True
    """Whether delays are independent of rewards and of one another: whether `quantile` and `cdf` tell all."""

    def quantile(self, q: float) -> float:
        """The smallest d with P(l <= d) >= q."""
        raise NotImplementedError

    def cdf(self, d: float) -> float:
        """P(l <= d)."""
        raise NotImplementedError

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        """The delay of round t's reward, from the visitor's uniform v. `memory` is the arm's own, to read and write."""
        return self.quantile(v)

    def revealed(self, memory: Any, t: int, reward: float, v: float) -> float:
        """What is revealed of that reward, when `delay` says: the reward itself, unless the law hides it."""
        return reward

    def compiled_form(self) -> Law:
        """The law whose fields are numbers, tuples of numbers and laws, that is compiled in this one's place."""
        return self

    def draw(self, rng: np.random.Generator) -> Law:
        """This law with its ranges drawn."""
        changes: dict[str, Any] = {}
        for name, value in self.parameters():
            if isinstance(value, Between | Law):
                changes[name] = value.draw(rng)
            elif isinstance(value, tuple) and any(isinstance(part, Law) for part in value):
                changes[name] = tuple(part.draw(rng) if isinstance(part, Law) else part for part in value)
        return replace(self, **changes) if changes else self

    def parameters(self) -> Iterator[tuple[str, Any]]:
        return ((each.name, getattr(self, each.name)) for each in fields(self))

    def is_drawn(self) -> bool:
        """Whether some parameter is a range, to be drawn for each arm of each instance."""
        values = [value for _, value in self.parameters()]
        parts = [part for value in values if isinstance(value, tuple) for part in value]
        return any(
            isinstance(value, Between) or (isinstance(value, Law) and value.is_drawn()) for value in values + parts
        )


def refuse_unless_iid(where: str, law: object) -> None:
    """Refuse what has no one quantile function."""
    if not isinstance(law, Law):
        raise InvalidInput(where, f"must be a delay law, got {law!r}")
    if not law.iid:
        raise InvalidInput(where, f"must be a law of independent delays, got {type(law).__name__}")


def refuse_unless_known(where: str, law: Law) -> None:
    """Refuse also what is still to be drawn."""
    refuse_unless_iid(where, law)
    if law.is_drawn():
        raise InvalidInput(where, f"must have numbers, not ranges, for parameters, got {law!r}")


def steps(law: Law, limit: float) -> Iterator[tuple[float, float]]:
    """Each delay up to `limit` that happens, with its probability, in order.

    >>> from belated.delays import Uniform
    >>> list(steps(Uniform(2, 3), 10))
    [(2.0, 0.5), (3.0, 0.5)]
    """
    before, d = 0.0, law.quantile(0.0)
    while d <= limit:
        level = law.cdf(d)
        if level > before:
            yield d, level - before
        before = level
        if level >= 1.0:
            return
        d = max(d + 1.0, law.quantile(math.nextafter(level, 2.0)))

"""Delay laws of more than chance: of the reward, of the round, and of what is reported at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from belated.inputs import InvalidInput, Number, number
from belated.law import Law, refuse_unless_iid


@dataclass(frozen=True)
class RewardDependent(Law):
    """A reward above one half waits by the law `success`, any other by the law `failure`."""

    iid: ClassVar[bool] = False

    success: Law
    failure: Law

    def __post_init__(self) -> None:
        refuse_unless_iid("delay.success", self.success)
        refuse_unless_iid("delay.failure", self.failure)

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        return self.success.delay(memory, t, reward, v) if reward > 0.5 else self.failure.delay(memory, t, reward, v)

    def compiled_form(self) -> Law:
        return replace(self, success=self.success.compiled_form(), failure=self.failure.compiled_form())


@dataclass(frozen=True)
class Drifting(Law):
    """Delays that change: of the law `before` at first, of `after` from round `rounds` on, and between them in between.

    In round t < `rounds` the delay is (1 - w) before + w after with w = t / rounds, of the same quantile, rounded up.
    """

    iid: ClassVar[bool] = False

    before: Law
    after: Law
    rounds: Number

    def __post_init__(self) -> None:
        refuse_unless_iid("delay.before", self.before)
        refuse_unless_iid("delay.after", self.after)
        number("delay.rounds", self.rounds, low=1, ranged=True)

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        if t >= self.rounds:
            return self.after.quantile(v)
        weight = t / self.rounds
        return float(np.ceil((1.0 - weight) * self.before.quantile(v) + weight * self.after.quantile(v)))

    def compiled_form(self) -> Law:
        return replace(self, before=self.before.compiled_form(), after=self.after.compiled_form())


@dataclass(frozen=True)
class Refreshed(Law):
    """What comes is seen at the next multiple of `every` rounds: a posterior read anew so often, or a nightly upload.

    A reward of round t that the law `inner` brings in round t + l is revealed in round ceil((t + l) / every) * every.
    With every = 1 it is `inner` itself. A window closes by the clock, so write Conversions(Refreshed(…), window).

    >>> from belated.delays import Fixed
    >>> nightly = Refreshed(Fixed(3), every=10)
    >>> nightly.delay(None, 5, 1.0, 0.5), nightly.delay(None, 7, 1.0, 0.5), nightly.delay(None, 8, 1.0, 0.5)
    (5.0, 3.0, 12.0)
    """

    iid: ClassVar[bool] = False

    inner: Law
    every: Number

    def __post_init__(self) -> None:
        _refuse_unless_plain("delay.inner", self.inner)
        number("delay.every", self.every, low=1, whole=True)

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        came = t + self.inner.delay(memory, t, reward, v)
        return float(np.ceil(came / self.every) * self.every - t)

    def compiled_form(self) -> Law:
        return replace(self, inner=self.inner.compiled_form())


@dataclass(frozen=True)
class Outage(Law):
    """Nothing is heard from round `start` until round `end`; what comes in between is revealed in round `end`.

    >>> from belated.delays import Fixed
    >>> down = Outage(Fixed(3), start=10, end=20)
    >>> [down.delay(None, t, 1.0, 0.5) for t in (6, 7, 16, 17)]
    [3.0, 13.0, 4.0, 3.0]
    """

    iid: ClassVar[bool] = False

    inner: Law
    start: Number
    end: Number

    def __post_init__(self) -> None:
        _refuse_unless_plain("delay.inner", self.inner)
        number("delay.start", self.start, low=0, whole=True)
        number("delay.end", self.end, low=0, whole=True)
        if self.start > self.end:
            raise InvalidInput("delay.end", f"must not be before start = {self.start}, got {self.end}")

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        wait = self.inner.delay(memory, t, reward, v)
        return float(self.end - t) if self.start <= t + wait < self.end else wait

    def compiled_form(self) -> Law:
        return replace(self, inner=self.inner.compiled_form())


def _refuse_unless_plain(where: str, law: object) -> None:
    """Refuse what moves in time no delay law of rewards as they are: one that hides them, or keeps a memory."""
    if not isinstance(law, Law):
        raise InvalidInput(where, f"must be a delay law, got {law!r}")
    if isinstance(law, Conversions):
        raise InvalidInput(where, f"a window closes by the clock: put it outside, Conversions(…), got {law!r}")
    if law.memory:
        raise InvalidInput(where, f"must be a law without memory, got {type(law).__name__}")


@dataclass(frozen=True)
class Conversions(Law):
    """Only successes are reported: one within `window` rounds when it comes; all else is a failure at the window's end.

    A success waits by the law `success`, which may be Drifting, Refreshed or an Outage. One that would come after the
    window is revealed as 0 at its end, like a failure: what is revealed may differ from the reward. Regret is of the
    true means all the same.

    >>> from belated.delays import Geometric
    >>> purchases = Conversions(Geometric(0.01), window=500)
    >>> purchases.delay(None, 1, 1.0, 0.5), purchases.delay(None, 1, 0.0, 0.5)
    (69.0, 500.0)
    """

    iid: ClassVar[bool] = False

    success: Law
    window: Number

    def __post_init__(self) -> None:
        if not isinstance(self.success, Drifting | Refreshed | Outage):
            refuse_unless_iid("delay.success", self.success)
        number("delay.window", self.window, low=0, whole=True)

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        return min(self.success.delay(memory, t, reward, v), float(self.window)) if reward > 0.5 else float(self.window)

    def revealed(self, memory: Any, t: int, reward: float, v: float) -> float:
        return reward if reward > 0.5 and self.success.delay(memory, t, reward, v) <= self.window else 0.0

    def compiled_form(self) -> Law:
        return replace(self, success=self.success.compiled_form())

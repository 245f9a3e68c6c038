"""A scenario: arms, their delays and a horizon. Each replication draws an instance of it and its visitors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from belated.inputs import Between, InvalidInput, nearest, number, probability
from belated.law import Law

REWARDS = ("bernoulli", "uniform")


class Instance(NamedTuple):
    """What one replication faces: a mean and a delay law for each arm."""

    means: np.ndarray
    laws: tuple[Law, ...]


@dataclass(frozen=True)
class Scenario:
    """Arms by `means` (or `arms` of them drawn from a range), a delay law (one, or one an arm), and `rounds`.

    `rewards`: "bernoulli", or "uniform" on the widest interval within [0, 1] around the mean.
    `best_delay`: the law of the best arm, in place of its own.
    `instance`: a seed. With it one instance is drawn and kept for all replications; without it each draws its own.

    >>> from belated import Geometric
    >>> Scenario(means=[.5, .4], delay=Geometric(.01), rounds=1000).arms
    2
    """

    means: Sequence[float] | Between
    delay: Law | Sequence[Law]
    rounds: int
    arms: int | None = None
    rewards: Literal["bernoulli", "uniform"] = "bernoulli"
    best_delay: Law | None = None
    instance: int | None = None

    def __post_init__(self) -> None:
        number("rounds", self.rounds, low=1, high=2**31 - 2, whole=True)
        object.__setattr__(self, "rounds", int(self.rounds))
        object.__setattr__(self, "arms", self._check_arms())
        self._check_delays()
        if self.rewards not in REWARDS:
            raise nearest("rewards", "kind", str(self.rewards), REWARDS)
        if self.instance is not None:
            number("instance", self.instance, low=0, whole=True)
            object.__setattr__(self, "instance", int(self.instance))

    def _check_arms(self) -> int:
        if isinstance(self.means, Between):
            probability("means", self.means, ranged=True)
            if self.arms is None:
                raise InvalidInput("arms", "how many? their means are drawn from a range")
            number("arms", self.arms, low=1, whole=True)
            count = int(self.arms)
        else:
            if isinstance(self.means, str) or not hasattr(self.means, "__len__"):
                raise InvalidInput("means", f"must be a list of numbers or a range, got {self.means!r}")
            for place, mean in enumerate(self.means):
                probability(f"means[{place}]", mean)
            object.__setattr__(self, "means", tuple(float(mean) for mean in self.means))
            count = len(self.means)
            if self.arms not in (None, count):
                raise InvalidInput("arms", f"there are {count} means, got {self.arms}")
        if count < 2:
            raise InvalidInput("means", f"at least two arms are needed, got {count or 'none'}")
        return count

    def _check_delays(self) -> None:
        if isinstance(self.delay, Law):
            _check_law("delay", self.delay)
        else:
            if isinstance(self.delay, str) or not hasattr(self.delay, "__len__"):
                raise InvalidInput("delay", f"must be a delay law, got {self.delay!r}")
            if len(self.delay) != self.arms:
                message = f"must be one law or one for each of {self.arms} arms, got {len(self.delay)}"
                raise InvalidInput("delay", message)
            for place, law in enumerate(self.delay):
                _check_law(f"delay[{place}]", law)
            object.__setattr__(self, "delay", tuple(self.delay))
        if self.best_delay is not None:
            _check_law("best_delay", self.best_delay)

    def draw(self, rng: np.random.Generator) -> Instance:
        """An instance: drawn means first, then drawn laws, arm by arm."""
        if self.instance is not None:
            rng = np.random.default_rng(self.instance)
        if isinstance(self.means, Between):
            means = self.means.low + (self.means.high - self.means.low) * rng.random(self.arms)
        else:
            means = np.array(self.means)
        templates = (self.delay,) * len(means) if isinstance(self.delay, Law) else self.delay
        drawn = not isinstance(self.delay, Law) or self.delay.is_drawn()
        laws = [law.draw(rng) for law in templates] if drawn else list(templates)
        if self.best_delay is not None:
            laws[int(means.argmax())] = self.best_delay.draw(rng)
        return Instance(means, tuple(laws))


def _check_law(field: str, law: object) -> None:
    if not isinstance(law, Law):
        raise InvalidInput(field, f"must be a delay law, got {law!r}")
    try:
        hash(law)
    except TypeError:
        raise InvalidInput(field, f"a law is made of numbers, tuples of numbers and laws, got {law!r}") from None

"""Delay laws: each is a quantile function.

`law.quantile(q)` is the smallest d with `P(l <= d) >= q`, possibly infinite: the paper's `d_i(q)`. Fed a uniform it
samples a delay. `law.cdf(d)` is `P(l <= d)`. Delays are whole rounds; an infinite one is a reward that never comes.
At q = 0 the quantile is the smallest delay that can happen.

A law is a frozen dataclass whose `quantile` and `cdf` are plain functions of numbers, in the part of Python that numba
compiles; the simulator compiles them, everything else calls them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from belated.dependent import Conversions, Drifting, Outage, Refreshed, RewardDependent
from belated.inputs import InvalidInput, Number, listed, nearest, number, probability
from belated.law import Law, first_at_least, refuse_unless_iid, searched, smallest

__all__ = [
    "LAWS", "Conversions", "Drifting", "Exponential", "Fixed", "Geometric", "Law", "Loss", "Mixture", "Observed",
    "Outage", "Pareto", "Queue", "Refreshed", "RewardDependent", "Uniform", "keys", "named",
]  # fmt: skip


@dataclass(frozen=True)
class Fixed(Law):
    """Always the same delay, of `rounds`.

    >>> Fixed(250).quantile(0.5)
    250.0
    """

    rounds: Number

    def __post_init__(self) -> None:
        number("delay.rounds", self.rounds, low=0, ranged=True)

    def quantile(self, q: float) -> float:
        return float(np.ceil(self.rounds))

    def cdf(self, d: float) -> float:
        return 1.0 if d >= np.ceil(self.rounds) else 0.0


@dataclass(frozen=True)
class Geometric(Law):
    """Rounds until the first success of probability `p`, on 1, 2, …: `P(l <= d) = 1 - (1 - p)^d`.

    >>> Geometric(0.01).quantile(0.5)
    69.0
    """

    p: Number

    def __post_init__(self) -> None:
        number("delay.p", self.p, above=0.0, high=1.0, ranged=True)

    def quantile(self, q: float) -> float:
        if self.p == 1.0 or q <= 0.0:
            return 1.0
        if q >= 1.0:
            return math.inf
        return max(1.0, smallest(self, math.log1p(-q) / math.log1p(-self.p), q))

    def cdf(self, d: float) -> float:
        if d < 1.0:
            return 0.0
        if self.p == 1.0:
            return 1.0
        return -math.expm1(np.floor(d) * math.log1p(-self.p))


@dataclass(frozen=True)
class Uniform(Law):
    """Every whole delay from `low` to `high`, equally likely.

    >>> Uniform(150, 300).quantile(0.5)
    225.0
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        number("delay.low", self.low, low=0, whole=True)
        number("delay.high", self.high, low=0, whole=True)
        if self.low > self.high:
            raise InvalidInput("delay.high", f"must not be below low = {self.low}, got {self.high}")

    def quantile(self, q: float) -> float:
        if q <= 0.0:
            return float(self.low)
        count = self.high - self.low + 1.0
        return min(float(self.high), max(float(self.low), smallest(self, self.low - 1.0 + q * count, q)))

    def cdf(self, d: float) -> float:
        return float(min(1.0, max(0.0, (np.floor(d) - self.low + 1.0) / (self.high - self.low + 1.0))))


@dataclass(frozen=True)
class Pareto(Law):
    """The floor of a Pareto type I variable: `P(l > d) = (d + 1)^-alpha` for d >= 1; infinite mean if alpha <= 1.

    >>> Pareto(0.5).quantile(0.5)
    3.0
    """

    alpha: Number

    def __post_init__(self) -> None:
        number("delay.alpha", self.alpha, above=0.0, ranged=True)

    def quantile(self, q: float) -> float:
        if q <= 0.0:
            return 1.0
        if q >= 1.0:
            return math.inf
        # log1p keeps the far tail exact where (1 - q) ** (-1 / alpha) would overflow to an error.
        exponent = -math.log1p(-q) / self.alpha
        if exponent > 700.0:
            return math.inf
        return max(1.0, smallest(self, math.exp(exponent) - 1.0, q))

    def cdf(self, d: float) -> float:
        if d < 1.0:
            return 0.0
        return -math.expm1(-self.alpha * math.log1p(np.floor(d)))


@dataclass(frozen=True)
class Loss(Law):
    """Packet loss: the reward comes at once with probability `p`, and never otherwise.

    The paper calls p the probability of loss; its own formula makes it that of arrival, and so it is here.

    >>> Loss(0.25).quantile(0.2), Loss(0.25).quantile(0.3)
    (0.0, inf)
    """

    p: Number

    def __post_init__(self) -> None:
        probability("delay.p", self.p, ranged=True)

    def quantile(self, q: float) -> float:
        return 0.0 if q <= self.p > 0.0 else math.inf

    def cdf(self, d: float) -> float:
        return float(self.p) if d >= 0.0 else 0.0


@dataclass(frozen=True)
class Exponential(Law):
    """An exponential time of the given `mean`, in rounds, rounded up.

    >>> Exponential(10).quantile(0.5)
    7.0
    """

    mean: Number

    def __post_init__(self) -> None:
        number("delay.mean", self.mean, above=0.0, ranged=True)

    def quantile(self, q: float) -> float:
        if q <= 0.0:
            return 1.0
        if q >= 1.0:
            return math.inf
        return max(1.0, smallest(self, -self.mean * math.log1p(-q), q))

    def cdf(self, d: float) -> float:
        return -math.expm1(-np.floor(d) / self.mean) if d >= 1.0 else 0.0


@dataclass(frozen=True)
class Blend(Law):
    """Two laws, the first with probability `weight`: the link of which a Mixture is a chain."""

    weight: float
    first: Law
    second: Law

    def quantile(self, q: float) -> float:
        low = min(self.first.quantile(q), self.second.quantile(q))
        if q <= 0.0:
            return low
        ever = self.cdf(1e300)
        if q > ever * (1.0 + 1e-15):
            return math.inf
        return searched(self, low if low < math.inf else 0.0, min(q, ever))

    def cdf(self, d: float) -> float:
        return self.weight * self.first.cdf(d) + (1.0 - self.weight) * self.second.cdf(d)


@dataclass(frozen=True)
class Mixture(Law):
    """With probability `weights[j]`, a delay from `laws[j]`.

    >>> Mixture([0.9, 0.1], [Geometric(0.1), Loss(0)]).quantile(0.95)
    inf
    """

    weights: tuple[float, ...]
    laws: tuple[Law, ...]

    def __init__(self, weights: Sequence[float], laws: Sequence[Law]):
        object.__setattr__(self, "weights", listed("delay.weights", weights))
        object.__setattr__(self, "laws", listed("delay.laws", laws))
        if len(self.weights) != len(self.laws) or not self.laws:
            raise InvalidInput(
                "delay.weights", f"must be one for each of {len(self.laws)} laws, got {len(self.weights)}"
            )
        for weight in self.weights:
            probability("delay.weights", weight)
        if abs(math.fsum(self.weights) - 1.0) > 1e-9:
            raise InvalidInput("delay.weights", f"must add up to 1, got {math.fsum(self.weights):g}")
        for law in self.laws:
            refuse_unless_iid("delay.laws", law)

    def quantile(self, q: float) -> float:
        return self.compiled_form().quantile(q)

    def cdf(self, d: float) -> float:
        return self.compiled_form().cdf(d)

    def compiled_form(self) -> Law:
        parts = [(weight, law) for weight, law in zip(self.weights, self.laws, strict=True) if weight > 0.0]
        mass, last = parts.pop()
        chain = last.compiled_form()
        for weight, law in reversed(parts):
            mass += weight
            chain = Blend(weight / mass, law.compiled_form(), chain)
        return chain


@dataclass(frozen=True)
class Observed(Law):
    """Steps, as estimated from data: `P(l <= delays[j]) = levels[j]`; what is left at the end never comes.

    >>> Observed([1, 5, 20], [0.5, 0.8, 0.9]).quantile(0.75)
    5.0
    """

    delays: tuple[float, ...]
    levels: tuple[float, ...]

    def __init__(self, delays: Sequence[float], levels: Sequence[float]):
        object.__setattr__(self, "delays", listed("delay.delays", delays))
        object.__setattr__(self, "levels", listed("delay.levels", levels))
        if len(self.delays) != len(self.levels) or not self.delays:
            raise InvalidInput(
                "delay.levels", f"must be one for each of {len(self.delays)} delays, got {len(self.levels)}"
            )
        for delay, level in zip(self.delays, self.levels, strict=True):
            number("delay.delays", delay, low=0, whole=True)
            probability("delay.levels", level)
        if list(self.delays) != sorted(set(self.delays)) or list(self.levels) != sorted(self.levels):
            raise InvalidInput("delay.delays", "delays and levels must ascend")

    @classmethod
    def from_waits(cls, waits: Sequence[float]) -> Observed:
        """The empirical law of finished waits, in rounds, each rounded up."""
        if len(waits) == 0:
            raise InvalidInput("waits", "must hold at least one wait, got none")
        values, counts = np.unique(np.ceil(np.asarray(waits, dtype=float)), return_counts=True)
        return cls(values.tolist(), (np.cumsum(counts) / len(waits)).tolist())

    def quantile(self, q: float) -> float:
        # A step of mass zero at the start cannot happen, so q = 0 asks for the first positive level.
        index = first_at_least(self.levels, q if q > 0.0 else 5e-324)
        return float(self.delays[index]) if index < len(self.levels) else math.inf

    def cdf(self, d: float) -> float:
        index = first_at_least(self.delays, np.floor(d) + 0.5)
        return self.levels[index - 1] if index > 0 else 0.0


@dataclass(frozen=True)
class Queue(Law):
    """A queue before each arm, first in first out, whose server takes an Exponential time of the given `rate` a reward.

    A reward that finds its queue empty is revealed at once, and still occupies the server for its own service time;
    any other is revealed when those ahead of it are served (the paper's Section 4.3). Waits are rounded up.
    """

    memory: ClassVar[int] = 1  # when the arm's server is free again
    iid: ClassVar[bool] = False

    rate: Number

    def __post_init__(self) -> None:
        number("delay.rate", self.rate, above=0.0, ranged=True)

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        wait = max(0.0, memory[0] - t)
        memory[0] = t + wait - math.log1p(-v) / self.rate
        return float(np.ceil(wait))


LAWS: dict[str, type[Law]] = {
    "conversions": Conversions,
    "drifting": Drifting,
    "exponential": Exponential,
    "fixed": Fixed,
    "geometric": Geometric,
    "loss": Loss,
    "mixture": Mixture,
    "observed": Observed,
    "outage": Outage,
    "pareto": Pareto,
    "queue": Queue,
    "refreshed": Refreshed,
    "reward-dependent": RewardDependent,
    "uniform": Uniform,
}


def keys(name: str) -> list[str]:
    """The parameters of the law of that name, in order."""
    if name not in LAWS:
        raise nearest("delay", "law", name, LAWS)
    return [each.name for each in fields(LAWS[name])]


def named(name: str, **parameters: Any) -> Law:
    """The law of that name.

    >>> named("geometric", p=0.01)
    Geometric(p=0.01)
    """
    known = keys(name)
    for key in parameters:
        if key not in known:
            raise nearest("delay", f"parameter of {name}", key, known)
    for key in known:
        if key not in parameters:
            raise InvalidInput(f"delay.{key}", f"{name} needs it: {name}({', '.join(known)})")
    return LAWS[name](**parameters)

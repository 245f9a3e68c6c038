"""What a bound is about: arms, their delay laws and a horizon, checked; and what a bound is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from belated.inputs import InvalidInput, number, probability
from belated.law import Law, refuse_unless_known
from belated.theory.quantiles import Choice


class Problem(NamedTuple):
    """A Bernoulli bandit with i.i.d. delays, as the theorems assume it."""

    means: tuple[float, ...]
    laws: tuple[Law, ...]
    rounds: int
    best: int

    @property
    def log(self) -> float:
        return math.log(self.rounds)

    @property
    def others(self) -> tuple[int, ...]:
        """The arms that are not the best one."""
        return tuple(arm for arm in range(len(self.means)) if arm != self.best)

    def gap(self, arm: int) -> float:
        return self.means[self.best] - self.means[arm]

    @property
    def trivial(self) -> float:
        """The regret of pulling the worst arm all the time."""
        return self.rounds * (self.means[self.best] - min(self.means))


def problem(means: Sequence[float], laws: Law | Sequence[Law], rounds: int) -> Problem:
    """Refuse what the theorems do not speak of."""
    if isinstance(means, str) or not hasattr(means, "__len__"):
        raise InvalidInput("means", f"must be a list of numbers, got {means!r}")
    for place, mean in enumerate(means):
        probability(f"means[{place}]", mean)
    if len(means) < 2:
        raise InvalidInput("means", f"at least two arms are needed, got {len(means) or 'none'}")
    number("rounds", rounds, low=2, high=2**31 - 2, whole=True)
    if isinstance(laws, Law):
        laws = [laws] * len(means)
    if isinstance(laws, str) or not hasattr(laws, "__len__"):
        raise InvalidInput("laws", f"must be delay laws, got {laws!r}")
    if len(laws) != len(means):
        raise InvalidInput("laws", f"must be one law or one for each of {len(means)} arms, got {len(laws)}")
    for place, law in enumerate(laws):
        refuse_unless_known(f"laws[{place}]", law)
    ordered = sorted((float(mean) for mean in means), reverse=True)
    if ordered[0] == ordered[1]:
        raise InvalidInput("means", f"there must be one best arm, got two of mean {ordered[0]:g}")
    numbers = tuple(float(mean) for mean in means)
    return Problem(numbers, tuple(laws), int(rounds), numbers.index(ordered[0]))


@dataclass(frozen=True)
class Bound:
    """An upper bound of the expected regret after `rounds` rounds (for `lai_robbins`, a lower one).

    `terms` add up to `value`. `quantiles` and `delays` are the q and d(q) of each arm that minimise it, nan where the
    bound has none. What a theorem leaves in O(·) is `order`, without its constant: with `constant` unknown (None), the
    value is the explicit part alone and `explicit_only` is true. `trivial` is the regret of always pulling the worst.
    """

    name: str
    theorem: str
    rounds: int
    terms: dict[str, float]
    quantiles: tuple[float, ...]
    delays: tuple[float, ...]
    trivial: float
    order: float = 0.0
    constant: float | None = None
    choices: dict[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        return math.fsum(self.terms.values())

    @property
    def explicit_only(self) -> bool:
        return self.order > 0.0 and self.constant is None

    def __str__(self) -> str:
        rest = f", explicit part only: + O({self.order:,.4g})" if self.explicit_only else ""
        return f"{self.name}: {self.value:,.1f} after {self.rounds} rounds{rest} ({self.theorem})"


def quantiles(asked: Problem, chosen: dict[int, Choice]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The q and the d(q) of each arm, nan for an arm without a choice."""
    choices = [chosen.get(arm) for arm in range(len(asked.means))]
    return (
        tuple(math.nan if each is None else each.q for each in choices),
        tuple(math.nan if each is None else each.delay for each in choices),
    )

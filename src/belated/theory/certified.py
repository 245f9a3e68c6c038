"""A bound of Thompson sampling's regret with no hidden constant. docs/theory.md proves it step for step.

For a worse arm i, a cut y between its mean and the best one's, and a failure level e, pulls of i are of three kinds.

1. While i has shown fewer than N rewards, N the last time that its posterior has P(theta_i > y) > e / T. To show N
   rewards takes at most N / q_i + d_i(q_i) pulls in expectation.
2. Later ones with theta_i > y: at most e.
3. Those with theta_i <= y. In each such round theta_1 <= y too, and each draw of theta_1 above y would have gone to
   the best arm, so they number at most g = P(theta_1 <= y) / P(theta_1 > y) for each pull of the best arm. As long as
   the posterior of the best arm is what it is after n rewards, at most a geometric number of pulls (1/q_1) and those
   of d_1(q_1) rounds are made of it; and with two arms there is a second way to count, by rounds, that is better
   when the delay is long.

N and g depend on the arm's own rewards alone, in the order in which they are revealed; so `walks` computes their
moments exactly, and no O(·), no union over rounds and no Chernoff bound is left.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from belated.inputs import InvalidInput, nearest, number
from belated.law import Law
from belated.theory.problem import Bound, Problem, problem, quantiles
from belated.theory.proof import with_papers_constants
from belated.theory.quantiles import Choice, cheapest
from belated.theory.walks import Exits, Struggle, divergence, last_exits, struggle


class Grid(NamedTuple):
    """How fine the levels of the odds are: the ratio of neighbours where it matters and elsewhere; failure levels."""

    middle: float
    ends: float
    failures: int


CONSTANTS = ("free", "paper", "printed")
HOPELESS = 1.3
"""Where the search, which is hardly ever more than a quarter above the final bound, finds so many times T, it is T."""
SEARCH, FINAL = Grid(2.0, 4.0, 6), Grid(1.08, 1.4, 16)


def thompson_certified(
    means: Sequence[float],
    laws: Law | Sequence[Law],
    rounds: int,
    *,
    constants: str = "free",
    cuts: Sequence[float] | None = None,
) -> Bound:
    """Thompson sampling with the uniform prior: an upper bound of its regret, every constant computed.

    sum over worse arms i of gap_i (E N_i / q_i + d_i(q_i) + failures + pulls with both draws below the cut), never more
    than gap_i T; minimised over the cuts y_i, the failure levels and the quantiles. It is a bound at each choice:
    `cuts` gives the y_i of the worse arms, in their order, in place of the search. With `constants="paper"`, for two
    arms, it follows the paper's own proof and keeps its constants, 24 and 32, mended where it slips; with "printed", as
    printed, which is not a proof (`theory.proof` says why).

    Assumptions 1 and 2 of Wu & Wager (2022): Bernoulli rewards, one best arm, delays i.i.d. for each arm and
    independent of rewards, any law. All in double precision, each step rounded up by far more than its errors.

    >>> from belated import Fixed
    >>> thompson_certified([.6, .4], Fixed(40), 3000).value < 160
    True
    """
    asked = problem(means, laws, rounds)
    if constants not in CONSTANTS:
        raise nearest("constants", "choice", constants, CONSTANTS)
    if constants != "free":
        return with_papers_constants(asked, mended=constants == "paper")
    given = _given(asked, cuts)
    terms = {"learning the worse arms": 0.0, "their posterior failing": 0.0, "doubting the best arm": 0.0}
    chosen: dict[int, Choice] = {}
    choices: dict[str, float] = {}
    for place, arm in enumerate(asked.others):
        pulls = _least_pulls(asked, arm) if given is None else _pulls(asked, arm, given[place], FINAL)
        if pulls.total >= asked.rounds:
            pulls = Pulls(float(asked.rounds), 0.0, 0.0, math.nan, math.nan, pulls.own, pulls.best)
        for key, value in zip(terms, pulls[:3], strict=True):
            terms[key] += asked.gap(arm) * value
        chosen[arm] = pulls.own
        chosen[asked.best] = max(chosen.get(asked.best, pulls.best), pulls.best, key=lambda choice: choice.cost)
        choices |= {f"cut[{arm}]": pulls.cut, f"failures[{arm}]": pulls.failures}
        if math.fsum(terms.values()) >= asked.trivial:  # the other arms could only add to it
            terms = {"the worst arm all the time": asked.trivial}
            break
    found = quantiles(asked, chosen)
    return Bound("thompson-certified", "docs/theory.md", asked.rounds, terms, *found, asked.trivial, choices=choices)


def _given(asked: Problem, cuts: Sequence[float] | None) -> list[float] | None:
    if cuts is None:
        return None
    if len(cuts) != len(asked.others):
        raise InvalidInput("cuts", f"must be one for each of {len(asked.others)} worse arms, got {len(cuts)}")
    for arm, cut in zip(asked.others, cuts, strict=True):
        number("cuts", cut, above=asked.means[arm], high=math.nextafter(asked.means[asked.best], 0.0))
    return [float(cut) for cut in cuts]


class Pulls(NamedTuple):
    """A bound of the expected pulls of a worse arm, by kind, and the choices that it was made with."""

    learning: float
    failing: float
    doubting: float
    cut: float
    failures: float
    own: Choice
    best: Choice

    @property
    def total(self) -> float:
        return self.learning + self.failing + self.doubting


NONE = Choice(0.0, math.nan, math.nan)


def _least_pulls(asked: Problem, arm: int) -> Pulls:
    """The bound at the cut that is best on a coarse grid of levels, for means further apart in fewer rounds."""
    from scipy.optimize import minimize_scalar

    low, gap = asked.means[arm], asked.gap(arm)
    if asked.rounds * divergence(low, asked.means[asked.best]) < 2.0:  # far too few rounds to tell them apart
        return Pulls(float(asked.rounds), 0.0, 0.0, math.nan, math.nan, NONE, NONE)
    search = minimize_scalar(
        lambda share: min(_pulls(asked, arm, low + share * gap, SEARCH).total, 1e3 * asked.rounds),
        bounds=(0.1, 0.8),
        method="bounded",
        options={"xatol": 0.04},
    )
    if search.fun > HOPELESS * asked.rounds:
        return Pulls(float(asked.rounds), 0.0, 0.0, math.nan, math.nan, NONE, NONE)
    return _pulls(asked, arm, low + float(search.x) * gap, FINAL)


def _pulls(asked: Problem, arm: int, cut: float, grid: Grid) -> Pulls:
    """The least bound of an arm's pulls, for one cut, over the failure levels and the quantiles."""
    best, mean, rounds = asked.means[asked.best], asked.means[arm], asked.rounds
    own, other = asked.laws[arm], asked.laws[asked.best]
    away, below, at, times = (best, mean, cut, 1.0) if grid is FINAL else _further(best, mean, cut)
    brief = max(2, round(rounds / times))
    luck, ignored = _luck(away, at, brief, grid, len(asked.means) == 2)
    by_pulls = cheapest(other, times * luck.total, luck.peak, rounds)
    counts = [(1.0, by_pulls.cost, by_pulls)]
    if len(asked.means) == 2:
        by_rounds = cheapest(other, times * luck.drag, luck.doubt, rounds)
        counts.append((2.0, by_rounds.cost + luck.doubt, by_rounds))
    exits, failures = _exits(below, at, brief, grid)
    found = []
    for observations, ever, allowed in zip(exits.mean, exits.ever, failures, strict=True):
        learning = cheapest(own, times * float(observations), float(ever), rounds)
        for ways, doubting, choice in counts:
            failing = times * (ways * float(allowed) + brief * exits.late)
            found.append(
                Pulls(learning.cost, failing, doubting + times * ignored, cut, float(allowed), learning, choice),
            )
    return min(found, key=lambda pulls: pulls.total)


def _further(best: float, mean: float, cut: float) -> tuple[float, float, float, float]:
    """Both means and the cut with more between them, for the search: and how many times as fast they are told apart."""
    centre = 0.5 * (best + mean)
    wide = min(0.25, 2.0 * (0.95 - centre)) / (best - mean)
    if wide <= 1.0:
        return best, mean, cut, 1.0
    moved = max(centre, 0.175)  # rare rewards are made less so; the cut hardly minds
    away, below, at = (moved + wide * (each - centre) for each in (best, mean, cut))
    return away, below, at, divergence(below, away) / divergence(mean, best)


@lru_cache(maxsize=256)
def _luck(best: float, cut: float, rounds: int, grid: Grid, drag: bool) -> tuple[Struggle, float]:
    """The moments of the best arm's bad luck, and the pulls that they leave out: a hundredth of 1 / (mu - y)^2."""
    allowed = min(0.01 / (best - cut) ** 2, 0.01 * rounds)
    lowest, top = allowed / rounds, 50.0 * rounds
    edges = [lowest, *(edge for edge in (0.05, 30.0) if edge > lowest), top]
    parts = [
        np.geomspace(low, high, 2 + int(math.log(high / low) / math.log(ratio)), endpoint=False)
        for low, high in itertools.pairwise(edges)
        for ratio in [grid.middle if low >= 0.05 and high <= 30.0 else grid.ends]
    ]
    levels = np.append(np.concatenate(parts), top)
    luck = struggle(best, cut, levels, rounds, 0.1 * lowest / len(levels), drag=drag)
    return luck, allowed + rounds * luck.beyond


@lru_cache(maxsize=256)
def _exits(mean: float, cut: float, rounds: int, grid: Grid) -> tuple[Exits, np.ndarray]:
    """The last time that P(theta > y) > e / T for the worse arm, at several failure levels e, and those levels.

    With ones and zeros exchanged it is an arm of mean 1 - mu, cut at 1 - y, whose odds exceed (e / T) / (1 - e / T).
    """
    failures = np.minimum(np.geomspace(0.05, 5.0, grid.failures) / divergence(mean, cut), 0.25 * rounds)
    share = failures / rounds
    exits = last_exits(1.0 - mean, 1.0 - cut, share / (1.0 - share), rounds, 1e-3 * float(share[0]) / len(share))
    return exits, failures

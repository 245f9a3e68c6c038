"""How long outcomes take, from those that have come and those that have not, and what is still to come.

What is pending has waited at least its age: the wait is right-censored there, and leaving it out would make waits look
short. Waits and ages are in any one unit of time; `law` brings them to whole rounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from belated.delays import Observed
from belated.inputs import number, probability


class Curve(NamedTuple):
    """P(wait <= times[k]) = levels[k], level between; what is left at the end never comes.

    >>> Curve(np.array([1.0, 3.0]), np.array([0.25, 0.75])).at([0.5, 1.0, 9.0]).tolist()
    [0.0, 0.25, 0.75]
    """

    times: np.ndarray
    levels: np.ndarray

    def at(self, time: ArrayLike) -> np.ndarray:
        """P(wait <= time), for each time."""
        levels: np.ndarray = np.append(0.0, self.levels)[np.searchsorted(self.times, time, side="right")]
        return levels

    @classmethod
    def of(cls, law: Observed) -> Curve:
        """The same steps, in rounds."""
        return cls(np.array(law.delays, dtype=float), np.array(law.levels))


def kaplan_meier(
    waits: ArrayLike,
    ages: ArrayLike,
    *,
    waits_counts: ArrayLike | None = None,
    ages_counts: ArrayLike | None = None,
) -> Curve:
    """P(wait <= t) from finished waits and the ages of what is pending: 1 - prod_{s <= t} (1 - d_s / n_s).

    d_s outcomes came after a wait of s, and n_s had waited at least s, among them what is now pending at age s or more
    (Kaplan and Meier, JASA 1958).

    >>> curve = kaplan_meier([1, 3], [2, 5])
    >>> curve.times.tolist(), curve.levels.tolist()
    ([1.0, 3.0], [0.25, 0.625])
    """
    times, came = _totals(waits, waits_counts)
    reached, pending = _totals(ages, ages_counts)
    waited = _from(came)[:-1] + _from(pending)[np.searchsorted(reached, times, side="left")]
    return Curve(times, 1.0 - np.cumprod(1.0 - came / waited))


def law(
    waits: ArrayLike,
    ages: ArrayLike,
    *,
    unit: float = 1.0,
    waits_counts: ArrayLike | None = None,
    ages_counts: ArrayLike | None = None,
) -> Observed | None:
    """The law of the waits in rounds of `unit`, as theory and simulation take it; None before the first outcome.

    A wait is rounded up, as it ends within its last round; an age down, to the rounds that it has surely lasted.

    >>> law([900, 2500], [1800, 3100], unit=1000)
    Observed(delays=(1.0, 3.0), levels=(0.25, 0.625))
    """
    number("unit", unit, above=0.0)
    rounds = np.ceil(np.asarray(waits, dtype=float) / unit)
    lasted = np.floor(np.asarray(ages, dtype=float) / unit)
    curve = kaplan_meier(rounds, lasted, waits_counts=waits_counts, ages_counts=ages_counts)
    return Observed(curve.times.tolist(), curve.levels.tolist()) if len(curve.times) else None


def to_come(curve: Curve, ages: ArrayLike, *, counts: ArrayLike | None = None, within: float = math.inf) -> float:
    """How many of the pending are expected within that time from now: sum (F(age + within) - F(age)) / (1 - F(age)).

    >>> to_come(Curve(np.array([1.0, 3.0]), np.array([0.5, 0.75])), [0.0, 2.0], within=1.0)
    1.0
    """
    reached = np.asarray(ages, dtype=float)
    before, after = curve.at(reached), curve.at(reached + within)
    share = np.divide(after - before, 1.0 - before, out=np.zeros_like(before), where=before < 1.0)
    return float(share.sum() if counts is None else share @ np.asarray(counts, dtype=float))


def by_when(curve: Curve, ages: ArrayLike, *, counts: ArrayLike | None = None, fraction: float = 0.5) -> float | None:
    """The least time from now within which that fraction of what is still to come is expected; None if nothing is.

    >>> by_when(Curve(np.array([1.0, 3.0]), np.array([0.5, 0.75])), [0.0, 2.0], fraction=0.9)
    3.0
    """
    probability("fraction", fraction)
    reached, pending = _totals(ages, counts)
    wanted = fraction * to_come(curve, reached, counts=pending)
    if wanted <= 0.0:
        return None
    low, high = 0.0, float(curve.times[-1])
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        if to_come(curve, reached, counts=pending, within=middle) >= wanted:
            high = middle
        else:
            low = middle
    following = np.append(curve.times, np.inf)[np.searchsorted(curve.times, reached + low, side="right")]
    return float((following - reached).min())  # the step itself, without the error of the search


def _totals(values: ArrayLike, counts: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, ascending, with how many there are of each; without those of which there are none."""
    distinct, place = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    weights = None if counts is None else np.asarray(counts, dtype=float)
    totals = np.bincount(place, weights=weights, minlength=len(distinct)).astype(float)
    return distinct[totals > 0.0], totals[totals > 0.0]


def _from(counts: np.ndarray) -> np.ndarray:
    """How many there are from each place on, and none from the end."""
    return np.append(np.cumsum(counts[::-1])[::-1], 0.0)

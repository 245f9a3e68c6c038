"""How late conversions come, learned from those that have been seen: the estimator that the simulator and live share.

Time is cut into bins of equal width, `bins` of them a window. A conversion has a lag (how late it came) and an age (how
long ago its pull was, by now). A pull of age bin k has had the time to show the lag bins 0 … k - 1, whole.

Young pulls can only show short lags, so a histogram of the lags seen is biased towards short ones. What is right is the
law of a lag *given that it is below its age*. It does not depend on the arm's rate either, so arms of any rates may be
pooled. Its maximum-likelihood estimate without a model is the product-limit estimator for right-truncated data
(Lynden-Bell 1971; in reversed time, Lagakos, Barraj & De Gruttola 1988):

    P(lag bin <= y) = prod over z > y of (1 - d_z / n_z),

d_z the conversions of lag z, n_z those of lag at most z and age above z, who could have been seen at z.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from belated.marks import compiled


def tally(
    lags: ArrayLike, ages: ArrayLike, width: float, bins: int, counts: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The d and n of each bin, from the lags and ages of conversions in one unit of time, `width` of it a bin.

    A conversion whose lag is in the bin of its age, or beyond, does not count yet: that bin has not been seen whole.

    >>> d, n = tally([1, 2, 14], [11, 25, 31], width=10, bins=3)
    >>> d.tolist(), n.tolist()
    ([2.0, 1.0, 0.0], [2.0, 2.0, 1.0])
    """
    late = np.minimum(np.asarray(lags, dtype=float) // width, bins - 1).astype(int)
    old = np.minimum(np.asarray(ages, dtype=float) // width, bins).astype(int)
    many = np.ones(len(late)) if counts is None else np.asarray(counts, dtype=float)
    usable = late < old
    late, old, many = late[usable], old[usable], many[usable]
    events = np.bincount(late, weights=many, minlength=bins).astype(float)
    # Each is at risk in the bins from its lag to the last that its age has seen.
    change = np.bincount(late, weights=many, minlength=bins + 1) - np.bincount(old, weights=many, minlength=bins + 1)
    return events, np.cumsum(change)[:bins]


@compiled
def product_limit(events: Any, risk: Any, level: Any) -> None:
    """Fill `level[y]` with P(lag bin <= y), as far as the oldest has seen. Without conversions it is 1.

    >>> level = np.zeros(3)
    >>> product_limit(np.array([2.0, 1.0, 0.0]), np.array([2.0, 2.0, 1.0]), level)
    >>> level.tolist()
    [0.5, 1.0, 1.0]
    """
    below = 1.0
    for y in range(len(level) - 1, -1, -1):
        level[y] = below
        if risk[y] > 0.0:
            below *= max(0.0, 1.0 - events[y] / risk[y])


@compiled
def difference(events: Any, risk: Any, all_events: Any, all_risk: Any) -> float:
    """How much later or earlier an arm's conversions come than all of them: the log-rank Z in reversed time.

    Z = sum (d - n D / N) / sqrt(sum n (N - n) D (N - D) / (N^2 (N - 1))), about normal if there is no difference, and
    positive if the arm's are later (Lagakos, Barraj & De Gruttola 1988).
    """
    excess, variance = 0.0, 0.0
    for y in range(len(events)):
        if all_risk[y] > 1.0:
            share = risk[y] / all_risk[y]
            excess += events[y] - share * all_events[y]
            spread = all_events[y] * (all_risk[y] - all_events[y]) / (all_risk[y] - 1.0)
            variance += share * (1.0 - share) * spread
    return excess / math.sqrt(variance) if variance > 0.0 else 0.0


@compiled
def shared(z: float) -> float:
    """How much of an arm's curve is the pooled one: min(1, 1 / Z^2), after James and Stein.

    Up to a difference of one standard error the arms are taken to be alike; beyond, each has more and more of its own.
    """
    return 1.0 / max(1.0, z * z)


class Reading(NamedTuple):
    """What silence says of each arm, in arrays to be filled by `read`."""

    level: np.ndarray  # by arm and bin: P(lag <= age) of a pull whose age is in that bin, given that it converts
    trust: np.ndarray  # by arm: how much what is open counts, between 0 (waiting) and 1
    trials: np.ndarray  # by arm: the effective trials of its open pulls, before trust
    z: np.ndarray  # by arm: how its delay differs from that of all, in standard errors
    pooled: np.ndarray  # scratch: d, n and the product limit of all arms together
    own: np.ndarray  # scratch: the product limit of one arm


def new_reading(arms: int, bins: int) -> Reading:
    """Nothing read yet: all silence is waited for."""
    empty = np.zeros(arms)
    return Reading(np.zeros((arms, bins)), empty, empty.copy(), empty.copy(), np.zeros((3, bins)), np.zeros(bins))


@compiled
def read(reading: Reading, events: Any, risk: Any, pulls: Any, doubt: float) -> None:
    """Read the silence: from d and n by arm and bin, and the open pulls of each arm by the bin of their age.

    The curve of an arm is a mixture of the pooled product limit and its own, as `shared` says. It is trusted as
    n / (n + doubt), n the conversions behind it: without any, an open pull counts for nothing, whatever came of it.
    """
    arms, bins = events.shape
    pooled = reading.pooled
    for y in range(bins):
        pooled[0, y] = 0.0
        pooled[1, y] = 0.0
        for arm in range(arms):
            pooled[0, y] += events[arm, y]
            pooled[1, y] += risk[arm, y]
    product_limit(pooled[0], pooled[1], pooled[2])
    for arm in range(arms):
        reading.z[arm] = difference(events[arm], risk[arm], pooled[0], pooled[1])
        common = shared(reading.z[arm])
        product_limit(events[arm], risk[arm], reading.own)
        known, everywhere, before, trials = 0.0, 0.0, 0.0, 0.0
        for k in range(bins):
            known += events[arm, k]
            everywhere += pooled[0, k]
            after = common * pooled[2, k] + (1.0 - common) * reading.own[k]
            reading.level[arm, k] = 0.5 * (before + after)  # ages are anywhere in their bin
            trials += pulls[arm, k] * reading.level[arm, k]
            before = after
        reading.trials[arm] = trials
        reading.trust[arm] = common * certainty(everywhere, doubt) + (1.0 - common) * certainty(known, doubt)


@compiled
def certainty(count: float, doubt: float) -> float:
    """The trust in what `count` conversions say: n / (n + doubt), and 0 without any."""
    return count / (count + doubt) if count > 0.0 else 0.0

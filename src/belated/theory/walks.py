"""How long bad luck lasts: the exact law of the last time that a posterior is on the wrong side of a cut.

An arm of mean `mu` has shown n rewards, S_n ~ Bin(n, mu) of them ones, and its posterior is theta ~ Beta(S_n + 1,
n - S_n + 1). For a cut y < mu the odds against it are

    g(n, s) = P(theta <= y) / P(theta > y),      P(theta > y) = P(Bin(n + 1, y) <= s).

Along the walk n -> S_n they fall to zero in the end. What the certified bound needs are moments of

    g* = max over n of g(n, S_n),      N_x = 1 + the last n with g(n, S_n) > x  (0 if there is none),

and they are found by going backward over all paths at once: from n + 1 to n, for every number of ones s that is not
absurd. Where the computation leaves something out, it counts it in full, so each result is an upper bound; none is off
by more than the spacing of the levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

RARE = 28.9
"""Paths so far below n mu that Hoeffding's or Bernstein's bound is exp(-RARE), 3e-13, count as never recovering."""
HIGH = 1.5
"""Paths further than HIGH sqrt(n) above n mu count as no further: they are few, and their odds are tiny."""


def divergence(p: float, q: float) -> float:
    """The Kullback–Leibler divergence of Bernoulli(q) from Bernoulli(p), d(p, q).

    >>> round(divergence(0.5, 0.25), 4)
    0.1438
    """
    if (q <= 0.0 < p) or (q >= 1.0 > p):
        return math.inf
    one = p * math.log(p / q) if p > 0.0 else 0.0
    other = (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
    return one + other


def odds(n: int, s: int, cut: float) -> float:
    """The posterior odds against theta > cut after s ones in n: g(n, s).

    >>> odds(0, 0, 0.5)
    1.0
    """
    below = float(bdtr(s, n + 1, cut))
    return float(bdtrc(s, n + 1, cut)) / below if below > 0.0 else math.inf


def horizon(mean: float, cut: float, level: float, limit: int, late: float) -> int:
    """An N such that the chance of odds above `level` at any n >= N is at most `late`; or `limit`, if that is smaller.

    For a c in (cut, mean): P(S_n <= c n) <= exp(-n d(c, mean)), and odds above the level need S_n <= c n once
    exp(-n d(c, cut)) <= level / (1 + level). The first is summed over n >= N; the best c is found by halving.
    """
    wanted = math.log1p(1.0 / level)

    def needed(c: float) -> tuple[float, float]:
        rate = divergence(c, mean)
        return wanted / divergence(c, cut), (-math.log(late) - math.log(-math.expm1(-rate))) / rate

    low, high = cut, mean
    for _ in range(30):
        middle = 0.5 * (low + high)
        first, second = needed(middle)
        low, high = (middle, high) if first > second else (low, middle)
    return min(limit, 1 + math.ceil(max(needed(0.5 * (low + high)))))


class Rows:
    """Functions of (n, S_n), a row each, carried backward from n + 1 to n by their mean over the next reward.

    `values[:, s + 1]` is at S_n = s; there is a column for s = -1. Only a window of s is kept up to date.
    """

    def __init__(self, count: int, mean: float, last: int):
        self.mean, self.last = mean, last
        self.values = np.zeros((count, self.window(last)[1] + 2))
        self._change = np.empty_like(self.values)

    def window(self, n: int) -> tuple[int, int]:
        """The columns from and to that are kept for n."""
        expected, variance = n * self.mean, n * self.mean * (1.0 - self.mean)
        below = 2.0 + min(math.sqrt(0.5 * RARE * n), math.sqrt(2.0 * RARE * variance) + 2.0 / 3.0 * RARE)
        above = 2.0 + HIGH * math.sqrt(n)
        return max(1, 1 + math.floor(expected - below)), min(n + 1, 1 + math.ceil(expected + above)) + 1

    def back(self, n: int, count: int, below: Any) -> np.ndarray:
        """The first `count` rows go from n + 1 to n: a view of the window. `below` is what lower paths count."""
        (low, high), (low_after, high_after) = self.window(n), self.window(n + 1)
        rows = self.values[:count]
        rows[:, low:low_after] = below
        if high >= high_after:  # all rows fall with s: the value at the edge stands for those above
            rows[:, high] = rows[:, high_after - 1]
        change = self._change[:count, low:high]
        np.subtract(rows[:, low + 1 : high + 1], rows[:, low:high], out=change)
        change *= self.mean
        rows[:, low:high] += change
        return rows[:, low:high]


class Paths:
    """The paths of an arm and, for ascending `levels`, the largest s whose odds exceed the level, as n goes back."""

    def __init__(self, mean: float, cut: float, levels: np.ndarray, limit: int, late: float):
        self.mean, self.cut, self.levels = mean, cut, levels
        ends = [horizon(mean, cut, level, limit, late) for level in levels]
        self.ends = np.maximum.accumulate(ends[::-1])[::-1]  # a higher level never ends later
        self.late = late * float(np.count_nonzero(self.ends < limit))
        self.last = int(self.ends.max())

    def rows(self, count: int) -> Rows:
        return Rows(count, self.mean, self.last)

    def backward(self, crosses: Rows) -> Iterator[tuple[int, np.ndarray]]:
        """Each n from the last to 0, with the column of the largest such s (0 if there is none) of each open level.

        If that is above the window it is the window's last: as odds fall with s, what holds there bounds what is above.
        A level is open from its end on. When it opens, all that lies below is marked in its row of `crosses`.
        """
        bounds = np.zeros(0, np.int64)
        for n in range(self.last - 1, -1, -1):
            for place in range(len(bounds), int(np.count_nonzero(self.ends > n))):
                column = 1 + self._first_bound(n, self.levels[place])
                crosses.values[place, : column + 1] = 1.0
                bounds = np.append(bounds, column)
            bounds = bounds - ~self._exceeds(n, bounds - 1.0)  # from n + 1 to n it falls by 0 or 1
            yield n, np.minimum(bounds, crosses.window(n)[1] - 1)

    def _exceeds(self, n: int, s: np.ndarray) -> np.ndarray:
        """Whether g(n, s) exceeds each open level, told from the smaller tail."""
        levels, low = self.levels[: len(s)], self.levels[: len(s)].searchsorted(1.0)
        exceeds: np.ndarray = s < 0
        exceeds[:low] |= bdtrc(s[:low], n + 1, self.cut) > (levels / (1.0 + levels))[:low]
        exceeds[low:] |= bdtr(s[low:], n + 1, self.cut) < (1.0 / (1.0 + levels))[low:]
        return exceeds

    def _first_bound(self, n: int, level: float) -> int:
        """The largest s with g(n, s) > level, by halving; -1 if there is none."""
        low, high = -1, n + 1
        while high - low > 1:
            middle = (low + high) // 2
            if odds(n, middle, self.cut) > level:
                low = middle
            else:
                high = middle
        return low


class Exits(NamedTuple):
    """For each level x: P(N_x > 0) and E N_x; and the chance of what was not looked at."""

    ever: np.ndarray
    mean: np.ndarray
    late: float


def last_exits(mean: float, cut: float, levels: np.ndarray, limit: int, late: float = 1e-9) -> Exits:
    """The last time, among the first `limit`, that the odds exceed each of the ascending `levels`.

    h(n, s) = P(odds above x at n or later | S_n = s) is 1 where g(n, s) > x and otherwise the mean of h(n + 1, ·);
    e(n, s) = E[(N_x - n)^+ | S_n = s] = h(n, s) + the mean of e(n + 1, ·).
    """
    paths = Paths(mean, cut, levels, limit, late)
    crosses, remains = paths.rows(len(levels)), paths.rows(len(levels))
    for n, bounds in paths.backward(crosses):
        crossing = crosses.back(n, len(bounds), 1.0)
        crosses.values[np.arange(len(bounds)), bounds] = 1.0  # all below has stayed 1
        remaining = remains.back(n, len(bounds), paths.last - n)
        remaining += crossing
    return Exits(crosses.values[:, 1].copy(), remains.values[:, 1].copy(), paths.late)


class Struggle(NamedTuple):
    """Moments of the odds g(n, S_n) of an arm, cut at the top level X; g*_n is their maximum from n on.

    Each is an upper bound, leaving out odds below the lowest level.
    """

    peak: float  # E min(g*, X)
    total: float  # E sum over n of min(g*_n, X)
    doubt: float  # E w*, where w*_n = g*_n / (1 + g*_n) is the largest P(theta <= y) from n on
    drag: float  # E [(1 + min(g*, X)) sum over n of w*_n]
    beyond: float  # P(g* > X), and the chance of what was not looked at


def struggle(
    mean: float, cut: float, levels: np.ndarray, limit: int, late: float = 1e-9, *, drag: bool = True
) -> Struggle:
    """The moments of an arm's bad luck, by levels: a sum over ascending levels x of (next x - x) 1{g* > x}.

    E[w*_n | S_n = s] and E[sum of w*_n' over n' >= n | S_n = s] come from h(n, s) as in `last_exits`. For the drag, let
    n be the first time that the odds exceed x, which they do at the largest such s. Until then w* does not change, so
    the sum of all w* is n w*_n plus the sum from n on; u(n, s) is its mean on the event that x is exceeded at n or
    later, not before. Without `drag`, which takes a third of the time, it is left infinite.
    """
    paths = Paths(mean, cut, levels, limit, late)
    shares = levels / (1.0 + levels)
    weights = np.stack([np.diff(levels, append=levels[-1]), np.diff(shares, append=shares[-1])])
    most = np.array([[levels[-1]], [1.0]])  # of g* and of w*, in a round
    # The last level that every path exceeds, at n = 0; or the lowest, for paths that stay below it count for nothing.
    first = max(0, int(np.searchsorted(levels, odds(0, 0, cut))) - 1)
    crosses, drags, sums = paths.rows(len(levels)), paths.rows(len(levels) - first), paths.rows(2)
    for n, bounds in paths.backward(crosses):
        crosses.back(n, len(bounds), 1.0)
        crosses.values[np.arange(len(bounds)), bounds] = 1.0
        low, high = crosses.window(n)
        now = weights[:, : len(bounds)] @ crosses.values[: len(bounds), low:high]
        summed = sums.back(n, 2, (paths.last - n) * most)
        summed += now
        if drag and len(bounds) > first:
            drags.back(n, len(bounds) - first, paths.last)
            at = np.clip(bounds[first:] - low, 0, high - low - 1)
            drags.values[np.arange(len(at)), bounds[first:]] = n * now[1, at] + summed[1, at]
    ever = crosses.values[:, 1]
    return Struggle(
        peak=float(levels[0] + weights[0] @ ever),
        total=float(sums.values[0, 1]),
        doubt=float(shares[0] + weights[1] @ ever),
        drag=float((1.0 + levels[first]) * drags.values[0, 1] + weights[0, first:] @ drags.values[:, 1])
        if drag
        else math.inf,
        beyond=float(ever[-1]) + paths.late,
    )

"""The best quantiles of a bound: exact minima over the steps of the delay laws, by branch and bound.

Every bound weighs, for each arm, observations that are not seen, a multiple of 1/q, against waiting for them, a
multiple of d(q). Only the steps of the law matter: a delay d, with the largest q that it has, q = P(l <= d). Between
two steps both parts are known to within their ends, and that decides where to look. Delays beyond the horizon are not
considered: an arm that waits longer than that has a bound above its trivial one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from belated.law import Law


class Choice(NamedTuple):
    """A quantile q, the delay d(q), and what they cost."""

    cost: float
    q: float
    delay: float


NEVER = Choice(math.inf, math.nan, math.inf)


@lru_cache(maxsize=4096)
def cheapest(law: Law, observations: float, waiting: float, horizon: int) -> Choice:
    """The q that minimises observations / q + waiting * d(q), over all q with d(q) <= horizon.

    Branch and bound on d: within [low, high] the cost is at least observations / P(l <= high) + waiting * low.

    >>> from belated import Uniform
    >>> cheapest(Uniform(1, 4), 10.0, 1.0, 100)
    Choice(cost=14.0, q=1.0, delay=4.0)
    """

    def cost(d: float) -> float:
        q = law.cdf(d)
        return observations / q + waiting * d if q > 0.0 else math.inf

    low, high = law.quantile(0.0), float(horizon)
    if low > high:
        return NEVER
    best, delay = min((cost(d), d) for d in (low, high))
    parts = [(0.0, low, high)] if low < high else []
    while parts:
        least, low, high = heapq.heappop(parts)
        if least >= best:
            break
        middle = float(math.floor((low + high) / 2.0))
        for d in (middle, middle + 1.0):
            best, delay = min((best, delay), (cost(d), d))
        for left, right in ((low, middle), (middle + 1.0, high)):
            if left < right:
                q = law.cdf(right)
                bound = observations / q + waiting * left if q > 0.0 else math.inf
                if bound < best:
                    heapq.heappush(parts, (bound, left, right))
    return Choice(best, law.cdf(delay), delay) if best < math.inf else NEVER


TOLERANCE = 1e-6
"""Where the choices of the arms are tied to one another, the cost is minimal but for this fraction of it."""


SLOTS = 22
"""The binary logarithm of how many levels are kept."""


class Levels:
    """P(l <= d) of several laws, looked up by law and d; each is computed when it is first asked for.

    It is kept in a slot that its key is scattered to, in the place of any other there, which may be computed again.
    """

    def __init__(self, laws: Sequence[Law]):
        self.laws = laws
        self._keys, self._levels = np.zeros(1 << SLOTS, np.int64), np.zeros(1 << SLOTS)

    def __call__(self, places: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Of laws[places] at d, arrays of whole numbers that go together."""
        keys = 1 + d * len(self.laws) + places  # 0 is an empty slot
        slots = self._slots(keys)
        found: np.ndarray = self._levels[slots]
        unknown = self._keys[slots] != keys
        if unknown.any():
            new, where = np.unique(keys[unknown], return_inverse=True)
            levels = np.array([self._level(key - 1) for key in new.tolist()])
            found[unknown] = levels[where]
            slots = self._slots(new)
            self._keys[slots], self._levels[slots] = new, levels
        return found

    def _slots(self, keys: np.ndarray) -> np.ndarray:
        golden = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hashing: 2^64 by the golden ratio, odd
        scattered: np.ndarray = (keys.astype(np.uint64) * golden) >> np.uint64(64 - SLOTS)
        return scattered

    def _level(self, key: int) -> float:
        d, place = divmod(key, len(self.laws))
        return self.laws[place].cdf(float(d))


def together(
    laws: Sequence[Law], observations: Sequence[float], gaps: Sequence[float], waiting: float, horizon: int
) -> tuple[float, list[Choice]]:
    """The quantiles of all arms that minimise sum_i observations_i / q_i + waiting * max_(i > 0) (d_0 + d_i) gap_i.

    Given d_0 and the maximum M, each d_i is the largest that M allows, so it is a search in two dimensions, by branch
    and bound on boxes [d_0 from, to] x [M from, to]. An arm 0 without observations to wait for has d_0 = 0.
    """
    distinct = {law: place for place, law in enumerate(dict.fromkeys(laws))}
    levels, places = Levels(list(distinct)), np.array([distinct[law] for law in laws])
    need, gap = np.asarray(observations, float), np.asarray(gaps, float)[1:]

    def least(d: np.ndarray, maximum: np.ndarray) -> np.ndarray:
        """The observations' cost of the arms but the first, if they wait as long as the maximum allows."""
        longest = np.floor(maximum[:, None] / gap - d[:, None] + 1e-9)
        level = levels(places[1:], np.clip(longest, 0, horizon).astype(np.int64))
        level[longest < 0] = 0.0
        with np.errstate(divide="ignore"):
            cost: np.ndarray = (need[1:] / level).sum(axis=1)
        return cost

    def first(d: np.ndarray) -> np.ndarray:
        if need[0] == 0.0:
            return np.zeros(len(d))
        with np.errstate(divide="ignore"):
            cost: np.ndarray = need[0] / levels(places[:1], d.astype(np.int64))
        return cost

    top = 2.0 * horizon * gap.max()
    boxes = np.array([[0.0, 0.0 if need[0] == 0.0 else horizon, 0.0, top]])
    best, winner = math.inf, np.zeros(2)
    while len(boxes):
        low, high, under, over = boxes.T
        shown = least(low, over)
        costs = first(low) + shown + waiting * over  # the other corners are of other boxes
        at = int(costs.argmin())
        if costs[at] < best:
            best, winner = float(costs[at]), np.array([low[at], over[at]])
        bounds = first(high) + shown + waiting * under
        boxes = _halved(boxes[bounds < best * (1.0 - TOLERANCE)], waiting, gap.max())
    return best, _choices(winner, laws, gap, need, horizon)


def _halved(boxes: np.ndarray, waiting: float, gap: float) -> np.ndarray:
    """Each box cut in two along the side that costs more."""
    low, high, under, over = boxes.T
    across = (high - low) * gap >= over - under
    middle, level = np.floor((low + high) / 2.0), (under + over) / 2.0
    one = np.column_stack([low, np.where(across, middle, high), under, np.where(across, over, level)])
    other = np.column_stack([np.where(across, middle + 1.0, low), high, np.where(across, under, level), over])
    return np.concatenate([one, other[other[:, 0] <= other[:, 1]]])


def _choices(winner: np.ndarray, laws: Sequence[Law], gap: np.ndarray, need: np.ndarray, horizon: int) -> list[Choice]:
    """The quantile of each arm at the best (d_0, M): the smallest delay with its level."""
    longest = np.concatenate([winner[:1], np.clip(np.floor(winner[1] / gap - winner[0] + 1e-9), 0, horizon)])
    chosen = []
    for law, d, observations in zip(laws, longest.tolist(), need.tolist(), strict=True):
        q = law.cdf(d)
        if observations == 0.0:
            chosen.append(Choice(0.0, q, d))  # nothing to wait for, so nothing need arrive
        else:
            chosen.append(Choice(observations / q, q, min(d, law.quantile(q))) if q > 0.0 else NEVER)
    return chosen

"""Effective trials: how many of an arm's pulls have had the time to convert.

`N~_i = sum over pulls s of arm i of tau_i(t - 1 - s)` when choosing in round t, with tau_i the CDF of the arm's delay.
With a window, after which a conversion is not reported, a pull of arm i stays at tau_i(window_i) from then on. Both
forms keep it in `effective`, up to date after each `ripen(t, arm)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from belated.delays import Geometric
from belated.law import Law, steps


class GeometricTrials(NamedTuple):
    """For geometric delays the pending mass M_i shrinks by 1 - p_i a round, whatever its ages: O(K) a round."""

    effective: np.ndarray
    pending: np.ndarray  # M_i
    p: np.ndarray
    history: np.ndarray  # the arm pulled in each round
    window: np.ndarray
    unripe: np.ndarray  # (1 - p_i)^window_i: what is still pending of a pull when its window closes

    def ripen(self, t: int, arm: int) -> None:
        for other in range(len(self.p)):
            ripe = self.p[other] * self.pending[other]
            self.effective[other] += ripe
            self.pending[other] -= ripe
        self.pending[arm] += 1.0
        self.history[t] = arm
        for other in range(len(self.p)):
            closed = t - self.window[other]
            if closed >= 1 and self.history[closed] == other:
                self.pending[other] -= self.unripe[other]


class SteppedTrials(NamedTuple):
    """For any law: each round, the pulls of each age at which some law has mass ripen by that mass."""

    effective: np.ndarray
    history: np.ndarray  # the arm pulled in each round
    ages: np.ndarray
    mass: np.ndarray  # P(l = age), per arm and age

    def ripen(self, t: int, arm: int) -> None:
        self.history[t] = arm
        for j in range(len(self.ages)):
            s = t - self.ages[j]
            if s < 1:
                break
            self.effective[self.history[s]] += self.mass[self.history[s], j]


def effective_trials(
    laws: Sequence[Law], rounds: int, windows: Sequence[float] | None = None
) -> GeometricTrials | SteppedTrials:
    """N~ before the first round, for arms with these laws, and windows if they have any."""
    zeros, history = np.zeros(len(laws)), np.zeros(rounds + 1, np.int32)
    limits = [int(min(window, rounds)) for window in windows or [rounds] * len(laws)]
    geometric = [float(law.p) for law in laws if isinstance(law, Geometric)]
    if len(geometric) == len(laws):
        p, window = np.array(geometric), np.array(limits, np.int64)
        return GeometricTrials(zeros, zeros.copy(), p, history, window, (1.0 - p) ** window)
    tables = [_masses(law, limit) for law, limit in zip(laws, limits, strict=True)]
    ages = sorted(set().union(*tables))
    mass = np.array([[table.get(age, 0.0) for age in ages] for table in tables])
    return SteppedTrials(zeros, history, np.array(ages, np.int64), mass.reshape(len(laws), len(ages)))


@lru_cache(maxsize=64)  # with a heavy tail each holds as many numbers as there are rounds
def _masses(law: Law, limit: int) -> dict[int, float]:
    return {int(d): mass for d, mass in steps(law, limit)}

"""Effective trials: how many of an arm's pulls have had the time to convert.

`N~_i = sum over pulls s of arm i of tau_i(t - 1 - s)` when choosing in round t, with tau_i the CDF of the arm's delay.
Both forms keep it in `effective`, up to date after each `ripen(t, arm)`.
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

    def ripen(self, t: int, arm: int) -> None:
        for other in range(len(self.p)):
            ripe = self.p[other] * self.pending[other]
            self.effective[other] += ripe
            self.pending[other] -= ripe
        self.pending[arm] += 1.0


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


def effective_trials(laws: Sequence[Law], rounds: int) -> GeometricTrials | SteppedTrials:
    """N~ before the first round, for arms with these laws."""
    zeros = np.zeros(len(laws))
    if all(isinstance(law, Geometric) for law in laws):
        return GeometricTrials(zeros, zeros.copy(), np.array([law.p for law in laws], float))  # type: ignore[attr-defined]
    tables = [_masses(law, rounds) for law in laws]
    ages = sorted(set().union(*tables))
    mass = np.array([[table.get(age, 0.0) for age in ages] for table in tables])
    history = np.zeros(rounds + 1, np.int32)
    return SteppedTrials(zeros, history, np.array(ages, np.int64), mass.reshape(len(laws), len(ages)))


@lru_cache(maxsize=64)  # with a heavy tail each holds as many numbers as there are rounds
def _masses(law: Law, rounds: int) -> dict[int, float]:
    return {int(d): mass for d, mass in steps(law, rounds)}

"""Thompson sampling with two arms under delay, many replications side by side in NumPy, with all that the lemmas name.

Written from the paper, sharing no code with the package but the laws' CDFs. Index 0 is the best arm; t = 0 … rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from belated import Law


@dataclass(frozen=True)
class Paths:
    """Arrays are rounds x arms x replications: pulls m_t and rewards revealed n_t after round t, draws theta(t)."""

    means: tuple[float, float]
    rounds: int
    pulls: np.ndarray
    shown: np.ndarray
    draws: np.ndarray

    @property
    def gap(self) -> float:
        return self.means[0] - self.means[1]

    @property
    def log(self) -> float:
        return math.log(self.rounds)


def simulated(means: tuple[float, float], laws: Sequence[Law], rounds: int, replications: int, seed: int) -> Paths:
    rng = np.random.default_rng(seed)
    levels = [np.array([law.cdf(float(d)) for d in range(rounds + 1)]) for law in laws]
    every = np.arange(replications)
    pulls, shown, draws = np.zeros((3, rounds + 1, 2, replications))
    arrivals = np.zeros((2, rounds + 2, 2, replications))  # how many fall due in each round, and the ones among them
    n, ones = np.zeros((2, 2, replications))
    for t in range(1, rounds + 1):
        draws[t] = rng.beta(ones + 1.0, n - ones + 1.0)
        arm = draws[t].argmax(axis=0)
        reward = rng.random(replications) < np.array(means)[arm]
        v = rng.random(replications)
        delay = np.where(arm == 0, levels[0].searchsorted(v, "right"), levels[1].searchsorted(v, "right"))
        due = np.minimum(t + delay, rounds + 1)
        arrivals[0][due, arm, every] += 1
        arrivals[1][due, arm, every] += reward
        n, ones = n + arrivals[0][t], ones + arrivals[1][t]
        pulls[t] = pulls[t - 1]
        pulls[t, arm, every] += 1
        shown[t] = n
    return Paths(means, rounds, pulls, shown, draws)


def too_few_shown(paths: Paths, arm: int, m: int, q: float, d: int) -> np.ndarray:
    """By replication: whether d rounds after its m-th pull the arm has shown fewer than q m / 2 rewards (lemma L1)."""
    reached = paths.pulls[:, arm] >= m
    at = reached.argmax(axis=0) + d
    inside = reached.any(axis=0) & (at <= paths.rounds)
    shown = paths.shown[np.minimum(at, paths.rounds), arm, np.arange(paths.pulls.shape[2])]
    few: np.ndarray = inside & (shown < 0.5 * q * m)
    return few


def bad_delays(paths: Paths, q: Sequence[float], d: Sequence[int]) -> np.ndarray:
    """By replication: the event F_1 of the paper."""
    bad = np.zeros(paths.pulls.shape[2], bool)
    for arm in range(2):
        last = paths.rounds + 1 - d[arm]
        pulls, later = paths.pulls[:last, arm], paths.shown[d[arm] :, arm]
        bad |= ((pulls >= 24 * paths.log / q[arm]) & (later < 0.5 * q[arm] * pulls)).any(axis=0)
    return bad


def bad_draws(paths: Paths, share: float = 1.0) -> np.ndarray:
    """By replication: the event F_2, from `share` of the paper's number of observations on."""
    enough = share * 24 * paths.log / paths.gap**2
    known = paths.shown[:-1, 1] >= enough  # as seen when choosing in the next round
    bad: np.ndarray = (known & (paths.draws[1:, 1] > paths.means[1] + paths.gap / 2)).any(axis=0)
    return bad


def pulls_until_known(paths: Paths, share: float = 1.0) -> np.ndarray:
    """By replication: m_(tau_2)(2), or the pulls until the end if tau_2 is not reached (lemma L4)."""
    known = paths.shown[:, 1] >= share * 24 * paths.log / paths.gap**2
    at = np.where(known.any(axis=0), known.argmax(axis=0), paths.rounds)
    pulls: np.ndarray = paths.pulls[at, 1, np.arange(paths.pulls.shape[2])]
    return pulls

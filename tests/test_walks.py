"""The moments of bad luck: against all paths one by one, and against simulated ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import binom

from belated.theory.walks import Exits, divergence, horizon, last_exits, odds, struggle

LEVELS = np.array([0.01, 0.1, 0.3, 0.7, 0.98, 2.1, 5.3, 21.0, 1e3])  # none is the odds of a path


def every_path(length: int) -> np.ndarray:
    """The numbers of ones after 0 … length - 1 rewards, for each sequence of rewards."""
    rewards = np.array(list(itertools.product([0, 1], repeat=length - 1)))
    return np.concatenate([np.zeros((len(rewards), 1), int), rewards.cumsum(axis=1)], axis=1)


def chances(paths: np.ndarray, mean: float) -> np.ndarray:
    ones = paths[:, -1]
    return mean**ones * (1.0 - mean) ** (paths.shape[1] - 1 - ones)


def odds_along(paths: np.ndarray, cut: float) -> np.ndarray:
    n = np.arange(paths.shape[1])
    below = betainc(paths + 1.0, n - paths + 1.0, cut)  # P(theta <= y), by another function than the package's
    return below / (1.0 - below)


def last_exit(along: np.ndarray, level: float) -> np.ndarray:
    above = along > level
    return np.where(above.any(axis=1), along.shape[1] - above[:, ::-1].argmax(axis=1), 0)


@pytest.mark.parametrize(("mean", "cut"), [(0.6, 0.4), (0.9, 0.85), (0.3, 0.05), (1.0, 0.5), (0.55, 0.5)])
def test_last_exits_agree_with_all_paths(mean: float, cut: float) -> None:
    paths = every_path(12)
    along, weights = odds_along(paths, cut), chances(paths, mean)
    found = last_exits(mean, cut, LEVELS, 12, 1e-12)
    for place, level in enumerate(LEVELS):
        exits = last_exit(along, level)
        assert found.ever[place] == pytest.approx(weights @ (exits > 0), abs=1e-10)
        assert found.mean[place] == pytest.approx(weights @ exits, abs=1e-10)


def by_levels(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The sum over levels x of (next x - x) 1{value > x}: what `struggle` makes of each maximum."""
    return (np.diff(levels) * (values[..., None] > levels[:-1])).sum(axis=-1)


@pytest.mark.parametrize(("mean", "cut"), [(0.6, 0.4), (0.9, 0.85), (0.3, 0.05), (0.55, 0.5), (0.02, 0.006)])
def test_the_struggle_agrees_with_all_paths(mean: float, cut: float) -> None:
    paths = every_path(12)
    along, weights = odds_along(paths, cut), chances(paths, mean)
    ahead = np.maximum.accumulate(along[:, ::-1], axis=1)[:, ::-1]
    shares = LEVELS / (1.0 + LEVELS)
    doubts = by_levels(ahead / (1.0 + ahead), shares)
    first = LEVELS[max(0, np.searchsorted(LEVELS, cut / (1.0 - cut)) - 1)]
    peaks = first + by_levels(ahead[:, 0], LEVELS[first <= LEVELS])
    found = struggle(mean, cut, LEVELS, 12, 1e-12)
    assert struggle(mean, cut, LEVELS, 12, 1e-12, drag=False) == found._replace(drag=math.inf)
    assert found.peak == pytest.approx(weights @ (LEVELS[0] + by_levels(ahead[:, 0], LEVELS)), abs=1e-9)
    assert found.total == pytest.approx(weights @ by_levels(ahead, LEVELS).sum(axis=1), abs=1e-9)
    assert found.doubt == pytest.approx(weights @ (shares[0] + doubts[:, 0]), abs=1e-9)
    assert found.drag == pytest.approx(weights @ ((1.0 + peaks) * doubts.sum(axis=1)), abs=1e-9)
    assert found.beyond == pytest.approx(weights @ (along.max(axis=1) > LEVELS[-1]), abs=1e-9)


def simulated(mean: float, cut: float, length: int, paths: int) -> np.ndarray:
    rng = np.random.default_rng(8)
    ones = (rng.random((paths, length - 1)) < mean).cumsum(axis=1)
    return odds_along(np.concatenate([np.zeros((paths, 1), int), ones], axis=1), cut)


def agrees(found: Exits, along: np.ndarray, levels: np.ndarray) -> bool:
    """Whether E N_x is the simulated mean but for four standard errors, at each level."""
    exits = np.stack([last_exit(along, level) for level in levels], axis=1)
    error = exits.std(axis=0, ddof=1) / math.sqrt(len(along))
    return bool((np.abs(found.mean - exits.mean(axis=0)) <= 4.0 * error + 1e-6).all())


def test_long_paths_agree_with_simulated_ones() -> None:
    levels = np.array([1e-3, 0.1, 1.0, 5.0])
    along = simulated(0.7, 0.55, 800, 4000)
    assert agrees(last_exits(0.7, 0.55, levels, 800), along, levels)
    assert not agrees(last_exits(0.7, 0.56, levels, 800), along, levels)  # another cut is told apart


@given(st.floats(0.05, 0.9), st.floats(0.02, 0.09), st.floats(1e-6, 1e3))
def test_after_the_horizon_odds_above_the_level_are_rare(cut: float, gap: float, level: float) -> None:
    mean, late = cut + gap, 1e-3
    end = horizon(mean, cut, level, 10**9, late)
    s = np.arange(end + 1.0)
    above = np.array([odds(end, int(k), cut) > level for k in s])
    assert float(binom.pmf(s, end, mean) @ above) <= late


def test_divergence() -> None:
    assert divergence(0.5, 0.5) == 0.0
    assert divergence(0.3, 0.0) == math.inf
    assert divergence(0.3, 1.0) == math.inf
    assert divergence(0.0, 0.5) == pytest.approx(math.log(2))

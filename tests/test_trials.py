"""E min{X(k, s(k), y), T}: closed forms, brute force, the lemmas of Agrawal and Goyal that the paper quotes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from belated.inputs import InvalidInput
from belated.theory import expected_trials
from belated.theory.trials import all_trials


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rounds", [1, 7, 10_000])
def test_without_rewards_it_is_the_mean_of_a_cut_geometric_law(cut: float, rounds: int) -> None:
    assert expected_trials(0, 0.3, cut, rounds) == pytest.approx(cut * (1 - cut**rounds) / (1 - cut), rel=1e-12)


def test_with_one_reward_it_is_the_mean_of_two() -> None:
    """theta is Beta(2, 1) after a one and Beta(1, 2) after a zero: P(theta > y) = 1 - y^2 and (1 - y)^2."""
    mean, cut, rounds = 0.6, 0.3, 50
    one, zero = 1 - cut**2, (1 - cut) ** 2
    draws = [(1 - p) * (1 - (1 - p) ** rounds) / p for p in (one, zero)]
    assert expected_trials(1, mean, cut, rounds) == pytest.approx(mean * draws[0] + (1 - mean) * draws[1], rel=1e-12)


def counted(k: int, mean: float, cut: float, rounds: int, paths: int) -> np.ndarray:
    """Brute force: draw the rewards, then draw from the posterior until the cut is exceeded."""
    rng = np.random.default_rng(3)
    ones = rng.binomial(k, mean, paths)
    waiting, draws = np.ones(paths, bool), np.zeros(paths)
    for _ in range(rounds):
        waiting &= rng.beta(ones + 1.0, k - ones + 1.0) <= cut
        draws += waiting
        if not waiting.any():
            break
    return draws


@pytest.mark.parametrize(("k", "mean", "cut", "rounds"), [(0, 0.6, 0.5, 40), (6, 0.6, 0.5, 300), (40, 0.7, 0.6, 100)])
def test_it_agrees_with_drawing(k: int, mean: float, cut: float, rounds: int) -> None:
    draws = counted(k, mean, cut, rounds, 20_000)
    reach = 4.0 * draws.std(ddof=1) / math.sqrt(len(draws))
    assert abs(draws.mean() - expected_trials(k, mean, cut, rounds)) <= reach
    assert abs(draws.mean() - expected_trials(k, mean, cut + 0.05, rounds)) > reach  # another cut is told apart


def test_it_is_stable_for_a_million_rewards() -> None:
    k = 10**6
    assert expected_trials(k, 0.6, 0.5, 20_000) == 0.0
    assert expected_trials(k, 0.5, 0.6, 20_000) == pytest.approx(20_000, rel=1e-9)
    # At the mean P(theta > y) is uniform in the limit: the integral of (1 - u)(1 - (1 - u)^T) / u is H_(T+1) - 1.
    harmonic = sum(1.0 / j for j in range(2, 52))
    assert expected_trials(k, 0.5, 0.5, 50) == pytest.approx(harmonic, rel=5e-3)


@pytest.mark.parametrize("gap", [0.1, 0.2, 0.5, 0.8])
def test_l5_few_rewards_cost_at_most_six_over_the_gap(gap: float) -> None:
    """Agrawal and Goyal's bound for k < 6 / gap, at the middle of two means; a hundredth of it would be too little."""
    mean, rounds = 0.5 + gap / 2, 10_000
    draws = [expected_trials(k, mean, mean - gap / 2, rounds) for k in range(math.ceil(6 / gap))]
    assert max(draws) <= 6 / gap
    assert not max(draws) <= 0.01 * 6 / gap


@pytest.mark.parametrize("gap", [0.2, 0.5])
def test_l6_many_rewards_cost_of_order_one_in_t(gap: float) -> None:
    """From k = 16 log T / gap^2 on, T times it stays bounded as T grows; from a tenth of that it does not."""
    mean = 0.5 + gap / 2

    def scaled(rounds: int, part: float) -> float:
        k = math.ceil(part * 16 * math.log(rounds) / gap**2)
        return rounds * expected_trials(k, mean, mean - gap / 2, rounds)

    assert scaled(10**4, 1.0) <= scaled(10**2, 1.0) <= 16
    assert scaled(10**4, 0.1) > 5 * scaled(10**2, 0.1)


def test_what_all_trials_leave_out_is_below_what_they_say() -> None:
    values, rest = all_trials(0.8, 0.5, 5000)
    assert 0 < rest < 1e-6
    beyond = sum(expected_trials(k, 0.8, 0.5, 5000) for k in range(len(values), len(values) + 200))
    assert beyond <= rest
    assert len(all_trials(0.6, 0.59, 30)[0]) == 31
    assert all_trials(0.6, 0.59, 30)[1] == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((-1, 0.5, 0.4, 9), "k: .* got -1"), ((1, 1.5, 0.4, 9), "mean: .* 1.5"), ((1, 0.5, -0.4, 9), "cut: .* -0.4")],
)
def test_bad_input(arguments: tuple[int, float, float, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        expected_trials(*arguments)

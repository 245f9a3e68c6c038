"""Chances and losses: against exact rational arithmetic, quadrature to many digits, and a million draws."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc

from belated.live import posterior
from belated.live.posterior import Standing, chances, intervals, losses, standing

Exact = tuple[list[float], list[float]]


def arms(*pairs: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.array(pairs, dtype=float).T
    return a, b


# Exact: with whole a and b every F is a polynomial with whole coefficients.


def product(one: list[int], other: list[int]) -> list[int]:
    return np.convolve(np.array(one, dtype=object), np.array(other, dtype=object)).tolist()


def distribution(a: int, b: int) -> list[int]:
    """F(x) = P(Bin(n, x) >= a) with n = a + b - 1, by powers of x."""
    n, coefficients = a + b - 1, [0] * (a + b)
    for j in range(a, n + 1):
        for k in range(n - j + 1):
            coefficients[j + k] += comb(n, j) * comb(n - j, k) * (-1) ** k
    return coefficients


def integral(polynomial: list[int]) -> Fraction:
    return sum((Fraction(c, k + 1) for k, c in enumerate(polynomial)), Fraction(0))


def exact(*pairs: tuple[int, int]) -> Exact:
    """P(theta_i = max) = int F_i' prod_{j != i} F_j and E max - E theta_i, E max = 1 - int prod_j F_j, as fractions."""
    curves = [distribution(a, b) for a, b in pairs]
    best, everything = [], [1]
    for place, curve in enumerate(curves):
        slope = [k * c for k, c in enumerate(curve)][1:]
        for other in curves[:place] + curves[place + 1 :]:
            slope = product(slope, other)
        best.append(float(integral(slope)))
        everything = product(everything, curve)
    most = 1 - integral(everything)
    return best, [float(most - Fraction(a, a + b)) for a, b in pairs]


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, 1), (1, 1)],
        [(3, 8), (5, 7)],
        [(1, 60), (60, 1)],
        [(40, 41), (41, 40)],
        [(2, 1), (1, 2), (7, 7)],
        [(30, 40), (32, 40), (3, 3)],
        [(12, 3), (9, 4), (20, 5), (1, 1), (2, 30)],
    ],
)
def test_whole_parameters_agree_with_exact_fractions(pairs: list[tuple[int, int]]) -> None:
    best, lost = exact(*pairs)
    found = standing(*arms(*pairs))
    assert found.chances == pytest.approx(best, rel=1e-12, abs=1e-13)
    assert found.losses == pytest.approx(lost, rel=1e-12)
    assert chances(*arms(*pairs)) == pytest.approx(best, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("pairs", "size"), [([(25, 4), (20, 70)], 1e-12), ([(40, 2), (4, 30), (2, 25)], 1e-17)])
def test_tiny_losses_keep_their_digits(pairs: list[tuple[int, int]], size: float) -> None:
    lost = exact(*pairs)[1]
    assert size / 10 < lost[0] < size * 10
    assert losses(*arms(*pairs)) == pytest.approx(lost, rel=1e-12, abs=0.0)


# To many digits: parameters that are not whole.


def precise(*pairs: tuple[float, float]) -> Exact:
    """Both integrals to 20 digits, over z."""
    with mpmath.workdps(20):
        points = sorted({-500.0, -60.0, -8.0, 0.0, 8.0, 60.0, 500.0, *(float(np.log(a / b)) for a, b in pairs)})

        @cache  # every integral asks at the same points
        def below(pair: tuple[float, float], z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.betainc(*pair, 0, 1 / (1 + mpmath.exp(-z)), regularized=True)

        @cache
        def density(pair: tuple[float, float], z: mpmath.mpf) -> mpmath.mpf:
            a, b = pair
            return mpmath.exp(a * z - (a + b) * mpmath.log1p(mpmath.exp(z))) / mpmath.beta(a, b)

        def others(place: int, z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.fprod(below(pair, z) for other, pair in enumerate(pairs) if other != place)

        def chance(place: int) -> mpmath.mpf:
            return mpmath.quad(lambda z: density(pairs[place], z) * others(place, z), points, maxdegree=5)

        def loss(place: int) -> mpmath.mpf:
            return mpmath.quad(
                lambda z: below(pairs[place], z) * (1 - others(place, z)) / (2 + 2 * mpmath.cosh(z)),
                points,
                maxdegree=5,
            )

        return [float(chance(i)) for i in range(len(pairs))], [float(loss(i)) for i in range(len(pairs))]


@pytest.mark.parametrize(
    "pairs",
    [
        [(0.5, 0.5), (0.2, 3.7)],
        [(0.35, 0.3), (2.5, 1.5), (0.5, 0.9)],
        [(33.3, 41.7), (1.25, 1.75), (0.4, 0.6)],
        [(90.5, 1.5), (150.5, 4.5), (0.5, 0.5)],
    ],
)
def test_any_parameters_agree_with_quadrature_to_many_digits(pairs: list[tuple[float, float]]) -> None:
    best, lost = precise(*pairs)
    found = standing(*arms(*pairs))
    assert found.chances == pytest.approx(best, rel=1e-11)
    assert found.losses == pytest.approx(lost, rel=1e-11)


@pytest.mark.parametrize("shift", [0.0, 1e-9, 1e-6, 1e-4, 5e-4])
def test_ten_million_rewards_and_nearly_tied(shift: float) -> None:
    """F by another function, the density to 30 digits, and the trapezium rule, which is exact for such a bell."""
    a, b = arms((3e6, 7e6), ((0.3 + shift) * 1e7, (0.7 - shift) * 1e7))
    theta = np.linspace(0.2984, 0.3016, 201)
    with mpmath.workdps(30):
        constant = mpmath.log(mpmath.beta(a[0], b[0]))
        density = [
            float(mpmath.exp((a[0] - 1) * mpmath.log(x) + (b[0] - 1) * mpmath.log1p(-mpmath.mpf(x)) - constant))
            for x in theta
        ]
    expected = float(np.dot(density, betainc(a[1], b[1], theta)) * (theta[1] - theta[0]))
    assert chances(a, b) == pytest.approx([expected, 1.0 - expected], abs=1e-10)


# A million draws.


def simulated(a: np.ndarray, b: np.ndarray, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How often each arm is best, its mean loss, and the standard error of that."""
    theta = np.random.default_rng(seed).beta(a[:, None], b[:, None], size=(len(a), draws))
    frequency = np.bincount(theta.argmax(axis=0), minlength=len(a)) / draws
    lost = theta.max(axis=0) - theta
    return frequency, lost.mean(axis=1), lost.std(axis=1) / np.sqrt(draws)


def agrees(found: Standing, a: np.ndarray, b: np.ndarray, draws: int, seed: int) -> bool:
    """Within 4.5 standard errors, arm by arm; what is rarer than the draws can tell counts as one draw."""
    frequency, lost, error = simulated(a, b, draws, seed)
    spread = np.sqrt(np.maximum(found.chances, 1.0 / draws) / draws)
    close = np.abs(frequency - found.chances) <= 4.5 * spread
    return bool(close.all() and (np.abs(lost - found.losses) <= 4.5 * error + 1e-12).all())


@pytest.mark.parametrize(
    ("count", "rewards", "draws"),
    [(2, 30, 10**6), (3, 10**6, 10**6), (5, 5, 10**6), (8, 400, 4 * 10**5), (20, 100, 2 * 10**5), (50, 10**4, 10**5)],
)
def test_draws_agree_and_one_success_too_many_is_caught(count: int, rewards: int, draws: int) -> None:
    rng = np.random.default_rng(count)
    ones = rng.binomial(rewards, 0.3 + 0.5 * rng.random(count) / np.sqrt(rewards))
    a, b = ones + 1.0, rewards - ones + 1.0
    assert agrees(standing(a, b), a, b, draws, seed=count)
    few = max(1, round(0.01 * np.sqrt(rewards)))  # of a million rewards, ten: one is not seen in a million draws
    leader = np.argmax(a / (a + b))
    altered = a + np.where(np.arange(count) == leader, few, 0.0)
    assert not agrees(standing(altered, b), a, b, draws, seed=count)


def test_draws_agree_when_wide_meets_narrow() -> None:
    a, b = arms((0.4, 0.7), (5e6, 5e6), (501.0, 480.0), (1.0, 1.0), (2.0, 90.0), (5e4, 5.02e4))
    assert agrees(standing(a, b), a, b, 10**6, seed=3)


# What holds of any posteriors.

sizes = st.floats(-2.0, 7.0).map(lambda power: 10.0**power)
posteriors = st.lists(st.tuples(sizes, sizes), min_size=1, max_size=12)


@given(posteriors)
def test_chances_add_up_and_every_loss_leads_to_the_same_maximum(pairs: list[tuple[float, float]]) -> None:
    a, b = arms(*pairs)
    found = standing(a, b)
    means = a / (a + b)
    assert found.chances.sum() == pytest.approx(1.0, abs=1e-11)
    assert chances(a, b) == pytest.approx(found.chances, abs=1e-11)
    assert (found.losses >= 0.0).all()
    assert found.losses + means == pytest.approx(np.full(len(a), (found.losses + means)[0]), abs=1e-11)
    assert (found.losses >= means.max() - means - 1e-12).all()


@settings(max_examples=40)
@given(posteriors, st.randoms(use_true_random=False))
def test_the_order_of_the_arms_is_nothing(pairs: list[tuple[float, float]], random: object) -> None:
    order = np.arange(len(pairs))
    random.shuffle(order)  # type: ignore[attr-defined]
    a, b = arms(*pairs)
    one, other = standing(a, b), standing(a[order], b[order])
    assert other.chances == pytest.approx(one.chances[order], rel=1e-9, abs=1e-14)
    assert other.losses == pytest.approx(one.losses[order], rel=1e-9, abs=1e-20)


@pytest.mark.parametrize("count", [2, 3, 10, 100, 500])
@pytest.mark.parametrize("size", [0.01, 0.5, 1.0, 30.0, 1e4, 1e7])
def test_identical_arms_share_alike(count: int, size: float) -> None:
    a = np.full(count, size)
    for skew in (1.0, 30.0):
        found = standing(a, a * skew)
        assert found.chances == pytest.approx(np.full(count, 1.0 / count), abs=1e-12)
        assert found.losses == pytest.approx(np.full(count, found.losses[0]), rel=1e-9)


@pytest.mark.parametrize("count", [2, 3, 20, 100, 500])
@pytest.mark.parametrize("kind", ["fresh", "tied", "close", "spread", "hopeless", "mixed", "tiny"])
def test_chances_add_up_to_one(count: int, kind: str) -> None:
    rng = np.random.default_rng(count)
    size = {"fresh": 2.0, "tiny": 0.02, "mixed": 10.0 ** rng.uniform(0, 7, count)}.get(kind, 2e7)
    gap = {"tied": 1e-9, "close": 1e-4, "spread": 0.1, "mixed": 0.05}.get(kind, 0.0)
    mean = np.clip(0.5 + gap * rng.standard_normal(count), 0.01, 0.99)
    if kind == "hopeless":
        mean[: count - 1] = 0.2
    a, b = mean * size, (1.0 - mean) * size
    found = standing(a, b)
    for each in (found.chances, chances(a, b)):
        assert each.sum() == pytest.approx(1.0, abs=1e-11)
        assert (each >= 0.0).all()
    if kind == "hopeless":
        assert found.chances.tolist() == [0.0] * (count - 1) + [pytest.approx(1.0, abs=1e-12)]
        assert found.losses[:-1] == pytest.approx(np.full(count - 1, 0.3), abs=1e-12)
        assert found.losses[-1] == 0.0


def test_one_arm_is_the_best() -> None:
    found = standing(*arms((3.0, 4.0)))
    assert found.chances == pytest.approx([1.0], abs=1e-13)
    assert found.losses.tolist() == [0.0]


def test_panels_too_wide_are_noticed_and_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = arms((33.3, 41.7), (1.25, 1.75), (3e4, 4e4))
    expected = standing(a, b)
    integrated = posterior._integrated
    _, error = integrated(posterior._arms(a, b), 12.0, True)
    assert error > 1e-8
    monkeypatch.setattr(posterior, "_integrated", lambda arms, width, whole: integrated(arms, 4.0 * width, whole))
    assert standing(a, b).chances == pytest.approx(expected.chances, abs=1e-10)


def test_intervals_leave_the_same_on_both_sides() -> None:
    a, b = arms((1.0, 1.0), (31.0, 71.0), (0.5, 900.0), (5e6, 5e6))
    low, high = intervals(a, b, 0.9)
    assert betainc(a, b, low) == pytest.approx(np.full(4, 0.05), rel=1e-8)
    assert betainc(b, a, 1.0 - high) == pytest.approx(np.full(4, 0.05), rel=1e-8)

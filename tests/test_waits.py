"""Waits: against lifelines, against waits of a known law cut off by the present, and by hand."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated import Fixed, Geometric, InvalidInput, Law, Mixture, Observed, Thompson, theory
from belated.live.waits import Curve, by_when, kaplan_meier, law, to_come
from support import actions

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own dependencies warn of one another
    from lifelines import KaplanMeierFitter

EMPTY = np.array([])


def test_a_hand_example() -> None:
    """Five outcomes: at 6 all five still count and two come; the pending ages end at 6 and 7, so at 9 one is left."""
    curve = kaplan_meier([6, 9, 6], [6, 7])
    assert curve.times.tolist() == [6.0, 9.0]
    assert curve.levels == pytest.approx([2 / 5, 1.0], abs=1e-15)
    assert curve.at([0, 5.9, 6, 8.9, 9, math.inf]) == pytest.approx([0, 0, 0.4, 0.4, 1, 1], abs=1e-15)


@pytest.mark.parametrize("seed", range(12))
def test_levels_are_those_of_lifelines(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 3000))
    times = np.ceil(rng.exponential(rng.choice([3.0, 50.0, 1e6]), size))  # with many ties, few, or none
    came = rng.random(size) < rng.choice([0.05, 0.5, 0.95, 1.0])
    came[0] = True
    counts = rng.integers(1, 6, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = KaplanMeierFitter().fit(times, came)
        weighted = KaplanMeierFitter().fit(times, came, weights=counts)
    curve = kaplan_meier(times[came], times[~came])
    assert curve.times.tolist() == sorted(set(times[came].tolist()))
    assert curve.levels == pytest.approx(1.0 - plain.predict(curve.times).to_numpy(), abs=1e-12)
    curve = kaplan_meier(times[came], times[~came], waits_counts=counts[came], ages_counts=counts[~came])
    assert curve.levels == pytest.approx(1.0 - weighted.predict(curve.times).to_numpy(), abs=1e-12)


whole = st.lists(st.integers(0, 12), max_size=30)


@given(whole, whole)
def test_counts_are_repetitions_and_levels_ascend(waits: list[int], ages: list[int]) -> None:
    curve = kaplan_meier(waits, ages)
    assert (np.diff(curve.levels, prepend=0.0) >= 0.0).all()
    assert (curve.levels <= 1.0).all()
    (one, how_many), (other, pending) = (np.unique(each, return_counts=True) for each in (waits, ages))
    counted = kaplan_meier(one, other, waits_counts=how_many, ages_counts=pending)
    assert (counted.times.tolist(), counted.levels.tolist()) == (curve.times.tolist(), curve.levels.tolist())


def test_what_there_is_none_of_is_no_step() -> None:
    curve = kaplan_meier([1, 2, 3], [2], waits_counts=[1, 0, 1], ages_counts=[0])
    assert (curve.times.tolist(), curve.levels.tolist()) == ([1.0, 3.0], [0.5, 1.0])


# A known law, cut off by the present.


def cut_off(truth: Law, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Finished waits, and the ages of what is pending, of decisions made all along the last 40 rounds."""
    rng = np.random.default_rng(seed)
    waits = np.array([truth.quantile(v) for v in rng.random(size)])
    ages = rng.integers(0, 40, size)
    return waits[waits <= ages], ages[waits > ages]


def greenwood(waits: np.ndarray, ages: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The standard error of the level at each time: S sqrt(sum d / (n (n - d))), without anything vectorised."""
    errors = []
    for time in times:
        total, survival = 0.0, 1.0
        for s in sorted(set(waits[waits <= time].tolist())):
            d, n = int((waits == s).sum()), int((waits >= s).sum() + (ages >= s).sum())
            total += d / (n * (n - d))
            survival *= 1.0 - d / n
        errors.append(survival * math.sqrt(total))
    return np.array(errors)


@pytest.mark.parametrize(
    "truth",
    [Geometric(0.08), Mixture([0.6, 0.4], [Geometric(0.2), Fixed(10**6)]), Observed([2, 15, 30], [0.2, 0.7, 0.8])],
)
def test_a_known_law_is_recovered_and_ignoring_the_pending_is_caught(truth: Law) -> None:
    waits, ages = cut_off(truth, 20_000, seed=11)
    times = np.array([2.0, 5.0, 15.0, 30.0])
    levels, errors = np.array([truth.cdf(time) for time in times]), greenwood(waits, ages, times)
    assert (np.abs(kaplan_meier(waits, ages).at(times) - levels) <= 4.0 * errors).all()
    assert (np.abs(kaplan_meier(waits, EMPTY).at(times) - levels) > 8.0 * errors).any()


# The law in rounds.


def test_waits_are_rounded_up_and_ages_down() -> None:
    assert law([1, 1000, 1001, 2000], [1999, 2999], unit=1000) == Observed(
        [1, 2], kaplan_meier([1, 1, 2, 2], [1, 2])[1]
    )
    assert law([1000.0], [], unit=1000) == Observed([1], [1.0])
    assert law([0], [5000], unit=1000) == Observed([0], [0.5])


def test_nothing_heard_yet_is_no_law() -> None:
    assert law([], []) is None
    assert law([], [5.0, 7.0], unit=2) is None
    assert law([3.0], [1.0], waits_counts=[0]) is None
    with pytest.raises(InvalidInput, match=r"unit: must be above 0, got 0"):
        law([1.0], [], unit=0)


def test_theory_and_simulation_take_the_law_as_it_is() -> None:
    waits, ages = cut_off(Geometric(0.1), 5000, seed=2)
    observed = law(waits, ages)
    assert observed is not None
    assert observed.quantile(0.5) == Geometric(0.1).quantile(0.5)
    assert theory.elimination([0.6, 0.4], [observed, observed], 10**5).value > 0.0
    assert set(actions(Thompson(), observed, compiled=False)) <= {0, 1, 2}


@given(whole, whole, st.sampled_from([1.0, 3.0, 0.7]))
def test_any_waits_make_a_law_or_none(waits: list[int], ages: list[int], unit: float) -> None:
    observed = law(waits, ages, unit=unit)
    assert (observed is None) == (not waits)
    if observed is not None:
        assert Curve.of(observed).at(observed.delays).tolist() == [observed.cdf(d) for d in observed.delays]


# What is still to come.


def test_what_is_to_come_agrees_with_brute_force() -> None:
    """Draw each pending wait again and again from the law, given that it is longer than the age."""
    truth = Mixture([0.7, 0.3], [Geometric(0.15), Fixed(10**6)])
    curve = kaplan_meier(*cut_off(truth, 3000, seed=4))
    ages, counts, draws = np.array([0.0, 3.0, 11.0]), np.array([20, 5, 10]), 40_000
    rng = np.random.default_rng(8)
    steps, masses = np.append(curve.times, np.inf), np.diff(curve.levels, prepend=0.0, append=1.0)
    for within in (2.0, 9.0, math.inf):
        come = np.zeros(draws)
        for age, count in zip(ages, counts, strict=True):
            later = np.where(steps > age, masses, 0.0)
            waits = rng.choice(steps, size=(draws, count), p=later / later.sum())
            come += ((waits <= age + within) & (waits < math.inf)).sum(axis=1)
        error = come.std() / math.sqrt(draws)
        assert abs(to_come(curve, ages, counts=counts, within=within) - come.mean()) < 4.0 * error
        assert abs(to_come(curve, ages + 1.0, counts=counts, within=within) - come.mean()) > 8.0 * error


def test_to_come_by_hand() -> None:
    curve = Curve(np.array([10.0, 20.0]), np.array([0.5, 1.0]))
    assert to_come(curve, [0, 10, 20, 50]) == 2.0  # of the last two nothing is known: they should have come
    assert to_come(curve, [0, 10, 20, 50], within=10) == 1.5
    assert to_come(curve, [0, 10], counts=[4, 6], within=9.0) == 0.0
    assert to_come(Curve(np.array([10.0]), np.array([0.25])), [0, 9, 10], counts=[4, 8, 100]) == 3.0


def test_by_when_is_the_first_time_at_which_enough_is_expected() -> None:
    curve = Curve(np.array([10.0, 20.0, 70.0]), np.array([0.5, 0.75, 0.875]))
    assert by_when(curve, [0.0], fraction=0.5) == 10.0
    assert by_when(curve, [0.0], fraction=0.9) == 70.0
    assert by_when(curve, [7.0], fraction=0.5) == 3.0
    assert by_when(curve, [0.0, 15.0], counts=[1, 10**6], fraction=0.5) == 5.0
    assert by_when(curve, [0.0, 15.0, 900.0], fraction=1.0) == 70.0


@given(whole.filter(bool), whole.filter(bool), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_by_when_agrees_with_trying_every_time(waits: list[int], ages: list[int], fraction: float) -> None:
    curve = kaplan_meier(waits, ages)
    every = [to_come(curve, ages, within=float(time)) for time in range(14)]
    wanted = fraction * to_come(curve, ages)
    found = by_when(curve, ages, fraction=fraction)
    expected = next(time for time, so_far in enumerate(every) if so_far >= wanted)
    assert found == (expected if wanted > 0.0 else None)


def test_nothing_pending_or_nothing_known_means_nothing_to_come() -> None:
    curve, unknown = kaplan_meier([1, 2], []), kaplan_meier([], [4, 5])
    assert (unknown.times.tolist(), unknown.levels.tolist()) == ([], [])
    assert to_come(curve, []) == to_come(unknown, [4, 5]) == to_come(unknown, []) == 0.0
    assert by_when(curve, []) is by_when(unknown, [4, 5]) is by_when(curve, [2, 9]) is None
    with pytest.raises(InvalidInput, match=r"fraction: must be between 0 and 1, got 2"):
        by_when(curve, [0], fraction=2)

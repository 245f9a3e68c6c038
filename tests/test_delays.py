"""Laws: quantile and CDF are inverse, samples follow the law, compiled code reads the same law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import kolmogorov

from belated import (
    Between,
    Conversions,
    Exponential,
    Fixed,
    Geometric,
    InvalidInput,
    Law,
    Loss,
    Mixture,
    Observed,
    Outage,
    Pareto,
    Queue,
    Refreshed,
    RewardDependent,
    Uniform,
    delays,
    kernels,
)
from belated.law import steps
from support import IID_LAWS

probabilities = st.floats(0.001, 1.0)
simple_laws = st.one_of(
    st.builds(Fixed, st.integers(0, 10**6)),
    st.builds(Geometric, probabilities),
    st.builds(lambda low, span: Uniform(low, low + span), st.integers(0, 10**5), st.integers(0, 10**5)),
    st.builds(Pareto, st.floats(0.05, 5.0)),
    st.builds(Loss, st.one_of(st.just(0.0), probabilities)),
    st.builds(Exponential, st.floats(0.01, 1e5)),
    st.builds(
        lambda gaps, masses: Observed(np.cumsum(gaps).tolist(), (np.cumsum(masses) / max(1.0, sum(masses))).tolist()),
        st.lists(st.integers(1, 1000), min_size=3, max_size=3),
        st.lists(st.floats(0.01, 0.5), min_size=3, max_size=3),
    ),
)
weights = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-9, 1.0 - 1e-9))
laws = st.one_of(
    simple_laws,
    st.builds(lambda w, one, other: Mixture([w, 1 - w], [one, other]), weights, simple_laws, simple_laws),
)


@given(laws, st.floats(1e-9, 1.0))
def test_the_quantile_is_the_smallest_delay_that_reaches_q(law: Law, q: float) -> None:
    d = law.quantile(q)
    if d == math.inf:
        assert law.cdf(1e15) < q or q > 1 - 1e-12 or law.quantile(0.5 * q) > 1e15 or _tail_beyond(law, q)
        return
    assert d == math.floor(d) >= 0
    if d < 1e12:  # beyond, neighbouring whole numbers have the same CDF in double precision
        assert law.cdf(d) >= q * (1 - 1e-15)  # the weights of a mixture are rounded
        assert d == 0 or law.cdf(d - 1) < q or d == law.quantile(0.0)


def _tail_beyond(law: Law, q: float) -> bool:
    """Whether the delay at q is finite but too large for a double."""
    return law.cdf(1e300) < q


@given(laws, st.integers(0, 10**4))
def test_the_cdf_undoes_the_quantile(law: Law, d: int) -> None:
    level = law.cdf(d)
    assert 0.0 <= level <= 1.0
    assert law.cdf(d + 1) >= level
    if 0.0 < level < 1.0:  # a level that rounds to 1 has the end of the law for its quantile
        assert law.quantile(level) <= d
        assert law.cdf(law.quantile(level)) == level


@given(laws)
def test_at_zero_the_quantile_is_a_delay_that_happens(law: Law) -> None:
    d = law.quantile(0.0)
    assert law.cdf(d) > law.cdf(d - 1) or d > 1e12 or law.cdf(1e300) == 0.0


@given(laws)
def test_steps_add_up_to_the_cdf(law: Law) -> None:
    listed = list(steps(law, 200))
    assert all(mass > 0 for _, mass in listed)
    assert [d for d, _ in listed] == sorted({d for d, _ in listed})
    assert math.fsum(mass for _, mass in listed) == pytest.approx(law.cdf(200), abs=1e-9)


@pytest.mark.parametrize("name", IID_LAWS)
def test_samples_follow_the_law(name: str) -> None:
    """Kolmogorov–Smirnov against the CDF, of compiled draws; against the wrong law it must reject."""
    law, wrong = IID_LAWS[name], Geometric(0.13)
    draws = _compiled_draws(law, np.random.default_rng(7).random(20_000))
    assert _ks_p_value(draws, law) > 1e-3
    assert _ks_p_value(draws, wrong) < 1e-6


def _compiled_draws(law: Law, uniforms: np.ndarray) -> np.ndarray:
    compiled = kernels.compiled_delays((law,))
    address, shown = (array.ctypes.data_as(_pointer()) for array in (compiled.rows, compiled.shown))
    width = compiled.rows.shape[1]
    return np.array([compiled.function.ctypes(address, width, 0, 1, 1.0, v, shown) for v in uniforms])


def _pointer() -> object:
    import ctypes

    return ctypes.POINTER(ctypes.c_double)


def _ks_p_value(draws: np.ndarray, law: Law) -> float:
    """For a discrete law the bound is conservative: the statistic at the steps is at most the continuous one."""
    points = np.unique(draws[np.isfinite(draws)])
    empirical = np.searchsorted(np.sort(draws), points, side="right") / len(draws)
    distance = max(abs(level - law.cdf(d)) for level, d in zip(empirical, points, strict=True))
    return float(kolmogorov(math.sqrt(len(draws)) * distance))


@pytest.mark.parametrize("name", IID_LAWS)
def test_compiled_draws_equal_the_quantile(name: str) -> None:
    law = IID_LAWS[name]
    uniforms = np.random.default_rng(3).random(500)
    expected = [law.delay(None, 1, 1.0, v) for v in uniforms]
    assert _compiled_draws(law, uniforms).tolist() == expected


def test_known_quantiles() -> None:
    assert Geometric(0.5).quantile(0.75) == 2.0
    assert Geometric(0.5).cdf(2) == 0.75
    assert Pareto(1.0).quantile(0.5) == 1.0  # P(l <= 1) = 1 - 1/2
    assert Pareto(1.0).cdf(3) == 0.75
    assert Uniform(150, 300).quantile(1.0) == 300.0
    assert Uniform(150, 300).quantile(0.0) == 150.0
    assert Loss(0.3).quantile(0.3) == 0.0
    assert Loss(0.3).quantile(0.31) == math.inf
    assert Geometric(0.01).quantile(1.0) == math.inf
    assert Exponential(10).cdf(7) == pytest.approx(1 - math.exp(-0.7))
    assert Observed.from_waits([0.5, 2, 2, 9.1]).quantile(0.75) == 2.0
    assert Mixture([0.25, 0.25, 0.5], [Fixed(1), Fixed(2), Fixed(3)]).quantile(0.5) == 2.0


def test_a_pareto_delay_too_large_for_a_double_never_comes() -> None:
    assert Pareto(0.01).quantile(1 - 1e-15) == math.inf


def test_the_queue_reveals_the_first_at_once_and_others_when_those_ahead_are_served() -> None:
    memory, law = np.zeros(1), Queue(0.1)
    assert law.delay(memory, 1, 1.0, 0.5) == 0.0
    service = math.log(2) / 0.1  # 6.93 rounds, the median
    assert memory[0] == pytest.approx(1 + service)
    assert law.delay(memory, 2, 1.0, 0.5) == math.ceil(service - 1)
    assert memory[0] == pytest.approx(1 + 2 * service)
    assert law.delay(memory, 100, 1.0, 0.5) == 0.0


def test_reward_dependent_delays() -> None:
    law = RewardDependent(success=Fixed(1000), failure=Fixed(2))
    assert (law.delay(None, 1, 1.0, 0.3), law.delay(None, 1, 0.0, 0.3)) == (1000.0, 2.0)


def test_what_is_refreshed_is_seen_at_the_next_multiple_and_at_once_if_every_round_is_one() -> None:
    for name, law in {**IID_LAWS, "reward-dependent": RewardDependent(Fixed(10), Loss(0.4))}.items():
        for t, reward, v in [(1, 1.0, 0.2), (7, 0.0, 0.55), (40, 1.0, 0.999), (41, 0.0, 0.7)]:
            plain = law.delay(None, t, reward, v)
            assert Refreshed(law, 1).delay(None, t, reward, v) == plain, name
            waits = [Refreshed(law, every).delay(None, t, reward, v) for every in (2, 4, 8, 16, 32)]
            assert waits == sorted(waits)  # each is a multiple of the one before
            for every, wait in zip((2, 4, 8, 16, 32), waits, strict=True):
                assert plain <= wait < plain + every or plain == wait == math.inf
                assert wait == math.inf or (t + wait) % every == 0


def test_an_outage_holds_back_what_comes_in_it_and_nothing_else() -> None:
    law = Outage(Fixed(5), 20, 30)
    due = [t + law.delay(None, t, 1.0, 0.5) for t in range(1, 40)]
    assert due == [t + 5 if not 20 <= t + 5 < 30 else 30 for t in range(1, 40)]
    assert Outage(Loss(0.0), 20, 30).delay(None, 25, 1.0, 0.5) == math.inf
    assert Outage(Fixed(5), 20, 20).delay(None, 15, 1.0, 0.5) == 5.0


def test_refreshed_and_outage_stand_within_a_window() -> None:
    """A window closes by the clock: a success that is seen only after it is a failure at its end."""
    nightly = Conversions(Refreshed(Fixed(3), 10), window=8)
    assert [nightly.delay(None, t, 1.0, 0.5) for t in (2, 7, 8)] == [8.0, 3.0, 8.0]
    assert [nightly.revealed(None, t, 1.0, 0.5) for t in (1, 2, 7, 8)] == [0.0, 1.0, 1.0, 0.0]


def test_ranges_are_drawn() -> None:
    law = Mixture([0.5, 0.5], [Loss(Between(0.2, 0.4)), Geometric(0.5)])
    drawn = law.draw(np.random.default_rng(1))
    assert isinstance(drawn, Mixture)
    first = drawn.laws[0]
    assert isinstance(first, Loss)
    assert 0.2 <= first.p <= 0.4
    assert drawn.laws[1] is law.laws[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Geometric(1.5), r"delay\.p: must be above 0 and at most 1, got 1\.5"),
        (lambda: Geometric(0), r"delay\.p: .* got 0"),
        (lambda: Loss(-0.1), r"delay\.p: must be between 0 and 1, got -0\.1"),
        (lambda: Loss(Between(0.5, 2)), r"delay\.p: must be between 0 and 1, got 2"),
        (lambda: Pareto(0), r"delay\.alpha: must be above 0, got 0"),
        (lambda: Mixture([Between(0, 1)], [Fixed(1)]), r"delay\.weights: must be one number, not a range, got 0\.\.1"),
        (lambda: Fixed(-1), r"delay\.rounds: must be at least 0, got -1"),
        (lambda: Fixed(float("nan")), r"delay\.rounds: must be a number, got nan"),
        (lambda: Fixed("soon"), r"delay\.rounds: must be a number, got 'soon'"),
        (lambda: Uniform(3.5, 9), r"delay\.low: must be a whole number, got 3\.5"),
        (lambda: Uniform(9, 3), r"delay\.high: must not be below low = 9, got 3"),
        (lambda: Mixture([0.5], [Fixed(1), Fixed(2)]), r"delay\.weights: must be one for each of 2 laws, got 1"),
        (lambda: Mixture([0.5, 0.6], [Fixed(1), Fixed(2)]), r"delay\.weights: must add up to 1, got 1\.1"),
        (lambda: Mixture([1], [Queue(1)]), r"delay\.laws: must be a law of independent delays, got Queue"),
        (lambda: Observed([3, 1], [0.1, 0.2]), r"delay\.delays: delays and levels must ascend"),
        (lambda: Refreshed(Fixed(1), 0), r"delay\.every: must be at least 1, got 0"),
        (lambda: Refreshed(Conversions(Fixed(1), 9), 3), r"delay\.inner: a window closes by the clock: put it outside"),
        (lambda: Refreshed(Queue(1), 3), r"delay\.inner: must be a law without memory, got Queue"),
        (lambda: Refreshed(3, 3), r"delay\.inner: must be a delay law, got 3"),
        (lambda: Outage(Fixed(1), 9, 3), r"delay\.end: must not be before start = 9, got 3"),
        (lambda: Outage(Fixed(1), -1, 3), r"delay\.start: must be at least 0, got -1"),
        (lambda: Observed.from_waits([]), r"waits: must hold at least one wait, got none"),
        (lambda: delays.named("geometrical", p=1), r"unknown law 'geometrical'; did you mean 'geometric'\?"),
        (lambda: delays.named("geometric", q=1), r"unknown parameter of geometric 'q'; there are p"),
        (lambda: delays.named("uniform", low=1), r"delay\.high: uniform needs it: uniform\(low, high\)"),
    ],
)
def test_bad_laws_are_refused_in_one_line(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)

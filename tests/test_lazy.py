"""Lazy Thompson sampling: the law of Algorithm 1, and bounds that are bounds after whatever has been learned."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, betaincc, betaln
from scipy.stats import kstest

from argmax import p_value, p_values, settled, spoiled
from belated import Fixed, Geometric, Scenario, Thompson, kernels, simulate
from belated.live.posterior import chances
from belated.policies.lazy import Scratch, beyond, fill_hazards, hazard_below, level_at, level_below, log_normaliser
from belated.policies.thompson import LazyState
from belated.result import paired
from belated.simulation import Batch

POSTERIORS, DRAWS = 30, 20_000
LEVEL = 0.001 / POSTERIORS  # Bonferroni: one run in a thousand would fail by chance


def test_the_arm_has_the_law_of_the_largest_draw() -> None:
    assert p_values(lambda state: state, POSTERIORS, DRAWS, seed=11).min() > LEVEL


def test_bounds_that_are_none_are_found_out() -> None:
    assert (p_values(spoiled, POSTERIORS, DRAWS, seed=11) < LEVEL).sum() >= 10


def test_what_is_learned_while_a_bound_is_without_end_is_drawn_all_the_same() -> None:
    """Successes of two arms that nobody feared: the first leaves no bound, the second is learned after that."""
    total, seen = np.array([299.0, *[0.0] * 11]), np.array([498.0, *[8.0] * 11])
    state = settled((1.0, 1.0), total, seen)
    for arm, successes in ((1, 8), (2, 10)):
        for _ in range(successes):
            state.learn(arm, 1.0, np.random.default_rng(0))
    exact, rng = chances(state.successes, state.failures), np.random.default_rng(1)
    assert 0.2 < exact[2] < 0.4
    assert p_value(state, exact, DRAWS, rng) > 0.001
    state.lead.level[0] = 0.58  # as if what is known of the first two still held
    state.lead.above.number[:] = 0.0015
    assert p_value(state, exact, DRAWS, rng) < 1e-9


def scratch(count: int) -> Scratch:
    number = np.zeros(count)
    return Scratch(number, number.view(np.int64))


@given(st.floats(1.0, 1e5), st.floats(1.0, 1e5), st.floats(-4.0, 8.0))
def test_a_hazard_is_an_upper_bound(a: float, b: float, deviations: float) -> None:
    mean = a / (a + b)
    x = min(max(mean + deviations * math.sqrt(mean * (1.0 - mean) / (a + b)), 1e-3), 1.0 - 1e-3)
    level, found = level_at(x), scratch(1)
    fill_hazards(np.array([a]), np.array([b]), np.array([log_normaliser(a, b)]), found, level)
    true = -math.log1p(-betaincc(a, b, x)) if betaincc(a, b, x) < 1.0 else math.inf
    assert found.number[0] >= true * (1.0 - 1e-9)
    if deviations > 3.0 and 1e-250 < true < 0.005:  # and in the tail not a loose one
        assert found.number[0] < 2.5 * true
    below = hazard_below(a, b, log_normaliser(a, b), level)
    assert below >= -math.log1p(-betainc(a, b, x)) * (1.0 - 1e-9) if betainc(a, b, x) < 1.0 else below == math.inf


def test_where_the_density_is_not_log_concave_nothing_is_claimed() -> None:
    a, b = np.array([0.5, 3.0]), np.array([3.0, 0.9])
    found = scratch(2)
    fill_hazards(a, b, np.array([log_normaliser(*pair) for pair in zip(a, b, strict=True)]), found, level_at(0.99))
    assert found.number.tolist() == [math.inf, math.inf]


@pytest.mark.parametrize(("a", "b", "x"), [(3.0, 5.0, 0.6), (40.0, 60.0, 0.45), (1.0, 1.0, 0.9), (6.0, 1.0, 0.97)])
def test_what_exceeds_the_level_has_the_law_of_the_tail(a: float, b: float, x: float) -> None:
    """Chosen with probability 1 - exp(-hazard) and then not refused: P(theta > level); and theta's own law beyond."""
    found, rng, draws = scratch(1), np.random.default_rng(4), 20_000
    fill_hazards(np.array([a]), np.array([b]), np.array([betaln(a, b)]), found, level_at(x))
    hazard = float(found.number[0])
    assert hazard < math.inf
    chosen = rng.random(draws) < -math.expm1(-hazard)
    values = np.array([beyond(rng, a, b, float(betaln(a, b)), x, hazard, x) if each else 0.0 for each in chosen])
    tail = float(betaincc(a, b, x))
    assert abs((values > x).sum() - draws * tail) < 4.0 * math.sqrt(draws * tail * (1.0 - tail))
    beyond_it = values[values > x]
    assert kstest(1.0 - betaincc(a, b, beyond_it) / tail, "uniform").pvalue > 0.001
    assert kstest(1.0 - betaincc(a, b * 1.2, beyond_it) / betaincc(a, b * 1.2, x), "uniform").pvalue < 0.001


def bounds_hold(state: LazyState) -> bool:
    """Whether the hazards of the state are upper bounds, by another library's incomplete beta function."""
    a, b, lead = state.successes, state.failures, state.lead
    low, high, level, leader = lead.hazards[0], lead.hazards[1], lead.level[0], lead.drawn[0]
    with np.errstate(divide="ignore"):
        above, below = -np.log1p(-betaincc(a, b, level)), -np.log1p(-betainc(a, b, level))
    others = np.isfinite(lead.others)
    # At a level below 1 they are used, whatever their sum.
    fine = level == 1.0 or bool((lead.above.number[others] >= above[others] * (1 - 1e-9)).all())
    return fine and high >= above[others].sum() * (1 - 1e-9) and low >= below[leader] * (1 - 1e-9)


@pytest.mark.parametrize("arms", [2, 5, 30])
@pytest.mark.parametrize("fractional", [False, True])
def test_bounds_stay_bounds_whatever_is_learned(arms: int, fractional: bool) -> None:
    rng = np.random.default_rng(arms)
    means = rng.random(arms) * 0.5
    means[arms // 2] = 0.9
    state, finite = Thompson().start(arms, 1000), 0
    for t in range(1500):
        if t == 1000:
            means = means[::-1]  # the world turns, and the leader falls
        arm = state.choose(t, rng) if t % 8 else t // 8 % arms
        reward = float(rng.random() < means[arm]) if not fractional or t % 3 else float(rng.random() * means[arm])
        state.learn(arm, reward, rng)
        assert bounds_hold(state)
        finite += state.lead.hazards[0] < math.inf
    assert np.allclose(state.log_beta, betaln(state.successes, state.failures), rtol=1e-12, atol=1e-9)
    assert finite > 200  # there was something to hold


def test_a_bound_that_is_none_is_seen() -> None:
    state = settled((1.0, 1.0), np.array([90.0, 20.0]), np.array([100.0, 100.0]))
    assert state.lead.hazards[0] < math.inf
    assert bounds_hold(state)
    state.successes[1] += 60.0  # not through `learn`
    assert not bounds_hold(state)


def test_levels_of_the_grid_are_not_above() -> None:
    grid = Thompson().start(2, 10).lead.grid
    for x in (0.0, 1e-9, 0.25, 0.3, 0.99999, 1.0):
        assert level_below(grid, x).x <= max(x, 1e-30)
        assert level_below(grid, x).x >= x - 2.0 / len(grid)


def test_regrets_are_those_of_the_plain_algorithm() -> None:
    """On the same visitors, twenty arms; and the comparison sees a prior that is slightly wrong."""
    world = Scenario(means=np.linspace(0.25, 0.75, 20).tolist(), delay=Geometric(0.02), rounds=3000)
    result = simulate(world, [Thompson(), Thompson(lazy=False), Thompson(prior=(3.0, 1.0))], replications=100, seed=3)
    curves = [result.curves(name)[:, -1] for name in result.policies]
    same, other = (paired(curves[place] - curves[1]) for place in (0, 2))
    assert abs(same.difference) < 3.5 * same.se
    assert abs(other.difference) > 5.0 * other.se


def test_twenty_arms_act_the_same_compiled_and_interpreted() -> None:
    world = Scenario(means=np.linspace(0.05, 0.95, 20).tolist(), delay=Fixed(5), rounds=400)
    one, other = (Batch(world, Thompson(), 2, range(1), tuple(range(1, 401)), each).run() for each in (True, False))
    assert one.regret.tobytes() == other.regret.tobytes()
    assert one.pulls.tobytes() == other.pulls.tobytes()


def test_the_loop_is_compiled_without_reference_counts() -> None:
    """With them it would take ten times as long, and nothing else would tell."""
    simulate(Scenario(means=[0.5, 0.4], delay=Fixed(1), rounds=10), [Thompson()], replications=1)
    assert any("LazyState" in str(signature) for signature in kernels._lean.overloads)
    assert not any("LazyState" in str(signature) for signature in kernels._roomy.overloads)

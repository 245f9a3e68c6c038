"""The minimisation over quantiles is exact: it agrees with trying every delay."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated import Fixed, Geometric, Law, Loss, Mixture, Observed, Pareto, Uniform
from belated.theory import quantiles
from belated.theory.quantiles import TOLERANCE, cheapest, together
from support import IID_LAWS


def tried(law: Law, observations: float, waiting: float, horizon: int) -> float:
    return min(
        observations / law.cdf(d) + waiting * d if law.cdf(d) > 0 else math.inf for d in map(float, range(horizon + 1))
    )


@pytest.mark.parametrize("name", IID_LAWS)
@given(st.floats(0.01, 1e6), st.floats(0.001, 100.0), st.integers(1, 500))
def test_the_best_quantile_is_that_of_trying_all(name: str, observations: float, waiting: float, horizon: int) -> None:
    found = cheapest(IID_LAWS[name], observations, waiting, horizon)
    assert found.cost == pytest.approx(tried(IID_LAWS[name], observations, waiting, horizon), rel=1e-12)
    if found.cost < math.inf:
        assert found.cost == pytest.approx(observations / found.q + waiting * found.delay, rel=1e-12)
        assert IID_LAWS[name].quantile(found.q) <= found.delay <= horizon


def test_a_coarse_grid_would_not_do() -> None:
    """The negative control: on quantiles in steps of 0.05 the minimum is missed."""
    law = Mixture([0.63, 0.37], [Uniform(3, 9), Pareto(0.5)])
    coarse = min(100.0 / q + law.quantile(q) for q in (0.05 * step for step in range(1, 20)))
    assert cheapest(law, 100.0, 1.0, 1000).cost < coarse - 0.1


def test_rewards_that_never_arrive_restrict_the_quantile() -> None:
    assert cheapest(Loss(0.3), 6.0, 1.0, 100) == (6.0 / 0.3, 0.3, 0.0)
    assert math.isinf(cheapest(Loss(0.0), 6.0, 1.0, 100).cost)
    assert math.isinf(cheapest(Fixed(101), 6.0, 1.0, 100).cost)
    assert cheapest(Observed([2, 7], [0.4, 0.5]), 20.0, 1.0, 100) == (20 / 0.5 + 7, 0.5, 7.0)


LAWS = (Geometric(0.3), Uniform(1, 6), Loss(0.7), Observed([0, 4, 9], [0.2, 0.7, 0.9]), Pareto(0.7))


@given(
    st.lists(st.sampled_from(LAWS), min_size=3, max_size=3),
    st.lists(st.floats(0.1, 300.0), min_size=3, max_size=3),
    st.lists(st.floats(0.05, 1.0), min_size=2, max_size=2),
    st.floats(0.1, 10.0),
    st.booleans(),
)
def test_the_best_quantiles_of_tied_arms_are_those_of_trying_all(
    laws: list[Law], observations: list[float], gaps: list[float], waiting: float, alone: bool
) -> None:
    horizon = 12
    if alone:
        observations = [0.0, *observations[1:]]

    def total(ds: tuple[int, ...]) -> float:
        levels = [law.cdf(float(d)) for law, d in zip(laws, ds, strict=True)]
        if any(level <= 0.0 for level, needed in zip(levels, observations, strict=True) if needed):
            return math.inf
        shown = sum(needed / level for needed, level in zip(observations, levels, strict=True) if needed)
        return shown + waiting * max((ds[0] + d) * gap for d, gap in zip(ds[1:], gaps, strict=True))

    best = min(map(total, itertools.product([0] if alone else range(horizon + 1), *[range(horizon + 1)] * 2)))
    cost, chosen = together(laws, observations, [0.0, *gaps], waiting, horizon)
    assert best * (1 - 1e-12) <= cost <= best * (1 + 2 * TOLERANCE)
    assert total(tuple(int(choice.delay) for choice in chosen)) <= best * (1 + 3 * TOLERANCE)


def test_levels_that_fall_into_the_same_slot_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (LAWS, [9.0, 30.0, 5.0, 200.0, 80.0], [0.0, 0.1, 0.2, 0.4, 0.3], 2.0, 50)
    cost, chosen = together(*arguments)
    monkeypatch.setattr(quantiles, "SLOTS", 3)
    assert together(*arguments) == (cost, chosen)

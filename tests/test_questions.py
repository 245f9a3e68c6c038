"""The fits behind the open questions: right on costs whose law is known, and wrong models found out."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from belated import Between, Fixed, Result, Scenario, Thompson, paper, simulate
from belated.questions import MEASURES, fitted, growth, lack_of_fit, questions

X = np.array([2.0, 5.0, 10.0, 20.0, 50.0, 100.0])
TRIALS = 400


def costs(rng: np.random.Generator, truth: np.ndarray, replications: int = 30) -> np.ndarray:
    """Costs of that mean whose points share a noise, as they share their worlds, and differ in their own."""
    shared = rng.normal(0.0, 5.0, (replications, 1))
    return truth + shared + rng.normal(0.0, 1.0 + 0.1 * X, (replications, len(X)))


@pytest.mark.parametrize("model", MEASURES)
def test_the_right_model_is_rejected_as_often_as_promised_and_its_interval_covers(model: str) -> None:
    rng = np.random.default_rng(5)
    truth = 7.0 + 3.0 * np.array([MEASURES[model](x) for x in X])
    made = [fitted(model, X.tolist(), costs(rng, truth)) for _ in range(TRIALS)]
    error = math.sqrt(0.05 * 0.95 / TRIALS)
    rejected = np.mean([fit.chance < 0.05 for fit in made])
    covered = np.mean([fit.slope.low <= 3.0 <= fit.slope.high for fit in made])
    assert rejected == pytest.approx(0.05, abs=3.0 * error)
    assert covered == pytest.approx(0.95, abs=3.5 * error)  # the weights are estimated too


@pytest.mark.parametrize(("true", "false"), [("linear", "logarithmic"), ("logarithmic", "linear")])
def test_the_wrong_model_is_found_out(true: str, false: str) -> None:
    """The negative control of the test before."""
    rng = np.random.default_rng(6)
    steepness = 60.0 / (MEASURES[true](100.0) - MEASURES[true](2.0))
    truth = steepness * np.array([MEASURES[true](x) for x in X])
    for _ in range(20):
        drawn = costs(rng, truth)
        right, wrong = (fitted(model, X.tolist(), drawn) for model in (true, false))
        assert wrong.chance < 0.001
        assert wrong.misfit > right.misfit


def test_a_fit_goes_through_points_that_lie_on_it() -> None:
    exact = np.array([[10.0 + 2.0 * math.log(x) for x in X]] * 3) + np.array([[-1.0], [0.0], [1.0]])
    fit = fitted("logarithmic", X.tolist(), exact)
    assert fit.slope.difference == pytest.approx(2.0)
    assert [fit.at(x) for x in X] == pytest.approx(exact.mean(axis=0))


def test_too_few_replications_or_points_leave_the_misfit_open() -> None:
    rng = np.random.default_rng(7)
    for replications, points in ((4, 6), (30, 2)):
        drawn = rng.normal(size=(replications, points))
        assert all(math.isnan(value) for value in lack_of_fit(np.arange(points, dtype=float), drawn))


def test_the_growth_and_its_interval() -> None:
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(TRIALS):
        first = rng.normal(10.0, 2.0, 50)
        found = growth(first, 3.0 * first + rng.normal(0.0, 4.0, 50))
        covered += found.low <= 3.0 <= found.high
    assert covered / TRIALS == pytest.approx(0.95, abs=3.0 * math.sqrt(0.05 * 0.95 / TRIALS))


def _result(finals: np.ndarray) -> Result:
    regret = np.stack([np.zeros_like(finals), finals], axis=1)[None]
    empty = np.zeros((1, len(finals), 3), int)
    return Result(("thompson",), np.array([1, 100]), regret, empty, empty, np.zeros(1), {})


def _results(cost: dict[str, float], replications: int) -> dict[str, Result]:
    """Every experiment that the questions need, with these mean costs by name and 50 without delay."""
    rng = np.random.default_rng(9)
    names = [each.name for each in paper.EXPERIMENTS if each.sweep and "loss" not in each.sweep]
    return {name: _result(50.0 + cost.get(name, 0.0) + rng.normal(0.0, 1.0, replications)) for name in names}


COSTS = {f"arms-sweep-250/{arms}": 40.0 * math.log(arms) for arms in paper.ARMS}
COSTS |= {f"{sweep}/{d}": 0.1 * d for sweep in ("two-arm-sweep", "delay-sweep") for d in (50, 100, 250, 500, 1000)}


def test_each_question_is_answered_by_what_was_put_in() -> None:
    asked = {question.id: question for question in questions(_results(COSTS, 40))}
    assert list(asked) == ["R1", "R2", "R2b"]
    assert [question.fits[0].model for question in asked.values()] == ["logarithmic", "linear", "linear"]
    for question, slope in zip(asked.values(), (40.0, 0.1, 0.1), strict=True):
        found = question.fits[0].slope
        assert found.difference == pytest.approx(slope, abs=4.0 * found.se)
        assert json.loads(json.dumps(question.to_dict(), allow_nan=False))["id"] == question.id
    assert asked["R1"].growth is not None
    assert asked["R1"].growth.difference == pytest.approx(math.log(200) / math.log(2), rel=0.05)
    assert "100 times the arms" in asked["R1"].verdict


def test_few_replications_say_that_they_cannot_tell_and_one_says_nothing() -> None:
    asked = questions(_results(COSTS, 2))
    assert all(question.verdict.startswith("too few replications") for question in asked)
    assert all(fit["misfit"] is None for question in asked for fit in question.to_dict()["fits"])
    json.dumps([question.to_dict() for question in asked], allow_nan=False)
    assert questions(_results(COSTS, 1)) == []


def test_a_question_is_not_asked_without_all_of_its_experiments() -> None:
    whole = _results(COSTS, 5)
    for gone, left in (("arms-sweep-0/20", ["R2", "R2b"]), ("two-arm-sweep/0", ["R1", "R2b"])):
        part = {name: result for name, result in whole.items() if name != gone}
        assert [question.id for question in questions(part)] == left


@pytest.mark.parametrize(("id", "means", "arms"), [("R1", None, 5), ("R2", None, 2), ("R2b", Between(0.25, 0.75), 20)])
def test_the_blind_rounds_cost_what_is_said(id: str, means: Between | None, arms: int) -> None:
    """Thompson sampling in d rounds without a reward, measured."""
    question = next(each for each in questions(_results(COSTS, 5)) if each.id == id)
    at, delay = (arms, paper.ARMS_DELAY) if id == "R1" else (250, 250)
    best, other = paper.ARMS_MEANS if id == "R1" else paper.TWO_ARM_MEANS
    world = Scenario(means=means or [best] + [other] * (arms - 1), arms=arms, delay=Fixed(delay), rounds=delay)
    result = simulate(world, [Thompson()], replications=300, seed=4)
    expected = question.blind[question.x.index(at)]
    assert result.mean("thompson")[-1] == pytest.approx(expected, abs=4.0 * float(result.se("thompson")[-1]))

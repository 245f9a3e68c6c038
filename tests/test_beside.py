"""Bounds beside what is measured."""

from __future__ import annotations

import json
import math

import pytest

from belated import Fixed, Loss, Pareto, Scenario, beside, paper, theory
from belated.beside import lines, short, simulated, span


def rows(law: object, rounds: int = 300) -> list[theory.Row]:
    return theory.every([0.6, 0.4], law, rounds, without=["thompson-certified"])  # type: ignore[arg-type]


def test_every_bound_stands_beside_its_own_policy() -> None:
    world = Scenario(means=[0.6, 0.4], delay=Pareto(0.8), rounds=300)
    found = {line.row.name: line for line in simulated(rows(Pareto(0.8)), world, replications=20, seed=1)}
    assert {name for name, line in found.items() if line.regret == line.regret} == {
        "thompson", "elimination", "phased", "ucb1", "patient",
    }  # fmt: skip
    for name, policy in {"thompson": "thompson", "elimination": "elimination-log", "patient": "patient"}.items():
        line = found[name]
        expected = beside.simulate(world, [beside.named(policy)], replications=20, seed=1).summary()[0]
        assert (line.regret, line.se) == (expected["regret"], expected["se"])
        assert line.row.bound is not None
        assert line.times_measured == line.row.bound.value / line.regret
        assert line.times_trivial == pytest.approx(line.row.bound.value / (0.2 * 300))


def test_patient_is_told_the_alpha_of_its_bound() -> None:
    """A loss with p = .6 has an alpha up to the horizon, but no Pareto law that the policy could read it from."""
    world = Scenario(means=[0.6, 0.4], delay=Loss(0.6), rounds=300)
    line = next(
        each for each in simulated(rows(Loss(0.6)), world, replications=2, seed=1) if each.row.name == "patient"
    )
    assert line.row.bound is not None
    assert 0.0 < line.row.bound.choices["alpha"] < 1.0
    assert line.regret > 0.0


def test_a_bound_that_is_refused_says_why() -> None:
    line = next(each for each in lines(rows(Fixed(9))) if each.row.name == "patient")
    assert line.row.bound is None
    assert "holds for no alpha" in line.to_dict()["refused"]
    assert math.isnan(line.times_measured)
    assert math.isnan(line.times_trivial)


def test_infinite_bounds_are_written_as_null() -> None:
    written = [line.to_dict() for line in lines(rows(Loss(0.0)))]
    assert next(each for each in written if each["bound"] == "thompson")["value"] is None
    json.dumps(written, allow_nan=False)


def test_of_the_paper_only_where_arms_are_given() -> None:
    chosen = [each for each in paper.experiments(replications=3) if each.name in ("pareto-0.5", "queue", "fixed")]
    chosen = [beside_short(each) for each in chosen]
    results, _ = paper.run(chosen)
    found = beside.of_paper(results)
    assert list(found) == ["pareto-0.5"]
    by_name = {line.row.name: line for line in found["pareto-0.5"]}
    assert by_name["thompson"].times_measured > 1000
    assert "times what is measured, the certified bound" in span(found)
    assert span({}) == ""


def beside_short(each: paper.Experiment) -> paper.Experiment:
    """Two policies are enough, and fewer rounds where there is no bound."""
    from dataclasses import replace

    scenario = each.scenario if each.name == "pareto-0.5" else replace(each.scenario, rounds=50)
    return replace(
        each, scenario=scenario, policies=("thompson", "patient") if "pareto" in each.name else ("thompson",)
    )


@pytest.mark.parametrize(
    ("value", "text"), [(0.0412, "0.0412"), (999.4, "999"), (1234.5, "1,234"), (math.inf, "inf"), (2.2e129, "2.2e+129")]
)
def test_numbers_in_few_digits(value: float, text: str) -> None:
    assert short(value) == text

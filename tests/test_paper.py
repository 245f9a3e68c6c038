"""The paper's experiments and claims, as data and as judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from belated import Between, Fixed, Geometric, Loss, Pareto, Queue, Result, Uniform, claims, paper
from belated.claims import CLAIMS, READINGS, Claim, Part, judge, lower, readings_with
from belated.paper import EXPERIMENTS, OPEN

BY_NAME = {each.name: each for each in EXPERIMENTS}


def test_the_six_experiments_are_the_papers() -> None:
    """Section 4's numbers: arms, means, delays, horizons and replications."""
    twenty = Between(0.25, 0.75)
    expected = {
        "fixed": (20, twenty, Fixed(250), 20_000, 100),
        "pareto-0.2": (2, (0.40, 0.45), (Pareto(1.0), Pareto(0.2)), 3_000, 300),
        "pareto-0.5": (2, (0.40, 0.45), (Pareto(1.0), Pareto(0.5)), 3_000, 300),
        "pareto-0.8": (2, (0.40, 0.45), (Pareto(1.0), Pareto(0.8)), 3_000, 300),
        "packet-loss": (20, twenty, Loss(Between(0, 1)), 10_000, 200),
        "geometric": (3, (0.5, 0.4, 0.3), Geometric(0.01), 10_000, 200),
        "uniform": (20, twenty, Uniform(150, 300), 20_000, 100),
        "uniform-0-300": (20, twenty, Uniform(0, 300), 20_000, 100),
        "queue": (5, twenty, Queue(0.1), 20_000, 200),
    }
    for name, (arms, means, delay, rounds, replications) in expected.items():
        found = BY_NAME[name]
        scenario = found.scenario
        assert (scenario.arms, scenario.means, scenario.delay, scenario.rounds) == (arms, means, delay, rounds), name
        assert found.replications == replications
    assert BY_NAME["packet-loss-0.108"].scenario.best_delay == Loss(0.108)
    assert [BY_NAME[f"delay-sweep/{d}"].scenario.delay for d in (0, 50, 250, 500, 1000)] == [
        Fixed(d) for d in (0, 50, 250, 500, 1000)
    ]


def test_every_experiment_runs_both_versions_of_ucb_and_of_elimination() -> None:
    for each in EXPERIMENTS:
        if each in OPEN:  # what the paper leaves open is asked of Thompson sampling alone
            continue
        assert {"thompson", "ucb1", "ucb1-nolog", "elimination", "elimination-log"} <= set(each.policies)
    assert "patient" in BY_NAME["pareto-0.2"].policies
    assert "ud-ucb" in BY_NAME["geometric"].policies
    assert {"phased", "phased-theory"} <= set(BY_NAME["packet-loss"].policies)


def test_the_sweeps_of_the_open_questions_change_one_thing_only() -> None:
    arms = {arms: BY_NAME[f"arms-sweep-{delay}/{arms}"] for delay in (0, 250) for arms in (2, 5, 10, 20, 50, 100, 200)}
    for count, each in arms.items():
        assert each.scenario.means == (0.9, *[0.1] * (count - 1))
        assert BY_NAME[f"arms-sweep-0/{count}"].scenario == replace(each.scenario, delay=Fixed(0))
    two = [BY_NAME[f"two-arm-sweep/{delay}"].scenario for delay in (0, 50, 100, 250, 500, 1000)]
    assert [world.delay for world in two] == [Fixed(delay) for delay in (0, 50, 100, 250, 500, 1000)]
    assert len({(world.means, world.rounds) for world in two}) == 1


def test_every_claim_speaks_of_what_is_run() -> None:
    for claim in CLAIMS:
        for reading in claim.readings():
            for part in claim.parts:
                for where in part.where:
                    ran = BY_NAME[reading.get(where, where)].policies
                    assert {reading.get(policy, policy) for policy in part.policies} <= set(ran)
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)


def _result(**finals: list[float]) -> Result:
    regret = np.array([[[0.0, value] for value in values] for values in finals.values()])
    count = regret.shape[1]
    empty = np.zeros((len(finals), count, 3), int)
    names = tuple(name.replace("_", "-") for name in finals)
    return Result(names, np.array([1, 100]), regret, empty, empty, np.zeros(len(finals)), {})


NOISE = [0.0, 1.0, -1.0, 0.5, -0.5]


@pytest.mark.parametrize(
    ("shift", "expects", "verdict"),
    [
        (9.0, 1, "holds"),
        (-9.0, 1, "fails"),
        (0.1, 1, "cannot tell"),
        (9.0, 0, "fails"),
        (-9.0, 0, "fails"),
        (0.1, 0, "holds"),
    ],
)
def test_verdicts_follow_the_paired_interval(shift: float, expects: int, verdict: str) -> None:
    results = {"here": _result(thompson=[50.0] * 5, split=[50.0 + shift + each for each in NOISE])}
    claim = Claim("X", "", (Part("lower", ("here",), ("thompson", "split"), expects),))
    finding = judge(claim, {}, results)
    assert finding is not None
    assert finding.verdict == verdict
    assert finding.evidence[0].comparison.difference == pytest.approx(shift)


def test_one_part_that_fails_fails_the_claim_and_one_that_is_open_leaves_it_open() -> None:
    here = _result(
        thompson=[50.0] * 5,
        split=[59.0 + each for each in NOISE],
        ucb1=[41.0 + each for each in NOISE],
        phased=[50.0 + each for each in NOISE],
    )
    for others, verdict in (
        (("split",), "holds"),
        (("split", "phased"), "cannot tell"),
        (("split", "phased", "ucb1"), "fails"),
    ):
        claim = Claim("X", "", tuple(lower("here", "thompson", other) for other in others))
        finding = judge(claim, {}, {"here": here})
        assert finding is not None
        assert finding.verdict == verdict


def test_a_gap_that_widens_has_a_positive_slope() -> None:
    results = {
        f"sweep/{x}": _result(thompson=[10.0 + each for each in NOISE], split=[10.0 + 2 * x + each for each in NOISE])
        for x in (0, 1, 4)
    }
    claim = Claim("X", "", (Part("widens", tuple(results), ("thompson", "split")),))
    finding = judge(claim, {}, results)
    assert finding is not None
    assert finding.evidence[0].comparison.difference == pytest.approx(8.0)
    assert finding.verdict == "holds"


def test_a_curve_that_grows_less_late_is_the_flatter_one() -> None:
    """After round 50 one grows by 10 and the other by 30, to the same end."""
    rounds, empty = np.array([1, 50, 100]), np.zeros((2, 5, 3), int)
    curves = np.array([[[0.0, before + each, 40.0] for each in NOISE] for before in (30.0, 10.0)])
    results = {"here": Result(("thompson", "split"), rounds, curves, empty, empty, np.zeros(2), {})}
    for policies, verdict in ((("thompson", "split"), "holds"), (("split", "thompson"), "fails")):
        finding = judge(Claim("X", "", (Part("flatter", ("here",), policies),)), {}, results)
        assert finding is not None
        assert finding.verdict == verdict


def test_a_policy_is_costlier_where_its_regret_is_larger() -> None:
    results = {"here": _result(thompson=[90.0 + each for each in NOISE]), "there": _result(thompson=[50.0] * 5)}
    for where, verdict in ((("here", "there"), "holds"), (("there", "here"), "fails")):
        finding = judge(Claim("X", "", (Part("costlier", where, ("thompson",)),)), {}, results)
        assert finding is not None
        assert finding.verdict == verdict


def test_a_claim_about_what_was_not_run_is_not_judged() -> None:
    assert judge(CLAIMS[0], {"UCB": "ucb1", "SE": "elimination"}, {}) is None


def test_readings_are_said_in_few_words() -> None:
    claim = next(claim for claim in CLAIMS if claim.id == "E1.1")
    levels = {"ucb1": 60.0, "ucb1_nolog": 40.0, "elimination": 70.0, "elimination_log": 80.0}
    noisy = {name: [level + each for each in NOISE] for name, level in levels.items()}
    results = {"fixed": _result(thompson=[50.0] * 5, **noisy)}
    found = [finding for reading in claim.readings() if (finding := judge(claim, reading, results))]
    assert readings_with(found, "holds") == ["UCB1 with log"]
    assert readings_with(found, "fails") == ["UCB1 without log"]
    assert readings_with(found, "cannot tell") == []


@pytest.fixture(scope="module")
def small() -> tuple[list[paper.Experiment], dict[str, Result]]:
    chosen = [
        replace(each, scenario=replace(each.scenario, rounds=200), replications=4)
        for each in EXPERIMENTS
        if each.name in ("fixed", "delay-sweep/250", "delay-sweep/0", "packet-loss", "geometric", "pareto-0.5")
    ]
    results, _ = paper.run(chosen)
    return chosen, results


def test_what_is_the_same_is_run_once(small: tuple[list[paper.Experiment], dict[str, Result]]) -> None:
    _, results = small
    assert results["fixed"] is results["delay-sweep/250"]
    assert results["fixed"] is not results["delay-sweep/0"]


def test_whole_readings_count_every_claim_once(small: tuple[list[paper.Experiment], dict[str, Result]]) -> None:
    _, results = small
    found = claims.findings(results)
    wholes = claims.whole_readings(found)
    assert len(wholes) == 2 ** len(READINGS)
    judged = {finding.claim.id for finding in found if "UNIFORM" not in finding.reading}
    for whole in wholes:
        packet = {f.claim.id for f in found if f.reading.items() <= whole.reading.items()}
        assert whole.holds + whole.fails + whole.cannot_tell == len(packet)
    assert judged


def test_a_fixed_instance_is_kept_over_replications() -> None:
    chosen = [each for each in paper.experiments(instance=7, replications=3) if each.name == "fixed"]
    assert chosen[0].scenario.instance == 7
    results, _ = paper.run([replace(chosen[0], scenario=replace(chosen[0].scenario, rounds=20))])
    # With one instance, regret in the first round takes at most as many values as there are arms.
    first = results["fixed"].regret[:, :, 0]
    assert len(np.unique(first.round(12))) <= 20

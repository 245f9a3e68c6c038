"""Studies from TOML and from the command line, in one grammar."""

from __future__ import annotations

from pathlib import Path

import pytest

from belated import (
    QPMD,
    UCB1,
    UDUCB,
    Between,
    Conversions,
    Drifting,
    Fixed,
    Geometric,
    InvalidInput,
    Loss,
    Mixture,
    Observed,
    Pareto,
    PhasedElimination,
    RewardDependent,
    Thompson,
    Uniform,
    simulate,
)
from belated.study import arms, law, laws, policy, read_toml, study

GIVEN = {"means": [0.5, 0.4], "delay": "fixed:3", "rounds": 10}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("geometric:0.01", Geometric(0.01)),
        ("geometric:p=0.01", Geometric(0.01)),
        ("uniform:150,300", Uniform(150, 300)),
        ("uniform:high=300,low=150", Uniform(150, 300)),
        ("loss:0..1", Loss(Between(0, 1))),
        ({"law": "loss", "p": "0.1..0.2"}, Loss(Between(0.1, 0.2))),
        ({"law": "mixture", "weights": [0.5, 0.5], "laws": ["fixed:1", {"law": "fixed", "rounds": 2}]},
         Mixture([0.5, 0.5], [Fixed(1), Fixed(2)])),
        ({"law": "observed", "delays": [1, 2], "levels": [0.5, 0.9]}, Observed([1, 2], [0.5, 0.9])),
        ({"law": "reward-dependent", "success": "fixed:9", "failure": "fixed:0"}, RewardDependent(Fixed(9), Fixed(0))),
        ("reward-dependent:success=fixed:9,failure=fixed:0", RewardDependent(Fixed(9), Fixed(0))),
        ("reward-dependent:success=uniform:1,5,failure=fixed:0", RewardDependent(Uniform(1, 5), Fixed(0))),
        ("conversions:geometric:0.01,500", Conversions(Geometric(0.01), 500)),
        ("drifting:before=fixed:2,after=uniform:3,9,rounds=50", Drifting(Fixed(2), Uniform(3, 9), 50)),
        ({"law": "conversions", "window": 7,
          "success": {"law": "drifting", "before": "fixed:2", "after": "fixed:3", "rounds": 5}},
         Conversions(Drifting(Fixed(2), Fixed(3), 5), 7)),
    ],
)  # fmt: skip
def test_laws(written: object, expected: object) -> None:
    assert law(written) == expected


def test_a_law_of_one_parameter_may_list_its_values() -> None:
    assert laws("pareto:1,0.5") == [Pareto(1), Pareto(0.5)]
    assert laws(["fixed:1", "pareto:2"]) == [Fixed(1), Pareto(2)]
    assert laws("uniform:1,5") == Uniform(1, 5)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("thompson", Thompson()),
        ("thompson:prior=2,3", Thompson(prior=(2, 3))),
        ("thompson:coin=true", Thompson(coin=True)),
        ({"name": "thompson", "prior": [2, 3]}, Thompson(prior=(2, 3))),
        ("ucb1-nolog", UCB1(log=False)),
        ("phased:c=2,growth=3", PhasedElimination(c=2, growth=3)),
        ("qpm-d:base=thompson", QPMD(base=Thompson())),
        ({"name": "qpm-d", "base": {"name": "ucb1", "log": False}}, QPMD(base=UCB1(log=False))),
        ("ud-ucb:delay=geometric:0.1", UDUCB(delay=Geometric(0.1))),
        ({"name": "ud-ucb", "delay": ["fixed:1", "fixed:2"]}, UDUCB(delay=(Fixed(1), Fixed(2)))),
    ],
)
def test_policies(written: object, expected: object) -> None:
    assert policy(written) == expected


def test_arms() -> None:
    assert arms(".5,.4,.3") == {"means": [0.5, 0.4, 0.3]}
    assert arms("20x0.25..0.75") == {"arms": 20, "means": Between(0.25, 0.75)}


def test_the_example_study_is_read() -> None:
    given = read_toml(Path(__file__).parent.parent / "examples" / "study.toml")
    asked = study(given)
    assert asked.scenario.arms == 10
    assert asked.policies[1] == Thompson(prior=(1, 10))
    assert isinstance(asked.scenario.delay, Mixture)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round": 5}, "study: unknown key 'round'; did you mean 'rounds'"),
        ({"means": [0.5, 2]}, r"means\[1\]: must be between 0 and 1, got 2"),
        ({"means": "often"}, "means: must be a number or a range such as 0.25..0.75, got 'often'"),
        ({"delay": "geometrc:0.1"}, "delay: unknown law 'geometrc'; did you mean 'geometric'"),
        ({"delay": "geometric"}, r"delay\.p: geometric needs it: geometric\(p\)"),
        ({"delay": "geometric:2"}, r"delay\.p: must be above 0 and at most 1, got 2"),
        ({"delay": "geometric:often"}, r"delay\.p: must be a number or a range such as 0.25..0.75, got 'often'"),
        ({"delay": "uniform:1,2,3"}, "delay: uniform takes low, high, got 'uniform:1,2,3'"),
        ({"delay": {"p": 0.1}}, r"delay\.law: is needed"),
        ({"delay": 250}, "delay: must be a law, such as"),
        ({"delay": {"law": "mixture", "weights": 1, "laws": ["fixed:1"]}}, r"delay\.weights: must be a list, got 1"),
        (
            {"delay": {"law": "mixture", "weights": [1], "laws": "fixed:1"}},
            r"delay\.laws: must be a list, got 'fixed:1'",
        ),
        ({"delay": {"law": "fixed", "rounds": [1]}}, r"delay\.rounds: must be a number, got \[1\]"),
        (
            {"delay": {"law": "observed", "delays": ["x"], "levels": [1]}},
            r"delay\.delays: must be a whole number, got 'x'",
        ),
        ({"policies": "thompson"}, "policies: must be a list, got 'thompson'"),
        ({"policies": ["thomson"]}, "policies: unknown policy 'thomson'; did you mean 'thompson'"),
        ({"policies": ["thompson:priors=1,2"]}, "unknown parameter of thompson 'priors'; did you mean 'prior'"),
        ({"policies": [{"prior": [1, 2]}]}, r"policies\.name: is needed"),
        ({"policies": [7]}, "policies: must be names"),
        ({"policies": ["thompson:prior=a,b"]}, r"^policies\.prior: must be a number or a range .* got 'a'"),
        ({"policies": ["phased:c=1..2"]}, r"^policy\.c: must be one number, not a range, got 1\.\.2"),
        ({"policies": ["patient:alpha=.1..0.5"]}, r"^policy\.alpha: must be one number, not a range, got 0\.1\.\.0\.5"),
        (
            {"policies": ["ud-ucb:delay=loss:0..1"]},
            r"^policy\.delay: must have numbers, not ranges, for parameters, got Loss",
        ),
        ({"rounds": 10**400}, "^rounds: is too large a number, got 10000"),
        ({"seed": 10**400}, "^seed: is too large a number, got 10000"),
        ({"delay": f"fixed:{10**400}"}, r"^delay\.rounds: is too large a number, got 10000"),
        ({"policies": ["split:1"]}, "policies: split takes no parameters, got 'split:1'"),
        ({"replications": "few"}, "replications: must be a whole number, got 'few'"),
        ({"rounds": 0}, "rounds: must be at least 1, got 0"),
        ({"best_delay": "loss:2"}, r"^best_delay\.p: must be between 0 and 1, got 2"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    def run() -> None:
        asked = study({**GIVEN, **changes})
        simulate(asked.scenario, asked.policies, replications=asked.replications, seed=asked.seed)

    with pytest.raises(InvalidInput, match=message) as caught:
        run()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["means", "delay", "rounds"])
def test_what_is_needed_is_named(missing: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{missing}: is needed"):
        study({key: value for key, value in GIVEN.items() if key != missing})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.toml: cannot be read: No such file or directory"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("means = [")
    with pytest.raises(InvalidInput, match=r"bad\.toml: is not TOML: Invalid value"):
        read_toml(tmp_path / "bad.toml")
    (tmp_path / "long.toml").write_text("rounds = " + 5000 * "9")
    with pytest.raises(InvalidInput, match=r"long\.toml: is not TOML: Exceeds the limit"):
        read_toml(tmp_path / "long.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match=r"binary\.toml: is not a text file"):
        read_toml(tmp_path / "binary.toml")

"""The certified bound lies above the measured regret, wherever it is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from belated import Fixed, Loss, Scenario, Thompson, simulate, theory
from belated.inputs import InvalidInput
from belated.paper import EXPERIMENTS
from support import IID_LAWS


def measured(means: list[float], law: object, rounds: int, replications: int) -> tuple[float, float]:
    """The mean regret of Thompson sampling, and three standard errors."""
    world = Scenario(means=means, delay=law, rounds=rounds)  # type: ignore[arg-type]
    result = simulate(world, [Thompson()], replications=replications, seed=3, workers=1)
    return float(result.mean("thompson")[-1]), 3.0 * float(result.se("thompson")[-1])


@pytest.mark.parametrize("name", IID_LAWS)
def test_it_lies_above_the_measured_regret_for_every_law(name: str) -> None:
    """Six random instances each; a hundredth of the bound, the negative control, would lie below."""
    rng = np.random.default_rng([7, *name.encode()])
    too_small = 0
    for _ in range(6):
        means, law, rounds = sorted(rng.random(2).tolist()), IID_LAWS[name], 1000
        mean, reach = measured(means, law, rounds, 40)
        bound = theory.thompson_certified(means, law, rounds)
        assert mean - reach <= bound.value <= bound.trivial * (1 + 1e-12)
        too_small += 0.01 * bound.value < mean - reach
    assert too_small >= 5


@pytest.mark.parametrize("each", [each for each in EXPERIMENTS if each.scenario.arms == 2], ids=lambda each: each.name)
def test_it_lies_above_the_measured_regret_in_the_papers_experiments(each) -> None:  # type: ignore[no-untyped-def]
    scenario = each.scenario
    mean, reach = measured(list(scenario.means), scenario.delay, scenario.rounds, 100)
    bound = theory.thompson_certified(scenario.means, scenario.delay, scenario.rounds).value
    assert mean - reach <= bound
    assert not mean - reach <= 0.01 * bound


@pytest.mark.parametrize("means", [[0.8, 0.5, 0.3], [0.9, 0.4, 0.4, 0.2, 0.1]])
def test_it_lies_above_the_measured_regret_with_more_arms(means: list[float]) -> None:
    mean, reach = measured(means, Fixed(30), 3000, 60)
    bound = theory.thompson_certified(means, Fixed(30), 3000)
    assert mean - reach <= bound.value < bound.trivial
    assert not mean - reach <= 0.01 * bound.value


@pytest.mark.parametrize("cut", [0.45, 0.5, 0.55])
def test_it_is_a_bound_at_each_cut_and_the_search_finds_the_best(cut: float) -> None:
    mean, reach = measured([0.6, 0.4], Fixed(40), 3000, 60)
    least = theory.thompson_certified([0.6, 0.4], Fixed(40), 3000).value
    at_cut = theory.thompson_certified([0.6, 0.4], Fixed(40), 3000, cuts=[cut]).value
    assert mean - reach <= least <= at_cut * 1.01


def test_the_target_case() -> None:
    """Below the trivial bound, and at most ten times the measured regret."""
    bound = theory.thompson_certified([0.6, 0.4], Fixed(250), 20_000)
    mean, reach = measured([0.6, 0.4], Fixed(250), 20_000, 100)
    assert bound.value < bound.trivial / 10
    assert mean - reach <= bound.value <= 10 * (mean - reach)


def test_the_papers_constants() -> None:
    """As printed 4,430 and 5,590, a ninth of Theorem 1's explicit part; mended it is more, freed far less."""

    def certified(delay: int, rounds: int, constants: str) -> float:
        return theory.thompson_certified([0.6, 0.4], Fixed(delay), rounds, constants=constants).value

    assert certified(250, 20_000, "printed") == pytest.approx(5590, rel=2e-3)
    as_printed, mended, free = (certified(40, 3000, constants) for constants in ("printed", "paper", "free"))
    assert as_printed == pytest.approx(4430, rel=2e-3)
    assert free < as_printed < mended < theory.thompson([0.6, 0.4], Fixed(40), 3000).value


def test_without_delay_it_grows_with_the_logarithm() -> None:
    """Agrawal and Goyal's setting: tenfold horizons add about as much each, and Lai and Robbins' floor lies below."""
    values = [theory.thompson_certified([0.7, 0.3], Fixed(0), rounds).value for rounds in (10**3, 10**4, 10**5)]
    assert 0 < values[1] - values[0] < values[0]
    assert values[2] - values[1] == pytest.approx(values[1] - values[0], rel=0.25)
    assert all(value > theory.lai_robbins([0.7, 0.3], 10**k).value for k, value in enumerate(values, start=3))


def test_more_delay_costs_more_and_never_more_than_everything() -> None:
    values = [theory.thompson_certified([0.7, 0.3], Fixed(d), 2000) for d in (0, 100, 400, 1999)]
    assert sorted(bound.value for bound in values) == [bound.value for bound in values]
    assert values[-1].value <= values[-1].trivial
    assert theory.thompson_certified([0.7, 0.3], Loss(0.0), 2000).value == values[0].trivial


def test_arms_of_mean_zero_and_one() -> None:
    for means in ([1.0, 0.5], [0.5, 0.0], [1.0, 0.0]):
        mean, reach = measured(means, Fixed(5), 500, 60)
        bound = theory.thompson_certified(means, Fixed(5), 500)
        assert mean - reach <= bound.value < bound.trivial


@pytest.mark.parametrize(
    ("means", "rounds"),
    [([0.02, 0.005], 5000), ([0.02, 0.0], 1000), ([0.004, 0.0005], 5000), ([0.99, 0.9], 3000), ([0.995, 0.96], 3000)],
)
def test_rare_rewards_and_rare_failures(means: list[float], rounds: int) -> None:
    mean, reach = measured(means, Fixed(5), rounds, 100)
    bound = theory.thompson_certified(means, Fixed(5), rounds)
    assert mean - reach <= bound.value < bound.trivial
    assert not mean - reach <= 0.01 * bound.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constants": "own"}, "constants: unknown choice 'own'; there are free, paper, printed"),
        ({"cuts": [0.3, 0.5]}, "cuts: must be one for each of 1 worse arms, got 2"),
        ({"cuts": [0.7]}, "cuts: must be above 0.4 and at most 0.6, got 0.7"),
    ],
)
def test_bad_input(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        theory.thompson_certified([0.6, 0.4], Fixed(3), 100, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="constants: the paper's proof has them for two arms, got 3"):
        theory.thompson_certified([0.6, 0.4, 0.2], Fixed(3), 100, constants="paper")

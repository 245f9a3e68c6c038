"""Scenarios: what they draw and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from belated import Between, Fixed, InvalidInput, Loss, Pareto, Scenario
from belated.inputs import number

GIVEN: dict[str, object] = {"means": [0.5, 0.4], "delay": Fixed(1), "rounds": 10}


def test_means_given_are_kept_and_means_of_a_range_are_drawn_within_it() -> None:
    rng = np.random.default_rng(1)
    assert Scenario(means=[0.5, 0.4], delay=Fixed(1), rounds=10).draw(rng).means.tolist() == [0.5, 0.4]
    drawn = Scenario(means=Between(0.25, 0.75), arms=500, delay=Fixed(1), rounds=10).draw(rng).means
    assert ((drawn >= 0.25) & (drawn <= 0.75)).all()
    assert abs(drawn.mean() - 0.5) < 4 * 0.5 / np.sqrt(12 * 500)


def test_a_law_an_arm() -> None:
    instance = Scenario(means=[0.5, 0.4], delay=[Pareto(1.0), Pareto(0.2)], rounds=10).draw(np.random.default_rng(1))
    assert instance.laws == (Pareto(1.0), Pareto(0.2))


def test_each_arm_draws_its_own_parameters() -> None:
    instance = Scenario(means=[0.5] * 5, delay=Loss(Between(0, 1)), rounds=10).draw(np.random.default_rng(1))
    assert len(set(instance.laws)) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"means": [0.5, 1.2]}, r"means\[1\]: must be between 0 and 1, got 1\.2"),
        ({"means": [0.5, "much"]}, r"means\[1\]: must be a number, got 'much'"),
        ({"means": []}, "means: at least two arms are needed, got none"),
        ({"means": [0.5]}, "means: at least two arms are needed, got 1"),
        ({"means": 0.5}, r"means: must be a list of numbers or a range, got 0\.5"),
        ({"means": Between(0.5, 1.5), "arms": 3}, r"means: must be between 0 and 1, got 1\.5"),
        ({"means": Between(0.1, 0.5)}, "arms: how many"),
        ({"means": Between(0.1, 0.5), "arms": 2.5}, r"arms: must be a whole number, got 2\.5"),
        ({"arms": 3}, "arms: there are 2 means, got 3"),
        ({"rounds": -5}, "rounds: must be at least 1, got -5"),
        ({"rounds": "many"}, "rounds: must be a whole number, got 'many'"),
        ({"delay": 250}, "delay: must be a delay law, got 250"),
        ({"delay": [Fixed(1)]}, "delay: must be one law or one for each of 2 arms, got 1"),
        ({"rewards": "normal"}, "rewards: unknown kind 'normal'"),
        ({"instance": -1}, "instance: must be at least 0, got -1"),
        ({"best_delay": 3}, "best_delay: must be a delay law, got 3"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Scenario(**{**GIVEN, **changes})  # type: ignore[arg-type]


def test_a_range_must_ascend() -> None:
    with pytest.raises(InvalidInput, match=r"range: the low end must not exceed the high end, got 0\.7\.\.0\.2"):
        Between(0.7, 0.2)


def test_true_is_not_a_number() -> None:
    with pytest.raises(InvalidInput, match="n: must be a number, got True"):
        number("n", True)

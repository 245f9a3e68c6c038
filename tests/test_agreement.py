"""Compiled and interpreted are the same program: bit for bit the same actions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from belated import Conversions, Drifting, Fixed, Pareto, Queue, Split, Thompson
from support import LAWS, every_policy, regrets

POLICIES = every_policy()


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_under_every_law_acts_the_same_compiled_and_interpreted(policy: str) -> None:
    for law in LAWS.values():
        one, other = (regrets(POLICIES[policy], law, rounds=120, compiled=compiled) for compiled in (True, False))
        assert one == other, law


def test_arms_with_laws_of_different_kinds_agree() -> None:
    mixed = (Pareto(0.5), Queue(0.2), Fixed(9))
    assert regrets(Thompson(), mixed, rounds=300, compiled=True) == regrets(
        Thompson(), mixed, rounds=300, compiled=False
    )


@pytest.mark.parametrize("policy", [name for name in POLICIES if "silence" in name or name == "wait"])
def test_arms_that_report_in_different_ways_agree(policy: str) -> None:
    mixed = (LAWS["conversions"], LAWS["reward-dependent"], Conversions(Drifting(Fixed(2), Pareto(0.5), 50), 9))
    known = replace(POLICIES[policy], delay=(*mixed[:2], Fixed(3))) if "known" in policy else POLICIES[policy]
    one, other = (regrets(known, mixed, rounds=120, compiled=compiled) for compiled in (True, False))
    assert one == other


@pytest.mark.parametrize("policy", ["thompson", "thompson-coin", "ucb1", "qpm-d-thompson"])
def test_rewards_between_zero_and_one_agree(policy: str) -> None:
    one, other = (
        regrets(POLICIES[policy], LAWS["geometric"], rounds=200, compiled=compiled, rewards="uniform")
        for compiled in (True, False)
    )
    assert one == other


def test_the_comparison_can_fail() -> None:
    assert regrets(Thompson(), Fixed(3), rounds=120, compiled=True) != regrets(
        Split(), Fixed(3), rounds=120, compiled=False
    )
    assert regrets(Thompson(), Fixed(3), rounds=120, compiled=True) != regrets(
        Thompson(), Fixed(4), rounds=120, compiled=False
    )

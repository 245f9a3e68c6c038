"""What policies skip: the arm is always the one that the plain formula, computed for every arm, would have given."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from belated import UCB1, UDUCB, Geometric, PatientBandits, PhasedElimination, Policy, SuccessiveElimination, Uniform
from belated.policies import conversions, elimination, lead, patient, phased, ucb
from belated.policies.base import tied_argmax

ROUNDS = 400


def plain_ucb1(state: Any, t: int) -> list[float]:
    scale = math.sqrt(2 * math.log(t)) if state.log else math.sqrt(2)
    pairs = zip(state.total, state.seen, strict=True)
    return [s / n + scale * (1 / math.sqrt(n)) if n else math.inf for s, n in pairs]


def plain_patient(state: Any, t: int) -> list[float]:
    """Each arm once, in order, and then the largest index."""
    pulls = state.pulls.tolist()
    if 0.0 in pulls:
        return [float(arm == pulls.index(0.0)) for arm in range(len(pulls))]
    return [
        s / m + math.sqrt(state.log / m) + 2 * m**-state.exponent for s, m in zip(state.total, state.pulls, strict=True)
    ]


def plain_ud_ucb(state: Any, t: int) -> list[float]:
    explore = (1 + state.eps) * math.log(t)
    return [
        s / n + math.sqrt(m / n) * math.sqrt(explore / (2 * n)) if n > 0 else math.inf
        for s, m, n in zip(state.total, state.pulls, state.trials.effective, strict=True)
    ]


class PlainSweeps:
    """Elimination with every bound computed at the end of every sweep, as an index: 1 for the arm whose turn it is."""

    def __init__(self) -> None:
        self.alive: list[int] = []
        self.turn: list[int] = []

    def __call__(self, state: Any, t: int) -> list[float]:
        if not self.turn:
            self.alive = self.alive or list(range(len(state.total)))
            self.turn = self.next_sweep(state)
        arm = self.turn.pop(0)
        return [float(each == arm) for each in range(len(state.total))]

    def next_sweep(self, state: Any) -> list[int]:
        count = np.maximum(state.seen, 1)
        middle, half = state.total / count, state.scale / np.sqrt(count)
        bar = max(middle[arm] - half[arm] for arm in self.alive)
        self.alive = [arm for arm in self.alive if middle[arm] + half[arm] >= bar]
        return list(self.alive)


class PlainPhases(PlainSweeps):
    """In phase l, sweeps of the arms that have not yet 2^l rewards; and elimination when there are none."""

    def __init__(self) -> None:
        super().__init__()
        self.filling: list[int] = []
        self.quota = 0.5

    def next_sweep(self, state: Any) -> list[int]:
        self.filling = [arm for arm in self.filling if state.seen[arm] < self.quota]
        if not self.filling:
            self.filling = super().next_sweep(state)
            self.quota *= 2
        return list(self.filling)


POLICIES: dict[str, tuple[Policy, Callable[[], Callable[[Any, int], list[float]]]]] = {
    "ucb1": (UCB1(), lambda: plain_ucb1),
    "ucb1-nolog": (UCB1(log=False), lambda: plain_ucb1),
    "patient": (PatientBandits(alpha=0.3), lambda: plain_patient),
    "ud-ucb": (UDUCB(delay=Geometric(0.05), eps=0.5), lambda: plain_ud_ucb),
    "ud-ucb-stepped": (UDUCB(delay=Uniform(2, 30)), lambda: plain_ud_ucb),
    "elimination": (SuccessiveElimination(), PlainSweeps),
    "phased": (PhasedElimination(), PlainPhases),
}


def agreeing_rounds(policy: Policy, plain: Callable[[Any, int], list[float]], seed: int) -> float:
    """Play a random history; the share of rounds with the arm of the plain formula, from the same random numbers."""
    world, rng = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
    arms = int(world.choice([2, 3, 8, 20]))
    means, late = world.random(arms), float(world.choice([0, 1, 10, 60]))
    state, due = policy.start(arms, ROUNDS), defaultdict(list)
    agreed = 0
    for t in range(1, ROUNDS + 1):
        twin = deepcopy(rng)
        expected = tied_argmax(plain(state, t), twin)
        arm = state.choose(t, rng)
        agreed += arm == expected and rng.random() == twin.random()
        state.sent(t, arm)
        reward = world.random() if seed % 3 == 0 else float(world.random() < means[arm])
        due[t + int(world.exponential(late))].append((arm, reward))
        for past, revealed in due.pop(t, []):
            state.learn(past, revealed, rng)
    return agreed / ROUNDS


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_skipped_changes_no_arm_and_draws_no_number(name: str) -> None:
    policy, plain = POLICIES[name]
    assert all(agreeing_rounds(policy, plain(), seed) == 1.0 for seed in range(12))


@pytest.mark.parametrize(
    ("name", "module", "broken"),
    [
        ("ucb1", ucb, {"challenge": lambda found, arm, bound: None}),
        ("ud-ucb", conversions, {"challenge": lambda found, arm, bound: None}),
        ("patient", patient, {"challenge": lambda found, arm, bound: None}),
        ("ucb1", ucb, {"leads": lambda found, t, index: lead.leads(found, t, 1.01 * index)}),
        ("ud-ucb", conversions, {"leads": lambda found, t, index: lead.leads(found, t, 1.01 * index)}),
        ("elimination", elimination, {"bounds": lambda total, count, scale: (total / count, total / count + scale)}),
        ("phased", phased, {"link": lambda following, members: None}),
    ],
)
def test_the_comparison_notices(
    name: str, module: Any, broken: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rival that no one challenges, a leader flattered by a hundredth, an interval of another width, old links."""
    policy, plain = POLICIES[name]
    for function, wrong in broken.items():
        monkeypatch.setattr(module, function, wrong)
    assert any(agreeing_rounds(policy, plain(), seed) < 1.0 for seed in range(12))


@pytest.mark.parametrize("name", ["ucb1", "ud-ucb"])
def test_most_comparisons_are_spared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = {"ucb1": ucb, "ud-ucb": conversions}[name]
    count, whole = [0], module.compare

    def counted(*arguments: Any) -> int:
        count[0] += 1
        return int(whole(*arguments))

    monkeypatch.setattr(module, "compare", counted)
    policy, _ = POLICIES[name]
    rng = np.random.default_rng(3)
    state, waiting = policy.start(5, 2000), []
    for t in range(1, 2001):
        arm = state.choose(t, rng)
        state.sent(t, arm)
        waiting.append((arm, float(rng.random() < 0.2 + 0.1 * arm)))
        if t > 50:
            state.learn(*waiting[t - 51], rng)
    assert count[0] < 600

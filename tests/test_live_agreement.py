"""A scenario simulated, and the same scenario lived through ask and tell on a real ledger, choose the same arms."""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np
import pytest

from belated import Geometric, Law, Loss, Pareto, Uniform, live
from belated.live import Experiment
from belated.policies import named
from belated.simulation import POLICY, VISITORS, stream
from support import MEANS, actions

SEED = 5
ROUNDS = 100


def lived(policy: str, delay: Law, folder: Path, *, binary: bool = True, lag: int = 0, seed: int = SEED) -> list[int]:
    """The arms chosen when each round is a second: an ask, then tells of what falls due, `lag` rounds too late."""
    now = [1e9]
    arms = [f"arm {place}" for place in range(len(MEANS))]
    visitors = stream(seed, 0, VISITORS)
    due: list[tuple[float, int, str, float]] = []
    chosen = []
    url = f"sqlite:///{folder}/{policy}.db"
    with live.open(url, clock=lambda: now[0], rng=stream(seed, 0, POLICY), refresh=0) as shop:
        test: Experiment = shop.create("test", arms, policy=policy)
        for t in range(1, ROUNDS + 1):
            now[0] += 1.0
            decision = test.ask()
            chosen.append(arms.index(decision.arm))
            u, v = visitors.random(), visitors.random()
            mean = MEANS[chosen[-1]]
            reward = float(u < mean) if binary else mean + (2.0 * u - 1.0) * min(mean, 1.0 - mean)
            heapq.heappush(due, (t + delay.quantile(v) + lag, t, decision.id, reward))
            while due and due[0][0] <= t:
                _, _, id, reward = heapq.heappop(due)
                assert test.tell(id, reward) == "applied"
    return chosen


LAWS = {"geometric": Geometric(0.1), "pareto": Pareto(0.7), "loss": Loss(0.6), "uniform": Uniform(0, 9)}


@pytest.mark.parametrize(
    ("policy", "law"), [*(("thompson", law) for law in LAWS), ("ucb1", "geometric"), ("split", "geometric")]
)
def test_binary_rewards(policy: str, law: str, tmp_path: Path) -> None:
    simulated = actions(named(policy), LAWS[law], rounds=ROUNDS, seed=SEED)
    assert lived(policy, LAWS[law], tmp_path) == simulated.tolist()


def test_rewards_between_0_and_1(tmp_path: Path) -> None:
    """The ledger keeps nine decimals: within 100 rounds that turns no choice."""
    simulated = actions(named("thompson"), Geometric(0.1), rounds=ROUNDS, seed=SEED, rewards="uniform")
    assert lived("thompson", Geometric(0.1), tmp_path, binary=False) == simulated.tolist()


@pytest.mark.parametrize("change", [{"lag": 1}, {"seed": SEED + 1}])
def test_a_round_late_or_another_seed_differs(change: dict[str, int], tmp_path: Path) -> None:
    """The control: the comparison can fail."""
    simulated = actions(named("thompson"), LAWS["uniform"], rounds=ROUNDS, seed=SEED)
    assert lived("thompson", LAWS["uniform"], tmp_path, **change) != simulated.tolist()


def test_totals_are_all_that_a_live_policy_is_made_of() -> None:
    """`resumed` gives the very state that learning one reward after another gives."""
    rng = np.random.default_rng(1)
    for name in live.settings.POLICIES:
        policy = named(name)
        state = policy.start(3, 100)
        total, seen = np.zeros(3), np.zeros(3)
        for _ in range(100):
            arm, reward = int(rng.integers(3)), float(rng.integers(2))
            state.learn(arm, reward, rng)
            total[arm] += reward
            seen[arm] += 1.0
        for one, other in zip(state, policy.resumed(total, seen), strict=True):
            np.testing.assert_array_equal(one, other)

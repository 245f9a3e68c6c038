"""A scenario simulated, and the same scenario lived through ask and tell on a real ledger, choose the same arms.

A live policy is made of totals at each ask. Of what Thompson sampling keeps from reward to reward (`policies/lazy.py`)
only the posterior is a function of totals; the rest is bounds, which do not change the law of a choice but which random
numbers make it. So it is simulated here with bounds that are made afresh after each reward.
"""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np
import pytest

from argmax import Afresh
from belated import Geometric, Law, Loss, Pareto, Policy, Uniform, live
from belated.live import Experiment
from belated.policies import named
from belated.simulate import POLICY, VISITORS, stream
from support import MEANS, actions

SEED = 5
ROUNDS = 100


def simulated(policy: str) -> Policy:
    """The policy, its choices a function of totals."""
    return Afresh() if policy == "thompson" else named(policy)


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
    pulled = actions(simulated(policy), LAWS[law], rounds=ROUNDS, seed=SEED)
    assert lived(policy, LAWS[law], tmp_path) == pulled.tolist()


def test_rewards_between_0_and_1(tmp_path: Path) -> None:
    """The ledger keeps nine decimals: within 100 rounds that turns no choice."""
    pulled = actions(Afresh(), Geometric(0.1), rounds=ROUNDS, seed=SEED, rewards="uniform")
    assert lived("thompson", Geometric(0.1), tmp_path, binary=False) == pulled.tolist()


@pytest.mark.parametrize("change", [{"lag": 1}, {"seed": SEED + 1}])
def test_a_round_late_or_another_seed_differs(change: dict[str, int], tmp_path: Path) -> None:
    """The control: the comparison can fail."""
    pulled = actions(Afresh(), LAWS["uniform"], rounds=ROUNDS, seed=SEED)
    assert lived("thompson", LAWS["uniform"], tmp_path, **change) != pulled.tolist()


def test_totals_are_all_that_a_live_policy_is_made_of() -> None:
    """`resumed` gives the very state that learning one reward after another gives; of Thompson's, the posterior."""
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
        resumed = policy.resumed(total, seen)
        exact = ("successes", "failures") if name == "thompson" else state._fields
        for field in exact:
            np.testing.assert_array_equal(getattr(state, field), getattr(resumed, field))
        if name == "thompson":
            np.testing.assert_allclose(state.log_beta, resumed.log_beta, rtol=1e-12)

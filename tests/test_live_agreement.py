"""A scenario simulated, and the same scenario lived through ask and tell on a real ledger, choose the same arms.

A live policy is made of totals at each ask, and draws every arm: so does what it is compared with.
"""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np
import pytest

from belated import Conversions, Geometric, Law, Loss, Pareto, Policy, Thompson, Uniform, live
from belated.live import Experiment
from belated.live.ledger import experiment
from belated.policies import named
from belated.policies.curve import read
from belated.policies.learned import Sums, learned_state, resumed_state, settle
from belated.simulation import POLICY, VISITORS, stream
from support import MEANS, actions

SEED = 5
ROUNDS = 100
PLAIN = Thompson(lazy=False)


def simulated(policy: str) -> Policy:
    """The policy, its choices a function of totals."""
    return PLAIN if policy == "thompson" else named(policy)


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
    pulled = actions(PLAIN, Geometric(0.1), rounds=ROUNDS, seed=SEED, rewards="uniform")
    assert lived("thompson", Geometric(0.1), tmp_path, binary=False) == pulled.tolist()


@pytest.mark.parametrize("change", [{"lag": 1}, {"seed": SEED + 1}])
def test_a_round_late_or_another_seed_differs(change: dict[str, int], tmp_path: Path) -> None:
    """The control: the comparison can fail."""
    pulled = actions(PLAIN, LAWS["uniform"], rounds=ROUNDS, seed=SEED)
    assert lived("thompson", LAWS["uniform"], tmp_path, **change) != pulled.tolist()


def silently(window: int, folder: Path, *, rounds: int = 250, seed: int = SEED, **how: str) -> list[int]:
    """The arms chosen when only conversions are told, those within the window, and silence is read."""
    visitors, law = stream(seed, 0, VISITORS), Geometric(0.1)
    arms = [f"arm {place}" for place in range(len(MEANS))]
    due: list[tuple[float, int, str]] = []
    chosen: list[int] = []
    now = [1e9]
    url = f"sqlite:///{folder}/{len(list(folder.iterdir()))}.db"
    with live.open(url, clock=lambda: now[0], rng=stream(seed, 0, POLICY), refresh=0) as shop:
        # A round is a second. The simulator hears what comes at the end of the window, live it would be late.
        test = shop.create("test", arms, silence=live.Failure(after=window + 0.001), **how)
        with shop.store.reading() as connection:
            width = experiment(connection, "test").width
        assert width == 1000 * -(-window // 50)
        began = 1e12 // width * width / 1000  # the first round begins a block
        for t in range(1, rounds + 1):
            now[0] = began + t - 1
            decision = test.ask()
            chosen.append(arms.index(decision.arm))
            u, v = visitors.random(), visitors.random()
            if u < MEANS[chosen[-1]] and law.quantile(v) <= window:
                heapq.heappush(due, (t + law.quantile(v), t, decision.id))
            while due and due[0][0] <= t:
                assert test.tell(heapq.heappop(due)[2], 1) == "applied"
    return chosen


@pytest.mark.parametrize("window", [99, 149])
def test_silence_is_read_as_the_simulator_does(window: int, tmp_path: Path) -> None:
    policy, law = named("thompson-silence"), Conversions(Geometric(0.1), window)
    simulated = actions(policy, law, rounds=250, seed=SEED, compiled=False).tolist()
    assert silently(window, tmp_path) == simulated
    assert silently(window, tmp_path, reading="wait") != simulated  # the controls
    assert silently(window, tmp_path, seed=SEED + 1) != simulated


def test_sums_are_all_that_reading_silence_is_made_of() -> None:
    """`resumed_state` is, field by field, the state that played the rounds, whenever it is asked for."""
    rng = np.random.default_rng(3)
    width, bins, window = 3, 7, 21
    prior = np.array([1.0, 2.0, 0.5]), np.array([1.0, 5.0, 0.5])
    state = learned_state(*(each.copy() for each in prior), window, bins, 5.0)
    assert (state.width, state.events.shape) == (width, (3, bins))
    asked: list[tuple[int, int]] = []  # round, arm
    told: list[tuple[int, int, int, float]] = []  # round, round of the pull, arm, reward
    compared = 0
    for t in range(1, 200):
        arm = int(rng.integers(3))
        asked.append((t, arm))
        state.sent(t, arm)
        for s, pulled in asked:
            if rng.random() < 0.02 and s >= t - window and not any(each[1] == s for each in told):
                told.append((t, s, pulled, float(rng.choice([1.0, 0.25]))))
                state.heard(*told[-1], rng)
        resumed = resumed_state(*(each.copy() for each in prior), width, 5.0, summed(asked, told, t, width, bins))
        read(resumed.reading, resumed.events, resumed.risk, resumed.aged, 5.0)
        for arm in range(3):
            settle(resumed, arm)
        if t >= width:  # before, nothing has been read
            compared += 1
            for name, one, other in zip(state._fields, state, resumed, strict=True):
                flat = (np.concatenate([np.ravel(each) for each in field]) for field in (one, other))
                np.testing.assert_allclose(*(flat if name == "reading" else (one, other)), err_msg=f"{name} at {t}")
    assert compared > 150
    assert (state.events.sum(), state.closed[:, 0].sum()) > (20, 100)


def summed(
    asked: list[tuple[int, int]], told: list[tuple[int, int, int, float]], t: int, width: int, bins: int
) -> Sums:
    complete = t // width
    pulls, ones, converted = np.zeros((3, 3, bins + 1))
    closed, late, fresh = np.zeros((3, 2)), np.zeros((3, bins)), []
    for s, arm in asked:
        age = complete - (s - 1) // width
        if age <= bins:
            pulls[arm, age] += 1
        else:
            closed[arm, 0] += 1
    for heard, s, arm, reward in told:
        age, lag = complete - (s - 1) // width, min((heard - s) // width, bins - 1)
        late[arm, lag] += 1
        if age <= bins:
            ones[arm, age] += reward
            converted[arm, age] += 1
        else:
            closed[arm, 1] += reward
        if lag + 2 > age:  # its bin is not yet over for all of its block
            fresh.append((arm, age, lag, 1))
    return Sums(complete, pulls, ones, converted, closed, late, np.array(fresh, int).reshape(-1, 4))


def test_totals_are_all_that_a_live_policy_is_made_of() -> None:
    """`resumed` gives the very state that learning one reward after another gives."""
    rng = np.random.default_rng(1)
    for name in live.settings.POLICIES:
        policy = simulated(name)
        state = policy.start(3, 100)
        total, seen = np.zeros(3), np.zeros(3)
        for _ in range(100):
            arm, reward = int(rng.integers(3)), float(rng.integers(2))
            state.learn(arm, reward, rng)
            total[arm] += reward
            seen[arm] += 1.0
        resumed = policy.resumed(total, seen)
        for field in set(type(state)._fields) - {"scores"}:  # which is scratch
            np.testing.assert_array_equal(getattr(state, field), getattr(resumed, field))

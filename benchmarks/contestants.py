"""Beta–Thompson sampling by ours and by other libraries, each driven through the same queue of late rewards.

Run by peers.py in the environment of one library, it plays one contestant for some seconds and prints what came of it
as a line of JSON. It needs the standard library and that one library.

A contestant is a function (seed) -> (choose, learn), its policy freshly made. In round t = 1, 2, … the queue calls
`choose()`, holds the reward, and calls `learn(arm, reward)` with that of round t - DELAY. Where a library decides and
learns many at once, `choose(count)` and `learn(arms, rewards)` take lists of BATCH rounds, and the rewards of one batch
are learned at the end of the next: they are BATCH to 2 BATCH - 1 rounds late.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import random
import sys
import tempfile
import time
import types
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

ARMS, ROUNDS, DELAY, BATCH = 20, 5000, 250, 250
MEANS = [0.25 + 0.5 * arm / (ARMS - 1) for arm in range(ARMS)]
TRIAL = 2 * BATCH  # rounds, not timed, before a run: what is made at the first call is made then

Contestant = Callable[[int], tuple[Callable[..., Any], Callable[..., Any]]]


def play(made: tuple[Callable[[], int], Callable[[int, int], Any]], seed: int, rounds: int) -> float:
    """The regret of one replication through the queue, a round at a time."""
    choose, learn = made
    visitor = random.Random(seed).random
    waiting: deque[tuple[int, int]] = deque()
    regret = 0.0
    for t in range(1, rounds + 1):
        arm = choose()
        regret += MEANS[-1] - MEANS[arm]
        waiting.append((arm, 1 if visitor() < MEANS[arm] else 0))
        if t > DELAY:
            learn(*waiting.popleft())
    return regret


def play_batches(made: tuple[Callable[[int], Sequence[int]], Callable[..., Any]], seed: int, rounds: int) -> float:
    """The regret of one replication, BATCH decisions at a time."""
    choose, learn = made
    visitor = random.Random(seed).random
    waiting: tuple[Sequence[int], list[int]] = ([], [])
    regret = 0.0
    for _ in range(rounds // BATCH):
        arms = choose(BATCH)
        regret += sum(MEANS[-1] - MEANS[arm] for arm in arms)
        rewards = [1 if visitor() < MEANS[arm] else 0 for arm in arms]
        if waiting[0]:
            learn(*waiting)
        waiting = (arms, rewards)
    return regret


# --- A round at a time ---


def queue(seed: int):
    """No policy at all: what the queue itself costs. The regret is that of the middle arm."""
    return lambda: ARMS // 2, lambda arm, reward: None


def interpreted(seed: int):
    """Our policy as plain Python, as the live engine calls it."""
    import numpy as np

    from belated import Thompson

    state, rng = Thompson().start(ARMS, ROUNDS), np.random.default_rng(seed)
    return lambda: state.choose(1, rng), lambda arm, reward: state.learn(arm, reward, rng)


def live(seed: int):
    """Our live engine: every ask and tell on the disk before it is answered, a fresh posterior for each ask."""
    test, asked = _experiment(seed), deque()

    def choose() -> int:
        decision = test.ask()
        asked.append(decision.id)
        return int(decision.arm)

    return choose, lambda arm, reward: test.tell(asked.popleft(), reward)


def _experiment(seed: int):
    import numpy as np

    from belated import live

    ledger = f"sqlite:///{tempfile.mkdtemp(dir=os.environ['PEERS_FOLDER'])}/shop.db"
    shop = live.open(ledger, rng=np.random.default_rng(seed), refresh=0)
    return shop.create("peers", [str(arm) for arm in range(ARMS)])


def pymab(seed: int):
    """Its policy object, whose state and draws are in Rust."""
    import numpy as np
    from pymab.policies import BernoulliThompsonSamplingPolicy

    policy, rng = BernoulliThompsonSamplingPolicy(n_arms=ARMS), np.random.default_rng(seed)
    return lambda: policy.select_action(rng=rng), lambda arm, reward: policy.update(action=arm, reward=reward)


def obp(seed: int):
    """BernoulliTS. Its package imports PyTorch for policies other than this; so this module is imported alone."""
    folder = importlib.util.find_spec("obp").submodule_search_locations[0]
    alone = types.ModuleType("obp.policy")
    alone.__path__ = [f"{folder}/policy"]
    sys.modules["obp.policy"] = alone
    from obp.policy.contextfree import BernoulliTS

    policy = BernoulliTS(n_actions=ARMS, random_state=seed)
    return lambda: policy.select_action()[0], policy.update_params


def mabby(seed: int):
    """Its strategy: its agent can only learn what it chose last."""
    import numpy as np
    from mabby.strategies import BetaTSStrategy

    strategy, rng = BetaTSStrategy(), np.random.default_rng(seed)
    strategy.prime(ARMS, ROUNDS)
    return lambda: strategy.choose(rng), lambda arm, reward: strategy.update(arm, reward, rng)


def smpybandits(seed: int):
    """Its policy draws from NumPy's and Python's global generators."""
    import numpy as np
    from SMPyBandits.Policies import Thompson

    np.random.seed(seed)
    policy = Thompson(ARMS)
    policy.startGame()
    return policy.choice, policy.getReward


def river(seed: int):
    """Its policy over a Beta distribution an arm."""
    from river import bandit, proba

    policy, arms = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed), list(range(ARMS))
    return lambda: policy.pull(arms), policy.update


def mabwiser(seed: int):
    """Fitted to nothing first, for it decides only then."""
    made, _, _ = _mabwiser(seed)
    return made.predict, lambda arm, reward: made.partial_fit([arm], [reward])


def _mabwiser(seed: int):
    import numpy as np
    from mabwiser.mab import MAB, LearningPolicy

    made = MAB(list(range(ARMS)), LearningPolicy.ThompsonSampling(), seed=seed)
    made.fit(np.array([], int), np.array([], float))
    return made, np.array, np.ones((BATCH, 1))


def pybandits(seed: int):
    """Its cold start; an action is a text, and what it decides it takes again as it is."""
    from pybandits.smab import SmabBernoulli

    made = SmabBernoulli.cold_start(action_ids={str(arm) for arm in range(ARMS)}, random_seed=seed)
    return lambda: int(made.predict()[0][0]), lambda arm, reward: made.update(actions=[str(arm)], rewards=[reward])


def bayesianbandits(seed: int):
    """An agent over a Beta posterior an arm, which here is a Dirichlet of two classes."""
    import numpy as np
    from bayesianbandits import Agent, ThompsonSampling

    agent = Agent(_dirichlet_arms(), ThompsonSampling(), random_seed=seed)
    return lambda: agent.pull()[0], lambda arm, reward: agent.select_for_update(arm).update(np.array([reward]))


def _dirichlet_arms() -> list[Any]:
    from bayesianbandits import Arm, DirichletClassifier

    def success(sample: Any) -> Any:
        return sample[..., 1]

    return [Arm(arm, success, learner=DirichletClassifier({0: 1.0, 1: 1.0})) for arm in range(ARMS)]


# --- Many at once ---


def live_batches(seed: int):
    """A commit a batch."""
    test, asked = _experiment(seed), deque()

    def choose(count: int) -> list[int]:
        decisions = test.ask_many(count)
        asked.extend(decision.id for decision in decisions)
        return [int(decision.arm) for decision in decisions]

    return choose, lambda arms, rewards: test.tell_many([(asked.popleft(), reward) for reward in rewards])


def mabwiser_batches(seed: int):
    """Contexts that it does not look at tell it how many decisions are wanted."""
    made, array, contexts = _mabwiser(seed)
    return lambda count: made.predict(contexts), lambda arms, rewards: made.partial_fit(array(arms), array(rewards))


def pybandits_batches(seed: int):
    """Lists of samples, actions and rewards."""
    from pybandits.smab import SmabBernoulli

    made = SmabBernoulli.cold_start(action_ids={str(arm) for arm in range(ARMS)}, random_seed=seed)

    def choose(count: int) -> list[int]:
        return [int(arm) for arm in made.predict(n_samples=count)[0]]

    return choose, lambda arms, rewards: made.update(actions=[str(arm) for arm in arms], rewards=rewards)


def bayesianbandits_batches(seed: int):
    """A row of the matrix a decision; rewards are learned arm by arm."""
    import numpy as np
    from bayesianbandits import ContextualAgent, ThompsonSampling

    agent = ContextualAgent(_dirichlet_arms(), ThompsonSampling(), random_seed=seed)
    rows = np.ones((BATCH, 1))

    def learn(arms: Sequence[int], rewards: Sequence[int]) -> None:
        told = np.array(rewards)
        for arm in set(arms):
            own = told[np.array(arms) == arm]
            agent.select_for_update(arm).update(rows[: len(own)], own)

    return lambda count: agent.pull(rows), learn


ROUND_BY_ROUND: dict[str, Contestant] = {
    "queue": queue,
    "interpreted": interpreted,
    "live": live,
    "pymab": pymab,
    "obp": obp,
    "mabby": mabby,
    "SMPyBandits": smpybandits,
    "river": river,
    "mabwiser": mabwiser,
    "pybandits": pybandits,
    "bayesianbandits": bayesianbandits,
}
IN_BATCHES: dict[str, Contestant] = {
    "live, batches": live_batches,
    "mabwiser, batches": mabwiser_batches,
    "pybandits, batches": pybandits_batches,
    "bayesianbandits, batches": bayesianbandits_batches,
}


# --- Simulators: all replications in one call ---


def belated_simulator(delay: Any) -> Callable[[int, int, int], list[float]]:
    """`belated.simulate`, compiled, on one core."""
    from belated import Scenario, Thompson, simulate

    def run(seed: int, replications: int, rounds: int) -> list[float]:
        world = Scenario(means=MEANS, delay=delay, rounds=rounds)
        result = simulate(world, [Thompson()], replications=replications, seed=seed, workers=1)
        return result.regret[0, :, -1].tolist()

    return run


def compiled() -> Callable[[int, int, int], list[float]]:
    """Ours, each reward DELAY rounds late."""
    from belated import Fixed

    return belated_simulator(Fixed(DELAY))


def compiled_batches() -> Callable[[int, int, int], list[float]]:
    """Ours, with the delays of the batches above."""
    from belated import Fixed, Refreshed

    return belated_simulator(Refreshed(Fixed(BATCH), every=BATCH))


def compiled_at_once() -> Callable[[int, int, int], list[float]]:
    """Ours, without delay."""
    from belated import Fixed

    return belated_simulator(Fixed(0))


def pymab_at_once() -> Callable[[int, int, int], list[float]]:
    """The loop of pymab itself, in Rust. It has no delays."""
    import numpy as np
    from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig
    from pymab.policies import BernoulliThompsonSamplingPolicy

    def run(seed: int, replications: int, rounds: int) -> list[float]:
        result = Experiment(
            environment=BanditEnvironment(means=np.array(MEANS), reward_model=BernoulliReward()),
            policies={"thompson": BernoulliThompsonSamplingPolicy(n_arms=ARMS)},
            config=ExperimentConfig(horizon=rounds, n_replicates=replications, seed=seed, backend="rust"),
        ).run()
        return np.asarray(result.cumulative_regret_by_replicate)[:, -1].ravel().tolist()

    return run


SIMULATORS: dict[str, Callable[[], Callable[[int, int, int], list[float]]]] = {
    "compiled": compiled,
    "compiled, batches": compiled_batches,
    "compiled, at once": compiled_at_once,
    "pymab, at once": pymab_at_once,
}


def timed(name: str, seed: int, seconds: float) -> tuple[float, list[float]]:
    """Nanoseconds a round, and the regret of each replication; as many as take about so many seconds, at least one."""
    if name in SIMULATORS:
        run = SIMULATORS[name]()
        run(seed, 2, ROUNDS)
        began = time.perf_counter()
        run(seed, 20, ROUNDS)
        replications = max(20, round(20 * seconds / (time.perf_counter() - began)))
        began = time.perf_counter()
        regrets = run(seed, replications, ROUNDS)
        return 1e9 * (time.perf_counter() - began) / replications / ROUNDS, regrets
    make, played = (IN_BATCHES[name], play_batches) if name in IN_BATCHES else (ROUND_BY_ROUND[name], play)
    played(make(seed), seed, TRIAL)
    regrets, elapsed = [], 0.0
    while elapsed < seconds:
        own = 1000 * seed + len(regrets)
        made = make(own)
        began = time.perf_counter()
        regrets.append(played(made, own, ROUNDS))
        elapsed += time.perf_counter() - began
    return 1e9 * elapsed / len(regrets) / ROUNDS, regrets


def main() -> None:
    """Play a contestant: its name, a seed, the seconds, and whose version is wanted."""
    name, seed, seconds, library = sys.argv[1:]
    ns, regrets = timed(name, int(seed), float(seconds))
    print(json.dumps({"ns": ns, "regrets": regrets, "version": importlib.metadata.version(library)}))


if __name__ == "__main__":
    main()

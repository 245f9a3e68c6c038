"""What several tests share: a law of each kind, a policy of each kind, and a replication's actions."""

from __future__ import annotations

import numpy as np

from belated import (
    Conversions,
    Drifting,
    Exponential,
    Fixed,
    Geometric,
    Law,
    Loss,
    Mixture,
    Observed,
    Outage,
    Pareto,
    Policy,
    Queue,
    Refreshed,
    RewardDependent,
    Scenario,
    Thompson,
    Uniform,
)
from belated.policies import POLICIES, QPMD, UDUCB, named
from belated.simulation import Batch

IID_LAWS: dict[str, Law] = {
    "fixed": Fixed(7),
    "geometric": Geometric(0.1),
    "uniform": Uniform(3, 12),
    "pareto": Pareto(0.7),
    "loss": Loss(0.6),
    "exponential": Exponential(8.0),
    "mixture": Mixture([0.5, 0.3, 0.2], [Geometric(0.2), Loss(0.0), Pareto(1.2)]),
    "observed": Observed([0, 4, 9], [0.2, 0.7, 0.9]),
}
LAWS: dict[str, Law] = {
    **IID_LAWS,
    "queue": Queue(0.4),
    "reward-dependent": RewardDependent(Fixed(10), Observed([0, 4], [0.5, 1.0])),
    "conversions": Conversions(Geometric(0.1), 20),
    "drifting": Drifting(Geometric(0.1), Uniform(3, 30), 60),
    "refreshed": Refreshed(RewardDependent(Geometric(0.1), Fixed(2)), 9),
    "outage": Conversions(Outage(Geometric(0.1), 40, 70), 20),
}

MEANS = (0.313, 0.571, 0.437)  # no two sums of their gaps coincide: regret tells the actions


def every_policy() -> dict[str, Policy]:
    """Each named policy, told what it must know, and the variants that run other code."""
    policies = {name: named(name) for name in POLICIES}
    policies["patient"] = named("patient", alpha=0.7)
    policies["ud-ucb"] = UDUCB(delay=Geometric(0.1))
    policies["ud-ucb-stepped"] = UDUCB(delay=(Uniform(2, 5), Pareto(1.0), Fixed(3)))
    policies["ud-ucb-kl"] = UDUCB(delay=Geometric(0.1), kl=True)
    policies["qpm-d-thompson"] = QPMD(base=Thompson())
    policies["qpm-d-wait"] = QPMD(base=named("wait", window=9))
    policies["thompson-coin"] = Thompson(prior=(0.5, 0.5), coin=True)
    policies["wait"] = named("wait", window=6)
    policies["wait-provisional"] = named("wait", window=6, provisional=True)
    policies["thompson-silence"] = named("thompson-silence", window=23, blocks=8)
    policies["thompson-silence-both"] = named("thompson-silence", blocks=1)  # unless the law has a window
    policies["thompson-silence-known"] = named("thompson-silence-known", delay=Geometric(0.1))
    policies["thompson-silence-stepped"] = named("thompson-silence-known", delay=Uniform(2, 5), window=4)
    policies["thompson-silence-exact"] = named(
        "thompson-silence-exact", delay=(LAWS["reward-dependent"], LAWS["conversions"], Fixed(3)), blocks=1
    )
    return policies


def actions(
    policy: Policy,
    delay: Law | tuple[Law, ...],
    *,
    rounds: int = 150,
    seed: int = 5,
    compiled: bool = True,
    **scenario: object,
) -> np.ndarray:
    """The arm pulled in each round, read off the regret of each round."""
    world = Scenario(means=MEANS, delay=delay, rounds=rounds, **scenario)  # type: ignore[arg-type]
    batch = Batch(world, policy, seed, range(1), tuple(range(1, rounds + 1)), compiled)
    steps = np.diff(batch.run().regret[0], prepend=0.0)
    gaps = max(MEANS) - np.array(MEANS)
    return np.abs(steps[:, None] - gaps[None, :]).argmin(axis=1)


def regrets(
    batch_of: Policy, delay: Law | tuple[Law, ...], *, rounds: int, compiled: bool, **scenario: object
) -> bytes:
    """Every number that a replication leaves, as bytes."""
    world = Scenario(means=MEANS, delay=delay, rounds=rounds, **scenario)  # type: ignore[arg-type]
    outcome = Batch(world, batch_of, 5, range(2), tuple(range(1, rounds + 1)), compiled).run()
    return outcome.regret.tobytes() + outcome.pulls.tobytes() + outcome.fates.tobytes()

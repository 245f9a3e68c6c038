"""The package beside the oracle, a second simulator. Both draw worlds of their own: means of regret are compared."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import stdtrit

from belated import Fixed, Geometric, Loss, Pareto, Queue, RewardDependent, Scenario, Uniform, simulate
from belated.paper import EXPERIMENTS
from belated.policies import named
from oracle import (
    ORACLES,
    OracleElimination,
    OracleEliminationLog,
    OraclePatient,
    OraclePhased,
    OracleThompson,
    OracleUCB,
    OracleUCBNoLog,
    OracleUDUCB,
    oracle,
)

# --- What is compared -----------------------------------------------------------------------------------------------


def sooner(law):
    """A tenth of the delay, where it is measured against the horizon."""
    match law:
        case Fixed():
            return Fixed(law.rounds // 10)
        case Uniform():
            return Uniform(law.low // 10, law.high // 10)
        case RewardDependent():
            return RewardDependent(sooner(law.success), sooner(law.failure))
    return law


def shortened(scenario):
    laws = scenario.delay
    laws = [sooner(law) for law in laws] if isinstance(laws, tuple) else sooner(laws)
    arms = min(scenario.arms, 5)
    means = scenario.means[:arms] if isinstance(scenario.means, tuple) else scenario.means
    return replace(scenario, means=means, delay=laws, rounds=200, arms=arms)


def is_inside(experiment):
    """Whether it lies between the ends of a sweep: "fixed" and "packet-loss-0.108" are such members by another name."""
    places = [each.at for each in EXPERIMENTS if each.sweep == experiment.sweep]
    return experiment.sweep is not None and min(places) < experiment.at < max(places)


SHORT = [
    pytest.param(shortened(each.scenario), policy, id=f"{each.name}-{policy}")
    for each in EXPERIMENTS
    if not is_inside(each)
    for policy in (*each.policies, *(("split", "qpm-d") if each.name in ("fixed", "packet-loss", "queue") else ()))
]

# The same arms in every replication, and time to tell them apart: less noise, and even the widest radius eliminates.
GEOMETRIC = Scenario(means=(0.8, 0.2), delay=(Geometric(0.1), Geometric(0.3)), rounds=250)
CLEAR = [
    *((GEOMETRIC, policy) for policy in ORACLES if policy != "patient"),
    (replace(GEOMETRIC, delay=(Pareto(1.0), Pareto(0.5))), "patient"),
    (Scenario(means=(0.9, 0.1), delay=Fixed(4), rounds=300), "phased-theory"),
    (Scenario(means=(0.2, 0.9, 0.4, 0.6), delay=Loss(0.5), rounds=250), "phased"),
    (Scenario(means=(1.0, 0.0, 0.0), delay=Uniform(3, 9), rounds=200), "elimination-log"),
    (Scenario(means=(0.9, 0.1), delay=Queue(0.5), rounds=100), "thompson"),
]

# --- Bugs planted in the oracle -------------------------------------------------------------------------------------


class FirstRewardLost(OracleUCBNoLog):
    def __init__(self, *world):
        super().__init__(*world)
        self.heard = set()

    def learn(self, arm, reward):
        if arm in self.heard:
            super().learn(arm, reward)
        self.heard.add(arm)


class ZerosLost(OracleThompson):
    def learn(self, arm, reward):
        if reward:
            super().learn(arm, reward)


class NarrowUCB(OracleUCB):
    """Its radius lacks sqrt(2)."""

    scale = 1


class NarrowElimination(OracleElimination):
    """Its radius lacks sqrt(2)."""

    scale = 1


class OlderPulls(OracleUDUCB):
    """It takes each pull for one round older."""

    lag = 0


class Impatient(OraclePatient):
    """After the first pull of each arm, it counts a pull only once its reward is revealed."""

    def choose(self, t):
        arm = super().choose(t)
        self.n[arm] -= t > len(self.arms)
        return arm

    def learn(self, arm, reward):
        super().learn(arm, reward)
        self.n[arm] += 1


class SweepingPhases(OraclePhased):
    """It eliminates after every sweep of a phase."""

    def choose(self, t):
        if not self.sweep:
            self.eliminate()
            self.filling = [arm for arm in self.filling if arm in self.alive]
        return super().choose(t)


DUEL = Scenario(means=(0.9, 0.1), delay=Fixed(0), rounds=30)
WAIT = replace(DUEL, delay=Fixed(1))
LATE = replace(DUEL, delay=Fixed(5))
TRIO = Scenario(means=(0.2, 0.9, 0.4), delay=Loss(0.7), rounds=100)
BRIEF = replace(GEOMETRIC, rounds=80)
PARETO = replace(BRIEF, delay=(Pareto(0.5), Pareto(0.5)))
CUT = replace(DUEL, rounds=DUEL.rounds - 1)
BUGS = [
    pytest.param(DUEL, "ucb1-nolog", partial(oracle, WAIT, OracleUCBNoLog), id="delay-1-for-0"),
    pytest.param(WAIT, "ucb1-nolog", partial(oracle, DUEL, OracleUCBNoLog), id="delay-0-for-1"),
    pytest.param(DUEL, "ucb1-nolog", partial(oracle, DUEL, FirstRewardLost), id="first-reward-lost"),
    pytest.param(DUEL, "thompson", partial(oracle, DUEL, ZerosLost), id="zeros-lost"),
    pytest.param(DUEL, "ucb1", partial(oracle, DUEL, NarrowUCB), id="ucb-radius"),
    pytest.param(BRIEF, "elimination", partial(oracle, BRIEF, NarrowElimination), id="elimination-radius"),
    pytest.param(TRIO, "phased", partial(oracle, TRIO, SweepingPhases), id="eliminates-within-phases"),
    pytest.param(BRIEF, "ud-ucb", partial(oracle, BRIEF, OlderPulls), id="pulls-a-round-older"),
    pytest.param(PARETO, "patient", partial(oracle, PARETO, Impatient), id="denominator-without-silence"),
    pytest.param(LATE, "qpm-d", partial(oracle, LATE, OracleUCB), id="no-queue-before-the-base"),
    pytest.param(DUEL, "elimination-log", partial(oracle, CUT, OracleEliminationLog), id="last-round-uncounted"),
]

# --- The comparison -------------------------------------------------------------------------------------------------


def package(scenario, policy, replications):
    return simulate(scenario, [named(policy)], replications=replications, seed=1, workers=1).finals(policy)


def replications_of(regret, count):
    rng = np.random.default_rng(2)
    return np.array([regret(rng) for _ in range(count)])


def agree(one, other):
    """Whether the means are equal but for chance: were all equal, one run of this file in a thousand would say no."""
    # Simulators that agree have one variance, so it is pooled: rare events may be missing from the smaller sample.
    freedom = len(one) + len(other) - 2
    variance = ((len(one) - 1) * one.var(ddof=1) + (len(other) - 1) * other.var(ddof=1)) / freedom
    comparisons = len(SHORT) + len(CLEAR) + len(BUGS)
    reach = stdtrit(freedom, 1 - 1e-3 / (2 * comparisons)) * math.sqrt(variance * (1 / len(one) + 1 / len(other)))
    return abs(one.mean() - other.mean()) <= max(1e-9, reach)


@pytest.mark.parametrize(("scenario", "policy"), SHORT)
def test_every_experiment_of_the_paper_agrees_with_the_oracle(scenario, policy):
    """Each policy has the oracle's mean regret in each experiment, shortened."""
    assert agree(package(scenario, policy, 300), replications_of(partial(oracle, scenario, ORACLES[policy]), 200))


@pytest.mark.parametrize(("scenario", "policy"), CLEAR)
def test_every_policy_agrees_with_the_oracle_where_it_can_learn(scenario, policy):
    """Each policy has the oracle's mean regret also in worlds where it soon settles on the best arm."""
    assert agree(package(scenario, policy, 800), replications_of(partial(oracle, scenario, ORACLES[policy]), 500))


@pytest.mark.parametrize(("scenario", "policy", "bugged"), BUGS)
def test_a_bug_planted_in_the_oracle_is_caught(scenario, policy, bugged):
    """The comparison can fail: it passes the oracle and catches the same oracle with one small mistake."""
    regret = package(scenario, policy, 1000)
    assert agree(regret, replications_of(partial(oracle, scenario, ORACLES[policy]), 1200))
    assert not agree(regret, replications_of(bugged, 1200))

"""The package beside an oracle: a second simulator, in plain Python and independent of the first.

The oracle keeps its calendar in a heap, draws delays by direct sampling and recomputes every index in every round. Both
simulators draw worlds of their own, so what is compared is the mean of the final regret.
"""

import math
from collections import deque
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush

import numpy as np
import pytest
from scipy.special import stdtrit

from belated import (
    Between,
    Fixed,
    Geometric,
    Loss,
    Pareto,
    Queue,
    RewardDependent,
    Scenario,
    Uniform,
    simulate,
)
from belated.paper import EXPERIMENTS
from belated.policies import named

# --- The oracle's worlds --------------------------------------------------------------------------------------------


def drawn(value, rng):
    return rng.uniform(value.low, value.high) if isinstance(value, Between) else value


def instance(scenario, rng):
    if isinstance(scenario.means, Between):
        means = [drawn(scenario.means, rng) for _ in range(scenario.arms)]
    else:
        means = list(scenario.means)
    laws = list(scenario.delay) if isinstance(scenario.delay, tuple) else [scenario.delay] * len(means)
    if scenario.best_delay is not None:
        laws[means.index(max(means))] = scenario.best_delay
    return means, [Loss(drawn(law.p, rng)) if isinstance(law, Loss) else law for law in laws]


def delay(law, reward, t, arm, busy, rng):
    """`busy[arm]` is when the queue of that arm will have served all that is in it now."""
    match law:
        case Fixed():
            return law.rounds
        case Uniform():
            return rng.integers(law.low, law.high, endpoint=True)
        case Geometric():
            return rng.geometric(law.p)
        case Pareto():
            return math.floor(1 + rng.pareto(law.alpha))  # NumPy's is Lomax
        case Loss():
            return 0 if rng.random() < law.p else math.inf
        case RewardDependent():
            return delay(law.success if reward else law.failure, reward, t, arm, busy, rng)
        case Queue():
            start = max(t, busy[arm])
            busy[arm] = start + rng.exponential(1 / law.rate)
            return math.ceil(start - t)


def oracle(scenario, policy, rng):
    """The final regret of one replication: each round the policy acts, then learns what has come due."""
    means, laws = instance(scenario, rng)
    player = policy(laws, scenario.rounds, rng)
    calendar, busy, regret = [], [0.0] * len(means), 0.0
    for t in range(1, scenario.rounds + 1):
        arm = player.choose(t)
        regret += max(means) - means[arm]
        reward = int(rng.random() < means[arm])
        due = t + delay(laws[arm], reward, t, arm, busy, rng)
        if due < math.inf:
            heappush(calendar, (due, t, arm, reward))
        while calendar and calendar[0][0] <= t:
            _, _, arm, reward = heappop(calendar)
            player.learn(arm, reward)
    return regret


# --- The oracle's policies ------------------------------------------------------------------------------------------


class Player:
    """S and n are the sum and the number of the revealed rewards of each arm."""

    def __init__(self, laws, rounds, rng):
        self.laws, self.rounds, self.rng = laws, rounds, rng
        self.arms = range(len(laws))
        self.S, self.n = [0] * len(laws), [0] * len(laws)

    def learn(self, arm, reward):
        self.S[arm] += reward
        self.n[arm] += 1

    def best(self, index):
        top = max(index)
        largest = [arm for arm in self.arms if index[arm] == top]
        return largest[0] if len(largest) == 1 else largest[self.rng.integers(len(largest))]


class OracleSplit(Player):
    def choose(self, t):
        return self.rng.integers(len(self.arms))


class OracleThompson(Player):
    def choose(self, t):
        return self.best([self.rng.beta(S + 1, n - S + 1) for S, n in zip(self.S, self.n, strict=True)])


class OracleUCB(Player):
    log, scale = True, 2

    def choose(self, t):
        factor = self.scale * (math.log(t) if self.log else 1)
        pairs = zip(self.S, self.n, strict=True)
        return self.best([S / n + math.sqrt(factor / n) if n else math.inf for S, n in pairs])


class OracleUCBNoLog(OracleUCB):
    log = False


class OracleElimination(Player):
    log, scale = False, 2

    def __init__(self, *world):
        super().__init__(*world)
        self.alive, self.sweep = list(self.arms), []

    def choose(self, t):
        if not self.sweep:
            self.eliminate()
            self.sweep = list(self.alive)
        return self.sweep.pop(0)

    def eliminate(self):
        factor = self.scale * (math.log(self.rounds) if self.log else 1)
        radius = [math.sqrt(factor / max(n, 1)) for n in self.n]
        mean = [S / max(n, 1) for S, n in zip(self.S, self.n, strict=True)]
        bar = max(mean[arm] - radius[arm] for arm in self.alive)
        self.alive = [arm for arm in self.alive if mean[arm] + radius[arm] >= bar]


class OracleEliminationLog(OracleElimination):
    log = True


class OraclePhased(OracleElimination):
    """`filling` are the arms short of this phase's quota, each of which is pulled at least once a phase."""

    c, growth = 1, 2

    def __init__(self, *world):
        super().__init__(*world)
        self.phase, self.filling, self.quota = 0, [], 0

    def choose(self, t):
        if not self.sweep:
            self.filling = [arm for arm in self.filling if self.n[arm] < self.quota]
            if not self.filling:
                self.eliminate()
                self.filling = list(self.alive)
                self.quota = self.c * (math.log(self.rounds) if self.log else 1) * self.growth**self.phase
                self.phase += 1
            self.sweep = list(self.filling)
        return self.sweep.pop(0)


class OraclePhasedTheory(OraclePhased):
    log, c, growth = True, 16, 4


class OraclePatient(Player):
    """Its n counts pulls, so a reward that is still out counts as a zero."""

    def choose(self, t):
        arm = t - 1 if t <= len(self.arms) else self.best([self.index(arm) for arm in self.arms])
        self.n[arm] += 1
        return arm

    def index(self, arm):
        m, alpha = self.n[arm], min(law.alpha for law in self.laws)
        log = math.log(2 * len(self.arms) * self.rounds**3)
        return self.S[arm] / m + math.sqrt(2 * log / m) + 2 * m ** -min(alpha, 0.5)

    def learn(self, arm, reward):
        self.S[arm] += reward


class OracleUDUCB(Player):
    """For geometric delays; each pull counts by the chance that its reward has been revealed by now."""

    lag = 1  # the pull of the last round has age 0

    def __init__(self, *world):
        super().__init__(*world)
        self.pulls = [[] for _ in self.arms]
        self.tau = [[1 - (1 - law.p) ** age for age in range(self.rounds)] for law in self.laws]

    def choose(self, t):
        arm = self.best([self.index(arm, t) for arm in self.arms])
        self.pulls[arm].append(t)
        return arm

    def index(self, arm, t):
        m, trials = len(self.pulls[arm]), sum(self.tau[arm][t - self.lag - s] for s in self.pulls[arm])
        if trials == 0:
            return math.inf
        return self.S[arm] / trials + math.sqrt(m / trials) * math.sqrt(math.log(t) / (2 * trials))


class OracleQPMD(Player):
    """Around UCB1, whose rounds are the rewards that it has been fed."""

    def __init__(self, *world):
        super().__init__(*world)
        self.base, self.round = OracleUCB(*world), 1
        self.queues = [deque() for _ in self.arms]
        self.wanted = self.base.choose(self.round)

    def choose(self, t):
        while self.queues[self.wanted]:
            self.base.learn(self.wanted, self.queues[self.wanted].popleft())
            self.round += 1
            self.wanted = self.base.choose(self.round)
        return self.wanted

    def learn(self, arm, reward):
        self.queues[arm].append(reward)


ORACLES = {
    "elimination": OracleElimination,
    "elimination-log": OracleEliminationLog,
    "patient": OraclePatient,
    "phased": OraclePhased,
    "phased-theory": OraclePhasedTheory,
    "qpm-d": OracleQPMD,
    "split": OracleSplit,
    "thompson": OracleThompson,
    "ucb1": OracleUCB,
    "ucb1-nolog": OracleUCBNoLog,
    "ud-ucb": OracleUDUCB,
}

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
    return replace(scenario, delay=laws, rounds=200, arms=min(scenario.arms, 5))


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

"""The oracle: a second simulator, in plain Python and independent of the package's.

It keeps its calendar in a heap, draws delays by direct sampling and recomputes every index in every round.
"""

import math
from collections import deque
from heapq import heappop, heappush

from belated import (
    Between,
    Conversions,
    Fixed,
    Geometric,
    Loss,
    Pareto,
    Queue,
    RewardDependent,
    Uniform,
)

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
        case Conversions():
            return min(delay(law.success, reward, t, arm, busy, rng) if reward else math.inf, law.window + 0.5)
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
        wait = delay(laws[arm], reward, t, arm, busy, rng)
        if wait < math.inf and wait != int(wait):  # a window has closed over it
            wait, reward = int(wait), 0
        if wait < math.inf:
            heappush(calendar, (t + wait, t, arm, reward))
        while calendar and calendar[0][0] <= t:
            _, s, arm, reward = heappop(calendar)
            player.hear(t, s, arm, reward)
    return regret


# --- The oracle's policies ------------------------------------------------------------------------------------------


class Player:
    """S and n are the sum and the number of the revealed rewards of each arm."""

    def __init__(self, laws, rounds, rng):
        self.laws, self.rounds, self.rng = laws, rounds, rng
        self.arms = range(len(laws))
        self.S, self.n = [0] * len(laws), [0] * len(laws)

    def hear(self, t, s, arm, reward):
        self.learn(arm, reward)

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

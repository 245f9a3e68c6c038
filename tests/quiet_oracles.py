"""Oracles of the policies that read the silence: each keeps every pull and works all out again from these."""

import math
from collections import namedtuple

import numpy as np

from belated import Conversions, RewardDependent
from oracle import Player

Pull = namedtuple("Pull", "round arm heard reward")


class Remembering(Player):
    """`pulls` are all pulls so far, by their round; those not heard of have `heard` and `reward` None."""

    def __init__(self, *world):
        super().__init__(*world)
        self.pulls = {}
        self.window = max((law.window for law in self.laws if isinstance(law, Conversions)), default=None)

    def choose(self, t):
        arm = self.best([self.draw(arm, t) for arm in self.arms])
        self.pulls[t] = Pull(t, arm, None, None)
        return arm

    def hear(self, t, s, arm, reward):
        self.pulls[s] = Pull(s, arm, t, reward)

    def of(self, arm):
        return [pull for pull in self.pulls.values() if pull.arm == arm]


class OracleWait(Remembering):
    """What happened in the last `window` rounds is not looked at."""

    def draw(self, arm, t):
        ripe = [pull.reward for pull in self.of(arm) if t - 1 - pull.round >= self.window and pull.heard is not None]
        return self.rng.beta(1 + sum(ripe), 1 + len(ripe) - sum(ripe))


class OracleSilenceIsFailure(Remembering):
    def draw(self, arm, t):
        ones = sum(pull.reward or 0 for pull in self.of(arm))
        return self.rng.beta(1 + ones, 1 + len(self.of(arm)) - ones)


class OracleKnown(Remembering):
    """For conversions with geometric delays: each pull counts by the chance that it would have converted by now."""

    lag = 1

    def draw(self, arm, t):
        law, ones = self.laws[arm], sum(pull.reward or 0 for pull in self.of(arm))
        ages = [min(t - self.lag - pull.round, law.window) for pull in self.of(arm)]
        trials = sum(1 - (1 - law.success.p) ** age for age in ages)
        return self.rng.beta(1 + ones, 1 + max(0, trials - ones))


class OracleOptimistic(Remembering):
    def __init__(self, *world):
        super().__init__(*world)
        self.alive, self.sweep = list(self.arms), []

    def choose(self, t):
        if not self.sweep:
            bar = max(self.bounds(arm)[0] for arm in self.alive)
            self.alive = [arm for arm in self.alive if self.bounds(arm)[1] >= bar]
            self.sweep = list(self.alive)
        arm = self.sweep.pop(0)
        self.pulls[t] = Pull(t, arm, None, None)
        return arm

    def bounds(self, arm):
        rewards = [pull.reward for pull in self.of(arm)]
        m = max(1, len(rewards))
        low = sum(reward or 0 for reward in rewards) / m - math.sqrt(2 / m)
        high = sum(1 if reward is None else reward for reward in rewards) / m + math.sqrt(2 / m)
        return low, high


class OracleExact(Remembering):
    """The posterior of each arm on a fine grid of theta, from the exact age of each pull."""

    theta = (np.arange(400) + 0.5) / 400
    lag = 1

    def draw(self, arm, t):
        log = np.zeros(len(self.theta))
        for pull in self.of(arm):
            if pull.heard is None or (isinstance(self.laws[arm], Conversions) and not pull.reward):
                one, zero = self.come(arm, t - self.lag - pull.round)
                log += np.log(self.theta * (1 - one) + (1 - self.theta) * (1 - zero))
            else:
                log += np.log(self.theta if pull.reward else 1 - self.theta)
        density = np.exp(log - log.max())
        cell = self.rng.choice(len(density), p=density / density.sum())
        return self.theta[cell] + (self.rng.random() - 0.5) / len(self.theta)

    def come(self, arm, age):
        """The chances that a one and a zero would have come by that age."""
        law = self.laws[arm]
        if isinstance(law, Conversions):
            return law.success.cdf(min(age, law.window)), 0.0
        both = (law.success, law.failure) if isinstance(law, RewardDependent) else (law, law)
        return tuple(each.cdf(age) for each in both)


class OracleLearned(Remembering):
    """It reads every `width` rounds; what is heard of a pull that has been read counts at once."""

    blocks, doubt = 50, 5

    def __init__(self, *world):
        super().__init__(*world)
        self.prepare()

    def prepare(self):
        self.width = max(1, math.ceil(self.window / self.blocks))
        self.bins = math.ceil(self.window / self.width)
        self.curves, self.trust = {arm: [0.0] * self.bins for arm in self.arms}, [0.0 for _ in self.arms]
        self.read = 0

    def draw(self, arm, t):
        return self.rng.beta(*self.posterior(arm, t))

    def posterior(self, arm, t):
        if (t - 1) // self.width > self.read:
            self.read = (t - 1) // self.width
            self.learn_curves()
        ones, trials = 0.0, 0.0
        for pull in self.of(arm):
            age = self.age(pull)
            if age < 0:  # it has not been read
                continue
            weight = 1.0 if age >= self.bins else self.trust[arm]
            ones += weight * (pull.reward or 0)
            trials += weight * (1.0 if age >= self.bins else self.half(arm, age))
        return 1 + ones, 1 + max(0.0, trials - ones)

    def half(self, arm, age):
        """Of a pull whose age is somewhere in that bin."""
        curve = self.curves[arm]
        return ((curve[age - 1] if age > 0 else 0.0) + curve[age]) / 2

    def age(self, pull):
        """In bins, when last read: how many of them a pull of that block has seen whole."""
        return self.read - 1 - (pull.round - 1) // self.width

    def learn_curves(self):
        seen = {arm: self.usable(arm) for arm in self.arms}
        everyone = [pair for pairs in seen.values() for pair in pairs]
        for arm in self.arms:
            common = 1 / max(1.0, self.z(seen[arm], everyone) ** 2)
            pooled, own = self.truncated(everyone), self.truncated(seen[arm])
            self.curves[arm] = [common * one + (1 - common) * other for one, other in zip(pooled, own, strict=True)]
            trusts = [len(pairs) / (len(pairs) + self.doubt) if pairs else 0.0 for pairs in (everyone, seen[arm])]
            self.trust[arm] = common * trusts[0] + (1 - common) * trusts[1]

    def usable(self, arm):
        """Lag and age, in bins, of the conversions whose lag is in a bin that has been seen whole.

        A pull whose window has closed is a bin older than the last.
        """
        pairs = []
        for pull in self.of(arm):
            if pull.reward:
                lag, age = min((pull.heard - pull.round) // self.width, self.bins - 1), self.age(pull)
                if lag < min(age, self.bins):
                    pairs.append((lag, min(age, self.bins)))
        return pairs

    def truncated(self, pairs):
        """P(lag <= y | lag < bins), by the definition of the product limit."""
        curve = []
        for y in range(self.bins):
            left = 1.0
            for z in range(y + 1, self.bins):
                risk = sum(lag <= z < age for lag, age in pairs)
                left *= 1 - sum(lag == z for lag, _ in pairs) / risk if risk else 1.0
            curve.append(left)
        return curve

    def z(self, mine, everyone):
        """The log-rank statistic: what came in each bin, less what would have come in proportion to those at risk."""
        excess = variance = 0.0
        for y in range(self.bins):
            n, risk = (sum(lag <= y < age for lag, age in pairs) for pairs in (mine, everyone))
            came, all_came = (sum(lag == y for lag, _ in pairs) for pairs in (mine, everyone))
            if risk > 1:
                excess += came - n * all_came / risk
                variance += n * (risk - n) * all_came * (risk - all_came) / (risk**2 * (risk - 1))
        return excess / math.sqrt(variance) if variance else 0.0


QUIET = {
    "elimination-optimistic": OracleOptimistic,
    "silence-is-failure": OracleSilenceIsFailure,
    "thompson-silence": OracleLearned,
    "thompson-silence-exact": OracleExact,
    "thompson-silence-known": OracleKnown,
    "wait": OracleWait,
}

"""The loop: one replication, round by round. Plain Python; `kernels` compiles it for each policy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.law import Law
from belated.policies.base import hear


class World(NamedTuple):
    """What a policy meets: the same for every policy of a replication."""

    means: np.ndarray
    best: float  # the largest mean
    binary: bool  # Bernoulli rewards; otherwise uniform around the mean
    delays: Any  # `delays.sample(t, arm, reward, v)`: when a reward is revealed, and as what
    visitors: Any  # the generator of the visitors' two uniforms

    def reward_of(self, arm: int, u: float) -> float:
        mean = float(self.means[arm])
        if self.binary:
            return 1.0 if u < mean else 0.0
        return mean + (2.0 * u - 1.0) * min(mean, 1.0 - mean)


class PlainDelays(NamedTuple):
    """The delays of the arms, by calling their laws as they are."""

    laws: tuple[Law, ...]
    memory: np.ndarray

    def sample(self, t: int, arm: int, reward: float, v: float) -> tuple[float, float]:
        law, memory = self.laws[arm], self.memory[arm]
        revealed = law.revealed(memory, t, reward, v)
        return law.delay(memory, t, reward, v), revealed


class Calendar(NamedTuple):
    """Who is revealed when: for each round a chain of the pulls that fall due in it, oldest first."""

    first: np.ndarray
    last: np.ndarray
    following: np.ndarray
    arm: np.ndarray
    reward: np.ndarray

    def put(self, t: int, arm: int, reward: float, due: int) -> None:
        self.arm[t] = arm
        self.reward[t] = reward
        self.following[t] = 0
        if self.first[due] == 0:
            self.first[due] = t
        else:
            self.following[self.last[due]] = t
        self.last[due] = t


def new_calendar(rounds: int) -> Calendar:
    """An empty calendar; only `first` must be cleared to use it again."""
    size = rounds + 1
    first, last, following, arm = (np.zeros(size, np.int32) for _ in range(4))
    return Calendar(first, last, following, arm, np.zeros(size))


class Trace(NamedTuple):
    """What a replication leaves."""

    checkpoints: np.ndarray  # the rounds at which regret is noted; the last one is the horizon
    regret: np.ndarray  # cumulative pseudo-regret after each of them
    pulls: np.ndarray  # of each arm
    fates: np.ndarray  # rewards revealed, pending at the horizon, never to come


def play(state: Any, world: World, calendar: Calendar, trace: Trace, stop: np.ndarray, rng: Generator) -> None:
    """Rounds 1 to the last checkpoint: choose, send, schedule the reward, learn what falls due (the paper's Model 1).

    A reward with delay 0 is learned in its own round, after the choice. It ends early once `stop[0]` is set.
    """
    rounds = trace.checkpoints[-1]
    regret = 0.0
    mark = 0
    for t in range(1, rounds + 1):
        arm = state.choose(t, rng)
        state.sent(t, arm)
        trace.pulls[arm] += 1
        regret += world.best - world.means[arm]

        u = world.visitors.random()
        v = world.visitors.random()
        reward = world.reward_of(arm, u)
        delay, revealed = world.delays.sample(t, arm, reward, v)
        due = t + delay
        if due <= rounds:
            calendar.put(t, arm, revealed, int(due))
        elif due < np.inf:
            trace.fates[1] += 1
        else:
            trace.fates[2] += 1

        s = calendar.first[t]
        while s > 0:
            hear(state, t, s, calendar.arm[s], calendar.reward[s], rng)
            trace.fates[0] += 1
            s = calendar.following[s]

        if t == trace.checkpoints[mark]:
            trace.regret[mark] = regret
            mark += 1
            if stop[0]:
                return

"""A policy of one's own: epsilon-greedy, compiled like the built-in ones."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from belated import Geometric, Policy, Scenario, Thompson, simulate


class GreedyState(NamedTuple):
    """What it remembers: sums and counts of the rewards revealed."""

    total: np.ndarray
    seen: np.ndarray
    epsilon: float

    def choose(self, t, rng):
        if rng.random() < self.epsilon:
            return int(rng.random() * len(self.total))
        return int(np.argmax(self.total / np.maximum(self.seen, 1)))

    def sent(self, t, arm):
        pass

    def learn(self, arm, reward, rng):
        self.total[arm] += reward
        self.seen[arm] += 1


@dataclass(frozen=True)
class Greedy(Policy):
    """Pull the best arm so far, and with probability `epsilon` any arm."""

    name = "greedy"
    epsilon: float = 0.1

    def start(self, arms, rounds):
        return GreedyState(np.zeros(arms), np.zeros(arms), self.epsilon)


if __name__ == "__main__":
    world = Scenario(means=[0.5, 0.4, 0.3], delay=Geometric(0.01), rounds=10_000)
    result = simulate(world, [Thompson(), Greedy(), Greedy(epsilon=0.02)], replications=100, seed=1)
    for row in result.summary():
        print(f"{row['policy']:22} {row['regret']:7.1f} ± {row['se']:.1f}")

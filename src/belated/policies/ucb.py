"""Delayed-UCB1: the upper confidence bound of the observations revealed so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.inputs import flag
from belated.policies.base import Policy, tied_argmax


class UCB1State(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray  # sum of revealed rewards, S_i
    seen: np.ndarray  # revealed rewards, n_i
    mean: np.ndarray
    width: np.ndarray  # 1 / sqrt(n_i)
    scores: np.ndarray  # scratch of choose
    log: bool

    def choose(self, t: int, rng: Generator) -> int:
        scale = math.sqrt(2.0 * math.log(t)) if self.log else math.sqrt(2.0)
        for arm in range(len(self.scores)):
            self.scores[arm] = self.mean[arm] + scale * self.width[arm] if self.seen[arm] > 0.0 else math.inf
        return tied_argmax(self.scores, rng)

    def sent(self, t: int, arm: int) -> None:
        pass

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        self.seen[arm] += 1.0
        self.mean[arm] = self.total[arm] / self.seen[arm]
        self.width[arm] = 1.0 / math.sqrt(self.seen[arm])


@dataclass(frozen=True)
class UCB1(Policy):
    """Delayed-UCB1: UCB1 on the rewards revealed so far.

    Pull the largest mean_i + sqrt(2 log t / n_i), n_i the rewards revealed; unseen arms first, ties at random. Joulani,
    György & Szepesvári (2013). Without `log` the radius is sqrt(2 / n_i), as a caption of the paper says.
    """

    name: ClassVar[str] = "ucb1"

    log: bool = True

    def __post_init__(self) -> None:
        flag("policy.log", self.log)

    def start(self, arms: int, rounds: int) -> UCB1State:
        return UCB1State(*(np.zeros(arms) for _ in range(5)), self.log)  # type: ignore[arg-type, call-arg]

    def resumed(self, total: np.ndarray, seen: np.ndarray) -> UCB1State:
        some = np.maximum(seen, 1.0)
        return UCB1State(total, seen, total / some, 1.0 / np.sqrt(some), np.zeros(len(seen)), self.log)

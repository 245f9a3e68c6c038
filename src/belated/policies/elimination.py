"""Successive elimination with delays: the paper's Algorithm 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.inputs import flag
from belated.marks import compiled
from belated.policies.base import Policy


@compiled
def radius(scale: float, count: float) -> float:
    """Half the width of the confidence interval after `count` observations."""
    return scale / math.sqrt(max(count, 1.0))


@compiled
def mean(total: float, count: float) -> float:
    """The mean of the observations, 0 without any."""
    return total / max(count, 1.0)


@compiled
def highest_lower_bound(alive: Any, total: Any, count: Any, scale: float) -> float:
    """Max over alive j of LCB_j: an arm whose upper bound is below it is eliminated."""
    highest = -math.inf
    for arm in range(len(alive)):
        if alive[arm]:
            highest = max(highest, mean(total[arm], count[arm]) - radius(scale, count[arm]))
    return highest


@compiled
def stays(total: float, count: float, scale: float, bound: float) -> bool:
    """Not (UCB_i < LCB_j for some alive j), given the highest LCB."""
    return mean(total, count) + radius(scale, count) >= bound


class EliminationState(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray
    seen: np.ndarray
    alive: np.ndarray
    last: np.ndarray  # [0]: the arm pulled last; the next sweep begins after the last alive arm
    scale: float  # the radius is scale / sqrt(max(n_i, 1))

    def choose(self, t: int, rng: Generator) -> int:
        for arm in range(self.last[0] + 1, len(self.alive)):
            if self.alive[arm]:
                return arm
        # The sweep is over: the first arm of the next one is the first that is not eliminated now.
        bound = highest_lower_bound(self.alive, self.total, self.seen, self.scale)
        for arm in range(len(self.alive)):
            if self.alive[arm] and stays(self.total[arm], self.seen[arm], self.scale, bound):
                return arm
        return 0

    def sent(self, t: int, arm: int) -> None:
        if arm <= self.last[0]:  # a new sweep: eliminate, on what `choose` has just seen
            bound = highest_lower_bound(self.alive, self.total, self.seen, self.scale)
            for other in range(len(self.alive)):
                if self.alive[other] and not stays(self.total[other], self.seen[other], self.scale, bound):
                    self.alive[other] = False
        self.last[0] = arm

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        self.seen[arm] += 1.0


@dataclass(frozen=True)
class SuccessiveElimination(Policy):
    """Successive elimination with delays, the paper's Algorithm 2.

    Sweep the arms still alive once each, then drop every arm whose UCB is below another's LCB; dropped is dropped.
    Lancewicki et al. (2021), the paper's Algorithm 2. The radius is sqrt(2 / max(n, 1)), as printed there and used in
    the experiments, or with `log` sqrt(2 log T / max(n, 1)), as the theorem needs.
    """

    name: ClassVar[str] = "elimination"

    log: bool = False

    def __post_init__(self) -> None:
        flag("policy.log", self.log)

    def start(self, arms: int, rounds: int) -> EliminationState:
        scale = math.sqrt(2.0 * math.log(rounds)) if self.log else math.sqrt(2.0)
        return EliminationState(np.zeros(arms), np.zeros(arms), np.ones(arms, bool), np.full(1, -1), scale)

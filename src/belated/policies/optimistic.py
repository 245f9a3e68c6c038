"""Successive elimination with bounds that hold however delays depend on rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.inputs import flag
from belated.marks import compiled
from belated.policies.base import Policy
from belated.policies.elimination import radius


@compiled
def highest_certain(alive: Any, total: Any, pulls: Any, scale: float) -> float:
    """Max over alive j of LCB_j, in which all that is pending is taken for zeros."""
    highest = -math.inf
    for arm in range(len(alive)):
        if alive[arm]:
            m = max(pulls[arm], 1.0)
            highest = max(highest, total[arm] / m - radius(scale, m))
    return highest


@compiled
def may_be_best(total: float, seen: float, pulls: float, scale: float, bound: float) -> bool:
    """Not (UCB_i < LCB_j for some alive j); in UCB_i all that is pending is taken for ones."""
    m = max(pulls, 1.0)
    return (total + pulls - seen) / m + radius(scale, m) >= bound


class OptimisticState(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray
    seen: np.ndarray
    pulls: np.ndarray
    alive: np.ndarray
    last: np.ndarray  # [0]: the arm pulled last; the next sweep begins after the last alive arm
    scale: float

    def choose(self, t: int, rng: Generator) -> int:
        for arm in range(self.last[0] + 1, len(self.alive)):
            if self.alive[arm]:
                return arm
        bound = highest_certain(self.alive, self.total, self.pulls, self.scale)
        for arm in range(len(self.alive)):
            if self.alive[arm] and may_be_best(self.total[arm], self.seen[arm], self.pulls[arm], self.scale, bound):
                return arm
        return 0

    def sent(self, t: int, arm: int) -> None:
        if arm <= self.last[0]:  # a new sweep: eliminate, on what `choose` has just seen
            bound = highest_certain(self.alive, self.total, self.pulls, self.scale)
            for other in range(len(self.alive)):
                if not may_be_best(self.total[other], self.seen[other], self.pulls[other], self.scale, bound):
                    self.alive[other] = False
        self.last[0] = arm
        self.pulls[arm] += 1.0

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        self.seen[arm] += 1.0


@dataclass(frozen=True)
class OptimisticElimination(Policy):
    """Elimination by bounds that hold however delays depend on rewards.

    Sweep the arms still alive; drop every arm whose UCB is below another's LCB: UCB_i = (S_i + m_i - n_i) / m_i + r,
    LCB_i = S_i / m_i - r, what is pending being a one in the first and a zero in the second. Lancewicki et al. (2021).
    The radius r is sqrt(2 / m_i), or with `log` sqrt(2 log T / m_i), as the theory needs.
    """

    name: ClassVar[str] = "elimination-optimistic"

    log: bool = False

    def __post_init__(self) -> None:
        flag("policy.log", self.log)

    def start(self, arms: int, rounds: int) -> OptimisticState:
        scale = math.sqrt(2.0 * math.log(rounds)) if self.log else math.sqrt(2.0)
        zeros = np.zeros((3, arms))
        return OptimisticState(zeros[0], zeros[1], zeros[2], np.ones(arms, bool), np.full(1, -1), scale)

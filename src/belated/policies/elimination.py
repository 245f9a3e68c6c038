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
def bounds(total: float, count: float, scale: float) -> tuple[float, float]:
    """LCB_i and UCB_i."""
    middle, half = mean(total, count), radius(scale, count)
    return middle - half, middle + half


@compiled
def highest_lower_bound(alive: Any, total: Any, count: Any, scale: float) -> float:
    """Max over alive j of LCB_j: an arm whose upper bound is below it is eliminated."""
    highest = -math.inf
    for arm in range(len(alive)):
        if alive[arm]:
            highest = max(highest, bounds(total[arm], count[arm], scale)[0])
    return highest


@compiled
def stays(total: float, count: float, scale: float, bound: float) -> bool:
    """Not (UCB_i < LCB_j for some alive j), given the highest LCB."""
    return bounds(total, count, scale)[1] >= bound


@compiled
def link(following: Any, members: Any) -> None:
    """Let each place point to the first member from it on, or, as the place behind the last arm does, to that place."""
    for arm in range(len(members) - 1, -1, -1):
        following[arm] = arm if members[arm] else following[arm + 1]


class EliminationState(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray
    seen: np.ndarray
    alive: np.ndarray
    following: np.ndarray  # the first alive arm from each place on
    last: np.ndarray  # [0]: the arm pulled last; the next sweep begins after the last alive arm
    extremes: np.ndarray  # no alive arm's LCB is above [0] now, and none's UCB below [1]
    scale: float  # the radius is scale / sqrt(max(n_i, 1))

    def choose(self, t: int, rng: Generator) -> int:
        arm = self.following[self.last[0] + 1]
        if arm < len(self.alive):
            return int(arm)
        # The sweep is over. If no UCB can be below an LCB, every arm stays, and the first begins the next one …
        if self.extremes[1] >= self.extremes[0]:
            return int(self.following[0])
        # … and otherwise the first that is not eliminated now.
        bound = highest_lower_bound(self.alive, self.total, self.seen, self.scale)
        for arm in range(len(self.alive)):
            if self.alive[arm] and stays(self.total[arm], self.seen[arm], self.scale, bound):
                return arm
        return 0

    def sent(self, t: int, arm: int) -> None:
        if arm <= self.last[0] and self.extremes[1] < self.extremes[0]:  # a new sweep, perhaps of fewer arms
            eliminate(self)
        self.last[0] = arm

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        self.seen[arm] += 1.0
        if self.alive[arm]:
            lower, upper = bounds(self.total[arm], self.seen[arm], self.scale)
            self.extremes[0] = max(self.extremes[0], lower)
            self.extremes[1] = min(self.extremes[1], upper)


@compiled
def eliminate(state: Any) -> None:
    """Drop every arm whose UCB is below another's LCB, and note the extremes of those left."""
    bound = highest_lower_bound(state.alive, state.total, state.seen, state.scale)
    state.extremes[0], state.extremes[1] = bound, math.inf
    for arm in range(len(state.alive)):
        if state.alive[arm]:
            upper = bounds(state.total[arm], state.seen[arm], state.scale)[1]
            state.alive[arm] = upper >= bound
            if state.alive[arm]:
                state.extremes[1] = min(state.extremes[1], upper)
    link(state.following, state.alive)


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
        return EliminationState(
            total=np.zeros(arms),
            seen=np.zeros(arms),
            alive=np.ones(arms, bool),
            following=np.arange(arms + 1),
            last=np.full(1, -1),
            extremes=np.array([-scale, scale]),
            scale=scale,
        )

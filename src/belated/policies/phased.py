"""Phased successive elimination: balances the observed counts of the arms within each phase."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.inputs import InvalidInput, flag, number
from belated.marks import compiled
from belated.policies.base import Policy
from belated.policies.elimination import highest_lower_bound, link, stays


@compiled
def begin_sweep(state: Any) -> None:
    """Go on with the arms that still miss observations; without any, eliminate, and begin a phase with those left."""
    before, left, arm = 0, 0, state.following[0]
    while arm < len(state.alive):
        state.filling[arm] = state.seen[arm] < state.quota[0]
        before, left, arm = before + 1, left + state.filling[arm], state.following[arm + 1]
    if left == 0:
        bound = highest_lower_bound(state.alive, state.total, state.seen, state.scale)
        for arm in range(len(state.alive)):
            if not stays(state.total[arm], state.seen[arm], state.scale, bound):
                state.alive[arm] = False
            state.filling[arm] = state.alive[arm]
        state.quota[0] *= state.growth
    if left < before:
        link(state.following, state.filling)


class PhasedState(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray
    seen: np.ndarray
    alive: np.ndarray
    filling: np.ndarray  # the arms of this phase whose quota is not yet filled
    following: np.ndarray  # the first of these from each place on
    last: np.ndarray  # [0]: the arm pulled last
    quota: np.ndarray  # [0]: the observations each arm must reach in this phase
    growth: float
    scale: float

    def choose(self, t: int, rng: Generator) -> int:
        arm = self.following[self.last[0] + 1]
        if arm < len(self.alive):
            return int(arm)
        # The sweep is over. Its arms that still miss observations make the next one …
        arm = self.following[0]
        while arm < len(self.alive):
            if self.seen[arm] < self.quota[0]:
                return int(arm)
            arm = self.following[arm + 1]
        # … or, if none does, the phase is over, and the arms not eliminated now begin the next.
        bound = highest_lower_bound(self.alive, self.total, self.seen, self.scale)
        for arm in range(len(self.alive)):
            if self.alive[arm] and stays(self.total[arm], self.seen[arm], self.scale, bound):
                return arm
        return 0

    def sent(self, t: int, arm: int) -> None:
        if arm <= self.last[0] or not self.filling[arm]:  # a new sweep, perhaps of a new phase, as `choose` has seen
            begin_sweep(self)
        self.last[0] = arm

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        self.seen[arm] += 1.0


@dataclass(frozen=True)
class PhasedElimination(Policy):
    """Phased successive elimination, made for packet loss.

    In phase l, pull each alive arm until it has c growth^l observations (times log T with `log`), then eliminate.
    Lancewicki et al. (2021). Their theory has c = 16, growth = 4 and logs, in the quota and in
    the radius sqrt(2 log T / n); with those the first phase outlasts the paper's horizon. The default is a practical
    preset: doubling quotas and the radius sqrt(2 / n) of Algorithm 2. An arm that never reports never fills its quota.
    """

    name: ClassVar[str] = "phased"

    c: float = 1.0
    growth: float = 2.0
    first_phase: int = 0
    log: bool = False

    def __post_init__(self) -> None:
        number("policy.c", self.c, above=0.0)
        number("policy.growth", self.growth, above=1.0)
        number("policy.first_phase", self.first_phase, low=0, whole=True)
        flag("policy.log", self.log)
        if self.first_phase * math.log(self.growth) > 700.0:
            power = f"{self.growth:g}^{self.first_phase:g}"
            raise InvalidInput("policy.first_phase", f"growth^first_phase is too large a number, got {power}")

    def start(self, arms: int, rounds: int) -> PhasedState:
        logarithm = math.log(rounds) if self.log else 1.0
        return PhasedState(
            total=np.zeros(arms),
            seen=np.zeros(arms),
            alive=np.ones(arms, bool),
            filling=np.ones(arms, bool),
            following=np.arange(arms + 1),
            last=np.full(1, -1),
            quota=np.full(1, self.c * logarithm * self.growth**self.first_phase),
            growth=float(self.growth),
            scale=math.sqrt(2.0 * logarithm),
        )

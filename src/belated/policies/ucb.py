"""Delayed-UCB1: the upper confidence bound of the observations revealed so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.inputs import flag
from belated.marks import compiled
from belated.policies.base import Policy, tied_argmax
from belated.policies.lead import AHEAD, Lead, challenge, leads, no_lead


@compiled
def scale_of(t: int, log: bool) -> float:
    """What multiplies 1 / sqrt(n_i) in round t: sqrt(2 log t), or sqrt(2)."""
    return math.sqrt(2.0 * math.log(t)) if log else math.sqrt(2.0)


@compiled
def index_of(state: Any, arm: int, scale: float) -> float:
    """The index of an arm: mean_i + scale / sqrt(n_i), infinite while nothing is revealed."""
    return state.mean[arm] + scale * state.width[arm] if state.seen[arm] > 0.0 else math.inf


@compiled
def compare(state: Any, t: int, rng: Generator) -> int:
    """The arm of the largest index, ties at random; and for how long no other arm can have a larger one."""
    lead, arms = state.scores, len(state.seen)
    lead.since[0], lead.until[0] = t, t + AHEAD
    lead.low[0], lead.high[0] = scale_of(t, state.log), scale_of(t + AHEAD, state.log)
    for arm in range(arms):
        lead.indices[arm] = index_of(state, arm, lead.low[0])
    leader, rival = tied_argmax(lead.indices, rng), -math.inf
    for arm in range(arms):
        if arm != leader:
            rival = max(rival, index_of(state, arm, lead.high[0]))
    lead.leader[0], lead.rival[0] = leader, rival
    return leader


class UCB1State(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray  # sum of revealed rewards, S_i
    seen: np.ndarray  # revealed rewards, n_i
    mean: np.ndarray
    width: np.ndarray  # 1 / sqrt(n_i)
    scores: Lead  # scratch of choose
    log: bool

    def choose(self, t: int, rng: Generator) -> int:
        # Between two rewards an index only grows with log t, so the leader's is at least what it was at `since`.
        leader = self.scores.leader[0]
        if leads(self.scores, t, index_of(self, leader, self.scores.low[0])):
            return int(leader)
        return compare(self, t, rng)

    def sent(self, t: int, arm: int) -> None:
        pass

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        self.seen[arm] += 1.0
        self.mean[arm] = self.total[arm] / self.seen[arm]
        self.width[arm] = 1.0 / math.sqrt(self.seen[arm])
        challenge(self.scores, arm, index_of(self, arm, self.scores.high[0]))


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
        return self.resumed(np.zeros(arms), np.zeros(arms))

    def resumed(self, total: np.ndarray, seen: np.ndarray) -> UCB1State:
        some = np.maximum(seen, 1.0)
        return UCB1State(total, seen, total / some, 1.0 / np.sqrt(some), no_lead(len(seen)), self.log)

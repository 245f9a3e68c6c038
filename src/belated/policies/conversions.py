"""UD-UCB: an upper confidence bound from conversions, with the law of the delay known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.inputs import InvalidInput, flag, number
from belated.law import Law, refuse_unless_known
from belated.marks import compiled
from belated.policies.base import Policy, tied_argmax
from belated.policies.effective import effective_trials
from belated.policies.lead import AHEAD, Lead, challenge, leads, no_lead


@compiled
def poisson_upper(p: float, c: float) -> float:
    """Max {q >= p : p log(p / q) + q - p <= c}, by Newton's method from above."""
    q = p + c + math.sqrt(2.0 * p * c)
    if p <= 0.0:
        return q
    for _ in range(50):
        step = (q - p - p * math.log(q / p) - c) / (1.0 - p / q)
        if not step > 1e-12 * q:
            break
        q -= step
    return q


@compiled
def index_of(state: Any, arm: int, explore: float) -> float:
    """The index of an arm; `explore` is (1 + eps) log t. It falls with N~ and grows with everything else."""
    trials = state.trials.effective[arm]
    if trials <= 0.0:
        return math.inf
    if state.kl:
        return poisson_upper(state.total[arm] / trials, explore / trials)
    width = math.sqrt(state.pulls[arm] / trials) * math.sqrt(explore / (2.0 * trials))
    return float(state.total[arm] / trials + width)


@compiled
def compare(state: Any, t: int, rng: Generator) -> int:
    """The arm of the largest index, ties at random; and for how long no other arm can have a larger one."""
    lead, arms = state.scores, len(state.total)
    lead.since[0], lead.until[0] = t, t + AHEAD
    lead.low[0], lead.high[0] = (1.0 + state.eps) * math.log(t), (1.0 + state.eps) * math.log(t + AHEAD)
    for arm in range(arms):
        lead.indices[arm] = index_of(state, arm, lead.low[0])
    leader, rival = tied_argmax(lead.indices, rng), -math.inf
    for arm in range(arms):
        if arm != leader and not state.kl:
            rival = max(rival, index_of(state, arm, lead.high[0]))
    lead.leader[0], lead.rival[0] = leader, rival
    return leader


class UDUCBState(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray  # conversions seen so far, S_i
    pulls: np.ndarray  # m_i
    trials: Any  # N~_i
    scores: Lead  # scratch of choose
    eps: float
    kl: bool

    def choose(self, t: int, rng: Generator) -> int:
        # N~ never falls. So without news of an arm its index never exceeds what it was with the log t of `until`, and
        # the leader's is at least what it is now with the log t of `since`. Newton's method need not keep such order.
        lead = self.scores
        if not self.kl and leads(lead, t, index_of(self, lead.leader[0], lead.low[0])):
            return int(lead.leader[0])
        return compare(self, t, rng)

    def sent(self, t: int, arm: int) -> None:
        self.pulls[arm] += 1.0
        self.trials.ripen(t, arm)
        challenge(self.scores, arm, math.inf)

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        if arm != self.scores.leader[0] and not self.kl:
            challenge(self.scores, arm, index_of(self, arm, self.scores.high[0]))


@dataclass(frozen=True)
class UDUCB(Policy):
    """UCB from conversions alone, with the law of the delay known.

    Pull the largest S_i / N~_i + sqrt(m_i / N~_i) sqrt((1 + eps) log t / (2 N~_i)), N~ the effective trials.
    Vernade, Cappé & Perchet (2017). With `kl`, the largest q such that N~ d(theta, q) <= (1 + eps) log t, where
    theta = S / N~ and d(p, q) = p log(p / q) + q - p. It knows the law of the delay: `delay`, one law or one an arm;
    without it, it is told the arms' own. Revealed zeros are not used.
    """

    name: ClassVar[str] = "ud-ucb"

    delay: Law | tuple[Law, ...] | None = None
    eps: float = 0.0
    kl: bool = False

    def __post_init__(self) -> None:
        number("policy.eps", self.eps, low=0.0)
        flag("policy.kl", self.kl)
        if self.delay is not None:
            for law in self.delay if isinstance(self.delay, tuple | list) else [self.delay]:
                refuse_unless_known("policy.delay", law)

    def knowing(self, laws: Sequence[Law]) -> UDUCB:
        return self if self.delay is not None else replace(self, delay=tuple(laws))

    def start(self, arms: int, rounds: int) -> UDUCBState:
        if self.delay is None:
            raise InvalidInput("policy.delay", "ud-ucb needs it")
        laws = (self.delay,) * arms if isinstance(self.delay, Law) else tuple(self.delay)
        if len(laws) != arms:
            raise InvalidInput("policy.delay", f"must be one law or one for each of {arms} arms, got {len(laws)}")
        trials = effective_trials(laws, rounds)
        return UDUCBState(np.zeros(arms), np.zeros(arms), trials, no_lead(arms), float(self.eps), self.kl)

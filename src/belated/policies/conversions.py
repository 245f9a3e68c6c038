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


class UDUCBState(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray  # conversions seen so far, S_i
    pulls: np.ndarray  # m_i
    trials: Any  # N~_i
    scores: np.ndarray  # scratch of choose
    eps: float
    kl: bool

    def choose(self, t: int, rng: Generator) -> int:
        explore = (1.0 + self.eps) * math.log(t)
        for arm in range(len(self.scores)):
            trials = self.trials.effective[arm]
            if trials <= 0.0:
                self.scores[arm] = math.inf
            elif self.kl:
                self.scores[arm] = poisson_upper(self.total[arm] / trials, explore / trials)
            else:
                width = math.sqrt(self.pulls[arm] / trials) * math.sqrt(explore / (2.0 * trials))
                self.scores[arm] = self.total[arm] / trials + width
        return tied_argmax(self.scores, rng)

    def sent(self, t: int, arm: int) -> None:
        self.pulls[arm] += 1.0
        self.trials.ripen(t, arm)

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward


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
        zeros = np.zeros((3, arms))
        return UDUCBState(zeros[0], zeros[1], effective_trials(laws, rounds), zeros[2], float(self.eps), self.kl)

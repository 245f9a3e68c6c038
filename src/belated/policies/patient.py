"""PatientBandits: an upper confidence bound for heavy-tailed delays, from conversions alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.delays import Pareto
from belated.inputs import InvalidInput, number
from belated.law import Law
from belated.marks import compiled
from belated.policies.base import Policy, tied_argmax
from belated.policies.lead import Lead, challenge, no_lead, two_largest


@compiled
def refresh(state: Any, arm: int) -> None:
    """Recompute the index of an arm that was pulled or has converted; the others' are what they were."""
    index = state.total[arm] / state.pulls[arm] + state.root[arm] + state.tail[arm]
    state.indices[arm] = index
    challenge(state.scores, arm, index)


class PatientState(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray  # conversions seen so far, S_i
    pulls: np.ndarray  # m_i
    root: np.ndarray  # sqrt(2 log(2 K T^3) / m_i)
    tail: np.ndarray  # 2 m_i^-min(alpha, 1/2)
    indices: np.ndarray  # the sum of S_i / m_i and these, infinite before the first pull
    scores: Lead  # scratch of choose
    exponent: float  # min(alpha, 1/2)
    log: float  # 2 log(2 K T^3)

    def choose(self, t: int, rng: Generator) -> int:
        lead = self.scores
        if self.indices[lead.leader[0]] > lead.rival[0]:
            return int(lead.leader[0])
        for arm in range(len(self.pulls)):
            if self.pulls[arm] == 0.0:
                return arm
        two_largest(lead, self.indices)
        return int(lead.leader[0]) if self.indices[lead.leader[0]] > lead.rival[0] else tied_argmax(self.indices, rng)

    def sent(self, t: int, arm: int) -> None:
        self.pulls[arm] += 1.0
        self.root[arm] = math.sqrt(self.log / self.pulls[arm])
        self.tail[arm] = 2.0 * self.pulls[arm] ** -self.exponent
        refresh(self, arm)

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        refresh(self, arm)


@dataclass(frozen=True)
class PatientBandits(Policy):
    """PatientBandits: UCB for heavy-tailed delays, from conversions alone.

    Pull each arm once, then the largest S_i / m_i + sqrt(2 log(2 K T^3) / m_i) + 2 m_i^-min(alpha, 1/2).
    Gael et al. (2020). S_i counts the conversions seen, m_i all pulls: revealed zeros are not used. It assumes
    P(delay > m) <= m^-alpha for every arm; without `alpha`, it is told the smallest one of the arms' Pareto laws.
    """

    name: ClassVar[str] = "patient"

    alpha: float | None = None

    def __post_init__(self) -> None:
        if self.alpha is not None:
            number("policy.alpha", self.alpha, above=0.0)

    def knowing(self, laws: Sequence[Law]) -> PatientBandits:
        if self.alpha is not None:
            return self
        alphas = [law.alpha for law in laws if isinstance(law, Pareto)]
        if len(alphas) < len(laws):
            raise InvalidInput("policy.alpha", "patient needs it, unless the delay of every arm is Pareto")
        return replace(self, alpha=min(float(alpha) for alpha in alphas))

    def start(self, arms: int, rounds: int) -> PatientState:
        if self.alpha is None:
            raise InvalidInput("policy.alpha", "patient needs it")
        return PatientState(
            total=np.zeros(arms),
            pulls=np.zeros(arms),
            root=np.zeros(arms),
            tail=np.zeros(arms),
            indices=np.full(arms, math.inf),
            scores=no_lead(arms),
            exponent=min(self.alpha, 0.5),
            log=2.0 * (math.log(2.0 * arms) + 3.0 * math.log(rounds)),
        )

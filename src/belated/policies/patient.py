"""PatientBandits: an upper confidence bound for heavy-tailed delays, from conversions alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.delays import Pareto
from belated.inputs import InvalidInput, number
from belated.law import Law
from belated.policies.base import Policy, tied_argmax


class PatientState(NamedTuple):
    """What the policy remembers."""

    total: np.ndarray  # conversions seen so far, S_i
    pulls: np.ndarray  # m_i
    scores: np.ndarray  # scratch of choose
    exponent: float  # min(alpha, 1/2)
    log: float  # 2 log(2 K T^3)

    def choose(self, t: int, rng: Generator) -> int:
        for arm in range(len(self.pulls)):
            m = self.pulls[arm]
            if m == 0.0:
                return arm
            self.scores[arm] = self.total[arm] / m + math.sqrt(self.log / m) + 2.0 * m**-self.exponent
        return tied_argmax(self.scores, rng)

    def sent(self, t: int, arm: int) -> None:
        self.pulls[arm] += 1.0

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward


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
            scores=np.zeros(arms),
            exponent=min(self.alpha, 0.5),
            log=2.0 * (math.log(2.0 * arms) + 3.0 * math.log(rounds)),
        )

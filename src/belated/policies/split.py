"""Equal random allocation: the A/B test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.policies.base import Policy


class SplitState(NamedTuple):
    """What the policy remembers."""

    arms: int

    def choose(self, t: int, rng: Generator) -> int:
        return int(rng.random() * self.arms)

    def sent(self, t: int, arm: int) -> None:
        pass

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        pass


@dataclass(frozen=True)
class Split(Policy):
    """The A/B test: every arm equally likely, whatever is learned."""

    name: ClassVar[str] = "split"

    def start(self, arms: int, rounds: int) -> SplitState:
        return SplitState(arms)

    def resumed(self, total: np.ndarray, seen: np.ndarray) -> SplitState:
        return SplitState(len(total))

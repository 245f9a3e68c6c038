"""QPM-D: makes any policy one for delayed rewards, by feeding it from queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.inputs import InvalidInput
from belated.law import Law
from belated.policies.base import Policy, hear
from belated.policies.ucb import UCB1


class QueuedState(NamedTuple):
    """What the policy remembers."""

    base: Any  # the state of the base policy
    head: np.ndarray  # per arm: the oldest reward that the base has not seen, as an index into `reward`, or -1
    tail: np.ndarray
    following: np.ndarray  # per stored reward: the next one of the same arm
    reward: np.ndarray
    counters: np.ndarray  # [0]: the arm the base wants, or -1; [1]: its round; [2]: rewards stored

    def choose(self, t: int, rng: Generator) -> int:
        return int(self.counters[0]) if self.counters[0] >= 0 else int(self.base.choose(1, rng))

    def sent(self, t: int, arm: int) -> None:
        if self.counters[0] < 0:  # the very first pull
            self.counters[0] = arm
            self.counters[1] = 1
            self.base.sent(1, arm)

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        slot = self.counters[2]
        self.counters[2] += 1
        self.reward[slot] = reward
        self.following[slot] = -1
        if self.head[arm] < 0:
            self.head[arm] = slot
        else:
            self.following[self.tail[arm]] = slot
        self.tail[arm] = slot
        # While what the base wants is in store, the base goes on by itself, but not beyond the horizon it was told.
        while self.head[self.counters[0]] >= 0 and self.counters[1] < len(self.reward):
            wanted = self.counters[0]
            first = self.head[wanted]
            self.head[wanted] = self.following[first]
            hear(self.base, self.counters[1], self.counters[1], wanted, self.reward[first], rng)
            self.counters[1] += 1
            self.counters[0] = self.base.choose(self.counters[1], rng)
            self.base.sent(self.counters[1], self.counters[0])


@dataclass(frozen=True)
class QPMD(Policy):
    """Any policy `base`, fed from a queue of revealed rewards an arm.

    Keep revealed rewards in a queue per arm; while the queue of the arm that `base` wants is empty, pull that arm.
    Joulani, György & Szepesvári (2013). The base sees a world without delay, and with none it is played exactly.
    """

    name: ClassVar[str] = "qpm-d"

    base: Policy = field(default_factory=UCB1)

    def __post_init__(self) -> None:
        if not isinstance(self.base, Policy):
            raise InvalidInput("policy.base", f"must be a policy, got {self.base!r}")

    def knowing(self, laws: Sequence[Law]) -> QPMD:
        return replace(self, base=self.base.knowing(laws))

    def start(self, arms: int, rounds: int) -> QueuedState:
        return QueuedState(
            base=self.base.start(arms, rounds),
            head=np.full(arms, -1),
            tail=np.full(arms, -1),
            following=np.zeros(rounds, np.int64),
            reward=np.zeros(rounds),
            counters=np.array([-1, 0, 0]),
        )

"""What a policy is: a specification that starts a state, and a state with three plain functions.

The specification is a small frozen dataclass, its fields the parameters. `start(arms, rounds)` makes the state: a
`NamedTuple` of arrays and numbers, with

    choose(state, t, rng) -> arm      what to pull in round t = 1, 2, …; it only reads
    sent(state, t, arm)               the arm has been pulled in round t
    learn(state, arm, reward, rng)    a reward of that arm has been revealed

or, in place of `learn`, if it matters how old the pull is,

    heard(state, t, s, arm, reward, rng)    in round t the reward of round s, of that arm, has been revealed

These are compiled by the simulator and called as they are by the live engine, so they keep to numbers, arrays,
`math`, the random generator they are given, and functions marked `@compiled`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from belated.law import Law
from belated.marks import compiled


@dataclass(frozen=True)
class Policy:
    """Derive a frozen dataclass from it and give it `start`."""

    name: ClassVar[str] = "policy"

    def start(self, arms: int, rounds: int) -> Any:
        """The state before the first of `rounds` rounds."""
        raise NotImplementedError

    def resumed(self, total: np.ndarray, seen: np.ndarray) -> Any:
        """The state after `seen` revealed rewards an arm, of these sums, whatever their order.

        Only those policies have it whose state is a fold of totals: they are the ones that can run live.
        """
        raise NotImplementedError

    def knowing(self, laws: Sequence[Law]) -> Policy:
        """This policy, told the delay laws of the arms. Only those that assume such an oracle care."""
        return self

    def parameters(self) -> Iterator[tuple[str, Any]]:
        return ((each.name, getattr(self, each.name)) for each in fields(self))


def hear(state: Any, t: int, s: int, arm: int, reward: float, rng: Generator) -> None:
    """Have a state learn in round t the reward of round s: by `heard` if it has it, otherwise by `learn`.

    Compiled code decides it once, by the class of the state.
    """
    if hasattr(state, "heard"):
        state.heard(t, s, arm, reward, rng)
    else:
        state.learn(arm, reward, rng)


@compiled
def tied_argmax(index: Any, rng: Generator) -> int:
    """An arm of the largest index, ties broken uniformly at random; a random number is drawn only if there are ties."""
    best, ties = 0, 1
    for arm in range(1, len(index)):
        if index[arm] > index[best]:
            best, ties = arm, 1
        elif index[arm] == index[best]:
            ties += 1
    if ties == 1:
        return best
    pick = int(rng.random() * ties)
    for arm in range(best, len(index)):
        if index[arm] == index[best]:
            if pick == 0:
                return arm
            pick -= 1
    return best


@compiled
def gamma(rng: Generator, shape: float) -> float:
    """A Gamma(shape, 1) draw for shape >= 1 (Marsaglia and Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = rng.standard_normal()
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            u = rng.random()
            if u < 1.0 - 0.0331 * (x * x) * (x * x):
                return d * v
            if math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
                return d * v


@compiled
def beta(rng: Generator, a: float, b: float) -> float:
    """A Beta(a, b) draw. With both at least 1 it takes two gammas of our own, a quarter faster than the generator's."""
    if a < 1.0 or b < 1.0:
        return rng.beta(a, b)
    x = gamma(rng, a)
    return x / (x + gamma(rng, b))

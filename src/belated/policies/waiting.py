"""What people do today where only successes are reported: wait for a window to close, or take silence for failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.delays import Conversions
from belated.inputs import flag, number
from belated.law import Law
from belated.policies.base import Policy
from belated.policies.thompson import Prior, checked_prior, counts, thompson_choice


def window_of(laws: Sequence[Law]) -> int | None:
    """The window of the arms' conversions; None if some arm has none."""
    windows = [law.window for law in laws if isinstance(law, Conversions)]
    return int(max(windows)) if len(windows) == len(laws) else None


def check_window(window: int | None) -> None:
    """Refuse what is neither a number of rounds nor left out."""
    if window is not None:
        number("policy.window", window, low=0, whole=True)


class WaitState(NamedTuple):
    """What the policy remembers."""

    successes: np.ndarray  # S_i + a, of pulls whose window has closed
    failures: np.ndarray
    arm: np.ndarray  # per round: what was pulled
    early: np.ndarray  # per round: a reward revealed before its window closed, or -1
    window: int
    provisional: bool

    def choose(self, t: int, rng: Generator) -> int:
        return thompson_choice(self.successes, self.failures, rng)

    def sent(self, t: int, arm: int) -> None:
        self.arm[t] = arm
        s = t - self.window
        if s >= 1 and (self.provisional or self.early[s] >= 0.0):
            known = max(0.0, self.early[s])
            self.successes[self.arm[s]] += known
            self.failures[self.arm[s]] += 1.0 - known

    def heard(self, t: int, s: int, arm: int, reward: float, rng: Generator) -> None:
        if t - s < self.window:
            self.early[s] = reward
        elif self.provisional:  # its window closed, as a failure: that is taken back
            self.successes[arm] += reward
            self.failures[arm] -= reward
        else:
            self.successes[arm] += reward
            self.failures[arm] += 1.0 - reward


@dataclass(frozen=True)
class Wait(Policy):
    """Thompson sampling on matured pulls: one counts when its window has closed.

    theta_i ~ Beta(S_i + a, F_i + b), S_i and F_i from the pulls that are `window` rounds old and revealed. So every
    pull is equally late, whatever its reward, and Algorithm 1 is right again. Without `window` it is told that of the
    arms' Conversions. With `provisional`, silence at the window's end is a failure until a success is heard after all,
    as in a live experiment.
    """

    name: ClassVar[str] = "wait"

    prior: Prior = (1.0, 1.0)
    window: int | None = None
    provisional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", checked_prior(self.prior))
        check_window(self.window)
        flag("policy.provisional", self.provisional)

    def knowing(self, laws: Sequence[Law]) -> Wait:
        return self if self.window is not None else replace(self, window=window_of(laws))

    def start(self, arms: int, rounds: int) -> WaitState:
        window = 0 if self.window is None else int(self.window)
        arm, early = np.zeros(rounds + 1, np.int32), np.full(rounds + 1, -1.0)
        return WaitState(*counts(self.prior, arms), arm, early, window, self.provisional)


class SilenceState(NamedTuple):
    """What the policy remembers."""

    successes: np.ndarray  # S_i + a
    failures: np.ndarray  # m_i - S_i + b

    def choose(self, t: int, rng: Generator) -> int:
        return thompson_choice(self.successes, self.failures, rng)

    def sent(self, t: int, arm: int) -> None:
        self.failures[arm] += 1.0

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.successes[arm] += reward
        self.failures[arm] -= reward


@dataclass(frozen=True)
class SilenceIsFailure(Policy):
    """Thompson sampling that takes silence for failure: zero at once, corrected when the one comes.

    theta_i ~ Beta(S_i + a, m_i - S_i + b), S_i the successes heard of so far and m_i all pulls.
    """

    name: ClassVar[str] = "silence-is-failure"

    prior: Prior = (1.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", checked_prior(self.prior))

    def start(self, arms: int, rounds: int) -> SilenceState:
        return SilenceState(*counts(self.prior, arms))

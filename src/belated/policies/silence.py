"""Thompson sampling that reads the silence: what has not been heard of a pull, given how old it is, counts too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.delays import Conversions, RewardDependent
from belated.inputs import InvalidInput, nearest, number
from belated.law import Law, refuse_unless_known
from belated.policies.base import Policy, beta
from belated.policies.effective import effective_trials
from belated.policies.exact import exact_state
from belated.policies.learned import learned_state
from belated.policies.thompson import Prior, checked_prior, counts
from belated.policies.waiting import check_window, window_of

CURVES = ("learned", "known", "exact")


class KnownState(NamedTuple):
    """What the policy remembers."""

    successes: np.ndarray  # S_i + a
    floor: np.ndarray  # b
    total: np.ndarray  # S_i
    trials: Any  # N~_i

    def choose(self, t: int, rng: Generator) -> int:
        best, highest = 0, -1.0
        for arm in range(len(self.total)):
            missing = max(0.0, self.trials.effective[arm] - self.total[arm])
            theta = beta(rng, self.successes[arm], self.floor[arm] + missing)
            if theta > highest:
                best, highest = arm, theta
        return best

    def sent(self, t: int, arm: int) -> None:
        self.trials.ripen(t, arm)

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        self.successes[arm] += reward


@dataclass(frozen=True)
class ThompsonSilence(Policy):
    """Thompson sampling that reads the silence: a pull counts as far as it has had the time to convert.

    theta_i ~ Beta(S_i + a, N~_i - S_i + b), S_i the conversions seen so far and N~_i the effective trials, the sum over
    pulls of tau(age), tau the curve of how late conversions come. For a pull pending at age a, of likelihood 1 - theta
    tau(a), counts as (1 - theta)^tau(a): docs/theory.md. `curve` says where tau is from:

    - "learned", from the conversions seen so far (`curve.py`); trusted as n / (n + doubt) with n of them, so that with
      few it waits for windows to close. Without a window both outcomes are reported, and the delay of each is learned.
    - "known", told by the simulator, or as `delay`: that of the successes, one law or one an arm.
    - "exact": known, and the posterior is exact, for any delays of ones and of zeros (`exact.py`).

    `window` is when silence becomes failure; without it, it is told that of the arms' Conversions. It reads `blocks`
    times a window.
    """

    name: ClassVar[str] = "thompson-silence"

    curve: Literal["learned", "known", "exact"] = "learned"
    prior: Prior = (1.0, 1.0)
    delay: Law | tuple[Law, ...] | None = None
    window: int | None = None
    blocks: int = 50
    doubt: float = 5.0

    def __post_init__(self) -> None:
        if self.curve not in CURVES:
            raise nearest("policy.curve", "curve", str(self.curve), CURVES)
        object.__setattr__(self, "prior", checked_prior(self.prior))
        for law in self.delay if isinstance(self.delay, tuple | list) else [self.delay]:
            if law is not None and not isinstance(law, Law):
                raise InvalidInput("policy.delay", f"must be a delay law, got {law!r}")
        check_window(self.window)
        number("policy.blocks", self.blocks, low=1, whole=True)
        number("policy.doubt", self.doubt, low=0.0)

    def knowing(self, laws: Sequence[Law]) -> ThompsonSilence:
        window = window_of(laws) if self.window is None else self.window
        delay = tuple(laws) if self.delay is None and self.curve != "learned" else self.delay
        return replace(self, window=window, delay=delay)

    def start(self, arms: int, rounds: int) -> Any:
        a, b = counts(self.prior, arms)
        if self.curve == "learned":
            if self.window is None:
                return exact_state(a, b, None, rounds, self.blocks, self.doubt)
            return learned_state(a, b, self.window, self.blocks, self.doubt)
        if self.delay is None:
            raise InvalidInput("policy.delay", f"thompson-silence with curve={self.curve} needs it")
        laws = (self.delay,) * arms if isinstance(self.delay, Law) else tuple(self.delay)
        if len(laws) != arms:
            raise InvalidInput("policy.delay", f"must be one law or one for each of {arms} arms, got {len(laws)}")
        if self.curve == "exact":
            return exact_state(a, b, laws, rounds, self.blocks, self.doubt)
        successes = [law.success if isinstance(law, Conversions | RewardDependent) else law for law in laws]
        for law in successes:
            refuse_unless_known("policy.delay", law)
        given = math.inf if self.window is None else self.window
        windows = [min(given, law.window) if isinstance(law, Conversions) else given for law in laws]
        return KnownState(a, b, np.zeros(arms), effective_trials(successes, rounds, windows))

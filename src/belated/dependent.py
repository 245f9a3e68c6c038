"""Delay laws of more than chance: of the reward, of the round, and of what is reported at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from belated.inputs import Number, number
from belated.law import Law, refuse_unless_iid


@dataclass(frozen=True)
class RewardDependent(Law):
    """A reward above one half waits by the law `success`, any other by the law `failure`."""

    iid: ClassVar[bool] = False

    success: Law
    failure: Law

    def __post_init__(self) -> None:
        refuse_unless_iid("delay.success", self.success)
        refuse_unless_iid("delay.failure", self.failure)

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        return self.success.delay(memory, t, reward, v) if reward > 0.5 else self.failure.delay(memory, t, reward, v)

    def compiled_form(self) -> Law:
        return replace(self, success=self.success.compiled_form(), failure=self.failure.compiled_form())


@dataclass(frozen=True)
class Drifting(Law):
    """Delays that change: of the law `before` at first, of `after` from round `rounds` on, and between them in between.

    In round t < `rounds` the delay is (1 - w) before + w after with w = t / rounds, of the same quantile, rounded up.
    """

    iid: ClassVar[bool] = False

    before: Law
    after: Law
    rounds: Number

    def __post_init__(self) -> None:
        refuse_unless_iid("delay.before", self.before)
        refuse_unless_iid("delay.after", self.after)
        number("delay.rounds", self.rounds, low=1, ranged=True)

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        if t >= self.rounds:
            return self.after.quantile(v)
        weight = t / self.rounds
        return float(np.ceil((1.0 - weight) * self.before.quantile(v) + weight * self.after.quantile(v)))

    def compiled_form(self) -> Law:
        return replace(self, before=self.before.compiled_form(), after=self.after.compiled_form())


@dataclass(frozen=True)
class Conversions(Law):
    """Only successes are reported: one within `window` rounds when it comes; all else is a failure at the window's end.

    A success waits by the law `success`, which may be Drifting. One that would come after the window is revealed as 0
    at its end, like a failure: what is revealed may differ from the reward. Regret is of the true means all the same.

    >>> from belated.delays import Geometric
    >>> purchases = Conversions(Geometric(0.01), window=500)
    >>> purchases.delay(None, 1, 1.0, 0.5), purchases.delay(None, 1, 0.0, 0.5)
    (69.0, 500.0)
    """

    iid: ClassVar[bool] = False

    success: Law
    window: Number

    def __post_init__(self) -> None:
        if not isinstance(self.success, Drifting):
            refuse_unless_iid("delay.success", self.success)
        number("delay.window", self.window, low=0, whole=True)

    def delay(self, memory: Any, t: int, reward: float, v: float) -> float:
        return min(self.success.delay(memory, t, reward, v), float(self.window)) if reward > 0.5 else float(self.window)

    def revealed(self, memory: Any, t: int, reward: float, v: float) -> float:
        return reward if reward > 0.5 and self.success.delay(memory, t, reward, v) <= self.window else 0.0

    def compiled_form(self) -> Law:
        return replace(self, success=self.success.compiled_form())

"""A live ledger as a plain dictionary: whole numbers, exact fractions where there are any, no code of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from belated.policies.curve import new_reading, read, tally

MINUTE = 60_000  # how far, in ms, clocks may differ before it is an error


@dataclass
class Decision:
    arm: str
    asked_at: int
    unit: str | None
    reward: Fraction | None = None
    heard: int = 0  # when that, or what it corrects, was told


@dataclass
class Arm:
    a: Fraction
    b: Fraction
    status: str = "active"


@dataclass
class Experiment:
    """What an experiment must answer, and what its numbers must be."""

    window: int | None
    sticky: bool
    floor: Fraction
    prior: tuple[Fraction, Fraction]
    arms: dict[str, Arm]
    reading: str
    status: str = "running"
    decisions: dict[str, Decision] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    # --- What is answered: a status, or the name of an error ---

    def asked(self, unit: str | None, id: str | None, elsewhere: bool) -> str:
        """What an ask must come to: a decision that is there already, its id; or "new"; or an error."""
        if self.sticky and unit is None:
            return "InvalidInput"
        if id is not None and id in self.decisions:
            return id if unit in (None, self.decisions[id].unit) else "Conflict"
        if elsewhere:
            return "Conflict"
        if self.sticky and unit in self.units:
            return self.units[unit]
        if self.status == "archived":
            return "Archived"
        return "new" if self.status == "running" and self.active() else "Stopped"

    def decided(self, id: str, decision: Decision) -> None:
        self.decisions[id] = decision
        if self.sticky and decision.unit is not None:
            self.units[decision.unit] = id

    def told(self, id: str, reward: Fraction, now: int, revise: bool, occurred: int | None) -> str:
        if occurred is not None and occurred > now + MINUTE:
            return "InvalidInput"
        if id not in self.decisions:
            return "NotFound"
        decision = self.decisions[id]
        if self.status == "archived":
            return "Archived"
        if occurred is not None and occurred < decision.asked_at - MINUTE:
            return "InvalidInput"
        before = decision.reward
        if before == reward:
            return "duplicate"
        if before is not None and not revise:
            return "Conflict"
        decision.reward = reward
        if before is not None:
            return "revised"
        decision.heard = now
        return "late" if self.closed(decision, now) else "applied"

    def voided(self, id: str) -> str:
        if id not in self.decisions:
            return "NotFound"
        if self.status == "archived":
            return "Archived"
        self.decisions[id].reward = None
        return "voided"

    def set_status(self, status: str) -> str:
        if self.status == "archived" and status != "archived":
            return "Archived"
        self.status = status
        return "done"

    def set_arm(self, name: str, status: str) -> str:
        if self.status == "archived":
            return "Archived"
        if name not in self.arms:
            return "NotFound"
        arm = self.arms[name]
        if arm.status != status:
            if arm.status == "retired":
                return "Conflict"
            if status == "active" and self.floor * (len(self.active()) + 1) > 1:
                return "InvalidInput"
        arm.status = status
        return "done"

    def add_arm(self, name: str) -> str:
        if self.status == "archived":
            return "Archived"
        if name in self.arms:
            return "Conflict"
        if self.floor * (len(self.active()) + 1) > 1:
            return "InvalidInput"
        self.arms[name] = Arm(*self.prior)
        return "done"

    # --- What the numbers are ---

    def active(self) -> list[str]:
        return [name for name, arm in self.arms.items() if arm.status == "active"]

    def closed(self, decision: Decision, now: int) -> bool:
        """Whether silence about it is a failure by now."""
        return self.window is not None and now >= decision.asked_at + self.window

    def counts(self, name: str, now: int) -> dict[str, int | float | Fraction]:
        """asked, observed, assumed, pending, successes of an arm, and its posterior mean."""
        mine = [decision for decision in self.decisions.values() if decision.arm == name]
        rewards = [decision.reward for decision in mine if decision.reward is not None]
        assumed = sum(decision.reward is None and self.closed(decision, now) for decision in mine)
        return {
            "asked": len(mine),
            "observed": len(rewards) + assumed,
            "assumed": assumed,
            "pending": len(mine) - len(rewards) - assumed,
            "successes": sum(rewards, Fraction(0)),
            "mean": self.mean(name, mine, now) if self.reading == "wait" else self.silent(name, now),
        }

    def silent(self, name: str, now: int) -> float:
        """The mean if silence is read: from every decision, by blocks of a fiftieth of the window or a little more."""
        assert self.window is not None
        grain = -(-self.window // 1000)
        width = grain * -(-self.window // (50 * grain))
        bins, newest = -(-self.window // width), now // width - 1
        d, n, pulls = np.zeros((3, len(self.arms), bins))
        closed: dict[str, list[Fraction]] = {}
        for place, arm in enumerate(self.arms):
            mine = [(each, newest - each.asked_at // width) for each in self.decisions.values() if each.arm == arm]
            waits = [
                (each.heard - each.asked_at, age) for each, age in mine if each.reward is not None and each.reward > 0
            ]
            within = [(wait // width, age) for wait, age in waits if wait < self.window]
            d[place], n[place] = tally([lag for lag, _ in within], [age for _, age in within], 1, bins)
            pulls[place] = [sum(age == k for _, age in mine) for k in range(bins)]
            closed[arm] = [each.reward or Fraction(0) for each, age in mine if age >= bins]
        reading, place = new_reading(len(self.arms), bins), list(self.arms).index(name)
        read(reading, d, n, pulls, 5.0)
        trust, arm = float(reading.trust[place]), self.arms[name]
        old = [each for each in self.decisions.values() if each.arm == name and each.asked_at // width <= newest]
        waiting = sum(each.reward or Fraction(0) for each in old) - sum(closed[name])
        ones = float(sum(closed[name])) + trust * float(waiting)
        trials = len(closed[name]) + trust * float(reading.trials[place])
        return (float(arm.a) + ones) / (float(arm.a + arm.b) + ones + max(0.0, trials - ones))

    def mean(self, name: str, mine: list[Decision], now: int) -> Fraction:
        """Where silence is a failure, what has no closed window is left out, told or not."""
        read = [each for each in mine if (each.reward is not None if self.window is None else self.closed(each, now))]
        good = sum((each.reward or Fraction(0) for each in read), Fraction(0))
        arm = self.arms[name]
        return (arm.a + good) / (arm.a + arm.b + len(read))

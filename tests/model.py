"""A live ledger as a plain dictionary: whole numbers and exact fractions, and no code of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

MINUTE = 60_000  # how far, in ms, clocks may differ before it is an error


@dataclass
class Decision:
    arm: str
    asked_at: int
    unit: str | None
    reward: Fraction | None = None


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

    def counts(self, name: str, now: int) -> dict[str, int | Fraction]:
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
            "mean": self.mean(name, mine, now),
        }

    def mean(self, name: str, mine: list[Decision], now: int) -> Fraction:
        """Where silence is a failure, what has no closed window is left out, told or not."""
        read = [each for each in mine if (each.reward is not None if self.window is None else self.closed(each, now))]
        good = sum((each.reward or Fraction(0) for each in read), Fraction(0))
        arm = self.arms[name]
        return (arm.a + good) / (arm.a + arm.b + len(read))

"""Any interleaving of calls, on two handles of one ledger, answers and counts as a plain dictionary does."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

import model
from belated import InvalidInput, live
from belated.live import LiveError, fold

HOUR = 3_600_000
WINDOWS = (1, 1500, HOUR)
REWARDS = st.sampled_from([0, 1, 1, 1]) | st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
HANDLES = st.sampled_from([0, 1])
UNITS = st.sampled_from(["ann", "bob", "cy", "ünï", "' OR 1=1 --"])
ARMS = st.sampled_from(["red", "green", "blue", "new"])
SETTINGS = st.fixed_dictionaries(
    {
        "window": st.sampled_from([None, *WINDOWS]),
        "sticky": st.booleans(),
        "floor": st.sampled_from([0.0, 0.0, 0.25, 0.5]),
        "prior": st.sampled_from([(1, 1), (0.5, 0.5), (3, 7.25)]),
        "policy": st.sampled_from(["thompson", "thompson", "split", "ucb1"]),
        "reading": st.sampled_from([None, "wait"]),
    }
)


def exact(reward: float) -> Fraction:
    return Fraction(round(reward * 1000), 1000)


def came_to(call: Callable[[], Any]) -> str:
    """The status that a call answers, or the name of its error."""
    try:
        return str(call() or "done")
    except (InvalidInput, LiveError) as error:
        return type(error).__name__ if "\n" not in str(error) else f"more than one line: {error}"


class Calls(RuleBasedStateMachine):
    """Calls of every kind, each made on the engine and on the model."""

    def __init__(self, url: str):
        super().__init__()
        self.url = url
        self.now = 1_700_000_000_000
        self.shops: list[live.Ledger] = []
        self.models: dict[str, model.Experiment] = {}
        self.moved = ""  # the experiment of the last call
        self.reopen()

    experiments = Bundle("experiments")
    decisions = Bundle("decisions")  # (experiment, id)

    # --- Experiments ---

    @initialize(target=experiments, how=st.tuples(*[SETTINGS] * 2))
    def begin(self, how: Any) -> Any:
        return multiple(*(self.create(each, handle) for handle, each in enumerate(how)))

    @rule(target=experiments, how=SETTINGS, handle=HANDLES)
    def another(self, how: Any, handle: int) -> Any:
        return self.create(how, handle) if len(self.models) < 4 else multiple()

    def create(self, how: dict[str, Any], handle: int) -> str:
        name, window = f"test {len(self.models)}", how["window"]
        self.shops[handle].create(
            name,
            ["red", "green"],
            silence=live.Failure(after=window / 1000) if window else None,
            priors={"green": (2, 1)},
            **{key: value for key, value in how.items() if key != "window"},
        )
        own = Fraction(how["prior"][0]), Fraction(how["prior"][1])
        arms = {"red": model.Arm(*own), "green": model.Arm(Fraction(2), Fraction(1))}
        silent = window and how["policy"] == "thompson" and how["reading"] is None
        reading = "silence" if silent else "wait"
        self.models[name] = model.Experiment(window, how["sticky"], Fraction(how["floor"]), own, arms, reading)
        self.moved = name
        return name

    @rule(name=experiments, status=st.sampled_from(["stop", "resume", "resume", "archive"]), handle=HANDLES)
    def change(self, name: str, status: str, handle: int) -> None:
        if status == "archive" and len(self.models[name].decisions) < 8:
            status = "resume"  # too early: there would be nothing left to try
        after = {"stop": "stopped", "resume": "running", "archive": "archived"}[status]
        answer = came_to(getattr(self.on(handle, name), status))
        assert answer == self.models[name].set_status(after)

    # --- Arms ---

    @rule(name=experiments, arm=ARMS, call=st.sampled_from(["pause", "activate", "activate", "retire"]), handle=HANDLES)
    def change_arm(self, name: str, arm: str, call: str, handle: int) -> None:
        after = {"pause": "paused", "activate": "active", "retire": "retired"}[call]
        answer = came_to(lambda: getattr(self.on(handle, name), call)(arm))
        assert answer == self.models[name].set_arm(arm, after)

    @rule(name=experiments, arm=ARMS, handle=HANDLES)
    def add_arm(self, name: str, arm: str, handle: int) -> None:
        assert came_to(lambda: self.on(handle, name).add_arm(arm)) == self.models[name].add_arm(arm)

    # --- Asking ---

    @rule(
        target=decisions,
        name=experiments,
        unit=st.none() | UNITS,
        own=st.none() | st.integers(0, 30),
        handle=HANDLES,
    )
    def ask(self, name: str, unit: str | None, own: int | None, handle: int) -> Any:
        id = None if own is None else str(uuid.UUID(int=own))
        return self.decided(name, unit, id, lambda: self.on(handle, name).ask(unit=unit, id=id))

    @rule(target=decisions, decision=decisions, unit=UNITS, handle=HANDLES)
    def ask_again(self, decision: tuple[str, str], unit: str, handle: int) -> Any:
        name, id = decision
        return self.decided(name, unit, id, lambda: self.on(handle, name).ask(unit=unit, id=id))

    @rule(target=decisions, name=experiments, units=st.lists(UNITS, min_size=2, max_size=5), handle=HANDLES)
    def ask_many(self, name: str, units: list[str], handle: int) -> Any:
        if any(self.models[name].asked(unit, None, False) in ("Stopped", "Archived") for unit in units):
            return multiple()  # some would be refused: `ask` shows how
        answers = self.on(handle, name).ask_many(units=units)
        for unit, answer in zip(units, answers, strict=True):
            self.decided(name, unit, None, lambda answer=answer: answer)
        return multiple(*((name, answer.id) for answer in answers))

    def decided(self, name: str, unit: str | None, id: str | None, call: Callable[[], live.Decision]) -> Any:
        """Compare an ask with the model, which takes over what only the engine can know: the arm, a new id."""
        there = self.models[name]
        elsewhere = any(id in each.decisions for each in self.models.values() if each is not there)
        expected = there.asked(unit, id, elsewhere)
        if expected in ("InvalidInput", "Conflict", "Archived", "Stopped"):
            assert came_to(call) == expected
            return multiple()
        answer = call()
        assert answer.replayed == (expected != "new")
        if expected == "new":
            assert answer.arm in there.active()
            assert there.floor - Fraction(1, 10**9) <= answer.propensity <= 1.0 + 1e-9
            assert id is None or answer.id == id
            assert answer.unit == unit
            there.decided(answer.id, model.Decision(answer.arm, self.now, unit))
        kept = there.decisions[answer.id if expected == "new" else expected]
        assert (answer.arm, answer.unit) == (kept.arm, kept.unit)
        assert round(answer.at.timestamp() * 1000) == kept.asked_at
        return (name, answer.id)

    # --- Hearing ---

    @rule(
        decision=decisions,
        reward=REWARDS,
        revise=st.sampled_from([False, False, True]),
        occurred=st.none() | st.sampled_from([-2 * model.MINUTE, 0, model.MINUTE, model.MINUTE + 1]),
        at_home=st.booleans(),
        handle=HANDLES,
    )
    def tell(
        self, decision: tuple[str, str], reward: float, revise: bool, occurred: int | None, at_home: bool, handle: int
    ) -> None:
        name, id = decision
        self.moved, at = name, None if occurred is None else self.now + occurred
        expected = self.models[name].told(id, exact(reward), self.now, revise, at)
        whom = self.on(handle, name) if at_home else self.shops[handle]
        seconds = None if at is None else at / 1000
        assert came_to(lambda: whom.tell(id, reward, occurred_at=seconds, revise=revise)) == expected

    @rule(
        many=st.lists(st.tuples(decisions, REWARDS, st.booleans()), min_size=2, max_size=8),
        steps=st.sampled_from([0, 1, HOUR]),
        handle=HANDLES,
    )
    def tell_many(self, many: list[Any], steps: int, handle: int) -> None:
        self.now += steps
        expected = [
            self.models[name].told(id, exact(reward), self.now, revise, None) for (name, id), reward, revise in many
        ]
        told = self.shops[handle].tell_many([(id, reward, None, revise) for (_, id), reward, revise in many])
        self.moved = many[-1][0][0]
        assert [each.status if each.error is None else type(each.error).__name__ for each in told] == expected
        assert [each.decision for each in told] == [id for (_, id), _, _ in many]

    @rule(decision=decisions, handle=HANDLES)
    def void(self, decision: tuple[str, str], handle: int) -> None:
        name, id = decision
        assert came_to(lambda: self.on(handle, name).void(id)) == self.models[name].voided(id)

    @rule(decision=decisions, other=experiments, handle=HANDLES)
    def tell_the_wrong_one(self, decision: tuple[str, str], other: str, handle: int) -> None:
        if decision[0] != other:
            assert came_to(lambda: self.on(handle, other).tell(decision[1], 1)) == "NotFound"
            assert came_to(lambda: self.on(handle, other).void(decision[1])) == "NotFound"
        assert came_to(lambda: self.shops[handle].tell(str(uuid.UUID(int=10**9)), 1)) == "NotFound"

    # --- Time, and reopening ---

    @rule(step=st.sampled_from([1, 999, 1499, 600_000, HOUR, 80 * HOUR]))
    def time_passes(self, step: int) -> None:
        self.now += step

    @rule()
    def reopen(self) -> None:
        self.teardown()
        self.shops = [
            live.open(self.url, clock=lambda: self.now / 1000, rng=np.random.default_rng(seed), refresh=refresh)
            for seed, refresh in enumerate((0, 3600))
        ]

    def on(self, handle: int, name: str) -> live.Experiment:
        self.moved = name
        return self.shops[handle].get(name)

    def teardown(self) -> None:
        for shop in self.shops:
            shop.close()

    # --- What must hold after each call ---

    @invariant()
    def sums_are_those_of_the_rows(self) -> None:
        with self.shops[0].store.reading() as connection:
            assert fold.differences(connection) == []
            assert fold.strays(connection) == []

    @invariant()
    def the_summary_is_the_models(self) -> None:
        if not self.moved:
            return
        there, summary = self.models[self.moved], self.shops[0].get(self.moved).summary()
        assert (summary.name, summary.status) == (self.moved, there.status)
        assert {arm.name: arm.status for arm in summary.arms} == {name: arm.status for name, arm in there.arms.items()}
        for arm in summary.arms:
            counts = there.counts(arm.name, self.now)
            mean = float(counts.pop("mean"))
            assert {name: getattr(arm, name) for name in counts} == {**counts, "successes": float(counts["successes"])}
            assert arm.mean == pytest.approx(mean, rel=1e-12)
            assert summary.reading == there.reading
            assert arm.low < mean < arm.high
        deciding = there.status == "running" and there.active()
        assert sum(arm.share for arm in summary.arms) == pytest.approx(1.0 if deciding else 0.0, abs=1e-9)


def test_any_interleaving(new_ledger: Callable[[], str]) -> None:
    examples = 60 if new_ledger().startswith("sqlite") else 25  # a call is several journeys to the server
    run_state_machine_as_test(
        lambda: Calls(new_ledger()),
        settings=settings(max_examples=examples, stateful_step_count=50, suppress_health_check=list(HealthCheck)),
    )

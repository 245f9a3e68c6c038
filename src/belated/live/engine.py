"""What the experiments of a ledger share: the writer, the clock, and the telling of outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from belated.inputs import InvalidInput
from belated.live import values
from belated.live.errors import LiveError
from belated.live.judge import Do, Operation, Tell
from belated.live.store import Connection, Store
from belated.live.writer import Call, Writer

Done = TypeVar("Done")
Steps = Generator[Operation, Any, Done]


class Told(NamedTuple):
    """What became of one outcome of many: a status, and for one that was refused the error."""

    decision: str
    status: str
    error: Exception | None = None


class Engine:
    """A store, its writer, a clock, and randomness: what all its experiments share."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
        refresh: float = 0.1,
    ):
        self.store = store
        self.writer = Writer(store)
        self.refresh = values.duration("refresh", refresh)
        self.rng = rng or np.random.default_rng()
        self._clock = clock
        self._latest = 0

    def now(self) -> int:
        """The time in ms, to write.

        A small step back is waited out. A large one stands, and what would then be written before what it follows is
        refused: a decision by its experiment, an outcome by the judge.
        """
        read = self.ticks()
        behind = read < self._latest - values.SKEW
        self._latest = read if behind else max(read, self._latest)
        return self._latest

    def ticks(self) -> int:
        """The clock as it reads, in ms: what passes between two readings has passed, wherever the ledger's time is."""
        return round(self._clock() * 1000)

    def note_time(self, latest: int) -> None:
        """Note a time that is in the ledger already, if the clock may still come up to it soon."""
        if latest <= self.ticks() + values.SKEW:
            self._latest = max(latest, self._latest)

    def do(self, what: Callable[[Connection], Any]) -> Any:
        """Do something in the writer's next transaction, and wait for it."""
        return self.writer.submit(Do(what)).wait()

    def tell(self, decision: str, reward: float, *, occurred_at: Any = None, revise: bool = False) -> str:
        """The outcome of a decision of any experiment; see `Experiment.tell`."""
        return str(self.writer.submit(self.telling(decision, reward, occurred_at, revise)).wait())

    def tell_many(self, outcomes: Iterable[Any], experiment: int | None = None) -> list[Told]:
        """Many outcomes, each (decision, reward), with `occurred_at` and `revise` if wished; see `Told`."""
        return self._all_told([(_first(given), self._attempted(given, experiment)) for given in outcomes])

    def void(self, decision: str) -> str:
        """Take back the outcome of a decision of any experiment: "voided", also if there is none."""
        return str(self.writer.submit(self.voiding(decision)).wait())

    def telling(
        self, decision: str, reward: float, occurred_at: Any = None, revise: bool = False, experiment: int | None = None
    ) -> Tell:
        """The operation of telling, checked."""
        now = self.now()
        identity = values.identity("decision", decision)
        amount = values.reward(reward)
        occurred = None if occurred_at is None else values.instant("occurred_at", occurred_at)
        if occurred is not None and occurred > now + values.SKEW:
            raise InvalidInput("occurred_at", f"is in the future, got {values.iso(occurred)}")
        if revise is not True and revise is not False:
            raise InvalidInput("revise", f"must be true or false, got {values.shown(revise)}")
        return Tell(identity, amount, now, occurred, revise, experiment)

    def voiding(self, decision: str, experiment: int | None = None) -> Tell:
        """The operation of taking an outcome back, checked."""
        return Tell(values.identity("decision", decision), None, self.now(), experiment=experiment)

    def _attempted(self, given: Any, experiment: int | None) -> Call | Exception:
        try:
            return self.writer.submit(self.telling(*outcome_parts(given), experiment))
        except (InvalidInput, LiveError) as refusal:
            return refusal

    def _all_told(self, calls: list[tuple[str, Call | Exception]]) -> list[Told]:
        told = []
        for decision, call in calls:
            try:
                if isinstance(call, Exception):
                    raise call
                told.append(Told(decision, call.wait()))
            except InvalidInput as error:
                told.append(Told(decision, "invalid", error))
            except LiveError as error:
                told.append(Told(decision, error.kind, error))
        return told

    def carry_out(self, all_steps: Sequence[Steps[Done]]) -> list[Done]:
        """What each of these comes to, their operations being handed in together."""
        operations = [next(steps) for steps in all_steps]  # all of them checked before any is done
        first = [self.writer.submit(operation) for operation in operations]
        return [self._carried_out(steps, call) for steps, call in zip(all_steps, first, strict=True)]

    def _carried_out(self, steps: Steps[Done], call: Call) -> Done:
        try:
            while True:
                try:
                    answer = call.wait()
                except Exception as error:
                    operation = steps.throw(error)
                else:
                    operation = steps.send(answer)
                call = self.writer.submit(operation)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def close(self) -> None:
        """Commit what is under way, and close the store."""
        self.writer.close()
        self.store.close()


def _first(given: Any) -> str:
    return str(given[0]) if isinstance(given, tuple | list) and given else values.shown(given)


def outcome_parts(given: Any) -> tuple[Any, Any, Any, Any]:
    """Decision, reward, occurred_at and revise, the last two of which may be left out."""
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 4:
        message = f"must be (decision, reward), with occurred_at and revise if wished, got {values.shown(given)}"
        raise InvalidInput("outcome", message)
    left_out: list[Any] = [None, False][len(given) - 2 :]
    decision, reward, occurred_at, revise = list(given) + left_out
    return decision, reward, occurred_at, revise

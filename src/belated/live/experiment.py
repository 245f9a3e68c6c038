"""The live engine's face: a ledger of experiments, each asked for decisions and told their outcomes."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from belated.inputs import InvalidInput, nearest
from belated.live import curves, ledger, values
from belated.live.curves import Waits
from belated.live.errors import Archived, ClockRanBackwards, Conflict, LiveError, NotFound
from belated.live.judge import Ask, Asked, Do, Operation, Stale, Tell
from belated.live.ledger import ArmRow, Connection, DecisionRow, ExperimentRow, Store
from belated.live.settings import Pending, Settings, Silence, checked_prior, refuse_floor
from belated.live.summary import Summary, summarised
from belated.live.version import Version, standing
from belated.live.writer import Call, Writer

MOST_ARMS = 1000
ARM_STATUSES = ("active", "paused", "retired")
STATUSES = ("running", "stopped", "archived")


Done = TypeVar("Done")
Steps = Generator[Operation, Any, Done]


class Decision(NamedTuple):
    """What was decided: the arm, and the probability with which it was chosen."""

    id: str
    arm: str
    propensity: float
    at: datetime.datetime
    unit: str | None = None
    replayed: bool = False  # it was there already


class Told(NamedTuple):
    """What became of one outcome of many: a status, and for one that was refused the error."""

    decision: str
    status: str
    error: Exception | None = None


class Ledger:
    """The experiments of one store. Safe to share between threads; close it, or use it as a context, to end it."""

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
        self._known: dict[str, Experiment] = {}

    def now(self) -> int:
        """The time in ms. It never runs backwards: a small step back is waited out, a large one is an error."""
        read = round(self._clock() * 1000)
        if read < self._latest - values.SKEW:
            self._refuse_clock(read)
        self._latest = max(read, self._latest)
        return self._latest

    def note_time(self, latest: int, now: int) -> None:
        """Note a time that is already in the ledger."""
        self._latest = max(latest, self._latest)
        if now < latest - values.SKEW:
            self._refuse_clock(now)

    def _refuse_clock(self, read: int) -> None:
        message = f"reads {values.iso(read)}, but {values.iso(self._latest)} has been already"
        raise ClockRanBackwards("clock", message)

    def do(self, what: Callable[[Connection], Any]) -> Any:
        """Do something in the writer's next transaction, and wait for it."""
        return self.writer.submit(Do(what)).wait()

    def create(
        self,
        name: str,
        arms: Sequence[str],
        *,
        silence: Silence | None = None,
        policy: str = "thompson",
        sticky: bool = False,
        floor: float = 0.0,
        prior: tuple[float, float] = (1.0, 1.0),
        priors: dict[str, tuple[float, float]] | None = None,
    ) -> Experiment:
        """A new experiment. `prior` is the Beta prior of every arm, `priors` those of some arms of their own.

        `silence` says what a missing outcome means; with `sticky` each unit keeps its one decision; `floor` is the
        smallest share that every active arm gets.
        """
        values.text("name", name)
        settings = Settings(policy, silence or Pending(), sticky, floor, prior)
        names = _arm_names(arms)
        own = {arm: checked_prior(pair) for arm, pair in (priors or {}).items()}
        for arm in own:
            if arm not in names:
                raise nearest("priors", "arm", arm, names)
        refuse_floor(settings.floor, len(names))
        now = self.now()

        def write(connection: Connection) -> ExperimentRow:
            rows = ledger.experiments(connection)
            if any(row.name == name for row in rows):
                raise Conflict("name", f"there is an experiment named {values.shown(name)} already")
            row = ExperimentRow(
                id=max((row.id for row in rows), default=0) + 1,
                name=name,
                settings=settings.to_json(),
                status="running",
                epoch=1,
                grain=settings.grain,
                failure_after=settings.window,
                created_at=now,
            )
            ledger.append(connection, [row])
            priors = [own.get(arm, settings.prior) for arm in names]
            ledger.append(
                connection,
                [ArmRow(row.id, place, arm, "active", *priors[place], now) for place, arm in enumerate(names)],
            )
            return row

        return self._kept(self.do(write))

    def get(self, name: str) -> Experiment:
        """The experiment of that name."""
        if name in self._known:
            return self._known[name]
        with self.store.reading() as connection:
            return self._kept(ledger.experiment(connection, values.text("experiment", name)))

    def known(self, name: str) -> Experiment | None:
        """The experiment of that name, if it has been asked for before."""
        return self._known.get(name)

    def experiments(self) -> list[Experiment]:
        """All experiments, in the order in which they were created."""
        with self.store.reading() as connection:
            rows = ledger.experiments(connection)
        return [self._kept(row) for row in rows]

    def _kept(self, row: ExperimentRow) -> Experiment:
        return self._known.setdefault(row.name, Experiment(self, row))

    def tell(self, decision: str, reward: float, *, occurred_at: Any = None, revise: bool = False) -> str:
        """The outcome of a decision of any experiment; see `Experiment.tell`."""
        return str(self.writer.submit(self.telling(decision, reward, occurred_at, revise)).wait())

    def tell_many(self, outcomes: Iterable[Any]) -> list[Told]:
        """Many outcomes, each (decision, reward), with `occurred_at` and `revise` if wished; see `Told`."""
        return self._all_told([(_first(given), self._attempted(given)) for given in outcomes])

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

    def _attempted(self, given: Any, experiment: int | None = None) -> Call | Exception:
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

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Experiment:
    """One experiment: ask it for decisions, tell it their outcomes."""

    def __init__(self, home: Ledger, row: ExperimentRow):
        self._home = home
        self.id = row.id
        self.name = row.name
        self.settings = Settings.from_json(row.settings)
        self._version: Version | None = None

    # --- Deciding and hearing ---

    def ask(self, *, unit: str | None = None, id: str | None = None) -> Decision:
        """Decide. It is durable when this returns.

        `unit` is whom it is for; a sticky experiment gives a unit its one decision again. `id`, a UUID of the
        client's own, makes a retry return the same decision.
        """
        return self._home.carry_out([self.asking(unit=unit, id=id)])[0]

    def ask_many(
        self, count: int | None = None, *, units: Sequence[str] | None = None, ids: Sequence[str] | None = None
    ) -> list[Decision]:
        """Decide `count` times, or once for each of `units`, or of `ids`."""
        wanted = [count if count is None else _count(count), *(len(each) for each in (units, ids) if each is not None)]
        sizes = {size for size in wanted if size is not None}
        if len(sizes) != 1:
            raise InvalidInput("count", f"give a count, units or ids, as many of each; got {sorted(sizes) or 'none'}")
        size = sizes.pop()
        nothing: list[None] = [None] * size
        pairs = zip(units or nothing, ids or nothing, strict=True)
        return self._home.carry_out([self.asking(unit=unit, id=id) for unit, id in pairs])

    def asking(self, *, unit: str | None = None, id: str | None = None) -> Steps[Decision]:
        """The steps of one ask: it yields the operation that the writer is to do, and is sent the answer."""
        while True:
            version, ask = self._chosen(unit, id)
            try:
                asked: Asked = yield ask
            except Stale:  # an arm or a status has changed since the arm was chosen
                self._version = None
            else:
                return self._decision(version, asked)

    def _chosen(self, unit: str | None, id: str | None) -> tuple[Version, Ask]:
        home = self._home
        now = home.now()
        if unit is not None:
            values.text("unit", unit, longest=500)
        elif self.settings.sticky:
            raise InvalidInput("unit", "a sticky experiment needs it")
        identity = values.new_identity(now) if id is None else values.identity("id", id)
        version = self._current(now)
        arm, propensity = version.choose(home.rng) if version.active else (-1, 0.0)
        row = DecisionRow(identity, self.id, arm, now, propensity, unit)
        return version, Ask(row, version.at.experiment.epoch, id is not None, self.settings.sticky)

    def _decision(self, version: Version, asked: Asked) -> Decision:
        row = asked.row
        if row.arm >= len(version.at.arms):  # an old decision for an arm that this version does not know yet
            version = self._load(self._home.now())
        name = version.at.arms[row.arm].name
        return Decision(
            values.written(row.id), name, row.propensity, values.moment(row.asked_at), row.unit, asked.replayed
        )

    def tell(self, decision: str, reward: float, *, occurred_at: Any = None, revise: bool = False) -> str:
        """The outcome of a decision: "applied", or "late" after its window, or "duplicate" if it has it already.

        Another value than the one that stands is a Conflict, unless `revise` is said: then it is "revised". It is
        durable, and credited exactly once, when this returns, however often and in whatever order it is told.
        """
        call = self._home.writer.submit(self._home.telling(decision, reward, occurred_at, revise, self.id))
        return str(call.wait())

    def tell_many(self, outcomes: Iterable[Any]) -> list[Told]:
        """Many outcomes, each (decision, reward), with `occurred_at` and `revise` if wished; none stops the others."""
        home = self._home
        return home._all_told([(_first(given), home._attempted(given, self.id)) for given in outcomes])

    def void(self, decision: str) -> str:
        """Take back the outcome of a decision: "voided", also if there is none."""
        return str(self._home.writer.submit(self._home.voiding(decision, self.id)).wait())

    def is_fresh(self, now: int) -> bool:
        """Whether the posterior at hand may serve asks now: it is not older than `refresh`."""
        version = self._version
        return version is not None and version.loaded_at <= now < version.loaded_at + self._home.refresh

    def refreshed(self, now: int) -> None:
        """Read the posterior anew, and reckon its propensities, if it is not fresh."""
        if not self.is_fresh(now):
            self._load(now).shares()

    def _current(self, now: int) -> Version:
        """The version that serves asks now."""
        version = self._version
        return version if version is not None and self.is_fresh(now) else self._load(now)

    def _load(self, now: int) -> Version:
        with self._home.store.reading() as connection:
            at = standing(connection, ledger.experiment(connection, self.name), now)
        self._home.note_time(at.last_asked, now)
        before = self._version
        if before is not None and before.at == at._replace(last_asked=before.at.last_asked):
            before.loaded_at = now  # nothing has changed: the same posterior, its propensities known
            return before
        self._version = Version(at, self.settings, now)
        return self._version

    # --- Looking ---

    def summary(self) -> Summary:
        """Where the experiment stands now, arm by arm, and how much is still to come."""
        now = self._home.now()
        with self._home.store.reading() as connection:
            row = ledger.experiment(connection, self.name)
            at = standing(connection, row, now)
            return summarised(connection, at, self.settings, now)

    def waits(self, unit: Any = "1s") -> Waits:
        """How late outcomes come: the delay curve of each arm, and pooled, in rounds of `unit`."""
        now = self._home.now()
        with self._home.store.reading() as connection:
            return curves.read(connection, self.id, now, values.duration("unit", unit))

    def arms(self) -> dict[str, str]:
        """The status of each arm."""
        with self._home.store.reading() as connection:
            return {arm.name: arm.status for arm in ledger.arms(connection, self.id)}

    @property
    def status(self) -> str:
        """running, stopped or archived."""
        with self._home.store.reading() as connection:
            return ledger.experiment(connection, self.name).status

    # --- Changing ---

    def stop(self) -> None:
        """Decide nothing more. Outcomes are still heard."""
        self._set_status("stopped")

    def resume(self) -> None:
        """Decide again."""
        self._set_status("running")

    def archive(self) -> None:
        """Close it for good: it can be read, and nothing else."""
        self._set_status("archived")

    def _set_status(self, status: str) -> None:
        def write(connection: Connection) -> None:
            row = ledger.experiment(connection, self.name, owned=True)
            if row.status == "archived" and status != "archived":
                raise Archived("experiment", f"{self.name} is archived")
            if row.status != status:
                ledger.change_experiment(connection, self.id, status)

        self._home.do(write)
        self._version = None

    def add_arm(self, name: str, *, prior: tuple[float, float] | None = None) -> None:
        """A new arm, active from now on. Names are never used again."""
        values.text("arm", name)
        own = self.settings.prior if prior is None else checked_prior(prior)
        now = self._home.now()

        def write(connection: Connection) -> None:
            arms = self._changeable(connection)
            if any(arm.name == name for arm in arms):
                raise Conflict("arm", f"there is, or was, an arm named {values.shown(name)}")
            if len(arms) >= MOST_ARMS:
                raise InvalidInput("arms", f"there can be at most {MOST_ARMS}")
            refuse_floor(self.settings.floor, 1 + sum(arm.status == "active" for arm in arms))
            ledger.append(connection, [ArmRow(self.id, len(arms), name, "active", *own, now)])
            ledger.change_arm(connection, self.id, len(arms), "active")

        self._home.do(write)
        self._version = None

    def pause(self, arm: str) -> None:
        """Give an arm no more decisions, for now."""
        self._set_arm(arm, "paused")

    def activate(self, arm: str) -> None:
        """Give a paused arm decisions again."""
        self._set_arm(arm, "active")

    def retire(self, arm: str) -> None:
        """Give an arm no more decisions, for good. Its outcomes are still heard."""
        self._set_arm(arm, "retired")

    def _set_arm(self, name: str, status: str) -> None:
        def write(connection: Connection) -> None:
            arms = self._changeable(connection)
            found = next((arm for arm in arms if arm.name == name), None)
            if found is None:
                raise NotFound("arm", f"there is none named {values.shown(name)} in {self.name}")
            if found.status == status:
                return
            if found.status == "retired":
                raise Conflict("arm", f"{name} is retired, for good")
            if status == "active":
                refuse_floor(self.settings.floor, 1 + sum(arm.status == "active" for arm in arms))
            ledger.change_arm(connection, self.id, found.arm, status)

        self._home.do(write)
        self._version = None

    def _changeable(self, connection: Connection) -> list[ArmRow]:
        if ledger.experiment(connection, self.name, owned=True).status == "archived":
            raise Archived("experiment", f"{self.name} is archived")
        return ledger.arms(connection, self.id)


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


def _arm_names(arms: object) -> list[str]:
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise InvalidInput("arms", f"must be a list of names, got {values.shown(arms)}")
    names = [values.text("arms", arm) for arm in arms]
    if not 2 <= len(names) <= MOST_ARMS:
        raise InvalidInput("arms", f"must be 2 to {MOST_ARMS}, got {len(names) or 'none'}")
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("arms", f"{values.shown(name)} is given twice")
    return names


def _count(count: object) -> int:
    from belated.inputs import number

    number("count", count, low=1, high=100_000, whole=True)
    return int(count)  # type: ignore[call-overload, no-any-return]

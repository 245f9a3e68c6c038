"""One experiment: asked for decisions, told their outcomes, summed up, changed."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from belated.inputs import InvalidInput, number
from belated.live import curves, ledger, values
from belated.live.curves import Waits
from belated.live.engine import Engine, Steps, Told
from belated.live.errors import Archived, ClockRanBackwards, Conflict, NotFound, Unreadable, behind
from belated.live.judge import Ask, Asked, Stale
from belated.live.settings import MOST_ARMS, Settings, checked_prior, refuse_floor
from belated.live.store import ArmRow, Connection, DecisionRow, ExperimentRow
from belated.live.summary import Summary, summarised
from belated.live.version import Version, standing


class Decision(NamedTuple):
    """What was decided: the arm, and the probability with which it was chosen."""

    id: str
    arm: str
    propensity: float
    at: datetime.datetime
    unit: str | None = None
    replayed: bool = False  # it was there already


class Experiment:
    """One experiment: ask it for decisions, tell it their outcomes."""

    def __init__(self, home: Engine, row: ExperimentRow):
        self._home = home
        self.id = row.id
        self.name = row.name
        self.settings = _settings(row)
        self._version: Version | None = None
        self._last_asked = 0  # in the ledger, as far as is known here

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
            version = self._current(self._home.now())
            try:
                asked: Asked = yield self.choice(version, unit=unit, id=id)
            except Stale:
                self.forget(version)
            else:
                row = asked.row
                name, at = self.arm_name(version, row), values.moment(row.asked_at)
                return Decision(values.written(row.id), name, row.propensity, at, row.unit, asked.replayed)

    def choice(self, version: Version, *, unit: str | None = None, id: str | None = None) -> Ask:
        """What the writer is to write: a choice from that posterior. It is refused as Stale if that is out of date."""
        home = self._home
        now = home.now()
        self._refuse_before(now)
        if unit is not None:
            values.text("unit", unit, longest=500)
        elif self.settings.sticky:
            raise InvalidInput("unit", "a sticky experiment needs it")
        identity = values.new_identity(now) if id is None else values.identity("id", id)
        arm, propensity = version.choose(home.rng) if version.active else (-1, 0.0)
        row = DecisionRow(identity, self.id, arm, now, propensity, unit)
        return Ask(row, version.at.experiment.epoch, id is not None, self.settings.sticky)

    def forget(self, version: Version) -> None:
        """Serve no more asks from that posterior: an arm or a status has changed since."""
        if self._version is version:
            self._version = None

    def arm_name(self, version: Version, row: DecisionRow) -> str:
        """The name of the arm of a decision."""
        if row.arm >= len(version.at.arms):  # an old decision for an arm that this version does not know yet
            version = self._load(self._home.now())
        return version.at.arms[row.arm].name

    def tell(self, decision: str, reward: float, *, occurred_at: Any = None, revise: bool = False) -> str:
        """The outcome of a decision: "applied", or "late" after its window, or "duplicate" if it has it already.

        Another value than the one that stands is a Conflict, unless `revise` is said: then it is "revised". It is
        durable, and credited exactly once, when this returns, however often and in whatever order it is told.
        """
        call = self._home.writer.submit(self._home.telling(decision, reward, occurred_at, revise, self.id))
        return str(call.wait())

    def tell_many(self, outcomes: Iterable[Any]) -> list[Told]:
        """Many outcomes, each (decision, reward), with `occurred_at` and `revise` if wished; none stops the others."""
        return self._home.tell_many(outcomes, self.id)

    def void(self, decision: str) -> str:
        """Take back the outcome of a decision: "voided", also if there is none."""
        return str(self._home.writer.submit(self._home.voiding(decision, self.id)).wait())

    def fresh(self) -> Version | None:
        """The posterior at hand, if it may serve asks now: if it is not older than `refresh`."""
        version, now = self._version, self._home.ticks()
        if version is None or not version.loaded_at <= now < version.loaded_at + self._home.refresh:
            return None
        return version

    def ages(self, version: Version) -> bool:
        """Whether that posterior had better be read again soon: most of its time is over."""
        return self._home.ticks() >= version.loaded_at + 0.6 * self._home.refresh

    def refreshed(self) -> Version:
        """A posterior read now, its propensities known."""
        version = self._load(self._home.now())
        version.shares()
        return version

    def _current(self, now: int) -> Version:
        """The version that serves asks now."""
        return self.fresh() or self._load(now)

    def _load(self, now: int) -> Version:
        began = self._home.ticks()
        with self._home.store.reading() as connection:
            at = standing(connection, ledger.experiment(connection, self.name), now)
        self._home.note_time(at.last_asked)
        self._last_asked = at.last_asked
        self._refuse_before(now)
        before = self._version
        if before is not None and before.at == at._replace(last_asked=before.at.last_asked):
            before.loaded_at = began  # nothing has changed: the same posterior, its propensities known
            return before
        version = self._version = Version(at, self.settings, began)
        return version

    def _refuse_before(self, now: int) -> None:
        """Refuse to decide before what has been decided: either clock may be the wrong one."""
        if now < self._last_asked - values.SKEW:
            raise ClockRanBackwards("clock", behind(now, self._last_asked))
        self._last_asked = max(now, self._last_asked)

    # --- Looking ---

    def summary(self) -> Summary:
        """Where the experiment stands now, arm by arm, and how much is still to come.

        Now is never before the last decision: if the clock is, the summary is as of then, and its `notice` says so.
        """
        clock = self._home.ticks()
        with self._home.store.reading() as connection:
            at = standing(connection, ledger.experiment(connection, self.name), clock)
            return summarised(connection, at, self.settings, clock)

    def waits(self, unit: Any = "1s") -> Waits:
        """How late outcomes come: the delay curve of each arm, and pooled, in rounds of `unit`."""
        clock = self._home.ticks()
        with self._home.store.reading() as connection:
            return curves.read(connection, self.id, clock, values.duration("unit", unit))

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
        values.name("arm", name)
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


def _settings(row: ExperimentRow) -> Settings:
    try:
        return Settings.from_json(row.settings)
    except (InvalidInput, LookupError, TypeError, ValueError) as error:
        reason = str(error) or type(error).__name__
        message = f"{values.shown(row.name)} has settings that this version of belated cannot read: {reason}"
        raise Unreadable("experiment", message) from error


def _count(count: object) -> int:
    number("count", count, low=1, high=100_000, whole=True)
    return int(count)  # type: ignore[call-overload, no-any-return]

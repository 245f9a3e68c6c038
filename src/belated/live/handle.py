"""An open ledger: its experiments by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from belated.inputs import InvalidInput, nearest
from belated.live import ledger, values
from belated.live.engine import Done, Engine
from belated.live.errors import Conflict, Unavailable
from belated.live.experiment import Experiment
from belated.live.settings import MOST_ARMS, Pending, Settings, Silence, checked_prior, refuse_floor
from belated.live.store import ArmRow, Connection, ExperimentRow, Store


class Ledger(Engine):
    """The experiments of one store. Safe to share between threads; close it, or use it as a context, to end it."""

    def __init__(self, store: Store, **options: Any):
        super().__init__(store, **options)
        self._known: dict[str, Experiment] = {}

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
        reading: str | None = None,
    ) -> Experiment:
        """A new experiment. `prior` is the Beta prior of every arm, `priors` those of some arms of their own.

        `silence` says what a missing outcome means; with `sticky` each unit keeps its one decision; `floor` is the
        smallest share that every active arm gets. Where silence is a failure after a window, `reading` says what a
        decision counts before: by default "silence", as far as it has had the time to convert; or "wait", nothing yet.
        """
        values.name("name", name)
        settings = Settings(policy, silence or Pending(), sticky, floor, prior, reading)
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

    def each(self, what: Callable[[Experiment], Done]) -> list[tuple[ExperimentRow, Done | Exception]]:
        """What each experiment comes to, the oldest first, or what it fails with: one of them hides no other.

        A store that cannot be reached fails as a whole.
        """
        with self.store.reading() as connection:
            rows = ledger.experiments(connection)
        found: list[tuple[ExperimentRow, Done | Exception]] = []
        for row in rows:
            try:
                found.append((row, what(self._kept(row))))
            except Unavailable:
                raise
            except Exception as error:
                found.append((row, error))
        return found

    def _kept(self, row: ExperimentRow) -> Experiment:
        return self._known.setdefault(row.name, Experiment(self, row))

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _arm_names(arms: object) -> list[str]:
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise InvalidInput("arms", f"must be a list of names, got {values.shown(arms)}")
    names = [values.name("arms", arm) for arm in arms]
    if not 2 <= len(names) <= MOST_ARMS:
        raise InvalidInput("arms", f"must be 2 to {MOST_ARMS}, got {len(names) or 'none'}")
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("arms", f"{values.shown(name)} is given twice")
    return names

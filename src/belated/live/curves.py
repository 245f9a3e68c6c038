"""The delay curves of an experiment, from every row of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from belated.delays import Observed
from belated.live import ledger
from belated.live.errors import notice
from belated.live.store import Connection
from belated.live.waits import law


class Waits(NamedTuple):
    """How late outcomes come, by Kaplan and Meier: what is pending has waited at least its age.

    Each curve is a delay law, in rounds of `unit` ms, which `simulate` and `theory` take as it is; None where nothing
    has been heard yet. Its last level is the share of outcomes that ever came so far.
    """

    unit: int
    pooled: Observed | None
    arms: dict[str, Observed | None]
    notice: str | None = None  # what is wrong with the time as of which they are


def read(connection: Connection, experiment: int, clock: int, unit: int, within: int | None = None) -> Waits:
    """The curves as of now, by the clock, and never before the last decision.

    With `within`, a window in ms, they are of the conversions alone. A failure that is told, or a success that is too
    late, is then a conversion that has not come yet: it has waited its age, or the window if that has closed.
    """
    last_asked = ledger.last_asked(connection, experiment)
    now = max(clock, last_asked)
    heard = ledger.waits(connection, experiment, within)
    pending = [(arm, now - asked, count) for arm, asked, count in ledger.pending(connection, experiment, within)]
    if within is not None:
        closed = -(-within // unit) * unit  # whole rounds, or none but the last conversions would be left in the last
        pending = [(arm, closed if age >= within else age, count) for arm, age, count in pending]
    names = {row.arm: row.name for row in ledger.arms(connection, experiment)}
    arms = {
        name: _curve((row for row in heard if row[0] == arm), (row for row in pending if row[0] == arm), unit)
        for arm, name in names.items()
    }
    return Waits(unit, _curve(heard, pending, unit), arms, notice(clock, last_asked))


def _curve(
    heard: Iterable[tuple[int, int, int]], pending: Iterable[tuple[int, int, int]], unit: int
) -> Observed | None:
    waits, waited = _columns(heard)
    ages, aged = _columns(pending)
    return law(waits, ages, unit=unit, waits_counts=waited, ages_counts=aged)


def _columns(rows: Iterable[tuple[int, int, int]]) -> tuple[list[int], list[int]]:
    kept = list(rows)
    return [max(0, time) for _, time, _ in kept], [count for _, _, count in kept]

"""An experiment out to a file, and from a file into a ledger: everything that the ledger knows of it.

An import is one transaction: however it ends, all of it is there or nothing. Other writers wait for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from belated.inputs import InvalidInput
from belated.live import formats, ledger, rows, values
from belated.live.errors import Conflict
from belated.live.experiment import Experiment
from belated.live.fold import Moves
from belated.live.formats import Format, Source
from belated.live.handle import Ledger
from belated.live.rows import Plan
from belated.live.store import Connection, DecisionRow, ExperimentRow, OutcomeRow
from belated.result import written_whole

CHUNK = 5000  # rows that are imported at a time

Progress = Callable[[float], None]  # told the fraction that is done


def export(
    experiment: Experiment,
    target: str | Path | BinaryIO,
    format: str | None = None,
    *,
    progress: Progress = lambda fraction: None,
) -> int:
    """Write an experiment to a file, by name or open for writing bytes, as csv, ndjson or parquet; how many rows.

    The format is that of the file's ending if it is not given. A file appears under its name only once it is complete.
    """
    if not isinstance(target, str | Path):
        return _export(experiment, target, formats.named(format, None), progress)
    path = Path(target)
    chosen = formats.named(format, path)
    with written_whole(path) as file:
        return _export(experiment, file, chosen, progress)


def _export(experiment: Experiment, file: BinaryIO, format: Format, progress: Progress) -> int:
    count = 0
    with experiment._home.store.reading() as connection:
        row = ledger.experiment(connection, experiment.name)
        arms = ledger.arms(connection, row.id)
        names = {arm.arm: arm.name for arm in arms}
        whole = sum(sums.asked for sums in ledger.totals(connection, row.id).values())
        with format.writing(file, rows.header(row, arms)) as write:
            for chunk in ledger.every_decision(connection, row.id, format.chunk):
                write([rows.flat(decision, revisions, names) for decision, revisions in chunk])
                count += len(chunk)
                progress(min(1.0, count / max(1, whole)))
    return count


def load(
    home: Ledger,
    path: str | Path,
    format: str | None = None,
    *,
    name: str | None = None,
    progress: Progress = lambda fraction: None,
) -> Experiment:
    """Import an experiment from an export, under its own name or another. Whatever is refused, nothing is imported."""
    file = Path(path)
    chosen = formats.named(format, file)
    now = home.now()
    stopped = threading.Event()

    def write(connection: Connection) -> str:
        with _opened(file) as raw, _placed(str(file)):
            source = chosen.read(raw)
            with _placed("header"):
                plan = rows.planned(source.header, now)
            whole = max(1, os.fstat(raw.fileno()).st_size)
            experiment = _begin(connection, plan, name)
            for chunk in _chunks(source, plan):
                if stopped.is_set():
                    raise InvalidInput("import", "stopped")
                _append(connection, experiment, plan, source.counts, chunk)
                progress(min(1.0, raw.tell() / whole))
        return experiment.name

    try:
        return home.get(home.do(write))
    except BaseException:  # such as Ctrl-C, while the writer's thread is at it
        stopped.set()
        raise


class _Line(NamedTuple):
    place: int
    decision: DecisionRow
    revisions: list[OutcomeRow]


def _begin(connection: Connection, plan: Plan, name: str | None) -> ExperimentRow:
    """Write the experiment and its arms, if the name is free."""
    there = ledger.experiments(connection)
    wanted = plan.experiment.name if name is None else values.text("name", name)
    if any(row.name == wanted for row in there):
        message = f"there is an experiment named {values.shown(wanted)} already; import it under another name"
        raise Conflict("name", message)
    experiment = plan.experiment._replace(id=max((row.id for row in there), default=0) + 1, name=wanted)
    ledger.append(connection, [experiment])
    ledger.append(connection, [arm._replace(experiment=experiment.id) for arm in plan.arms])
    return experiment


def _chunks(source: Source, plan: Plan) -> Iterator[list[_Line]]:
    chunk: list[_Line] = []
    for place, given in source.rows:
        try:
            chunk.append(_Line(place, *rows.parsed(given, plan)))
        except InvalidInput as error:
            raise InvalidInput(f"{source.counts} {place}", str(error)) from None
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _append(connection: Connection, experiment: ExperimentRow, plan: Plan, counts: str, chunk: list[_Line]) -> None:
    """Write a chunk of decisions and outcomes, and move the sums by them."""
    decisions = [line.decision._replace(experiment=experiment.id) for line in chunk]
    units = [str(decision.unit) for decision in decisions] if plan.sticky else []
    known = set(ledger.decisions(connection, [each.id for each in decisions]))
    held = set(ledger.holders(connection, experiment.id, units))
    for place, line in enumerate(chunk):
        if line.decision.id in known:
            raise _second(f"{counts} {line.place}", f"decision: {values.written(line.decision.id)}")
        if plan.sticky and units[place] in held:
            raise _second(f"{counts} {line.place}", f"unit: {values.shown(units[place])}")
        known.add(line.decision.id)
        held.update(units[place : place + 1])
    ledger.append(connection, decisions)
    ledger.append(connection, [revision for line in chunk for revision in line.revisions])
    ledger.claim(connection, [(experiment.id, unit, each.id) for unit, each in zip(units, decisions, strict=False)])
    moves = Moves()
    for decision, line in zip(decisions, chunk, strict=True):
        moves.asked(decision, experiment)
        moves.told(decision, line.revisions[-1] if line.revisions else None, experiment)
    moves.apply(connection)


def _second(place: str, what: str) -> Conflict:
    return Conflict(place, f"{what} is there already, in the ledger or in a row above")


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Errors that say where."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(place, str(error)) from None
    except Conflict as error:
        raise Conflict(place, str(error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror or error}") from None

"""A delay law from a CSV of waits: how long each outcome took and, if known, the ages of those still pending."""

from __future__ import annotations

import csv
from pathlib import Path

from belated.delays import Observed
from belated.inputs import InvalidInput
from belated.law import Law
from belated.live import values, waits

COLUMNS = ("wait", "age")


def law(path: Path, step: int, *, successes: bool) -> Law:
    """The law of the waits in rounds of `step` ms, by Kaplan and Meier.

    The column `wait` is how long an outcome took, `age` how long one has been pending that has not come; a row has one
    of the two, such as 3.5h. If only `successes` are ever reported, the law is that of those that come.
    """
    came: list[int] = []
    pending: list[int] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            for column in rows.fieldnames or ["(none)"]:
                if column not in COLUMNS:
                    raise InvalidInput(path.name, f"has columns wait and, if wished, age; got {values.shown(column)}")
            for row in rows:
                _put(path.name, rows.line_num, row, came, pending)
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(path.name, "is not a CSV file") from None
    except OSError as error:
        raise InvalidInput("delay", f"{path} cannot be read: {error.strerror}") from None
    measured = waits.law(came, pending, unit=float(step))
    if measured is None:
        raise InvalidInput(path.name, "must hold at least one wait, got none")
    return of_successes(measured) if successes else measured


def of_successes(measured: Observed) -> Observed:
    """The law of those that come at all."""
    top = measured.levels[-1]
    return Observed(measured.delays, [min(1.0, level / top) for level in measured.levels])


def _put(name: str, line: int, row: dict[str, str | None], came: list[int], pending: list[int]) -> None:
    given = {column: (row.get(column) or "").strip() for column in COLUMNS}
    filled = [column for column, text in given.items() if text]
    if len(filled) != 1 or None in row:
        raise InvalidInput(
            name, f"line {line}: must have either a wait or an age, got {values.shown(list(row.values()))}"
        )
    column = filled[0]
    time = values.duration(f"{name}, line {line}", given[column])
    (came if column == "wait" else pending).append(time)

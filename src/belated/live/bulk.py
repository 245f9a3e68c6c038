"""Many outcomes from a CSV file, told in chunks. What was told before is a duplicate, so running it again is safe."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from belated.inputs import InvalidInput
from belated.live.handle import Ledger
from belated.live.values import shown

CHUNK = 2000  # outcomes that are told, and committed, together
NAMED = 20  # refused lines that are kept by their number
HEARD = ("applied", "late", "revised", "duplicate")  # statuses in which the outcome is in the ledger


class Refused(NamedTuple):
    """A line that was refused, and why."""

    line: int
    reason: str


@dataclass
class Report:
    """What became of the lines: how many by status, and the first that were refused."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)

    @property
    def refusals(self) -> int:
        return sum(count for status, count in self.counts.items() if status not in HEARD)

    def note(self, line: int, status: str, error: Exception | None) -> None:
        self.counts[status] += 1
        if error is not None and len(self.refused) < NAMED:
            self.refused.append(Refused(line, str(error)))


def tell(
    home: Ledger,
    path: str | Path,
    *,
    revise: bool = False,
    report: Report | None = None,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Report:
    """Tell every outcome of a CSV file with the columns decision, reward and, if wished, when.

    `report` is filled as the lines are told, for a caller who may be interrupted.
    """
    report = Report() if report is None else report
    try:
        with open(path, "rb") as raw:
            whole = max(1, os.fstat(raw.fileno()).st_size)
            text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
            for chunk in _chunks(_lines(text, str(path))):
                _tell(home, chunk, revise, report)
                progress(min(1.0, raw.tell() / whole))
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror or error}") from None
    return report


def _tell(home: Ledger, chunk: list[tuple[int, Any]], revise: bool, report: Report) -> None:
    outcomes = [(line, given) for line, given in chunk if not isinstance(given, InvalidInput)]
    told = home.tell_many((*given, revise) for _, given in outcomes)
    if told and all(each.status == "unavailable" for each in told):
        raise told[0].error or RuntimeError  # the rest of the file would fare no better
    answers = {line: (each.status, each.error) for (line, _), each in zip(outcomes, told, strict=True)}
    for line, given in chunk:
        report.note(line, *answers.get(line, ("invalid", given)))


def _chunks(lines: Iterator[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
    chunk = []
    for line in lines:
        chunk.append(line)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _lines(text: io.TextIOWrapper, path: str) -> Iterator[tuple[int, Any]]:
    """The number of each line with its (decision, reward, when), or with the error if it cannot be one."""
    lines = csv.reader(text)
    try:
        columns = _columns(next(lines, []), path)
        for cells in lines:
            if not cells:
                continue
            if len(cells) != len(columns):
                yield lines.line_num, InvalidInput("columns", f"must be {len(columns)}, got {len(cells)}")
                continue
            row = dict(zip(columns, cells, strict=True))
            yield lines.line_num, (row["decision"].strip(), amount(row["reward"]), moment(row.get("when")))
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(path, f"line {lines.line_num + 1}: cannot be read: {error}") from None


def _columns(head: list[str], path: str) -> list[str]:
    columns = [name.strip() for name in head]
    if sorted(columns) not in (["decision", "reward"], ["decision", "reward", "when"]):
        message = f"line 1: must name the columns decision, reward and, if wished, when; got {shown(','.join(head))}"
        raise InvalidInput(path, message)
    return columns


def amount(text: str) -> Any:
    """A reward as typed; what is not a number is left for the engine, which refuses it by name."""
    try:
        return float(text)
    except ValueError:
        return text


def moment(text: str | None) -> Any:
    """A time as typed, in ISO 8601 or in seconds since 1970; None if there is none."""
    if text is None or not text.strip():
        return None
    return float(text) if re.fullmatch(r"\s*\d{9,}(\.\d+)?\s*", text) else text.strip()

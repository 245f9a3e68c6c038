"""The text forms of an export, CSV and NDJSON: each written and read in chunks, whatever its length."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from belated.inputs import InvalidInput, nearest
from belated.live.rows import COLUMNS, Row
from belated.live.values import iso, shown

NAMES = ("csv", "ndjson", "parquet")
_SUFFIXES = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".parquet": "parquet"}
_MARK = "# belated "  # begins a CSV, before its header

Write = Callable[[Sequence[Row]], None]


class Source(NamedTuple):
    """An export that is read: its header, and its rows with their numbers, which count lines or rows."""

    header: Any
    counts: str
    rows: Iterator[tuple[int, dict[str, Any]]]


class Format(NamedTuple):
    """How an export is written and read, and how many rows at a time."""

    writing: Callable[[BinaryIO, dict[str, Any]], AbstractContextManager[Write]]
    read: Callable[[BinaryIO], Source]
    chunk: int


def named(name: str | None, path: Path | None) -> Format:
    """The format of that name, or of the file's ending."""
    if name is None:
        name = _SUFFIXES.get(path.suffix.lower()) if path else None
        if name is None:
            raise InvalidInput("format", f"say which: csv, ndjson or parquet; {path or 'a stream'} does not tell")
    if name not in NAMES:
        raise nearest("format", "format", str(name), NAMES)
    if name == "parquet":
        from belated.live.parquet import PARQUET

        return PARQUET
    return CSV if name == "csv" else NDJSON


def compact(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dated(row: Row) -> Row:
    """The row with its times in words; all are on one line, as no text holds a control character."""
    times = (row.asked_at, row.occurred_at, row.received_at, row.heard_at)
    asked, occurred, received, heard = (None if time is None else iso(time) for time in times)
    return row._replace(asked_at=asked, occurred_at=occurred, received_at=received, heard_at=heard)  # type: ignore[arg-type]


# --- CSV --------------------------------------------------------------------------------------------------------------


@contextmanager
def _writing_csv(file: BinaryIO, header: dict[str, Any]) -> Iterator[Write]:
    def write(rows: Sequence[Sequence[Any]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        file.write(text.getvalue().encode())

    file.write(f"{_MARK}{compact(header)}\n".encode())
    write([COLUMNS])
    yield lambda rows: write([(*_dated(row)[:-1], compact(row.earlier) if row.earlier else None) for row in rows])


def _read_csv(file: BinaryIO) -> Source:
    csv.field_size_limit(2**31 - 1)  # an outcome may have been corrected a thousand times
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    first = _line(text, 1)
    if not first.startswith(_MARK):
        raise InvalidInput("line 1", f"must begin with {_MARK.strip()!r}: this is not an export")
    return Source(_json(first.removeprefix(_MARK), 1), "line", _csv_rows(text))


def _csv_rows(text: io.TextIOWrapper) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = csv.reader(text, strict=True)
    columns: list[str] | None = None
    while True:
        try:
            cells = next(lines)
        except StopIteration:
            break
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidInput(f"line {lines.line_num + 2}", f"cannot be read: {error}") from None
        place = lines.line_num + 1  # the mark is line 1
        if columns is None:
            columns = refuse_columns(cells, place)
        elif len(cells) != len(columns):
            raise InvalidInput(f"line {place}", f"must have {len(columns)} values, got {len(cells)}")
        else:
            yield place, {name: cell or None for name, cell in zip(columns, cells, strict=True)}
    text.detach()  # or it would close the file, which is its opener's
    if columns is None:
        raise InvalidInput("line 2", f"must name the columns {', '.join(COLUMNS)}")


def refuse_columns(columns: list[str], place: int) -> list[str]:
    """The columns, which must be those of an export, in any order."""
    if sorted(columns) != sorted(COLUMNS):
        raise InvalidInput(f"line {place}", f"must name the columns {', '.join(COLUMNS)}, got {shown(columns)}")
    return columns


# --- NDJSON -----------------------------------------------------------------------------------------------------------


@contextmanager
def _writing_ndjson(file: BinaryIO, header: dict[str, Any]) -> Iterator[Write]:
    def write(rows: Sequence[Row]) -> None:
        file.write("".join(f"{compact(_dated(row)._asdict())}\n" for row in rows).encode())

    file.write(f"{compact({'belated': header})}\n".encode())
    yield write


def _read_ndjson(file: BinaryIO) -> Source:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n")
    first = _json(_line(text, 1), 1)
    if not isinstance(first, dict) or "belated" not in first:
        raise InvalidInput("line 1", 'must be {"belated": …}: this is not an export')
    return Source(first["belated"], "line", _ndjson_rows(text))


def _ndjson_rows(text: io.TextIOWrapper) -> Iterator[tuple[int, dict[str, Any]]]:
    place = 2
    while line := _line(text, place):
        row = _json(line, place)
        if not isinstance(row, dict) or row.keys() != set(COLUMNS):
            raise InvalidInput(f"line {place}", f"must be an object of {', '.join(COLUMNS)}, got {shown(row)}")
        yield place, row
        place += 1
    text.detach()


def _line(text: io.TextIOWrapper, place: int) -> str:
    try:
        return text.readline()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"line {place}", f"cannot be read: {error}") from None


def _json(line: str, place: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"line {place}", f"must be JSON: {error}") from None


CSV = Format(_writing_csv, _read_csv, 5000)
NDJSON = Format(_writing_ndjson, _read_ndjson, 5000)

"""The embedded store: one SQLite file, in WAL mode, so that readers and the writer do not block one another."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from belated.live.errors import LiveError, Unavailable, WrongLedger
from belated.live.ledger import Collision
from belated.live.pool import Pool

PATIENCE = 30.0  # seconds that a writer waits for those of other processes


class SqliteConnection:
    """A connection within a transaction."""

    shared: ClassVar[str] = ""
    owned: ClassVar[str] = ""

    def __init__(self, raw: sqlite3.Connection):
        self.raw = raw

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.raw.execute(sql, values).fetchall()

    def matching(self, sql: str, keys: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        one = sql.format(keys="= ?")
        execute = self.raw.execute
        return [row for key in keys for row in execute(one, (key,))]

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Many rows in few statements, of 64, 32, … 1 rows each: each statement gives other threads a turn."""
        execute = self.raw.execute
        try:
            for start, size in _portions(len(rows) if " VALUES " in sql else 0):
                values = [value for row in rows[start : start + size] for value in row]
                execute(_widened(sql, len(rows[0]), size), values)
            if " VALUES " not in sql:
                self.raw.executemany(sql, rows)
        except sqlite3.IntegrityError as error:
            raise Collision(str(error)) from None

    def script(self, sql: str) -> None:
        for statement in _statements(sql):
            self.raw.execute(statement)


def _portions(count: int) -> Iterator[tuple[int, int]]:
    """Where portions of 64, 32, … 1 start that make up `count`, with their sizes."""
    start, size = 0, 64
    while start < count:
        while size > count - start:
            size //= 2
        yield start, size
        start += size


@cache
def _widened(sql: str, columns: int, rows: int) -> str:
    """An insertion of one row as one of several."""
    one = f"({', '.join('?' * columns)})"
    return sql.replace(f"VALUES {one}", f"VALUES {', '.join([one] * rows)}")


def _statements(sql: str) -> Iterator[str]:
    """Each statement of a script. `executescript` would commit first."""
    kept = ""
    for line in sql.splitlines(keepends=True):
        kept += line
        if sqlite3.complete_statement(kept):
            yield kept
            kept = ""
    if kept.strip():
        yield kept


def _refuse_at_sight(path: Path) -> None:
    """Refuse what SQLite would be unclear about, or write over. Not by reading: that would release its locks."""
    if not path.parent.is_dir():
        raise WrongLedger("ledger", f"there is no folder {path.parent}")
    if path.is_dir():
        raise WrongLedger("ledger", f"{path} is a folder")
    if path.exists() and 0 < path.stat().st_size < 512:  # no database is so small
        raise WrongLedger("ledger", "it is not an SQLite database")


def _is_ours(raw: sqlite3.Connection) -> bool:
    """Whether the database is a ledger, or empty: one of something else is refused soon, and left as it is."""
    names = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not names or "belated_schema" in names


def _turn_to_wal(raw: sqlite3.Connection) -> None:
    """For good, if it is new. SQLite itself does not wait for another process that does the same at this moment."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.002)
        else:
            return


class SqliteStore:
    """A ledger in one file."""

    tokens: ClassVar[dict[str, str]] = {"bytes": "BLOB", "clustered": "WITHOUT ROWID"}

    def __init__(self, path: str):
        self.path = path
        if not path or path == ":memory:":
            raise WrongLedger("ledger", "needs a file, such as sqlite:///shop.db")
        _refuse_at_sight(Path(path).absolute())
        with _plainly():
            self._writer = self._connect()
        self._readers = Pool(self._connect_reader)

    def _connect(self) -> sqlite3.Connection:
        raw = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            if _is_ours(raw):
                _turn_to_wal(raw)
            raw.execute("PRAGMA synchronous = FULL")  # a commit is on the disk before it is answered
        except BaseException:
            raw.close()
            raise
        return raw

    def _connect_reader(self) -> sqlite3.Connection:
        raw = self._connect()
        raw.execute("PRAGMA query_only = ON")
        return raw

    @contextmanager
    def writing(self) -> Iterator[SqliteConnection]:
        with _plainly(), _transaction(self._writer, "BEGIN IMMEDIATE"):
            yield SqliteConnection(self._writer)

    locked = writing  # IMMEDIATE keeps out every other writer

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        with _plainly(), self._readers.borrowed() as raw, _transaction(raw, "BEGIN"):
            yield SqliteConnection(raw)

    def tables(self, connection: Any) -> set[str]:
        return {name for (name,) in connection.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def close(self) -> None:
        self._readers.close()
        self._writer.close()


@contextmanager
def _transaction(raw: sqlite3.Connection, begin: str) -> Iterator[None]:
    raw.execute(begin)
    try:
        yield
        raw.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk has rolled back already
            raw.execute("ROLLBACK")
        raise


@contextmanager
def _plainly() -> Iterator[None]:
    """SQLite's errors in the words of the engine."""
    try:
        yield
    except LiveError:
        raise
    except sqlite3.ProgrammingError:
        raise Unavailable("ledger", "it has been closed") from None
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise WrongLedger("ledger", "it is not an SQLite database") from None
        if "malformed" in str(error):
            raise WrongLedger("ledger", f"it is damaged: {error}") from None
        if "readonly" in str(error):
            raise WrongLedger("ledger", "it may only be read, not written") from None
        if isinstance(error, sqlite3.OperationalError):
            raise Unavailable("ledger", f"cannot be read or written now: {error}") from None
        raise

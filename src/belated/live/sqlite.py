"""The embedded store: one SQLite file, in WAL mode, so that readers and the writer do not block one another."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from belated.live.errors import LiveError, Unavailable, WrongLedger
from belated.live.ledger import widened
from belated.live.pool import Pool
from belated.live.store import Collision

PATIENCE = 30.0  # seconds that a writer waits for those of other processes


class SqliteConnection:
    """A connection within a transaction."""

    shared: ClassVar[str] = ""
    owned: ClassVar[str] = ""

    def queue(self, experiments: Sequence[int], *, alone: bool = False) -> None:
        """There is one writer at a time."""

    def __init__(self, raw: sqlite3.Connection):
        self.raw = raw

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.raw.execute(sql, values).fetchall()

    def matching(self, sql: str, keys: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        one = sql.format(keys="= ?")
        execute = self.raw.execute
        return [row for key in keys for row in execute(one, (key,))]

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Many rows in few statements: each of them gives other threads a turn."""
        execute = self.raw.execute
        try:
            for one, values in widened(sql, rows):
                execute(one, values)
        except sqlite3.IntegrityError as error:
            raise Collision(str(error)) from None

    def script(self, sql: str) -> None:
        for statement in _statements(sql):
            self.raw.execute(statement)


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


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is at that place, if any."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _is_ours(raw: sqlite3.Connection) -> bool:
    """Whether the database is a ledger, or empty: one of something else is refused soon, and left as it is."""
    names = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not names or "belated_schema" in names


def _patiently(raw: sqlite3.Connection, sql: str) -> None:
    """Execute what another process may be in the way of. SQLite's own patience sleeps up to 100 ms at a time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            raw.execute(sql)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.0005)
        else:
            return


class SqliteStore:
    """A ledger in one file."""

    tokens: ClassVar[dict[str, str]] = {"bytes": "BLOB", "clustered": "WITHOUT ROWID"}

    def __init__(self, path: str):
        self.path = path and os.path.abspath(path)
        if not path or path == ":memory:":
            raise WrongLedger("ledger", "needs a file, such as sqlite:///shop.db")
        _refuse_at_sight(Path(path).absolute())
        with _plainly():
            self._writer = self.connect()
            self._file = _identity(self.path)
            self._writer.execute("PRAGMA busy_timeout = 0")  # its patience is our own
        self._readers = Pool(self._connect_reader)
        self._sweeper = Sweeper(self)

    def connect(self) -> sqlite3.Connection:
        raw = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        try:
            if _is_ours(raw):
                _patiently(raw, "PRAGMA journal_mode = WAL")  # for good, if it is new
            raw.execute("PRAGMA synchronous = FULL")  # a commit is on the disk before it is answered
            raw.execute("PRAGMA wal_autocheckpoint = 0")  # that is the sweeper's
        except BaseException:
            raw.close()
            raise
        return raw

    def _connect_reader(self) -> sqlite3.Connection:
        raw = self.connect()
        raw.execute("PRAGMA query_only = ON")
        return raw

    @contextmanager
    def writing(self) -> Iterator[SqliteConnection]:
        with _plainly():
            self._refuse_moved()
            with _transaction(self._writer, "BEGIN IMMEDIATE"):
                yield SqliteConnection(self._writer)
            self._sweeper.finish(self._writer)

    locked = writing  # IMMEDIATE keeps out every other writer

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        with _plainly():
            self._refuse_moved()
            with self._readers.borrowed() as raw, _transaction(raw, "BEGIN"):
                yield SqliteConnection(raw)

    def _refuse_moved(self) -> None:
        """Refuse to go on with a file that is no longer at its place: what is written there is lost with the handle."""
        if _identity(self.path) != self._file:
            raise Unavailable("ledger", "its file has been moved, removed or replaced; put it back, or start again")

    def tables(self, connection: Any) -> set[str]:
        return {name for (name,) in connection.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def close(self) -> None:
        self._sweeper.close()
        self._readers.close()
        self._writer.close()


class Sweeper:
    """Moves what has been committed from the log into the database, beside the writer: in its way it takes 50 ms."""

    EVERY = 0.25  # seconds between looks
    LARGE = 4_000_000  # bytes of log that are worth it

    def __init__(self, store: SqliteStore):
        self._store = store
        self._log = Path(f"{store.path}-wal")
        self._swept = False  # all but what has been committed since
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="belated-sweeper", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(self.EVERY):
            with suppress(OSError, sqlite3.Error):  # whatever it is, the writer will meet it, or it passes
                if not self._swept and self._log.stat().st_size > self.LARGE:
                    self._sweep()
                    self._swept = True

    def _sweep(self) -> None:
        raw = self._store.connect()
        try:
            raw.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            raw.close()

    def finish(self, raw: sqlite3.Connection) -> None:
        """Between two commits: move the short rest, so that the log begins anew. If a reader is in the way, later."""
        if self._swept:
            self._swept = False
            with suppress(sqlite3.Error):
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        self._end.set()
        self._thread.join()


@contextmanager
def _transaction(raw: sqlite3.Connection, begin: str) -> Iterator[None]:
    _patiently(raw, begin)
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

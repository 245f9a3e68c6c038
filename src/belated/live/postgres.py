"""The shared store: a schema `belated` in a PostgreSQL database, for any number of machines."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, ClassVar

from belated.inputs import InvalidInput
from belated.live.errors import LiveError, Unavailable
from belated.live.ledger import widened
from belated.live.pool import Pool
from belated.live.store import Collision

try:
    import psycopg
    from psycopg import errors as postgres_errors
    from psycopg.conninfo import conninfo_to_dict
except ImportError:  # pragma: no cover
    raise InvalidInput("ledger", "postgresql:// needs psycopg: pip install 'belated[postgres]'") from None

# A server that has gone without a word is noticed within half a minute; the URL may say otherwise.
LINE: dict[str, Any] = {
    "application_name": "belated", "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5,
    "keepalives_count": 3, "tcp_user_timeout": 25_000,
}  # fmt: skip
LOCK = 0x62656C61746564  # of migrations: "belated"
QUEUE = 0x62656C61  # for experiments, each by its id
_AGAIN = (
    postgres_errors.UniqueViolation,
    postgres_errors.SerializationFailure,
    postgres_errors.DeadlockDetected,
)


class PostgresConnection:
    """A connection within a transaction."""

    shared: ClassVar[str] = " FOR SHARE"
    owned: ClassVar[str] = " FOR NO KEY UPDATE"

    def __init__(self, raw: psycopg.Connection[Any]):
        self.raw = raw

    def queue(self, experiments: Sequence[int], *, alone: bool = False) -> None:
        """Locks on rows are not given in turn: with many writers one that waits to change a row may wait for ever."""
        lock = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        self.raw.execute(f"SELECT {lock}($1, id) FROM unnest($2::int[]) AS id", (QUEUE, sorted(experiments)))

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.raw.execute(_own(sql), values, binary=True).fetchall()

    def matching(self, sql: str, keys: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        if not keys:
            return []
        return self.raw.execute(_own(sql.format(keys="= ANY(?)")), (list(keys),), binary=True).fetchall()

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Many rows in few statements: each of them is a round trip."""
        for one, values in widened(sql, rows):
            self.raw.execute(_own(one), values)

    def script(self, sql: str) -> None:
        self.raw.execute(sql)


@cache
def _own(sql: str) -> Any:
    """PostgreSQL's own placeholders, $1, $2, …: psycopg's would be turned into these anew each time."""
    first, *rest = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, start=1))


class PostgresStore:
    """A ledger in a PostgreSQL database."""

    tokens: ClassVar[dict[str, str]] = {"bytes": "BYTEA", "clustered": ""}

    def __init__(self, url: str):
        self._url = url
        self._lock = threading.Lock()
        self._writer: psycopg.Connection[Any] | None = None
        self._readers = Pool(self._connect)

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            line = {**LINE, **conninfo_to_dict(self._url)}
            raw = psycopg.connect(self._url, autocommit=True, cursor_factory=psycopg.RawCursor, **line)
        except psycopg.ProgrammingError as error:  # of an address that cannot be one
            raise InvalidInput("ledger", " ".join(str(error).split())) from None
        try:
            raw.execute("SET search_path TO belated")
            raw.execute("SET synchronous_commit TO on")  # whatever the database says: answered means durable
            raw.execute("SET client_min_messages TO warning")
        except BaseException:
            raw.close()
            raise
        return raw

    @contextmanager
    def writing(self) -> Iterator[PostgresConnection]:
        with _plainly(), self._lock:
            if self._writer is None:
                self._writer = self._connect()
            try:
                with self._writer.transaction():
                    yield PostgresConnection(self._writer)
            finally:
                if self._writer.broken or self._writer.closed:
                    self._writer = None  # the next batch connects anew

    @contextmanager
    def locked(self) -> Iterator[PostgresConnection]:
        with self.writing() as connection:
            connection.rows(f"SELECT pg_advisory_xact_lock({LOCK})")
            connection.script("CREATE SCHEMA IF NOT EXISTS belated")
            yield connection

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        with _plainly():
            try:
                with self._readers.borrowed() as raw, _snapshot(raw):
                    yield PostgresConnection(raw)
            except psycopg.OperationalError:
                self._readers.clear()  # when one has lost its server, so have the others
                raise

    def tables(self, connection: Any) -> set[str]:
        return {name for (name,) in connection.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'belated'")}

    def close(self) -> None:
        self._readers.close()
        with self._lock:
            if self._writer is not None:
                self._writer.close()


@contextmanager
def _snapshot(raw: psycopg.Connection[Any]) -> Iterator[None]:
    raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            raw.execute("ROLLBACK")


@contextmanager
def _plainly() -> Iterator[None]:
    """PostgreSQL's errors in the words of the engine."""
    try:
        yield
    except LiveError:
        raise
    except _AGAIN as error:
        raise Collision(str(error)) from None
    except postgres_errors.ReadOnlySqlTransaction:
        raise Unavailable("ledger", "PostgreSQL may only be read now") from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Unavailable("ledger", f"PostgreSQL cannot be reached now: {reason}") from None

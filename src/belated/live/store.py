"""What a store of live experiments offers, and the rows that it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, Protocol

BINS = 50  # of a window, at most; migration 4 has it too


class ExperimentRow(NamedTuple):
    """An experiment, as the ledger keeps it."""

    id: int
    name: str
    settings: str
    status: str
    epoch: int
    grain: int
    failure_after: int | None
    created_at: int

    @property
    def width(self) -> int:
        """The time in ms of a block of decisions and of a bin of lags: whole grains, at most `BINS` a window."""
        return self.grain * -(-(self.failure_after or 0) // (BINS * self.grain))

    @property
    def bins(self) -> int:
        """How many of them make a window."""
        return -(-(self.failure_after or 0) // self.width)


class ArmRow(NamedTuple):
    """An arm, as the ledger keeps it."""

    experiment: int
    arm: int
    name: str
    status: str
    prior_a: float
    prior_b: float
    added_at: int


class DecisionRow(NamedTuple):
    """A decision, as the ledger keeps it."""

    id: bytes
    experiment: int
    arm: int
    asked_at: int
    propensity: float
    unit: str | None


class OutcomeRow(NamedTuple):
    """A revision of the outcome of a decision, as the ledger keeps it; a reward of None takes it back."""

    decision: bytes
    revision: int
    reward: int | None
    occurred_at: int | None
    received_at: int
    heard_at: int | None

    @property
    def heard(self) -> int:
        """When the outcome was first received, corrections apart."""
        return self.received_at if self.heard_at is None else self.heard_at


class Collision(Exception):
    """A unique key is taken, by another writer or twice in one batch: judge the batch again on what stands now."""


class Connection(Protocol):
    """A connection within a transaction, of either store. In SQL, ? stands for a value and {keys} for one of many."""

    shared: ClassVar[str]
    """At the end of a query: no other transaction changes its rows before this one has ended."""
    owned: ClassVar[str]
    """And none relies on them either. Both are empty where there is one writer at a time."""

    def queue(self, experiments: Sequence[int], *, alone: bool = False) -> None:
        """Wait in turn for these experiments: beside others, or alone. What waits to be alone is not overtaken."""
        ...

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def matching(self, sql: str, keys: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        """The rows of a query whose one condition is `column {keys}`."""
        ...

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute for each row. Raises Collision if a unique key is taken."""
        ...

    def script(self, sql: str) -> None: ...


class Store(Protocol):
    """A database: where transactions begin."""

    tokens: ClassVar[dict[str, str]]

    def writing(self) -> AbstractContextManager[Connection]:
        """The one writing transaction of this process: committed, and durable, at its end."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """A snapshot, for reading only. It blocks no writer and is blocked by none."""
        ...

    def locked(self) -> AbstractContextManager[Connection]:
        """A writing transaction that no other process has at the same time, for migrations."""
        ...

    def tables(self, connection: Connection) -> set[str]:
        """The names of the tables that there are."""
        ...

    def close(self) -> None: ...

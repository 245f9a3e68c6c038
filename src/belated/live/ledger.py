"""The SQL that both stores share.

The ledger is the truth: decisions and outcomes are only appended. The tables of `SUMS` are sums over them, moved in the
same transaction. What must happen once is held by unique keys, never by a check in Python: a batch is judged on
what its transaction reads, and if a key then collides with another writer's, all of it is judged again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from belated.live.errors import NotFound
from belated.live.store import ArmRow, Connection, DecisionRow, ExperimentRow, OutcomeRow

# --- Reading ----------------------------------------------------------------------------------------------------------

_EXPERIMENT = "SELECT id, name, settings, status, epoch, grain, failure_after, created_at FROM experiments"
_DECISION = "SELECT id, experiment, arm, asked_at, propensity, unit FROM decisions"
_OUTCOME = "SELECT decision, revision, reward, occurred_at, received_at, heard_at FROM outcomes"


def experiments(connection: Connection) -> list[ExperimentRow]:
    """All experiments, the oldest first."""
    return [ExperimentRow(*row) for row in connection.rows(f"{_EXPERIMENT} ORDER BY id")]


def experiment(connection: Connection, name: str, *, owned: bool = False) -> ExperimentRow:
    """The experiment of that name; `owned`, if it is to be changed by what is read of it."""
    if owned:
        connection.queue(
            [id for (id,) in connection.rows("SELECT id FROM experiments WHERE name = ?", (name,))], alone=True
        )
    rows = connection.rows(f"{_EXPERIMENT} WHERE name = ?{connection.owned if owned else ''}", (name,))
    if not rows:
        raise NotFound("experiment", f"there is none named {name!r}")
    return ExperimentRow(*rows[0])


def experiments_by_id(connection: Connection, ids: Sequence[int]) -> dict[int, ExperimentRow]:
    """These experiments, which stay as they are until the transaction has ended: what is decided on them holds."""
    connection.queue(ids)
    sql = f"{_EXPERIMENT} WHERE id {{keys}} ORDER BY id{connection.shared}"
    return {row[0]: ExperimentRow(*row) for row in connection.matching(sql, ids)}


def arms(connection: Connection, experiment: int) -> list[ArmRow]:
    """The arms of an experiment, in order: arm 0 stands at place 0."""
    sql = "SELECT experiment, arm, name, status, prior_a, prior_b, added_at FROM arms WHERE experiment = ? ORDER BY arm"
    return [ArmRow(*row) for row in connection.rows(sql, (experiment,))]


def decisions(connection: Connection, ids: Sequence[bytes]) -> dict[bytes, DecisionRow]:
    """These decisions, of those that there are."""
    return {row[0]: DecisionRow(*row) for row in connection.matching(f"{_DECISION} WHERE id {{keys}}", ids)}


def outcomes(connection: Connection, ids: Sequence[bytes]) -> dict[bytes, OutcomeRow]:
    """The latest revision of each of these decisions' outcomes, of those that have any."""
    latest: dict[bytes, OutcomeRow] = {}
    for row in connection.matching(f"{_OUTCOME} WHERE decision {{keys}}", ids):
        outcome = OutcomeRow(*row)
        if outcome.decision not in latest or latest[outcome.decision].revision < outcome.revision:
            latest[outcome.decision] = outcome
    return latest


def holders(connection: Connection, experiment: int, units: Sequence[str]) -> dict[str, bytes]:
    """The decisions that these units have in a sticky experiment."""
    sql = f"SELECT unit, decision FROM units WHERE experiment = {int(experiment)} AND unit {{keys}}"
    return dict(connection.matching(sql, units))


class Sums(NamedTuple):
    """What totals and buckets count."""

    asked: int
    told: int
    rewards: int


def totals(connection: Connection, experiment: int) -> dict[int, Sums]:
    """The sums over all decisions, by arm."""
    sql = "SELECT arm, asked, told, rewards FROM totals WHERE experiment = ?"
    return {arm: Sums(*sums) for arm, *sums in connection.rows(sql, (experiment,))}


def last_asked(connection: Connection, experiment: int) -> int:
    """The time of the latest decision, or 0."""
    ((last,),) = connection.rows("SELECT MAX(asked_at) FROM decisions WHERE experiment = ?", (experiment,))
    return int(last or 0)


class BlockRow(NamedTuple):
    """The sums over the decisions of a block of time, with the conversions: rewards above 0 within the window."""

    block: int
    arm: int
    asked: int
    told: int
    rewards: int
    converted: int


def blocks(connection: Connection, experiment: int, since: int) -> list[BlockRow]:
    """The blocks from `since` on, in order; only experiments with a window have any."""
    sql = (
        "SELECT block, arm, asked, told, rewards, converted FROM blocks WHERE experiment = ? AND block >= ? "
        "ORDER BY block, arm"
    )
    return [BlockRow(*row) for row in connection.rows(sql, (experiment, since))]


def asked_after(connection: Connection, row: ExperimentRow, whole: list[BlockRow], after: int) -> dict[int, Sums]:
    """The sums over decisions asked later than `after`, by arm: from blocks, buckets, and the rows of one bucket."""
    block, edge = after // row.width, after // row.grain
    young: dict[int, list[int]] = {}

    def add_up(arm: int, sums: Iterable[int]) -> None:
        young[arm] = [count + int(more) for count, more in zip(young.get(arm, (0, 0, 0)), sums, strict=True)]

    for each in whole:
        if each.block > block:
            add_up(each.arm, (each.asked, each.told, each.rewards))
    sql = (
        "SELECT arm, SUM(asked), SUM(told), SUM(rewards) FROM buckets "
        "WHERE experiment = ? AND bucket > ? AND bucket < ? GROUP BY arm"
    )
    for arm, *sums in connection.rows(sql, (row.id, edge, (block + 1) * (row.width // row.grain))):
        add_up(arm, sums)
    sql = (
        f"SELECT d.arm, COUNT(*), COUNT(o.reward), COALESCE(SUM(o.reward), 0) FROM decisions d LEFT JOIN {STANDING} "
        "WHERE d.experiment = ? AND d.asked_at > ? AND d.asked_at < ? GROUP BY d.arm"
    )
    for arm, *sums in connection.rows(sql, (row.id, after, (edge + 1) * row.grain)):
        add_up(arm, sums)
    return {arm: Sums(*sums) for arm, sums in young.items()}


# The outcome of decision d that stands: its last revision, unless that takes it back.
STANDING = (
    "outcomes o ON o.decision = d.id AND o.reward IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM outcomes later WHERE later.decision = d.id AND later.revision > o.revision)"
)


def lags(connection: Connection, experiment: int) -> list[tuple[int, int, int]]:
    """(arm, lag in grains, outcomes), in order."""
    sql = "SELECT arm, lag, told FROM lags WHERE experiment = ? AND told <> 0 ORDER BY arm, lag"
    return [(arm, lag, told) for arm, lag, told in connection.rows(sql, (experiment,))]


def buckets(connection: Connection, experiment: int, since: int = 0) -> list[tuple[int, int, int, int, int]]:
    """(bucket, arm, asked, told, rewards) from bucket `since` on, in order."""
    sql = (
        "SELECT bucket, arm, asked, told, rewards FROM buckets WHERE experiment = ? AND bucket >= ? "
        "ORDER BY bucket, arm"
    )
    return [tuple(row) for row in connection.rows(sql, (experiment, since))]


def unanswered_by_bucket(connection: Connection, experiment: int, since: int) -> dict[int, int]:
    """How many decisions have no outcome, by the bucket of their time, from bucket `since` on."""
    sql = (
        "SELECT bucket, SUM(asked - told) FROM buckets WHERE experiment = ? AND bucket >= ? "
        "GROUP BY bucket HAVING SUM(asked - told) > 0 ORDER BY bucket"
    )
    return {bucket: int(count) for bucket, count in connection.rows(sql, (experiment, since))}


_WAIT = "COALESCE(o.heard_at, o.received_at) - d.asked_at"


def waits(connection: Connection, experiment: int, within: int | None = None) -> list[tuple[int, int, int]]:
    """(arm, wait in ms, outcomes): how long each outcome that stands was waited for.

    With `within`, a window in ms, only of the conversions: rewards above 0 within the window.
    """
    converted, values = ("", ()) if within is None else (f" AND o.reward > 0 AND {_WAIT} < ?", (within,))
    sql = (
        f"SELECT d.arm, {_WAIT}, COUNT(*) FROM decisions d JOIN {STANDING} WHERE d.experiment = ?{converted} "
        f"GROUP BY d.arm, {_WAIT} ORDER BY d.arm, {_WAIT}"
    )
    return [tuple(row) for row in connection.rows(sql, (experiment, *values))]


def pending(connection: Connection, experiment: int, within: int | None = None) -> list[tuple[int, int, int]]:
    """(arm, asked_at, decisions) of the decisions without an outcome or, with `within`, without a conversion."""
    other, values = ("", ()) if within is None else (f" OR o.reward <= 0 OR {_WAIT} >= ?", (within,))
    sql = (
        f"SELECT d.arm, d.asked_at, COUNT(*) FROM decisions d LEFT JOIN {STANDING} "
        f"WHERE d.experiment = ? AND (o.decision IS NULL{other}) "
        "GROUP BY d.arm, d.asked_at ORDER BY d.arm, d.asked_at"
    )
    return [tuple(row) for row in connection.rows(sql, (experiment, *values))]


def asked_since(connection: Connection, experiment: int, after: int) -> int:
    """How many decisions were asked for later than `after`."""
    sql = "SELECT COUNT(*) FROM decisions WHERE experiment = ? AND asked_at > ?"
    return int(connection.rows(sql, (experiment, after))[0][0])


class Recent(NamedTuple):
    """A decision, and how long its outcome was waited for, in ms, if it stands."""

    arm: int
    asked_at: int
    wait: int | None
    reward: int | None


def recent(connection: Connection, experiment: int, after: int) -> list[Recent]:
    """The decisions asked later than `after`, the oldest first."""
    sql = (
        f"SELECT d.arm, d.asked_at, {_WAIT}, o.reward FROM decisions d LEFT JOIN {STANDING} "
        "WHERE d.experiment = ? AND d.asked_at > ? ORDER BY d.asked_at, d.id"
    )
    return [Recent(*row) for row in connection.rows(sql, (experiment, after))]


def every_decision(
    connection: Connection, experiment: int, chunk: int = 5000
) -> Iterator[list[tuple[DecisionRow, list[OutcomeRow]]]]:
    """All decisions in the order of their ids, each with the revisions of its outcome, some thousands at a time."""
    last = b""
    while True:
        # The plus keeps the index by time out of it: sorting the whole experiment for every chunk.
        sql = f"{_DECISION} WHERE +experiment = ? AND id > ? ORDER BY id LIMIT ?"
        found = [DecisionRow(*row) for row in connection.rows(sql, (experiment, last, chunk))]
        if not found:
            return
        revisions: dict[bytes, list[OutcomeRow]] = {row.id: [] for row in found}
        for row in connection.matching(f"{_OUTCOME} WHERE decision {{keys}}", list(revisions)):
            revisions[row[0]].append(OutcomeRow(*row))
        yield [(row, sorted(revisions[row.id], key=lambda each: each.revision)) for row in found]
        last = found[-1].id


# --- Writing ----------------------------------------------------------------------------------------------------------


WIDEST = 64  # rows of one statement


def widened(sql: str, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Statements, with their values, that do for many rows what `sql` does for one: an insertion takes several."""
    if " VALUES " not in sql:
        yield from ((sql, row) for row in rows)
        return
    for start in range(0, len(rows), WIDEST):
        portion = rows[start : start + WIDEST]
        yield _wide(sql, len(rows[0]), len(portion)), [value for row in portion for value in row]


@cache
def _wide(sql: str, columns: int, rows: int) -> str:
    one = f"({', '.join('?' * columns)})"
    return sql.replace(f"VALUES {one}", f"VALUES {', '.join([one] * rows)}")


def _insert(table: str, columns: Iterable[str]) -> str:
    names = list(columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


_TABLES = {
    ExperimentRow: _insert("experiments", ExperimentRow._fields),
    ArmRow: _insert("arms", ArmRow._fields),
    DecisionRow: _insert("decisions", DecisionRow._fields),
    OutcomeRow: _insert("outcomes", OutcomeRow._fields),
}


def append(connection: Connection, rows: Sequence[Any]) -> None:
    """Append rows of one kind."""
    if rows:
        connection.many(_TABLES[type(rows[0])], rows)


def claim(connection: Connection, claims: Sequence[tuple[int, str, bytes]]) -> None:
    """Note which decision each (experiment, unit) of a sticky experiment has."""
    if claims:
        connection.many("INSERT INTO units (experiment, unit, decision) VALUES (?, ?, ?)", claims)


SUMS = {
    "totals": ("experiment, arm", "asked, told, rewards"),
    "buckets": ("experiment, bucket, arm", "asked, told, rewards"),
    "lags": ("experiment, arm, lag", "told"),
    "blocks": ("experiment, block, arm", "asked, told, rewards, converted"),
    "bins": ("experiment, arm, bin", "converted"),
    "fresh": ("experiment, edge, arm, bin", "converted"),
}


def columns(table: str) -> tuple[list[str], list[str]]:
    """The key of a table of sums, and what it counts."""
    keys, counts = (re.split(", ", part) for part in SUMS[table])
    return keys, counts


def _upsert(table: str) -> str:
    keys, counts = columns(table)
    moved = ", ".join(f"{count} = {table}.{count} + excluded.{count}" for count in counts)
    return f"{_insert(table, keys + counts)} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {moved}"


_UPSERTS = {table: _upsert(table) for table in SUMS}


def add(connection: Connection, table: str, changes: Mapping[tuple[int, ...], Sequence[int]]) -> None:
    """Move the sums of a table. In the order of the keys, so that two writers cannot wait for each other."""
    rows = [(*key, *counts) for key, counts in sorted(changes.items()) if any(counts)]
    if rows:
        connection.many(_UPSERTS[table], rows)


def change_experiment(connection: Connection, experiment: int, status: str) -> None:
    """Give an experiment another status."""
    connection.many("UPDATE experiments SET status = ?, epoch = epoch + 1 WHERE id = ?", [(status, experiment)])


def touch(connection: Connection) -> None:
    """Write what is there already: it proves, once it is committed, that the ledger can be written."""
    connection.many("UPDATE belated_schema SET version = version WHERE version = ?", [(1,)])


def change_arm(connection: Connection, experiment: int, arm: int, status: str) -> None:
    """Give an arm another status."""
    connection.many("UPDATE arms SET status = ? WHERE experiment = ? AND arm = ?", [(status, experiment, arm)])
    connection.many("UPDATE experiments SET epoch = epoch + 1 WHERE id = ?", [(experiment,)])

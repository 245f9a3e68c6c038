"""The service's speed with wrk, in one run beside an echo of the same stack that stores nothing.

    python benchmarks/service.py [--ledger URL] [--workers N] [--connections N] [--seconds N]

Every decision and outcome is durable before it is answered. wrk (Debian's package) sends from loopback to loopback.
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
    """What wrk measured."""

    second: float
    p50: str
    p99: str
    failed: int


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
    import uvicorn

    from belated.service.serve import options

    sys.path.insert(0, str(Path(__file__).parent))
    uvicorn.run("service:echo", workers=workers, lifespan="off", **options("127.0.0.1", port))


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[str]:
    """A server in a process of its own, from its first answer until it has ended."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def measured(url: str, script: str, connections: int, seconds: int, **environment: str) -> Rate:
    """What wrk says, from one thread."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", file.name, url]
        run = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    text = run.stdout
    second = re.search(r"Requests/sec:\s+([\d.]+)", text)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    p50, p99 = (re.search(rf"{share}%\s+(\S+)", text) for share in (50, 99))
    if not (second and p50 and p99):
        raise SystemExit(f"wrk said: {text}{run.stderr}")
    return Rate(float(second[1]), p50[1], p99[1], int(failed[1]) if failed else 0)


def show(name: str, rate: Rate, echoed: float) -> None:
    """A line of the table."""
    failed = f"   {rate.failed} FAILED" if rate.failed else ""
    print(f"{name:28}{rate.second:10,.0f} /s{rate.second / echoed:8.2f}{rate.p50:>10}{rate.p99:>10}{failed}")


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ledger", help="a URL; by default an SQLite file in a temporary folder")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--connections", type=int, default=64)
    options.add_argument("--seconds", type=int, default=8)
    options.add_argument("--echo", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.echo:
        serve_echo(given.echo, given.workers)
        return
    if not shutil.which("wrk"):
        raise SystemExit("wrk is needed: apt-get install wrk")
    many, seconds = given.connections, given.seconds
    workers = f"--workers={given.workers}"
    print(f"{given.workers} workers, {many} connections, {seconds} s each; share of the echo, median, 99th percentile")
    with running([sys.executable, __file__, "--echo=8871", workers], 8871) as url:
        echoed = max(measured(url, ASK, many, seconds).second for _ in range(2))
        show("echo, nothing stored", measured(url, ASK, many, seconds), echoed)
    with tempfile.TemporaryDirectory() as folder:
        ledger = given.ledger or f"sqlite:///{folder}/bench.db"
        belated = [str(Path(sys.executable).parent / "belated"), "serve", f"--ledger={ledger}", "--port=8872", workers]
        with running([*belated, "--quiet"], 8872) as url:
            name = f"bench-{time.time_ns()}"
            client = Client(url)
            client.create(name, ["a", "b", "c"])
            asks = f"{url}/v1/experiments/{name}/decisions"
            for _ in range(2):
                show("decisions", measured(asks, ASK, many, seconds), echoed)
            ids = Path(folder) / "ids"
            asked = [client._call("POST", f"/v1/experiments/{name}/decisions", {"count": 1000})[1] for _ in range(200)]
            ids.write_text("".join(f"{each['id']}\n" for batch in asked for each in batch))
            show("outcomes", measured(url, TELL, many, seconds, IDS=str(ids)), echoed)


if __name__ == "__main__":
    main()

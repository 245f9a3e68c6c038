"""Running the service: uvicorn, one process or several, on one ledger."""

from __future__ import annotations

import gc
import ipaddress
import json
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from belated import live
from belated.inputs import InvalidInput, number
from belated.service import keys, logs
from belated.service.app import Limits, Service
from belated.service.limit import Limit
from belated.service.protocol import Protocol

SETTINGS = "BELATED_SERVICE"  # the environment variable by which workers are told


def application() -> Service:
    """The application of a worker, from the settings in its environment."""
    given = json.loads(os.environ[SETTINGS])
    logs.start(requests=given["log"])
    gc.freeze()  # what is imported stays
    gc.set_threshold(100_000, 50, 100)  # requests leave no cycles: looking for some costs a twentieth of the time
    sys.setswitchinterval(0.001)  # the writer's thread waits no longer for its turn
    limits = Limits(rate=given["rate"], shared=given.get("shared"))
    counts = Path(given["counts"]) if "counts" in given else None
    return Service(lambda: live.open(given["ledger"]), limits=limits, loopback=given["loopback"], counts=counts)


def run(
    ledger: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    rate: float | None = None,
    log: bool = True,
) -> None:
    """Serve until told to stop."""
    number("port", port, low=0, high=65535, whole=True)
    number("workers", workers, low=1, high=256, whole=True)
    if rate is not None:
        number("rate", rate, above=0.0)
    loopback = is_loopback(host)
    with live.open(ledger) as opened:  # also brings the schema up to date, before any worker looks
        if not loopback and not any(key.revoked_at is None for key in keys.listed(opened)):
            message = f"{host} can be reached from elsewhere: make a key first, with `belated keys create --role admin`"
            raise InvalidInput("host", message)
    refuse_taken(host, port)
    settings = {"ledger": ledger, "rate": rate, "log": log, "loopback": loopback}
    if workers == 1:
        os.environ[SETTINGS] = json.dumps(settings)
        uvicorn.run(application(), **options(host, port))
        return
    with tempfile.TemporaryDirectory(prefix="belated-workers-") as folder:
        shared = os.path.join(folder, "limit")  # what workers count together
        Limit.prepare(shared)
        os.environ[SETTINGS] = json.dumps({**settings, "shared": shared, "counts": folder})
        run_several("belated.service.serve:application", host, port, workers, factory=True)


def run_several(application: str, host: str, port: int, workers: int, **more: Any) -> None:
    """Run an application in several processes."""
    config = uvicorn.Config(application, workers=workers, **more, **options(host, port))
    with Shared.bound(host, port) as own:
        Multiprocess(config, sockets=[own]).run()


class Shared(socket.socket):
    """An address that each process listens at for itself: handed to another process, it is opened there anew.

    So the kernel shares connections out. Where all accept from one queue, the first to wake may take them all.
    """

    @classmethod
    def bound(cls, host: str, port: int) -> Shared:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return cls._at(family, kind, protocol, address)

    @classmethod
    def _at(cls, family: int, kind: int, protocol: int, address: Any) -> Shared:
        own = cls(family, kind, protocol)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        own.bind(address)
        return own

    def __reduce__(self) -> Any:
        return Shared._at, (self.family, self.type, self.proto, self.getsockname())


def options(host: str, port: int) -> dict[str, Any]:
    """How uvicorn is to run."""
    return {
        "host": host,
        "port": port,
        "loop": "uvloop",
        "http": Protocol,
        "ws": "none",
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": 75,
        "timeout_graceful_shutdown": 20,
        "backlog": 2048,
    }


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_taken(host: str, port: int) -> None:
    """Refuse an address that cannot be had, before any worker tries."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise InvalidInput("port", f"cannot listen on {host}:{port}: {error.strerror or error}") from None

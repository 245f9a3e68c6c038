"""A first minute: the service on a temporary ledger, with visitors whose conversions come late and time sped up."""

from __future__ import annotations

import contextlib
import heapq
import socket
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import numpy as np
import uvicorn

from belated import live
from belated.inputs import number
from belated.live import Experiment, Ledger, LiveError
from belated.service import logs
from belated.service.app import Service
from belated.service.serve import options, refuse_taken

DAY = 86_400.0
HISTORY = 6.0  # days that have passed when the page is first seen
TICK = 0.2  # seconds


class Crowd(NamedTuple):
    """The visitors of one experiment: how many come, how often they convert, and how late."""

    name: str
    rates: dict[str, float]
    visitors: float  # a day
    wait: float  # the mean, in days
    silence: live.Failure | live.Pending


CROWDS = (
    Crowd(
        "checkout button",
        {"buy now": 0.11, "add to basket": 0.08, "continue": 0.05},
        800.0,
        1.0,
        live.Failure(after="4d"),
    ),
    Crowd("welcome letter", {"short": 0.34, "long": 0.27}, 150.0, 2.0, live.Pending()),
    Crowd("price", {"9": 0.060, "10": 0.058, "12": 0.044, "15": 0.030}, 500.0, 0.5, live.Failure("2d")),
)


class Clock:
    """Time that stands where it is put until it is let go; then it runs `speed` times as fast."""

    def __init__(self, now: float, speed: float):
        self._now = now
        self._speed = speed
        self._since: float | None = None

    def __call__(self) -> float:
        passed = 0.0 if self._since is None else time.monotonic() - self._since
        return self._now + self._speed * passed

    def move(self, seconds: float) -> None:
        self._now += seconds

    def go(self) -> None:
        self._since = time.monotonic()


class Visitors:
    """Those who come to one experiment: each is decided for, and of some it is told, later."""

    def __init__(self, home: Ledger, crowd: Crowd, now: float, seed: int):
        self._test: Experiment = home.create(crowd.name, list(crowd.rates), silence=crowd.silence)
        self._crowd = crowd
        self._rng = np.random.default_rng(seed)
        self._seen = now
        self._due: list[tuple[float, str, float]] = []

    def come(self, now: float) -> None:
        """Let come who came since, and tell what is due by now."""
        count = int(self._rng.poisson(self._crowd.visitors * (now - self._seen) / DAY))
        self._seen = now
        decisions: list[live.Decision] = []
        with contextlib.suppress(LiveError):  # a person may have stopped it on the page; outcomes are still heard
            decisions = self._test.ask_many(count) if count else []
        for decision in decisions:
            converts = self._rng.random() < self._crowd.rates.get(decision.arm, 0.05)
            due = now + float(self._rng.exponential(self._crowd.wait * DAY))
            if converts or isinstance(self._crowd.silence, live.Pending):
                heapq.heappush(self._due, (due, decision.id, float(converts)))
        told = []
        while self._due and self._due[0][0] <= now:
            told.append(heapq.heappop(self._due)[1:])
        self._test.tell_many(told)


class Demo:
    """The crowds on one ledger, and the thread in which they come."""

    def __init__(self, url: str, *, speed: float, history: float = HISTORY, seed: int = 1):
        self.clock = Clock(time.time() - history * DAY, speed)
        self.ledger = live.open(url, clock=self.clock, rng=np.random.default_rng(seed))
        now = self.clock()
        self._crowds = [Visitors(self.ledger, crowd, now, seed + place) for place, crowd in enumerate(CROWDS)]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="belated-visitors", daemon=True)
        for _ in range(round(history * 12)):
            self.clock.move(DAY / 12)
            self._step()

    def start(self) -> None:
        self.clock.go()
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _step(self) -> None:
        for crowd in self._crowds:
            crowd.come(self.clock())

    def _run(self) -> None:
        while not self._end.wait(TICK):
            self._step()


def run(*, port: int, speed: float) -> None:
    """Serve the demo until told to stop."""
    number("port", port, low=0, high=65535, whole=True)
    number("speed", speed, above=0.0, high=1e6)
    refuse_taken("127.0.0.1", port)
    port = port or _free_port()
    logs.start(requests=False)
    print("some days of visitors come first …", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="belated-demo-") as folder:
        demo = Demo(f"sqlite:///{folder}/demo.db", speed=speed)
        demo.start()
        print(f"the page is at http://127.0.0.1:{port}/", flush=True)
        print(f"one second is {speed / 3600:g} hours there; Ctrl-C ends it and leaves nothing behind", file=sys.stderr)
        try:
            uvicorn.run(Service(lambda: demo.ledger), **{**options("127.0.0.1", port), "log_level": "warning"})
        finally:
            demo.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""What Prometheus is told."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import Response

from belated.live import Ledger, ledger

_TIMES = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)


class Counted:
    """The counts and times of this process, or with several workers of all of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.decisions = Counter("belated_decisions", "Decisions made.", ["experiment"], registry=self.registry)
        self.outcomes = Counter("belated_outcomes", "Outcomes told, by status.", ["status"], registry=self.registry)
        self.requests = Histogram(
            "belated_request_seconds", "Time of a request.", ["route", "status"], registry=self.registry, buckets=_TIMES
        )
        self._commit_size = Histogram(
            "belated_commit_operations", "Operations in one commit.", registry=self.registry, buckets=_SIZES
        )
        self._commit_time = Histogram(
            "belated_commit_seconds", "Time of one commit.", registry=self.registry, buckets=_TIMES
        )
        self._timers: dict[tuple[str, int], Any] = {}
        self._made: dict[str, Any] = {}

    def decided(self, experiment: str, count: int) -> None:
        counter = self._made.get(experiment)
        if counter is None:
            counter = self._made[experiment] = self.decisions.labels(experiment)
        counter.inc(count)

    def timed(self, route: str, status: int, seconds: float) -> None:
        timer = self._timers.get((route, status))
        if timer is None:
            timer = self._timers[route, status] = self.requests.labels(route, str(status))
        timer.observe(seconds)

    def committed(self, operations: int, seconds: float) -> None:
        self._commit_size.observe(operations)
        self._commit_time.observe(seconds)

    def page(self, home: Ledger) -> Response:
        registry = CollectorRegistry()
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            text = generate_latest(registry)
        else:
            text = generate_latest(self.registry)
        return Response(text + self._pending(home), media_type=CONTENT_TYPE_LATEST)

    @staticmethod
    def _pending(home: Ledger) -> bytes:
        """Read from the ledger when asked, for it is the same for every process."""
        registry = CollectorRegistry()
        gauge = Gauge("belated_pending", "Decisions without an outcome.", ["experiment"], registry=registry)
        with home.store.reading() as connection:
            for row in ledger.experiments(connection):
                sums = ledger.totals(connection, row.id).values()
                gauge.labels(row.name).set(sum(each.asked - each.told for each in sums))
        return generate_latest(registry)

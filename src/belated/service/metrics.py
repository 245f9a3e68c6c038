"""What Prometheus is told."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from starlette.responses import Response

from belated.live import Ledger, ledger
from belated.service.counts import Counts

_TIMES = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_COUNTERS = {
    "belated_decisions": ("Decisions made.", ["experiment"]),
    "belated_outcomes": ("Outcomes told, by status.", ["status"]),
}
_HISTOGRAMS = {
    "belated_request_seconds": ("Time of a request.", ["route", "status"], _TIMES),
    "belated_commit_operations": ("Operations in one commit.", [], _SIZES),
    "belated_commit_seconds": ("Time of one commit.", [], _TIMES),
}


class Histogram:
    """How many amounts lie up to each bound, and their sum."""

    def __init__(self, counts: Counts, name: str, *labels: str):
        self._bounds: tuple[float, ...] = _HISTOGRAMS[name][2]
        bounds = [*(str(float(each)) for each in self._bounds), "+Inf"]
        self._buckets = [counts.adder((name, *labels, bound)) for bound in bounds]
        self._sum = counts.adder((name, *labels, "sum"))

    def observe(self, amount: float) -> None:
        self._buckets[bisect_left(self._bounds, amount)](1)
        self._sum(amount)


class Counted:
    """The counts and times of this process, or with a folder those of all that share it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._counts = Counts(folder)
        self._adders: dict[tuple[str, str], Callable[[float], None]] = {}
        self._timers: dict[tuple[str, int], Histogram] = {}
        self._commit_size = Histogram(self._counts, "belated_commit_operations")
        self._commit_time = Histogram(self._counts, "belated_commit_seconds")

    def decided(self, experiment: str, count: int = 1) -> None:
        self._adder("belated_decisions", experiment)(count)

    def told(self, status: str) -> None:
        self._adder("belated_outcomes", status)(1)

    def timed(self, route: str, status: int, seconds: float) -> None:
        timer = self._timers.get((route, status))
        if timer is None:
            timer = Histogram(self._counts, "belated_request_seconds", route, str(status))
            self._timers[route, status] = timer
        timer.observe(seconds)

    def committed(self, operations: int, seconds: float) -> None:
        """To be called by one thread, the writer's."""
        self._commit_size.observe(operations)
        self._commit_time.observe(seconds)

    def page(self, home: Ledger) -> Response:
        registry = CollectorRegistry()
        registry.register(_Page([*self._families(), _pending(home)]))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    def _adder(self, name: str, label: str) -> Callable[[float], None]:
        adder = self._adders.get((name, label))
        if adder is None:
            adder = self._adders[name, label] = self._counts.adder((name, label))
        return adder

    def _families(self) -> Iterator[Any]:
        numbers = self._counts.all()
        for name, (text, labels) in _COUNTERS.items():
            counter = CounterMetricFamily(name, text, labels=labels)
            for key, number in numbers.items():
                if key[0] == name:
                    counter.add_metric(key[1:], number)
            yield counter
        for name, (text, labels, bounds) in _HISTOGRAMS.items():
            histogram = HistogramMetricFamily(name, text, labels=labels)
            places = [*(str(float(each)) for each in bounds), "+Inf"]
            for values in dict.fromkeys(key[1:-1] for key in numbers if key[0] == name):
                each = accumulate(numbers.get((name, *values, place), 0.0) for place in places)
                total = numbers.get((name, *values, "sum"), 0.0)
                histogram.add_metric(values, list(zip(places, each, strict=True)), total)
            yield histogram


class _Page:
    """What has been collected already, as a registry takes it."""

    def __init__(self, families: list[Any]):
        self._families = families

    def collect(self) -> list[Any]:
        return self._families


def _pending(home: Ledger) -> GaugeMetricFamily:
    """Read from the ledger when asked, for it is the same for every process."""
    gauge = GaugeMetricFamily("belated_pending", "Decisions without an outcome.", labels=["experiment"])
    with home.store.reading() as connection:
        for row in ledger.experiments(connection):
            sums = ledger.totals(connection, row.id).values()
            gauge.add_metric([row.name], sum(each.asked - each.told for each in sums))
    return gauge

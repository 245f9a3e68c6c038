"""Live experiments: ask for a decision now, tell its outcome whenever it comes.

>>> import tempfile
>>> from belated import live
>>> with live.open(f"sqlite:///{tempfile.mkdtemp()}/shop.db") as shop:
...     test = shop.create("checkout", arms=["red", "green"], silence=live.Failure(after="7d"))
...     decision = test.ask(unit="user-17")
...     test.tell(decision.id, 1), test.tell(decision.id, 1)
('applied', 'duplicate')
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from belated.inputs import InvalidInput
from belated.live.curves import Waits
from belated.live.engine import Told
from belated.live.errors import (
    Archived,
    ClockRanBackwards,
    Conflict,
    LiveError,
    NotFound,
    Stopped,
    Unavailable,
    Unreadable,
    WrongLedger,
)
from belated.live.experiment import Decision, Experiment
from belated.live.handle import Ledger
from belated.live.schema import migrate
from belated.live.settings import Failure, Pending
from belated.live.store import Store
from belated.live.summary import ArmSummary, Summary

__all__ = [
    "Archived",
    "ArmSummary",
    "ClockRanBackwards",
    "Conflict",
    "Decision",
    "Experiment",
    "Failure",
    "Ledger",
    "LiveError",
    "NotFound",
    "Pending",
    "Stopped",
    "Summary",
    "Told",
    "Unavailable",
    "Unreadable",
    "Waits",
    "WrongLedger",
    "open",
]


def open(url: str, *, clock: Callable[[], float] = time.time, rng: Any = None, refresh: float | str = 0.1) -> Ledger:
    """The ledger at `url`, sqlite:///shop.db or postgresql://…, made or brought up to date if need be.

    `clock` gives the time in seconds since 1970, `rng` the randomness of decisions. A posterior may serve asks for up
    to `refresh` seconds before it is read anew: staleness is delay, and costs no more than so much delay.
    """
    store = _store(url)
    try:
        migrate(store)
        return Ledger(store, clock=clock, rng=rng, refresh=refresh)
    except BaseException:
        store.close()
        raise


def _store(url: str) -> Store:
    if isinstance(url, str) and url.startswith("sqlite:///"):
        from belated.live.sqlite import SqliteStore

        return SqliteStore(url.removeprefix("sqlite:///"))
    if isinstance(url, str) and url.startswith(("postgresql://", "postgres://")):
        from belated.live.postgres import PostgresStore

        return PostgresStore(url)
    raise InvalidInput("ledger", f"must be sqlite:///FILE or postgresql://…, got {url!r}")

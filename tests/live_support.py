"""What several tests of the live engine need: a clock that is set, and an experiment with a bit of everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numpy.random import default_rng

from belated import live
from belated.live import fold

START = 1_700_000_000.0


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: float = START):
        self.at = at

    def __call__(self) -> float:
        return self.at

    def pass_(self, seconds: float) -> None:
        self.at += seconds


@contextmanager
def opened(url: str, clock: Clock, seed: int = 1) -> Iterator[live.Ledger]:
    """A ledger whose decisions are always the same."""
    with live.open(url, clock=clock, rng=default_rng(seed), refresh=0) as home:
        yield home


def filled(home: live.Ledger, clock: Clock, name: str = "checkout", asks: int = 60, **given: Any) -> live.Experiment:
    """An experiment with outcomes that are whole, fractions, late, revised, voided, told again, and missing."""
    given = {"silence": live.Failure(after="1d"), "priors": {"green": (2, 3.5)}} | given
    made = home.create(name, ["rød", "green", 'a "b", c'], **given)
    decisions = []
    for number in range(asks):
        clock.pass_(61.7)
        decisions.append(made.ask(unit=f"unit {number}" if number % 2 or made.settings.sticky else None).id)
    clock.pass_(3600)
    made.tell_many([(id, (0, 1, 1 / 3, 1e-9, 0.123456789)[n % 5]) for n, id in enumerate(decisions) if n % 3])
    clock.pass_(9)
    for number, id in enumerate(decisions):
        if number % 7 == 0:
            made.void(id)
        if number % 5 == 0:
            made.tell(id, 0.5, occurred_at=clock() - 1, revise=True)
        if number % 10 == 0:
            made.tell(id, 0.25, revise=True)
    clock.pass_(86_400)
    made.tell_many([(decisions[3], 1.0), (decisions[9], 1.0)])  # too late, and told again
    made.pause("rød")
    made.add_arm("blå", prior=(3, 1))
    made.retire("green")
    return made


def words(experiment: live.Experiment) -> str:
    """Where it stands, as text: equal to the byte or not at all."""
    return json.dumps(experiment.summary().to_dict())


def sound(home: live.Ledger) -> bool:
    """Whether every sum is what the rows give, and every row belongs to something."""
    with home.store.reading() as connection:
        return not fold.differences(connection) and not fold.strays(connection)


def spoil(home: live.Ledger, name: str) -> None:
    """Give an experiment settings of a version to come."""
    settings = '{"policy": "clairvoyant", "silence": "pending", "sticky": false, "floor": 0, "prior": [1, 1]}'
    home.do(
        lambda connection: connection.many("UPDATE experiments SET settings = ? WHERE name = ?", [(settings, name)])
    )

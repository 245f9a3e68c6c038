"""The same events in any order, told any number of times and however split, give the same posterior to the byte."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import pytest

from belated import live
from belated.live import Ledger
from belated.live.fold import Moves
from belated.live.judge import Ask
from belated.live.store import DecisionRow
from belated.live.values import identity

BEGAN = 1_700_000_000_000
HOUR = 3_600_000
END = BEGAN + 30 * HOUR
SILENCES = {"pending": live.Pending(), "failure": live.Failure(after="10h")}


class Event(NamedTuple):
    """Something that happens to a decision; those of one decision that differ keep their order."""

    decision: str
    kind: str  # ask, tell, revise or void
    value: Any  # the arm and the time of asking, or a reward


def stream(chance: random.Random, decisions: int = 60) -> list[list[Event]]:
    """For each decision, what happens to it in order."""
    chains = []
    for _ in range(decisions):
        id = str(uuid.UUID(int=chance.getrandbits(128)))
        asked = BEGAN + chance.randrange(30 * HOUR)
        chain = [Event(id, "ask", (chance.randrange(3), asked))]
        for number in range(chance.choice([0, 1, 1, 1, 2, 3])):
            if number == 0 or chain[-1].kind == "void":
                chain.append(Event(id, "tell", chance.choice([0, 1, 1, 0.1, 0.7, 1 / 3])))
            else:
                chain.append(chance.choice([Event(id, "void", None), Event(id, "revise", chance.choice([0.2, 0.9]))]))
        chains.append(chain)
    return chains


def shuffled(chains: list[list[Event]], chance: random.Random) -> list[Event]:
    """The events in a random order, each chain in its own, some of them repeated at once or once all is over."""
    places = [number for number, chain in enumerate(chains) for _ in chain]
    chance.shuffle(places)
    left = [iter(chain) for chain in chains]
    events = [next(left[number]) for number in places]
    doubled = [event for event in events for _ in range(chance.choice([1, 1, 2, 3]))]
    last = [chain[-1] for chain in chains] + [chain[0] for chain in chains]
    return doubled + chance.sample(last, len(last) // 2)


def applied(
    url: str,
    events: list[Event],
    chance: random.Random,
    silence: str,
    handles: int,
    clock: Any,
    reading: str | None = None,
) -> Ledger:
    """A ledger to which the events have happened, through several handles, in parts of any size."""
    with ExitStack() as stack:
        shops = [stack.enter_context(live.open(url, clock=clock, rng=np.random.default_rng(1))) for _ in range(handles)]
        shops[0].create("test", ["red", "green", "blue"], silence=SILENCES[silence], prior=(0.5, 2.5), reading=reading)
        while events:
            size = chance.choice([1, 1, 2, 5, 20])
            part, events = events[:size], events[size:]
            while part:  # what is of one kind may be handed in together
                kind = part[0].kind
                same = 1
                while same < len(part) and (part[same].kind == kind or {kind, part[same].kind} == {"tell", "revise"}):
                    same += 1
                happen(chance.choice(shops), kind, part[:same], chance)
                part = part[same:]
    return live.open(url, clock=lambda: END / 1000, rng=np.random.default_rng(1))


def happen(shop: Ledger, kind: str, events: list[Event], chance: random.Random) -> None:
    test = shop.get("test")
    if kind == "ask":  # of arms and times that the stream names: an ask would choose its own
        rows = [DecisionRow(identity("id", id), test.id, arm, at, 1 / 3, None) for id, _, (arm, at) in events]
        for call in [shop.writer.submit(Ask(row, 1, True, False)) for row in rows]:
            call.wait()
    elif kind == "void":
        for event in events:
            test.void(event.decision)
    elif chance.random() < 0.5:
        for event in events:
            test.tell(event.decision, event.value, revise=event.kind == "revise")
    else:
        told = test.tell_many([(event.decision, event.value, None, event.kind == "revise") for event in events])
        assert not any(each.error for each in told)


def summary(shop: Ledger, *, forecast: bool = True) -> str:
    with shop:
        whole = shop.get("test").summary().to_dict()
    return json.dumps(whole if forecast else whole["arms"])


@pytest.mark.parametrize("silence", list(SILENCES))
def test_any_order_repetition_and_splitting(new_ledger: Callable[[], str], silence: str) -> None:
    chance = random.Random(1)
    chains = stream(chance)
    plain = [event for chain in chains for event in chain]

    def after(events: list[Event], handles: int) -> str:
        return summary(applied(new_ledger(), events, chance, silence, handles, lambda: END / 1000))

    once = after(plain, 1)
    for handles in (1, 1, 2, 3, 3, 3) if "postgresql" in new_ledger() else (1, 2, 3) * 7:
        assert after(shuffled(chains, chance), handles) == once
    # Negative controls: a stream that differs in one event is another one.
    place = max(place for place, event in enumerate(plain) if event.kind == "tell" and matters(event, chains))
    assert after(plain[:place] + plain[place + 1 :], 1) != once
    assert after([*plain[:place], plain[place]._replace(value=0.5), *plain[place + 1 :]], 1) != once


def matters(event: Event, chains: list[list[Event]]) -> bool:
    """Whether it is the last word on a decision whose window is closed at the end, and a success in part."""
    chain = next(chain for chain in chains if chain[0].decision == event.decision)
    return chain[-1] == event and event.value > 0 and chain[0].value[1] < END - 10 * HOUR


def test_when_they_come_moves_the_forecast_alone(new_ledger: Callable[[], str]) -> None:
    """If silence is waited for; where it is read, see test_live_silence.py."""
    chance = random.Random(2)
    chains = stream(chance)

    def after(handles: int) -> str:
        read = [END]  # no outcome is heard before its decision

        def clock() -> float:
            read[0] = min(END + 20 * HOUR, read[0] + chance.randrange(HOUR))
            return read[0] / 1000

        return summary(
            applied(new_ledger(), shuffled(chains, chance), chance, "failure", handles, clock, "wait"), forecast=False
        )

    assert len({after(handles) for handles in (1, 2, 3, 3)}) == 1


def test_an_engine_that_credits_twice_is_found_out(new_ledger: Callable[[], str], monkeypatch: Any) -> None:
    """The negative control of the whole: what is told again counts again."""
    chance = random.Random(3)
    chains = stream(chance)
    plain = [event for chain in chains for event in chain]
    once = summary(applied(new_ledger(), plain, chance, "pending", 1, lambda: END / 1000))
    rightly = Moves.told
    monkeypatch.setattr(
        Moves, "told", lambda self, decision, outcome, grain, sign=1: rightly(self, decision, outcome, grain, 1)
    )
    assert summary(applied(new_ledger(), shuffled(chains, chance), chance, "pending", 1, lambda: END / 1000)) != once

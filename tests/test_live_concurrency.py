"""Many threads and processes on one ledger: each outcome is credited once, each id and unit has one decision."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

import crew as task
from belated import live
from belated.live import Conflict, InvalidInput, Ledger, LiveError, Stopped, Unavailable, fold
from crew import Hand, in_threads, worth

IDS = [str(uuid.UUID(int=number)) for number in range(1, 41)]
UNITS = [f"unit {number}" for number in range(40)]


@pytest.fixture
def shop(ledger_url: str) -> Iterator[Ledger]:
    with live.open(ledger_url, refresh=0) as shop:
        yield shop
        with shop.store.reading() as connection:  # whatever the test did
            assert fold.differences(connection) == []
            assert fold.strays(connection) == []


def together(crew: list[Hand], what: Any, url: str, **given: Any) -> list[list[Any]]:
    """What four processes say, at work at once."""
    for seed, hand in enumerate(crew):
        hand.begin(what, url, seed, **given)
    return [said for hand in crew for said in hand.answers()]


def credited_once(test: live.Experiment, told: list[tuple[str, str]], ids: list[str], times: int) -> None:
    statuses = defaultdict(list)
    for id, status in told:
        statuses[id].append(status)
    assert statuses.keys() == set(ids)
    once = ["applied"] + ["duplicate"] * (times - 1)
    assert all(sorted(each) == once for each in statuses.values())
    summary = test.summary()
    assert (summary.asked, summary.observed, summary.pending) == (len(ids), len(ids), 0)
    assert sum(arm.successes for arm in summary.arms) == pytest.approx(sum(map(worth, ids)), abs=1e-9)


# --- Telling ----------------------------------------------------------------------------------------------------------


def test_threads_tell_the_same(shop: Ledger) -> None:
    test = shop.create("test", ["red", "green", "blue"])
    ids = [decision.id for decision in test.ask_many(100)]
    told: list[tuple[str, str]] = []
    in_threads(8, lambda number: told.extend((id, test.tell(id, worth(id))) for id in ids[number:] + ids[:number]))
    credited_once(test, told, ids, 8)


def test_processes_tell_the_same(shop: Ledger, ledger_url: str, crew: list[Hand]) -> None:
    test = shop.create("test", ["red", "green", "blue"])
    ids = [decision.id for decision in test.ask_many(50)]
    said = together(crew, task.tell_all, ledger_url, threads=8, ids=ids)
    credited_once(test, [(id, status) for _, id, status in said], ids, 32)


# --- Asking -----------------------------------------------------------------------------------------------------------


def test_one_decision_an_id_and_a_unit(shop: Ledger, ledger_url: str, crew: list[Hand]) -> None:
    test, sticky = shop.create("test", ["red", "green"]), shop.create("sticky", ["red", "green"], sticky=True)
    said = together(crew, task.ask_all, ledger_url, threads=4, ids=IDS, units=UNITS)
    answers = defaultdict(list)
    for wanted, *answer, replayed in said:
        answers[wanted].append((tuple(answer), replayed))
    assert answers.keys() == {*IDS, *UNITS}
    for wanted, each in answers.items():
        assert len({answer for answer, _ in each}) == 1
        assert sorted(replayed for _, replayed in each) == [False] + [True] * 15, wanted
        assert wanted in UNITS or each[0][0][0] == wanted
    assert (test.summary().asked, sticky.summary().asked) == (len(IDS), len(UNITS))


def test_of_many_asks_one_of_which_is_refused_none_is_made(shop: Ledger) -> None:
    test = shop.create("test", ["red", "green"])
    with pytest.raises(InvalidInput, match="unit: must not be empty"):
        test.ask_many(units=["ann", "bob", ""])
    assert test.summary().asked == 0


# --- Changing ---------------------------------------------------------------------------------------------------------


def asked(shop: Ledger, arm: str) -> int:
    return next(each.asked for each in shop.get("test").summary().arms if each.name == arm)


def until_more(shop: Ledger, more: int) -> None:
    """Wait until so many more decisions have been made by others."""
    enough = shop.get("test").summary().asked + more
    deadline = time.monotonic() + 60.0
    while shop.get("test").summary().asked < enough:
        assert time.monotonic() < deadline


def test_a_pause_is_respected_at_once(shop: Ledger, ledger_url: str, crew: list[Hand]) -> None:
    """No decision for an arm is committed after `pause` has returned, and none at all after `stop`."""
    test = shop.create("test", ["red", "green", "blue"], floor=0.3)
    for seed, hand in enumerate(crew):
        hand.begin(task.ask_until_stopped, ledger_url, seed, threads=2)
    until_more(shop, 20)
    for _ in range(15):
        test.pause("red")
        before = asked(shop, "red")
        until_more(shop, 20)
        assert asked(shop, "red") == before
        test.activate("red")
        until_more(shop, 10)
    test.stop()
    before = test.summary().asked
    assert {tuple(said) for hand in crew for said in hand.answers()} == {("stopped",)}
    assert test.summary().asked == before


def test_an_arm_that_comes_back_is_chosen_at_once(shop: Ledger, ledger_url: str) -> None:
    """Though another handle has a posterior, not old yet, in which no arm was active."""
    test = shop.create("test", ["red", "green"])
    with live.open(ledger_url, refresh=3600) as other:
        for arm in ("red", "green"):
            test.pause(arm)
        with pytest.raises(Stopped, match="no active arm"):
            other.get("test").ask()
        test.activate("green")
        assert other.get("test").ask().arm == "green"
        other.get("test").stop()
        with pytest.raises(Stopped, match="is stopped"):
            test.ask()


def rush(ledger_url: str, calls: list[Any]) -> list[str]:
    """Make each call on a handle of its own, all at once; what each came to."""
    shops = [live.open(ledger_url) for _ in calls]
    tests = [shop.get("test") for shop in shops]
    barrier, came = threading.Barrier(len(calls)), [""] * len(calls)

    def work(number: int) -> None:
        barrier.wait()
        try:
            calls[number](tests[number])
            came[number] = "done"
        except (LiveError, InvalidInput) as error:
            came[number] = type(error).__name__

    in_threads(len(calls), work)
    for shop in shops:
        shop.close()
    return came


def test_what_is_for_good_is_for_good(shop: Ledger, ledger_url: str) -> None:
    """Of changes made at once, one is the first, and the others are judged on what it left."""
    test = shop.create("test", ["red", "green"])
    for number in range(15):
        test.add_arm(f"arm {number}")
        changes = [
            lambda each, arm=f"arm {number}", call=call: getattr(each, call)(arm) for call in ("retire", "pause")
        ]
        assert rush(ledger_url, changes * 2)[0] == "done"
        assert test.arms()[f"arm {number}"] == "retired"
    rush(ledger_url, [live.Experiment.archive, live.Experiment.stop, live.Experiment.resume, live.Experiment.stop])
    assert test.status == "archived"


def test_the_floor_holds_whoever_adds_to_it(shop: Ledger, ledger_url: str) -> None:
    test = shop.create("test", ["red", "green"], floor=0.25)
    for number in range(8):
        test.add_arm(f"a{number}")
        test.add_arm(f"b{number}")
        test.pause(f"a{number}")
        test.pause(f"b{number}")
        test.add_arm(f"c{number}")
        came = rush(ledger_url, [lambda each, arm=arm: each.activate(f"{arm}{number}") for arm in "ab"])  # noqa: B023
        assert sorted(came) == ["InvalidInput", "done"]
        for arm in "abc":
            test.retire(f"{arm}{number}")


def test_one_experiment_of_a_name(shop: Ledger, ledger_url: str) -> None:
    shop.create("test", ["red", "green"])
    for number in range(5):
        calls = [lambda each: each._home.create(f"new {number}", ["red", "green"])] * 4  # noqa: B023
        assert Counter(rush(ledger_url, calls)) == {"done": 1, Conflict.__name__: 3}
    assert [each.name for each in shop.experiments()] == ["test", *(f"new {number}" for number in range(5))]


# --- Closing ----------------------------------------------------------------------------------------------------------


def test_a_call_that_comes_while_the_door_closes_is_answered(shop: Ledger) -> None:
    """The writer has gone between the look at the door and the handing in."""
    test = shop.create("test", ["red", "green"])
    decision = test.ask()
    writer = shop.writer

    class Slow:
        """A queue into which a call is put only after the writer has ended."""

        def __init__(self, calls: Any):
            self.get_nowait = calls.get_nowait
            self._put = calls.put

        def put(self, call: Any) -> None:
            writer._handed = calls
            writer.close()
            self._put(call)

    calls = writer._handed
    writer._handed = Slow(calls)  # type: ignore[assignment]
    with pytest.raises(Unavailable, match="it has been closed"):
        test.tell(decision.id, 1)


def test_a_caller_who_cannot_be_told_is_no_ones_harm(shop: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    test = shop.create("test", ["red", "green"])
    decision = test.ask()

    def fail(answer: Any) -> None:
        raise RuntimeError("its event loop has ended")

    shop.writer.submit_all([shop.telling(decision.id, 1)], fail)
    assert test.tell(decision.id, 1) == "duplicate"
    assert "its event loop has ended" in caplog.text


def test_closing_while_others_ask(ledger_url: str) -> None:
    """Each caller is answered: with a decision, or that it has been closed. None waits for ever."""
    for _ in range(10):
        shop = live.open(ledger_url, refresh=3600)
        test = shop.get("test") if shop.experiments() else shop.create("test", ["red", "green"])
        ends: list[str] = []
        started = threading.Barrier(5)

        def work(_: int, test: live.Experiment = test, ends: list[str] = ends, started: Any = started) -> None:
            test.ask()
            started.wait()
            try:
                while True:
                    test.ask()
            except Unavailable as error:
                ends.append(str(error))

        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
        shop.close()
        for thread in threads:
            thread.join(timeout=30)
        assert ends == ["ledger: it has been closed"] * 4
        for call in (test.summary, test.ask, shop.experiments, test.stop):
            with pytest.raises(Unavailable, match="it has been closed"):
                call()


def test_an_arm_is_paused_however_many_decide(ledger_url: str, shop: Ledger) -> None:
    """Locks on rows are not given in turn: six who never stop deciding kept a pause waiting for half a minute."""
    shop.create("busy", ["red", "green"])
    end = threading.Event()

    def decide() -> None:
        with live.open(ledger_url) as own:
            test = own.get("busy")
            while not end.is_set():
                test.ask_many(20)

    threads = [threading.Thread(target=decide) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.5)
        began = time.perf_counter()
        shop.get("busy").pause("red")
        waited = time.perf_counter() - began
        last = shop.get("busy").ask_many(50)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert waited < 5.0
    assert {decision.arm for decision in last} == {"green"}

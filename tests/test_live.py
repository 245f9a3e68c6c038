"""The live engine: what each call does, and what it refuses, over both stores."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import InvalidInput, live
from belated.live import Archived, Conflict, Ledger, LiveError, NotFound, Stopped, fold
from belated.live.sqlite import Sweeper

DAY = 86_400.0


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1.7e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shop(ledger_url: str, clock: Clock) -> Iterator[Ledger]:
    with live.open(ledger_url, clock=clock, rng=np.random.default_rng(1), refresh=0) as shop:
        yield shop
        with shop.store.reading() as connection:  # whatever the test did
            assert fold.differences(connection) == []
            assert fold.strays(connection) == []


def arm(summary: live.Summary, name: str) -> live.ArmSummary:
    return next(each for each in summary.arms if each.name == name)


# --- Asking ---


def test_a_decision_says_what_was_decided(shop: Ledger, clock: Clock) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    decision = test.ask(unit="user-17")
    assert uuid.UUID(decision.id).version == 7
    assert decision.arm in ("red", "green")
    assert decision.propensity == pytest.approx(0.5, abs=1e-12)
    assert decision.at == datetime.datetime.fromtimestamp(clock.now, datetime.UTC)
    assert decision.unit == "user-17"
    assert not decision.replayed


def test_an_id_of_the_clients_own_makes_a_retry_the_same_decision(shop: Ledger) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    own = str(uuid.uuid4())
    first, second = test.ask(id=own), test.ask(id=own)
    assert (first.id, first.arm) == (second.id, second.arm)
    assert (first.replayed, second.replayed) == (False, True)
    with pytest.raises(Conflict, match=r"unit: the decision .* is that of another unit"):
        test.ask(id=own, unit="someone else")
    test.stop()
    assert test.ask(id=own).arm == first.arm  # the answer may have been lost before the stop
    assert test.summary().asked == 1


def test_an_id_is_of_one_experiment(shop: Ledger) -> None:
    one, other = shop.create("one", arms=["a", "b"]), shop.create("other", arms=["a", "b"])
    decision = one.ask()
    with pytest.raises(Conflict, match="another experiment"):
        other.ask(id=decision.id)
    with pytest.raises(NotFound, match=decision.id):
        other.tell(decision.id, 1)
    assert shop.tell(decision.id, 1) == "applied"


def test_a_sticky_unit_keeps_its_decision(shop: Ledger) -> None:
    test = shop.create("checkout", arms=["red", "green"], sticky=True)
    decisions = {test.ask(unit="user-17").id for _ in range(3)} | {each.id for each in test.ask_many(units=["user-17"])}
    assert len(decisions) == 1
    assert test.ask(unit="user-18").id not in decisions
    with pytest.raises(InvalidInput, match="unit: a sticky experiment needs it"):
        test.ask()


def test_many_at_once(shop: Ledger) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    assert len({each.id for each in test.ask_many(50)}) == 50
    assert [each.unit for each in test.ask_many(units=["a", "b"])] == ["a", "b"]
    told = test.tell_many([(each.id, 1) for each in test.ask_many(2)] + [("nonsense", 1), (str(uuid.uuid4()), 1)])
    assert [each.status for each in told] == ["applied", "applied", "invalid", "not-found"]
    assert test.summary().asked == 54


def test_shares_follow_the_posterior_and_are_those_of_the_draws(shop: Ledger) -> None:
    test = shop.create("checkout", arms=["a", "b", "c"], priors={"b": (3, 1)})
    for share, reward in zip(test.ask_many(60), [1, 0, 1] * 20, strict=True):
        test.tell(share.id, reward)
    summary = test.summary()
    shares = {each.name: each.share for each in summary.arms}
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-9)
    count = 4000
    decisions = test.ask_many(count)
    for each in summary.arms:
        assert each.best == pytest.approx(each.share, abs=1e-12)
        assert {d.propensity for d in decisions if d.arm == each.name} <= {each.share}
        asked = sum(d.arm == each.name for d in decisions)
        error = np.sqrt(count * each.share * (1 - each.share))
        assert abs(asked - count * each.share) < 5 * error + 1
    # The control: shares of another posterior are told apart.
    assert abs(sum(d.arm == "b" for d in decisions) - count / 3) > 5 * np.sqrt(count * 2 / 9)


def test_the_floor_is_kept(shop: Ledger) -> None:
    test = shop.create("checkout", arms=["a", "b"], floor=0.1, priors={"a": (1e6, 1), "b": (1, 1e6)})
    assert {each.name: round(each.share, 12) for each in test.summary().arms} == {"a": 0.9, "b": 0.1}
    poor = sum(each.arm == "b" for each in test.ask_many(4000))
    assert abs(poor - 400) < 5 * np.sqrt(4000 * 0.09)
    for place in range(8):
        test.add_arm(f"more {place}")
    with pytest.raises(InvalidInput, match=r"floor: 11 active arms cannot have at least 0\.1"):
        test.add_arm("one too many")


@pytest.mark.parametrize(("policy", "shares"), [("split", [0.5, 0.5]), ("ucb1", [0.0, 1.0])])
def test_other_policies(policy: str, shares: list[float], shop: Ledger) -> None:
    test = shop.create("checkout", arms=["a", "b"], policy=policy)
    by_arm = {each.arm: each for each in test.ask_many(40)}
    test.tell(by_arm["a"].id, 0)
    test.tell(by_arm["b"].id, 1)
    assert [each.share for each in test.summary().arms] == shares
    assert test.ask().propensity in shares


# --- Telling ---


def test_tells_are_idempotent_and_conflicts_are_named(shop: Ledger) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    id = test.ask().id
    assert [test.tell(id, 1), test.tell(id, 1.0), test.tell(id, True)] == ["applied", "duplicate", "duplicate"]
    with pytest.raises(Conflict, match=r"already has 1, got 0; say revise"):
        test.tell(id, 0)
    assert test.tell(id, 0.25, revise=True) == "revised"
    assert sum(each.successes for each in test.summary().arms) == 0.25
    assert [test.void(id), test.void(id)] == ["voided", "voided"]
    assert test.summary().pending == 1
    assert test.tell(id, 1) == "applied"


def test_silence_that_means_nothing_leaves_the_posterior(shop: Ledger, clock: Clock) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    test.ask_many(10)
    clock.now += 365 * DAY
    summary = test.summary()
    assert (summary.observed, summary.pending) == (0, 10)
    assert [each.mean for each in summary.arms] == [0.5, 0.5]


def test_silence_that_is_a_failure_is_one_at_the_windows_end_and_not_before(shop: Ledger, clock: Clock) -> None:
    test = shop.create("checkout", arms=["red", "green"], silence=live.Failure(after="7d"), policy="split")
    early = test.ask()
    clock.now += 1.0
    later = test.ask()
    clock.now += 7 * DAY - 1.001
    assert (test.summary().observed, test.summary().pending) == (0, 2)
    clock.now += 0.001
    assert (test.summary().observed, test.summary().pending) == (1, 1)
    assert arm(test.summary(), early.arm).assumed == 1
    assert test.tell(later.id, 1) == "applied"
    assert sum(each.successes for each in test.summary().arms) == 1
    clock.now += 1.0
    assert arm(test.summary(), early.arm).mean < 0.5 or early.arm == later.arm

    assert test.tell(early.id, 1) == "late"  # the failure is taken back, exactly
    summary = test.summary()
    assert [each.assumed for each in summary.arms] == [0, 0]
    for each in summary.arms:
        assert each.mean == (1 + each.successes) / (2 + each.observed)


def test_an_open_window_does_not_flatter(shop: Ledger, clock: Clock) -> None:
    """Successes come early and failures late, so who waits counts a decision when its window has closed."""
    test = shop.create("checkout", arms=["red", "green"], silence=live.Failure(after="7d"), reading="wait")
    for each in test.ask_many(10)[:3]:
        test.tell(each.id, 1)
    summary = test.summary()
    assert sum(each.successes for each in summary.arms) == 3
    assert [each.mean for each in summary.arms] == [0.5, 0.5]
    clock.now += 7 * DAY
    total = test.summary()
    assert sum(each.observed for each in total.arms) == 10
    for each in total.arms:
        assert each.mean == (1 + each.successes) / (2 + each.observed)


def test_when_it_occurred_is_the_clients_word(shop: Ledger, clock: Clock) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    decision = test.ask()
    clock.now += 2 * DAY
    with pytest.raises(InvalidInput, match=r"occurred_at: .* is before its decision"):
        test.tell(decision.id, 1, occurred_at=decision.at - datetime.timedelta(days=1))
    with pytest.raises(InvalidInput, match="occurred_at: is in the future"):
        test.tell(decision.id, 1, occurred_at=clock.now + DAY)
    with pytest.raises(InvalidInput, match="occurred_at: must name its time zone"):
        test.tell(decision.id, 1, occurred_at="2023-11-15T12:00:00")
    assert test.tell(decision.id, 1, occurred_at=decision.at + datetime.timedelta(hours=3)) == "applied"


# --- Arms and statuses ---


def test_arms_come_and_go(shop: Ledger) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    test.pause("red")
    assert {each.arm for each in test.ask_many(20)} == {"green"}
    test.add_arm("blue", prior=(2, 2))
    test.activate("red")
    test.retire("green")
    assert test.arms() == {"red": "active", "green": "retired", "blue": "active"}
    assert {each.arm for each in test.ask_many(50)} == {"red", "blue"}
    with pytest.raises(Conflict, match="green is retired, for good"):
        test.activate("green")
    with pytest.raises(Conflict, match="there is, or was, an arm named 'green'"):
        test.add_arm("green")
    test.pause("red")
    test.pause("blue")
    with pytest.raises(Stopped, match="no active arm"):
        test.ask()


def test_another_handle_sees_a_change_at_once(ledger_url: str, clock: Clock) -> None:
    """A version may be kept for long, but never decides for an arm that has been paused since."""
    with live.open(ledger_url, clock=clock, refresh=3600) as one, live.open(ledger_url, clock=clock) as other:
        test = one.create("checkout", arms=["red", "green"])
        test.ask_many(5)
        other.get("checkout").pause("red")
        assert {each.arm for each in test.ask_many(20)} == {"green"}
        other.get("checkout").stop()
        with pytest.raises(Stopped, match="checkout is stopped"):
            test.ask()


def test_stopped_hears_and_archived_only_reads(shop: Ledger) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    decision, another = test.ask_many(2)
    test.stop()
    with pytest.raises(Stopped):
        test.ask()
    assert test.tell(decision.id, 1) == "applied"
    test.resume()
    test.ask()
    test.archive()
    refused: list[Callable[[], Any]] = [
        test.ask,
        test.resume,
        lambda: test.tell(another.id, 1),
        lambda: test.void(decision.id),
        lambda: test.pause("red"),
        lambda: test.add_arm("blue"),
    ]
    for call in refused:
        with pytest.raises(Archived, match="checkout is archived"):
            call()
    assert (test.summary().asked, test.status) == (3, "archived")


# --- Staying the same ---


def test_a_ledger_reopens_as_it_was(ledger_url: str, clock: Clock) -> None:
    with live.open(ledger_url, clock=clock) as shop:
        test = shop.create("checkout", arms=["red", "green"], silence=live.Failure(after="2h"), floor=0.05)
        for each in test.ask_many(30)[::2]:
            clock.now += 60
            test.tell(each.id, 1)
        before = json.dumps(test.summary().to_dict())
    with live.open(ledger_url, clock=clock) as shop:
        assert json.dumps(shop.get("checkout").summary().to_dict()) == before
        assert [each.name for each in shop.experiments()] == ["checkout"]
    with pytest.raises(live.Unavailable, match="closed"):
        shop.get("checkout").ask()


def test_the_forecast_counts_what_is_still_to_come(shop: Ledger, clock: Clock) -> None:
    """Of decisions a day ago, half were told after 1, 2, … 10 hours; of those asked now, as many are expected."""
    for name, silence in (("means nothing", live.Pending()), ("fails", live.Failure(after="2d"))):
        test = shop.create(name, arms=["red", "green"], silence=silence, policy="split")
        old = test.ask_many(1000)
        for hour in range(1, 11):
            clock.now += 3600
            test.tell_many([(each.id, 1) for each in old[50 * (hour - 1) : 50 * hour]])
        clock.now += 14 * 3600
        test.ask_many(100)
        forecast = test.summary().to_come
        assert forecast.expected == pytest.approx(50.0, abs=0.5)
        hour, slack = 3_600_000, 2 * test.settings.grain  # at a step either side of it may be meant
        assert 5 * hour - slack <= (forecast.half_within or 0) <= 6 * hour + slack
        assert 9 * hour - slack <= (forecast.most_within or 0) <= 10 * hour + slack
        assert "of which some 50 will come" in test.summary().verdict


def test_what_comes_after_the_window_does_not_forecast_more(shop: Ledger, clock: Clock) -> None:
    test = shop.create("checkout", arms=["red", "green"], silence=live.Failure(after="1h"), policy="split")
    old = test.ask_many(100)
    clock.now += 600
    test.tell(old[0].id, 1)
    clock.now += 2 * 3600
    assert test.tell(old[1].id, 1) == "late"
    test.ask_many(50)
    assert test.summary().to_come.expected == pytest.approx(0.5, abs=0.01)


def test_a_machine_whose_clock_is_behind_reads_afresh_all_the_same(ledger_url: str, clock: Clock) -> None:
    behind = Clock()
    behind.now = clock.now - 50.0
    with live.open(ledger_url, clock=clock) as one, live.open(ledger_url, clock=behind, refresh=1.0) as other:
        test = one.create("checkout", arms=["red", "green"], policy="ucb1")
        first = other.get("checkout").ask()
        test.tell(test.ask().id, 1)
        test.tell(first.id, 0)
        for place in range(20):
            test.tell(test.ask(unit=str(place)).id, 1)
        behind.now += 2.0  # its ledger's time stands still, but not its posterior
        best = max(test.summary().arms, key=lambda each: each.share)
        assert best.share == 1.0
        assert other.get("checkout").ask().propensity == 1.0


def test_a_refusal_costs_no_connection_and_a_failure_does(shop: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = shop.store._readers  # type: ignore[attr-defined]
    connect, made = pool._connect, list[Any]()

    def counted() -> Any:
        made.append(connect())
        return made[-1]

    monkeypatch.setattr(pool, "_connect", counted)
    pool.clear()
    for name in ("nowhere", "", "no\0text") * 10:
        with pytest.raises((NotFound, InvalidInput)):
            shop.get(name)
    assert len(made) == 1
    shop.create("nowhere", arms=["red", "green"])
    shop._known.clear()
    assert shop.get("nowhere").name == "nowhere"  # as it is now: what was refused has left no snapshot behind
    assert len(made) == 1
    for error in (RuntimeError(), live.Unavailable("ledger", "is gone")):
        with pytest.raises(type(error)), shop.store.reading():
            raise error
    assert shop.experiments()
    assert len(made) == 3


def test_the_log_of_sqlite_does_not_grow(tmp_path: Path) -> None:
    """Steady writing from many threads, for as long as it takes to write a log of some times its limit."""
    with live.open(f"sqlite:///{tmp_path}/ledger.db") as shop:
        test = shop.create("checkout", arms=["red", "green"])
        threads = [threading.Thread(target=lambda: [test.ask_many(50) for _ in range(60)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        largest = 0
        while any(thread.is_alive() for thread in threads):
            largest = max(largest, (tmp_path / "ledger.db-wal").stat().st_size)
            time.sleep(0.01)
        for thread in threads:
            thread.join()
        assert test.summary().asked == 24_000
        assert 0 < largest < 10 * Sweeper.LARGE


# --- Bad input ---

LONG = "x" * 1_000_000
BAD: list[tuple[str, Callable[[Ledger], Any], type[Exception], str]] = [
    ("an empty name", lambda shop: shop.create("", ["a", "b"]), InvalidInput, "name: must not be empty"),
    ("a long name", lambda shop: shop.create(LONG, ["a", "b"]), InvalidInput, "name: must be at most 200 characters"),
    ("a control character", lambda shop: shop.create("a\nb", ["a", "b"]), InvalidInput, "name: must hold no control"),
    (
        "a name of dots",
        lambda shop: shop.create("..", ["a", "b"]),
        InvalidInput,
        "name: must be a name that an address",
    ),
    ("a name twice", lambda shop: shop.create("there", ["a", "b"]), Conflict, "name: .*'there' already"),
    ("no arms", lambda shop: shop.create("new", []), InvalidInput, "arms: must be 2 to 1000, got none"),
    ("one arm", lambda shop: shop.create("new", ["a"]), InvalidInput, "arms: must be 2 to 1000, got 1"),
    ("an arm twice", lambda shop: shop.create("new", ["a", "a"]), InvalidInput, "arms: 'a' is given twice"),
    ("arms as text", lambda shop: shop.create("new", "ab"), InvalidInput, "arms: must be a list"),
    ("an unknown policy", lambda shop: shop.create("new", ["a", "b"], policy="tompson"), InvalidInput, "thompson"),
    ("a floor", lambda shop: shop.create("new", ["a", "b"], floor=0.6), InvalidInput, "floor: 2 active arms"),
    ("a prior", lambda shop: shop.create("new", ["a", "b"], prior=(0, 1)), InvalidInput, "prior: .* got 0"),
    ("a tiny prior", lambda shop: shop.create("new", ["a", "b"], prior=(1e-9, 1)), InvalidInput, "prior: .* got 1e-09"),
    ("a huge reward", lambda shop: shop.tell(str(uuid.UUID(int=7)), 10**400), InvalidInput, "reward: .*got inf"),
    ("a window", lambda shop: live.Failure(after="7 moons"), InvalidInput, "silence.after: must be a time"),
    ("an unknown experiment", lambda shop: shop.get("nowhere"), NotFound, "experiment: there is none named 'nowhere'"),
    ("an unknown arm", lambda shop: shop.get("there").pause("blue"), NotFound, "arm: there is none named 'blue'"),
    ("no id", lambda shop: shop.tell("17", 1), InvalidInput, "decision: must be a UUID, got '17'"),
    ("an unknown id", lambda shop: shop.tell(str(uuid.UUID(int=7)), 1), NotFound, "decision: there is none"),
    ("nan", lambda shop: shop.tell(str(uuid.UUID(int=7)), float("nan")), InvalidInput, "reward: .*got nan"),
    ("infinity", lambda shop: shop.tell(str(uuid.UUID(int=7)), float("inf")), InvalidInput, "reward: .*got inf"),
    ("too large", lambda shop: shop.tell(str(uuid.UUID(int=7)), 1.5), InvalidInput, r"reward: .*got 1\.5"),
    ("a text", lambda shop: shop.tell(str(uuid.UUID(int=7)), "1"), InvalidInput, "reward: .*got '1'"),  # type: ignore[arg-type]
    ("a long unit", lambda shop: shop.get("there").ask(unit=LONG), InvalidInput, "unit: must be at most 500"),
    ("a unit of no text", lambda shop: shop.get("there").ask(unit=17), InvalidInput, "unit: must be a text, got 17"),  # type: ignore[arg-type]
    ("a bad id", lambda shop: shop.get("there").ask(id="x"), InvalidInput, "id: must be a UUID, got 'x'"),
    ("no count", lambda shop: shop.get("there").ask_many(), InvalidInput, "count: give a count, units or ids"),
    ("a negative count", lambda shop: shop.get("there").ask_many(-1), InvalidInput, "count: must be at least 1"),
]


@pytest.mark.parametrize(("call", "error", "says"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input_is_one_line_and_leaves_the_ledger(
    call: Callable[[Ledger], Any], error: type[Exception], says: str, shop: Ledger
) -> None:
    shop.create("there", ["a", "b"]).ask()
    with pytest.raises(error, match=says) as raised:
        call(shop)
    assert isinstance(raised.value, InvalidInput | LiveError)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250
    assert [each.name for each in shop.experiments()] == ["there"]
    assert shop.get("there").summary().asked == 1


@pytest.mark.parametrize("url", ["", "shop.db", "mysql://x", "sqlite:///", "sqlite:////nowhere/at/all.db", 17])
def test_no_ledger(url: Any) -> None:
    with pytest.raises((InvalidInput, LiveError), match="ledger: "):
        live.open(url)


def test_import_needs_neither_numba_nor_scipy() -> None:
    code = "import sys, belated.live; print([name for name in ('numba', 'scipy', 'altair') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"

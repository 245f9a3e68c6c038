"""Silence read in live experiments: what it comes to, what it leaves as it was, and what is said of it."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import InvalidInput, live
from belated.live import Experiment, Ledger, ledger, store, version
from belated.live.judge import Ask, Tell
from belated.live.store import DecisionRow
from belated.live.summary import Waited, without_reading
from belated.live.values import BILLION, identity
from live_support import Clock, opened, sound

WINDOW = 100.0  # seconds
WIDTH = 2000  # ms


def made(home: Ledger, name: str = "test", arms: int = 2, **how: Any) -> Experiment:
    how = {"silence": live.Failure(after=WINDOW)} | how
    return home.create(name, [f"arm {place}" for place in range(arms)], **how)


def asked(home: Ledger, test: Experiment, arm: int, seconds: float, id: str = "") -> str:
    """A decision for that arm, so many seconds after the beginning of a block."""
    id = id or str(uuid.uuid4())
    row = DecisionRow(identity("id", id), test.id, arm, moment(seconds), 0.5, None)
    home.writer.submit(Ask(row, 1, True, False)).wait()
    return id


def told(home: Ledger, id: str, seconds: float, reward: float | None = 1.0, *, revise: bool = False) -> str:
    amount = None if reward is None else round(reward * BILLION)
    return str(home.writer.submit(Tell(identity("id", id), amount, moment(seconds), revise=revise)).wait())


def moment(seconds: float) -> int:
    return 850_000_000 * WIDTH + round(seconds * 1000)


def believed(home: Ledger, test: Experiment, seconds: float, *, waited: bool = False) -> list[tuple[float, float]]:
    """The a and b of each arm at a time."""
    with home.store.reading() as connection:
        at = version.standing(connection, ledger.experiment(connection, test.name), moment(seconds))
    return list(zip(*(each.tolist() for each in (version.waited if waited else version.posterior)(at)), strict=True))


@pytest.fixture
def clock() -> Clock:
    return Clock(moment(0) / 1000)


@pytest.fixture
def shop(new_ledger: Callable[[], str], clock: Clock) -> Any:
    with opened(new_ledger(), clock) as home:
        yield home
        assert sound(home)


# --- What is read -----------------------------------------------------------------------------------------------------


def test_without_conversions_it_waits(shop: Ledger) -> None:
    """To the block, which has closed when the last of its windows has."""
    test = made(shop)
    for second in range(60):
        asked(shop, test, second % 2, second + 0.5)
    for seconds in (60, 98, 101, 102, 103.9, 130, 160, 162, 500):
        assert believed(shop, test, seconds) == believed(shop, test, seconds // 2 * 2, waited=True)
    assert believed(shop, test, 500) == [(1.0, 31.0)] * 2


def test_by_hand(shop: Ledger) -> None:
    """Three conversions, of lags 1, 3 and 5 seconds, of 20 decisions: the curve at 10 seconds, trusted as 3 / 8."""
    test = made(shop)
    ids = [asked(shop, test, 0, 0.5) for _ in range(20)]
    for id, lag in zip(ids, (1, 3, 5), strict=False):
        assert told(shop, id, 0.5 + lag) == "applied"
    # All three are in the first block, of age bin 4: of the lag bins 0, 1, 2 each has one, so P(lag bin <= 0, 1, 2, 3)
    # = 1/3, 2/3, 1, 1, and at ages of bin 4 it is 1. S = 3 and N~ = 20, of which 3 / (3 + 5) count.
    a, b = believed(shop, test, 10)[0]
    assert (a, b) == pytest.approx((1 + 3 * 3 / 8, 1 + 17 * 3 / 8), rel=1e-12)
    # At 6 seconds, of age bin 2, only the lag bins 0 and 1 have been seen: P = 1/2, 1, and 1 there. Two count.
    a, b = believed(shop, test, 6)[0]
    assert (a, b) == pytest.approx((1 + 3 * 2 / 7, 1 + 17 * 2 / 7), rel=1e-12)
    # What is asked now is in a block that is not complete: it counts from the next edge on, as far as it is old.
    asked(shop, test, 0, 10.5)
    assert believed(shop, test, 11.9)[0] == believed(shop, test, 10)[0]
    a, b = believed(shop, test, 12)[0]  # in its first bin, half way to P(lag bin <= 0) = 1/3
    assert (a, b) == pytest.approx((1 + 3 * 3 / 8, 1 + (17 + 1 / 6) * 3 / 8), rel=1e-12)


def test_with_few_conversions_it_leaves_waiting_by_degrees(shop: Ledger) -> None:
    """No conversion is waiting; each brings it nearer to reading, by n / (n + 5), and none by a jump."""
    test = made(shop)
    closed = [asked(shop, test, 0, 0) for _ in range(10)]
    ids = [asked(shop, test, 0, 120) for _ in range(200)]
    assert len(closed) == 10
    trials = [sum(believed(shop, test, 150)[0]) - 2]
    assert trials == [10.0]
    for n, id in enumerate(ids[:40], 1):
        before = believed(shop, test, 149)[0]
        told(shop, id, 121)
        now = believed(shop, test, 149)[0]
        assert abs(now[0] - before[0]) <= 1 + n * (n / (n + 5) - (n - 1) / (n + 4))
        trials.append(sum(believed(shop, test, 150)[0]) - 2)
        assert trials[-1] == pytest.approx(10 + 200 * n / (n + 5), rel=1e-12)
    steps = np.diff(trials)
    assert (steps > 0).all()
    assert steps.max() == steps[0] < 0.17 * 200 == pytest.approx(34)  # and the control: one conversion does move it


def test_a_conversion_counts_at_once_and_the_curve_from_the_edge_on(shop: Ledger) -> None:
    test = made(shop)
    ids = [asked(shop, test, 0, 0.1 * place) for place in range(15)]
    for id in ids[:5]:
        told(shop, id, 3)
    before = believed(shop, test, 9)[0]
    told(shop, ids[6], 9)
    after = believed(shop, test, 9)[0]
    trust = 5 / 10
    assert (after[0] - before[0], after[1] - before[1]) == pytest.approx((trust, -trust), rel=1e-12)
    assert believed(shop, test, 11.9)[0] == after
    assert believed(shop, test, 12)[0] != after


# --- What stays as it was ---------------------------------------------------------------------------------------------


def test_a_late_success_takes_its_failure_back_exactly(shop: Ledger, clock: Clock) -> None:
    test = made(shop)
    ids = [asked(shop, test, 0, 0.1 * place) for place in range(15)]
    for id in ids[:5]:
        told(shop, id, 3)
    clock.at = moment(300) / 1000
    before, arm = believed(shop, test, 300)[0], test.summary().arms[0]
    assert (before, arm.assumed, arm.observed) == ((6.0, 11.0), 10, 15)
    assert told(shop, ids[9], 300) == "late"
    after, arm = believed(shop, test, 300)[0], test.summary().arms[0]
    assert (after, arm.assumed, arm.observed) == ((7.0, 10.0), 9, 15)
    summary = test.summary()
    assert summary.learned is not None
    assert summary.learned.conversions == 5  # it says nothing of how late those within the window come


def test_what_is_voided_or_corrected_is_as_if_it_had_been_told_so(shop: Ledger) -> None:
    first, second = made(shop), made(shop, "other")
    ids = {test.name: [asked(shop, test, place % 2, place) for place in range(40)] for test in (first, second)}
    for place in range(0, 40, 3):
        for test in (first, second):
            told(shop, ids[test.name][place], place + 5)
    for place in (4, 8):
        told(shop, ids["test"][place], place + 3)
        assert told(shop, ids["test"][place], 60, None) == "voided"
    assert told(shop, ids["test"][3], 61, 0.25, revise=True) == "revised"
    told(shop, ids["other"][3], 90, None)
    told(shop, ids["other"][3], 8, 0.25)  # the correction counts as of when the first was heard
    told(shop, ids["test"][6], 62, 0.0, revise=True)  # not a conversion after all
    told(shop, ids["other"][6], 62, None)
    for seconds in (64, 80, 120, 500):
        assert believed(shop, first, seconds) == believed(shop, second, seconds)
    told(shop, ids["other"][7], 63)  # the control
    assert believed(shop, first, 64) != believed(shop, second, 64)


def test_any_order_and_split_is_the_same_posterior(new_ledger: Callable[[], str], clock: Clock) -> None:
    chance = random.Random(5)
    events = []
    for place in range(80):
        at = chance.uniform(0, 150)
        id = str(uuid.UUID(int=chance.getrandbits(128)))
        events.append((id, place % 3, at, at + chance.expovariate(1 / 25) if chance.random() < 0.4 else None))

    def after(order: list[Any], waits: float = 1.0) -> list[Any]:
        url, left = new_ledger(), order
        while left:
            with opened(url, clock) as home:  # each part by another process, as it were
                known = [each.name for each in home.experiments()]
                test = home.get("test") if known else made(home, arms=3)
                size = chance.choice([5, 20, 40])
                part, left = left[:size], left[size:]
                calls = [
                    Ask(DecisionRow(identity("id", id), test.id, arm, moment(at), 0.5, None), 1, True, False)
                    for id, arm, at, _ in part
                ]
                for submitted in [home.writer.submit(call) for call in calls]:
                    submitted.wait()
                for id, _, at, heard in chance.sample(part, len(part)):
                    if heard is not None:
                        told(home, id, at + (heard - at) * waits)
        with opened(url, clock) as home:
            assert sound(home)
            return [believed(home, home.get("test"), seconds) for seconds in (100, 155, 160, 220)]

    once = after(events)
    for _ in range(2):
        assert after(chance.sample(events, len(events))) == once
    assert after(events, 1.3) != once  # the control


def test_arms_that_are_gone_still_tell_how_late_conversions_come(shop: Ledger) -> None:
    test = made(shop, arms=3)
    for place in range(60):
        told(shop, asked(shop, test, 2, 0.5), 0.5 + place % 9)
    for place in range(20):
        asked(shop, test, place % 2, 20)
    with_all = believed(shop, test, 40)
    test.retire("arm 2")
    assert believed(shop, test, 40) == with_all
    assert sum(with_all[0]) - 2 == pytest.approx(10 * 60 / 65, rel=1e-9)
    assert test.ask().arm in ("arm 0", "arm 1")


# --- What is said of it -----------------------------------------------------------------------------------------------


def filled(shop: Ledger, clock: Clock, means: tuple[float, ...], name: str = "test", rate: float = 0.3) -> Experiment:
    """An experiment whose arms convert alike, after exponential waits of these means."""
    test, rng = made(shop, name, arms=len(means)), np.random.default_rng(2)
    rows = [
        DecisionRow(identity("id", str(uuid.uuid4())), test.id, place % len(means), moment(place / 10), 0.5, None)
        for place in range(1500)
    ]
    for call in [shop.writer.submit(Ask(row, 1, False, False)) for row in rows]:
        call.wait()
    clock.at = moment(152) / 1000
    waits = [round(1000 * rng.exponential(means[row.arm])) for row in rows]
    told = [
        Tell(row.id, BILLION, row.asked_at + wait)
        for row, wait in zip(rows, waits, strict=True)
        if rng.random() < rate and row.asked_at + wait < moment(152)
    ]
    for call in [shop.writer.submit(each) for each in told]:
        call.wait()
    return test


def test_the_summary_says_what_was_learned(shop: Ledger, clock: Clock) -> None:
    test = filled(shop, clock, (20.0, 20.0))
    summary = test.summary()
    assert summary.reading == "silence"
    learned = summary.learned
    assert learned is not None
    assert learned.step == WIDTH
    assert learned.conversions > 300
    ages = (np.arange(len(learned.levels)) + 0.5) * 2.0
    truth = (1.0 - np.exp(-ages / 20.0)) / (1.0 - np.exp(-WINDOW / 20.0))
    error = np.sqrt(truth * (1.0 - truth) / learned.conversions)
    assert (np.abs(learned.levels - truth) < 4.0 * error + 0.01).all()
    assert (np.abs(learned.levels - (1.0 - np.exp(-ages / 10.0))) > 4.0 * error + 0.01).any()  # the control
    for arm in summary.arms:
        assert arm.waited is not None
        assert arm.waited.trials < arm.trials < arm.asked
        assert arm.delay is None
    assert sum(arm.waited.best for arm in summary.arms if arm.waited) == pytest.approx(1.0)
    whole = json.loads(json.dumps(summary.to_dict()))
    assert Waited(**whole["arms"][0]["waited"]) == summary.arms[0].waited
    assert whole["learned"]["levels"] == learned.levels
    then, now = sum(arm.waited.trials for arm in summary.arms if arm.waited), sum(arm.trials for arm in summary.arms)
    assert f"would lead with P = {max(arm.waited.best for arm in summary.arms if arm.waited):.3g}: " in (
        without_reading(summary)
    )
    assert without_reading(summary).endswith(f"{then:,.0f} outcomes would count in place of {now:,.0f}")
    assert "converts" not in summary.verdict


def test_it_says_which_arms_are_later(shop: Ledger, clock: Clock) -> None:
    summary = filled(shop, clock, (15.0, 15.0, 45.0)).summary()
    assert [arm.delay for arm in summary.arms][2] == "later"
    assert summary.verdict.endswith("; arm 2 converts later than the others, by more than chance")
    assert summary.learned is not None
    own = summary.learned.arms["arm 2"]
    assert own[5] < 0.8 * summary.learned.levels[5]
    pair = filled(shop, clock, (15.0, 45.0), "pair").summary()
    assert [arm.delay for arm in pair.arms] == ["sooner", "later"]
    assert pair.verdict.endswith("; arm 1 converts later than the other, by more than chance")


def test_where_it_waits_nothing_of_it_is_said(shop: Ledger) -> None:
    for name, how in (("waits", {"reading": "wait"}), ("pending", {"silence": live.Pending()})):
        summary = made(shop, name, **how).summary()
        assert (summary.reading, summary.learned, without_reading(summary)) == ("wait", None, "")
        assert {arm.waited for arm in summary.arms} == {arm.delay for arm in summary.arms} == {None}
        assert {arm.trials for arm in summary.arms} == {0.0}
    empty = made(shop, "empty").summary()
    assert empty.learned == (WIDTH, 0, [], {})
    assert without_reading(empty) == ""


# --- How it is chosen -------------------------------------------------------------------------------------------------


def test_it_is_the_default_where_it_can_be_read(shop: Ledger) -> None:
    assert made(shop, "a").settings.reading == "silence"
    assert made(shop, "b", policy="ucb1").settings.reading == "wait"
    assert made(shop, "c", policy="split").settings.reading == "wait"
    assert made(shop, "d", silence=live.Pending()).settings.reading == "wait"
    assert made(shop, "e", reading="wait").settings.reading == "wait"
    assert made(shop, "f", reading="silence").settings.reading == "silence"


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"reading": "tea leaves"}, "reading: "),
        ({"reading": "silence", "silence": live.Pending()}, "reading: silence cannot be read where silence is pending"),
        ({"reading": "silence", "policy": "ucb1"}, "reading: silence cannot be read by ucb1: it takes Failure(after="),
        ({"reading": "silence", "policy": "split"}, "reading: silence cannot be read by split: it takes "),
        ({"reading": 3}, "reading: "),
    ],
)
def test_bad_readings(how: dict[str, Any], line: str, tmp_path: Path, clock: Clock) -> None:
    with opened(f"sqlite:///{tmp_path}/shop.db", clock) as home:
        with pytest.raises(InvalidInput) as refused:
            made(home, **how)
        assert str(refused.value).startswith(line)
        assert "\n" not in str(refused.value)
        assert home.experiments() == []


@pytest.mark.parametrize("after", [0.001, 0.05, 1.5, 31.0, 86_400.0, 7 * 86_400.0, 1e9])
@pytest.mark.parametrize("grain", [None, 1, 10**13])
def test_blocks_are_at_most_fifty_a_window(after: float, grain: int | None, tmp_path: Path) -> None:
    settings = live.settings.Settings(silence=live.Failure(after=after))
    row = store.ExperimentRow(1, "", "", "running", 1, grain or settings.grain, settings.window, 0)
    assert 1 <= row.bins <= 50
    assert row.width % row.grain == 0
    assert (row.bins - 1) * row.width < (settings.window or 0) <= row.bins * row.width
    if grain is None and after >= 31.0:
        assert (row.bins, row.width) == (50, 20 * row.grain)

"""What a clock that is wrong can stop, and what it cannot; and an experiment that cannot be read, over both stores."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from belated import live
from belated.live import ClockRanBackwards, Ledger
from live_support import Clock, opened, spoil

DAY = 86_400.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shop(ledger_url: str, clock: Clock) -> Iterator[Ledger]:
    with opened(ledger_url, clock) as shop:
        yield shop


def test_a_clock_that_is_behind_the_ledger_decides_nothing(shop: Ledger, ledger_url: str, clock: Clock) -> None:
    test, other = (shop.create(name, arms=["red", "green"]) for name in ("checkout", "other"))
    clock.at -= DAY
    early = test.ask()
    clock.at += DAY
    first = test.ask()
    clock.at -= 30.0  # a little: time stands still
    assert test.ask().at == first.at
    clock.at -= DAY
    both = r"clock: reads 2023-11-13T.*, but there is a decision of 2023-11-14T"
    with live.open(ledger_url, clock=clock) as later:  # also after a restart
        for home in (shop, later):
            with pytest.raises(ClockRanBackwards, match=both):
                home.get("checkout").ask()
            with pytest.raises(ClockRanBackwards, match=both):
                home.tell(first.id, 1)
            assert home.tell_many([(first.id, 1)])[0].status == "clock-ran-backwards"
            assert home.tell(early.id, 1) in ("applied", "duplicate")  # of what it follows nothing is wrong
            assert home.get("other").ask().arm in ("red", "green")
    assert other.summary().asked == 2
    clock.at += DAY + 30.0
    assert test.tell(first.id, 1) == "applied"
    assert test.ask().at >= first.at
    assert test.summary().notice is None


def test_a_clock_that_is_behind_the_ledger_reads_as_of_its_last_decision(shop: Ledger, clock: Clock) -> None:
    test = shop.create("checkout", arms=["red", "green"], silence=live.Failure(after="1h"))
    heard, silent = test.ask(), test.ask()
    clock.at += 60.0
    test.tell(heard.id, 1)
    clock.at += 3600.0
    last = test.ask()
    before, waits = test.summary(), test.waits()
    clock.at -= DAY
    summary = test.summary()
    assert summary.at == last.at
    assert summary.notice is not None
    assert re.match(r"this machine's clock reads 2023-11-13T.*, but there is a decision of 2023-11-14T", summary.notice)
    assert summary._replace(notice=None) == before  # no window that had closed opens again
    assert sum(arm.assumed for arm in summary.arms) == 1
    assert test.waits()._replace(notice=None) == waits
    assert test.waits().notice == summary.notice
    assert silent.id != last.id


def test_a_clock_that_leaps_and_comes_back_before_anything_is_written_does_no_harm(shop: Ledger, clock: Clock) -> None:
    test = shop.create("checkout", arms=["red", "green"])
    decision = test.ask()
    clock.at += 3650 * DAY
    assert test.summary().asked == 1
    clock.at -= 3650 * DAY
    assert test.ask().at == decision.at
    assert test.tell(decision.id, 1) == "applied"


def test_one_experiment_that_cannot_be_read_hides_no_other(shop: Ledger, ledger_url: str, clock: Clock) -> None:
    for name in ("first", "odd", "last"):
        shop.create(name, arms=["red", "green"])
    spoil(shop, "odd")
    with live.open(ledger_url, clock=clock) as later:
        found = {row.name: each for row, each in later.each(live.Experiment.summary)}
        assert [isinstance(each, live.Summary) for each in found.values()] == [True, False, True]
        with pytest.raises(live.Unreadable, match=r"'odd' has settings that .* cannot read: policy: "):
            later.get("odd")

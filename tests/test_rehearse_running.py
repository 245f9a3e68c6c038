"""A running experiment, rehearsed from where it stands: what is read of its ledger, and what follows from it."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from belated import InvalidInput, Observed, live, rehearse
from belated.live import curves
from belated.live.posterior import losses
from belated.rehearse import running
from belated.rehearse.running import _awaited, origin
from live_support import Clock, opened

RATES = {"red": 0.40, "green": 0.42, "blue": 0.30}


def lived(url: str, clock: Clock, *, silence: Any, asks: int = 700, **given: Any) -> None:
    """An experiment of 100 visitors a day, whose conversions take half a day on average."""
    rng = default_rng(3)
    due: list[tuple[float, str, float]] = []
    with opened(url, clock) as home:
        test = home.create("checkout", list(RATES), silence=silence, **given)
        for _ in range(asks):
            clock.pass_(864.0)
            decision = test.ask()
            success = float(rng.random() < RATES[decision.arm])
            if success or silence.window is None:
                heapq.heappush(due, (clock.at + rng.exponential(43_200.0), decision.id, success))
            while due and due[0][0] <= clock.at:
                test.tell(*heapq.heappop(due)[1:])


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Clock]:
    url, clock = f"sqlite:///{tmp_path_factory.mktemp('running')}/shop.db", Clock()
    lived(url, clock, silence=live.Failure(after="2d"), policy="split")
    return url, clock


def test_what_is_read_is_what_the_engine_says(windowed: tuple[str, Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    url, clock = windowed
    monkeypatch.setattr(running, "ENOUGH", 500)
    start = origin(url, "checkout", clock=clock, seed=5)
    with opened(url, clock) as home:
        test = home.get("checkout")
        summary, waits = test.summary(), test.waits("864s")
    assert start.plan.arms == tuple(RATES)
    assert (start.plan.step, start.plan.rounds, start.plan.window) == (864_000, 700, 172_800_000)
    assert start.running.visitors == pytest.approx(100.0)
    assert (start.running.asked, start.running.pending) == (summary.asked, summary.pending)
    assert (start.running.leader, start.running.best) == (summary.leader, max(arm.best for arm in summary.arms))
    for arm, (a, b) in zip(summary.arms, start.prior, strict=True):
        assert a / (a + b) == pytest.approx(arm.mean)
    assert waits.pooled is not None
    for law in start.plan.laws:
        assert isinstance(law, Observed)
        assert law.levels[-1] == 1.0
        # No arm has enough outcomes for a curve of its own; what comes after the window is not of the law.
        assert law.delays == tuple(delay for delay in waits.pooled.delays if delay <= 200) < waits.pooled.delays
    # Windows of 200 visitors: the last 200 decisions are young, and their ages ascend back in time.
    assert len(start.young.arm) == 200
    assert start.young.age.tolist() == list(range(199, -1, -1))


@pytest.mark.parametrize("quiet", [0.0, 43_200.0])
def test_an_experiment_that_reads_silence_is_told_of_as_it_tells_itself(tmp_path: Path, quiet: float) -> None:
    """Also after half a day without a visitor, in which what is pending has grown older."""
    url, clock = f"sqlite:///{tmp_path}/shop.db", Clock()
    lived(url, clock, silence=live.Failure(after="2d"), asks=400)
    clock.pass_(quiet)
    start = origin(url, "checkout", clock=clock)
    with opened(url, clock) as home:
        summary = home.get("checkout").summary()
    assert start.running.reads_silence
    assert start.running.best == pytest.approx(max(arm.best for arm in summary.arms), abs=1e-9)
    for arm, a, b in zip(summary.arms, *start.believed(), strict=True):
        assert a / (a + b) == pytest.approx(arm.mean, rel=1e-12)


def told(url: str, clock: Clock, *, reading: str, zeros: bool, late: bool) -> tuple[running.Origin, live.Summary]:
    """Successes after 10 to 24 hours, of a window of 48, and some after 60; failures after 1 hour, or never."""
    rng, due = default_rng(11), list[tuple[float, str, float]]()
    with opened(url, clock) as home:
        test = home.create("checkout", ["red", "green"], silence=live.Failure(after="2d"), reading=reading)
        for _ in range(450):
            clock.pass_(864.0)
            decision, (u, slow, extra) = test.ask(), rng.random(3)
            success = float(u < 0.4)
            if success or zeros:
                hours = 1 if not success else 60 if late and slow < 0.25 else 10 + 14 * extra
                heapq.heappush(due, (clock.at + 3600 * hours, decision.id, success))
            while due and due[0][0] <= clock.at:
                test.tell(*heapq.heappop(due)[1:])
        return origin(url, "checkout", clock=clock), test.summary()


@pytest.mark.parametrize(("reading", "late"), [("silence", False), ("silence", True), ("wait", True)])
def test_failures_that_are_told_and_late_successes_say_nothing_of_delays(
    tmp_path: Path, reading: str, late: bool
) -> None:
    """The live posterior is the same whether failures are told; so must be all that a rehearsal makes of it."""
    quiet, _ = told(f"sqlite:///{tmp_path}/quiet.db", Clock(), reading=reading, zeros=False, late=late)
    start, summary = told(f"sqlite:///{tmp_path}/told.db", Clock(), reading=reading, zeros=True, late=late)
    assert (start.young.heard >= 0).sum() > 2 * (quiet.young.heard >= 0).sum()  # the two are not the same story
    assert start.plan.laws == quiet.plan.laws
    for law in start.plan.laws:
        assert isinstance(law, Observed)
        assert 41 < law.delays[0] < law.delays[-1] <= 101  # in rounds of 864 s
        assert law.cdf(71) == pytest.approx(0.5, abs=0.15)  # 17 hours
    assert start.prior == quiet.prior
    assert np.array_equal(start.believed(), quiet.believed())
    read = start.believed() if reading == "silence" else np.array(start.prior).T
    for arm, a, b in zip(summary.arms, *read, strict=True):
        assert a / (a + b) == pytest.approx(arm.mean, rel=0.02)
    lags = [np.sort(np.concatenate(each.earlier)) for each in (start, quiet)]
    assert np.array_equal(*lags)
    assert len(lags[0]) > 50
    assert 41 < lags[0].min() < lags[0].max() <= 101


def test_what_has_waited_for_its_window_is_at_risk_in_the_last_round_of_it(ledger_url: str) -> None:
    """A window of an hour is 2.4 rounds of 25 minutes: 3 of 10 convert in the third of them, which is no certainty."""
    url, clock = ledger_url, Clock()
    with opened(url, clock) as home:
        test = home.create("checkout", ["red", "green"], silence=live.Failure(after="1h"))
        asked = [test.ask().id for _ in range(10)]
        clock.pass_(3300)
        test.tell_many([(id, 1.0) for id in asked[:3]] + [(asked[3], 0.0)])
        clock.pass_(7200)
        test.tell(asked[4], 1.0)
        with home.store.reading() as connection:
            found, whole = (curves.read(connection, 1, round(clock() * 1000), 1_500_000, w) for w in (3_600_000, None))
    assert found.pooled is not None
    assert (found.pooled.delays, found.pooled.levels) == ((3.0,), pytest.approx((0.3,)))
    assert whole.pooled is not None
    assert whole.pooled.levels == pytest.approx((0.4, 0.5))  # the control: whatever is told counts


def test_an_arm_of_which_enough_is_heard_has_its_own_delays(
    windowed: tuple[str, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, clock = windowed
    monkeypatch.setattr(running, "ENOUGH", 20)
    start = origin(url, "checkout", clock=clock)
    assert set(start.running.own_waits) <= set(RATES)
    assert "green" in start.running.own_waits
    assert len(set(start.plan.laws)) > 1


def test_its_ledger_is_not_touched(windowed: tuple[str, Clock]) -> None:
    url, clock = windowed
    file = Path(url.removeprefix("sqlite:///"))
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in file.parent.glob("shop.db*")}
    rehearse.going_on(url, "checkout", days=2, replications=4, clock=clock)
    after = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in file.parent.glob("shop.db*")}
    assert after["shop.db"] == before["shop.db"]
    assert not any(Path(f"{file}-wal").stat().st_size for _ in [0] if Path(f"{file}-wal").exists())


def test_to_stop_now_costs_what_the_posterior_expects(windowed: tuple[str, Clock]) -> None:
    """Rates are drawn from what is believed, so the simulated loss of the leader is the exact integral, in error."""
    url, clock = windowed
    start = origin(url, "checkout", clock=clock)
    found = rehearse.going_on(url, "checkout", days=2, replications=600, clock=clock)
    a, b = start.believed()
    leader = int(found.track("thompson-silence").best[0, 0].argmax())
    stopping = found.stopping("thompson-silence")
    expected = float(losses(a, b)[leader])
    assert abs(stopping.loss[0] - expected) < 4 * stopping.loss_se[0] + 1e-6
    worse = float(losses(a, b)[(leader + 1) % 3])
    assert abs(stopping.loss[0] - worse) > 10 * stopping.loss_se[0]
    # A visitor is the clock: the window that closes before the next one has closed already.
    assert found.track("wait").best[0, 0].max() == pytest.approx(start.running.best, abs=0.02)
    assert found.days[0] == 0.0
    assert found.compare("wait", "split").sign < 0


def test_silence_tells_more_than_waiting(windowed: tuple[str, Clock]) -> None:
    """What is believed counts the young as far as they have had time: between none and all of them."""
    start = origin(*windowed[:1], "checkout", clock=windowed[1])
    a, b = start.believed()
    counted = (a + b).sum() - np.array(start.prior).sum()
    assert 0.5 * 200 < counted < 200


def test_what_is_pending_comes_as_the_waits_say() -> None:
    """By hand: of law 1 in rounds 1, 3, 8 with levels .25, .5, 1, a silent decision of age 3 has half the mass left."""
    law, count = Observed([1, 3, 8], [0.25, 0.5, 1.0]), 40_000
    u, v = default_rng(1).random((2, count))
    due, reward = _awaited(law, np.full(count, 3), 0.4, u, v, False)
    assert set(np.unique(due)) == {5.0, np.inf}
    expected = 0.4 * 0.5 / (1 - 0.4 * 0.5)
    assert abs((due < np.inf).mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / count)
    assert abs((due < np.inf).mean() - 0.4) > 20 * np.sqrt(0.24 / count)
    # Where both outcomes are told all come, and the share of successes is the rate.
    due, reward = _awaited(law, np.full(count, 1), 0.4, u, v, True)
    assert set(np.unique(due)) == {2.0, 7.0}
    assert abs((due == 2.0).mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / count)
    assert abs(reward.mean() - 0.4) < 4 * np.sqrt(0.24 / count)


def test_both_outcomes_told_over_both_stores(new_ledger: Callable[[], str], tmp_path: Path) -> None:
    url, clock = new_ledger(), Clock()
    lived(url, clock, silence=live.Pending(), asks=300)
    found = rehearse.going_on(url, "checkout", days=3, replications=6, clock=clock)
    assert found.policies == ("thompson", "split")
    now = found.running
    assert now is not None
    page = found.write(tmp_path)[1].read_text()
    assert "checkout: stop now, or go on?" in page
    assert f"after 300 decisions, {now.pending} still pending" in page
    assert json.loads((tmp_path / "rehearsal.json").read_text())["running"]["name"] == "checkout"


def test_what_cannot_be_rehearsed_is_said_in_a_line(tmp_path: Path) -> None:
    url, clock = f"sqlite:///{tmp_path}/shop.db", Clock()
    with pytest.raises(live.NotFound, match="ledger: there is no file"):
        rehearse.going_on(url, "checkout", clock=clock)
    assert not list(tmp_path.iterdir())
    with opened(url, clock) as home:
        home.create("young", ["red", "green"])
        quiet = home.create("quiet", ["red", "green"])
        single = home.create("single", ["red", "green"])
        single.pause("red")
        for _ in range(20):
            clock.pass_(60.0)
            quiet.ask()
            single.resume()
    for name, error, message in [
        ("nothing", live.NotFound, "experiment: there is none named 'nothing'"),
        ("young", live.NotFound, "experiment: young has had too few decisions to go by"),
        ("quiet", live.NotFound, "experiment: of quiet nothing has been heard yet"),
        ("single", InvalidInput, "experiment: single has 1 active arms"),
    ]:
        with pytest.raises(error, match=message):
            rehearse.going_on(url, name, clock=clock)
    with pytest.raises(InvalidInput, match="days: must be above 0"):
        rehearse.going_on(url, "quiet", days=0, clock=clock)


def test_too_many_young_decisions_are_refused_before_they_are_read(
    windowed: tuple[str, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, clock = windowed
    monkeypatch.setattr(running, "MOST_YOUNG", 200)
    assert len(origin(url, "checkout", clock=clock).young.arm) == 200
    monkeypatch.setattr(running, "MOST_YOUNG", 199)
    monkeypatch.delattr(running.ledger, "recent")
    with pytest.raises(InvalidInput, match="has 200 decisions of an open window, a rehearsal takes at most 199:"):
        origin(url, "checkout", clock=clock)


def test_an_arm_without_a_success_goes_by_the_delays_of_the_others(tmp_path: Path) -> None:
    url, clock = f"sqlite:///{tmp_path}/shop.db", Clock()
    with opened(url, clock) as home:
        test = home.create("checkout", ["red", "green"], silence=live.Failure(after="1d"), policy="split")
        for _ in range(60):
            clock.pass_(3600)
            decision = test.ask()
            test.tell(decision.id, float(decision.arm == "red"))
    start = origin(url, "checkout", clock=clock)
    assert [len(lags) > 0 for lags in start.earlier] == [True, False]
    assert start.plan.laws[0] == start.plan.laws[1]
    a, b = start.believed()
    assert a[0] / (a[0] + b[0]) > 0.9
    assert a[1] == 1.0


def test_a_ledger_of_another_schema_is_not_read(tmp_path: Path) -> None:
    from belated.live.schema import migrate

    store = live._store(f"sqlite:///{tmp_path}/old.db")
    migrate(store, upto=1)
    store.close()
    with pytest.raises(live.WrongLedger, match="its schema is 1, older than"):
        rehearse.going_on(f"sqlite:///{tmp_path}/old.db", "checkout")

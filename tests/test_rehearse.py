"""Rehearsals: plans and what is refused of them, the numbers of the simulator and the engine, and what they say."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from belated import (
    Between,
    Conversions,
    Exponential,
    Fixed,
    Geometric,
    InvalidInput,
    Mixture,
    Observed,
    Refreshed,
    Scenario,
    Thompson,
    Uniform,
    Wait,
    rehearse,
    simulate,
)
from belated.live.posterior import chances as exact_chances
from belated.loop import PlainDelays, Trace, World, new_calendar, play
from belated.policies import named
from belated.rehearse import candidates, dress, known, words
from belated.rehearse.findings import Rehearsal, Track, wilson
from belated.rehearse.plan import KEYS
from belated.rehearse.play import Batch, Start, marks_of, played, rates, setting_of
from belated.rehearse.watched import News, watched
from belated.simulation import POLICY, VISITORS, stream

STOP = np.zeros(1, np.uint8)
GIVEN: dict[str, Any] = {
    "arms": {"red": 0.3, "green": "0.3..0.6", "blue": 0.4},
    "visitors": 100,
    "days": 9,
    "window": "2d",
    "delay": "exponential:12h",
    "outage": ["3d", "4d"],
    "duplicates": 0.2,
    "horizon": "30d",
    "refresh": ["1h", "1d"],
    "replications": 12,
}


@pytest.fixture(scope="module")
def plan() -> rehearse.Plan:
    return rehearse.plan(GIVEN)


@pytest.fixture(scope="module")
def found(plan: rehearse.Plan) -> Rehearsal:
    return rehearse.run(plan, workers=2)


# --- Plans ---


def test_a_plan_is_in_visitors(plan: rehearse.Plan) -> None:
    assert (plan.step, plan.rounds, plan.horizon) == (864_000, 900, 3000)
    assert plan.laws == (Exponential(50.0),) * 3
    assert plan.outage == (300, 400)
    # At 864 s a visitor, a window of 200 visitors has closed before the 201st after it is decided for.
    assert plan.window_rounds == 199
    assert plan.rates == (0.3, Between(0.3, 0.6), 0.4)
    assert plan.policies == ("thompson-silence", "wait", "split")


def test_the_example_is_the_plan_of_the_examples_and_a_whole_one() -> None:
    text = rehearse.example()
    assert text == (Path(__file__).parent.parent / "examples" / "plan.toml").read_text()
    assert set(tomllib.loads(text)) == {*KEYS} - {
        "certainty", "prior", "replications", "seed",
    }  # fmt: skip
    found = rehearse.run(rehearse.plan({**tomllib.loads(text), "replications": 2}), workers=2)
    assert found.dress is not None
    assert found.dress.agrees
    assert (found.dress.rounds, found.plan.rounds) == (28_000, 28_000)


@pytest.mark.parametrize(
    ("written", "law"),
    [
        ("exponential:2d", Exponential(200.0)),
        ("fixed:1d", Fixed(100.0)),
        ("uniform:1d,36h", Uniform(100, 150)),
        ("geometric:0.01", Geometric(0.01)),
        ({"law": "observed", "delays": ["12h", "1d"], "levels": [0.5, 1.0]}, Observed([50, 100], [0.5, 1.0])),
        (
            {"law": "mixture", "weights": [0.5, 0.5], "laws": ["fixed:1d", "exponential:2d"]},
            Mixture([0.5, 0.5], [Fixed(100.0), Exponential(200.0)]),
        ),
    ],
)
def test_times_within_laws_are_so_many_visitors(written: Any, law: Any) -> None:
    assert rehearse.plan({**GIVEN, "delay": written}).laws[0] == law


def test_a_law_for_each_arm_and_a_file_of_waits(tmp_path: Path) -> None:
    (tmp_path / "waits.csv").write_text("wait,age\n12h,\n1d,\n,2d\n,3d\n")
    made = rehearse.plan({**GIVEN, "delay": ["fixed:1d", "waits.csv", "fixed:2d"]}, folder=tmp_path)
    # Two of four came; with a window the law is that of those that come.
    assert made.laws == (Fixed(100.0), Observed([50, 100], [0.5, 1.0]), Fixed(200.0))
    told = {key: value for key, value in GIVEN.items() if key != "window"}
    made = rehearse.plan({**told, "delay": "waits.csv"}, folder=tmp_path)
    assert made.laws[0] == Observed([50, 100], [0.25, 0.5])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("waits\n1d\n", "waits.csv: has columns wait and, if wished, age; got 'waits'"),
        ("wait,age\n1d,2d\n", "waits.csv: line 2: must have either a wait or an age, got ['1d', '2d']"),
        ("wait\n1d\nsoon\n", "waits.csv, line 3: must be a time such as 7d, 12h, 30m or 10s, got 'soon'"),
        ("wait,age\n,3d\n", "waits.csv: must hold at least one wait, got none"),
        ("", "waits.csv: has columns wait and, if wished, age; got '(none)'"),
    ],
)
def test_a_bad_file_of_waits_is_named_with_its_line(rows: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "waits.csv").write_text(rows)
    with pytest.raises(InvalidInput) as caught:
        rehearse.plan({**GIVEN, "delay": "waits.csv"}, folder=tmp_path)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"visitor": 9}, "plan: unknown key 'visitor'; did you mean 'visitors'?"),
        ({"visitors": -1}, "visitors: must be above 0 and at most 1e+06, got -1"),
        ({"visitors": 1}, "visitors: a rehearsal needs 10 at least in all its days, got 9"),
        (
            {"visitors": 1e6, "days": 30},
            "visitors: a rehearsal takes at most 5,000,000 in all its days, got 30,139,535",
        ),
        ({"arms": {"red": 0.3}}, "arms: must be 2 to 50, got 1"),
        ({"arms": [0.3, 0.4]}, "arms: must be a table of names and rates, got [0.3, 0.4]"),
        ({"arms": {"red": 0.3, "green": 1.5}}, "arms.green: must be between 0 and 1, got 1.5"),
        (
            {"arms": {"red": 0.3, "green": "often"}},
            "arms.green: must be a number or a range such as 0.25..0.75, got 'often'",
        ),
        ({"window": 7}, "window: must be a time such as 7d, 12h or 30m, got 7"),
        ({"window": "1s"}, "window: must not be shorter than from one visitor to the next, got 1s"),
        ({"outage": ["3d"]}, "outage: must be two times, from and to, got ['3d']"),
        ({"outage": ["3d", "2d"]}, "outage: must not end before it begins, got 3d to 2d"),
        ({"duplicates": 2}, "duplicates: must be between 0 and 1, got 2"),
        ({"certainty": 0.3}, "certainty: must be at least 0.5 and below 1, got 0.3"),
        ({"policies": []}, "policies: at least one is needed, got none"),
        ({"policies": ["wait", "wait"]}, "policies: wait is given twice"),
        ({"policies": ["ucb1"]}, "policies: ucb1 needs all outcomes"),
        ({"policies": ["tompson"]}, "policies: unknown policy 'tompson'; did you mean"),
        ({"window": None, "policies": ["wait"]}, "policies: wait needs a window"),
        ({"delay": "exponential"}, "delay.mean: exponential needs it: exponential(mean)"),
        ({"delay": "exponentiel:2d"}, "delay: unknown law 'exponentiel'; did you mean 'exponential'?"),
        (
            {"delay": "queue:0.5"},
            "delay: with a window it is that of the successes, one law by itself, got 'queue:0.5'",
        ),
        ({"delay": "exponential:10..20"}, "delay: must be a law with numbers, not ranges, and without memory"),
        ({"delay": "conversions:fixed:3,9", "window": None}, "delay: is that of the successes; the window is a key"),
        ({"delay": "queue:0.5", "window": None}, "delay: must be a law with numbers, not ranges, and without memory"),
        ({"horizon": "8d"}, "horizon: must not be shorter than days = 9, got 8d"),
        ({"delay": ["fixed:1d"]}, "delay: must be one law or one for each of 3 arms, got 1"),
        ({"delay": "nowhere.csv"}, "delay: nowhere.csv cannot be read: No such file or directory"),
        ({"refresh": [60]}, "refresh: must be a time such as 7d, 12h or 30m, got 60"),
        ({"prior": [1]}, "prior: must be two numbers, got [1]"),
        ({"replications": 1}, "replications: must be at least 2, got 1"),
        ({"seed": -1}, "seed: must be at least 0, got -1"),
    ],
)
def test_each_key_is_checked_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        rehearse.plan({**GIVEN, **change})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["arms", "visitors", "days", "delay"])
def test_a_key_that_is_needed_is_named(key: str) -> None:
    with pytest.raises(InvalidInput, match=f"{key}: is needed; `belated rehearse --example` prints a whole plan"):
        rehearse.plan({name: value for name, value in GIVEN.items() if name != key})


rubbish = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["7d", "1e9d", "fixed:1d"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("law"), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.sampled_from([*GIVEN, "policies", "certainty", "prior", "seed"]), rubbish)
@example("delay", {"law": "fixed", "rounds": []})
@settings(max_examples=80)
def test_rubbish_is_a_plan_or_refused(key: str, value: Any) -> None:
    with contextlib.suppress(InvalidInput):
        assert rehearse.plan({**GIVEN, key: value}).rounds >= 10


# --- The same numbers as the simulator ---


def regrets(plan: rehearse.Plan, name: str, **options: Any) -> np.ndarray:
    return Batch(setting_of(plan, plan.policy(name), **options), range(plan.replications)).run(STOP).regret[:, -1]


@pytest.mark.parametrize("name", ["thompson", "split"])
def test_a_plan_without_a_window_is_the_simulators_scenario(name: str) -> None:
    """Every replication's regret, to the last digit: one visitor more, who closes the last round, changes nothing."""
    arms = {"red": 0.3, "green": 0.5}
    plan = rehearse.plan({"arms": arms, "visitors": 100, "days": 4, "delay": "exponential:1d", "replications": 6})
    world = Scenario(means=[0.3, 0.5], delay=Exponential(100.0), rounds=plan.rounds)
    policy = Thompson(lazy=False) if name == "thompson" else named(name)
    (direct,) = simulate(world, [policy], replications=6, seed=plan.seed).regret[:, :, -1].tolist()
    assert regrets(plan, name).tolist() == pytest.approx(direct, abs=1e-9)


def test_with_a_window_waiting_is_waiting_for_conversions_unless_some_come_after_it() -> None:
    """Where no success is later than its window, the provisional failure is the simulator's revealed one."""
    common = {"arms": {"red": 0.3, "green": 0.5}, "visitors": 100, "days": 4, "replications": 6, "window": "25h"}
    sure = rehearse.plan({**common, "delay": "uniform:1h,24h"})
    law = Conversions(sure.laws[0], sure.window_rounds)
    world = Scenario(means=[0.3, 0.5], delay=law, rounds=sure.rounds)
    direct = simulate(world, [Wait()], replications=6, seed=sure.seed).finals("wait").tolist()
    assert regrets(sure, "wait").tolist() == pytest.approx(direct, abs=1e-9)
    late = rehearse.plan({**common, "delay": "uniform:1h,96h"})
    law = replace(law, success=late.laws[0])
    direct = simulate(replace(world, delay=law), [Wait()], replications=6, seed=late.seed).finals("wait").tolist()
    assert regrets(late, "wait").tolist() != pytest.approx(direct, abs=1e-9)


@pytest.mark.parametrize("name", ["wait", "thompson-silence", "split"])
def test_a_rehearsal_is_the_same_compiled_and_interpreted(plan: rehearse.Plan, name: str) -> None:
    """With a posterior read every seven visitors, and outcomes still to come of forty visitors before the first."""
    coming = News(np.array([2, 5, 5]), np.array([3, 1, 40]), np.array([0, 1, 2]), np.ones(3), np.zeros(1, np.int64))
    start = Start(rates(plan, 0), plan.policy(name).start(3, plan.rounds + 41), 40, coming)
    setting = setting_of(plan, plan.policy(name), every=7)._replace(marks=np.array([100, 250]))
    compiled, lost = played(setting, copy.deepcopy(start), 0, new_calendar(251), STOP)
    state = watched(start.state, 3, setting.marks, every=7, before=40, coming=coming)
    world = World(
        start.means,
        start.means.max(),
        True,
        PlainDelays(plan.heard(), np.zeros((3, 1))),
        stream(plan.seed, 0, VISITORS),
    )
    trace = Trace(np.array([100, 250, 251]), np.zeros(3), np.zeros(3, np.int64), np.zeros(3, np.int64))
    play(state, world, new_calendar(251), trace, STOP, stream(plan.seed, 0, POLICY))
    assert compiled.chosen.tolist() == state.chosen.tolist()
    assert compiled.noted.tolist() == state.noted.tolist()
    assert lost.tolist() == trace.regret[:2].tolist()
    assert state.coming.filled[0] == 3


def test_a_stale_posterior_is_a_refreshed_law_and_every_round_is_no_staleness() -> None:
    """Staleness is delay: a posterior read every k rounds and a law whose rewards are seen every k choose alike."""
    arms = {"red": 0.3, "green": 0.5}
    plan = rehearse.plan({"arms": arms, "visitors": 100, "days": 4, "delay": "exponential:1d", "replications": 6})
    for every in (1, 7, 50):
        law = Refreshed(Exponential(100.0), every)
        world = Scenario(means=[0.3, 0.5], delay=law, rounds=plan.rounds)
        (direct,) = simulate(world, [Thompson(lazy=False)], replications=6, seed=plan.seed).regret[:, :, -1].tolist()
        assert regrets(plan, "thompson", every=every).tolist() == pytest.approx(direct, abs=1e-9)
    assert regrets(plan, "thompson", every=7).tolist() != pytest.approx(direct, abs=1e-9)


def test_a_posterior_that_is_never_read_is_an_even_choice() -> None:
    """The limit of staleness: nothing is ever learned; half the visitors, give or take, see the worse arm."""
    arms = {"red": 0.3, "green": 0.5}
    plan = rehearse.plan({"arms": arms, "visitors": 500, "days": 4, "delay": "fixed:1h", "replications": 12})
    blind = regrets(plan, "thompson", every=plan.rounds)
    expected, error = 0.2 * plan.rounds / 2, 0.2 * math.sqrt(plan.rounds / 4) / math.sqrt(12)
    assert abs(blind.mean() - expected) < 4 * error
    sharp = regrets(plan, "thompson")
    assert abs(sharp.mean() - expected) > 20 * error


@pytest.mark.parametrize("arms", [2, 3, 8, 20, 50])
def test_chances_are_those_of_the_exact_integral(arms: int) -> None:
    rng = np.random.default_rng(arms)
    n = rng.integers(0, 20_000, (40, arms)) * rng.integers(0, 2, (40, arms)) + rng.integers(0, 60, (40, arms))
    s = rng.binomial(n, rng.uniform(0.01, 0.12, (40, 1)) * rng.uniform(0.8, 1.2, (40, arms)))
    a, b = 1.0 + s, 1.0 + n - s
    mine = known.chances(a[None], b[None])[0]
    exact = np.array([exact_chances(*pair) for pair in zip(a, b, strict=True)])
    assert np.abs(mine - exact).max() < (1e-4 if arms <= 20 else 1e-3)
    assert np.abs(mine - exact[:, ::-1]).max() > 0.1  # the control


# --- The dress rehearsal ---


def dressed(plan: rehearse.Plan, **options: Any) -> tuple[np.ndarray, np.ndarray, dress.Lived]:
    """The choices and sums of the compiled rehearsal, and what the engine did."""
    part = dress.part_of(plan)
    assert part is not None
    lived = dress.live_through(plan, part, rates(plan, 0), STOP, **options)
    setting = setting_of(plan, plan.policy(part.name), every=part.every)._replace(marks=np.array([part.rounds]))
    state, _ = played(setting, setting.begin(0), 0, new_calendar(part.rounds + 1), STOP)
    return state.chosen[1:-1], state.noted[-1], lived


@pytest.mark.parametrize(
    "change",
    [
        {"visitors": 60},
        {"visitors": 60, "window": None},
        {"visitors": 60, "policies": ["split"]},
        {"visitors": 60, "delay": "uniform:1h,4d", "outage": ["2d", "6d"]},
        {},
        {"delay": "uniform:1h,4d", "outage": ["2d", "6d"]},
    ],
    ids=["waiting", "both told", "split", "late ones", "silence read", "silence read, late ones"],
)
def test_the_engine_does_what_was_rehearsed(change: dict[str, Any]) -> None:
    plan = rehearse.plan({**GIVEN, **change})
    made = dress.dressed(plan, STOP)
    assert made is not None
    assert made.agrees
    assert made.rounds >= plan.rounds - made.every
    # At 60 visitors a day the engine's blocks of time are not whole visitors, and the next policy is dressed.
    assert (made.policy == "thompson-silence") == ("visitors" not in change)
    assert made.duplicates > 5
    if "delay" in change:
        assert made.late > 5


@pytest.mark.parametrize("change", [{"replication": 1}, {"lag": 1}])
def test_the_dress_rehearsal_can_fail(change: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another world, or outcomes a visitor late, and the engine chooses otherwise."""
    plan = rehearse.plan({**GIVEN, "visitors": 60, "policies": ["wait"]})
    if "lag" in change:
        heard = dress.Crowd.comes

        def later(self: dress.Crowd, t: int, arm: int, identity: bytes) -> list[tuple[bytes, float]]:
            now, self.kept = getattr(self, "kept", []), heard(self, t, arm, identity)  # type: ignore[attr-defined]
            return now

        monkeypatch.setattr(dress.Crowd, "comes", later)
        plan = replace(plan, window=plan.step * 3)
    chosen, _, lived = dressed(plan, **({} if "lag" in change else change))
    assert chosen.tolist() != lived.chosen.tolist()


def test_an_outage_is_heard_at_its_end_and_not_before() -> None:
    plan = rehearse.plan({**GIVEN, "window": None, "delay": "fixed:1h", "arms": {"red": 0.3, "green": 0.5}})
    crowd = dress.Crowd(replace(plan, duplicates=0.0), np.array([0.3, 0.5]), 0)
    heard = [len(crowd.comes(t, 0, t.to_bytes(16, "big"))) for t in range(1, plan.rounds + 1)]
    assert plan.outage is not None
    start, end = plan.outage
    # An hour is 4.2 visitors, so 5: each is told after five, those of the outage all at its end.
    assert heard[start - 2] == 1
    assert heard[start - 1 : end - 1] == [0] * (end - start)
    assert heard[end - 1] == end - start + 1
    assert heard[end:] == [1] * (plan.rounds - end)


# --- What it says ---


def test_all_policies_meet_the_same_worlds(found: Rehearsal) -> None:
    means = [track.means.tolist() for track in (*found.tracks.values(), *found.changes.values())]
    assert all(each == means[0] for each in means)
    assert all((track.pulls.sum(axis=1) == found.plan.rounds).all() for track in found.tracks.values())


def test_threads_change_no_number(plan: rehearse.Plan, found: Rehearsal) -> None:
    again = rehearse.run(plan, workers=1)
    for name, track in found.tracks.items():
        assert all(np.array_equal(one, other) for one, other in zip(track, again.track(name), strict=True))


def crafted(plan: rehearse.Plan, best: list[list[list[float]]], means: list[list[float]]) -> Rehearsal:
    """Two looks, on day 1 and 2, at two rehearsals."""
    regret = np.array([[1.0, 2.0], [3.0, 4.0]])
    track = Track(np.array(means), regret, np.array(best), np.zeros((2, 2)))
    plan = replace(plan, arms=("red", "green"), policies=("split",), horizon=300)
    return Rehearsal(plan, np.array([100, 200]), {"split": track}, {}, None, {})


def test_what_is_known_when_and_what_stopping_costs(plan: rehearse.Plan) -> None:
    best = [[[0.5, 0.5], [0.98, 0.02]], [[0.04, 0.96], [0.6, 0.4]]]
    made = crafted(plan, best, [[0.5, 0.3], [0.5, 0.3]])
    seen = made.known("split")
    assert seen.by_end.share == 1.0
    assert seen.half.days == 1.0  # one of two on the first day
    assert (seen.wrong.share, seen.loss.difference) == (0.5, pytest.approx(0.1))
    stopping = made.stopping("split")
    # Day 1: arms alike in the first world cost half the gap; in the second the worse arm leads. Day 2: none is lost.
    assert stopping.loss.tolist() == pytest.approx([0.15, 0.0])
    assert stopping.total.tolist() == pytest.approx([2.0 + 200 * 0.15, 3.0])
    assert stopping.cheapest == 1


def test_what_is_never_known_is_said_so(plan: rehearse.Plan) -> None:
    made = crafted(plan, [[[0.5, 0.5]] * 2] * 2, [[0.5, 0.3]] * 2)
    seen = made.known("split")
    assert (seen.by_end.share, seen.half.days, seen.wrong.of) == (0.0, math.inf, 0)
    assert words.when(seen.half, 2.0) == ">2"
    assert "in 0% [0%, 66%] of the rehearsals" in " ".join(words.verdict(made))


def test_the_intervals_of_shares_cover() -> None:
    """Wilson's interval at 95 % covers in some 95 of 100 samples; one of half its width does not."""
    rng = np.random.default_rng(1)
    counts = rng.binomial(60, 0.1, 3000)
    spans = [wilson(int(count), 60) for count in counts]
    covered = np.mean([each.low <= 0.1 <= each.high for each in spans])
    narrow = np.mean([abs(each.share - 0.1) <= (each.high - each.low) / 4 for each in spans])
    assert 0.92 < covered < 0.98
    assert narrow < 0.85


def test_the_report_is_whole_and_opens_offline(found: Rehearsal, tmp_path: Path) -> None:
    written = found.write(tmp_path)
    assert [path.name for path in written] == ["rehearsal.json", "report.html"]
    page = written[1].read_text()
    assert not re.search(r'(src|href)="(?!data:)|@import|url\(', page)
    assert page.count("<svg") == 5
    for text in ("Thompson, reading the silence", "Dress rehearsal: all 900 visitors", "read every hour", "no outage"):
        assert text in page
    read = json.loads(written[0].read_text())
    assert read["dress"]["agrees"] is True
    assert read["verdict"] == found.verdict()
    assert read["policies"]["split"]["lost"] == found.lost("split").difference
    for name in found.policies:
        assert f"{found.lost(name).difference:,.0f} ± " in page


def test_a_dress_rehearsal_that_disagrees_is_said_aloud(found: Rehearsal) -> None:
    assert found.dress is not None
    wrong = replace(found, dress=replace(found.dress, same_sums=False))
    assert "ITS SUMS DIFFER" in words.dress(wrong)


def test_every_policy_on_offer_can_be_rehearsed() -> None:
    """Interpreted: `tests/test_agreement.py` holds compiled policies to the same choices."""
    for window, names in (("2d", candidates.WINDOWED), (None, candidates.TOLD)):
        plan = rehearse.plan({**GIVEN, "window": window, "policies": list(names), "visitors": 20})
        for name in names:
            state = watched(plan.policy(name).start(3, plan.rounds + 1), 3, np.array([plan.rounds]))
            laws = PlainDelays(plan.heard(), np.zeros((3, 1)))
            means = rates(plan, 0)
            world = World(means, means.max(), True, laws, np.random.default_rng(1))
            marks = np.array([plan.rounds + 1])
            trace = Trace(marks, np.zeros(1), np.zeros(3, np.int64), np.zeros(3, np.int64))
            play(state, world, new_calendar(plan.rounds + 1), trace, STOP, np.random.default_rng(2))
            assert state.noted[-1].sum() > 6.0 + plan.rounds / 2, name  # it has learned


def test_marks_are_days_or_even() -> None:
    assert marks_of(rehearse.plan(GIVEN)).tolist() == list(range(100, 1000, 100))
    assert len(marks_of(rehearse.plan({**GIVEN, "days": 300, "horizon": "300d"}))) == 56
    assert len(marks_of(rehearse.plan({**GIVEN, "days": 1.5}))) == 4

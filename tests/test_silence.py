"""The study of silence: its experiments, what is asked of them, its words, and the whole of it on a small scale."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from belated import Conversions, Drifting, Geometric, InvalidInput, Mixture, Pareto, Result, report, silence
from belated.paper import run
from belated.silence import EXACT, EXPERIMENTS, FIVE_MEANS, GROUPS, KNOWN, LEARNED, STORY, experiments
from belated.targets import PAIRS, TARGETS, Target, fought, judged

BY_NAME = {each.name: each for each in EXPERIMENTS}


def test_the_grid_covers_what_was_asked() -> None:
    """Rates from .5 to .02, windows to ten means, three kinds of tails, drifts, delays to a quarter of the horizon."""
    assert [max(BY_NAME[f"rate/{rate}"].scenario.means) for rate in (0.5, 0.02)] == [0.5, 0.02]  # type: ignore[type-var]
    windows = {each.scenario.delay[0].window for each in EXPERIMENTS if each.name.startswith("window/")}  # type: ignore[index]
    assert (min(windows), max(windows)) == (100, 2000)
    kinds = {
        type(law.success)
        for each in EXPERIMENTS
        for law in each.scenario.delay  # type: ignore[union-attr]
        if isinstance(law, Conversions)
    }
    assert kinds == {Geometric, Pareto, Mixture, Drifting}
    latest = BY_NAME["late/5000"].scenario
    assert 4 * latest.delay[0].success.rounds == latest.rounds  # type: ignore[index]


def test_the_trap_is_the_one_that_was_found() -> None:
    trap = BY_NAME["speed/trap"].scenario
    slow, fast = Conversions(Geometric(0.001), 5000), Conversions(Geometric(0.01), 5000)
    assert (trap.means, trap.delay, trap.rounds) == ((0.10, 0.08), (slow, fast), 30_000)


def test_five_means_are_five_means() -> None:
    for name in FIVE_MEANS:
        for law in BY_NAME[name].scenario.delay:  # type: ignore[union-attr]
            assert law.window == pytest.approx(5 / law.success.p)


def test_every_target_and_figure_speaks_of_what_is_run() -> None:
    for target in TARGETS:
        for where in target.where:
            assert {target.policy, target.rival} <= set(BY_NAME[where].policies)
    assert set(STORY) <= set(BY_NAME)
    assert {name.partition("/")[0] for name in BY_NAME} == set(GROUPS)
    for group, (_, axis) in GROUPS.items():
        assert {each.at is not None for each in EXPERIMENTS if each.name.startswith(f"{group}/")} == {bool(axis)}


def made(**finals: list[float]) -> Result:
    regret = np.array([[[0.0, value] for value in values] for values in finals.values()])
    empty = np.zeros((len(finals), regret.shape[1], 3), int)
    names = tuple(name.replace("_", "-") for name in finals)
    return Result(names, np.array([1, 100]), regret, empty, empty, np.zeros(len(finals)), {})


NOISE = [0.0, 1.0, -1.0, 0.5, -0.5]


@pytest.mark.parametrize(
    ("level", "strictly", "verdict"),
    [(30.0, True, "holds"), (49.9, True, "cannot tell"), (60.0, True, "fails"), (49.9, False, "holds"),
     (50.1, False, "holds"), (60.0, False, "fails")],
)  # fmt: skip
def test_verdicts_follow_the_paired_margin(
    monkeypatch: pytest.MonkeyPatch, level: float, strictly: bool, verdict: str
) -> None:
    target = Target("X", "", ("here",), LEARNED, 0.5, "wait", strictly)
    monkeypatch.setattr("belated.targets.TARGETS", (target,))
    here = made(thompson_silence=[level + each for each in NOISE], wait=[100.0] * 5)
    (found,) = judged({"here": here})
    assert found.verdict == found.checks[0].verdict == verdict
    assert found.checks[0].share == pytest.approx(level / 100)
    one = made(thompson_silence=[level], wait=[100.0])
    assert judged({"here": one})[0].verdict == "cannot tell"
    assert judged({"there": here}) == []


def test_words_are_counted_from_the_numbers() -> None:
    results = {
        place: made(wait=[100.0] * 5, thompson_silence=[level + each for each in NOISE])
        for place, level in (("a", 50.0), ("b", 75.0), ("c", 100.1), ("d", 130.0))
    }
    (duel,) = fought(results)
    assert duel.words == (
        "thompson-silence beside wait: less in 2 of 4, at 0.50 to 0.75 of its regret; "
        "no difference that can be told in 1; more in 1: d (1.3 times)."
    )
    assert list(duel.to_dict()["less"]) == ["a", "b"]


@pytest.fixture(scope="module")
def small() -> dict[str, Result]:
    """At their full length, with a few replications."""
    counts = {"five/5-4-3": 24, "speed/trap": 30, "late/1000": 8, "rate/0.02": 20}
    chosen = [replace(BY_NAME[name], replications=count) for name, count in counts.items()]
    return run(chosen)[0]


def test_the_targets_that_hold_do_so_on_a_small_scale(small: dict[str, Result]) -> None:
    """By paired intervals of a few replications; where rates are low, that of waiting is not met, and it shows."""
    found = {each.target.id: {check.where: check for check in each.checks} for each in judged(small)}
    assert found["S1"]["five/5-4-3"].verdict == "holds"
    assert found["S1"]["rate/0.02"].verdict != "holds"
    assert {found["S2"][where].verdict for where in ("five/5-4-3", "rate/0.02")} == {"holds"}
    assert found["S3"]["speed/trap"].verdict == found["S4"]["late/1000"].verdict == "holds"
    assert found["S5"]["late/1000"].verdict == "holds"


def test_knowing_more_is_not_worse(small: dict[str, Result]) -> None:
    """Beside what is told, what must be learned costs; the control: the other way round it does not hold."""
    trap, late = small["speed/trap"], small["late/1000"]
    assert trap.compare(LEARNED, KNOWN).sign >= 0
    assert late.compare(LEARNED, EXACT).sign == 1
    assert late.compare(EXACT, LEARNED).sign == -1


def test_a_report_of_it_is_whole(small: dict[str, Result], tmp_path: Path) -> None:
    whole = report.of_silence(small, {"command": "belated silence", "seed": 1, "seconds": 1.0, "versions": {}})
    written = {path.name for path in whole.write(tmp_path)}
    assert {"report.html", "results.json", "silence.svg", "shares.svg", "five.png", "rate.svg", "late.svg"} <= written
    page = (tmp_path / "report.html").read_text()
    for words in ("What was asked, and what holds", "Who wins where", fought(small)[0].words):
        assert words in page
    read = json.loads((tmp_path / "results.json").read_text())
    assert set(read["experiments"]) == set(small)
    assert {claim["id"] for claim in read["claims"]} == {"S1", "S2", "S3", "S4", "S5"}
    assert len(read["duels"]) <= len(PAIRS)
    drawn = (tmp_path / "silence.svg").read_text()
    assert "The best arm is the slowest" in drawn
    assert "thompson-silence-known" not in drawn


def test_replications_scale_it_and_are_checked() -> None:
    assert {each.replications for each in experiments(7)} == {7}
    assert experiments() == list(silence.EXPERIMENTS)
    with pytest.raises(InvalidInput, match="replications: must be at least 1, got 0"):
        experiments(0)

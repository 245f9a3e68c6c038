"""Figures and reports: what is in them, that they open offline, and that they are whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from belated import InvalidInput, Result, Scenario, Split, Thompson, charts, paper, report, simulate
from belated.delays import Fixed


@pytest.fixture(scope="module")
def result() -> Result:
    world = Scenario(means=[0.6, 0.4], delay=Fixed(20), rounds=300)
    return simulate(world, [Thompson(), Split()], replications=10, seed=1)


@pytest.fixture(scope="module")
def paper_results() -> dict[str, Result]:
    wanted = ("fixed", "packet-loss", "geometric", "delay-sweep/0", "delay-sweep/50")
    chosen = [
        replace(each, scenario=replace(each.scenario, rounds=150), replications=3)
        for each in paper.EXPERIMENTS
        if each.name in wanted
    ]
    return paper.run(chosen)[0]


def test_a_policy_has_one_look_everywhere_and_no_two_built_in_ones_share_it() -> None:
    assert len({charts.look(policy) for policy in charts.LOOKS}) == len(charts.LOOKS)
    assert len({look.colour for look in charts.LOOKS.values()}) == len(charts.LOOKS)
    assert charts.look("my own") == charts.look("my own")


@pytest.mark.parametrize(("log_x", "log_y"), [(False, False), (True, True), (False, True)])
def test_a_chart_shows_every_policy_with_its_colour(result: Result, log_x: bool, log_y: bool) -> None:
    spec = result.chart(log_x=log_x, log_y=log_y).to_dict()
    scale = spec["layer"][1]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
        policy: charts.look(policy).colour for policy in result.policies
    }
    values = json.loads(spec["datasets"][spec["data"]["name"]])
    assert all(row["low"] <= row["regret"] <= row["high"] for row in values)
    if log_y:
        assert all(row["low"] > 0 for row in values)


def test_charts_are_saved_as_svg_png_and_html(result: Result, tmp_path: Path) -> None:
    for suffix, start in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".html", b"<!DOCTYPE html>")):
        charts.save(result.chart(title="A title"), tmp_path / f"chart{suffix}")
        assert (tmp_path / f"chart{suffix}").read_bytes().lstrip().startswith(start)
    assert "A title" in (tmp_path / "chart.svg").read_text()
    assert not re.search(r"<script[^>]+src=", (tmp_path / "chart.html").read_text())


def test_an_unknown_suffix_is_named(result: Result, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"chart: must end in \.svg, \.png, \.html, got '\.gif'"):
        charts.save(result.chart(), tmp_path / "chart.gif")
    assert not list(tmp_path.iterdir())


def test_a_chart_of_one_replication_has_no_band(tmp_path: Path) -> None:
    world = Scenario(means=[0.6, 0.4], delay=Fixed(2), rounds=30)
    single = simulate(world, [Thompson()], replications=1)
    charts.save(single.chart(), tmp_path / "chart.svg")


def test_the_report_of_the_paper_is_whole_and_opens_offline(paper_results: dict[str, Result], tmp_path: Path) -> None:
    provenance = {"command": "belated paper & co", "seed": 1, "seconds": 2.0, "versions": {"python": "3"}}
    written = report.of_paper(paper_results, provenance).write(tmp_path)
    names = {path.name for path in written}
    assert names == {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "results.json", "figures.svg", "figures.png", "fixed.svg", "delay-sweep.png"} <= names
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r'(src|href)="(?!data:)', page)
    for text in ("No single reading", "E1.1", "thompson", "belated paper &amp; co", "PatientBandits"):
        assert text in page
    origin = "belated paper & co; seed 1; 2.0 s; python 3"
    assert f"<desc>{origin.replace('&', '&amp;')}</desc>" in (tmp_path / "fixed.svg").read_text()
    assert origin.encode() in (tmp_path / "fixed.png").read_bytes()
    assert page.count("data:image/svg+xml;base64,") == sum(name.endswith(".svg") for name in names)


def test_results_json_has_the_promised_form(paper_results: dict[str, Result], tmp_path: Path) -> None:
    whole = report.of_paper(paper_results, {"command": "x", "seed": 1, "seconds": 2.0, "versions": {}})
    whole.write(tmp_path)
    read = json.loads((tmp_path / "results.json").read_text())
    assert set(read) == {"provenance", "experiments", "claims", "questions", "bounds"}
    assert set(read["experiments"]) == set(paper_results)
    for name, experiment in read["experiments"].items():
        assert set(experiment) == {"rounds", "replications", "policies"}
        for policy, curve in experiment["policies"].items():
            assert set(curve) == {"round", "mean", "se"}
            assert curve["round"][-1] == experiment["rounds"] == 150
            assert curve["mean"] == paper_results[name].mean(policy).tolist()
            assert len(curve["mean"]) == len(curve["se"]) == len(curve["round"])
    for claim in read["claims"]:
        assert set(claim) == {"id", "text", "reading", "verdict", "evidence"}
        assert claim["verdict"] in ("holds", "fails", "cannot tell")


def test_the_bounds_and_the_open_questions_are_in_the_report(tmp_path: Path) -> None:
    """The sweep of two arms, and one of the paper's experiments for which there are bounds that fit."""
    wanted = [each for each in paper.experiments(replications=8) if each.sweep == "two-arm-sweep"]
    wanted += [each for each in paper.experiments(replications=2) if each.name == "geometric"]
    whole = report.of_paper(paper.run(wanted)[0], {"command": "x", "seed": 1, "seconds": 2.0, "versions": {}})
    names = {path.name for path in whole.write(tmp_path)}
    assert {"question-R2.svg", "question-R2.png", "geometric.svg"} <= names
    page, read = (tmp_path / "report.html").read_text(), json.loads((tmp_path / "results.json").read_text())
    for text in ("What the paper leaves open", "linear fits better than logarithmic", "What the theorems promise"):
        assert text in page
    (question,) = read["questions"]
    assert question["x"] == [50, 100, 250, 500, 1000]
    assert {fit["model"] for fit in question["fits"]} == {"linear", "logarithmic"}
    assert [each["bound"] for each in read["bounds"]["geometric"]][:2] == ["thompson-certified", "thompson"]
    svg = (tmp_path / "geometric.svg").read_text()
    assert "bound of thompson: 635" in svg
    assert "bound of elimination-log" not in svg  # 11,314, far above the figure


def test_rules_leave_the_curves_where_they_were(result: Result) -> None:
    plain, ruled = charts.regret(result), charts.ruled(charts.regret(result), {"bound": (99.0, "thompson")})
    for suffix in (".svg",):
        (before,), (after,) = charts.rendered(plain, suffix), charts.rendered(ruled, suffix)
        assert after.count(b"mark-line") == before.count(b"mark-line") > 0
        assert after.count(b"<path") > before.count(b"<path") - 1
    datasets = charts.finished(ruled).to_dict()["datasets"].values()
    assert any(len(json.loads(rows)) > 100 for rows in datasets)


def test_what_cannot_be_drawn_leaves_no_part_of_a_report(result: Result, tmp_path: Path) -> None:
    whole = report.of_study(result)
    broken = replace(whole, figures=[*whole.figures, report.Figure("broken", None)])
    with pytest.raises(AttributeError):
        broken.write(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_the_report_of_a_study(result: Result, tmp_path: Path) -> None:
    written = report.of_study(result, title="Mine & yours").write(tmp_path)
    page = written[-1].read_text()
    assert "Mine &amp; yours" in page
    assert "No single reading" not in page

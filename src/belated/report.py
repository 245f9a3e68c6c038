"""What a study leaves on disk: results.json, figures, and one HTML page that opens offline."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from belated import beside, claims, paper, questions, silence
from belated.result import Result, finite, written_whole
from belated.targets import Duel, Judged, fought, judged


@dataclass(frozen=True)
class Figure:
    """A chart, its file name without the suffix, what to say of it, and whether it needs all the width of the page."""

    name: str
    chart: Any
    caption: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Report:
    """All that is known about a study, to be written to a folder."""

    title: str
    results: Mapping[str, Result]
    provenance: dict[str, Any]
    figures: Sequence[Figure]
    titles: Mapping[str, str] = field(default_factory=dict)
    findings: Sequence[claims.Finding] = ()
    questions: Sequence[questions.Question] = ()
    bounds: Mapping[str, Sequence[beside.Line]] = field(default_factory=dict)
    targets: Sequence[Judged] = ()
    duels: Sequence[Duel] = ()

    @property
    def origin(self) -> str:
        """Where it comes from, in a line."""
        made = self.provenance
        versions = ", ".join(f"{package} {version}" for package, version in made["versions"].items())
        resumed = f", after {made['resumed']} batches of an interrupted run" if "resumed" in made else ""
        return f"{made['command']}; seed {made['seed']}; {made['seconds']:.1f} s{resumed}; {versions}"

    def to_dict(self) -> dict[str, Any]:
        """The form of results.json."""
        known = {
            "provenance": self.provenance,
            "experiments": {name: result.to_dict() for name, result in self.results.items()},
            "claims": [each.to_dict() for each in self.findings] + [each.to_dict() for each in self.targets],
            "questions": [question.to_dict() for question in self.questions],
            "bounds": {name: [line.to_dict() for line in lines] for name, lines in self.bounds.items()},
        }
        return known | ({"duels": [each.to_dict() for each in self.duels]} if self.duels else {})

    def write(self, folder: Path) -> list[Path]:
        """Write every file whole or not at all, the page last; their paths."""
        from belated import charts

        made: dict[str, bytes] = {}
        pictures = {}
        for figure in self.figures:
            svg, png = charts.rendered(figure.chart, ".svg", ".png", description=self.origin)
            made |= {f"{figure.name}.svg": svg, f"{figure.name}.png": png}
            pictures[figure.name] = base64.b64encode(svg).decode()
        made["results.json"] = json.dumps(finite(self.to_dict()), allow_nan=False).encode()
        made["report.html"] = self._page(pictures).encode()
        # Drawing takes seconds: only when all is made is the folder touched, so that Ctrl-C leaves no part of a report.
        return [_write(folder / name, data) for name, data in made.items()]

    def _page(self, pictures: Mapping[str, str]) -> str:
        from jinja2 import Environment

        template = files("belated").joinpath("templates/report.html").read_text()
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        environment.filters["round"] = lambda number: f"{number:,.1f}"
        environment.filters["short"] = beside.short
        return environment.from_string(template).render(
            report=self,
            pictures=pictures,
            claims=claims.by_claim(self.findings),
            wholes=claims.whole_readings(list(self.findings)) if self.findings else [],
            all_claims=len(claims.CLAIMS),
            readings=claims.READINGS,
            readings_with=claims.readings_with,
            span=beside.span(self.bounds),
            fits=FITS,
        )


def _write(path: Path, data: bytes) -> Path:
    with written_whole(path) as file:
        file.write(data)
    return path


def of_study(result: Result, *, title: str = "A study") -> Report:
    """The report of a study of one's own."""
    figures = [
        Figure("regret", result.chart(), "Mean cumulative pseudo-regret with 95 % intervals of the mean."),
        Figure("regret-log", result.chart(log_x=True, log_y=True), "The same on logarithmic axes."),
    ]
    return Report(title, {"study": result}, result.provenance, figures)


def of_paper(results: Mapping[str, Result], provenance: dict[str, Any]) -> Report:
    """The report of the paper's experiments, or of some of them."""
    from belated import charts

    known = {each.name: each for each in paper.EXPERIMENTS}
    titles = {name: known[name].title for name in results}
    bounds = beside.of_paper(results)
    asked = questions.questions(results)
    beside_one_another = {name: results[name] for name in paper.FIGURES if name in results}
    figures = []
    if beside_one_another:
        chart = charts.side_by_side(beside_one_another, titles)
        figures.append(Figure("figures", chart, "The paper's figures, in its order."))
    for name in results:
        if known[name].at is None:
            figures.append(_single(name, titles[name], results[name], bounds.get(name, ())))
    for sweep, (title, axis) in paper.SWEEPS.items():
        members = {known[name].at: results[name] for name in results if known[name].sweep == sweep}
        if members:
            chart = charts.sweep(members, title=title, axis=axis)  # type: ignore[arg-type]
            figures.append(Figure(sweep, chart, title))
    figures += [_asked(question) for question in asked]
    return Report(
        "Thompson Sampling with Unrestricted Delays, reproduced",
        results,
        provenance,
        figures,
        titles,
        claims.findings(results),
        asked,
        bounds,
    )


def of_silence(results: Mapping[str, Result], provenance: dict[str, Any]) -> Report:
    """The report of the experiments of `silence`, or of some of them."""
    from belated import charts

    known = {each.name: each for each in silence.EXPERIMENTS}
    titles = {name: known[name].title for name in results}
    unread = ("split",)  # off every scale; it is in the tables, and in what all are compared with
    figures = []
    told = {name: results[name] for name in silence.STORY if name in results}
    if told:
        plain = charts.side_by_side(
            told, silence.STORY, columns=3, without=(*unread, *silence.TOLD, silence.OPTIMISTIC)
        )
        figures.append(
            Figure("silence", plain, "What reading the silence is worth to those who are not told the delays.")
        )
    chart = charts.shares(results, "split", title="Final regret beside equal shares for ever")
    figures.append(Figure("shares", charts.finished(chart), "Left is better; the bars are 95 % intervals."))
    for group, (title, axis) in silence.GROUPS.items():
        members = {name: result for name, result in results.items() if name.startswith(f"{group}/")}
        if not members:
            continue
        if axis:
            along = {known[name].at: result for name, result in members.items()}
            drawn = charts.sweep(along, title=title, axis=axis, without=unread)  # type: ignore[arg-type]
        else:
            drawn = charts.side_by_side(members, titles, columns=3, without=unread)
        figures.append(Figure(group, drawn, title, wide=not axis))
    found, words = judged(results), fought(results)
    return Report("Reading the silence", results, provenance, figures, titles, targets=found, duels=words)


FITS = 2.0
"""A bound is drawn on a figure if it is at most so many times the largest regret there."""


def _single(name: str, title: str, result: Result, bounds: Sequence[beside.Line]) -> Figure:
    """An experiment's regret, with the bounds that fit on the figure and say more than the trivial one."""
    from belated import charts

    chart = charts.regret(result, title=title)
    top = max(float(result.mean(policy).max()) for policy in result.policies)
    drawn = {}
    for row in (line.row for line in bounds):
        if row.bound and row.policy in result.policies and row.bound.value < min(FITS * top, 0.999 * row.bound.trivial):
            drawn[f"bound of {row.policy}: {row.bound.value:,.0f}"] = (row.bound.value, row.policy)
    return Figure(name, charts.finished(charts.ruled(chart, drawn) if drawn else chart), title)


def _asked(question: questions.Question) -> Figure:
    """An open question: what was measured, the fits, and what the first rounds cost."""
    from belated import charts

    low, high = question.x[0], question.x[-1]
    logarithmic = question.id == "R1"
    along = np.geomspace(low, high, 60) if logarithmic else np.linspace(low, high, 60)
    curves = {fit.model: {at: fit.at(at) for at in along.tolist()} for fit in question.fits}
    curves["blind rounds alone"] = dict(zip(question.x, question.blind, strict=True))
    points = dict(zip(question.x, question.costs, strict=True))
    chart = charts.fits(points, curves, title=question.title, axis=question.axis, log_x=logarithmic)
    return Figure(f"question-{question.id}", chart, question.text)

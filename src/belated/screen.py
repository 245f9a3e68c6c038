"""What the commands of a study show: tables, and where the files are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table

from belated import claims
from belated.beside import Line, short, span
from belated.console import output
from belated.console import table as _table
from belated.questions import Question
from belated.report import Report
from belated.result import Result

_COLOURS: dict[claims.Verdict, str] = {"holds": "green", "fails": "red", "cannot tell": "yellow"}


def finals(report: Report) -> None:
    """Final regrets: one table for a study, one line a policy; for several experiments, one line an experiment."""
    if len(report.results) == 1:
        (result,) = report.results.values()
        table = _table("policy", "regret", "s.e.", "median", "5 %", "95 %", "revealed", "pending", "never", "cpu s")
        keys = ("regret", "se", "median", "q05", "q95", "revealed", "pending", "never", "seconds")
        for row in result.summary():
            table.add_row(escape(row["policy"]), *(f"{row[key]:,.1f}" for key in keys))
        output.print(table)
        return
    policies = list(dict.fromkeys(policy for result in report.results.values() for policy in result.policies))
    table = _table("final regret, ± s.e.", *policies)
    for name, result in report.results.items():
        cells = {row["policy"]: f"{row['regret']:,.0f} ± {row['se']:,.0f}" for row in result.summary()}
        table.add_row(name, *(cells.get(policy, "") for policy in policies))
    output.print(table)


def verdicts(findings: Sequence[claims.Finding]) -> None:
    """A line a claim and verdict, with the readings under which it is so."""
    if not findings:
        return
    table = Table(title="The paper's claims", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("#", no_wrap=True)
    table.add_column("claim", ratio=5)
    table.add_column("verdict", no_wrap=True)
    table.add_column("read as", ratio=4)
    for claim, found in claims.by_claim(findings):
        name, text = claim.id, claim.text
        for verdict, colour in _COLOURS.items():
            if any(finding.verdict == verdict for finding in found):
                shown = "; ".join(claims.readings_with(found, verdict))
                table.add_row(name, text, f"[{colour}]{verdict}[/]", escape(shown))
                name = text = ""
    output.print(table)
    wholes = claims.whole_readings(list(findings))
    total, best = len(claims.by_claim(findings)), wholes[0]
    words = ", ".join(claims.READINGS[word][meaning] for word, meaning in best.reading.items())
    if best.holds == total:
        output.print(f"Read as {escape(words)}, all {total} claims hold.")
    else:
        output.print(
            f"No single reading makes all {total} claims hold. The best makes {best.holds} hold, {best.fails} fail and "
            f"leaves {best.cannot_tell} open: {escape(words)}."
        )
    if total < len(claims.CLAIMS):
        output.print(f"The other {len(claims.CLAIMS) - total} claims speak of experiments that were not run.")


def asked_of_silence(report: Report) -> None:
    """What was asked of policies that read the silence and what holds, a line a comparison; and who wins where."""
    if report.targets:
        table = Table(title="What was asked", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for column in ("#", "target, and where", "share", "if told", "margin, 95 % interval", ""):
            table.add_column(column, justify="right" if column.startswith(("share", "if", "margin")) else "left")
        for each in report.targets:
            table.add_row(each.target.id, escape(each.target.text), "", "", "", _coloured(each.verdict))
            for check in each.checks:
                margin = f"{check.margin.difference:,.1f} [{check.margin.low:,.1f}, {check.margin.high:,.1f}]"
                floor = "" if check.floor != check.floor else f"{check.floor:.2f}"
                row = (f"  {check.where}", f"{check.share:.2f}", floor, escape(margin), _coloured(check.verdict))
                table.add_row("", *row)
        output.print(table)
        output.print(
            "The share is the regret as a part of the rival's. If told: that of the best policy that knows the delays; "
            "of one that must learn them, no less can be asked.\n"
        )
    for duel in report.duels:
        output.print(escape(duel.words))


def _coloured(verdict: claims.Verdict) -> str:
    return f"[{_COLOURS[verdict]}]{verdict}[/]"


def answers(asked: Sequence[Question]) -> None:
    """The open questions: each fit's slope with its interval, and how far it is from the points."""
    if not asked:
        return
    table = _table(
        "", "model of the cost", "slope, 95 % interval", "misfit F", "chance of it", title="What the paper leaves open"
    )
    for question in asked:
        name = question.id
        for fit in question.fits:
            slope = f"{short(fit.slope.difference)} [{short(fit.slope.low)}, {short(fit.slope.high)}]"
            table.add_row(name, fit.model, escape(slope), f"{fit.misfit:,.1f}", f"{fit.chance:.1g}")
            name = ""
    output.print(table)
    for question in asked:
        output.print(escape(f"{question.id}: {question.text} {question.verdict[:1].upper()}{question.verdict[1:]}."))
    output.print()


def _by_arm(values: Sequence[float]) -> str:
    """A number an arm; of many arms, the range. Arms that a bound has none for are left out."""
    known = [value for value in values if value == value]
    if not known:
        return ""
    if len(values) > 4:
        low, high = min(known), max(known)
        return f"{low:,.4g}" if low == high else f"{low:,.4g} … {high:,.4g}"
    return ", ".join("-" if value != value else f"{value:,.4g}" for value in values)


def bounds(lines: Sequence[Line], title: str) -> None:
    """Every bound and what minimises it; below, if it was measured, the regret of what it is about."""
    table = _table("bound", "regret at most", "× worst arm", "q", "d(q)", title=title)
    beside = _table("bound", "of", "measured, ± s.e.", "bound / measured")
    for line in lines:
        bound = line.row.bound
        if bound is None:
            continue
        found = (_by_arm(bound.quantiles), _by_arm(bound.delays))
        table.add_row(_starred(line), short(bound.value), short(line.times_trivial), *found)
        if line.regret == line.regret:
            beside.add_row(_starred(line), line.row.policy, *_measured(line))
    output.print(table)
    if beside.row_count:
        output.print(beside)


def promises(bounds: Mapping[str, Sequence[Line]]) -> None:
    """The bounds of several experiments, and how far they are from what is measured."""
    if not bounds:
        return
    heads = ("at most", "× worst arm", "measured", "× measured")
    table = _table("experiment", "bound", *heads, title="What the theorems promise")
    for experiment, lines in bounds.items():
        name = experiment
        for line in lines:
            if line.row.bound:
                shown = (short(line.row.bound.value), short(line.times_trivial), *_measured(line))
                table.add_row(name, _starred(line), *shown)
                name = ""
    output.print(table)
    output.print(
        f"The bounds of the theorems tell how regret scales, not how large it is: {span(bounds)}. × worst arm is the "
        "bound by the regret of always pulling it: above 1 it says nothing. The bound of elimination is that of "
        "elimination-log. * explicit part only; lai-robbins is a floor, reached as the rounds grow for ever.\n"
    )


def _starred(line: Line) -> str:
    return line.row.name + ("*" if line.row.bound and line.row.bound.explicit_only else "")


def _measured(line: Line) -> tuple[str, str]:
    if line.regret != line.regret:
        return "", ""
    error = f" ± {line.se:,.1f}" if line.se == line.se else ""  # one replication has none
    return f"{line.regret:,.1f}{error}", short(line.times_measured)


def notes(lines: Sequence[Line]) -> None:
    """What must be known to read the bounds."""
    made = [line.row.bound for line in lines if line.row.bound]
    if made:
        output.print(f"Always pulling the worst arm costs {made[0].trivial:,.1f}: a bound above that says nothing.")
    for bound in made:
        if bound.explicit_only:
            rest = short(bound.order)
            output.print(f"* explicit part of the theorem; it adds O({rest}) with a constant that is not known.")
        if "the worst arm all the time" in bound.terms:
            output.print(f"{bound.name}: no better than that; the horizon is too short to learn by.")
        if bound.name == "lai-robbins":
            output.print("lai-robbins is a floor, not a bound: without delay, and only as the rounds grow for ever.")
    for line in lines:
        if line.row.bound is None:
            output.print(escape(f"{line.row.name}: none ({line.row.refused})"))


def comparison(result: Result) -> None:
    """The other policies against the best, paired."""
    best, *others = [row["policy"] for row in result.summary()]
    if not others or result.replications < 2:
        return
    table = _table(f"regret above {best}", "difference", "95 % interval")
    for policy in others:
        found = result.compare(policy, best)
        table.add_row(escape(policy), f"{found.difference:,.1f}", escape(f"[{found.low:,.1f}, {found.high:,.1f}]"))
    output.print(table)


def origin(report: Report) -> None:
    """Where the numbers come from."""
    output.print(escape(report.origin), style="dim")


def files(written: Sequence[Path]) -> None:
    """Where to look."""
    page = next((path for path in written if path.name == "report.html"), written[-1])
    output.print(f"{len(written)} files in {page.parent}; open {page}")

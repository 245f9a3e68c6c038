"""What the command line shows: progress, tables, and where the files are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from belated import claims
from belated.report import Report
from belated.result import Result
from belated.simulate import Progress as Callback

errors = Console(stderr=True, highlight=False)
# Piped to a file, tables must not be cut at 80 columns.
output = Console(highlight=False, soft_wrap=False, width=None if os.isatty(1) else 160)

_COLOURS: dict[claims.Verdict, str] = {"holds": "green", "fails": "red", "cannot tell": "yellow"}


@contextmanager
def progress() -> Iterator[Callback]:
    """A bar on standard error that disappears when all is done."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(what: str, fraction: float) -> None:
            bar.update(task, description=escape(what), completed=fraction)

        yield show


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner with a word of what is going on."""
    with errors.status(what):
        yield


def _table(*columns: str, title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right", no_wrap=place == 0)
    return table


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


def listing(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table."""
    table = Table(box=box.SIMPLE_HEAD)
    for place, column in enumerate(head):
        table.add_column(column, no_wrap=place == 0)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    output.print(table)


def origin(report: Report) -> None:
    """Where the numbers come from."""
    output.print(escape(report.origin), style="dim")


def files(written: Sequence[Path]) -> None:
    """Where to look."""
    page = next((path for path in written if path.name == "report.html"), written[-1])
    output.print(f"{len(written)} files in {page.parent}; open {page}")

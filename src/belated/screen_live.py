"""What the commands of a live experiment show."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rich.markup import escape

from belated.console import errors, output, table
from belated.delays import Observed
from belated.live import Summary, Waits
from belated.live.bulk import HEARD, Report
from belated.live.fold import Difference
from belated.live.ledger import columns
from belated.live.store import ArmRow, ExperimentRow
from belated.live.summary import without_reading
from belated.live.values import BILLION, iso, spoken
from belated.live.words import span


def experiments(found: Sequence[tuple[ExperimentRow, Summary | Exception]]) -> None:
    """A line an experiment, and below them what is wrong with those that cannot be read."""
    if not found:
        output.print("There is no experiment yet; `belated live create` makes one.")
        return
    made = table("experiment", "status", "policy", "silence", "arms", "asked", "observed", "pending", "leader")
    for row, each in found:
        if isinstance(each, Exception):
            made.add_row(escape(row.name), row.status, "cannot be read", *[""] * 6)
            continue
        counts = (f"{len(each.arms):,}", f"{each.asked:,}", f"{each.observed:,}", f"{each.pending:,}")
        made.add_row(escape(each.name), each.status, each.policy, each.silence, *counts, escape(each.leader or ""))
    output.print(made)
    for _, each in found:
        if isinstance(each, Exception):
            errors.print(escape(f"error: {str(each) or type(each).__name__}"))
    for text in {each.notice: None for _, each in found if isinstance(each, Summary)}:
        notice(text)


def standing(summary: Summary) -> None:
    """An experiment: a line an arm, and the verdict."""
    silence = "silence is pending" if summary.silence == "pending" else f"silence for {summary.silence} is a failure"
    silence += ", and read until then" * (summary.reading == "silence")
    at = iso(round(summary.at.timestamp() * 1000))
    title = f"{summary.name}: {summary.status}, {summary.policy}, {silence}, as of {at}"
    heads = ("arm", "status", "asked", "observed", "pending", "successes", "trials", "mean", "95 % interval", "P(best)")
    made = table(*heads, "expected loss", "share", title=escape(title))
    for arm in summary.arms:
        counts = (
            f"{arm.asked:,}",
            f"{arm.observed:,}",
            f"{arm.pending:,}",
            f"{arm.successes:,.6g}",
            f"{arm.trials:,.0f}",
        )
        interval = escape(f"[{arm.low:.4f}, {arm.high:.4f}]")
        loss = "" if arm.loss is None else f"{arm.loss:.2g}"
        best = "" if arm.status == "retired" else f"{arm.best:.3f}"
        style = "bold" if arm.name == summary.leader else "dim" if arm.status != "active" else None
        cells = (*counts, f"{arm.mean:.4f}", interval, best, loss, f"{arm.share:.1%}")
        made.add_row(escape(arm.name), arm.status, *cells, style=style)
    output.print(made)
    output.print(escape(summary.verdict))
    if waited := without_reading(summary):
        output.print(escape(waited))
    notice(summary.notice)


def waits(found: Waits) -> None:
    """How much came at all, and how late: a line an arm, and one for all."""
    if found.pooled is None:
        output.print("Nothing has been heard yet.")
        return
    made = table(
        "arm", "came so far", "a tenth within", "half within", "nine tenths within", title="How late outcomes come"
    )
    for name, law in (*found.arms.items(), ("all", found.pooled)):
        made.add_row(escape(name), *_curve(law, found.unit), style="bold" if law is found.pooled else None)
    output.print(made)
    output.print(
        "Of all asked, and of those that come, by Kaplan and Meier: what is pending has waited at least its age."
    )
    notice(found.notice)


def notice(text: str | None) -> None:
    """What is wrong with the time, if anything is."""
    if text:
        errors.print(escape(f"{text[0].upper()}{text[1:]}."))


def _curve(law: Observed | None, unit: int) -> tuple[str, ...]:
    if law is None:
        return ("nothing", "", "", "")
    ever = law.levels[-1]
    return (f"{ever:.1%}", *(span(law.quantile(part * ever) * unit) for part in (0.1, 0.5, 0.9)))


def told(report: Report) -> None:
    """The lines of a file by what became of them; those that were refused, on standard error."""
    for line, reason in report.refused:
        print(f"line {line}: {reason}", file=sys.stderr)
    more = report.refusals - len(report.refused)
    if more:
        print(f"and {more:,} more", file=sys.stderr)
    for status in sorted(report.counts, key=lambda each: (each not in HEARD, each)):
        print(f"{report.counts[status]:>12,} {status}")
    print(f"{report.counts.total():>12,} lines")


def wrong(
    differences: Sequence[Difference],
    strays: Sequence[str],
    experiments: Sequence[ExperimentRow],
    arms: Mapping[int, Sequence[ArmRow]],
) -> None:
    """Every sum that is not what the rows give, by the names of its experiment and arm, and every stray."""
    by_id = {row.id: row for row in experiments}
    for each in differences:
        print(
            f"{_where(each, by_id, arms)}: stored {_sums(each.table, each.stored)}; "
            f"folded {_sums(each.table, each.folded)}"
        )
    for stray in strays:
        print(stray)
    count = len(differences) + len(strays)
    errors.print(f"{count:,} difference{'s' if count > 1 else ''}")


def _where(each: Difference, experiments: Mapping[int, ExperimentRow], arms: Mapping[int, Sequence[ArmRow]]) -> str:
    key = dict(zip(columns(each.table)[0], each.key, strict=True))
    number, arm = key["experiment"], key["arm"]
    experiment = experiments.get(number)
    names = {row.arm: row.name for row in arms.get(number, ())}
    place = f"{experiment.name if experiment else f'no. {number}'} / {names.get(arm, f'no. {arm}')}"
    if experiment is None or each.table == "totals":
        return place
    width = experiment.grain if each.table in ("buckets", "lags") else experiment.width
    said = {
        "bucket": "asked in the {width} from {moment}",
        "block": "asked in the {width} from {moment}",
        "lag": "heard {time} later",
        "edge": "counting from {moment}",
        "bin": "converted {time} later",
    }
    parts = [
        said[name].format(width=spoken(width), time=spoken(count * width), moment=iso(count * width))
        for name, count in key.items()
        if name in said
    ]
    return ", ".join([place, *parts])


def _sums(table: str, counts: Sequence[int]) -> str:
    said = dict(zip(columns(table)[1], counts, strict=True))
    rewards = said.pop("rewards", None)
    parts = [f"{count:,} {name}" for name, count in said.items()]
    return ", ".join(parts if rewards is None else [*parts, f"rewards {rewards / BILLION:,.9g}"])

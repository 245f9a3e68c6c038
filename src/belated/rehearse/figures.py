"""The charts of a rehearsal: by day, a line a policy. Their colours are names, given by the page for light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from belated.charts import SHORT, inline, look
from belated.live_charts import PAGE, svg
from belated.rehearse import candidates, words

if TYPE_CHECKING:
    from belated.rehearse.findings import Rehearsal

WIDTH, HEIGHT = 360, 210
_SHARE = "format(datum.value, '~%')"


def all_of(found: Rehearsal) -> dict[str, tuple[str, str]]:
    """Each chart as SVG, with what to say of it, by its name."""
    start = "now" if found.running is not None else "the start"
    end = words.day(found.plan.days(found.plan.horizon))
    made: dict[str, tuple[Any, str]] = {
        "lost": (_lost(found), f"Conversions lost to the best arm since {start}, on average."),
        "known": (_known(found), f"Rehearsals in which an arm has reached P(best) ≥ {found.plan.certainty:g}."),
        "stopping": (
            _stopping(found),
            f"Conversions lost within {end} from {start}, if one stops and uses the leader.",
        ),
        "risk": (_risk(found), "Conversions lost per 1,000 visitors from then on, if one stops and uses the leader."),
    }
    if found.changes:
        made["changes"] = (_changes(found), f"What a change of the plan costs {candidates.label(found.policies[0])}.")
    return {name: (svg(chart, PAGE, caption), caption) for name, (chart, caption) in made.items()}


def colours(policies: Sequence[str]) -> dict[str, str]:
    """The colour of each policy, the same as in every chart of belated."""
    return {name: look(name).colour for name in policies}


def _lost(found: Rehearsal) -> Any:
    curves = {}
    for name in found.policies:
        regret = found.track(name).regret
        curves[name] = (regret.mean(axis=0), 1.96 * regret.std(axis=0, ddof=1) / np.sqrt(len(regret)))
    return _banded(found, curves, "conversions lost", from_nought=True)


def _stopping(found: Rehearsal) -> Any:
    each = {name: found.stopping(name) for name in found.policies}
    curves = {name: (stopping.total, 1.96 * stopping.total_se) for name, stopping in each.items()}
    return _banded(found, curves, "conversions lost in all")


def _risk(found: Rehearsal) -> Any:
    each = {name: found.stopping(name) for name in found.policies}
    curves = {name: (1000 * stopping.loss, 1960 * stopping.loss_se) for name, stopping in each.items()}
    return _banded(found, curves, "lost per 1,000 visitors")


def _known(found: Rehearsal) -> Any:
    count = found.plan.replications
    curves = {}
    for name in found.policies:
        curve = found.known(name).curve
        curves[name] = (curve, 1.96 * np.sqrt(curve * (1.0 - curve) / count))
    return _banded(found, curves, "rehearsals", format=_SHARE, top=1.0, from_nought=True)


def _banded(
    found: Rehearsal,
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
    title: str,
    *,
    format: str = SHORT,
    top: float | None = None,
    from_nought: bool = False,
) -> Any:
    """A line a policy by day, within its 95 % interval."""
    days = found.days.round(4).tolist()
    rows = [
        {
            "policy": candidates.label(name),
            "day": day,
            "y": float(y),
            "low": max(0.0, float(y - e)),
            "high": float(y + e),
        }
        for name, (mean, error) in curves.items()
        for day, y, e in zip(days, mean, error, strict=True)
    ]
    if found.marks[0] > 0 and from_nought:
        nought = {"day": 0.0, "y": 0.0, "low": 0.0, "high": 0.0}
        rows = [{"policy": candidates.label(name), **nought} for name in curves] + rows
    domain = alt.Undefined if top is None else [0.0, top]
    scale = alt.Scale(zero=True, nice=5, domain=domain)
    axis = alt.Axis(labelExpr=format, tickCount=5)
    x = alt.X(
        "day:Q", title="day", scale=alt.Scale(domain=[0, days[-1]], nice=False), axis=alt.Axis(tickCount=6, grid=False)
    )
    colour, dash = _looks(list(curves))
    base = alt.Chart(inline(rows)).properties(width=WIDTH, height=HEIGHT)
    band = base.mark_area(opacity=0.18).encode(
        x=x, y=alt.Y("low:Q", title=title, scale=scale, axis=axis), y2="high:Q", color=colour
    )
    line = base.mark_line(strokeWidth=2).encode(
        x=x, y=alt.Y("y:Q", title=title, scale=scale, axis=axis), color=colour, strokeDash=dash
    )
    return alt.layer(band, line)


def _looks(policies: Sequence[str]) -> tuple[alt.Color, alt.StrokeDash]:
    names = [candidates.label(name) for name in policies]
    paint = [f"var(--{name})" for name in policies]
    return (
        alt.Color("policy:N", scale=alt.Scale(domain=names, range=paint), legend=None, sort=None),
        alt.StrokeDash(
            "policy:N", scale=alt.Scale(domain=names, range=[list(look(name).dash) for name in policies]), legend=None
        ),
    )


def _changes(found: Rehearsal) -> Any:
    rows = []
    for name in found.changes:
        cost = found.cost_of(name)
        rows.append({"change": words.change(name), "y": cost.difference, "low": cost.low, "high": cost.high})
    base = alt.Chart(inline(rows)).properties(width=WIDTH - 90, height=40 * len(rows) + 20)
    y = alt.Y("change:N", title=None, sort=None, axis=alt.Axis(minExtent=125, grid=False, ticks=False, domain=False))
    x = alt.X("low:Q", title="conversions, more or less", axis=alt.Axis(labelExpr=SHORT, tickCount=5))
    colour = f"var(--{found.policies[0]})"
    nought = alt.Chart(inline([{"at": 0}])).mark_rule(color=PAGE.soft, strokeDash=[2, 3]).encode(x="at:Q")
    return alt.layer(
        nought,
        base.mark_rule(strokeWidth=2, color=colour).encode(x=x, x2="high:Q", y=y),
        base.mark_point(filled=True, size=55, opacity=1, color=colour).encode(x="y:Q", y=y),
    )

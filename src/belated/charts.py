"""Charts, with Altair: the same ones in a notebook, the report and the dashboard."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import altair as alt
import numpy as np

from belated.inputs import InvalidInput
from belated.result import Comparison, Result, finite, paired, written_whole


class Look(NamedTuple):
    """A policy's colour and dash pattern."""

    colour: str
    dash: tuple[int, ...] = (1, 0)


# Okabe and Ito's colours and Tol's muted ones, safe for the colour-blind; a variant of a policy is also dashed.
LOOKS: dict[str, Look] = {
    "thompson": Look("#0072B2"),
    "ucb1": Look("#D55E00"),
    "ucb1-nolog": Look("#E69F00", (6, 3)),
    "elimination": Look("#009E73"),
    "elimination-log": Look("#56B4E9", (6, 3)),
    "phased": Look("#CC79A7"),
    "phased-theory": Look("#882255", (6, 3)),
    "patient": Look("#332288"),
    "ud-ucb": Look("#AA4499"),
    "qpm-d": Look("#999933"),
    "split": Look("#666666", (2, 2)),
    "wait": Look("#661100"),
    "silence-is-failure": Look("#CC6677"),
    "thompson-silence": Look("#117733"),
    "thompson-silence-known": Look("#000000", (6, 3)),
    "thompson-silence-exact": Look("#44AA99", (2, 2)),
    "elimination-optimistic": Look("#DDCC77", (6, 3)),
}
_SPARE = ("#6699CC", "#888888", "#994455", "#4477AA", "#AAAA00", "#004488", "#BB5566")

# Numbers as people write them: 0.1, 500, 20k.
SHORT = "abs(datum.value) >= 1000 ? format(datum.value, '~s') : format(datum.value, '~g')"

FORMATS = (".svg", ".png", ".html")


def look(policy: str) -> Look:
    """A policy's colour and dash, the same in every chart; one that is not built in gets them from its name."""
    if policy in LOOKS:
        return LOOKS[policy]
    digest = hashlib.sha256(policy.encode()).digest()
    return Look(_SPARE[digest[0] % len(_SPARE)], (4, 2, 1, 2) if digest[1] % 2 else (1, 0))


def _scales(policies: Sequence[str], columns: int = 0) -> tuple[alt.Color, alt.StrokeDash]:
    return _by_name("policy", {policy: look(policy) for policy in policies}, columns)


def _by_name(key: str, looks: Mapping[str, Look], columns: int = 0) -> tuple[alt.Color, alt.StrokeDash]:
    """Colour and dash by `key`, under one legend."""
    legend = alt.Legend(
        title=None,
        orient="bottom" if columns else "right",
        columns=columns or 1,
        symbolType="stroke",
        symbolSize=500,
        symbolOpacity=1,
        labelLimit=260,
    )
    colours = alt.Scale(domain=list(looks), range=[each.colour for each in looks.values()])
    dashes = alt.Scale(domain=list(looks), range=[list(each.dash) for each in looks.values()])
    return (
        alt.Color(f"{key}:N", scale=colours, legend=legend, sort=None),
        alt.StrokeDash(f"{key}:N", scale=dashes, legend=legend, sort=None),
    )


def _axis(log: bool) -> alt.Axis:
    """Ticks as people write numbers; on a logarithmic axis at powers of ten."""
    axis = {"labelExpr": SHORT, "tickCount": 5}
    return alt.Axis(**(axis | {"values": [10.0**power for power in range(-3, 10)]} if log else axis))  # type: ignore[arg-type]


def inline(rows: list[dict[str, Any]]) -> alt.InlineData:
    """Rows as the data of a chart."""
    # As text, for Altair checks a list of records against its schema row by row, which takes seconds.
    return alt.InlineData(values=json.dumps(finite(rows)), format=alt.JsonDataFormat(type="json"))


def _rows(result: Result, log: bool, policies: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for policy in (each for each in result.policies if each in policies):
        mean, error = result.mean(policy), np.nan_to_num(result.se(policy))
        for t, value, reach in zip(result.rounds.tolist(), mean.tolist(), (1.96 * error).tolist(), strict=True):
            if log and value <= 0:
                continue
            floor = value / 10 if log else 0.0
            rows.append(
                {"policy": policy, "round": t, "regret": value, "low": max(value - reach, floor), "high": value + reach}
            )
    return rows


def regret(
    result: Result,
    *,
    title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    width: int = 480,
    height: int = 300,
    legend_columns: int = 0,
    policies: Sequence[str] | None = None,
) -> alt.LayerChart:
    """Mean cumulative regret by round, shaded to 95 % intervals of the mean; legends list the worst policy first.

    `policies`, if given, are those that are drawn.
    """
    ordered = policies or [row["policy"] for row in reversed(result.summary())]
    colour, dash = _scales(ordered, legend_columns)
    x_scale = alt.Scale(
        type="log" if log_x else "linear", domain=[1 if log_x else 0, int(result.rounds[-1])], nice=False
    )
    x = alt.X("round:Q", title="round", scale=x_scale, axis=_axis(log_x))
    # With as many steps as ticks the top one is labelled, which sets titles side by side on one line.
    y_scale, y_axis = alt.Scale(type="log") if log_y else alt.Scale(type="linear", nice=5), _axis(log_y)
    base = alt.Chart(inline(_rows(result, log_y, ordered))).properties(width=width, height=height, title=title)
    band = base.mark_area(opacity=0.22).encode(
        x=x, y=alt.Y("low:Q", title="regret", scale=y_scale, axis=y_axis), y2="high:Q", color=colour
    )
    line = base.mark_line(strokeWidth=2).encode(
        x=x, y=alt.Y("regret:Q", title="regret", scale=y_scale, axis=y_axis), color=colour, strokeDash=dash
    )
    return alt.LayerChart(layer=[band, line])


def ruled(chart: alt.LayerChart, rules: Mapping[str, tuple[float, str]]) -> Any:
    """A regret chart with labelled level lines: by label, the level and the policy whose colour it has."""
    layers: list[alt.Chart] = []
    for text, (level, policy) in rules.items():
        base = alt.Chart(inline([{"regret": level, "text": text}])).encode(y=alt.Y("regret:Q", title="regret"))
        colour = look(policy).colour
        layers += [
            base.mark_rule(color=colour, strokeDash=[2, 4], strokeWidth=1.5),
            base.mark_text(align="left", baseline="bottom", dx=4, dy=-2, color=colour, fontSize=12).encode(
                x=alt.value(0), text="text:N"
            ),
        ]
    return alt.layer(chart, *layers)


def side_by_side(
    results: Mapping[str, Result], titles: Mapping[str, str], *, columns: int = 4, without: Sequence[str] = ()
) -> Any:
    """The regret charts of several experiments in a grid under one legend."""
    ran = {policy for result in results.values() for policy in result.policies}.difference(without)
    shown = [policy for policy in LOOKS if policy in ran]
    panels = [
        regret(result, title=titles[name], width=250, height=190, legend_columns=len(shown), policies=shown)
        for name, result in results.items()
    ]
    return finished(
        alt.concat(*panels, columns=columns, spacing={"row": 84, "column": 64}, align="all", bounds="flush")
    )


def sweep(results: Mapping[float, Result], *, title: str, axis: str, without: Sequence[str] = ()) -> alt.LayerChart:
    """Final regret along a sweep, with 95 % intervals."""
    rows = []
    for at, result in sorted(results.items()):
        for policy in (each for each in result.policies if each not in without):
            final = paired(result.finals(policy))
            rows.append({"policy": policy, "at": at, "regret": final.difference, "low": final.low, "high": final.high})
    last = results[max(results)]
    colour, dash = _scales([row["policy"] for row in reversed(last.summary()) if row["policy"] not in without])
    base = alt.Chart(inline(rows)).properties(width=480, height=300, title=title)
    x = alt.X("at:Q", title=axis, axis=alt.Axis(labelExpr=SHORT))
    line = base.mark_line(strokeWidth=2).encode(
        x=x, y=alt.Y("regret:Q", title="final regret", axis=alt.Axis(labelExpr=SHORT)), color=colour, strokeDash=dash
    )
    bars = base.mark_rule(strokeWidth=2).encode(x=x, y=alt.Y("low:Q", title="final regret"), y2="high:Q", color=colour)
    points = base.mark_point(filled=True, size=40, opacity=1).encode(x=x, y="regret:Q", color=colour)
    return alt.LayerChart(layer=[line, bars, points])


def shares(results: Mapping[str, Result], rival: str, *, title: str) -> alt.LayerChart:
    """Final regret as a share of that of `rival`: a line an experiment, a dot a policy."""
    rows = []
    for name, result in results.items():
        whole = result.finals(rival).mean()
        for policy in (each for each in result.policies if each != rival):
            final = paired(result.finals(policy) / whole)
            row = {"policy": policy, "experiment": name, "share": final.difference}
            rows.append(row | {"low": max(final.low, final.difference / 10), "high": final.high})
    colour, _ = _scales([policy for policy in LOOKS if any(row["policy"] == policy for row in rows)])
    base = alt.Chart(inline(rows)).properties(width=560, height=alt.Step(17), title=title)
    y = alt.Y("experiment:N", title=None, sort=None, axis=alt.Axis(grid=True))
    scale = alt.Scale(type="log")
    axis = alt.Axis(labelExpr=SHORT, values=[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5])
    x = alt.X("share:Q", title=f"final regret as a share of that of {rival}", scale=scale, axis=axis)
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=colour)
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, color=colour)
    return alt.LayerChart(layer=[bars, dots])


MODELS = {
    "logarithmic": Look("#009E73"),
    "linear": Look("#D55E00", (6, 3)),
    "blind rounds alone": Look("#666666", (2, 3)),
}


def fits(
    points: Mapping[float, Comparison],
    curves: Mapping[str, Mapping[float, float]],
    *,
    title: str,
    axis: str,
    log_x: bool = False,
) -> alt.LayerChart:
    """Measured costs with their 95 % intervals, and curves through them by the name of the model."""
    ticks = {"values": list(points)} if log_x else {"tickCount": 6}  # on a logarithmic axis, at the points themselves
    scale = alt.Scale(type="log" if log_x else "linear", nice=not log_x)
    x = alt.X("at:Q", title=axis, scale=scale, axis=alt.Axis(labelExpr=SHORT, **ticks))

    def y(name: str) -> alt.Y:
        return alt.Y(f"{name}:Q", title="cost of the delay, in regret", axis=alt.Axis(labelExpr=SHORT))

    colour, dash = _by_name("model", {name: MODELS[name] for name in curves})
    rows = [{"model": name, "at": at, "cost": cost} for name, curve in curves.items() for at, cost in curve.items()]
    lines = alt.Chart(inline(rows)).mark_line(strokeWidth=2, interpolate="monotone")
    data = [{"at": at, "cost": each.difference, "low": each.low, "high": each.high} for at, each in points.items()]
    bars = alt.Chart(inline(data)).mark_rule(strokeWidth=2, color=look("thompson").colour)
    dots = alt.Chart(inline(data)).mark_point(filled=True, size=45, opacity=1, color=look("thompson").colour)
    layers = [
        lines.encode(x=x, y=y("cost"), color=colour, strokeDash=dash),
        bars.encode(x=x, y=y("low"), y2="high:Q"),
        dots.encode(x=x, y=y("cost")),
    ]
    return alt.LayerChart(layer=layers, width=480, height=300, title=title)


def finished(chart: Any) -> Any:
    """The chart with the house's fonts and lines. A finished chart can be saved, not put into another one."""
    # A browser's own sans-serif may be wider than the one that the picture was laid out with.
    return (
        chart.configure(padding={"left": 16, "top": 5, "right": 40, "bottom": 5})
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", gridColor="#e6e6e6", grid=True)
        .configure_title(
            fontSize=14, fontWeight="bold", anchor="start", frame="group", font="Liberation Sans, Arial, sans-serif"
        )
        .configure_legend(labelFontSize=13, symbolStrokeWidth=3)
        .configure_view(stroke=None)
    )


def rendered(chart: Any, *suffixes: str, description: str = "") -> list[bytes]:
    """The chart as the bytes of .svg, .png or .html files, in the order asked; the HTML opens offline.

    `description` is written into an SVG and a PNG, where viewers show it: where the picture comes from.
    """
    import vl_convert

    for suffix in suffixes:
        if suffix not in FORMATS:
            raise InvalidInput("chart", f"must end in {', '.join(FORMATS)}, got {suffix!r}")
    spec = (chart if chart.config is not alt.Undefined else finished(chart)).to_dict()
    svg = vl_convert.vegalite_to_svg(spec) if {".svg", ".png"} & set(suffixes) else ""
    makers = {
        ".svg": lambda: _described_svg(svg, description).encode(),
        ".png": lambda: _described_png(vl_convert.svg_to_png(svg, scale=2), description),
        ".html": lambda: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
    }
    return [makers[suffix]() for suffix in suffixes]


def _described_svg(svg: str, description: str) -> str:
    start = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:start]}<desc>{escape(description)}</desc>{svg[start:]}" if description else svg


def _described_png(png: bytes, description: str) -> bytes:
    """A PNG with an iTXt chunk before its last one, which is IEND and takes 12 bytes."""
    if not description:
        return png
    body = b"iTXtDescription\0\0\0\0\0" + description.encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return png[:-12] + chunk + png[-12:]


def save(chart: Any, path: str | Path) -> None:
    """Write the chart as its suffix says, whole or not at all."""
    (data,) = rendered(chart, Path(path).suffix.lower())
    with written_whole(Path(path)) as file:
        file.write(data)

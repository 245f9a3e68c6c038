"""Charts of a live experiment: the same ones in a notebook and on its page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import altair as alt
import numpy as np

from belated.charts import SHORT, inline
from belated.live_shown import MOST, POOLED, UNITS, Belief, History, Steps, nice


class Theme(NamedTuple):
    """The colours of a chart."""

    ink: str
    soft: str
    grid: str
    others: str
    arms: tuple[str, ...]


# Any two of these, grey and black are far apart, to the colour-blind too (24 in CIELAB), and 3:1 or more against white.
LIGHT = Theme(
    ink="#1a1a1a",
    soft="#595959",
    grid="#e4e4e4",
    others="#8a8a8a",
    arms=("#0072b2", "#d67b04", "#00a95c", "#710066", "#734ced", "#6d4e0f", "#390093", "#46563c"),
)
# Names that a style sheet gives colours to, so that one picture serves light and dark.
PAGE = Theme(
    "var(--ink)", "var(--soft)", "var(--grid)", "var(--others)", tuple(f"var(--arm-{number})" for number in range(MOST))
)
DASHES = ((1, 0), (7, 2), (3, 2), (9, 2, 2, 2), (1, 0), (5, 3), (2, 2), (6, 2, 1, 2))

WIDTH, HEIGHT = 330, 200
_SHARE = "format(datum.value, '~%')"


# --- What is believed ---


def posteriors(arms: Sequence[Belief], *, theme: Theme = LIGHT, legend: bool = True) -> Any:
    """The density of each arm's success rate, and beneath it the mean and the 95 % interval."""
    low, high = _domain(arms)
    rows = [
        {"arm": arm.name, "x": round(x, 6), "y": round(y, 4), "place": place}
        for arm in arms
        for place, (x, y) in enumerate(_outline(arm, low, high))
    ]
    looks = _looks({arm.name: arm.colour for arm in arms}, theme, legend)
    scale = alt.Scale(domain=[low, high], nice=False)
    axis = alt.Axis(labels=False, ticks=False, tickCount=5)
    base = alt.Chart(inline(rows)).properties(width=WIDTH + 40, height=HEIGHT - 14 * len(arms) + 40)
    outlines = base.mark_line(strokeWidth=2, fillOpacity=0.12).encode(
        x=alt.X("x:Q", title=None, scale=scale, axis=axis),
        y=alt.Y("y:Q", title=None, axis=None),
        order=alt.Order("place:Q"),
        color=looks.colour,
        fill=looks.fill,
        strokeDash=looks.dash,
    )
    return alt.vconcat(outlines, _intervals(arms, looks, (low, high)), spacing=2, bounds="flush").resolve_scale(
        x="shared"
    )


def _outline(arm: Belief, low: float, high: float) -> list[tuple[float, float]]:
    """The density at points where there is any, down to nought at both ends."""
    reach = 1.2 * (arm.high - arm.low)
    x = np.linspace(max(low, arm.low - reach), min(high, arm.high + reach), 81)
    y = _density(arm, x)
    return [(low, 0.0), (float(x[0]), 0.0), *zip(x.tolist(), y.tolist(), strict=True), (float(x[-1]), 0.0), (high, 0.0)]


def _intervals(arms: Sequence[Belief], looks: _Looks, domain: tuple[float, float]) -> Any:
    low, high = domain
    scale = alt.Scale(domain=list(domain), nice=False)
    rows = [
        {"arm": arm.name, "x": arm.a / (arm.a + arm.b), "low": max(arm.low, low), "high": min(arm.high, high)}
        for arm in arms
    ]
    base = alt.Chart(inline(rows)).properties(width=WIDTH + 40, height=14 * len(arms))
    axis = alt.Axis(labelExpr=_SHARE, tickCount=5, grid=True)
    y = alt.Y("arm:N", title=None, axis=None, sort=None)
    rule = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="success rate", scale=scale, axis=axis), x2="high:Q", y=y, color=looks.colour
    )
    dot = base.transform_filter(alt.datum.x <= high).mark_point(filled=True, size=45, opacity=1)
    return alt.layer(rule, dot.encode(x=alt.X("x:Q", scale=scale), y=y, color=looks.colour))


def _density(arm: Belief, x: np.ndarray) -> np.ndarray:
    from scipy.special import betaln, xlog1py, xlogy

    inside = np.clip(x, 1e-9, 1.0 - 1e-9)
    logarithm = xlogy(arm.a - 1.0, inside) + xlog1py(arm.b - 1.0, -inside) - betaln(arm.a, arm.b)
    density: np.ndarray = np.exp(logarithm)
    return density


def _domain(arms: Sequence[Belief]) -> tuple[float, float]:
    """Where the posteriors lie; one of which hardly anything is known does not squeeze the others."""
    reaches = [(arm.low - 0.4 * (arm.high - arm.low), arm.high + 0.4 * (arm.high - arm.low)) for arm in arms]
    narrowest = min(high - low for low, high in reaches)
    kept = [(low, high) for low, high in reaches if high - low <= 15.0 * narrowest]
    return max(0.0, min(low for low, _ in kept)), min(1.0, max(high for _, high in kept))


# --- What happened ---


def allocation(history: History, colours: Mapping[str, int], *, theme: Theme = LIGHT, legend: bool = True) -> Any:
    """The share of decisions that each arm got, slot by slot."""
    totals = np.sum([history.asked[name] for name in history.asked], axis=0)
    edges = [history.start + place * history.width for place in range(len(totals) + 1)]
    top = np.zeros(len(totals))
    rows = []
    for name, asked in history.asked.items():
        top = top + np.divide(asked, totals, out=np.zeros(len(totals)), where=totals > 0)
        steps = zip([edges[0], *edges], [0.0, *top.round(4).tolist(), 0.0], strict=True)
        rows += [{"arm": name, "at": at, "share": share, "place": place} for place, (at, share) in enumerate(steps)]
    rows.reverse()  # each is drawn from nought up, those that reach lower later
    names = list(history.asked)[::-1]
    looks = _looks({name: colours.get(name, -1) for name in names}, theme, legend, symbol="square")
    areas = alt.Chart(inline(rows)).mark_line(interpolate="step-after", strokeWidth=0)
    y = alt.Y("share:Q", title="share of decisions", scale=alt.Scale(domain=[0, 1]), axis=_shares(4))
    order = alt.Order("place:Q")
    return areas.encode(x=_time(history), y=y, fill=looks.fill, order=order).properties(width=WIDTH, height=HEIGHT)


SLOTS = 12  # of the success rates: fewer, as each is an average
ENOUGH = 20  # outcomes that an average needs


def success(
    history: History,
    colours: Mapping[str, int],
    *,
    ripe: int | None = None,
    theme: Theme = LIGHT,
    legend: bool = True,
) -> Any:
    """The success rate by the time of the decision, of these arms and of all; None while there is too little.

    Where silence is a failure, `ripe` is when the last window that has closed began; what came later is left out.
    """
    rows = [
        {"arm": name, "at": at, "rate": round(rate, 5)}
        for name in [*colours, POOLED]
        for at, rate in _rates(history, name, ripe)
    ]
    if not rows:
        return None
    looks = _looks({**colours, POOLED: -1}, theme, legend)
    y = alt.Y("rate:Q", title="success rate", scale=alt.Scale(zero=True), axis=_shares(4))
    base = alt.Chart(inline(rows)).encode(x=_time(history), y=y, color=looks.colour)
    alone = alt.FieldOneOfPredicate(field="arm", oneOf=_once(rows))
    dots = base.transform_filter(alone).mark_point(filled=True, size=30, opacity=1)
    layers = [base.mark_line(strokeWidth=2).encode(strokeDash=looks.dash), dots]
    end = history.start + history.width * len(next(iter(history.asked.values())))
    if ripe is not None and ripe < end:
        open_ = alt.Chart(inline([{"at": max(ripe, history.start), "end": end}]))
        x = _time(history)
        layers.insert(0, open_.mark_rect(opacity=0.1, color=theme.soft).encode(x=x, x2="end:T"))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _once(rows: list[dict[str, Any]]) -> list[str]:
    """The arms with one point, which make no line."""
    arms = [row["arm"] for row in rows]
    return [arm for arm in dict.fromkeys(arms) if arms.count(arm) == 1]


def _rates(history: History, name: str, ripe: int | None) -> list[tuple[int, float]]:
    """(time, rate) of each slot with enough outcomes; silence in a closed window is one."""
    names = list(history.asked) if name == POOLED else [name]
    seen = history.told if ripe is None else history.asked
    counts, sums = (np.sum([of[each] for each in names], axis=0) for of in (seen, history.rewards))
    step = -(-len(counts) // SLOTS)
    found = []
    for first in range(0, len(counts), step):
        last = min(first + step, len(counts))
        end = history.start + last * history.width
        if ripe is not None and end > ripe:
            break
        count = float(counts[first:last].sum())
        if count >= ENOUGH:
            found.append(((history.start + first * history.width + end) // 2, float(sums[first:last].sum()) / count))
    return found


def _time(history: History) -> alt.X:
    """The axis of time, with marks where people count from."""
    end = history.start + history.width * len(next(iter(history.asked.values())))
    step = nice((end - history.start) // 4)
    day, minute = UNITS["days"], UNITS["minutes"]
    clock = "%H:%M:%S" if step < minute else "%H:%M"
    marks = list(range(-(-history.start // step) * step, end + 1, step))
    return alt.X(
        "at:T",
        title="decided at (UTC)",
        scale=alt.Scale(type="utc", domain=[history.start, end], nice=False),
        axis=alt.Axis(
            values=marks,
            format="%-d %b" if step >= day else clock if end - history.start < day else "%a %H:%M",
            grid=False,
            labelFlush=True,
        ),
    )


# --- What is late, and what is still to come ---


def waits(
    curves: Mapping[str, Steps],
    colours: Mapping[str, int],
    *,
    window: int | None = None,
    theme: Theme = LIGHT,
    legend: bool = True,
) -> Any:
    """The share of decisions whose outcome has come within a time, by Kaplan and Meier."""
    last = max(curve.times[-1] for curve in curves.values())
    end = max(last, window or 0)
    unit, scale = _unit(end)
    rows = [
        {"arm": name, "at": at / scale, "level": round(level, 4)}
        for name, curve in curves.items()
        for at, level in _thinned(curve, last)
    ]
    looks = _looks({name: colours.get(name, -1) for name in curves}, theme, legend)
    x = _since(f"{unit} since the decision", end / scale)
    y = alt.Y("level:Q", title="outcome has come", scale=alt.Scale(zero=True), axis=_shares(4))
    lines = alt.Chart(inline(rows)).mark_line(interpolate="step-after", strokeWidth=2)
    layers: list[Any] = [lines.encode(x=x, y=y, color=looks.colour, strokeDash=looks.dash)]
    if window is not None:
        rule = alt.Chart(inline([{"at": window / scale}])).mark_rule(color=theme.soft, strokeDash=[2, 3])
        layers.append(rule.encode(x=x))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def learned(
    curves: Mapping[str, Steps],
    colours: Mapping[str, int],
    *,
    window: int | None = None,
    theme: Theme = LIGHT,
    legend: bool = True,
) -> Any:
    """The share of conversions that has come within a time, as it was learned from those seen so far."""
    end = window or max(curve.times[-1] for curve in curves.values())
    unit, scale = _unit(end)
    rows = [
        {"arm": name, "at": at / scale, "level": round(level, 4)}
        for name, curve in curves.items()
        for at, level in [(0.0, 0.0), *zip(curve.times, curve.levels, strict=True)]
    ]
    looks = _looks({name: colours.get(name, -1) for name in curves}, theme, legend)
    x = _since(f"{unit} since the decision", end / scale)
    y = alt.Y("level:Q", title="of the successes has come", scale=alt.Scale(domain=[0, 1]), axis=_shares(4))
    lines = alt.Chart(inline(rows)).mark_line(strokeWidth=2)
    encoded = lines.encode(x=x, y=y, color=looks.colour, strokeDash=looks.dash)
    return encoded.properties(width=WIDTH, height=HEIGHT)


def _thinned(curve: Steps, last: float) -> list[tuple[float, float]]:
    """The curve at no more than 70 of its steps, from 0 to `last`."""
    times, levels = np.array(curve.times), np.array(curve.levels)
    if len(times) > 70:
        chosen = np.unique(np.searchsorted(times, np.linspace(times[0], times[-1], 70)))
        times, levels = times[chosen], levels[chosen]
    return [(0.0, 0.0), *zip(times.tolist(), levels.tolist(), strict=True), (last, float(levels[-1]))]


def to_come(times: Sequence[float], expected: Sequence[float], *, theme: Theme = LIGHT) -> Any:
    """How many of the pending outcomes are expected within a time from now."""
    unit, scale = _unit(times[-1])
    rows = [{"at": at / scale, "count": round(count, 2)} for at, count in zip(times, expected, strict=True)]
    x = _since(f"{unit} from now", times[-1] / scale)
    y = alt.Y("count:Q", title="outcomes expected", axis=alt.Axis(tickCount=4, labelExpr=SHORT))
    base = alt.Chart(inline(rows)).encode(x=x, y=y).properties(width=WIDTH, height=HEIGHT)
    return alt.layer(base.mark_area(opacity=0.14, color=theme.ink), base.mark_line(strokeWidth=2, color=theme.ink))


def _since(title: str, end: float) -> alt.X:
    scale = alt.Scale(domain=[0.0, end], nice=False)
    return alt.X("at:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5, grid=False))


def _unit(longest: float) -> tuple[str, int]:
    for unit, scale in UNITS.items():
        if longest >= 2 * scale:
            return unit, scale
    return "milliseconds", 1


# --- Looks ---


def _shares(ticks: int) -> alt.Axis:
    return alt.Axis(labelExpr=_SHARE, tickCount=ticks)


class _Looks(NamedTuple):
    colour: alt.Color
    fill: alt.Fill
    dash: alt.StrokeDash


def _looks(colours: Mapping[str, int], theme: Theme, legend: bool, symbol: str = "stroke") -> _Looks:
    """Colour, fill and dash by arm; what has no number is all the arms, or those that are not shown apart."""
    spare = {name: theme.ink if name == POOLED else theme.others for name in colours}
    paint = [theme.arms[number] if number >= 0 else spare[name] for name, number in colours.items()]
    dashes = [list(DASHES[max(number, 0)]) for number in colours.values()]
    names = list(colours)
    shown = alt.Legend(title=None, symbolType=symbol, symbolSize=300, symbolOpacity=1) if legend else None
    coloured = alt.Scale(domain=names, range=paint)
    dashed = alt.Scale(domain=names, range=dashes)
    return _Looks(
        alt.Color("arm:N", scale=coloured, legend=shown, sort=None),
        alt.Fill("arm:N", scale=coloured, legend=shown if symbol == "square" else None, sort=None),
        alt.StrokeDash("arm:N", scale=dashed, legend=shown, sort=None),
    )


def svg(chart: Any, theme: Theme, label: str) -> str:
    """The chart as an SVG element for a page: without ids, styles and marks for machines, and short."""
    import vl_convert

    text = vl_convert.vegalite_to_svg(_finished(chart, theme).to_dict(validate=False))
    text = re.sub(r' (?:aria-[a-z]+|role|class|pointer-events|xmlns:xlink|version|xmlns|font-family)="[^"]*"', "", text)
    text = re.sub(r' (?:opacity="1"|stroke-width="1"|stroke-dasharray="1,0"|font-weight="normal")', "", text)
    text = re.sub(r'<path d="[^"]*"(?: display="none")?/>', "", text)  # backgrounds without a colour
    text = re.sub(r"-?\d+\.\d\d+(?=[^<>]*>)", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), text)
    text = re.sub(r' d="(M[-\d.,L]+)(Z?)"', lambda found: f' d="{_shorter(found[1])}{found[2]}"', text)
    while (shorter := re.sub(r"<g(?: transform=\"[^\"]*\")?></g>", "", text)) != text:
        text = shorter
    return text.replace("<svg ", f'<svg class="chart" role="img" aria-label="{escape(label, _QUOTE)}" ', 1)


_QUOTE = {'"': "&quot;"}


def _shorter(path: str) -> str:
    """The same lines, level and upright ones written with one coordinate."""
    points = [point.split(",") for point in path[1:].split("L")]
    kept = [f"M{','.join(points[0])}"]
    for (x0, y0), (x, y) in pairwise(points):
        if (x, y) != (x0, y0):
            kept.append(f"H{x}" if y == y0 else f"V{y}" if x == x0 else f"L{x},{y}")
    return "".join(kept)


def _finished(chart: Any, theme: Theme) -> Any:
    text = {"labelColor": theme.soft, "titleColor": theme.soft, "labelFontSize": 12, "titleFontSize": 12}
    lines = {"gridColor": theme.grid, "domainColor": theme.soft, "tickColor": theme.soft}
    return (
        chart.configure(background="transparent", font="Liberation Sans, Arial, sans-serif", padding=4)
        .configure_axis(**text, **lines, titleFontWeight="normal", titlePadding=8)
        .configure_legend(labelColor=theme.ink, labelFontSize=12)
        .configure_view(stroke=None)
    )

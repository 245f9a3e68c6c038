"""The certified bound beside what is measured: where it says something, by how much, and from which horizon.

A figure and a table for means .6 and .4, and the horizons from which it is below the trivial bound in the paper's
Pareto instances. It takes some ten minutes on two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt

from belated import Fixed, Geometric, Law, Loss, Pareto, Scenario, Thompson, charts, simulate, theory

OUT = Path("out/verify")
HORIZONS = (300, 1000, 3000, 10_000, 20_000, 50_000)
CASES: dict[str, list[Law]] = {
    "no delay": [Fixed(0), Fixed(0)],
    "fixed 250": [Fixed(250), Fixed(250)],
    "geometric 0.01": [Geometric(0.01), Geometric(0.01)],
    "loss 0.3 and 0.6": [Loss(0.3), Loss(0.6)],
    "Pareto 0.5 and 1": [Pareto(0.5), Pareto(1.0)],
}
MEANS = (0.6, 0.4)


def measured(means: tuple[float, float], laws: list[Law], rounds: int, replications: int = 400) -> tuple[float, float]:
    """Thompson sampling's mean regret and its standard error."""
    world = Scenario(means=list(means), delay=laws, rounds=rounds)
    row = simulate(world, [Thompson()], replications=replications, seed=23).summary()[0]
    return row["regret"], row["se"]


def first_horizon(below: Callable[[int], bool], low: int, high: int) -> int:
    """The horizon, to three per cent, from which something holds that holds at `high` and not at `low`."""
    while high / low > 1.03:
        middle = round((low * high) ** 0.5)
        low, high = (low, middle) if below(middle) else (middle, high)
    return high


def figure(rows: list[dict[str, Any]]) -> alt.HConcatChart:
    """Regret and bound against the horizon, a panel a case."""
    colour = alt.Color("what:N", title=None, scale=alt.Scale(range=["#0072B2", "#D55E00", "#666666"]))
    x = alt.X("rounds:Q", title="T", scale=alt.Scale(type="log"))
    y = alt.Y("regret:Q", title="regret", scale=alt.Scale(type="log"))
    panels = []
    for name in CASES:
        base = alt.Chart(alt.Data(values=[row for row in rows if row["case"] == name]))
        panel = base.mark_line(point=True).encode(x=x, y=y, color=colour)
        panels.append(panel.properties(width=240, height=220, title=name))
    return alt.hconcat(*panels)


def main() -> int:
    """Print the table and the horizons, write the figure; 1 if a bound lies below what is measured."""
    rows, failed = [], 0
    print(f"means {MEANS[0]} and {MEANS[1]}{'':8}{'T':>8}{'bound':>10}{'trivial':>10}{'measured':>16}{'ratio':>8}")
    for name, laws in CASES.items():
        for rounds in HORIZONS:
            bound = theory.thompson_certified(MEANS, laws, rounds)
            mean, error = measured(MEANS, laws, rounds)
            failed += mean - 3 * error > bound.value
            print(
                f"{name:24}{rounds:8}{bound.value:10.1f}{bound.trivial:10.1f}{mean:10.1f} ± {error:.1f}"
                f"{bound.value / mean:8.1f}",
                flush=True,
            )
            for what, value in (("certified", bound.value), ("measured", mean), ("trivial", bound.trivial)):
                rows.append({"case": name, "rounds": rounds, "regret": value, "what": what})
    for suffix in (".svg", ".png"):
        charts.save(charts.finished(figure(rows)), OUT / f"certified{suffix}")
    for alpha in (0.2, 0.5, 0.8):
        laws = [Pareto(1.0), Pareto(alpha)]

        def below(rounds: int, laws: list[Law] = laws) -> bool:
            bound = theory.thompson_certified((0.40, 0.45), laws, rounds)
            return bound.value < bound.trivial * (1 - 1e-9)

        print(f"pareto-{alpha}: below the trivial bound from T = {first_horizon(below, 3000, 30_000)} on", flush=True)
    print(f"figure: {OUT / 'certified.svg'}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""How the cost of a delay grows with the arms, beyond the one case of `belated paper`: other delays, gaps and horizons.

The cost is in units of delay times gap, so that d rounds in which nothing is known cost 1 - 1/K. It takes about a
minute on two cores.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from belated import Fixed, Scenario, Thompson, charts, simulate
from belated.questions import MEASURES, fitted
from belated.result import paired

OUT = Path("out/verify")
ARMS = (2, 5, 10, 20, 50, 100, 200)
LABELS = {4: "T/4", 2: "T/2", 1: "T"}


class Case(NamedTuple):
    """Means, a delay, a horizon and how many arms at most."""

    best: float
    other: float
    delay: int
    rounds: int
    most: int
    replications: int

    @property
    def title(self) -> str:
        return f"means {self.best:g} and {self.other:g}, delay {self.delay}"


CASES = (
    Case(0.9, 0.1, 50, 10_000, 200, 60),
    Case(0.9, 0.1, 250, 10_000, 200, 60),
    Case(0.9, 0.1, 1000, 10_000, 200, 60),
    Case(0.7, 0.3, 250, 20_000, 100, 100),
)


def costs(case: Case, arms: int) -> dict[int, np.ndarray]:
    """By horizon, each replication's cost of the delay in units of delay times gap."""
    curves = []
    for delay in (case.delay, 0):
        world = Scenario(means=[case.best] + [case.other] * (arms - 1), delay=Fixed(delay), rounds=case.rounds)
        result = simulate(world, [Thompson()], replications=case.replications, seed=29)
        curves.append(result.curves("thompson"))
    cost = (curves[0] - curves[1]) / (case.delay * (case.best - case.other))
    horizons = [case.rounds // 4, case.rounds // 2, case.rounds]
    places = np.searchsorted(result.rounds, horizons)
    return {horizon: cost[:, place] for horizon, place in zip(horizons, places, strict=True)}


def figure(rows: list[dict[str, Any]]) -> alt.HConcatChart:
    """Cost against arms, a panel a case, a line a horizon."""
    colours = alt.Color(
        "after:N", title="cost after", scale=alt.Scale(range=["#56B4E9", "#0072B2", "#332288", "#666666"])
    )
    x = alt.X(
        "arms:Q",
        title="arms",
        scale=alt.Scale(type="log", domain=[2, 200], nice=False),
        axis=alt.Axis(values=list(ARMS)),
    )
    y = alt.Y("cost:Q", title="cost / (delay × gap)", scale=alt.Scale(domain=[0, 2], clamp=True))
    panels = []
    for case in CASES:
        base = alt.Chart(alt.Data(values=[row for row in rows if row["case"] == case.title]))
        line = base.mark_line(point=True).encode(x=x, y=y, color=colours)
        bars = base.mark_rule().encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colours)
        panels.append(alt.layer(line, bars).properties(width=240, height=220, title=case.title))
    return alt.hconcat(*panels)


def main() -> int:
    """Print the costs and the misfit of both models, and write the figure."""
    rows: list[dict[str, Any]] = []
    for case in CASES:
        arms = [count for count in ARMS if count <= case.most]
        found = [costs(case, count) for count in arms]
        print(f"{case.title}: cost / (delay x gap) after", *found[0], "rounds")
        for count, by_horizon in zip(arms, found, strict=True):
            shown = {str(horizon): paired(cost) for horizon, cost in by_horizon.items()}
            print(f"{count:6}", *(f"{each.difference:8.3f} ± {each.se:.3f}" for each in shown.values()), flush=True)
            for after, each in shown.items():
                row = {"case": case.title, "arms": count, "after": LABELS[case.rounds // int(after)]}
                rows.append(row | {"cost": each.difference, "low": each.low, "high": each.high})
            blind = {"case": case.title, "arms": count, "after": "blind rounds", "cost": 1 - 1 / count}
            rows.append(blind | {"low": blind["cost"], "high": blind["cost"]})
        last = np.stack([by_horizon[case.rounds] for by_horizon in found], axis=1)
        for model in MEASURES:
            fit = fitted(model, arms, last)
            print(f"  {model:12} misfit {fit.misfit:8.1f}, slope {fit.slope.difference:.4f} ± {fit.slope.se:.4f}")
    for suffix in (".svg", ".png"):
        charts.save(charts.finished(figure(rows)), OUT / f"arms{suffix}")
    print(f"figure: {OUT / 'arms.svg'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

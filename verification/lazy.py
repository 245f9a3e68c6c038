"""Lazy Thompson sampling beside Algorithm 1: the arm on 200 random posteriors, and the regret of every experiment.

The arms of a million lazy choices on each posterior are compared with their exact chances, which are integrals: the
p-values should be uniform, and the smallest above a level corrected for their number. The same choices with hazards
that are no bounds must fail. Regrets are paired, on the same visitors. It takes some minutes on two cores.
"""

from __future__ import annotations

import sys
from pathlib import Path

import altair as alt
import numpy as np
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from argmax import p_values, spoiled
from belated import Thompson, charts, simulate
from belated.paper import EXPERIMENTS
from belated.result import paired

OUT = Path("out/verify")
POSTERIORS, DRAWS, CONTROLS = 200, 1_000_000, 20
LEVEL = 0.001 / POSTERIORS


def z_scores() -> dict[str, float]:
    """By experiment: how many standard errors the regrets of the lazy and the plain policy differ by."""
    scores = {}
    for experiment in EXPERIMENTS:
        result = simulate(
            experiment.scenario, [Thompson(), Thompson(lazy=False)], replications=experiment.replications, seed=31
        )
        lazy, plain = (result.curves(name)[:, -1] for name in result.policies)
        difference = paired(lazy - plain)
        z = scores[experiment.name] = difference.difference / difference.se
        print(f"{experiment.name:20} lazy {lazy.mean():8.1f}, plain {plain.mean():8.1f}, z {z:5.2f}", flush=True)
    return scores


def figure(found: np.ndarray, control: np.ndarray, scores: dict[str, float]) -> alt.HConcatChart:
    """The p-values in order against uniform ones, and the z-scores likewise."""
    rows = []
    for name, values in (("lazy", found), ("control", control), ("regrets", ndtr(list(scores.values())))):
        ranks = (np.arange(len(values)) + 0.5) / len(values)
        rows += [
            {"of": name, "x": float(x), "y": float(max(y, 1e-12))} for x, y in zip(ranks, np.sort(values), strict=True)
        ]
    panels = []
    for title, names in (
        ("p-values of 200 posteriors, and of a control", ["lazy", "control"]),
        ("regrets: P(Z < z)", ["regrets"]),
    ):
        base = alt.Chart(alt.Data(values=[row for row in rows if row["of"] in names]))
        points = base.mark_point(filled=True, size=30, opacity=1).encode(
            x=alt.X("x:Q", title="uniform", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("y:Q", title="found", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("of:N", title=None, scale=alt.Scale(range=["#D55E00", "#0072B2", "#009E73"])),
        )
        line = alt.Chart(alt.Data(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}])).mark_line(strokeDash=[6, 3])
        panels.append(
            alt.layer(line.encode(x="x:Q", y="y:Q", color=alt.value("#666666")), points).properties(
                width=300, height=300, title=title
            )
        )
    return alt.hconcat(*panels)


def main() -> int:
    """Print what each comparison says, and write the figure; 1 if any says what it should not."""
    found = p_values(lambda state: state, POSTERIORS, DRAWS, seed=23)
    control = p_values(spoiled, CONTROLS, DRAWS, seed=23)
    scores = z_scores()
    worst = max(abs(z) for z in scores.values())
    limit = 3.5  # of forty scores one lies beyond it by chance once in fifty times
    verdicts = {
        f"smallest of {POSTERIORS} p-values {found.min():.2g}, level {LEVEL:.2g}": found.min() > LEVEL,
        f"control: {(control < LEVEL).sum()} of {CONTROLS} refused": (control < LEVEL).sum() >= CONTROLS // 4,
        f"largest z-score of {len(scores)} regrets {worst:.2f}, limit {limit}": worst < limit,
    }
    for text, holds in verdicts.items():
        print(f"{'holds' if holds else 'FAILS'}  {text}")
    for suffix in (".svg", ".png"):
        charts.save(charts.finished(figure(found, control, scores)), OUT / f"lazy{suffix}")
    print(f"figure: {OUT / 'lazy.svg'}")
    return int(not all(verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())

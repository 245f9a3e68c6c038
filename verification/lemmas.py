"""The lemmas of the paper's proof, by simulation and by exact sums: a figure each, and what each says.

Each figure should be plain to read: the measured points lie below the line of the lemma. It takes half a minute.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from belated import Fixed, Geometric, Law, Loss, Uniform, charts
from belated.theory import expected_trials
from paths import Paths, bad_delays, bad_draws, pulls_until_known, simulated, too_few_shown

OUT = Path("out/verify")
MEANS, ROUNDS, REPLICATIONS = (0.9, 0.2), 600, 4000
LAWS: dict[str, Law] = {
    "fixed 20": Fixed(20),
    "geometric 0.05": Geometric(0.05),
    "loss 0.4": Loss(0.4),
    "uniform 0..40": Uniform(0, 40),
}
NEVER = 1e-5  # where an event that was never seen is drawn, below every bound
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"]


def quantile(law: Law) -> tuple[float, int]:
    """The q and d(q) at which the lemmas are looked at."""
    d = law.quantile(0.3)
    return law.cdf(d), int(d)


def interval(happened: np.ndarray) -> tuple[float, float]:
    """The chance of an event and the upper end of its exact 95 % interval."""
    from scipy.special import betaincinv

    count, size = int(happened.sum()), len(happened)
    return count / size, float(betaincinv(count + 1, size - count, 0.975)) if count < size else 1.0


def chart(rows: list[dict[str, Any]], x: str, y: str, title: str, scales: dict[str, str]) -> alt.LayerChart:
    """Points (measured) and lines (the lemma's bound) by law."""
    base = alt.Chart(alt.Data(values=rows)).properties(width=460, height=300, title=title)
    colour = alt.Color("law:N", title=None, scale=alt.Scale(range=COLOURS))
    axes = {
        "x": alt.X("x:Q", title=x, scale=alt.Scale(type=scales.get("x", "linear"))),
        "y": alt.Y("y:Q", title=y, scale=alt.Scale(type=scales.get("y", "linear"), clamp=True)),
    }
    lines = base.transform_filter("datum.kind == 'bound'").mark_line(strokeDash=[6, 3]).encode(color=colour, **axes)
    points = base.transform_filter("datum.kind == 'measured'").mark_point(filled=True, size=50, opacity=1)
    return alt.LayerChart(layer=[lines, points.encode(color=colour, **axes)])


def lemma_1(paths: dict[str, Paths]) -> tuple[list[dict[str, Any]], bool]:
    """After m pulls and d(q) rounds fewer than q m / 2 rewards are revealed with a chance of at most exp(-q m / 8)."""
    rows, holds = [], True
    for name, law in LAWS.items():
        q, d = quantile(law)
        for m in (1, 2, 3, 5, 8, 12, 20, 32, 50, 80):
            chance, _ = interval(too_few_shown(paths[name], 0, m, q, d))
            bound = math.exp(-q * m / 8)
            holds &= chance <= bound + 4 * math.sqrt(bound / REPLICATIONS)
            rows += [{"law": name, "x": m, "y": bound, "kind": "bound"}]
            rows += [{"law": name, "x": m, "y": max(chance, NEVER), "kind": "measured"}]
    return rows, holds


def lemma_2(paths: dict[str, Paths]) -> tuple[list[dict[str, Any]], bool]:
    """P(F_1) <= 1/T and P(F_2) <= 2/T; here F_2 from a share of the paper's 24 log T / gap^2 observations on."""
    rows, holds = [], True
    for name, law in LAWS.items():
        q, d = quantile(law)
        holds &= interval(bad_delays(paths[name], (q, q), (d, d)))[0] <= 1 / ROUNDS
        for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
            chance, _ = interval(bad_draws(paths[name], share))
            rows.append({"law": name, "x": share, "y": max(chance, NEVER), "kind": "measured"})
        holds &= chance <= 2 / ROUNDS
    rows += [{"law": "2 / T", "x": share, "y": 2 / ROUNDS, "kind": "bound"} for share in (0.01, 1.0)]
    return rows, holds


def lemma_4(paths: dict[str, Paths]) -> tuple[list[dict[str, Any]], bool]:
    """On the good event m_(tau_2)(2) <= max{48 log T / (q gap^2), 24 log T / q} + d + 1, at shares of the threshold."""
    rows, holds = [], True
    for name, law in LAWS.items():
        q, d = quantile(law)
        good = ~bad_delays(paths[name], (q, q), (d, d))
        for share in (0.02, 0.05, 0.1, 0.2, 0.3):
            bound = max(share * 48 / paths[name].gap ** 2, 24.0) * paths[name].log / q + d + 1
            most = float(pulls_until_known(paths[name], share)[good].max())
            holds &= most <= bound
            rows += [{"law": name, "x": share, "y": bound, "kind": "bound"}]
            rows += [{"law": name, "x": share, "y": most, "kind": "measured"}]
    return rows, holds


def lemma_5(_: dict[str, Paths]) -> tuple[list[dict[str, Any]], bool]:
    """E min{X(k, s(k), y), T} <= 6 / gap for k < 6 / gap, exactly."""
    rows, holds = [], True
    for gap in (0.05, 0.1, 0.2, 0.5):
        name = f"gap {gap}"
        for k in sorted({*np.geomspace(1, 6 / gap, 25).astype(int).tolist()}):
            draws = expected_trials(k, 0.5 + gap / 2, 0.5, 10_000)
            holds &= draws <= 6 / gap
            rows += [{"law": name, "x": k, "y": draws, "kind": "measured"}]
        rows += [{"law": name, "x": k, "y": 6 / gap, "kind": "bound"} for k in (1, 6 / gap)]
    return rows, holds


def lemma_6(_: dict[str, Paths]) -> tuple[list[dict[str, Any]], bool]:
    """T E min{X(k, s(k), y), T} stays bounded for k = 16 log T / gap^2: the paper uses 16 for it."""
    rows, holds = [], True
    for gap in (0.1, 0.2, 0.5):
        for rounds in (100, 300, 1000, 3000, 10_000, 100_000):
            k = math.ceil(16 * math.log(rounds) / gap**2)
            value = rounds * expected_trials(k, 0.5 + gap / 2, 0.5, rounds)
            holds &= value <= 16
            rows += [{"law": f"gap {gap}", "x": rounds, "y": max(value, 1e-12), "kind": "measured"}]
    rows += [{"law": "16", "x": rounds, "y": 16, "kind": "bound"} for rounds in (100, 100_000)]
    return rows, holds


FIGURES = {
    "lemma-1": (lemma_1, "pulls m", "chance (1e-5: never seen)", {"y": "log"}),
    "lemma-2": (
        lemma_2,
        "share of 24 log T / gap²",
        "chance of a bad draw (1e-5: never seen)",
        {"x": "log", "y": "log"},
    ),
    "lemma-4": (lemma_4, "share of 24 log T / gap²", "most pulls of arm 2 until then", {"x": "log", "y": "log"}),
    "lemma-5": (lemma_5, "rewards k", "E min{X, T}", {"x": "log", "y": "log"}),
    "lemma-6": (lemma_6, "T", "T E min{X, T} at k = 16 log T / gap²", {"x": "log", "y": "log"}),
}


def main() -> int:
    """Write the figures, print what each says; 1 if some lemma does not hold."""
    paths = {name: simulated(MEANS, [law, law], ROUNDS, REPLICATIONS, seed=17) for name, law in LAWS.items()}
    print(f"means {MEANS}, T = {ROUNDS}, {REPLICATIONS} replications, seed 17, numpy {np.__version__}")
    failed = 0
    for name, (lemma, x, y, scales) in FIGURES.items():
        rows, holds = lemma(paths)
        title = f"Lemma L{name[-1]}: dashes bound the points"
        drawn = charts.finished(chart(rows, x, y, title, scales))
        charts.save(drawn, OUT / f"{name}.svg")
        charts.save(drawn, OUT / f"{name}.png")
        failed += not holds
        print(f"{'holds' if holds else 'FAILS'}  L{name[-1]}: {(lemma.__doc__ or '').strip()}")
    print(f"figures: {OUT}/lemma-*.svg")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

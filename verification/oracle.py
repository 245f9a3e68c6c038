"""Every experiment and policy beside the oracle, with many replications: a QQ-plot of z-scores against the normal.

If the two simulators agree, the points lie on the line but for chance. It takes some minutes on two cores;
`--replications` sets the oracle's number, 400 unless told, of which the package runs ten times as many.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.special import ndtr, ndtri

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from belated import charts, simulate
from belated.paper import EXPERIMENTS
from belated.policies import named
from oracle import ORACLES, oracle
from test_oracle import shortened

OUT = Path("out/verify")


def compare(experiment: int, policy: str, replications: int) -> dict[str, Any]:
    """The z-score of the difference of the mean regrets in one shortened experiment."""
    each = EXPERIMENTS[experiment]
    scenario = shortened(each.scenario)
    ours = simulate(scenario, [named(policy)], replications=10 * replications, seed=11, workers=1).finals(policy)
    rng = np.random.default_rng(12)
    theirs = np.array([oracle(scenario, ORACLES[policy], rng) for _ in range(replications)])
    error = math.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs))
    difference = float(ours.mean() - theirs.mean())
    exact = error < 1e-9  # regret that does not vary, such as that of sweeps that never end
    z = difference / error if not exact else (0.0 if abs(difference) < 1e-9 else math.inf)
    return {"experiment": each.name, "policy": policy, "regret": float(ours.mean()), "z": z, "exact": exact}


def qq_plot(rows: list[dict[str, Any]]) -> alt.LayerChart:
    """Sorted z-scores against the normal quantiles of their ranks, with the line on which they should lie."""
    scores = sorted((row for row in rows if not row["exact"]), key=lambda row: row["z"])
    points = [{**row, "normal": float(ndtri((rank + 0.5) / len(scores)))} for rank, row in enumerate(scores)]
    x, y = alt.X("normal:Q", title="normal quantile"), alt.Y("z:Q", title="z-score")
    dots = alt.Chart(alt.Data(values=points)).mark_point(filled=True, size=40).encode(x=x, y=y)
    line = [{"normal": end, "z": end} for end in (-3.2, 3.2)]
    diagonal = alt.Chart(alt.Data(values=line)).mark_line(color="#999999").encode(x=x, y=y)
    return alt.LayerChart(layer=[diagonal, dots]).properties(width=420, height=420, title="Package beside oracle")


def main() -> int:
    """Compare all, print what is largest, write the figure; 1 if some difference cannot be chance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=400)
    replications = parser.parse_args().replications
    pairs = [(i, policy) for i, each in enumerate(EXPERIMENTS) for policy in (*each.policies, "split", "qpm-d")]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(compare, i, policy, replications) for i, policy in pairs]
        rows = [future.result() for future in track(futures, description="comparing", console=Console(stderr=True))]
    worst = sorted(rows, key=lambda row: -abs(row["z"]))
    for row in worst[:8]:
        print(f"{row['experiment']:26} {row['policy']:16} regret {row['regret']:8.2f}  z {row['z']:6.2f}")
    scores = np.array([row["z"] for row in rows if not row["exact"]])
    exact = len(rows) - len(scores)
    print(f"{len(rows)} comparisons, {exact} exact; mean of z^2 {np.mean(scores**2):.3f}, by chance 1")
    charts.save(qq_plot(rows), OUT / "oracle.svg")
    charts.save(qq_plot(rows), OUT / "oracle.png")
    print(f"figure: {OUT / 'oracle.svg'}")
    largest = abs(worst[0]["z"])
    return int(2 * ndtr(-largest) * len(rows) < 1e-3)


if __name__ == "__main__":
    sys.exit(main())

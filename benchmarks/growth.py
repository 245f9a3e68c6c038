"""How cost grows: time a round and peak memory against arms, rounds and delay, of ours and of the C program.

    python benchmarks/growth.py [--quick]

Thompson sampling, one core, Linux. One of the three is varied and the others stay at 20 arms, 20,000 rounds and delay
250; the delay is varied with two million rounds. The two programs take turns, each run in a process of its own; the
faster of two runs counts. Memory is the most that a process held, Python and its libraries included. It prints each
point as it is measured, and writes out/growth.svg, out/growth.png and out/growth.json. Exit code 2 without gcc.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np
from thompson import build, run_ours

from belated import Fixed, Scenario, Thompson, charts, provenance

OUT = Path("out")
SECONDS = 0.3  # of the C program's work in a run, by a rough guess
LOOKS = {"belated": charts.look("thompson"), "C program": charts.look("split")}
REPEATS = 2


class Point(NamedTuple):
    """A size of the study."""

    arms: int = 20
    rounds: int = 20_000
    delay: int = 250

    @property
    def replications(self) -> int:
        """Enough for a run that can be timed, and at least the two that the C program needs."""
        guess = 40e-9 * self.arms * self.rounds
        return min(500, max(2, math.ceil(SECONDS / guess)))


class Cost(NamedTuple):
    """What a run took."""

    ns: float
    megabytes: float


SWEEPS: dict[str, list[Point]] = {
    "arms": [Point(arms=arms) for arms in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)],
    "rounds": [Point(rounds=10**power) for power in range(3, 8)],
    "delay": [Point(rounds=2_000_000, delay=delay) for delay in (0, 10, 100, 1000, 10_000, 100_000, 1_000_000)],
}
TITLES = {"arms": "arms, K", "rounds": "rounds, T", "delay": "delay, in rounds"}


def quick(sweeps: dict[str, list[Point]]) -> dict[str, list[Point]]:
    """The points that take least."""
    small = {name: [at._replace(rounds=min(at.rounds, 200_000)) for at in points] for name, points in sweeps.items()}
    return {name: sorted(set(points))[:4] for name, points in small.items()}


def watched(command: list[object]) -> tuple[str, float]:
    """What a program prints, and the most memory that it held, in MB, by its own account in /proc."""
    most = 0
    with subprocess.Popen([str(each) for each in command], stdout=subprocess.PIPE, text=True) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            held = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
            most = max(most, *(int(line.split()[1]) for line in held), 0)
            time.sleep(0.002)
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(process.returncode)
    return printed, most / 1000


def cost_of_c(program: Path, at: Point) -> Cost:
    """One run of the C program."""
    printed, megabytes = watched([program, *at, at.replications, 1])
    return Cost(float(printed.split()[0]), megabytes)


def cost_of_ours(at: Point) -> Cost:
    """One run of ours, in a process that has compiled before."""
    printed, megabytes = watched([sys.executable, __file__, "--one", *at])
    return Cost(float(printed), megabytes)


def one(at: Point) -> float:
    """The ns a round of a call of `simulate` in this process, after a small one."""
    means = tuple(np.linspace(0.25, 0.75, at.arms).tolist())
    run_ours(Scenario(means=means, delay=Fixed(at.delay), rounds=100), Thompson(), 1)
    return run_ours(Scenario(means=means, delay=Fixed(at.delay), rounds=at.rounds), Thompson(), at.replications).ns


def measured(program: Path, sweeps: dict[str, list[Point]]) -> Iterator[dict[str, Any]]:
    """A row for each point and program."""
    for name, points in sweeps.items():
        for at in points:
            runs: dict[str, list[Cost]] = {"C program": [], "belated": []}
            for _ in range(REPEATS):
                runs["C program"].append(cost_of_c(program, at))
                runs["belated"].append(cost_of_ours(at))
            for who, costs in runs.items():
                yield {"sweep": name, "at": getattr(at, name), "who": who, **at._asdict(), **min(costs)._asdict()}


def panel(rows: list[dict[str, Any]], sweep: str, what: str, title: str) -> alt.Chart:
    """One cost against one size, both logarithmic."""
    data = [row for row in rows if row["sweep"] == sweep]
    scale = alt.Scale(type="symlog" if sweep == "delay" else "log", nice=False)
    powers = [10.0**power for power in range(8)]
    ticks = ([0.0] if sweep == "delay" else []) + [each for each in powers if each <= max(row["at"] for row in data)]
    looks = {"domain": list(LOOKS)}
    return (
        alt.Chart(charts.inline(data), width=250, height=190)
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=30, filled=True))
        .encode(
            x=alt.X("at:Q", title=TITLES[sweep], scale=scale, axis=alt.Axis(values=ticks, labelExpr=charts.SHORT)),
            y=alt.Y(
                f"{what}:Q",
                title=title,
                scale=alt.Scale(type="log"),
                axis=alt.Axis(values=powers, labelExpr=charts.SHORT),
            ),
            color=alt.Color(
                "who:N",
                scale=alt.Scale(**looks, range=[each.colour for each in LOOKS.values()]),
                legend=alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolSize=500),
            ),
            strokeDash=alt.StrokeDash(
                "who:N", scale=alt.Scale(**looks, range=[list(each.dash) for each in LOOKS.values()])
            ),
        )
    )


def figure(rows: list[dict[str, Any]]) -> Any:
    """Time above, memory below; a column a sweep."""
    panels = [
        panel(rows, sweep, what, title)
        for what, title in (("ns", "ns a round"), ("megabytes", "peak memory, MB"))
        for sweep in SWEEPS
    ]
    return charts.finished(alt.concat(*panels, columns=3, align="all", bounds="flush", spacing=56))


def main() -> int:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="the smallest points only")
    parser.add_argument("--one", nargs=3, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(one(Point(*options.one)))
        return 0
    OUT.mkdir(exist_ok=True)
    rows, began = [], time.perf_counter()
    print(f"{'sweep':8}{'at':>9}  {'program':12}{'ns/round':>10}{'MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for row in measured(build(Path(folder)), quick(SWEEPS) if options.quick else SWEEPS):
            rows.append(row)
            print(f"{row['sweep']:8}{row['at']:9}  {row['who']:12}{row['ns']:10.1f}{row['megabytes']:8.1f}", flush=True)
    text = json.dumps(
        {"provenance": provenance.provenance(seed=0, seconds=time.perf_counter() - began), "rows": rows}, indent=1
    )
    (OUT / "growth.json").write_text(text + "\n")
    for suffix in (".svg", ".png"):
        charts.save(figure(rows), OUT / f"growth{suffix}")
    print(f"figure: {OUT / 'growth.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

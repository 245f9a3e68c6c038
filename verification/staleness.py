"""What a stale posterior costs: extra regret against the interval at which it is read anew, 10 to 100,000 rounds.

Deciders that draw from a snapshot of the totals, taken every so many decisions, learn each outcome up to that many
decisions late, on average half as many. So staleness is delay, and a simulation with `Refreshed` prices it. Beside it:
a delay of the whole interval for every outcome, the most that staleness can add; and the price of an interval of blind
decisions, interval × mean gap. Exit code 1 if staleness costs more than either, beyond chance. It takes six minutes
of processor time.

    python verification/staleness.py [--replications N] [--figure FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from belated import Fixed, Geometric, Law, Refreshed, Scenario, Thompson, charts, simulate
from belated.result import Comparison, paired

EVERY = (10, 100, 1_000, 10_000, 100_000)
ROUNDS = 400_000
STALE, LATER, BLIND = "read anew at this interval", "every outcome so much later", "price: interval × mean gap"
COLOURS = {STALE: "#0072B2", LATER: "#D55E00", BLIND: "#666666"}
CHANCE = 3.5  # standard errors: forty comparisons, one in a hundred runs by chance


@dataclass(frozen=True)
class Later(Law):
    """Every outcome of the law `inner`, `by` rounds later."""

    inner: Law
    by: float

    def quantile(self, q: float) -> float:
        return self.inner.quantile(q) + self.by

    def cdf(self, d: float) -> float:
        return self.inner.cdf(d - self.by)

    def compiled_form(self) -> Law:
        return replace(self, inner=self.inner.compiled_form())


class Case(NamedTuple):
    """Means, and the delay that the outcomes have anyhow."""

    title: str
    means: tuple[float, ...]
    delay: Law

    @property
    def gap(self) -> float:
        """The mean gap: what a blind decision costs."""
        return max(self.means) - sum(self.means) / len(self.means)

    def regrets(self, law: Law, replications: int) -> np.ndarray:
        """The final regret of each replication; the visitors are the same whatever the law."""
        world = Scenario(means=list(self.means), delay=law, rounds=ROUNDS)
        finals: np.ndarray = simulate(world, [Thompson()], replications=replications, seed=41).finals("thompson")
        return finals


CASES = (
    Case("2 arms, .55 and .45", (0.55, 0.45), Fixed(0)),
    Case("2 arms, .03 and .02", (0.03, 0.02), Fixed(0)),
    Case("10 arms, one .10, nine .05", (0.1, *[0.05] * 9), Fixed(0)),
    Case(".03 and .02, outcomes 10,000 late", (0.03, 0.02), Geometric(1e-4)),
)


class Cost(NamedTuple):
    """What an interval costs in a case, in extra regret, and what a delay of the whole interval does."""

    case: Case
    every: int
    stale: Comparison
    later: Comparison
    between: Comparison  # the first less the second

    @property
    def price(self) -> float:
        return self.every * self.case.gap

    @property
    def exceeds(self) -> bool:
        """Whether it costs more than blind decisions, or than the delay, beyond chance."""
        over = self.stale.difference - CHANCE * self.stale.se > self.price
        return over or self.between.difference - CHANCE * self.between.se > 0.0


def costs(case: Case, replications: int) -> Iterator[Cost]:
    """The cost of each interval."""
    fresh = case.regrets(case.delay, replications)
    print(f"\n{case.title}: regret {fresh.mean():.1f} ± {fresh.std(ddof=1) / replications**0.5:.1f} after {ROUNDS:,}")
    print(f"{'interval':>10}{'stale':>18}{'so much later':>20}{'price':>10}{'stale/price':>13}", flush=True)
    for every in EVERY:
        stale = case.regrets(Refreshed(case.delay, every=every), replications)
        later = case.regrets(Later(case.delay, every - 1), replications)
        cost = Cost(case, every, paired(stale - fresh), paired(later - fresh), paired(stale - later))
        shown = (f"{each.difference:9.1f} ± {each.se:6.1f}" for each in (cost.stale, cost.later))
        print(f"{every:10,}", *shown, f"{cost.price:9.1f}", f"{cost.stale.difference / cost.price:12.2f}", flush=True)
        yield cost


def figure(found: list[Cost]) -> alt.HConcatChart:
    """Extra regret against the interval, a panel a case."""
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="bottom", labelLimit=400),
    )
    x = alt.X(
        "every:Q",
        title="interval, in rounds",
        scale=alt.Scale(type="log", domain=[7, 140_000], nice=False),
        axis=alt.Axis(values=list(EVERY), labelExpr=charts.SHORT),
    )
    scale = alt.Scale(type="symlog", constant=1, domain=[-30, 12_000], nice=False)
    ticks = alt.Axis(values=[-10, -1, 0, 1, 10, 100, 1000, 10_000], labelExpr=charts.SHORT)
    y = alt.Y("cost:Q", title="extra regret", scale=scale, axis=ticks)
    panels = []
    for case in CASES:
        base = alt.Chart(alt.Data(values=[row for cost in found if cost.case is case for row in rows(cost)]))
        dots = base.mark_point(filled=True, size=50, opacity=1, clip=True).encode(x=x, y=y, color=colour)
        bars = base.mark_rule(strokeWidth=2, clip=True).encode(
            x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=colour
        )
        steps = np.geomspace(EVERY[0], EVERY[-1], 100).tolist()
        blind = [{"kind": BLIND, "every": every, "cost": every * case.gap} for every in steps]
        line = alt.Chart(alt.Data(values=blind)).mark_line(strokeDash=[4, 3]).encode(x=x, y=y, color=colour)
        panels.append(alt.layer(line, bars, dots).properties(width=240, height=240, title=case.title))
    return alt.hconcat(*panels)


def rows(cost: Cost) -> Iterator[dict[str, Any]]:
    """The points of a figure; the two that are measured stand a little to the left and right of their interval."""
    for kind, each, shift in ((STALE, cost.stale, 0.88), (LATER, cost.later, 1 / 0.88)):
        yield {"kind": kind, "every": cost.every * shift, "cost": each.difference, "low": each.low, "high": each.high}


def main() -> int:
    """Print the costs and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--figure", type=Path, default=Path("out/verify/staleness.png"))
    given = parser.parse_args()
    found = [cost for case in CASES for cost in costs(case, given.replications)]
    charts.save(charts.finished(figure(found)), given.figure)
    print(f"figure: {given.figure}")
    for cost in found:
        if cost.exceeds:
            print(f"{cost.case.title}: an interval of {cost.every:,} costs more than it may", file=sys.stderr)
    return any(cost.exceeds for cost in found)


if __name__ == "__main__":
    sys.exit(main())

"""Are posteriors that read the silence calibrated? And the learned curve, beside the naive one.

Means are drawn from the prior, pulls made and rewards delayed; then the posterior is asked where the true mean lies in
it. If it is right, that place is uniform: Kolmogorov and Smirnov say whether it is, the figure by how much it is not.
It takes a minute on two cores; `--replications` sets how many worlds, 1000 unless told.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np
from scipy.special import betainc, kolmogorov

from belated import Conversions, Fixed, Geometric, RewardDependent, charts
from belated.policies import exact, named
from belated.policies.base import hear
from belated.policies.curve import product_limit, tally
from belated.policies.exact import POINTS, ExactState, spread

OUT = Path("out/verify")
ROUNDS = 200
HIDDEN = Conversions(Geometric(0.1), 50)
LATE = (RewardDependent(Fixed(75), Fixed(0)), RewardDependent(Fixed(0), Geometric(0.02)))
LAW, LAGS, SIZE = Geometric(0.025), 100, 600  # of the curve


class Case(NamedTuple):
    """A policy, what it meets, the prior of the means, and whether its posterior is to be right; None for nearly."""

    title: str
    policy: str
    laws: tuple[Any, Any]
    prior: tuple[float, float]
    right: bool | None


RARE, ANY = (2.0, 20.0), (1.0, 1.0)
CASES = (
    Case("exact, reward-dependent", "thompson-silence-exact", LATE, ANY, True),
    Case("exact, conversions", "thompson-silence-exact", (HIDDEN, HIDDEN), ANY, True),
    Case("wait, conversions", "wait", (HIDDEN, HIDDEN), ANY, True),
    Case("effective trials, rare", "thompson-silence-known", (HIDDEN, HIDDEN), RARE, None),
    Case("effective trials, any rate", "thompson-silence-known", (HIDDEN, HIDDEN), ANY, None),
    Case("learned, rare", "thompson-silence", (HIDDEN, HIDDEN), RARE, None),
    Case("learned, any rate", "thompson-silence", (HIDDEN, HIDDEN), ANY, None),
    Case("silence is failure", "silence-is-failure", (HIDDEN, HIDDEN), ANY, False),
    Case("Algorithm 1, reward-dependent", "thompson", LATE, ANY, False),
)


def place(case: Case, seed: int) -> float:
    """The posterior's P(mean <= the true one) of the first of two arms, pulled in turn at random."""
    rng = np.random.default_rng((seed, CASES.index(case)))
    means = rng.beta(*case.prior, 2)
    policy = named(case.policy, prior=case.prior).knowing(case.laws)
    state, due = policy.start(2, ROUNDS), {}
    exact.spread = lambda state, arm: None  # nothing is drawn on the way, so the grid is laid once, at the end
    for t in range(1, ROUNDS + 1):
        arm, v = int(rng.integers(2)), rng.random()
        reward = float(rng.random() < means[arm])
        state.sent(t, arm)
        law = case.laws[arm]
        wait, shown = law.delay(None, t, reward, v), law.revealed(None, t, reward, v)
        due.setdefault(t + wait, []).append((t, arm, shown))
        for s, who, what in due.pop(t, []):
            hear(state, t, s, who, what, rng)
    theta = means[0]
    # What is rare is reported within the window: that is the rate that waiting and learning are about.
    inside = theta * HIDDEN.success.cdf(HIDDEN.window) if case.policy in ("wait", "thompson-silence") else theta
    if isinstance(state, ExactState):
        spread(state, 0)
        at = (math.log(theta / (1 - theta)) - state.point[0, 0]) / state.point[0, 1]
        return float(np.interp(at, np.arange(POINTS), state.cumulative[0] / state.cumulative[0, -1]))
    if case.policy == "thompson-silence-known":
        ones, zeros = state.successes[0], state.floor[0] + max(0.0, state.trials.effective[0] - state.total[0])
    else:
        ones, zeros = state.successes[0], state.failures[0]
    return float(betainc(ones, zeros, inside))


def places(case: Case, replications: int) -> np.ndarray:
    """In order, of as many worlds."""
    return np.sort([place(case, seed) for seed in range(replications)])


def curves() -> list[dict[str, Any]]:
    """The curve from conversions of pulls of all ages, by product limit and by histogram: the mean of 200 samples."""
    law, made = LAW, {"product limit": np.zeros(LAGS), "histogram": np.zeros(LAGS)}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        lags = np.array([law.quantile(v) for v in rng.random(SIZE)])
        ages = rng.integers(1, LAGS + 1, SIZE)
        lags, ages = lags[lags < ages], ages[lags < ages]
        level = np.zeros(LAGS)
        product_limit(*tally(lags, ages, 1, LAGS), level)
        made["product limit"] += level / 200
        made["histogram"] += np.cumsum(np.bincount(lags.astype(int), minlength=LAGS)) / len(lags) / 200
    made["truth"] = np.array([law.cdf(y) for y in range(LAGS)]) / law.cdf(LAGS - 1)
    return [{"curve": name, "lag": y, "level": float(at)} for name, level in made.items() for y, at in enumerate(level)]


def figure(rows: list[dict[str, Any]], learned: list[dict[str, Any]]) -> alt.HConcatChart:
    """How far the distribution of places is from uniform, a panel a case; and the curves."""
    x = alt.X("u:Q", title="place of the true mean", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("excess:Q", title="distribution - u")
    shown = alt.Chart(charts.inline(rows)).properties(width=150, height=110)
    lines = shown.mark_line(color="#0072B2").encode(x=x, y=y)
    band = shown.mark_area(opacity=0.25, color="#999999").encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    panels = alt.layer(band, lines).facet(
        facet=alt.Facet("case:N", title=None, sort=[case.title for case in CASES]), columns=3
    )
    drawn = (
        alt.Chart(charts.inline(learned))
        .mark_line()
        .encode(
            x=alt.X("lag:Q", title="lag"),
            y=alt.Y("level:Q", title="share of conversions by then"),
            color=alt.Color("curve:N", title=None, scale=alt.Scale(range=["#D55E00", "#0072B2", "#000000"])),
            strokeDash=alt.StrokeDash("curve:N"),
        )
    )
    return alt.hconcat(panels, drawn.properties(width=300, height=260, title="The curve from pulls of all ages"))


def main() -> int:
    """Print how calibrated each posterior is, write the figure; 1 if one is not what it is to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    count = parser.parse_args().replications
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(places, CASES, [count] * len(CASES)))
    rows, wrong = [], 0
    reach = 1.36 / math.sqrt(count)  # of Kolmogorov and Smirnov at 5 %
    ranks = (np.arange(count) + 0.5) / count
    for case, u in zip(CASES, found, strict=True):
        distance = float(np.abs(ranks - u).max()) + 0.5 / count
        chance = float(kolmogorov(distance * math.sqrt(count)))
        covered = float(((u > 0.05) & (u < 0.95)).mean())
        verdict = "as it should be" if case.right is None or case.right == (chance > 1e-3) else "WRONG"
        wrong += verdict == "WRONG"
        print(
            f"{case.title:32} KS {distance:.3f}, by chance {chance:8.1e}; 90 % intervals hold {covered:.3f}; {verdict}"
        )
        grid = np.linspace(0, 1, 101)
        excess = np.searchsorted(u, grid) / count - grid
        rows += [
            {"case": case.title, "u": float(at), "excess": float(by), "low": -reach, "high": reach}
            for at, by in zip(grid, excess, strict=True)
        ]
    learned = curves()
    truth = {row["lag"]: row["level"] for row in learned if row["curve"] == "truth"}
    for name in ("product limit", "histogram"):
        off = max(abs(row["level"] - truth[row["lag"]]) for row in learned if row["curve"] == name)
        print(f"{name:32} at most {off:.3f} from the truth, in the mean of 200 samples of {SIZE} pulls' conversions")
    for suffix in (".svg", ".png"):
        charts.save(charts.finished(figure(rows, learned)), OUT / f"silence{suffix}")
    print(f"figure: {OUT / 'silence.svg'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

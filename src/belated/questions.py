"""The questions that the paper leaves open, measured: how the cost of a delay grows with the arms and with the delay.

The cost of a delay is Thompson sampling's regret with it less its regret without, in the same worlds. A model of it is
a straight line in some measure of the axis, fitted to each replication by itself with the weights of the points, so
that the spread of the lines is the error of their mean, whatever the points share. Whether a model is right is asked
apart from that, by Hotelling's test of what it leaves over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from belated.paper import ARMS, ARMS_DELAY, ARMS_MEANS, DELAYS, TWO_ARM_DELAYS, TWO_ARM_MEANS
from belated.result import Comparison, Result, paired

POLICY = "thompson"
MEASURES: dict[str, Callable[[float], float]] = {"linear": float, "logarithmic": math.log}


class Fit(NamedTuple):
    """cost = intercept + slope * measure(x), its slope with a 95 % interval.

    `misfit` is Hotelling's F of the points' distances from any such line: about 1 if the line is right, more if not;
    `chance` is that of one as large if the line is right. Both are nan with too few replications to tell.
    """

    model: str
    intercept: float
    slope: Comparison
    misfit: float
    chance: float

    def at(self, x: float) -> float:
        return self.intercept + self.slope.difference * MEASURES[self.model](x)


class Question(NamedTuple):
    """What was asked, what was measured at each x, and the fits, the best one first."""

    id: str
    title: str
    text: str
    axis: str
    x: tuple[float, ...]
    costs: tuple[Comparison, ...]
    fits: tuple[Fit, ...]
    blind: tuple[float, ...]  # the regret of d rounds in which nothing is known, at each x
    remark: str = ""
    growth: Comparison | None = None  # the last cost by the first, where the first is far from zero

    @property
    def verdict(self) -> str:
        """What the fits say, in words."""
        best = self.fits[0]
        if math.isnan(best.misfit):
            return "too few replications to tell one model from another"
        others = " and ".join(fit.model for fit in self.fits[1:])
        exact = "and it is not refuted" if best.chance >= 0.05 else "though it is not exact"
        return f"{best.model} fits better than {others} (misfit {best.misfit:.1f}), {exact}; {self.remark}"

    def to_dict(self) -> dict[str, Any]:
        fits = [
            {"model": fit.model, "intercept": fit.intercept, **_interval("slope", fit.slope)}
            | {"misfit": _finite(fit.misfit), "chance": _finite(fit.chance)}
            for fit in self.fits
        ]
        return {
            "id": self.id,
            "text": self.text,
            "x": list(self.x),
            "cost": [each.difference for each in self.costs],
            "low": [each.low for each in self.costs],
            "high": [each.high for each in self.costs],
            "blind": list(self.blind),
            "fits": fits,
            "growth": None if self.growth is None else _interval("factor", self.growth),
            "verdict": self.verdict,
        }


def _interval(name: str, found: Comparison) -> dict[str, float]:
    return {name: found.difference, f"{name}_low": found.low, f"{name}_high": found.high}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def fitted(model: str, x: Sequence[float], costs: np.ndarray) -> Fit:
    """The weighted straight line through costs (replications x points) against the model's measure of x.

    >>> costs = np.array([[1.0, 2.9, 5.2], [1.1, 3.2, 4.8], [0.8, 3.0, 5.1]])
    >>> round(fitted("linear", [1.0, 2.0, 3.0], costs).slope.difference, 1)
    2.0
    """
    at = np.array([MEASURES[model](each) for each in x])
    weight = 1.0 / np.maximum(costs.var(axis=0, ddof=1), 1e-12)
    centre = weight @ at / weight.sum()
    slopes = costs @ (weight * (at - centre)) / (weight @ (at - centre) ** 2)
    intercepts = costs @ weight / weight.sum() - slopes * centre
    return Fit(model, float(intercepts.mean()), paired(slopes), *lack_of_fit(at, costs))


def lack_of_fit(at: np.ndarray, costs: np.ndarray) -> tuple[float, float]:
    """Hotelling's F of the contrasts of the points that are zero on every straight line in `at`, and its chance.

    With y a replication's m contrasts and S their covariance, T^2 = n mean(y)' S^-1 mean(y), and T^2 (n - m) /
    (m (n - 1)) has the F law of m and n - m degrees if the mean is a line. Points may share what they like.
    """
    from scipy.special import fdtrc

    count, points = costs.shape
    contrasts = points - 2
    if contrasts < 1 or count <= contrasts + 1:
        return math.nan, math.nan
    whole, _ = np.linalg.qr(np.stack([np.ones(points), at], axis=1), mode="complete")
    y = costs @ whole[:, 2:]
    spread = np.atleast_2d(np.cov(y, rowvar=False))
    if np.linalg.matrix_rank(spread) < contrasts:
        return math.nan, math.nan
    mean = y.mean(axis=0)
    f = float(count * mean @ np.linalg.solve(spread, mean)) * (count - contrasts) / (contrasts * (count - 1))
    return f, float(fdtrc(contrasts, count - contrasts, f))


def growth(first: np.ndarray, last: np.ndarray) -> Comparison:
    """mean(last) / mean(first) with its 95 % interval, to first order: that of the mean of last - ratio * first.

    >>> growth(np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.3, 1.7])).difference
    2.0
    """
    ratio = float(last.mean() / first.mean())
    found = paired((last - ratio * first) / first.mean())
    return found._replace(difference=ratio, low=ratio + found.low, high=ratio + found.high)


def questions(results: Mapping[str, Result]) -> list[Question]:
    """Those whose experiments were all run, with at least two replications."""
    enough = {name: result for name, result in results.items() if result.replications >= 2}
    asked = (_arms(enough), _two_arms(enough), _twenty_arms(enough))
    return [question for question in asked if question is not None]


def _arms(results: Mapping[str, Result]) -> Question | None:
    names = [[f"arms-sweep-{delay}/{arms}" for arms in ARMS] for delay in (ARMS_DELAY, 0)]
    if any(name not in results for each in names for name in each):
        return None
    best, other = ARMS_MEANS
    late, prompt = ([results[name] for name in each] for each in names)
    costs = _costs(late, prompt)
    blind = tuple(ARMS_DELAY * (best - other) * (1.0 - 1.0 / arms) for arms in ARMS)
    where = f"fixed delay {ARMS_DELAY}, means {best:g} and {other:g} for all others"
    text = f"Does the cost of a delay grow with the number of arms K, or with log K? ({where})"
    title = f"R1: cost of a delay of {ARMS_DELAY} rounds by the number of arms"
    asked = _question("R1", title, text, "number of arms K", ARMS, costs, blind)
    grown = growth(costs[:, 0], costs[:, -1])
    times = f"{ARMS[-1] / ARMS[0]:.0f} times the arms"
    remark = f"{times} make it cost {grown.difference:.1f} times as much [{grown.low:.1f}, {grown.high:.1f}]"
    return asked._replace(growth=grown, remark=remark)


def _two_arms(results: Mapping[str, Result]) -> Question | None:
    best, other = TWO_ARM_MEANS
    names = [f"two-arm-sweep/{delay}" for delay in TWO_ARM_DELAYS]
    where = f"two arms, means {best:g} and {other:g}"
    return _delays("R2", where, names, TWO_ARM_DELAYS, 0.5 * (best - other), results)


def _twenty_arms(results: Mapping[str, Result]) -> Question | None:
    names = [f"delay-sweep/{delay}" for delay in DELAYS]
    gap = 0.5 * (20 - 1) / (20 + 1) / 2.0  # the best of 20 uniform means on [1/4, 3/4], less their mean
    return _delays("R2b", "twenty arms, means drawn from [.25, .75]", names, DELAYS, gap, results)


def _delays(
    id: str, where: str, names: Sequence[str], delays: Sequence[int], gap: float, results: Mapping[str, Result]
) -> Question | None:
    """Whether the cost is linear in the delay; the first of the delays is 0. `gap` is that of an arm at random."""
    if any(name not in results for name in names):
        return None
    late = [results[name] for name in names[1:]]
    costs = _costs(late, [results[names[0]]] * len(late))
    blind = tuple(gap * delay for delay in delays[1:])
    text = f"Is the cost of a fixed delay d linear in d? ({where})"
    asked = _question(id, f"{id}: cost of a delay, {where}", text, "delay d in rounds", delays[1:], costs, blind)
    slope = next(fit.slope for fit in asked.fits if fit.model == "linear")
    each = f"a round more of it costs {slope.difference:.3f} [{slope.low:.3f}, {slope.high:.3f}]"
    return asked._replace(remark=f"{each}, a round in which nothing is known {gap:.3f}")


def _costs(late: Sequence[Result], prompt: Sequence[Result]) -> np.ndarray:
    return np.stack(
        [one.finals(POLICY) - other.finals(POLICY) for one, other in zip(late, prompt, strict=True)], axis=1
    )


def _question(
    id: str, title: str, text: str, axis: str, x: Sequence[float], costs: np.ndarray, blind: tuple[float, ...]
) -> Question:
    fits = [fitted(model, x, costs) for model in MEASURES]
    fits.sort(key=lambda fit: math.inf if math.isnan(fit.misfit) else fit.misfit)
    points = tuple(paired(costs[:, place]) for place in range(len(x)))
    return Question(id, title, text, axis, tuple(map(float, x)), points, tuple(fits), blind)

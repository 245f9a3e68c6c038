"""The questions that the paper leaves open, measured: how the cost of a delay grows with the arms and with the delay.

The cost of a delay is Thompson sampling's regret with it less its regret without, in the same worlds. A model of it is a
straight line in some measure of the axis, fitted to each replication by itself with the weights of the points, so that
the spread of the lines is the error of their mean, whatever the points share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from belated.paper import ARMS, BLIND, DELAYS, TWO_ARM_DELAYS
from belated.result import Comparison, Result, paired

POLICY = "thompson"


class Fit(NamedTuple):
    """cost = intercept + slope * measure(x), its slope with a 95 % interval.

    `misfit` is the mean square distance of the points from the line in standard errors, a degree of freedom: about 1 if
    the line is right, more if it is not.
    """

    model: str
    intercept: float
    slope: Comparison
    misfit: float
    line: tuple[float, ...]  # at each x


class Question(NamedTuple):
    """What was asked, what was measured at each x, and the fits."""

    id: str
    text: str
    axis: str
    x: tuple[float, ...]
    costs: tuple[Comparison, ...]
    fits: tuple[Fit, ...]
    reference: tuple[float, ...]  # what the blind first rounds alone cost, at each x

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "text": self.text,
            "x": list(self.x),
            "cost": [each.difference for each in self.costs],
            "low": [each.low for each in self.costs],
            "high": [each.high for each in self.costs],
            "fits": [
                {
                    "model": fit.model,
                    "intercept": fit.intercept,
                    "slope": fit.slope.difference,
                    "low": fit.slope.low,
                    "high": fit.slope.high,
                    "misfit": fit.misfit,
                }
                for fit in self.fits
            ],
        }


def fitted(model: str, measure: Callable[[float], float], x: Sequence[float], costs: np.ndarray) -> Fit:
    """The weighted straight line through costs (replications x points) against measure(x).

    >>> x = [1.0, 2.0, 3.0]
    >>> costs = np.array([[1.0, 2.9, 5.2], [1.1, 3.2, 4.8], [0.8, 3.0, 5.1]])
    >>> round(fitted("linear", float, x, costs).slope.difference, 1)
    2.1
    """
    at = np.array([measure(each) for each in x])
    weight = 1.0 / np.maximum(costs.var(axis=0, ddof=1), 1e-12)
    centre = weight @ at / weight.sum()
    slopes = costs @ (weight * (at - centre)) / (weight @ (at - centre) ** 2)
    intercepts = costs @ weight / weight.sum() - slopes * centre
    line = intercepts.mean() + slopes.mean() * at
    distance = weight * len(costs) @ (costs.mean(axis=0) - line) ** 2
    return Fit(
        model, float(intercepts.mean()), paired(slopes), float(distance / max(1, len(x) - 2)), tuple(line.tolist())
    )


LINEAR = ("linear", float)
LOGARITHMIC = ("logarithmic", math.log)


def _costs(late: Sequence[Result], prompt: Sequence[Result]) -> np.ndarray:
    return np.stack([one.finals(POLICY) - other.finals(POLICY) for one, other in zip(late, prompt, strict=True)], axis=1)


def questions(results: Mapping[str, Result]) -> list[Question]:
    """Those whose experiments were all run, with at least two replications."""
    enough = {name: result for name, result in results.items() if result.replications >= 2}
    asked = (_arms(enough), _two_arms(enough), _twenty_arms(enough))
    return [question for question in asked if question is not None]


def _arms(results: Mapping[str, Result]) -> Question | None:
    names = [[f"arms-sweep-{delay}/{arms}" for arms in ARMS] for delay in (BLIND, 0)]
    if any(name not in results for each in names for name in each):
        return None
    late, prompt = ([results[name] for name in each] for each in names)
    blind = tuple(BLIND * 0.4 * (1.0 - 1.0 / arms) for arms in ARMS)
    text = f"R1: does the cost of a delay ({BLIND} rounds) grow with the number of arms K, or with log K?"
    return _question("R1", text, "number of arms K", ARMS, _costs(late, prompt), blind, (LINEAR, LOGARITHMIC))


def _two_arms(results: Mapping[str, Result]) -> Question | None:
    names = [f"two-arm-sweep/{delay}" for delay in TWO_ARM_DELAYS]
    if any(name not in results for name in names):
        return None
    return _delay_question("R2", "two arms, means .6 and .4", names, TWO_ARM_DELAYS, 0.1, results)


def _twenty_arms(results: Mapping[str, Result]) -> Question | None:
    names = [f"delay-sweep/{delay}" for delay in DELAYS]
    if any(name not in results for name in names):
        return None
    mean_gap = 0.5 * (20 - 1) / (20 + 1) / 2.0  # the best of 20 uniform means on [1/4, 3/4], less their mean
    return _delay_question("R2b", "twenty arms, means drawn", names, DELAYS, mean_gap, results)


def _delay_question(
    id: str, where: str, names: Sequence[str], delays: Sequence[int], gap: float, results: Mapping[str, Result]
) -> Question:
    late = [results[name] for name in names[1:]]
    costs = _costs(late, [results[names[0]]] * len(late))
    blind = tuple(gap * delay for delay in delays[1:])
    text = f"{id[:2]}: is the cost of a fixed delay d linear in d? ({where})"
    return _question(id, text, "delay d in rounds", delays[1:], costs, blind, (LINEAR,))


def _question(
    id: str, text: str, axis: str, x: Sequence[float], costs: np.ndarray, blind: tuple[float, ...], models: Any
) -> Question:
    fits = tuple(fitted(model, measure, x, costs) for model, measure in models)
    points = tuple(paired(costs[:, place]) for place in range(len(x)))
    return Question(id, text, axis, tuple(map(float, x)), points, fits, blind)

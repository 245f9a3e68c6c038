"""How many draws a fixed posterior takes to exceed a cut: the quantity behind the O(·) of the paper's proof."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln, xlog1py, xlogy

from belated.inputs import number, probability
from belated.theory.walks import divergence


def expected_trials(k: int, mean: float, cut: float, rounds: int) -> float:
    """E min{X(k, s(k), y), T}: the draws of Beta(s + 1, k - s + 1) that fail to exceed y before one does, at most T.

    The k rewards are Bernoulli(`mean`), so with p = P(theta > y) = P(Bin(k + 1, y) <= s) it is

        sum over s of Bin(s; k, mean) (1 - p)(1 - (1 - p)^T) / p.

    Binomial weights by logarithms; where p is too small for a number, the last factor is T, its limit. Agrawal & Goyal
    (2013), Lemma 4, in expectation.

    >>> expected_trials(0, 0.6, 0.5, 1000)      # a uniform draw: the mean of a geometric law with p = 1/2
    1.0
    """
    number("k", k, low=0, whole=True)
    probability("mean", mean)
    probability("cut", cut)
    number("rounds", rounds, low=1, whole=True)
    s, weights = _binomial(int(k), mean)
    p, fails = bdtr(s, k + 1, cut), bdtrc(s, k + 1, cut)
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = np.where(p > 1e-300, -fails * np.expm1(rounds * np.log1p(-p)) / p, float(rounds))
    draws[p >= 1.0] = 0.0
    return float(weights @ draws)


def _binomial(k: int, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of ones that have a chance above 1e-300, and their chances."""
    s = np.arange(k + 1.0)
    logs = gammaln(k + 1.0) - gammaln(s + 1.0) - gammaln(k - s + 1.0) + xlogy(s, mean) + xlog1py(k - s, -mean)
    kept = logs > -690.0
    weights = np.exp(logs[kept])
    return s[kept], weights / weights.sum()  # at a million the logarithms are off by 1e-9


def all_trials(mean: float, cut: float, rounds: int) -> tuple[np.ndarray, float]:
    """E min{X(k, s(k), y), T} for k = 0, 1, … at most T, until the sum of the others is below 1e-6; and a bound of it.

    For any c in (y, mean): with more than c k ones the draws are at most 1 / (exp(k d(c, y)) - 1), and fewer have a
    chance of at most exp(-k d(c, mean)) and cost at most T.
    """
    c = 0.5 * (cut + mean)
    few, many = math.exp(-divergence(c, mean)), math.exp(-divergence(c, cut))
    values: list[float] = []
    rest = math.inf
    while len(values) <= rounds and rest > 1e-6:
        values.append(expected_trials(len(values), mean, cut, rounds))
        k = len(values)
        rest = rounds * few**k / (1.0 - few) + many**k / (1.0 - many) / (1.0 - many**k)
    return np.array(values), rest if len(values) <= rounds else 0.0

"""Which arm is the best, by exact Beta posteriors: chances, expected losses, intervals.

With theta_i ~ Beta(a_i, b_i) independent, F_i its distribution function and g_i the density of z = log(theta / (1 -
theta)), all comes from one-dimensional integrals,

    P(theta_i = max) = int g_i prod_{j != i} F_j dz,
    E[max_j theta_j - theta_i] = int F_i (1 - prod_{j != i} F_j) dtheta.

With n = a + b, p = a / n, z0 = log(a / b) and d = z - z0 the density is log-concave and smooth for any a, b > 0,

    log g(z) = log g(z0) + a d - n log(1 + p (e^d - 1)).

The line is cut into panels of 16 Gauss–Legendre points, about as wide as 1.5 deviations of the narrowest density there,
and g is integrated within them from the left (F) and from the right (1 - F), so that small numbers keep their digits.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

POINTS = 16
DEPTH = 50.0
"""A density is left out where it is below exp(-DEPTH) of its peak: no more than 1e-22 of the mass lies beyond."""
TOLERANCE = 1e-11


class Standing(NamedTuple):
    """How likely each arm is the best one, and what is lost, on average, by settling on it."""

    chances: np.ndarray
    losses: np.ndarray


def chances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The probability of each arm to be the best: P(theta_i = max) = int g_i prod_{j != i} F_j dz.

    Absolute errors are below 1e-10, and so is that of the sum, which is not normalised (Thompson, Biometrika 1933).

    >>> chances(np.array([1.0, 2.0]), np.array([1.0, 1.0])).round(6).tolist()
    [0.333333, 0.666667]
    """
    return _checked(a, b, whole=False).chances


def losses(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What each arm is expected to lose to the best: E[max_j theta_j - theta_i] = int F_i (1 - prod_{j != i} F_j) dx.

    The integrand is positive, so small losses keep their digits: nine at 1e-12, six at 1e-18 (Stucchio, Bayesian A/B
    testing at VWO, 2015).

    >>> losses(np.array([1.0, 2.0]), np.array([1.0, 1.0])).round(6).tolist()
    [0.25, 0.083333]
    """
    return standing(a, b).losses


def standing(a: np.ndarray, b: np.ndarray) -> Standing:
    """Chances and losses together: they share their work.

    >>> standing(np.array([3.0]), np.array([4.0])).chances.round(6).tolist()
    [1.0]
    """
    return _checked(a, b, whole=True)


def intervals(a: np.ndarray, b: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """The equal-tailed interval of each arm: F_i(low) = 1 - F_i(high) = (1 - level) / 2.

    >>> low, high = intervals(np.array([1.0]), np.array([1.0]))
    >>> low.round(6).tolist(), high.round(6).tolist()
    ([0.025], [0.975])
    """
    from scipy.special import betainccinv, betaincinv

    tail = (1.0 - level) / 2.0
    return betaincinv(a, b, tail), betainccinv(a, b, tail)


def _checked(a: np.ndarray, b: np.ndarray, whole: bool) -> Standing:
    """The integrals on panels narrow enough that every mass found adds up to 1."""
    arms = _arms(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    for width in (1.5, 0.75, 0.375):
        found, error = _integrated(arms, width, whole)
        if error <= TOLERANCE:
            break
    return found


class _Arms(NamedTuple):
    """Posteriors as densities in z, with the points beyond which they are nil."""

    a: np.ndarray
    b: np.ndarray
    centre: np.ndarray
    peak: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def chosen(self, which: np.ndarray) -> _Arms:
        return _Arms(*(field[which] for field in self))


def _arms(a: np.ndarray, b: np.ndarray) -> _Arms:
    n, centre, count = a + b, np.log(a / b), len(a)
    error = _stirling(np.concatenate([a, b, n]))
    peak = 0.5 * np.log(a * (b / (2.0 * np.pi * n))) - error[:count] - error[count : 2 * count] + error[2 * count :]
    # The left side of Beta(a, b) is the right side of Beta(b, a).
    reach = _reach(np.concatenate([a, b]), np.concatenate([b, a]))
    return _Arms(a, b, centre, peak, centre - reach[count:], centre + reach[:count])


def _stirling(x: np.ndarray) -> np.ndarray:
    """The error of Stirling's formula, log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2."""
    r = 1.0 / np.maximum(x, 10.0)
    s = r * r
    series: np.ndarray = r * (
        1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))
    )
    small = x < 10.0
    if small.any():
        from scipy.special import gammaln

        y = x[small]
        series[small] = gammaln(y) - (y - 0.5) * np.log(y) + y - 0.5 * np.log(2.0 * np.pi)
    return series


def _fall(a: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    """How far log g falls from z0 to z0 + d, as a negative number, reckoned from the side on which nothing cancels."""
    small, n, toward = np.minimum(a, b), a + b, np.where(a <= b, d, -d)
    near = np.minimum(toward, 600.0)  # beyond, the logarithm is linear and the exponential too large
    fall: np.ndarray = small * toward - n * (np.log1p(small / n * np.expm1(near)) + (toward - near))
    return fall


def _reach(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A d > 0 with log g(z0 + d) - log g(z0) at or just below -DEPTH, by Newton's method.

    The function is concave: from the first step on, every iterate is on the far side.
    """
    spread, centre = DEPTH / a, np.log(a / b)
    d: np.ndarray = np.minimum(np.sqrt(2.0 * spread * (a + b) / b), np.log1p(spread + np.sqrt(2.0 * spread)))
    for _ in range(6):
        slope = b * np.exp(-np.logaddexp(0.0, -centre - d)) * np.expm1(-d)
        d = d - (_fall(a, b, d) + DEPTH) / slope
    return d


def _edges(start: float, ends: np.ndarray, roots: np.ndarray, rates: np.ndarray, width: float) -> list[float]:
    """Where panels end, from `start` up to the last of `ends`, the points at which the densities do."""
    order = np.argsort(ends)
    root, rate = (np.maximum.accumulate(each[order][::-1])[::-1].tolist() for each in (roots, rates))
    stops, edges, z, k = ends[order].tolist(), [start], start, 0
    while z < stops[-1]:
        while stops[k] <= z:
            k += 1
        step = _step(z, root[k], rate[k], width)
        z += min(step, _step(z + step, root[k], rate[k], width))
        edges.append(z)
    return edges


def _step(z: float, root: float, rate: float, width: float) -> float:
    """The width of a panel at z: that many deviations, and well within the distance to the singularity at i pi."""
    away = math.exp(-abs(z))
    curvature = root * math.sqrt(away) / (1.0 + away)
    return min(width / max(curvature, rate), 0.4 * width * math.hypot(z, math.pi), 1000.0)


@cache
def _rule() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gauss–Legendre points and weights on [-1, 1], and the integrals up to and from each point."""
    x, w = legendre.leggauss(POINTS)
    values = legendre.legvander(x, POINTS)
    rising = values[:, 1:] - np.column_stack([-np.ones(POINTS), values[:, : POINTS - 1]])
    until = rising @ (values[:, :POINTS] * w[:, None] / 2.0).T
    return x, w, until.T.copy(), (w - until).T.copy()


def _integrated(arms: _Arms, width: float, whole: bool) -> tuple[Standing, float]:
    """Chances, and losses if `whole`, with the error of the masses: then panels reach down to the lowest density."""
    left = float(arms.low.max())  # below it some F_j is nil, and so is their product
    alive = arms.high >= left
    some = arms if alive.all() else arms.chosen(alive)
    grid = _grid(some, left, width, whole)
    density = _density(some, grid)
    below, above, mass = _tails(density, None if whole else some.low < left)
    others, all_below = _others(below, above)
    best = np.einsum("ipm,ipm,m->i", density, np.exp(others), _rule()[1])
    found = np.zeros(len(arms.a))
    found[alive] = best
    error = max(abs(float(best.sum()) - 1.0), float(np.abs(mass - 1.0).max()) if whole else 0.0)
    if not whole:
        return Standing(found, found), error
    lost = np.empty(len(arms.a))
    lost[alive] = np.einsum("ipm,ipm,pm->i", below, 0.0 - np.expm1(others), grid.measure)
    most = -float(np.einsum("pm,pm->", np.expm1(all_below), grid.measure))  # E[max_j theta_j] above the grid's start
    lost[~alive] = most + _difference(grid.start, arms.centre[~alive])
    return Standing(found, lost), error


class _Grid(NamedTuple):
    """Panels of points in z: their middles and half widths, the points from there, and dtheta at each."""

    start: float
    middle: np.ndarray
    half: np.ndarray
    offset: np.ndarray
    measure: np.ndarray


def _grid(arms: _Arms, left: float, width: float, whole: bool) -> _Grid:
    roots = np.sqrt(arms.a + arms.b)
    rates = 1.0 / np.sqrt(_spread(arms.a) + _spread(arms.b))
    edges = _edges(left, arms.high, roots, rates, width)
    if whole:
        down = _edges(-left, -arms.low, roots, rates, width)
        edges = [-z for z in down[:0:-1]] + edges
    ends = np.array(edges)
    x, w = _rule()[:2]
    middle, half = (ends[1:] + ends[:-1]) / 2.0, (ends[1:] - ends[:-1]) / 2.0
    offset = half[:, None] * x
    away = np.exp(-np.abs(middle[:, None] + offset))
    return _Grid(edges[0], middle, half, offset, w * half[:, None] * away / (1.0 + away) ** 2)


def _spread(x: np.ndarray) -> np.ndarray:
    """About the variance of log Gamma(x), psi'(x)."""
    spread: np.ndarray = 1.0 / x + 0.5 / (x * x)
    return spread


def _density(arms: _Arms, grid: _Grid) -> np.ndarray:
    """Each arm's g at every point, times the half width; the logarithm that all arms share is reckoned once.

    Within a panel around m, log g(m + d) = log g(m) + a d - n log(1 + sigma(m) (e^d - 1)), or the mirror image.
    """
    a, b = arms.a[:, None], arms.b[:, None]
    right = grid.middle > 0.0
    toward = np.where(right[:, None], -grid.offset, grid.offset)
    share = np.exp(-np.abs(grid.middle))
    bend = np.log1p((share / (1.0 + share))[:, None] * np.expm1(toward))
    level = arms.peak[:, None] + _fall(a, b, grid.middle - arms.centre[:, None]) + np.log(grid.half)
    density: np.ndarray = np.where(right, b, a)[:, :, None] * toward
    density += level[:, :, None]
    density -= (a + b)[:, :, None] * bend
    np.exp(density, out=density)
    return density


def _tails(density: np.ndarray, cut: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F and 1 - F at every point and the mass of every arm; `cut` are the arms with mass below the grid."""
    _, w, until, since = _rule()
    masses = density @ w
    above = density @ since
    below = density @ until
    sums = np.cumsum(masses, axis=1)
    below[:, 1:] += sums[:, :-1, None]
    above[:, :-1] += np.cumsum(masses[:, :0:-1], axis=1)[:, ::-1, None]
    mass = sums[:, -1]
    if cut is not None:
        below += np.where(cut, np.maximum(1.0 - mass, 0.0), 0.0)[:, None, None]
    return below, above, mass


def _others(below: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of prod_{j != i} F_j and of prod_j F_j: sums of negative numbers only, so nothing cancels."""
    lower = below < 0.5
    logs = np.empty_like(below)
    np.log(np.maximum(below, 1e-300), out=logs, where=lower)
    np.log1p(-np.maximum(above, 0.0), out=logs, where=~lower)
    others = np.zeros_like(logs)
    np.cumsum(logs[:-1], axis=0, out=others[1:])
    all_below = others[-1] + logs[-1]
    others[:-1] += np.cumsum(logs[:0:-1], axis=0)[::-1]
    return others, all_below


def _difference(z: float, others: np.ndarray) -> np.ndarray:
    """sigma(z) - sigma(others), from the side on which nothing cancels."""
    high, low = np.maximum(z, others), np.minimum(z, others)
    size: np.ndarray = np.exp(-np.logaddexp(0.0, -high) - np.logaddexp(0.0, low)) * -np.expm1(low - high)
    return np.where(z >= others, size, -size)

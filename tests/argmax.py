"""The law of the arm that Thompson sampling pulls: random posteriors, many choices, and a chi-square test."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.random import Generator
from scipy.special import chdtrc

from belated import kernels
from belated.live.posterior import chances
from belated.policies.lazy import settle
from belated.policies.thompson import LazyState, counts, lazy_state

KINDS = ("fresh", "concentrated", "tied", "lopsided", "any")


def settled(prior: tuple[float, float], total: np.ndarray, seen: np.ndarray) -> LazyState:
    """The state with that posterior, its bounds made."""
    a, b = counts(prior, len(total))
    state = lazy_state(a + total, b + (seen - total), False)
    settle(state.successes, state.failures, state.log_beta, state.lead, state.scores)
    return state


def posterior(kind: str, rng: Generator, most: int = 300) -> LazyState:
    """The state of Thompson sampling after rewards: some known from the start, others learned one by one."""
    arms = int(np.exp(rng.uniform(np.log(2), np.log(most + 1))))
    scale = {"fresh": 3.0, "concentrated": 1e5, "tied": 300.0, "lopsided": 50.0, "any": 10 ** rng.uniform(0, 6)}[kind]
    means = rng.uniform(size=arms) ** rng.uniform(0.2, 5.0)
    means = np.full(arms, means[0]) if kind == "tied" else means
    seen = np.floor(rng.exponential(scale, arms))
    if kind == "lopsided":  # one arm known far better than the others
        seen[int(rng.integers(arms))] *= 1000.0
    total = rng.binomial(seen.astype(int), means).astype(float)
    if rng.random() < 0.2:
        total *= rng.uniform(0.3, 1.0)  # rewards that are not whole
    pairs = ((1.0, 1.0), (1.0, 1.0), (0.5, 0.5), (0.2, 3.0), (2.5, 1.0))
    state = settled(pairs[int(rng.integers(len(pairs)))], total, seen)
    for _ in range(int(rng.exponential(40.0))):
        arm = state.choose(1, rng) if rng.random() < 0.7 else int(rng.integers(arms))
        state.learn(arm, float(rng.random() < means[arm]), rng)
    return state


def spoiled(state: LazyState) -> LazyState:
    """The same posterior, its densities taken for half of what they are: the hazards are no longer bounds."""
    state.log_beta[:] += np.log(2.0)
    settle(state.successes, state.failures, state.log_beta, state.lead, state.scores)
    return state


@cache
def counter() -> Callable[..., None]:
    """Compiled: count the arms of so many choices."""
    kernels.register_marked()

    @numba.njit(_nrt=False, **kernels.OPTIONS)
    def count(state: Any, rng: Generator, draws: int, counts: np.ndarray) -> None:
        for _ in range(draws):
            counts[state.choose(1, rng)] += 1

    return count  # type: ignore[no-any-return]


def p_value(state: LazyState, exact: np.ndarray, draws: int, rng: Generator) -> float:
    """Of Pearson's chi-square: the arms of so many choices against their exact chances, rare arms put together."""
    counts = np.zeros(len(exact), np.int64)
    counter()(state, rng, draws, counts)
    order = np.argsort(exact)
    ends = [0]
    for place, expected in enumerate(np.cumsum(draws * exact[order])):
        if expected - draws * exact[order][: ends[-1]].sum() >= 20.0:  # enough for a group
            ends.append(place + 1)
    found, wanted = (np.add.reduceat(each[order], ends[:-1]) for each in (counts, draws * exact))
    return float(chdtrc(len(found) - 1, float(((found - wanted) ** 2 / wanted).sum())))


def p_values(
    make: Callable[[LazyState], LazyState], posteriors: int, draws: int, seed: int, most: int = 300
) -> np.ndarray:
    """The p-value of each of so many random posteriors, none of them decided, for the state that `make` makes of it."""
    found = []
    for place in range(posteriors):
        rng = np.random.default_rng([seed, place])
        exact = np.ones(1)
        while exact.max() > 1.0 - 100.0 / draws:  # one arm is as good as always the largest: nothing to test
            state = posterior(KINDS[place % len(KINDS)], rng, most)
            exact = chances(state.successes, state.failures)
        found.append(p_value(make(state), exact, draws, rng))
    return np.array(found)

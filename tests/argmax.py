"""The law of the arm that Thompson sampling pulls: random posteriors, many choices, and a chi-square test."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.random import Generator
from scipy.special import chdtrc

from belated import Thompson, kernels
from belated.live.posterior import chances
from belated.policies.thompson import ThompsonState, thompson_choice

KINDS = ("fresh", "concentrated", "tied", "lopsided", "any")


def posterior(kind: str, rng: Generator, most: int = 300) -> ThompsonState:
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
    state = Thompson(prior=pairs[int(rng.integers(len(pairs)))]).resumed(total, seen)
    for _ in range(int(rng.exponential(40.0))):
        arm = state.choose(1, rng) if rng.random() < 0.7 else int(rng.integers(arms))
        state.learn(arm, float(rng.random() < means[arm]), rng)
    return state


def plain_choice(state: Any, rng: Generator) -> int:
    """Algorithm 1 as it is written."""
    return thompson_choice(state.successes, state.failures, rng)


def lazy_choice(state: Any, rng: Generator) -> int:
    """What the policy does."""
    return state.choose(1, rng)


@cache
def counter(choice: Callable[[Any, Generator], int]) -> Callable[..., None]:
    """Compiled: count the arms of as many choices as `counts` is asked for."""
    kernels.register_marked()
    choose = numba.njit(**kernels.OPTIONS)(choice)

    @numba.njit(_nrt=False, **kernels.OPTIONS)
    def count(state: Any, rng: Generator, draws: int, counts: np.ndarray) -> None:
        for _ in range(draws):
            counts[choose(state, rng)] += 1

    return count  # type: ignore[no-any-return]


def p_value(choice: Callable[[Any, Generator], int], state: ThompsonState, draws: int, rng: Generator) -> float:
    """Of Pearson's chi-square: the arms of so many choices against their exact chances, rare arms put together."""
    counts = np.zeros(len(state.successes), np.int64)
    counter(choice)(state, rng, draws, counts)
    expected = draws * chances(state.successes, state.failures)
    order = np.argsort(expected)
    groups = np.cumsum(expected[order]) // 20.0  # at least some twenty expected in each
    _, starts = np.unique(groups, return_index=True)
    found, wanted = (np.add.reduceat(each[order], starts) for each in (counts, expected))
    wanted = np.maximum(wanted, 1e-9)
    if len(starts) == 1:
        return 1.0
    return float(chdtrc(len(starts) - 1, float(((found - wanted) ** 2 / wanted).sum())))

"""Thompson sampling, unchanged under delay: the paper's Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator

from belated.inputs import InvalidInput, flag, number
from belated.marks import compiled
from belated.policies.base import Policy, beta
from belated.policies.lazy import Lead, Scratch, lazy_choice, lazy_learn, log_normaliser, new_lead, new_scratch

Prior: TypeAlias = tuple[float, float] | tuple[tuple[float, float], ...]
"""(a, b) of a Beta prior, the same for each arm, or one such pair an arm."""


def checked_prior(given: object) -> Prior:
    """One pair of positive numbers, or a tuple of such; refuse what is neither."""
    if isinstance(given, tuple | list) and given and all(isinstance(pair, tuple | list) for pair in given):
        return tuple(_pair(pair) for pair in given)
    return _pair(given)


def counts(prior: Prior, arms: int) -> tuple[np.ndarray, np.ndarray]:
    """The a and the b of each arm."""
    pairs = np.array(prior)
    if pairs.ndim == 2 and len(pairs) != arms:
        raise InvalidInput("policy.prior", f"must be one pair or one for each of {arms} arms, got {len(pairs)}")
    pairs = np.broadcast_to(pairs, (arms, 2))
    return pairs[:, 0].copy(), pairs[:, 1].copy()


@compiled
def thompson_choice(successes: Any, failures: Any, rng: Generator) -> int:
    """The arm of the largest Beta draw."""
    best, highest = 0, -1.0
    for arm in range(len(successes)):
        theta = beta(rng, successes[arm], failures[arm])
        if theta > highest:
            best, highest = arm, theta
    return best


@compiled
def credited(reward: float, coin: bool, rng: Generator) -> float:
    """The reward itself, or the toss of a coin with that chance."""
    if coin and 0.0 < reward < 1.0:
        return 1.0 if rng.random() < reward else 0.0
    return reward


class ThompsonState(NamedTuple):
    """Algorithm 1 as it is written: a posterior, of which every arm is drawn."""

    successes: np.ndarray  # S_i + a, with the prior's a
    failures: np.ndarray  # F_i + b
    coin: bool

    def choose(self, t: int, rng: Generator) -> int:
        return thompson_choice(self.successes, self.failures, rng)

    def sent(self, t: int, arm: int) -> None:
        pass

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        reward = credited(reward, self.coin, rng)
        self.successes[arm] += reward
        self.failures[arm] += 1.0 - reward


class LazyState(NamedTuple):
    """The same posterior, of which only what can win is drawn: the same law, at a fraction of the cost."""

    successes: np.ndarray
    failures: np.ndarray
    log_beta: np.ndarray
    lead: Lead
    scores: Scratch
    coin: bool

    def choose(self, t: int, rng: Generator) -> int:
        return lazy_choice(self.successes, self.failures, self.log_beta, self.lead, self.scores, rng)

    def sent(self, t: int, arm: int) -> None:
        pass

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        reward = credited(reward, self.coin, rng)
        lazy_learn(self.successes, self.failures, self.log_beta, self.lead, self.scores, arm, reward)


def lazy_state(a: np.ndarray, b: np.ndarray, coin: bool) -> LazyState:
    """The state with these Beta(a, b)."""
    log_beta = np.array([log_normaliser(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)])
    return LazyState(a, b, log_beta, new_lead(log_beta), new_scratch(len(a)), coin)


@dataclass(frozen=True)
class Thompson(Policy):
    """Thompson sampling: pull the arm with the largest posterior draw.

    theta_i ~ Beta(S_i + a, F_i + b), S_i and F_i from the revealed rewards; pull the largest theta_i. Wu & Wager
    (2022), Algorithm 1. `prior` is (a, b), the same for each arm, or one such pair an arm. A reward r strictly between
    0 and 1 adds r to S and 1 - r to F, as the paper writes it, or with `coin` the toss of a Bernoulli(r), as Agrawal &
    Goyal analyse it. With `lazy` only what can win is drawn, which changes no chance (docs/theory.md). A live
    experiment draws every arm: what it chooses follows from its totals, and bounds pay only if they are kept.

    >>> Thompson().start(arms=2, rounds=100).successes
    array([1., 1.])
    """

    name: ClassVar[str] = "thompson"

    prior: Prior = (1.0, 1.0)
    coin: bool = False
    lazy: bool = True

    def __post_init__(self) -> None:
        flag("policy.coin", self.coin)
        flag("policy.lazy", self.lazy)
        object.__setattr__(self, "prior", checked_prior(self.prior))

    def start(self, arms: int, rounds: int) -> ThompsonState | LazyState:
        a, b = counts(self.prior, arms)
        return lazy_state(a, b, self.coin) if self.lazy else ThompsonState(a, b, self.coin)

    def resumed(self, total: np.ndarray, seen: np.ndarray) -> ThompsonState:
        a, b = counts(self.prior, len(total))
        return ThompsonState(a + total, b + (seen - total), self.coin)


def _pair(pair: object) -> tuple[float, float]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidInput("policy.prior", f"must be two numbers, got {pair!r}")
    for value in pair:
        number("policy.prior", value, above=0.0)
    return float(pair[0]), float(pair[1])

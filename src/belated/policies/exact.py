"""The posterior of an arm's mean when both rewards have a delay of their own, by quadrature.

A pull pending at age a has the likelihood theta (1 - tau_1(a)) + (1 - theta) (1 - tau_0(a)), tau_r the CDF of the delay
of a reward r: linear in theta, alpha + beta theta. So an arm's posterior is

    theta^(S + a - 1) (1 - theta)^(F + b - 1) prod over pending pulls of (alpha + beta theta),

of one variable, and is kept at the points of a grid, equally spaced in the logit of theta around its mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.delays import Conversions, RewardDependent
from belated.law import Law, refuse_unless_known, steps
from belated.marks import compiled
from belated.policies.curve import certainty, product_limit

POINTS, REACH = 48, 6.0  # of the grid, and how many standard deviations it reaches to either side


class ExactState(NamedTuple):
    """What the policy remembers. Rounds are taken together in blocks; those of the last one are not read yet."""

    counts: np.ndarray  # S + a and F + b, by arm
    pending: np.ndarray  # by arm and block; in place 0, what is older than all windows
    level: np.ndarray  # tau_0 and tau_1, by reward, arm and bin of age
    reported: np.ndarray  # by arm: whether failures are reported before a window ends
    point: np.ndarray  # by arm: the first point of the grid, in logits, and the step
    log: np.ndarray  # by arm and point: of the density
    cumulative: np.ndarray
    silence: np.ndarray  # scratch: of one arm, as `gather` lists it
    learning: Any  # a Delays, if the curves are learned; else an empty one
    blocks: np.ndarray  # [0]: how many are complete
    width: int
    doubt: float

    def choose(self, t: int, rng: Generator) -> int:
        best, highest = 0, -math.inf
        for arm in range(len(self.point)):
            logit = drawn(self.cumulative[arm], self.point[arm, 0], self.point[arm, 1], rng)
            if logit > highest:
                best, highest = arm, logit
        return best

    def sent(self, t: int, arm: int) -> None:
        self.pending[arm, (t - 1) // self.width + 1] += 1.0
        if t % self.width == 0:
            self.blocks[0] = t // self.width
            retire(self)
            if len(self.learning.events) > 0:
                learn_delays(self)
            for other in range(len(self.point)):
                spread(self, other)

    def heard(self, t: int, s: int, arm: int, reward: float, rng: Generator) -> None:
        if reward <= 0.5 and not self.reported[arm]:
            return  # it says no more than that its window has closed
        block = (s - 1) // self.width
        age = self.blocks[0] - 1 - block
        self.counts[arm, 0] += reward
        self.counts[arm, 1] += 1.0 - reward
        place = block + 1 if age < self.level.shape[2] - 1 or self.reported[arm] else 0
        self.pending[arm, place] -= 1.0
        if len(self.learning.events) > 0:
            self.learning.fresh[int(reward > 0.5), arm, block, (t - s) // self.width % 2] += 1.0


class Delays(NamedTuple):
    """What is counted to learn the delays: by reward, arm and bin, as in `LearnedState`, but of each arm by itself."""

    fresh: np.ndarray
    counted: np.ndarray
    events: np.ndarray
    risk: np.ndarray
    curve: np.ndarray  # scratch
    lost: np.ndarray  # by arm: the share of rewards that never come, whatever they are


@compiled
def factor(state: ExactState, arm: int, age: int) -> tuple[float, float]:
    """Alpha and beta of a pull whose age is in that bin."""
    k = min(age, state.level.shape[2] - 1)
    zero, one = state.level[0, arm, k], state.level[1, arm, k]
    return 1.0 - zero, zero - one


@compiled
def gather(state: ExactState, arm: int) -> int:
    """List an arm's silence: how many pulls are pending at each age that tells, with alpha and beta; its length."""
    silence, size, oldest = state.silence, 0, max(1, state.blocks[0] - state.level.shape[2] + 2)
    for turn in range(oldest - 1, state.blocks[0] + 1):
        place = turn if turn >= oldest else 0
        count = state.pending[arm, place]
        if count > 0.0:
            alpha, beta = factor(state, arm, state.blocks[0] - place)
            if size > 0 and silence[1, size - 1] == alpha and silence[2, size - 1] == beta:
                silence[0, size - 1] += count
            elif beta != 0.0:
                silence[0, size], silence[1, size], silence[2, size] = count, alpha, beta
                size += 1
    return size


@compiled
def slope(state: ExactState, arm: int, size: int, logit: float) -> float:
    """Of the log density in the logit of theta."""
    theta = 1.0 / (1.0 + math.exp(-logit))
    total: float = state.counts[arm, 0] * (1.0 - theta) - state.counts[arm, 1] * theta
    for j in range(size):
        count, alpha, beta = state.silence[0, j], state.silence[1, j], state.silence[2, j]
        total += count * beta * theta * (1.0 - theta) / max(1e-12, alpha + beta * theta)
    return total


@compiled
def spread(state: ExactState, arm: int) -> None:
    """Lay the grid around the mode, as wide as the posterior is, and fill it."""
    size = gather(state, arm)
    low, high = -30.0, 30.0
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        if slope(state, arm, size, middle) > 0.0:
            low = middle
        else:
            high = middle
    mode = 0.5 * (low + high)
    bend = (slope(state, arm, size, mode - 0.05) - slope(state, arm, size, mode + 0.05)) / 0.1
    reach = REACH / math.sqrt(max(bend, 0.1))
    state.point[arm, 0] = mode - reach
    state.point[arm, 1] = 2.0 * reach / (POINTS - 1)
    for g in range(POINTS):
        logit = state.point[arm, 0] + g * state.point[arm, 1]
        theta = 1.0 / (1.0 + math.exp(-logit))
        # ln(1 - theta) = -logit + ln theta
        total = (state.counts[arm, 0] + state.counts[arm, 1]) * math.log(theta) - state.counts[arm, 1] * logit
        for j in range(size):
            count, alpha, beta = state.silence[0, j], state.silence[1, j], state.silence[2, j]
            total += count * math.log(max(1e-12, alpha + beta * theta))
        state.log[arm, g] = total
    accumulate(state.log[arm], state.cumulative[arm])


@compiled
def accumulate(log: Any, cumulative: Any) -> None:
    """The distribution function, by trapezes, up to a factor."""
    top = log[0]
    for g in range(len(log)):
        top = max(top, log[g])
    cumulative[0] = 0.0
    before = math.exp(log[0] - top)
    for g in range(1, len(log)):
        after = math.exp(log[g] - top)
        cumulative[g] = cumulative[g - 1] + 0.5 * (before + after)
        before = after


@compiled
def drawn(cumulative: Any, first: float, step: float, rng: Generator) -> float:
    """A draw from a density on equally spaced points."""
    u = rng.random() * cumulative[-1]
    low, high = 0, len(cumulative) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if cumulative[middle] <= u:
            low = middle
        else:
            high = middle
    width = cumulative[high] - cumulative[low]
    return first + step * (low + (u - cumulative[low]) / width if width > 0.0 else low)


@compiled
def retire(state: ExactState) -> None:
    """What is older than all windows is taken together; only where failures are not reported does it stay pending."""
    place = state.blocks[0] - (state.level.shape[2] - 1)
    if place >= 1:
        for arm in range(len(state.point)):
            if not state.reported[arm]:
                state.pending[arm, 0] += state.pending[arm, place]
                state.pending[arm, place] = 0.0


@compiled
def learn_delays(state: ExactState) -> None:
    """Each block is a bin older; then tau_r = n / (n + doubt) times the product limit of the arm's own rewards r."""
    newest, delays = state.blocks[0] - 1, state.learning
    for reward in range(2):
        for arm in range(len(state.point)):
            for k in range(1, newest + 1):
                block, parity = newest - k, (k - 1) % 2
                fresh = delays.fresh[reward, arm, block, parity]
                delays.fresh[reward, arm, block, parity] = 0.0
                delays.counted[reward, arm, block] += fresh
                delays.events[reward, arm, k - 1] += fresh
                delays.risk[reward, arm, k - 1] += delays.counted[reward, arm, block]
            product_limit(delays.events[reward, arm], delays.risk[reward, arm], delays.curve)
            known, before = 0.0, 0.0
            for k in range(newest + 1):
                known += delays.events[reward, arm, k]
            for k in range(newest + 1):
                middle = 0.5 * (before + delays.curve[k])
                state.level[reward, arm, k] = certainty(known, state.doubt) * middle
                before = delays.curve[k]
    for arm in range(len(state.point)):
        lose(state, arm)


@compiled
def lose(state: ExactState, arm: int) -> None:
    """One step of expectation and maximisation for the share that never comes; tau_r is that much less."""
    newest, lost = state.blocks[0] - 1, state.learning.lost[arm]
    theta = 1.0 / (1.0 + math.exp(-state.point[arm, 0] - 0.5 * (POINTS - 1) * state.point[arm, 1]))
    never, pulls = 0.0, 0.0
    for k in range(newest + 1):
        count = state.pending[arm, newest - k + 1]
        late = theta * (1.0 - state.level[1, arm, k]) + (1.0 - theta) * (1.0 - state.level[0, arm, k])
        never += count * lost / (lost + (1.0 - lost) * late)
        pulls += count
    pulls += state.counts[arm, 0] + state.counts[arm, 1]
    state.learning.lost[arm] = max(1e-9, never / pulls)
    for k in range(newest + 1):
        for reward in range(2):
            state.level[reward, arm, k] *= 1.0 - state.learning.lost[arm]


# --- How it starts --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def cdf_by_age(law: Law, limit: int) -> np.ndarray:
    """P(l <= age), for ages 0 to `limit`."""
    masses = np.zeros(limit + 1)
    for d, mass in steps(law, limit):
        masses[int(d)] = mass
    return np.cumsum(masses)


def levels(law: Law, width: int, bins: int, limit: int) -> np.ndarray:
    """tau_0 and tau_1 in the middle of each bin of age; under Conversions no failure is reported, ever."""
    middles = np.minimum(np.arange(bins) * width + (width - 1) // 2, limit)
    if isinstance(law, Conversions):
        ages = np.minimum(middles, int(law.window))
        refuse_unless_known("policy.delay", law.success)
        return np.stack([np.zeros(bins), cdf_by_age(law.success, int(law.window))[ages]])
    pair = (law.failure, law.success) if isinstance(law, RewardDependent) else (law, law)
    for each in pair:
        refuse_unless_known("policy.delay", each)
    return np.stack([cdf_by_age(each, limit)[middles] for each in pair])


def exact_state(
    a: np.ndarray, b: np.ndarray, laws: Sequence[Law] | None, rounds: int, blocks: int, doubt: float
) -> ExactState:
    """Before the first round, with that many `blocks` in a window, or in a sixteenth of the rounds.

    Without laws the delays are learned.
    """
    arms = len(a)
    windows = [int(law.window) for law in laws or () if isinstance(law, Conversions)]
    window = max(windows) if laws is not None and len(windows) == arms else None
    width = max(1, math.ceil((rounds / 16 if window is None else window) / blocks))
    total = math.ceil(rounds / width) + 1
    bins = total if window is None else max(1, math.ceil(window / width)) + 1
    size = 0 if laws is not None else total
    delays = Delays(
        np.zeros((2 if size else 0, arms, size, 2)),
        np.zeros((2 if size else 0, arms, size)),
        np.zeros((2 if size else 0, arms, size)),
        np.zeros((2 if size else 0, arms, size)),
        np.zeros(size),
        np.full(arms, 0.02),
    )
    level = np.zeros((2, arms, bins))
    if laws is not None:
        level = np.stack([levels(law, width, bins, rounds) for law in laws], axis=1)
    state = ExactState(
        counts=np.stack([a, b], axis=1),
        pending=np.zeros((arms, total + 1)),
        level=level,
        reported=np.array([not isinstance(law, Conversions) for law in laws] if laws is not None else [True] * arms),
        point=np.zeros((arms, 2)),
        log=np.zeros((arms, POINTS)),
        cumulative=np.zeros((arms, POINTS)),
        silence=np.zeros((3, total + 1)),
        learning=delays,
        blocks=np.zeros(1, np.int64),
        width=width,
        doubt=float(doubt),
    )
    for arm in range(arms):
        spread(state, arm)
    return state

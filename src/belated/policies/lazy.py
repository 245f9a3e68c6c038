"""Thompson sampling that draws only what can win: the argmax has the law of drawing every arm, at a fraction of the cost.

The *leader* is an arm of large posterior mean, the *level* a number that its draw hardly ever falls below. Each other arm
has a *hazard*: an upper bound of -log P(theta <= level), so that it exceeds the level with a chance of at most
1 - exp(-hazard). Hazards add up, and one exponential variable that exceeds their sum settles all arms at once: the leader
is the largest, and nothing is drawn. docs/theory.md has the proof.

The state is [a, b and log B(a, b) of each arm] and what is known of the leader.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.marks import compiled
from belated.policies.base import beta

LEADER, DUE = 0, 1  # places in `Lead.arm`
LEVEL, LOW, HIGH = 0, 1, 2  # places in `Lead.bounds`
DEVIATIONS = 2.5  # by how many standard deviations the level lies below the leader's mean
SMALLEST, LARGEST = 1e-300, 1.0 - 2.0**-53  # where logarithms are finite
LOG2_E = math.log2(math.e)


class Lead(NamedTuple):
    """What is known of the leader."""

    arm: np.ndarray  # which arm it is; how many rewards until it is looked for again
    bounds: np.ndarray  # the level; the hazard that the leader is below it; that any other arm is above


class Scratch(NamedTuple):
    """Numbers that can also be written by their bits: the two arrays are the same memory."""

    number: np.ndarray
    bits: np.ndarray


def new_lead() -> Lead:
    """No leader yet."""
    return Lead(np.zeros(2, np.int64), np.zeros(3))


def new_scratch(arms: int) -> Scratch:
    """Scratch for so many arms."""
    number = np.zeros(arms)
    return Scratch(number, number.view(np.int64))


@compiled
def log_normaliser(a: float, b: float) -> float:
    """log B(a, b); -inf where the Beta(a, b) density is not log-concave, and no bound will be known of it."""
    if a < 1.0 or b < 1.0:
        return -math.inf
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@compiled
def hazard_beyond(a: float, b: float, log_b: float, level: float) -> float:
    """An upper bound of -log P(theta <= level) for theta ~ Beta(a, b), infinite if none is known.

    Above its mode a log-concave density f lies below f(level) exp(-slope (x - level)), slope = -(log f)'(level), and below
    f(level): so the mass beyond is at most q = f(level) / rate, and -log(1 - q) <= q / (1 - q).
    """
    slope = (b - 1.0) / (1.0 - level) - (a - 1.0) / level
    if slope < 0.0:
        return math.inf
    rate = max(slope, 1.0 / (1.0 - level))
    f = math.exp(min(700.0, (a - 1.0) * math.log(level) + (b - 1.0) * math.log1p(-level) - log_b))
    return f / (rate - f) if f < rate else math.inf


@compiled
def fill_hazards(a: Any, b: Any, log_b: Any, scratch: Any, level: float) -> None:
    """`hazard_beyond` for many arms, a little larger: a number of the bits (x + 1023) 2^52 is at least 2^x."""
    log, log_rest = LOG2_E * math.log(level), LOG2_E * math.log1p(-level)
    inverse, inverse_rest = 1.0 / level, 1.0 / (1.0 - level)
    number, bits = scratch.number, scratch.bits
    for i in range(len(a)):
        power = (a[i] - 1.0) * log + (b[i] - 1.0) * log_rest - LOG2_E * log_b[i]
        bits[i] = int((min(max(power, -1000.0), 1000.0) + 1023.0) * 2.0**52)
    for i in range(len(a)):
        slope = (b[i] - 1.0) * inverse_rest - (a[i] - 1.0) * inverse
        rate = max(slope, inverse_rest)
        f = number[i]
        number[i] = f / (rate - f) if slope >= 0.0 and f < rate else math.inf


@compiled
def beyond(rng: Generator, a: float, b: float, log_b: float, level: float, hazard: float) -> float:
    """A draw of theta ~ Beta(a, b) if it exceeds the level, for an arm chosen with probability 1 - exp(-hazard); or 0."""
    if hazard == math.inf:
        return beta(rng, a, b)
    slope = (b - 1.0) / (1.0 - level) - (a - 1.0) / level
    rate = max(slope, 1.0 / (1.0 - level))
    if slope < rate:
        fall = 0.0
        x = level + (1.0 - level) * rng.random()
    else:
        fall = rng.standard_exponential()
        x = level + fall / rate
    if x >= 1.0:
        return 0.0
    log_f = (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_b
    chosen = -math.expm1(-hazard)
    return x if rng.random() * chosen * rate < math.exp(log_f + fall) else 0.0


@compiled
def highest_beyond(
    a: Any, b: Any, log_b: Any, scratch: Any, leader: int, level: float, left: float, rng: Generator
) -> tuple[int, float]:
    """The arm of the largest draw beyond the level, and the draw; the leader if there is none. `left` is exponential."""
    best, start = leader, 0
    while start < len(a):
        part = Scratch(scratch.number[start:], scratch.bits[start:])
        fill_hazards(a[start:], b[start:], log_b[start:], part, min(max(level, SMALLEST), LARGEST))
        for arm in range(start, len(a)):
            hazard = scratch.number[arm]
            start = arm + 1
            if arm == leader:
                continue
            if hazard <= left:
                left -= hazard
                continue
            left = rng.standard_exponential()
            x = beyond(rng, a[arm], b[arm], log_b[arm], level, hazard)
            if x > level:
                best, level = arm, x
                break
    return best, level


@compiled
def lazy_choice(a: Any, b: Any, log_b: Any, lead: Any, scratch: Any, rng: Generator) -> int:
    """An arm with the law of the argmax of the draws theta_i ~ Beta(a_i, b_i)."""
    leader = int(lead.arm[LEADER])
    level, low, high = lead.bounds[LEVEL], lead.bounds[LOW], lead.bounds[HIGH]
    left = rng.standard_exponential()
    if left >= low + high:
        return leader
    if left < low:  # the leader may be below the level
        if low == math.inf:
            theta = beta(rng, a[leader], b[leader])
        else:
            theta = 1.0 - beyond(rng, b[leader], a[leader], log_b[leader], 1.0 - level, low)
            if theta >= level:
                theta = at_least(rng, a[leader], b[leader], level)
        return highest_beyond(a, b, log_b, scratch, leader, theta, rng.standard_exponential(), rng)[0]
    arm, x = highest_beyond(a, b, log_b, scratch, leader, level, left - low, rng)
    if arm != leader and x < at_least(rng, a[leader], b[leader], level):
        return leader
    return arm


@compiled
def at_least(rng: Generator, a: float, b: float, level: float) -> float:
    """A draw of theta ~ Beta(a, b), given that it is at least the level."""
    while True:
        theta = beta(rng, a, b)
        if theta >= level:
            return theta


@compiled
def lazy_learn(a: Any, b: Any, log_b: Any, lead: Any, scratch: Any, arm: int, reward: float) -> None:
    """Add a reward to the posterior of its arm, and keep the bounds true."""
    if log_b[arm] > -math.inf and (reward == 0.0 or reward == 1.0):
        log_b[arm] += math.log((a[arm] if reward == 1.0 else b[arm]) / (a[arm] + b[arm]))
        a[arm] += reward
        b[arm] += 1.0 - reward
    else:
        a[arm] += reward
        b[arm] += 1.0 - reward
        log_b[arm] = log_normaliser(a[arm], b[arm])
    leader, bounds = lead.arm[LEADER], lead.bounds
    if arm != leader:
        if a[arm] * b[leader] > a[leader] * b[arm]:
            lead.arm[LEADER] = arm
            unsettle(lead)
        elif bounds[LEVEL] < 1.0:
            part = Scratch(scratch.number[arm : arm + 1], scratch.bits[arm : arm + 1])
            one = slice(arm, arm + 1)
            fill_hazards(a[one], b[one], log_b[one], part, bounds[LEVEL])
            bounds[HIGH] += scratch.number[arm]
    elif reward < 1.0 and bounds[LEVEL] < 1.0:  # a success only makes it larger
        bounds[LOW] = hazard_beyond(b[arm], a[arm], log_b[arm], 1.0 - bounds[LEVEL])
    if bounds[LOW] + bounds[HIGH] > 1.0:
        unsettle(lead)
    lead.arm[DUE] -= 1
    if lead.arm[DUE] <= 0:
        settle(a, b, log_b, lead, scratch)


@compiled
def unsettle(lead: Any) -> None:
    """Know nothing of the leader: every choice draws it."""
    lead.bounds[LEVEL], lead.bounds[LOW], lead.bounds[HIGH] = 1.0, math.inf, math.inf


@compiled
def settle(a: Any, b: Any, log_b: Any, lead: Any, scratch: Any) -> None:
    """Take the arm of the largest mean for the leader, and find a level that it hardly ever falls below."""
    leader = 0
    for arm in range(1, len(a)):
        if a[arm] * b[leader] > a[leader] * b[arm]:
            leader = arm
    n = a[leader] + b[leader]
    mean = a[leader] / n
    level = mean - DEVIATIONS * math.sqrt(mean * (1.0 - mean) / n)
    log_b[leader] = log_normaliser(a[leader], b[leader])  # so that rounding does not build up
    lead.arm[LEADER], lead.arm[DUE] = leader, 32 + int(0.125 * n)
    unsettle(lead)
    if level <= 0.0 or log_b[leader] == -math.inf:
        return
    low, high = hazard_beyond(b[leader], a[leader], log_b[leader], 1.0 - level), 0.0
    fill_hazards(a, b, log_b, scratch, level)
    for arm in range(len(a)):
        if arm != leader:
            high += scratch.number[arm]
    high *= 1.0 + 1e-9  # more than rounding can take from the sum
    if low + high < 1.0:
        lead.bounds[LEVEL], lead.bounds[LOW], lead.bounds[HIGH] = level, low, high

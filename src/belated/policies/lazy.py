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

    With f its log-concave density and slope = -(log f)'(level), f(x) <= f(level) exp(-slope (x - level)). So the mass
    beyond the level is at most q = f(level) / rate with either the slope for a rate, or 1 / (1 - level), reduced if f
    rises there; and -log(1 - q) <= q / (1 - q).
    """
    slope = (b - 1.0) / (1.0 - level) - (a - 1.0) / level
    rate = max(slope, 1.0 / (1.0 - level) + min(slope, 0.0))
    f = math.exp(min(700.0, (a - 1.0) * math.log(level) + (b - 1.0) * math.log1p(-level) - log_b))
    return f / (rate - f) if f < rate else math.inf


@compiled
def fill_hazards(a: Any, b: Any, log_b: Any, scratch: Any, level: float) -> None:
    """`hazard_beyond` of many arms, slightly larger: a number whose bits are (x + 1023) 2^52 is at least 2^x."""
    log, log_rest = LOG2_E * math.log(level), LOG2_E * math.log1p(-level)
    inverse, inverse_rest = 1.0 / level, 1.0 / (1.0 - level)
    number, bits = scratch.number, scratch.bits
    for i in range(len(a)):
        power = (a[i] - 1.0) * log + (b[i] - 1.0) * log_rest - LOG2_E * log_b[i]
        bits[i] = int((min(max(power, -1000.0), 1000.0) + 1023.0) * 2.0**52)
    for i in range(len(a)):
        slope = (b[i] - 1.0) * inverse_rest - (a[i] - 1.0) * inverse
        rate = max(slope, inverse_rest + min(slope, 0.0))
        f = number[i]
        number[i] = f / (rate - f) if f < rate else math.inf


@compiled
def beyond(rng: Generator, a: float, b: float, log_b: float, level: float, hazard: float) -> float:
    """What an arm that was chosen with probability 1 - exp(-hazard) draws, if that exceeds the level; otherwise 0."""
    if hazard == math.inf:
        return beta(rng, a, b)
    rest = 1.0 - level
    slope = (b - 1.0) / rest - (a - 1.0) / level
    if slope * rest < 1.0:
        x, density = level + rest * rng.random(), 1.0 / rest
    else:
        fall = rng.standard_exponential()
        x, density = level + fall / slope, slope * math.exp(-fall)
    if x >= 1.0:
        return 0.0
    f = math.exp((a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_b)
    return x if rng.random() * density * -math.expm1(-hazard) < f else 0.0


@compiled
def first_reached(hazards: Any, start: int, left: float) -> tuple[int, float]:
    """The first arm from `start` on whose hazard exceeds what those before it leave of `left`; and what they leave."""
    while start < len(hazards):
        if start + 8 <= len(hazards):
            h = hazards[start : start + 8]
            total = ((h[0] + h[1]) + (h[2] + h[3])) + ((h[4] + h[5]) + (h[6] + h[7]))
            if total <= left:
                left -= total
                start += 8
                continue
        for arm in range(start, min(start + 8, len(hazards))):
            if hazards[arm] > left:
                return arm, left
            left -= hazards[arm]
        start += 8
    return len(hazards), left


@compiled
def highest_beyond(
    a: Any, b: Any, log_b: Any, scratch: Any, leader: int, level: float, left: float, rng: Generator
) -> tuple[int, float]:
    """The arm of the largest draw beyond the level, the leader's left out, and the draw; the leader if there is none."""
    best, start, hazards = leader, 0, scratch.number
    while start < len(a):
        part = Scratch(hazards[start:], scratch.bits[start:])
        fill_hazards(a[start:], b[start:], log_b[start:], part, min(max(level, SMALLEST), LARGEST))
        hazards[leader] = 0.0
        start, left = first_reached(hazards, start, left)
        while start < len(a):
            arm, start = start, start + 1
            x = beyond(rng, a[arm], b[arm], log_b[arm], level, hazards[arm])
            left = rng.standard_exponential()
            if x > level:
                best, level = arm, x
                break  # the arms to come must exceed this one
            start, left = first_reached(hazards, start, left)
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

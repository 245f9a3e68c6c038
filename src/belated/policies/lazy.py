"""Thompson sampling that draws only what can win: the arm has the law of Algorithm 1, at a fraction of its cost.

The *leader* is the arm of the largest posterior mean. Each other arm has a *hazard*: an upper bound of -log P(theta <=
level), so that it exceeds the level with a chance of at most 1 - exp(-hazard). Hazards add up: one exponential variable
above their sum says that no arm exceeds the level. Where the leader hardly ever falls below a level that hardly any
other arm exceeds, that settles most rounds, and nothing at all is drawn. docs/theory.md has the proof, step for step.

Throughout, a and b are those of the arms' Beta(a, b), and log_b is log B(a, b). Where the density is not log-concave (a
or b below 1) log_b is -inf, the hazard infinite, and the arm is drawn as usual.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.marks import compiled
from belated.policies.base import beta

DUE, DRAWN = 0, 1  # places in `Lead.counts`
LOW, HIGH = 0, 1  # places in `Lead.hazards`
DEVIATIONS = (1.0, 1.7, 2.5, 3.5)  # how many standard deviations below the leader's mean the level may be
SOON = 128  # rewards until a level is looked for where none is known
RIVALS, RIVAL_HAZARD = 4, 0.3  # how many arms are drawn beside the leader, and from what hazard at its mean on
WIDEST = 1e10  # the largest a + b for which log B has its digits
BLOCK = 64  # arms whose hazards are computed together, against the same level
LOG2_E = math.log2(math.e)


class Level(NamedTuple):
    """A number between 0 and 1, and what the densities there take of it."""

    x: float
    log: float  # to base 2, as the next one
    log_rest: float
    inverse: float
    inverse_rest: float


class Lead(NamedTuple):
    """What is known of the leader, and of the others against it."""

    drawn: np.ndarray  # the arms that are drawn first, as usual: the leader, then what often exceeds it
    counts: np.ndarray  # the rewards until these are chosen again; how many they are
    others: np.ndarray  # log B of the other arms; infinite for these, which leaves them no hazard
    hazards: np.ndarray  # that the leader is below the level; that any other arm is above; infinite if nothing is known
    above: Scratch  # of each of the others, at the level
    level: np.ndarray  # the level, as a row like those of
    grid: np.ndarray  # the levels 0, 1/n, 2/n, …


class Scratch(NamedTuple):
    """Numbers that can be written by their bits: the two arrays are the same memory."""

    number: np.ndarray
    bits: np.ndarray


@compiled
def level_at(x: float) -> Level:
    """The level x."""
    return Level(x, LOG2_E * math.log(x), LOG2_E * math.log(1.0 - x), 1.0 / x, 1.0 / (1.0 - x))


@compiled
def level_in(row: Any) -> Level:
    """The level in a row of numbers."""
    return Level(float(row[0]), float(row[1]), float(row[2]), float(row[3]), float(row[4]))


@compiled
def level_below(grid: Any, x: float) -> Level:
    """The largest level of the grid that is not above x."""
    return level_in(grid[min(int(x * len(grid)), len(grid) - 1)])


GRID = np.array([level_at(max(1e-30, place / 4096.0)) for place in range(4096)])  # at 1e-30 no hazard is finite


def new_scratch(arms: int) -> Scratch:
    """Scratch for so many arms."""
    number = np.zeros(arms)
    return Scratch(number, number.view(np.int64))


def new_lead(log_b: np.ndarray) -> Lead:
    """The first arm leads, and nothing is known of the others."""
    others = log_b.copy()
    others[0] = np.inf
    drawn, counts = np.zeros(1 + RIVALS, np.int64), np.array([0, 1])
    return Lead(drawn, counts, others, np.full(2, np.inf), new_scratch(len(log_b)), np.ones(5), GRID)


@compiled
def log_normaliser(a: float, b: float) -> float:
    """The logarithm of B(a, b); -inf where the density is not log-concave, or so narrow that digits are short."""
    if a < 1.0 or b < 1.0 or a + b > WIDEST:
        return -math.inf
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@compiled
def fill_hazards(a: Any, b: Any, log_b: Any, scratch: Any, level: Any) -> None:
    """An upper bound of -log P(theta <= level) for each theta ~ Beta(a, b), infinite if none is known.

    With f its log-concave density and slope = -(log f)'(level), f(x) <= f(level) exp(-slope (x - level)). So the mass
    beyond the level is at most q = f(level) / rate: the rate is the slope, or 1 / (1 - level), less where f rises; and
    -log(1 - q) <= q / (1 - q). A number whose bits are (y + 1023) 2^52 is at least 2^y.
    """
    number, bits = scratch.number, scratch.bits
    for i in range(len(a)):
        power = (float(a[i]) - 1.0) * level.log + (float(b[i]) - 1.0) * level.log_rest - LOG2_E * float(log_b[i])
        bits[i] = int((min(max(power, -1000.0), 1000.0) + 1023.0) * 2.0**52)
    for i in range(len(a)):
        slope = (float(b[i]) - 1.0) * level.inverse_rest - (float(a[i]) - 1.0) * level.inverse
        rate = max(slope, level.inverse_rest + min(slope, 0.0))
        f = float(number[i])
        hazard = f / (rate - f) if f < rate else math.inf
        number[i] = hazard if log_b[i] < math.inf else 0.0


@compiled
def hazard_below(a: float, b: float, log_b: float, level: Any) -> float:
    """The same for P(theta >= level), of one arm, without the detour by bits."""
    slope = (a - 1.0) * level.inverse - (b - 1.0) * level.inverse_rest
    rate = max(slope, level.inverse + min(slope, 0.0))
    power = (a - 1.0) * level.log + (b - 1.0) * level.log_rest
    f = math.exp(min(700.0, power / LOG2_E - log_b))
    return f / (rate - f) if f < rate else math.inf


@compiled
def beyond(rng: Generator, a: float, b: float, log_b: float, level: float, hazard: float, highest: float) -> float:
    """What an arm draws, chosen as it was with probability 1 - exp(-hazard), if it exceeds `highest` >= level; or 0."""
    if hazard == math.inf:
        return beta(rng, a, b)
    rest = 1.0 - level
    slope = (b - 1.0) / rest - (a - 1.0) / level
    if slope * rest < 1.0:
        fall, density = 0.0, 1.0 / rest
        x = level + rest * rng.random()
    else:
        fall, density = rng.standard_exponential(), slope
        x = level + fall / slope
    if x <= highest or x >= 1.0:
        return 0.0
    log_f = (a - 1.0) * math.log(x) + (b - 1.0) * math.log(1.0 - x) - log_b
    return x if rng.random() * density * (1.0 - math.exp(-hazard)) < math.exp(log_f + fall) else 0.0


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
            hazard = float(hazards[arm])
            if hazard > left:
                return arm, left
            left -= hazard
        start += 8
    return len(hazards), left


@compiled
def highest_beyond(
    a: Any, b: Any, lead: Any, scratch: Any, level: Any, best: int, highest: float, left: float, rng: Generator
) -> tuple[int, float]:
    """The arm of the largest draw of the others beyond `highest` >= level, and the draw; `best` if there is none.

    `left` is an exponential variable.
    """
    start, log_b = 0, lead.others
    while start < len(a):
        if level.x == lead.level[0]:
            hazards = lead.above.number[start:]
        else:
            block = slice(start, start + BLOCK)
            hazards = scratch.number[block]
            fill_hazards(a[block], b[block], log_b[block], Scratch(hazards, scratch.bits[block]), level)
        place, left = first_reached(hazards, 0, left)
        while place < len(hazards):
            arm = start + place
            hazard = float(hazards[place])
            x = beyond(rng, float(a[arm]), float(b[arm]), float(log_b[arm]), level.x, hazard, highest)
            left = rng.standard_exponential()
            place += 1
            if x > highest:
                best, highest, level = arm, x, level_below(lead.grid, x)
                break  # the arms to come must exceed this one
            place, left = first_reached(hazards, place, left)
        start += place
    return best, highest


@compiled
def lazy_choice(a: Any, b: Any, log_b: Any, lead: Any, scratch: Any, rng: Generator) -> int:
    """An arm with the law of the argmax of the draws theta_i ~ Beta(a_i, b_i)."""
    low, high, left = float(lead.hazards[LOW]), float(lead.hazards[HIGH]), rng.standard_exponential()
    leader, mark = int(lead.drawn[0]), float(lead.level[0])
    if left >= low + high:  # the leader is above the level, the others are below it
        return leader
    above = left >= low
    if above:  # the leader is above it, some other arm may be
        best, highest, left = leader, mark, left - low
    elif low < math.inf:  # the leader may be below it
        best, highest, left = leader, chosen_below(a, b, log_b, lead, rng), rng.standard_exponential()
    else:  # nothing is known of the leader
        best, highest = highest_drawn(a, b, lead, rng)
        if highest >= mark and left >= high:
            return best
    at_mark = above or (low == math.inf and highest >= mark)
    level = level_in(lead.level) if at_mark else level_below(lead.grid, highest)
    best, highest = highest_beyond(a, b, lead, scratch, level, best, highest, left, rng)
    if above and best != leader and highest < at_least(rng, float(a[leader]), float(b[leader]), mark):
        return leader
    return best


@compiled
def highest_drawn(a: Any, b: Any, lead: Any, rng: Generator) -> tuple[int, float]:
    """Of the arms that are drawn first the largest, and its draw."""
    best, highest = 0, -1.0
    for place in range(lead.counts[DRAWN]):
        arm = int(lead.drawn[place])
        x = beta(rng, float(a[arm]), float(b[arm]))
        if x > highest:
            best, highest = arm, x
    return best, highest


@compiled
def chosen_below(a: Any, b: Any, log_b: Any, lead: Any, rng: Generator) -> float:
    """What the leader draws, chosen as it was to fall below the level."""
    leader, level = int(lead.drawn[0]), float(lead.level[0])
    a_leader, b_leader, rest = float(a[leader]), float(b[leader]), 1.0 - level
    x = beyond(rng, b_leader, a_leader, float(log_b[leader]), rest, float(lead.hazards[LOW]), rest)
    return 1.0 - x if x > rest else at_least(rng, a_leader, b_leader, level)


@compiled
def at_least(rng: Generator, a: float, b: float, level: float) -> float:
    """A draw of theta ~ Beta(a, b), given that it is at least the level."""
    while True:
        theta = beta(rng, a, b)
        if theta >= level:
            return theta


@compiled
def lazy_learn(a: Any, b: Any, log_b: Any, lead: Any, scratch: Any, arm: int, reward: float) -> None:
    """Add a reward to the posterior of its arm, and keep the hazards upper bounds."""
    seen = a[arm] + b[arm]
    ratio = a[arm] / seen if reward == 1.0 else b[arm] / seen
    a[arm] += reward
    b[arm] += 1.0 - reward
    if log_b[arm] > -math.inf and (reward == 0.0 or reward == 1.0):
        log_b[arm] += math.log(ratio)  # B(a + 1, b) = B(a, b) a / (a + b)
    else:
        log_b[arm] = log_normaliser(a[arm], b[arm])
    if lead.others[arm] < math.inf:
        lead.others[arm] = log_b[arm]
        if lead.hazards[HIGH] < math.inf:
            hear_other(a, b, lead, arm)
    elif lead.hazards[LOW] < math.inf and not (reward == 1.0 and lead.level[0] <= ratio):
        # A success of a leader whose mean is above the level only makes it less likely to be below.
        lead.hazards[LOW] = hazard_below(a[arm], b[arm], log_b[arm], level_in(lead.level))
    if lead.hazards[HIGH] > 1.0 or 1.0 < lead.hazards[LOW] < math.inf:
        lead.hazards[LOW] = math.inf
        lead.counts[DUE] = min(lead.counts[DUE], SOON)
    if lead.hazards[HIGH] == math.inf:  # from here on nothing is kept of what is above the level: there is none
        lead.level[0] = 1.0
    lead.counts[DUE] -= 1
    if lead.counts[DUE] <= 0:
        settle(a, b, log_b, lead, scratch)


@compiled
def hear_other(a: Any, b: Any, lead: Any, arm: int) -> None:
    """Bring the hazard of an arm up to date, and the sum with it."""
    one, before = slice(arm, arm + 1), lead.above.number[arm]
    above = Scratch(lead.above.number[one], lead.above.bits[one])
    fill_hazards(a[one], b[one], lead.others[one], above, level_in(lead.level))
    lead.hazards[HIGH] += max(0.0, lead.above.number[arm] - before)


@compiled
def settle(a: Any, b: Any, log_b: Any, lead: Any, scratch: Any) -> None:
    """Take the arm of the largest mean for the leader, and find the level below which least is to be feared."""
    leader, mean = 0, 0.0
    for arm in range(len(a)):
        lead.others[arm] = log_b[arm]
        average = float(a[arm]) / (float(a[arm]) + float(b[arm]))
        if average > mean:
            leader, mean = arm, average
    a_leader, b_leader = float(a[leader]), float(b[leader])
    log_b[leader] = log_normaliser(a_leader, b_leader)  # so that rounding does not build up
    n = a_leader + b_leader
    deviation, least = math.sqrt(mean * (1.0 - mean) / n), 1.0
    choose_drawn(a, b, lead, scratch, leader, level_below(lead.grid, mean))
    lead.hazards[LOW], lead.hazards[HIGH], lead.level[0], lead.counts[DUE] = math.inf, math.inf, 1.0, SOON
    if lead.counts[DRAWN] == len(a):  # there are no others
        lead.hazards[HIGH], lead.level[0] = 0.0, 0.0
        return
    for deviations in DEVIATIONS:
        x = mean - deviations * deviation
        if not 1e-9 < x < 1.0 - 1e-9:
            return
        level = level_at(x)
        low = hazard_below(a_leader, b_leader, float(log_b[leader]), level)
        fill_hazards(a, b, lead.others, scratch, level)
        reached, left = first_reached(scratch.number, 0, least)
        if reached < len(a):  # there is too much to fear, and more so at the next level
            return
        high = least - left + 1e-9  # more than rounding can take from the sum
        if low + high < least:
            least = low + high
            lead.hazards[HIGH] = high
            for arm in range(len(a)):
                lead.above.number[arm] = scratch.number[arm]
            for place in range(len(level)):
                lead.level[place] = level[place]
            if lead.counts[DRAWN] == 1:
                lead.hazards[LOW], lead.counts[DUE] = low, SOON + int(0.125 * n)


@compiled
def choose_drawn(a: Any, b: Any, lead: Any, scratch: Any, leader: int, level: Any) -> None:
    """Have the leader drawn, and the arms that often exceed the level: for them a bound is worth little.

    If there are any, and few arms in all, every arm is drawn.
    """
    lead.drawn[0], lead.others[leader], lead.counts[DRAWN] = leader, math.inf, 1
    fill_hazards(a, b, lead.others, scratch, level)
    least = RIVAL_HAZARD
    for place in range(1, min(len(a), len(lead.drawn))):
        rival, most = 0, -1.0
        for arm in range(len(a)):
            hazard = float(scratch.number[arm])
            if hazard > most and lead.others[arm] < math.inf:
                rival, most = arm, hazard
        if most < least:
            return
        lead.drawn[place], lead.others[rival], lead.counts[DRAWN] = rival, math.inf, place + 1
        least = 0.0 if len(a) <= len(lead.drawn) else RIVAL_HAZARD

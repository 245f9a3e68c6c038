"""Who surely leads: a policy of the largest index need not compute every index in every round.

An index that only creeps while nothing is heard of its arm has a bound for many rounds ahead. A comparison of all arms
notes the leader and the *rival*, a number that no other arm's index can exceed up to a later round. Until then, while
the leader's own index is above the rival, the leader is what a comparison of all would find, alone: no tie, so no
random number either. What is heard of another arm raises the rival to that arm's new bound.

It is exact in floating point too, because rounding keeps order: a formula in which an argument enters by +, *, / and
sqrt, always in the same direction, gives rounded results in that direction.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from belated.marks import compiled

AHEAD = 64
"""Rounds for which the bounds of a comparison hold: fewer, and there are more of them; more, and they are looser."""


class Lead(NamedTuple):
    """What the last comparison of all arms has found; numbers are arrays of one, to be written."""

    indices: np.ndarray  # of each arm, when it was made
    leader: np.ndarray
    rival: np.ndarray  # no other arm's index is above it
    since: np.ndarray  # the round in which it was made
    until: np.ndarray  # the last round for which the rival holds
    low: np.ndarray  # what makes all indices grow with t: at `since`
    high: np.ndarray  # and at `until`


def no_lead(arms: int) -> Lead:
    """Before the first comparison: the rival is out of reach."""
    numbers, rounds = np.full((3, 1), math.inf), np.zeros((3, 1), np.int64)
    return Lead(np.zeros(arms), rounds[0], numbers[0], rounds[1], rounds[2], numbers[1], numbers[2])


@compiled
def leads(lead: Any, t: int, index: float) -> bool:
    """Whether the leader, whose index is at least this in round t, surely has the largest."""
    return bool(lead.since[0] <= t <= lead.until[0] and index > lead.rival[0])


@compiled
def challenge(lead: Any, arm: int, bound: float) -> None:
    """Something was heard of an arm, whose index is at most this from now on."""
    if arm != lead.leader[0]:
        lead.rival[0] = max(lead.rival[0], bound)


@compiled
def two_largest(lead: Any, index: Any) -> None:
    """Note as leader the first arm of the largest index, and as rival the second largest index, equal if it is tied."""
    leader, highest, second = 0, index[0], -math.inf
    for arm in range(1, len(index)):
        higher = index[arm] > highest
        second = highest if higher else max(second, index[arm])
        leader = arm if higher else leader
        highest = index[arm] if higher else highest
    lead.leader[0], lead.rival[0] = leader, second

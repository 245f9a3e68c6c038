"""What the charts of a live experiment are made from. Nothing here draws: the library that does is large."""

from __future__ import annotations

from typing import NamedTuple

MOST = 8  # arms that a chart tells apart
POOLED = "all arms"
OTHERS = "the others"

UNITS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
_NICE = {
    "seconds": (1, 2, 5, 10, 15, 30),
    "minutes": (1, 2, 5, 10, 15, 30),
    "hours": (1, 2, 3, 6, 12),
    "days": (1, 2, 4, 7, 14, 28, 91, 182, 364),
}


class Belief(NamedTuple):
    """An arm's posterior, Beta(a, b), and its interval."""

    name: str
    colour: int
    a: float
    b: float
    low: float
    high: float


class History(NamedTuple):
    """What was asked in each slot of time, and what came of it, by arm; the slots are `width` ms each from `start`."""

    start: int
    width: int
    asked: dict[str, list[int]]
    told: dict[str, list[int]]
    rewards: dict[str, list[float]]


class Steps(NamedTuple):
    """P(wait <= times[k]) = levels[k], in ms."""

    times: list[float]
    levels: list[float]


def nice(least: int) -> int:
    """The shortest time in ms that people count in and that is no shorter.

    >>> nice(40_000), nice(13 * 3_600_000)
    (60000, 86400000)
    """
    times = (step * UNITS[unit] for unit, steps in _NICE.items() for step in steps)
    return next((time for time in times if time >= least), max(1, least))

"""What silence says in a live experiment: the state of thompson-silence, made from sums that the ledger keeps.

The simulator's policy and this engine share the estimator (`policies/curve.py`) and the state (`policies/learned.py`).
The state is a function of the sums and of the time alone, so it is the same whoever asks, in whatever order the sums
came about. The curve changes only at the edges between blocks; a conversion counts as soon as it is heard, if the block
of its decision is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from belated.live.ledger import BlockRow
from belated.live.ledger import Sums as Totals
from belated.live.store import Connection, ExperimentRow
from belated.live.values import BILLION
from belated.policies.curve import Reading, new_reading, read
from belated.policies.learned import LearnedState, Sums, resumed_state, settle
from belated.policies.silence import ThompsonSilence

DOUBT = ThompsonSilence().doubt
LEVEL = 0.05  # of saying that arms differ in delay when they do not
FEWEST = 20  # conversions of an arm of which that may be said: with fewer, Z is not normal


class Past(NamedTuple):
    """What the ledger keeps for it, as of a time."""

    complete: int  # blocks since 1970
    blocks: list[BlockRow]  # the open ones
    bins: list[tuple[int, ...]]  # (arm, lag bin, conversions), in order
    fresh: list[tuple[int, ...]]  # (edge, arm, lag bin, conversions) of those that do not count in the curve yet


def past(connection: Connection, row: ExperimentRow, blocks: list[BlockRow], now: int) -> Past:
    """What is kept as of `now`; `blocks` are the open ones, those from `first_open` on."""
    complete = now // row.width
    bins = "SELECT arm, bin, converted FROM bins WHERE experiment = ? AND converted <> 0 ORDER BY arm, bin"
    fresh = (
        "SELECT edge, arm, bin, converted FROM fresh WHERE experiment = ? AND edge > ? AND converted <> 0 "
        "ORDER BY edge, arm, bin"
    )
    return Past(complete, blocks, connection.rows(bins, (row.id,)), connection.rows(fresh, (row.id, complete)))


def first_open(row: ExperimentRow, now: int) -> int:
    """The oldest block that may hold a decision whose window is open."""
    return now // row.width - row.bins


def state(
    row: ExperimentRow, priors: Sequence[tuple[float, float]], totals: Sequence[Totals], kept: Past
) -> LearnedState:
    """The state of the policy, its silence read."""
    a, b = np.array(priors, float).reshape(-1, 2).T
    made = resumed_state(a.copy(), b.copy(), row.width, DOUBT, sums(row, totals, kept))
    read_from = (each.tobytes() for each in (made.events, made.risk, made.aged))
    made = made._replace(reading=_reading(*made.events.shape, *read_from))
    for arm in range(len(a)):
        settle(made, arm)
    return made


def sums(row: ExperimentRow, totals: Sequence[Totals], kept: Past) -> Sums:
    """The sums as the policy takes them: by arm, and by age of the block."""
    arms, bins = len(totals), row.bins
    pulls, ones, converted = np.zeros((3, arms, bins + 1), np.int64)  # rewards are billionths: they add up exactly
    for each in kept.blocks:
        age = max(0, kept.complete - each.block)  # the clock of another machine may be ahead
        pulls[each.arm, age] += each.asked
        ones[each.arm, age] += each.rewards
        converted[each.arm, age] += each.converted
    closed = np.array([(each.asked, each.rewards) for each in totals], np.int64).reshape(arms, 2)
    closed -= np.stack([pulls.sum(axis=1), ones.sum(axis=1)], axis=1)
    late = np.zeros((arms, bins))
    for arm, bin, count in kept.bins:
        late[arm, bin] = count
    ages = [
        (arm, max(0, kept.complete - (edge - bin - 2)), bin, count)  # the block is the edge less the bin less 2
        for edge, arm, bin, count in kept.fresh
    ]
    fresh = np.array(ages, np.int64).reshape(-1, 4)
    return Sums(kept.complete, pulls, ones / BILLION, converted, closed / (1, BILLION), late, fresh)


@lru_cache(maxsize=16)
def _reading(arms: int, bins: int, events: bytes, risk: bytes, aged: bytes) -> Reading:
    """The curve is read once for the same numbers: they change only at the edge of a block."""
    reading = new_reading(arms, bins)
    d, n, pulls = (np.frombuffer(each).reshape(arms, bins) for each in (events, risk, aged))
    read(reading, d, n, pulls, DOUBT)
    for each in reading:
        each.flags.writeable = False
    return reading


# --- What can be shown of it ---


def apart(made: LearnedState) -> np.ndarray:
    """1 for arms whose conversions come later than those of all, -1 for sooner, 0 if that may be chance.

    The log-rank Z of each, at 5 % for all arms together, after Bonferroni.
    """
    from scipy.special import ndtri

    z = made.reading.z
    tested = np.count_nonzero(z)
    limit = -ndtri(LEVEL / (2.0 * tested)) if tested else np.inf
    signs: np.ndarray = np.sign(z) * ((np.abs(z) > limit) & (made.events.sum(axis=1) >= FEWEST))
    return signs


def seen(made: LearnedState) -> int:
    """Up to how many bins of age the experiment can tell of conversions: none before the first."""
    if not made.events.any():
        return 0
    if made.closed[:, 0].any():
        return len(made.aged[0])
    return int(np.flatnonzero(made.aged.sum(axis=0)).max()) + 1


def curves(made: LearnedState) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """The level of each bin of age for all arms together, and for those arms that have more or less of their own."""
    steps = made.reading.pooled[2]
    pooled = 0.5 * (steps + np.concatenate([[0.0], steps[:-1]]))  # ages are anywhere in their bin
    level = made.reading.level
    return pooled, {arm: level[arm] for arm in range(len(level)) if not np.allclose(level[arm], pooled, atol=1e-9)}

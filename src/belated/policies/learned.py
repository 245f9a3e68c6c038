"""The state of thompson-silence that learns the delay curve of conversions while it plays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from belated.marks import compiled
from belated.policies.curve import Reading, new_reading, read
from belated.policies.thompson import thompson_choice


class LearnedState(NamedTuple):
    """What the policy remembers. Rounds are taken together in blocks; a block is open until its window has closed."""

    prior: np.ndarray  # a and b, by arm
    successes: np.ndarray  # of the Beta to draw from
    failures: np.ndarray
    pulls: np.ndarray  # by arm and open block, block q in place q mod (bins + 1)
    ones: np.ndarray  # of them, seen so far
    fresh: np.ndarray  # by arm, open block and parity of the lag bin: conversions not yet in `events`
    counted: np.ndarray  # by arm and open block: conversions in `events`
    closed: np.ndarray  # pulls and ones of the closed blocks, by arm
    waiting: np.ndarray  # ones of the open blocks that are complete, by arm
    events: np.ndarray  # by arm and lag bin, of `curve`
    risk: np.ndarray
    aged: np.ndarray  # by arm and bin of age: the open pulls
    reading: Reading
    blocks: np.ndarray  # [0]: how many are complete
    width: int  # rounds in a block, and in a bin
    window: int
    doubt: float

    def choose(self, t: int, rng: Generator) -> int:
        return thompson_choice(self.successes, self.failures, rng)

    def sent(self, t: int, arm: int) -> None:
        self.pulls[arm, (t - 1) // self.width % self.pulls.shape[1]] += 1.0
        if t % self.width == 0:
            self.blocks[0] = t // self.width
            age(self)
            read(self.reading, self.events, self.risk, self.aged, self.doubt)
            for other in range(len(self.closed)):
                settle(self, other)

    def heard(self, t: int, s: int, arm: int, reward: float, rng: Generator) -> None:
        if reward <= 0.0:
            return  # a failure says no more than that its window has closed
        block, bins = (s - 1) // self.width, self.events.shape[1]
        if block < self.blocks[0] - bins:
            self.closed[arm, 1] += reward
            if t - s <= self.window:  # at the very end of the window, when its block has just closed
                self.events[arm, bins - 1] += 1.0
                self.risk[arm, bins - 1] += 1.0
        else:
            place = block % (bins + 1)
            self.ones[arm, place] += reward
            if block < self.blocks[0]:  # those of a block whose silence is not read yet are read with it
                self.waiting[arm] += reward
            if t - s <= self.window:  # how late one comes after its window says nothing
                self.fresh[arm, place, min((t - s) // self.width, bins - 1) % 2] += 1.0
        settle(self, arm)


@compiled
def settle(state: LearnedState, arm: int) -> None:
    """Beta(S + a, N~ - S + b); of what is open, S and N~ count as far as the curve is trusted."""
    trust = state.reading.trust[arm]
    ones = state.closed[arm, 1] + trust * state.waiting[arm]
    trials = state.closed[arm, 0] + trust * state.reading.trials[arm]
    state.successes[arm] = state.prior[arm, 0] + ones
    state.failures[arm] = state.prior[arm, 1] + max(0.0, trials - ones)


@compiled
def age(state: LearnedState) -> None:
    """Each open block is a bin older: it has now seen the bin before its age, whole, or it closes."""
    arms, bins = state.events.shape
    newest = state.blocks[0] - 1
    for k in range(min(bins, newest) + 1):
        place = (newest - k) % (bins + 1)
        for arm in range(arms):
            if k > 0:
                fresh = state.fresh[arm, place, (k - 1) % 2]
                state.fresh[arm, place, (k - 1) % 2] = 0.0
                state.counted[arm, place] += fresh
                state.events[arm, k - 1] += fresh
                state.risk[arm, k - 1] += state.counted[arm, place]
            else:
                state.waiting[arm] += state.ones[arm, place]
            if k < bins:
                state.aged[arm, k] = state.pulls[arm, place]
                continue
            state.closed[arm, 0] += state.pulls[arm, place]
            state.closed[arm, 1] += state.ones[arm, place]
            state.waiting[arm] -= state.ones[arm, place]
            state.pulls[arm, place] = 0.0
            state.ones[arm, place] = 0.0
            state.counted[arm, place] = 0.0


def learned_state(a: np.ndarray, b: np.ndarray, window: int, blocks: int, doubt: float) -> LearnedState:
    """Before the first round: as many bins a window as `blocks` says, if it has that many rounds."""
    width = max(1, math.ceil(window / blocks))
    arms, bins = len(a), max(1, math.ceil(window / width))
    return LearnedState(
        prior=np.stack([a, b], axis=1),
        successes=a,
        failures=b,
        pulls=np.zeros((arms, bins + 1)),
        ones=np.zeros((arms, bins + 1)),
        fresh=np.zeros((arms, bins + 1, 2)),
        counted=np.zeros((arms, bins + 1)),
        closed=np.zeros((arms, 2)),
        waiting=np.zeros(arms),
        events=np.zeros((arms, bins)),
        risk=np.zeros((arms, bins)),
        aged=np.zeros((arms, bins)),
        reading=new_reading(arms, bins),
        blocks=np.zeros(1, np.int64),
        width=width,
        window=window,
        doubt=float(doubt),
    )


class Sums(NamedTuple):
    """What the state can be made of at any time: sums over pulls and conversions, in whatever order these came."""

    complete: int  # blocks
    pulls: np.ndarray  # by arm and open block, the one in progress first, then the newest complete one, and so on
    ones: np.ndarray  # of them, seen so far
    converted: np.ndarray  # of them, conversions
    closed: np.ndarray  # pulls and ones of the closed blocks, by arm
    late: np.ndarray  # by arm and lag bin: conversions
    fresh: np.ndarray  # a row (arm, place in `pulls`, lag bin, conversions) for what does not count in the curve yet


def resumed_state(a: np.ndarray, b: np.ndarray, width: int, doubt: float, sums: Sums) -> LearnedState:
    """The state at a block edge, and what was seen since; the silence is still to be read, and the arms to be settled.

    A conversion counts in the curve from that edge on at which its lag bin is over for its whole block: of d and n that
    leaves the margins by lag and by block, less what is fresh.
    """
    bins = sums.late.shape[1]
    state = learned_state(a, b, bins * width, bins, doubt)
    open_ = np.arange(max(0, sums.complete - bins), sums.complete + 1)  # blocks; the first before the first is none
    places, ages = open_ % (bins + 1), sums.complete - open_
    arm, age, late, count = (sums.fresh[:, column].astype(np.int64) for column in range(4))
    counted, events = sums.converted.astype(float), sums.late.astype(float)
    np.subtract.at(counted, (arm, age), count)
    np.subtract.at(events, (arm, late), count)
    np.add.at(state.fresh, (arm, (sums.complete - age) % (bins + 1), late % 2), count)
    state.pulls[:, places], state.ones[:, places] = sums.pulls[:, ages], sums.ones[:, ages]
    state.counted[:, places] = counted[:, ages]
    state.closed[:], state.waiting[:] = sums.closed, sums.ones[:, 1:].sum(axis=1)
    state.events[:], state.risk[:] = events, np.cumsum(events - counted[:, 1:], axis=1)
    state.aged[:] = sums.pulls[:, 1:]
    state.blocks[0] = sums.complete
    return state

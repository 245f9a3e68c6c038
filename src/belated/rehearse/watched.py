"""Policies as a rehearsal plays them: on a posterior that may be old, from where an experiment stands, and watched.

They are policies around other ones, so the simulator's own loop plays them, compiled, as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.law import Law
from belated.marks import compiled
from belated.policies.base import Policy, hear


class PairState(NamedTuple):
    """One state that chooses, and another that learns the same things and is read."""

    chooser: Any
    reader: Any
    successes: np.ndarray  # the reader's own arrays
    failures: np.ndarray

    def choose(self, t: int, rng: Generator) -> int:
        return int(self.chooser.choose(t, rng))

    def sent(self, t: int, arm: int) -> None:
        self.chooser.sent(t, arm)
        self.reader.sent(t, arm)

    def heard(self, t: int, s: int, arm: int, reward: float, rng: Generator) -> None:
        hear(self.chooser, t, s, arm, reward, rng)
        hear(self.reader, t, s, arm, reward, rng)


@dataclass(frozen=True)
class Pair(Policy):
    """What `chooser` does, with the posterior of `reader`: an A/B test has none of its own."""

    name: ClassVar[str] = "pair"

    chooser: Policy
    reader: Policy

    def knowing(self, laws: Sequence[Law]) -> Policy:
        return Pair(self.chooser.knowing(laws), self.reader.knowing(laws))

    def start(self, arms: int, rounds: int) -> PairState:
        reader = self.reader.start(arms, rounds)
        return PairState(self.chooser.start(arms, rounds), reader, reader.successes, reader.failures)


class News(NamedTuple):
    """What a state is to be told, in order: that an arm was sent (a reward below 0), or what was heard of one."""

    t: np.ndarray
    s: np.ndarray
    arm: np.ndarray
    reward: np.ndarray
    filled: np.ndarray  # [0]: how many; for those still to come, how many have come


def news(size: int) -> News:
    """Room for so many."""
    t, s, arm = (np.zeros(size, np.int64) for _ in range(3))
    return News(t, s, arm, np.zeros(size), np.zeros(1, np.int64))


class WatchedState(NamedTuple):
    """A state whose posterior is read anew only every so many rounds, and what was seen of it.

    Everything is kept as news until the posterior is read; so `choose`, which reads it, passes them on.
    """

    inner: Any
    successes: np.ndarray  # the inner state's own arrays: its posterior
    failures: np.ndarray
    every: int
    before: int  # rounds that were before the first one
    kept: News
    coming: News  # of rounds before the first: `t` ascends, and is counted from the first one
    marks: np.ndarray  # after these rounds the posterior is noted
    noted: np.ndarray  # per mark and arm: a and b
    place: np.ndarray  # [0]: how many marks have been
    chosen: np.ndarray  # per round: the arm

    def choose(self, t: int, rng: Generator) -> int:
        hear_coming(self, t - 1)
        if (t - 1) % self.every == 0:
            pass_on(self, rng)
        return int(self.inner.choose(t + self.before, rng))

    def sent(self, t: int, arm: int) -> None:
        if self.place[0] < len(self.marks) and t - 1 == self.marks[self.place[0]]:
            for each in range(len(self.successes)):
                self.noted[self.place[0], each, 0] = self.successes[each]
                self.noted[self.place[0], each, 1] = self.failures[each]
            self.place[0] += 1
        self.chosen[t] = arm
        keep(self.kept, t + self.before, 0, arm, -1.0)

    def heard(self, t: int, s: int, arm: int, reward: float, rng: Generator) -> None:
        keep(self.kept, t + self.before, s + self.before, arm, reward)


@compiled
def keep(kept: Any, t: int, s: int, arm: int, reward: float) -> None:
    """Append to the news."""
    place = kept.filled[0]
    kept.t[place] = t
    kept.s[place] = s
    kept.arm[place] = arm
    kept.reward[place] = reward
    kept.filled[0] = place + 1


@compiled
def pass_on(state: Any, rng: Generator) -> None:
    """Tell the inner state all that has been kept."""
    kept = state.kept
    for place in range(kept.filled[0]):
        if kept.reward[place] < 0.0:
            state.inner.sent(kept.t[place], kept.arm[place])
        else:
            hear(state.inner, kept.t[place], kept.s[place], kept.arm[place], kept.reward[place], rng)
    kept.filled[0] = 0


@compiled
def hear_coming(state: Any, t: int) -> None:
    """Keep what has come by round t of what was pending before the first."""
    coming = state.coming
    place = coming.filled[0]
    while place < len(coming.t) and coming.t[place] <= t:
        keep(state.kept, coming.t[place] + state.before, coming.s[place], coming.arm[place], coming.reward[place])
        place += 1
    coming.filled[0] = place


NOTHING = news(0)


def watched(
    inner: Any, arms: int, marks: np.ndarray, *, every: int = 1, before: int = 0, coming: News = NOTHING
) -> WatchedState:
    """A state with a posterior, watched at `marks`, the last of which is one before the last round."""
    rounds = int(marks[-1]) + 1
    return WatchedState(
        inner=inner,
        successes=inner.successes,
        failures=inner.failures,
        every=every,
        before=before,
        kept=news(2 * rounds + len(coming.t) + 2),
        coming=coming._replace(filled=np.zeros(1, np.int64)),
        marks=marks,
        noted=np.zeros((len(marks), arms, 2)),
        place=np.zeros(1, np.int64),
        chosen=np.zeros(rounds + 1, np.int32),
    )

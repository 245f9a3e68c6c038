"""One rehearsal, compiled: a plan in one world under one policy; and batches of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from belated import loop
from belated.inputs import Between
from belated.law import Law
from belated.policies import Policy
from belated.rehearse import known
from belated.rehearse.findings import Track
from belated.rehearse.plan import DAY, Plan
from belated.rehearse.watched import NOTHING, News, WatchedState, watched
from belated.simulation import INSTANCE, POLICY, VISITORS, stream

MOST_MARKS = 56


class Start(NamedTuple):
    """Where a replication begins: the true means, a state, and what is still to come of the rounds before."""

    means: np.ndarray
    state: object
    before: int = 0
    coming: News = NOTHING


class Setting(NamedTuple):
    """What is played: by whom, in which world, and when it is looked at."""

    begin: Callable[[int], Start]  # of each replication
    laws: tuple[Law, ...]
    every: int  # rounds that a posterior is kept
    marks: np.ndarray
    seed: int


@dataclass(frozen=True)
class Batch:
    """Some replications of one setting: the unit of work."""

    setting: Setting
    replications: range

    def run(self, stop: np.ndarray) -> Track:
        size, marks = len(self.replications), len(self.setting.marks)
        arms = len(self.setting.laws)
        regret, noted = np.zeros((size, marks)), np.ones((size, marks, arms, 2))
        means, pulls = np.zeros((size, arms)), np.zeros((size, arms))
        calendar = loop.new_calendar(int(self.setting.marks[-1]) + 1)
        for row, replication in enumerate(self.replications):
            start = self.setting.begin(replication)
            means[row] = start.means
            state, regret[row] = played(self.setting, start, replication, calendar, stop)
            if stop[0]:  # half a replication has nothing to say
                break
            noted[row] = state.noted
            pulls[row] = np.bincount(state.chosen[1:-1], minlength=arms)
        return Track(means, regret, known.chances(noted[..., 0], noted[..., 1]), pulls)


def played(
    setting: Setting, start: Start, replication: int, calendar: loop.Calendar, stop: np.ndarray
) -> tuple[WatchedState, np.ndarray]:
    """One replication: its state, and the regret at every mark. One visitor more comes, who closes the last round."""
    from belated import kernels  # numba takes a while to import

    later = setting.marks[setting.marks > 0]
    marks = np.append(later, later[-1] + 1)
    arms = len(start.means)
    calendar.first[:] = 0
    trace = loop.Trace(marks, np.zeros(len(marks)), np.zeros(arms, np.int64), np.zeros(3, np.int64))
    delays = kernels.compiled_delays(setting.laws)
    visitors = stream(setting.seed, replication, VISITORS)
    world = loop.World(start.means, start.means.max(), True, delays, visitors)
    state = watched(start.state, arms, setting.marks, every=setting.every, before=start.before, coming=start.coming)
    kernels.play(state, world, calendar, trace, stop, stream(setting.seed, replication, POLICY))
    return state, np.append(np.zeros(len(setting.marks) - len(later)), trace.regret[:-1])


def rates(plan: Plan, replication: int) -> np.ndarray:
    """The true rates of a replication: ranges are drawn."""
    rng = stream(plan.seed, replication, INSTANCE)
    return np.array([rate.draw(rng) if isinstance(rate, Between) else rate for rate in plan.rates])


def marks_of(plan: Plan) -> np.ndarray:
    """The rounds after which the experiment is looked at: once a day, or in a long one some fifty times."""
    days = plan.days(plan.rounds)
    looks = min(MOST_MARKS, max(4, int(days)))
    whole = [round(day * DAY / plan.step) for day in range(1, looks + 1)] if looks == int(days) else []
    even = np.linspace(0, plan.rounds, looks + 1)[1:].round().astype(np.int64).tolist()
    return np.unique(np.array([*(whole or even), plan.rounds], np.int64))


def setting_of(plan: Plan, policy: Policy, *, every: int = 1, laws: tuple[Law, ...] | None = None) -> Setting:
    """The setting of a plan for one policy."""

    def begin(replication: int) -> Start:
        return Start(rates(plan, replication), policy.start(len(plan.arms), plan.rounds + 1))

    return Setting(begin, laws or plan.heard(), every, marks_of(plan), plan.seed)

"""A running experiment, rehearsed from where it stands: stop now, or go on?

What is read of the ledger, and nothing is written: each arm's posterior, how long its outcomes took, what is pending,
and how many visitors come. In each rehearsal the true rates are drawn from the posterior, what is pending comes as the
measured waits say, and the policies go on from the posterior that they would have now.
"""

from __future__ import annotations

import copy
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belated.delays import Observed
from belated.inputs import InvalidInput, number
from belated.live import curves, ledger, schema, silence, values
from belated.live.errors import NotFound
from belated.live.ledger import Recent
from belated.live.posterior import chances
from belated.live.store import Connection, ExperimentRow
from belated.live.version import Standing, posterior, standing, waited
from belated.policies import Policy
from belated.policies.curve import read, tally
from belated.policies.learned import LearnedState, settle
from belated.rehearse import candidates
from belated.rehearse.observed import of_successes
from belated.rehearse.plan import DAY, Plan, plan
from belated.rehearse.play import Setting, Start, marks_of
from belated.rehearse.watched import NOTHING, News
from belated.simulation import INSTANCE, stream

WEEK = 7 * DAY
ENOUGH = 100  # outcomes of an arm, or with a window conversions, for a delay curve of its own
MOST_YOUNG = 500_000  # decisions that the posterior does not count yet: some ten seconds a policy


class Running(NamedTuple):
    """Where the experiment stands."""

    name: str
    status: str
    at: int  # ms
    asked: int
    pending: int
    leader: str
    best: float  # P(best) of the leader, as the experiment itself reads it
    reads_silence: bool
    visitors: float  # a day, of late
    own_waits: tuple[str, ...]  # arms with a delay curve of their own


class Young(NamedTuple):
    """The decisions that the posterior does not count yet, in the order of time; an entry each."""

    arm: np.ndarray
    age: np.ndarray  # rounds
    heard: np.ndarray  # after how many rounds, or -1
    reward: np.ndarray


@dataclass(frozen=True)
class Origin:
    """All that a rehearsal starts from: the plan to go on, and what has been."""

    plan: Plan
    running: Running
    prior: tuple[tuple[float, float], ...]  # a and b of each arm, of what the experiment counts by now
    belief: tuple[tuple[float, float], ...]  # the same by all that is known; with a window, by what silence says too
    young: Young
    earlier: tuple[np.ndarray, ...]  # by arm: lags in rounds of the successes that are no longer young

    def setting(self, name: str) -> Setting:
        """How the policy of that name goes on."""
        policy, window = candidates.policy(name, self.plan.window_rounds, self.prior), self.plan.window
        before = 0 if window is None else len(self.young.arm)
        state = self._caught_up(policy, before)
        a, b = self.believed()

        def begin(replication: int) -> Start:
            rng = stream(self.plan.seed, replication, INSTANCE)
            means = rng.beta(a, b)
            return Start(means, copy.deepcopy(state), before, self._coming(means, rng))

        marks = np.append(0, marks_of(self.plan))
        return Setting(begin, self.plan.heard(), 1, marks, self.plan.seed)

    def believed(self) -> tuple[np.ndarray, np.ndarray]:
        """Beta parameters of each arm by all that is known now, from which the true rates are drawn."""
        pairs = np.array(self.belief)
        return pairs[:, 0], pairs[:, 1]

    def _caught_up(self, policy: Policy, before: int) -> Any:
        """The policy's state now: it has heard of the young what has been told."""
        arms = len(self.plan.arms)
        state = policy.start(arms, before + self.plan.rounds + 1)
        if not before:
            return state
        if isinstance(state, LearnedState):
            self._learn_earlier(state)
        told = np.flatnonzero(self.young.heard >= 0)
        when = np.minimum(before, told + 1 + self.young.heard[told])
        told = told[np.argsort(when, kind="stable")]
        when = np.sort(when, kind="stable")
        place, rng = 0, np.random.default_rng(0)  # which none of these draws from
        for t in range(1, before + 1):
            state.sent(t, int(self.young.arm[t - 1]))
            while place < len(told) and when[place] <= t:
                s = int(told[place])
                state.heard(t, s + 1, int(self.young.arm[s]), float(self.young.reward[s]), rng)
                place += 1
        if isinstance(state, LearnedState):
            read(state.reading, state.events, state.risk, state.aged, state.doubt)
            for arm in range(arms):
                settle(state, arm)
        return state

    def _learn_earlier(self, state: LearnedState) -> None:
        """The delay curve also comes from the conversions whose window has closed."""
        bins = state.events.shape[1]
        for arm, lags in enumerate(self.earlier):
            events, risk = tally(lags, np.full(len(lags), state.width * bins), state.width, bins)
            state.events[arm] += events
            state.risk[arm] += risk

    def _coming(self, means: np.ndarray, rng: np.random.Generator) -> News:
        """What will be heard of what is pending: drawn by the rates, the waits and the ages."""
        pending = np.flatnonzero(self.young.heard < 0)
        arm, age = self.young.arm[pending], self.young.age[pending]
        u, v = rng.random(len(pending)), rng.random(len(pending))
        due, reward = np.full(len(pending), math.inf), np.ones(len(pending))
        for each, law in enumerate(self.plan.laws):
            mine = arm == each
            due[mine], reward[mine] = _awaited(law, age[mine], means[each], u[mine], v[mine], self.plan.window is None)
        comes = np.flatnonzero(due <= self.plan.rounds)
        if not len(comes):
            return NOTHING
        comes = comes[np.argsort(due[comes], kind="stable")]
        s = pending[comes] + 1 if self.plan.window is not None else np.zeros(len(comes), np.int64)
        due = np.maximum(1.0, due[comes]).astype(np.int64)
        return News(due, s.astype(np.int64), arm[comes].astype(np.int64), reward[comes], NOTHING.filled)


def _awaited(
    law: Any, age: np.ndarray, mean: float, u: np.ndarray, v: np.ndarray, all_told: bool
) -> tuple[np.ndarray, np.ndarray]:
    """In how many rounds each pending outcome comes, inf for never, and what it is.

    A wait l of law F that is known to exceed the age is F^-1 of a uniform on (F(age), 1]. If only successes are told, a
    silent decision is one with probability theta (1 - F(age)) / (1 - theta F(age)).
    """
    delays, levels = np.array(law.delays), np.array(law.levels)
    passed = np.append(0.0, levels)[np.searchsorted(delays, age, side="right")]
    place = np.searchsorted(levels, passed + (1.0 - passed) * v, side="left")
    wait = np.append(delays, math.inf)[place] - age
    if all_told:
        return wait, (u < mean).astype(float)
    succeeds = u < mean * (1.0 - passed) / np.maximum(1e-300, 1.0 - mean * passed)
    return np.where(succeeds, wait, math.inf), np.ones(len(age))


def origin(
    url: str,
    name: str,
    *,
    days: Any = 7,
    horizon: str = "90d",
    replications: Any = None,
    seed: Any = 1,
    clock: Callable[[], float] = time.time,
) -> Origin:
    """Where the experiment stands, read from its ledger."""
    from belated import live

    now = round(clock() * 1000)
    number("days", days, above=0.0, high=366)
    file = str(url).removeprefix("sqlite:///")
    if file != url and not Path(file).exists():
        raise NotFound("ledger", f"there is no file {file}")
    store = live._store(url)
    try:
        with store.reading() as connection:
            schema.refuse_unreadable(store, connection)
            row = ledger.experiment(connection, values.text("experiment", name))
            now = max(now, ledger.last_asked(connection, row.id))  # a clock that is behind is no reason not to look
            at = standing(connection, row, now)
            return _read(
                connection, at, now, {"days": days, "horizon": horizon, "replications": replications, "seed": seed}
            )
    finally:
        store.close()


def _read(connection: Connection, at: Standing, now: int, asked: dict[str, Any]) -> Origin:
    row = at.experiment
    active = [place for place, arm in enumerate(at.arms) if arm.status == "active"]
    names = [at.arms[place].name for place in active]
    if len(active) < 2:
        raise InvalidInput("experiment", f"{row.name} has {len(active)} active arms: there is nothing to decide")
    a, b = (each[active] for each in waited(at))
    visitors = _visitors(connection, at, now)
    step = max(1, round(DAY / visitors))
    recent = _recent(connection, at, now)
    came = ledger.waits(connection, row.id, row.failure_after)
    laws, own = _laws(connection, at, active, now, step, came)
    young = _young(recent, active, now, step)
    going = plan(
        {
            "arms": {name: float(mean) for name, mean in zip(names, a / (a + b), strict=True)},
            "visitors": visitors,
            "delay": list(laws),
            "window": None if row.failure_after is None else f"{row.failure_after}ms",
            "policies": _policies(row.failure_after is not None),
            "refresh": [],
            **asked,
        }
    )
    best = chances(*(each[active] for each in posterior(at)))
    pending = sum(whole.asked - whole.told - at.assumed(place) for place, whole in enumerate(at.sums))
    return Origin(
        going,
        Running(
            row.name,
            row.status,
            now,
            sum(each.asked for each in at.sums),
            pending,
            names[int(best.argmax())],
            float(best.max()),
            at.past is not None,
            visitors,
            own,
        ),
        _pairs(a, b),
        _pairs(*(each[active] for each in posterior(_reading_silence(connection, at, now)))),
        young,
        _earlier(came, recent, active, step, row.failure_after),
    )


def _pairs(a: np.ndarray, b: np.ndarray) -> tuple[tuple[float, float], ...]:
    return tuple((float(x), float(y)) for x, y in zip(a, b, strict=True))


def _reading_silence(connection: Connection, at: Standing, now: int) -> Standing:
    """The standing, with what silence is read from where there is a window, also of an experiment that waits."""
    row = at.experiment
    if row.failure_after is None or at.past is not None:
        return at
    blocks = ledger.blocks(connection, row.id, silence.first_open(row, now))
    return at._replace(past=silence.past(connection, row, blocks, now))


def _policies(windowed: bool) -> list[str]:
    return ["thompson-silence", "wait", "split"] if windowed else ["thompson", "split"]


def _visitors(connection: Connection, at: Standing, now: int) -> float:
    """How many decisions a day were asked for in the last week, or window if that is longer, before the last of them.

    In whole days, if it is as old as that: an hour of the evening is not a day.
    """
    row = at.experiment
    end = min(now, at.last_asked)
    span = min(max(WEEK, row.failure_after or 0), end - row.created_at)
    span = span // DAY * DAY if span >= DAY else span
    asked = ledger.asked_since(connection, row.id, end - span)
    if asked < 10 or span <= 0:
        raise NotFound("experiment", f"{row.name} has had too few decisions to go by: rehearse a plan of it")
    return asked * DAY / span


def _laws(
    connection: Connection, at: Standing, active: list[int], now: int, step: int, came: list[tuple[int, int, int]]
) -> tuple[tuple[Observed, ...], tuple[str, ...]]:
    """The measured delay laws: an arm's own where enough has been heard of it, otherwise that of all.

    With a window they are of the conversions: a failure that is told, however soon, says nothing of how late these are.
    """
    window = at.experiment.failure_after
    found = curves.read(connection, at.experiment.id, now, step, window)
    if found.pooled is None:
        what = "nothing" if window is None else "no success"
        raise NotFound("experiment", f"of {at.experiment.name} {what} has been heard yet: rehearse a plan of it")
    heard = Counter[int]()
    for arm, _, count in came:
        heard[arm] += count
    laws, own = [], []
    for place in active:
        name, law = at.arms[place].name, found.pooled
        mine = found.arms[name]
        if mine is not None and heard[place] >= ENOUGH:
            law = mine
            own.append(name)
        laws.append(law if window is None else of_successes(law))
    return tuple(laws), tuple(own)


def _recent(connection: Connection, at: Standing, now: int) -> list[Recent]:
    """What the posterior does not count yet: the last window or, where both outcomes are told, what is pending."""
    row = at.experiment
    if row.failure_after is not None:
        _refuse_too_many(row, ledger.asked_since(connection, row.id, now - row.failure_after), "of an open window")
        return ledger.recent(connection, row.id, now - row.failure_after)
    _refuse_too_many(row, sum(each.asked - each.told for each in at.sums), "pending")
    pending = ledger.pending(connection, row.id)
    return [Recent(arm, asked_at, None, None) for arm, asked_at, count in pending for _ in range(count)]


def _refuse_too_many(row: ExperimentRow, count: int, what: str) -> None:
    """Each is a row in memory, replayed for every policy: refused before they are read, not after some minutes."""
    if count > MOST_YOUNG:
        most = f"a rehearsal takes at most {MOST_YOUNG:,}"
        raise InvalidInput("experiment", f"{row.name} has {count:,} decisions {what}, {most}: rehearse a plan of it")


def _young(recent: list[Recent], active: list[int], now: int, step: int) -> Young:
    """Those of them that are of active arms."""
    places = {arm: place for place, arm in enumerate(active)}
    kept = [each for each in recent if each.arm in places]
    heard = [-1 if each.wait is None else math.ceil(max(0, each.wait) / step) for each in kept]
    return Young(
        np.array([places[each.arm] for each in kept], np.int64),
        np.array([(now - each.asked_at) // step for each in kept], np.int64),
        np.array(heard, np.int64),
        np.array([(each.reward or 0) / values.BILLION for each in kept]),
    )


def _earlier(
    came: list[tuple[int, int, int]], recent: list[Recent], active: list[int], step: int, window: int | None
) -> tuple[np.ndarray, ...]:
    """By arm the lags of the conversions, less those of the young, which the states hear of themselves.

    As in the live engine, a failure has no lag, nor has a success that comes when the window has closed.
    """
    if window is None:
        return tuple(np.zeros(0) for _ in active)  # nothing is learned of delays where both outcomes are told
    lags: dict[int, dict[int, int]] = {arm: {} for arm in active}
    for arm, wait, count in came:
        if arm in lags:
            lags[arm][wait] = lags[arm].get(wait, 0) + count
    for each in recent:
        if each.arm in lags and each.wait is not None and each.reward and each.wait < window:
            lags[each.arm][each.wait] -= 1
    return tuple(
        np.repeat([max(0, wait) / step for wait in found], np.array(list(found.values()), np.int64))
        for found in lags.values()
    )

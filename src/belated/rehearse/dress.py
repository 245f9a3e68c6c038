"""The dress rehearsal: a plan lived through once, ask by ask and tell by tell, on the live engine itself.

The engine runs on a ledger of its own, under a virtual clock, with the plan's outage, with outcomes told twice and in
any order. Compiled, the same world must give the same choice in every round and the same sums at the end: what the many
compiled rehearsals say is then said of the engine.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from belated import live, loop
from belated.live import ledger, store, values
from belated.live.settings import Settings
from belated.live.version import posterior, standing
from belated.live.writer import Call
from belated.rehearse import candidates
from belated.rehearse.plan import Plan
from belated.rehearse.play import played, rates, setting_of
from belated.simulation import POLICY, VISITORS, stream

TELLING = 3
"""The stream of what only the engine meets: what is told twice, and in which order."""
BEGIN = 1_700_000_000_000  # ms: any time will do
MOST = 40_000  # visitors
VERSIONS = 500  # of the posterior: reading one takes as long as dozens of asks
MEMORY = "/dev/shm"  # where there is it: no power cut is rehearsed, so nothing need reach a disk


class Part(NamedTuple):
    """What is lived through: so many visitors under one policy, the posterior being read anew every so many."""

    name: str
    rounds: int
    every: int


@dataclass(frozen=True)
class Dress:
    """What came of it."""

    policy: str
    rounds: int
    of_rounds: int
    every: int  # rounds that a version of the posterior served
    told: int  # outcomes
    duplicates: int
    late: int  # told after their window had closed
    same_choices: bool
    same_sums: bool

    @property
    def agrees(self) -> bool:
        """Whether the engine did in every round what the compiled rehearsal did, and counted the same."""
        return self.same_choices and self.same_sums


class Lived(NamedTuple):
    """What the engine did: the arm of each round, the answers to its tells, and where each arm stood at the end."""

    chosen: np.ndarray
    answers: Counter[str]
    a: np.ndarray
    b: np.ndarray
    asked: list[int]


def part_of(plan: Plan) -> Part | None:
    """What of a plan can be lived through: the first policy that runs live, and as many visitors as time allows."""
    name = next((name for name in plan.policies if name in candidates.LIVE and _same_blocks(plan, name)), None)
    if name is None:
        return None
    every = -(-min(plan.rounds, MOST) // VERSIONS)
    return Part(name, min(plan.rounds, MOST) // every * every, every)


def block(plan: Plan) -> int:
    """The ms of a block of decisions by which the engine reads this plan's silence."""
    return _row(plan).width


def _row(plan: Plan) -> store.ExperimentRow:
    settings = Settings(silence=live.Failure(after=f"{plan.window}ms"))
    return store.ExperimentRow(0, "", "", "", 0, settings.grain, settings.window, 0)


def _same_blocks(plan: Plan, name: str) -> bool:
    """Whether the engine's blocks, which are of time, are the policy's, which are of rounds."""
    if name != "thompson-silence":
        return True
    state = plan.policy(name).start(len(plan.arms), plan.rounds)
    row = _row(plan)
    return bool(row.width == state.width * plan.step and row.bins == state.events.shape[1])


def dressed(plan: Plan, stop: np.ndarray) -> Dress | None:
    """The dress rehearsal of a plan; None if none of its policies runs live, or it has been stopped."""
    part = part_of(plan)
    if part is None:
        return None
    lived = live_through(plan, part, rates(plan, 0), stop)
    if stop[0]:
        return None
    setting = setting_of(plan, plan.policy(part.name), every=part.every)._replace(marks=np.array([part.rounds]))
    state, _ = played(setting, setting.begin(0), 0, loop.new_calendar(part.rounds + 1), stop)
    chosen = state.chosen[1:-1]
    sums = np.stack([lived.a, lived.b], axis=1)
    return Dress(
        policy=part.name,
        rounds=part.rounds,
        of_rounds=plan.rounds,
        every=part.every,
        told=lived.answers["applied"] + lived.answers["late"],
        duplicates=lived.answers["duplicate"],
        late=lived.answers["late"],
        same_choices=bool((chosen == lived.chosen).all()),
        same_sums=np.allclose(state.noted[-1], sums, rtol=1e-9, atol=0.0)
        and lived.asked == np.bincount(chosen, minlength=len(plan.arms)).tolist(),
    )


def live_through(plan: Plan, part: Part, means: np.ndarray, stop: np.ndarray, *, replication: int = 0) -> Lived:
    """Have the engine decide for every visitor of the part, and tell it what they do, when it is heard."""
    clock = Clock()
    with (
        tempfile.TemporaryDirectory(
            prefix="belated-rehearsal-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None, ignore_cleanup_errors=True
        ) as folder,
        live.open(
            f"sqlite:///{folder}/ledger.db",
            clock=clock,
            rng=stream(plan.seed, replication, POLICY),
            refresh=part.every * plan.step / 1000,
        ) as home,
    ):
        test = home.create(
            "rehearsal",
            plan.arms,
            silence=live.Pending() if plan.window is None else live.Failure(after=f"{plan.window}ms"),
            prior=plan.prior,
            **candidates.LIVE[part.name],
        )
        width = 1 if plan.window is None else block(plan)
        began = (BEGIN // width + 1) * width - plan.step  # a block begins with the first visitor
        crowd = Crowd(plan, means, replication)
        chosen, calls = np.zeros(part.rounds, np.int64), _Calls(home)
        for t in range(1, part.rounds + 1):
            clock.now = began + t * plan.step
            if (t - 1) % part.every == 0:
                calls.settle()  # the posterior is read anew: all that was told must be there
                if stop[0]:
                    break
            operation = next(test.asking())
            calls.hand_in(operation)
            chosen[t - 1] = operation.row.arm  # type: ignore[union-attr]
            clock.now += 1  # outcomes come after the decision, and before the next one
            for identity, reward in crowd.comes(t, int(chosen[t - 1]), operation.row.id):  # type: ignore[union-attr]
                calls.hand_in(home.telling(values.written(identity), reward))
        calls.settle()
        clock.now = began + (part.rounds + 1) * plan.step
        with home.store.reading() as connection:
            at = standing(connection, ledger.experiment(connection, test.name), clock.now)
        a, b = posterior(at)
        asked = [arm.asked for arm in test.summary().arms]
    return Lived(chosen, calls.answers, a, b, asked)


class Clock:
    """Time that stands where it is put, in ms; read in seconds."""

    now = BEGIN

    def __call__(self) -> float:
        return self.now / 1000


class _Calls:
    """What has been handed in to the engine's writer and is to be answered; handed in together, committed together."""

    def __init__(self, home: live.Ledger):
        self._home = home
        self._calls: list[Call] = []
        self.answers: Counter[str] = Counter()

    def hand_in(self, operation: Any) -> None:
        self._calls.append(self._home.writer.submit(operation))

    def settle(self) -> None:
        for call in self._calls:
            answer = call.wait()
            if isinstance(answer, str):
                self.answers[answer] += 1
        self._calls.clear()


class Crowd:
    """The visitors of a replication, who do what those of the compiled one do; some outcomes are told twice."""

    def __init__(self, plan: Plan, means: np.ndarray, replication: int):
        laws = plan.heard()
        self._delays = loop.PlainDelays(laws, np.zeros((len(laws), 1)))
        self._means = means
        self._visitors = stream(plan.seed, replication, VISITORS)
        self._telling = stream(plan.seed, replication, TELLING)
        self._twice = plan.duplicates
        self._due: list[tuple[float, float, bytes, float, bool]] = []  # the last: told for the first time

    def comes(self, t: int, arm: int, identity: bytes) -> list[tuple[bytes, float]]:
        """A visitor comes and is given an arm; what is heard by now, of anyone, in no particular order."""
        u, v = self._visitors.random(), self._visitors.random()
        delay, reward = self._delays.sample(t, arm, float(u < self._means[arm]), v)
        if delay < np.inf:
            heapq.heappush(self._due, (t + delay, self._telling.random(), identity, reward, True))
        heard = []
        while self._due and self._due[0][0] <= t:
            due, _, identity, reward, first = heapq.heappop(self._due)
            heard.append((identity, reward))
            if first and self._telling.random() < self._twice:  # and once more, some time later
                again = due + self._telling.integers(0, 50)
                heapq.heappush(self._due, (again, self._telling.random(), identity, reward, False))
        return heard

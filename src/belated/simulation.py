"""Replications of a scenario under several policies, over threads, gathered into a Result.

Each replication has its own seed child, and of it three streams: the instance, the visitors (two uniforms a round,
whatever the policy does) and the policy's own randomness. So every policy meets the same world, and neither the number
of threads nor the order of the policies can change a number.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from belated import loop, work
from belated.inputs import InvalidInput, number
from belated.policies import label
from belated.policies.base import Policy
from belated.provenance import provenance, versions
from belated.result import Result
from belated.scenario import Scenario
from belated.visitors import compiled_visitors
from belated.work import Outcome

Progress = Callable[[str, float], None]
"""Called with what is going on, and the fraction of the study that is done."""

INSTANCE, VISITORS, POLICY = 0, 1, 2
BATCHES = 32  # a policy, at least, if there are as many replications


def stream(seed: int, replication: int, purpose: int) -> np.random.Generator:
    """The random numbers of one purpose of one replication: a child of the replication's child of the seed."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(replication, purpose))))


def checkpoints(rounds: int, count: int = 200) -> np.ndarray:
    """About `count` rounds at which regret is noted: three in five evenly spaced, the others so in the logarithm."""
    even = np.linspace(1, rounds, max(2, int(0.6 * count)))
    logarithmic = np.geomspace(1, rounds, max(2, int(0.4 * count)))
    marks: np.ndarray = np.unique(np.concatenate([even, logarithmic]).round().astype(np.int64))
    return marks


@dataclass(frozen=True)
class Batch:
    """Some replications of one policy: the unit of work."""

    scenario: Scenario
    policy: Policy
    seed: int
    replications: range
    marks: tuple[int, ...]
    compiled: bool

    @property
    def name(self) -> str:
        """A digest of all that decides its numbers: what is run, by which code, on which versions."""
        from belated.kernels import fingerprint

        code = fingerprint(*_classes((self.scenario, self.policy)))  # it sees also classes from elsewhere
        return hashlib.sha256(f"{self!r} {code} {_own_code()} {versions()}".encode()).hexdigest()[:40]

    def run(self, stop: np.ndarray | None = None) -> Outcome:
        stop = np.zeros(1, np.uint8) if stop is None else stop
        began = time.perf_counter()
        arms, rounds = self.scenario.arms or 0, self.scenario.rounds
        marks = np.array(self.marks)
        calendar = loop.new_calendar(rounds)
        outcome = Outcome(
            np.zeros((len(self.replications), len(marks))),
            np.zeros((len(self.replications), arms), np.int64),
            np.zeros((len(self.replications), 3), np.int64),
            0.0,
        )
        for row, replication in enumerate(self.replications):
            calendar.first[:] = 0
            trace = loop.Trace(marks, outcome.regret[row], outcome.pulls[row], outcome.fates[row])
            self._replicate(replication, calendar, trace, stop)
            if stop[0]:
                break
        return outcome._replace(seconds=time.perf_counter() - began)

    def _replicate(self, replication: int, calendar: loop.Calendar, trace: loop.Trace, stop: np.ndarray) -> None:
        instance = self.scenario.draw(stream(self.seed, replication, INSTANCE))
        arms = len(instance.means)
        visitors: Any = stream(self.seed, replication, VISITORS)
        delays: Any
        if self.compiled:
            from belated import kernels

            delays, play = kernels.compiled_delays(instance.laws), kernels.play
            visitors = compiled_visitors(visitors)
        else:
            memory = np.zeros((arms, max(law.memory for law in instance.laws)))
            delays, play = loop.PlainDelays(instance.laws, memory), loop.play
        binary = self.scenario.rewards == "bernoulli"
        world = loop.World(instance.means, instance.means.max(), binary, delays, visitors)
        state = self.policy.knowing(instance.laws).start(arms, self.scenario.rounds)
        play(state, world, calendar, trace, stop, stream(self.seed, replication, POLICY))


def simulate(
    scenario: Scenario,
    policies: Sequence[Policy],
    *,
    replications: int = 100,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    compiled: bool = True,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run every policy on the same `replications` worlds of `scenario`.

    `workers` threads share the work (all cores by default), or any `executor` of `concurrent.futures`: processes,
    Dask's, MPI's. The numbers depend on `seed` alone. With `compiled=False` the loop runs as plain Python, a few
    hundred times slower, with the same numbers. The folder `keep` holds what is finished, batch by batch: the same
    study, begun again, goes on from there. Deleting it is left to the caller.

    >>> from belated import Fixed, Thompson, UCB1
    >>> world = Scenario(means=[.6, .4], delay=Fixed(40), rounds=500)
    >>> result = simulate(world, [Thompson(), UCB1()], replications=20, seed=1)
    >>> result.policies
    ('thompson', 'ucb1')
    """
    number("replications", replications, low=1, whole=True)
    number("seed", seed, low=0, whole=True)
    if workers is not None:
        number("workers", workers, low=1, whole=True)
        workers = int(workers)
    replications, seed = int(replications), int(seed)
    labels = _labels(policies)
    workers = workers or os.cpu_count() or 1
    marks = tuple(checkpoints(scenario.rounds).tolist())
    _refuse_too_large(scenario, len(policies), replications, len(marks), workers)
    world = scenario.draw(stream(seed, 0, INSTANCE))
    for policy in policies:  # what cannot play this scenario says so before any work is done
        policy.knowing(world.laws).start(scenario.arms or 0, scenario.rounds)
    began = time.perf_counter()
    batches = [
        Batch(scenario, policy, seed, rows, marks, compiled) for policy in policies for rows in _split(replications)
    ]
    report = progress or (lambda what, fraction: None)
    report(labels[0], 0.0)
    if compiled and (executor is None or isinstance(executor, ThreadPoolExecutor)):
        _compile(batches, labels, report)

    resumed: dict[str, int] = {}

    def show(place: int, done: int) -> None:
        if place < 0:
            resumed["resumed"] = done
        report(labels[place * len(labels) // len(batches)] if place >= 0 else "resumed", done / len(batches))

    outcomes = work.outcomes(
        batches, executor=executor, workers=workers, keep=None if keep is None else Path(keep), progress=show
    )
    taken = time.perf_counter() - began
    made = provenance(seed=seed, replications=replications, seconds=taken, study=scenario, **resumed)
    return _gathered(labels, marks, replications, outcomes, made)


def _gathered(
    labels: tuple[str, ...],
    marks: tuple[int, ...],
    replications: int,
    outcomes: Sequence[Outcome],
    made: dict[str, Any],
) -> Result:
    """The outcomes of all batches, those of a policy together."""
    joined = [np.concatenate(parts) for parts in list(zip(*outcomes, strict=True))[:3]]
    regret, pulls, fates = (part.reshape(len(labels), replications, -1) for part in joined)
    seconds = np.array([outcome.seconds for outcome in outcomes]).reshape(len(labels), -1).sum(axis=1)
    return Result(labels, np.array(marks), regret, pulls, fates, seconds, made)


def _labels(policies: Sequence[Policy]) -> tuple[str, ...]:
    if not policies:
        raise InvalidInput("policies", "at least one is needed, got none")
    for policy in policies:
        if not isinstance(policy, Policy):
            raise InvalidInput("policies", f"must be policies, such as Thompson(), got {policy!r}")
    labels = tuple(label(policy) for policy in policies)
    for each in labels:
        if labels.count(each) > 1:
            raise InvalidInput("policies", f"{each} is given twice")
    return labels


def _compile(batches: list[Batch], labels: tuple[str, ...], report: Progress) -> None:
    """Compile what is not compiled yet, one after the other, saying so: threads would wait for it in silence."""
    from belated import kernels

    for batch, name in zip(batches[:: len(batches) // len(labels)], labels, strict=True):
        world = batch.scenario.draw(stream(batch.seed, 0, INSTANCE))
        if not kernels.is_ready(batch.policy.knowing(world.laws).start(len(world.laws), 1)):
            report(f"{name}: compiling", 0.0)
            replace(batch, scenario=replace(batch.scenario, rounds=1), replications=range(1), marks=(1,)).run()


@cache
def _own_code() -> str:
    """A digest of every file of belated: any of them may decide a number."""
    folder = Path(loop.__file__).parent
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.rglob("*.py")))).hexdigest()


def _classes(specification: object) -> Iterator[type]:
    """The classes of which a specification is made."""
    if isinstance(specification, tuple):
        for part in specification:
            yield from _classes(part)
    elif is_dataclass(specification):
        yield type(specification)
        for each in fields(specification):
            yield from _classes(getattr(specification, each.name))


def _split(replications: int) -> list[range]:
    """Batches small enough that any number of workers end together, that progress shows, and little is lost."""
    size = max(1, replications // BATCHES)
    return [range(start, min(start + size, replications)) for start in range(0, replications, size)]


def _refuse_too_large(scenario: Scenario, policies: int, replications: int, marks: int, workers: int) -> None:
    kept = replications * policies * 8 * (marks + (scenario.arms or 0) + 3)
    needed = 2 * kept + workers * 64 * scenario.rounds
    free = _free_memory()
    if needed > free:
        given, culprit = max((replications, "replications"), (scenario.arms or 0, "arms"))
        if 2 * kept < needed / 2:
            given, culprit = max((scenario.rounds, "rounds"), (workers, "workers"))
        raise InvalidInput(culprit, f"{given} would need {needed / 1e9:.0f} GB of memory, {free / 1e9:.0f} GB are free")


def _free_memory() -> int:
    """The bytes that can be had: on Linux also what holds a cache of files; elsewhere all there are."""
    try:
        return 1024 * int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0])
    except (OSError, IndexError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

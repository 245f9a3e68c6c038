"""Rehearsals, many of them, over threads: of a plan, or of a running experiment from where it stands."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np

from belated.inputs import number
from belated.provenance import provenance
from belated.rehearse import candidates, running, words
from belated.rehearse.dress import Dress, dressed
from belated.rehearse.findings import Rehearsal, Track
from belated.rehearse.plan import Plan
from belated.rehearse.play import Batch, Setting, setting_of
from belated.simulation import Progress

PARTS = 8  # batches a worker, so that progress shows and workers end together


def run(plan: Plan, *, workers: int | None = None, progress: Progress | None = None) -> Rehearsal:
    """Rehearse a plan: every policy in the same worlds, and the first world once on the live engine itself.

    >>> from belated import rehearse
    >>> arms = {"red": 0.1, "green": 0.3}
    >>> plan = rehearse.plan({"arms": arms, "visitors": 50, "days": 8, "delay": "exponential:1d", "replications": 20})
    >>> found = rehearse.run(plan)
    >>> found.policies, found.dress.agrees
    (('thompson', 'split'), True)
    """
    settings = {name: setting_of(plan, plan.policy(name)) for name in plan.policies}
    return _rehearsed(plan, settings | _changes(plan), workers, progress, dress=dressed)


def going_on(
    ledger: str, experiment: str, *, workers: int | None = None, progress: Progress | None = None, **asked: Any
) -> Rehearsal:
    """Rehearse what a running experiment comes to, if it stops now or goes on. Its ledger is only read.

    `asked` are the keywords of `running.origin`: how many `days` it may go on, and the `horizon` until which the arm
    that is chosen will be used, both from now.
    """
    origin = running.origin(ledger, experiment, **asked)
    settings = {name: origin.setting(name) for name in origin.plan.policies}
    return _rehearsed(origin.plan, settings, workers, progress, now=origin.running)


def _rehearsed(
    plan: Plan,
    settings: Mapping[str, Setting],
    workers: int | None,
    progress: Progress | None,
    *,
    dress: Callable[[Plan, np.ndarray], Dress | None] = lambda plan, stop: None,
    now: running.Running | None = None,
) -> Rehearsal:
    if workers is not None:
        number("workers", workers, low=1, whole=True)
    began = time.perf_counter()
    tracks, lived = _all(plan, settings, dress, int(workers or os.cpu_count() or 1), progress)
    seconds = time.perf_counter() - began
    return Rehearsal(
        plan=plan,
        marks=next(iter(settings.values())).marks,
        tracks={name: tracks[name] for name in plan.policies},
        changes={name: track for name, track in tracks.items() if name not in plan.policies},
        dress=lived,
        provenance=provenance(seed=plan.seed, replications=plan.replications, seconds=seconds),
        running=now,
    )


def _changes(plan: Plan) -> dict[str, Setting]:
    """The same plan for its first policy, with one thing changed."""
    first = plan.policy(plan.policies[0])
    made = {f"refresh {age}": setting_of(plan, first, every=plan.in_rounds(age)) for age in plan.refresh}
    if plan.outage is not None:
        made["no outage"] = setting_of(plan, first, laws=plan.without_outage().heard())
    return made


def _all(
    plan: Plan,
    settings: Mapping[str, Setting],
    dress: Callable[[Plan, np.ndarray], Dress | None],
    workers: int,
    progress: Progress | None,
) -> tuple[dict[str, Track], Dress | None]:
    """The tracks of all settings and the dress rehearsal. On any error, Ctrl-C included, what runs is told to stop."""
    report = progress or (lambda what, fraction: None)
    stop = np.zeros(1, np.uint8)
    size = max(1, -(-plan.replications // (PARTS * workers)))
    ranges = [range(at, min(at + size, plan.replications)) for at in range(0, plan.replications, size)]
    found: dict[str, list[Track | None]] = {name: [None] * len(ranges) for name in settings}
    places: dict[Future[Track], tuple[str, int]] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            report("compiling", 0.0)
            rehearsal = pool.submit(dress, plan, stop)
            for name, setting in settings.items():
                for place, rows in enumerate(ranges):
                    places[pool.submit(Batch(setting, rows).run, stop)] = (name, place)
            for done, future in enumerate(as_completed(places), start=1):
                name, place = places[future]
                found[name][place] = future.result()
                label = candidates.label(name) if name in plan.policies else words.change(name)
                report(label, done / (len(places) + 1))
            report("the dress rehearsal on the live engine", len(places) / (len(places) + 1))
            lived = rehearsal.result()
        except BaseException:
            stop[0] = 1
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {name: _joined([track for track in parts if track is not None]) for name, parts in found.items()}, lived


def _joined(parts: Sequence[Track]) -> Track:
    return Track(*(np.concatenate(each) for each in zip(*parts, strict=True)))

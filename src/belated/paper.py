"""The experiments of the paper, Section 4, as data, and those for the questions that it leaves open.

What it says of them is in `claims`, and what the others answer in `questions`.

What it does not give is chosen here, and docs/reproduction.md lists it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from belated.delays import Fixed, Geometric, Loss, Pareto, Queue, RewardDependent, Uniform
from belated.inputs import Between, number
from belated.law import Law
from belated.policies import Policy, named
from belated.provenance import provenance
from belated.result import Result
from belated.scenario import Scenario
from belated.simulation import Progress, simulate

MAIN = ("thompson", "ucb1", "ucb1-nolog", "elimination", "elimination-log")


@dataclass(frozen=True)
class Experiment:
    """A scenario, the policies that meet it, and how often. A member of a sweep also has its place on the axis."""

    name: str
    title: str
    scenario: Scenario
    replications: int
    policies: tuple[str, ...] = MAIN
    at: float | None = None

    @property
    def sweep(self) -> str | None:
        return self.name.partition("/")[0] if self.at is not None else None

    def specifications(self) -> list[Policy]:
        return [named(name) for name in self.policies]


def _twenty(delay: Law, rounds: int, best: Law | None = None) -> Scenario:
    return Scenario(means=Between(0.25, 0.75), arms=20, delay=delay, rounds=rounds, best_delay=best)


def _pareto(alpha: float) -> Experiment:
    scenario = Scenario(means=[0.40, 0.45], delay=[Pareto(1.0), Pareto(alpha)], rounds=3000)
    return Experiment(f"pareto-{alpha}", f"Pareto delays, alpha = 1 and {alpha}", scenario, 300, (*MAIN, "patient"))


def _packet_loss(name: str, title: str, best: float | None, at: float | None = None) -> Experiment:
    scenario = _twenty(Loss(Between(0.0, 1.0)), 10_000, None if best is None else Loss(best))
    return Experiment(name, title, scenario, 200, (*MAIN, "phased", "phased-theory"), at)


DELAYS = (0, 50, 250, 500, 1000)
ARRIVALS = (0.05, 0.108, 0.25, 0.5, 0.75, 1.0)

# The questions that the paper leaves open. One gap in each sweep, so that nothing but its axis changes: a wide one with
# many arms, for 200 arms a fifth apart take far more than 20,000 rounds to learn.
ARMS = (2, 5, 10, 20, 50, 100, 200)
ARMS_MEANS = (0.9, 0.1)
ARMS_DELAY = 250
TWO_ARM_DELAYS = (0, 50, 100, 250, 500, 1000)
TWO_ARM_MEANS = (0.6, 0.4)


def _many(arms: int, delay: int) -> Experiment:
    best, other = ARMS_MEANS
    scenario = Scenario(means=[best] + [other] * (arms - 1), delay=Fixed(delay), rounds=5000)
    title = f"{arms} arms, fixed delay {delay}"
    return Experiment(f"arms-sweep-{delay}/{arms}", title, scenario, 40, ("thompson",), at=arms)


def _two(delay: int) -> Experiment:
    scenario = Scenario(means=TWO_ARM_MEANS, delay=Fixed(delay), rounds=10_000)
    return Experiment(f"two-arm-sweep/{delay}", f"Two arms, fixed delay {delay}", scenario, 200, ("thompson",), delay)


OPEN = (*(_many(arms, delay) for delay in (ARMS_DELAY, 0) for arms in ARMS), *map(_two, TWO_ARM_DELAYS))

_LATE_ONES = RewardDependent(success=Fixed(1000), failure=Fixed(0))
_LATE_ZEROS = RewardDependent(success=Fixed(0), failure=Fixed(1000))

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("fixed", "Fixed delay 250", _twenty(Fixed(250), 20_000), 100),
    _pareto(0.2),
    _pareto(0.5),
    _pareto(0.8),
    _packet_loss("packet-loss", "Packet loss", None),
    _packet_loss("packet-loss-0.108", "Packet loss, best arm arrives with p = 0.108", 0.108),
    Experiment(
        "geometric",
        "Geometric delays, p = 0.01",
        Scenario(means=[0.5, 0.4, 0.3], delay=Geometric(0.01), rounds=10_000),
        200,
        (*MAIN, "ud-ucb"),
    ),
    Experiment("uniform", "Uniform delays on [150, 300]", _twenty(Uniform(150, 300), 20_000), 100),
    Experiment("uniform-0-300", "Uniform delays on [0, 300]", _twenty(Uniform(0, 300), 20_000), 100),
    Experiment(
        "queue",
        "Queues, service rate 0.1",
        Scenario(means=Between(0.25, 0.75), arms=5, delay=Queue(0.1), rounds=20_000),
        200,
    ),
    *(
        Experiment(f"delay-sweep/{delay}", f"Fixed delay {delay}", _twenty(Fixed(delay), 20_000), 100, at=delay)
        for delay in DELAYS
    ),
    *(_packet_loss(f"packet-loss-sweep/{p}", f"Packet loss, best arm arrives with p = {p}", p, at=p) for p in ARRIVALS),
    Experiment(
        "reward-dependent",
        "The best arm's ones and the others' zeros come 1000 rounds late",
        Scenario(means=[0.6, 0.5, 0.4], delay=[_LATE_ONES, _LATE_ZEROS, _LATE_ZEROS], rounds=20_000),
        200,
    ),
    Experiment(
        "reward-independent",
        "The same arms, everything 1000 rounds late",
        Scenario(means=[0.6, 0.5, 0.4], delay=Fixed(1000), rounds=20_000),
        200,
    ),
    *OPEN,
)

# The figures of the paper, in its order; those of Section 4.2 beside one another.
FIGURES = ("fixed", "pareto-0.2", "pareto-0.5", "pareto-0.8", "packet-loss", "geometric", "uniform", "queue")


# The sweeps: a title and the name of the axis.
SWEEPS = {
    "delay-sweep": ("Final regret against a fixed delay", "delay in rounds"),
    "packet-loss-sweep": ("Final regret against the best arm's chance to arrive", "p of the best arm"),
}


def experiments(instance: int | None = None, replications: int | None = None) -> list[Experiment]:
    """All experiments; with `instance`, a seed, all replications of each share one instance."""
    if replications is not None:
        number("replications", replications, low=1, whole=True)
    chosen = []
    for each in EXPERIMENTS:
        scenario = replace(each.scenario, instance=instance) if instance is not None else each.scenario
        chosen.append(
            replace(each, scenario=scenario, replications=each.replications if replications is None else replications)
        )
    return chosen


def _work(each: Experiment) -> int:
    """About how long it takes, in a unit of its own."""
    return each.scenario.rounds * each.replications * len(each.policies) * (each.scenario.arms or 0)


def run(
    chosen: list[Experiment], *, seed: int = 1, progress: Progress | None = None, **options: Any
) -> tuple[dict[str, Result], dict[str, Any]]:
    """The results of the experiments by name, and where they come from. What is the same is run once.

    `options` are those of `simulate`: workers, executor, keep.
    """
    began = time.perf_counter()
    report = progress or (lambda what, fraction: None)
    costs = [_work(each) for each in chosen]
    total, done = sum(costs), 0
    seen: dict[Any, Result] = {}
    results = {}
    for each, cost in zip(chosen, costs, strict=True):
        key = (each.scenario, each.policies, each.replications)
        if key not in seen:

            def show(what: str, fraction: float, name: str = each.name, base: int = done, cost: int = cost) -> None:
                report(f"{name}: {what}", (base + fraction * cost) / total)

            seen[key] = simulate(
                each.scenario,
                each.specifications(),
                replications=each.replications,
                seed=seed,
                progress=show,
                **options,
            )
        results[each.name] = seen[key]
        done += cost
    resumed = sum(result.provenance.get("resumed", 0) for result in seen.values())
    return results, provenance(
        seed=seed, seconds=time.perf_counter() - began, **({"resumed": resumed} if resumed else {})
    )

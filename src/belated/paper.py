"""The experiments and claims of the paper, Section 4, as data.

Where the paper leaves something open or contradicts itself, each reading is run: `READINGS` names them. What is not
given is chosen here, and docs/reproduction.md lists it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from belated.delays import Fixed, Geometric, Law, Loss, Pareto, Queue, RewardDependent, Uniform
from belated.inputs import Between, number
from belated.policies import Policy, named
from belated.provenance import provenance
from belated.result import Comparison, Result, paired
from belated.scenario import Scenario
from belated.simulate import Progress, simulate

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


# --- Claims ---------------------------------------------------------------------------------------------------------

Verdict = Literal["holds", "fails", "cannot tell"]

# What a claim may be read to mean: for each word, the policies or experiments that it can stand for.
READINGS: dict[str, dict[str, str]] = {
    "UCB": {"ucb1": "UCB1 with log", "ucb1-nolog": "UCB1 without log"},
    "SE": {"elimination": "SE without log", "elimination-log": "SE with log"},
    "PSE": {"phased": "practical PSE", "phased-theory": "theoretical PSE"},
    "UNIFORM": {"uniform": "[150, 300]", "uniform-0-300": "[0, 300]"},
    "PACKET": {"packet-loss": "instances redrawn", "packet-loss-0.108": "best arm p = 0.108"},
}


@dataclass(frozen=True)
class Part:
    """One comparison: a margin by replication, whose mean should be positive, or zero if `expects` is 0."""

    kind: str
    where: tuple[str, ...]
    policies: tuple[str, ...]
    expects: int = 1

    def words(self) -> tuple[str, ...]:
        return (*self.where, *self.policies)


def lower(where: str, better: str, worse: str) -> Part:
    """The final regret of `better` is lower than that of `worse`."""
    return Part("lower", (where,), (better, worse))


class Claim(NamedTuple):
    """A comparing sentence of the paper, and the comparisons that it makes."""

    id: str
    text: str
    parts: tuple[Part, ...]

    def readings(self) -> Iterator[dict[str, str]]:
        """Every choice of meanings for the words it uses."""
        used = [word for word in READINGS if any(word in part.words() for part in self.parts)]
        for meanings in itertools.product(*(READINGS[word] for word in used)):
            yield dict(zip(used, meanings, strict=True))


def _over(names: tuple[str, ...], better: tuple[str, ...], worse: tuple[str, ...]) -> tuple[Part, ...]:
    return tuple(lower(name, one, other) for name in names for one in better for other in worse)


_PARETO = ("pareto-0.2", "pareto-0.5", "pareto-0.8")
_DELAY_SWEEP = tuple(f"delay-sweep/{delay}" for delay in DELAYS)
_LOSS_SWEEP = tuple(f"packet-loss-sweep/{p}" for p in ARRIVALS if p >= 0.108)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "E1.1",
        "Fixed delay: TS significantly outperforms the UCB style algorithms.",
        _over(("fixed",), ("thompson",), ("UCB", "SE")),
    ),
    Claim(
        "E1.2",
        "Fixed delay: TS's regret plateaus long before the other two (it grows less in the second half).",
        tuple(Part("flatter", ("fixed",), ("thompson", other)) for other in ("UCB", "SE")),
    ),
    Claim(
        "E1.3",
        "Without delay the gap between the UCB style algorithms and TS is not significant.",
        tuple(Part("lower", ("delay-sweep/0",), ("thompson", other), expects=0) for other in ("UCB", "SE")),
    ),
    Claim(
        "E1.4",
        "The gap between the UCB style algorithms and TS widens as the delay increases.",
        tuple(Part("widens", _DELAY_SWEEP, ("thompson", other)) for other in ("UCB", "SE")),
    ),
    Claim(
        "E2.1",
        "Pareto: SE outperforms PB only when alpha is small (at 0.2; not at 0.5 and 0.8).",
        (
            lower("pareto-0.2", "SE", "patient"),
            lower("pareto-0.5", "patient", "SE"),
            lower("pareto-0.8", "patient", "SE"),
        ),
    ),
    Claim(
        "E2.2",
        "Pareto: TS and Delayed-UCB1 are significantly better than SE and PB.",
        _over(_PARETO, ("thompson", "UCB"), ("SE", "patient")),
    ),
    Claim(
        "E2.3",
        "Pareto: TS has much smaller regret than Delayed-UCB1 (read as: smaller).",
        _over(_PARETO, ("thompson",), ("UCB",)),
    ),
    Claim(
        "E3.1",
        "Packet loss: TS and Delayed-UCB are the clear winners.",
        _over(("PACKET",), ("thompson", "UCB"), ("SE", "PSE")),
    ),
    Claim("E3.2", "Packet loss: of the two, TS performs slightly better.", _over(("PACKET",), ("thompson",), ("UCB",))),
    Claim(
        "E3.3",
        "Packet loss: the gap between the two widens as the best arm arrives more often than p = 0.108.",
        (Part("widens", _LOSS_SWEEP, ("thompson", "UCB")),),
    ),
    Claim(
        "E4.1",
        "Geometric: TS performs much better than the other three (read as: better).",
        _over(("geometric",), ("thompson",), ("UCB", "SE", "ud-ucb")),
    ),
    Claim(
        "E4.2", "Geometric: TS beats UD-UCB, which knows the delay.", _over(("geometric",), ("thompson",), ("ud-ucb",))
    ),
    Claim("E5.1", "Uniform: TS performs significantly better.", _over(("UNIFORM",), ("thompson",), ("UCB", "SE"))),
    Claim("E6.1", "Queue: TS works much better (read as: better).", _over(("queue",), ("thompson",), ("UCB", "SE"))),
    Claim(
        "E7.1",
        "Discussion: in some reward-dependent settings TS has large regret (larger than if all were as late).",
        (Part("costlier", ("reward-dependent", "reward-independent"), ("thompson",)),),
    ),
)


def _margin_lower(results: list[Result], policies: list[str]) -> np.ndarray:
    margin: np.ndarray = results[0].finals(policies[1]) - results[0].finals(policies[0])
    return margin


def _margin_flatter(results: list[Result], policies: list[str]) -> np.ndarray:
    middle = int(np.searchsorted(results[0].rounds, results[0].rounds[-1] / 2))
    late = [results[0].curves(policy)[:, -1] - results[0].curves(policy)[:, middle] for policy in policies]
    margin: np.ndarray = late[1] - late[0]
    return margin


def _margin_costlier(results: list[Result], policies: list[str]) -> np.ndarray:
    margin: np.ndarray = results[0].finals(policies[0]) - results[1].finals(policies[0])
    return margin


def _margin_widens(results: list[Result], policies: list[str], at: np.ndarray) -> np.ndarray:
    """Each replication's least-squares slope of its gap along the sweep, times the length of the sweep."""
    gaps = np.array([_margin_lower([result], policies) for result in results])
    centred = at - at.mean()
    slope: np.ndarray = centred @ gaps / (centred @ centred) * (at.max() - at.min())
    return slope


_MARGINS: dict[str, Callable[[list[Result], list[str]], np.ndarray]] = {
    "lower": _margin_lower,
    "flatter": _margin_flatter,
    "costlier": _margin_costlier,
}
_WORDING = {
    "lower": "{where}: regret of {policies[1]} - {policies[0]}",
    "flatter": "{where}: growth in the second half, {policies[1]} - {policies[0]}",
    "costlier": "regret of {policies[0]}, reward-dependent - reward-independent",
    "widens": "{where}: change of the gap {policies[1]} - {policies[0]} along the sweep",
}


class Evidence(NamedTuple):
    """One comparison of a claim: what was measured, the sign it should have, and what it was."""

    what: str
    expects: int
    comparison: Comparison

    @property
    def verdict(self) -> Verdict:
        if self.comparison.sign == self.expects:
            return "holds"
        return "cannot tell" if self.comparison.sign == 0 else "fails"


class Finding(NamedTuple):
    """A claim under one reading."""

    claim: Claim
    reading: dict[str, str]
    evidence: tuple[Evidence, ...]

    @property
    def verdict(self) -> Verdict:
        """All parts must hold; one that fails is enough to fail."""
        verdicts = {each.verdict for each in self.evidence}
        return "fails" if "fails" in verdicts else "cannot tell" if "cannot tell" in verdicts else "holds"

    @property
    def read_as(self) -> str:
        return ", ".join(READINGS[word][meaning] for word, meaning in self.reading.items()) or "as written"

    def to_dict(self) -> dict[str, Any]:
        parts = [
            {
                "what": each.what,
                "expected": "positive" if each.expects else "zero",
                "difference": each.comparison.difference,
                "low": each.comparison.low,
                "high": each.comparison.high,
                "verdict": each.verdict,
            }
            for each in self.evidence
        ]
        return {
            "id": self.claim.id,
            "text": self.claim.text,
            "reading": self.read_as,
            "verdict": self.verdict,
            "evidence": parts,
        }


def judge(claim: Claim, reading: dict[str, str], results: Mapping[str, Result]) -> Finding | None:
    """The claim under that reading, or None if an experiment it speaks of was not run."""
    evidence = []
    for part in claim.parts:
        where = [reading.get(name, name) for name in part.where]
        policies = [reading.get(name, name) for name in part.policies]
        if any(name not in results for name in where):
            return None
        found = [results[name] for name in where]
        if part.kind == "widens":
            margin = _margin_widens(found, policies, np.array([float(name.partition("/")[2]) for name in where]))
        else:
            margin = _MARGINS[part.kind](found, policies)
        place = where[0].partition("/")[0] if part.kind == "widens" else where[0]
        evidence.append(
            Evidence(_WORDING[part.kind].format(where=place, policies=policies), part.expects, paired(margin))
        )
    return Finding(claim, reading, tuple(evidence))


def findings(results: Mapping[str, Result]) -> list[Finding]:
    """Every claim under each of its readings."""
    judged = (judge(claim, reading, results) for claim in CLAIMS for reading in claim.readings())
    return [finding for finding in judged if finding is not None]


def readings_with(found: Sequence[Finding], verdict: Verdict) -> list[str]:
    """The readings of one claim that have that verdict, in as few words as cover them.

    A word that does not matter is left out: "SE with log" stands for all readings with that meaning of SE.
    """
    left = [finding.reading for finding in found if finding.verdict == verdict]
    others = [finding.reading for finding in found if finding.verdict != verdict]
    if not others:
        return ["as written" if len(found) == 1 else "every reading"]
    said = []
    words = list(found[0].reading)
    for size in range(1, len(words) + 1):
        for chosen in itertools.combinations(words, size):
            for meanings in itertools.product(*(READINGS[word] for word in chosen)):
                partial = dict(zip(chosen, meanings, strict=True)).items()
                if any(partial <= reading.items() for reading in others):
                    continue
                if any(partial <= reading.items() for reading in left):
                    said.append(", ".join(READINGS[word][meaning] for word, meaning in partial))
                    left = [reading for reading in left if not partial <= reading.items()]
    return said


class Whole(NamedTuple):
    """A meaning for every word at once, and how many claims hold, fail, or cannot be told under it."""

    reading: dict[str, str]
    holds: int
    fails: int
    cannot_tell: int


def whole_readings(found: list[Finding]) -> list[Whole]:
    """All ways to read the paper consistently, the one with the most claims true first."""
    wholes = []
    for meanings in itertools.product(*READINGS.values()):
        reading = dict(zip(READINGS, meanings, strict=True))
        verdicts = [each.verdict for each in found if each.reading.items() <= reading.items()]
        wholes.append(Whole(reading, verdicts.count("holds"), verdicts.count("fails"), verdicts.count("cannot tell")))
    return sorted(wholes, key=lambda whole: (-whole.holds, whole.fails))


def run(
    chosen: list[Experiment], *, seed: int = 1, workers: int | None = None, progress: Progress | None = None
) -> tuple[dict[str, Result], dict[str, Any]]:
    """The results of the experiments by name, and where they come from. What is the same is run once."""
    began = time.perf_counter()
    report = progress or (lambda what, fraction: None)
    costs = [each.scenario.rounds * each.replications * (each.scenario.arms or 0) for each in chosen]
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
                workers=workers,
                progress=show,
            )
        results[each.name] = seen[key]
        done += cost
    return results, provenance(seed=seed, seconds=time.perf_counter() - began)

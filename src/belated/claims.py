"""The comparing sentences of the paper's Section 4, as data, and how they are judged.

A claim is a set of paired comparisons. Where the paper's words can be read in more than one way, each reading is
judged: `READINGS` says what a word can stand for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from belated.paper import ARRIVALS, DELAYS
from belated.result import Comparison, Result, paired

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
    Claim(
        "E3.2",
        "Packet loss: of the two, TS performs slightly better (read as: better).",
        _over(("PACKET",), ("thompson",), ("UCB",)),
    ),
    Claim(
        "E3.3",
        "Packet loss: the gap between the two widens as the best arm arrives more often than p = 0.108.",
        (Part("widens", _LOSS_SWEEP, ("thompson", "UCB")),),
    ),
    Claim(
        "E3.4",
        "Packet loss: with the best arm at p = 0.108 Delayed-UCB is comparable to TS (read as: no significant gap).",
        (Part("lower", ("packet-loss-0.108",), ("thompson", "UCB"), expects=0),),
    ),
    Claim(
        "E4.1",
        "Geometric: TS performs much better than the other three (read as: better).",
        _over(("geometric",), ("thompson",), ("UCB", "SE", "ud-ucb")),
    ),
    Claim(
        "E4.2",
        "Geometric: TS is also much better than UD-UCB, which knows the delay (read as: better).",
        _over(("geometric",), ("thompson",), ("ud-ucb",)),
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


def by_claim(findings: Sequence[Finding]) -> list[tuple[Claim, list[Finding]]]:
    """The findings of each claim, in order."""
    grouped: dict[str, tuple[Claim, list[Finding]]] = {}
    for finding in findings:
        grouped.setdefault(finding.claim.id, (finding.claim, []))[1].append(finding)
    return list(grouped.values())


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

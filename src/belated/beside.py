"""Bounds beside what is measured: for a problem of one's own, and for the experiments of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from belated import theory
from belated.inputs import Between
from belated.paper import EXPERIMENTS, FIGURES
from belated.policies import Policy, label, named
from belated.result import Result
from belated.scenario import Scenario
from belated.simulation import simulate
from belated.theory import Row


class Line(NamedTuple):
    """A bound, and the mean regret that was measured of its policy, with its standard error; nan if it was not."""

    row: Row
    regret: float = math.nan
    se: float = math.nan

    @property
    def times_measured(self) -> float:
        return self.row.bound.value / self.regret if self.row.bound and self.regret > 0.0 else math.nan

    @property
    def times_trivial(self) -> float:
        return self.row.bound.value / self.row.bound.trivial if self.row.bound else math.nan

    def to_dict(self) -> dict[str, Any]:
        bound = self.row.bound
        known: dict[str, Any] = {"bound": self.row.name, "policy": self.row.policy}
        if bound is None:
            return known | {"refused": self.row.refused}
        return known | {
            "value": _finite(bound.value),
            "trivial": bound.trivial,
            "explicit_only": bound.explicit_only,
            "q": [_finite(q) for q in bound.quantiles],
            "d": [_finite(d) for d in bound.delays],
            "measured": _finite(self.regret),
            "se": _finite(self.se),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def lines(rows: Sequence[Row], result: Result | None = None) -> list[Line]:
    """The bounds, each beside the regret of its policy, if `result` has it."""
    found = {row["policy"]: row for row in result.summary()} if result else {}
    made = []
    for row in rows:
        policy = _policy(row)
        measured = found.get(label(policy), found.get(row.policy)) if policy else None
        made.append(Line(row, measured["regret"], measured["se"]) if measured else Line(row))
    return made


def _policy(row: Row) -> Policy | None:
    """What the bound is about; PatientBandits is told the exponent of the bound, of which no more than 1/2 counts."""
    if row.policy is None or row.bound is None:
        return None
    alpha = row.bound.choices.get("alpha")
    return named(row.policy) if alpha is None else named(row.policy, alpha=min(alpha, 1.0))


def simulated(rows: Sequence[Row], scenario: Scenario, **options: Any) -> list[Line]:
    """The bounds beside a simulation of their policies; `options` are those of `simulate`.

    >>> from belated import Fixed
    >>> rows = theory.every([.6, .4], Fixed(20), 300, without=["thompson-certified"])
    >>> world = Scenario(means=[.6, .4], delay=Fixed(20), rounds=300)
    >>> simulated(rows, world, replications=20, seed=1)[0].times_measured > 1000
    True
    """
    policies = [policy for row in rows if (policy := _policy(row)) is not None]
    return lines(rows, simulate(scenario, list(dict.fromkeys(policies)), **options))


def of_paper(results: Mapping[str, Result]) -> dict[str, list[Line]]:
    """The bounds for the experiments of the paper's figures whose arms are given, beside their results.

    Where the arms are drawn there is none: two may be as close as they like, and the mean of 1 / gap is infinite.
    """
    found = {}
    for each in EXPERIMENTS:
        world = each.scenario
        if each.name in FIGURES and each.name in results and not isinstance(world.means, Between):
            found[each.name] = lines(theory.every(world.means, world.delay, world.rounds), results[each.name])
    return found


def span(bounds: Mapping[str, Sequence[Line]]) -> str:
    """How far the theorems' bounds are above what is measured, in a sentence."""
    every = [line for lines in bounds.values() for line in lines if line.times_measured == line.times_measured]
    certified = [line.times_measured for line in every if line.row.name == "thompson-certified"]
    others = [line.times_measured for line in every if line.row.name != "thompson-certified"]
    said = []
    if others:
        said.append(f"they are {short(min(others))} to {short(max(others))} times what is measured")
    if certified:
        said.append(f"the certified bound {short(min(certified))} to {short(max(certified))} times")
    return ", ".join(said)


def short(value: float) -> str:
    """A number in few digits.

    >>> short(0.0412), short(12.34), short(626698.1), short(6.5e8)
    ('0.0412', '12.3', '626,698', '6.5e+08')
    """
    if not 1e-3 <= abs(value) < 1e7:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

"""Bandits for rewards that arrive late.

>>> from belated import Scenario, Thompson, UCB1, Geometric, simulate
>>> world = Scenario(means=[.5, .4, .3], delay=Geometric(.01), rounds=2000)
>>> result = simulate(world, [Thompson(), UCB1()], replications=20, seed=1)
>>> result.compare("thompson", "ucb1").sign
-1
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from belated import delays, policies
from belated.delays import (
    Conversions,
    Drifting,
    Exponential,
    Fixed,
    Geometric,
    Loss,
    Mixture,
    Observed,
    Pareto,
    Queue,
    RewardDependent,
    Uniform,
)
from belated.inputs import Between, InvalidInput
from belated.law import Law
from belated.marks import compiled
from belated.policies import (
    QPMD,
    UCB1,
    UDUCB,
    OptimisticElimination,
    PatientBandits,
    PhasedElimination,
    Policy,
    SilenceIsFailure,
    Split,
    SuccessiveElimination,
    Thompson,
    ThompsonSilence,
    Wait,
)
from belated.result import Comparison, Result
from belated.scenario import Scenario
from belated.simulate import simulate

if TYPE_CHECKING:
    from belated import live, theory

__version__ = "0.1.0"

__all__ = [
    "QPMD",
    "UCB1",
    "UDUCB",
    "Between",
    "Comparison",
    "Conversions",
    "Drifting",
    "Exponential",
    "Fixed",
    "Geometric",
    "InvalidInput",
    "Law",
    "Loss",
    "Mixture",
    "Observed",
    "OptimisticElimination",
    "Pareto",
    "PatientBandits",
    "PhasedElimination",
    "Policy",
    "Queue",
    "Result",
    "RewardDependent",
    "Scenario",
    "SilenceIsFailure",
    "Split",
    "SuccessiveElimination",
    "Thompson",
    "ThompsonSilence",
    "Uniform",
    "Wait",
    "compiled",
    "delays",
    "live",
    "policies",
    "simulate",
    "theory",
]


def __getattr__(name: str) -> Any:
    """The doors that are opened when they are first asked for: `theory` needs scipy, `live` a database."""
    if name in ("live", "theory"):
        return importlib.import_module(f"belated.{name}")
    raise AttributeError(f"module 'belated' has no attribute {name!r}")

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

if TYPE_CHECKING:
    from belated import delays, live, policies, rehearse, theory
    from belated.delays import (
        Conversions,
        Drifting,
        Exponential,
        Fixed,
        Geometric,
        Loss,
        Mixture,
        Observed,
        Outage,
        Pareto,
        Queue,
        Refreshed,
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
    from belated.simulation import simulate

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
    "Outage",
    "Pareto",
    "PatientBandits",
    "PhasedElimination",
    "Policy",
    "Queue",
    "Refreshed",
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
    "rehearse",
    "simulate",
    "theory",
]


# Where each name is from. What is not asked for is not imported: `belated --help` needs neither NumPy nor the rest.
_HOMES = {
    "delays": (
        "Conversions", "Drifting", "Exponential", "Fixed", "Geometric", "Loss", "Mixture", "Observed", "Outage",
        "Pareto", "Queue", "Refreshed", "RewardDependent", "Uniform",
    ),
    "inputs": ("Between", "InvalidInput"),
    "law": ("Law",),
    "marks": ("compiled",),
    "policies": (
        "OptimisticElimination", "PatientBandits", "PhasedElimination", "Policy", "QPMD", "SilenceIsFailure", "Split",
        "SuccessiveElimination", "Thompson", "ThompsonSilence", "UCB1", "UDUCB", "Wait",
    ),
    "result": ("Comparison", "Result"),
    "scenario": ("Scenario",),
    "simulation": ("simulate",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("delays", "live", "policies", "rehearse", "theory")


def __getattr__(name: str) -> Any:
    """A public name, when it is first asked for."""
    if name in _MODULES:
        return importlib.import_module(f"belated.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'belated' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"belated.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

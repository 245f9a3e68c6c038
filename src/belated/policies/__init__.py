"""The policies, by name.

>>> named("ucb1", log=False)
UCB1(log=False)
>>> label(UCB1(log=False))
'ucb1-nolog'
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from belated.inputs import nearest
from belated.policies.base import Policy
from belated.policies.conversions import UDUCB
from belated.policies.elimination import SuccessiveElimination
from belated.policies.optimistic import OptimisticElimination
from belated.policies.patient import PatientBandits
from belated.policies.phased import PhasedElimination
from belated.policies.queued import QPMD
from belated.policies.silence import ThompsonSilence
from belated.policies.split import Split
from belated.policies.thompson import Thompson
from belated.policies.ucb import UCB1
from belated.policies.waiting import SilenceIsFailure, Wait

__all__ = [
    "POLICIES",
    "QPMD",
    "UCB1",
    "UDUCB",
    "OptimisticElimination",
    "PatientBandits",
    "PhasedElimination",
    "Policy",
    "SilenceIsFailure",
    "Split",
    "SuccessiveElimination",
    "Thompson",
    "ThompsonSilence",
    "Wait",
    "keys",
    "label",
    "named",
]


class Preset(NamedTuple):
    """A policy's name: which specification it starts from."""

    make: type[Policy]
    parameters: dict[str, Any]


POLICIES: dict[str, Preset] = {
    "elimination": Preset(SuccessiveElimination, {}),
    "elimination-log": Preset(SuccessiveElimination, {"log": True}),
    "elimination-optimistic": Preset(OptimisticElimination, {}),
    "patient": Preset(PatientBandits, {}),
    "phased": Preset(PhasedElimination, {}),
    "phased-theory": Preset(PhasedElimination, {"c": 16.0, "growth": 4.0, "log": True}),
    "qpm-d": Preset(QPMD, {}),
    "silence-is-failure": Preset(SilenceIsFailure, {}),
    "split": Preset(Split, {}),
    "thompson": Preset(Thompson, {}),
    "thompson-silence": Preset(ThompsonSilence, {}),
    "thompson-silence-exact": Preset(ThompsonSilence, {"curve": "exact", "blocks": 25}),
    "thompson-silence-known": Preset(ThompsonSilence, {"curve": "known"}),
    "ucb1": Preset(UCB1, {}),
    "ucb1-nolog": Preset(UCB1, {"log": False}),
    "ud-ucb": Preset(UDUCB, {}),
    "wait": Preset(Wait, {}),
}


def keys(name: str) -> list[str]:
    """The parameters of the policy of that name, in order."""
    if name not in POLICIES:
        raise nearest("policies", "policy", name, POLICIES)
    return [each.name for each in fields(POLICIES[name].make)]


def named(name: str, **parameters: Any) -> Policy:
    """The policy of that name, with parameters as keywords; `base` may be a name too.

    >>> named("qpm-d", base="thompson")
    QPMD(base=Thompson(prior=(1.0, 1.0), coin=False, lazy=True))
    """
    known = keys(name)
    for key in parameters:
        if key not in known:
            raise nearest("policies", f"parameter of {name}", key, known)
    preset = POLICIES[name]
    if isinstance(parameters.get("base"), str):
        parameters["base"] = named(parameters["base"])
    return preset.make(**{**preset.parameters, **parameters})


def label(policy: Policy) -> str:
    """The name of a policy, with what differs from the preset of that name in brackets."""
    presets = [(name, preset.parameters) for name, preset in POLICIES.items() if preset.make is type(policy)]
    described = [(name, _differences(policy, preset)) for name, preset in presets or [(policy.name, {})]]
    name, differences = min(described, key=lambda pair: len(pair[1]))
    return f"{name}({', '.join(differences)})" if differences else name


def _differences(policy: Policy, preset: dict[str, Any]) -> list[str]:
    marks = []
    for each in fields(policy):
        value = getattr(policy, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if value != preset.get(each.name, default):
            marks.append(f"{each.name}={label(value) if isinstance(value, Policy) else value}")
    return marks

"""Rehearse an experiment: your own, simulated on the engine's semantics, before it starts or while it runs.

>>> from belated import rehearse
>>> arms = {"red": "0.08..0.12", "green": 0.1}
>>> plan = rehearse.plan({"arms": arms, "visitors": 200, "days": 14, "delay": "exponential:1d", "window": "4d"})
>>> plan.rounds, plan.window_rounds, plan.policies
(2800, 799, ('thompson-silence', 'wait', 'split'))
"""

from __future__ import annotations

from belated.rehearse.findings import Rehearsal
from belated.rehearse.plan import Plan, example, plan, read
from belated.rehearse.run import going_on, run

__all__ = ["Plan", "Rehearsal", "example", "going_on", "plan", "read", "run"]

"""The theory: bounds of the regret as functions of means, delay laws and the horizon.

>>> from belated import Pareto, theory
>>> bound = theory.elimination([.45, .40], [Pareto(0.5), Pareto(1.0)], 3000)
>>> bound.value > bound.trivial
True
"""

from belated.theory.bounds import elimination, lai_robbins, patient, phased, thompson, ucb1
from belated.theory.certified import thompson_certified
from belated.theory.problem import Bound
from belated.theory.table import Row, every
from belated.theory.trials import expected_trials

__all__ = [
    "Bound",
    "Row",
    "elimination",
    "every",
    "expected_trials",
    "lai_robbins",
    "patient",
    "phased",
    "thompson",
    "thompson_certified",
    "ucb1",
]

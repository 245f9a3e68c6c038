"""Every bound of one problem, and the policies that they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from belated.inputs import InvalidInput
from belated.law import Law
from belated.theory.bounds import elimination, lai_robbins, patient, phased, thompson, ucb1
from belated.theory.certified import thompson_certified
from belated.theory.problem import Bound, problem


class Row(NamedTuple):
    """A bound, or why there is none, and the policy (by its name) whose regret it bounds."""

    name: str
    policy: str | None
    bound: Bound | None
    refused: str = ""


_BOUNDS: dict[str, tuple[str | None, Callable[..., Bound]]] = {
    "thompson-certified": ("thompson", thompson_certified),
    "thompson": ("thompson", thompson),
    "elimination": ("elimination-log", elimination),
    "phased": ("phased-theory", phased),
    "ucb1": ("ucb1", ucb1),
    "patient": ("patient", patient),
    "lai-robbins": (None, lambda means, laws, rounds: lai_robbins(means, rounds)),
}


def every(means: Sequence[float], laws: Law | Sequence[Law], rounds: int, *, without: Sequence[str] = ()) -> list[Row]:
    """All bounds but those named in `without`. One that speaks of fewer problems than the others may be refused.

    >>> from belated import Fixed
    >>> [row.name for row in every([.6, .4], Fixed(40), 3000, without=["thompson-certified"])][:2]
    ['thompson', 'elimination']
    """
    problem(means, laws, rounds)  # what none of them speaks of is refused at once
    rows = []
    for name, (policy, bound) in _BOUNDS.items():
        if name in without:
            continue
        try:
            rows.append(Row(name, policy, bound(means, laws, rounds)))
        except InvalidInput as error:
            rows.append(Row(name, policy, None, str(error)))
    return rows

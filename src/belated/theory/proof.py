"""The proof of the paper's Theorem 1 with its own constants, its O(·) computed: as printed, and mended.

Printed, the pulls of arm 2 are at most

    48 log T / (q_2 gap^2) + d_2  +  3  +  M max_n X_n  +  (T - M)^+ max_(n >= N) X_n  +  sum_k X_k,

X_k = E min{X(k, s(k), y), T}, y the middle, N = 16 log T / gap^2, M = 32 log T / (q_1 gap^2) + d_1 rounded up. Two
steps of it do not hold. n at the j-th pull of arm 1 depends on its rewards, so the mean at that n may exceed the
largest of the means: max_n X_n must be the mean of the maximum over n. And arm 2 may show more than 24 log T / gap^2
rewards when it first reaches that number, so its pulls are counted a round earlier, which costs one. docs/theory.md has
the steps.
"""

from __future__ import annotations

import math

import numpy as np

from belated.inputs import InvalidInput
from belated.theory.problem import Bound, Problem, quantiles
from belated.theory.quantiles import cheapest
from belated.theory.trials import all_trials
from belated.theory.walks import struggle


def with_papers_constants(asked: Problem, *, mended: bool) -> Bound:
    """The bound that the paper's proof of Theorem 1 gives, as printed or mended. It may exceed the trivial one."""
    if len(asked.means) != 2:
        raise InvalidInput("constants", f"the paper's proof has them for two arms, got {len(asked.means)}")
    (arm,) = asked.others
    mean, gap, rounds = asked.means[asked.best], asked.gap(arm), asked.rounds
    cut = mean - 0.5 * gap
    shown = asked.log / gap**2
    own = cheapest(asked.laws[arm], 48.0 * shown, 1.0, rounds)
    other = cheapest(asked.laws[asked.best], 32.0 * shown, 1.0, rounds)
    draws, rest = all_trials(mean, cut, rounds)
    enough = math.ceil(16.0 * shown)
    late = draws[enough:]
    slow = other.cost + (1.0 if mended else 0.0)
    early = math.ceil(slow) if slow < math.inf else rounds
    if mended:
        peak, tail = _mean_of_maximum(mean, cut, rounds), float(late.sum()) + rest
    else:
        peak, tail = float(draws.max()), float(late.max()) if len(late) else rest
    pulls = {
        "learning arm 2: 48 log T / (q gap^2) + d": own.cost + (1.0 if mended else 0.0),
        "where the good event fails": 3.0,
        "posteriors of arm 1 until it has shown 16 log T / gap^2": early * peak,
        "posteriors of arm 1 from then on": max(0, rounds - early) * tail,
        "each posterior of arm 1 once": float(draws[1:].sum()) + rest,
    }
    terms = {key: gap * value for key, value in pulls.items()}
    name = "thompson-certified (paper's constants)" if mended else "thompson-certified (as printed: no proof)"
    found = quantiles(asked, {arm: own, asked.best: other})
    return Bound(name, "Wu & Wager 2022, proof of Theorem 1", rounds, terms, *found, asked.trivial)


def _mean_of_maximum(mean: float, cut: float, rounds: int) -> float:
    """An upper bound of E max over n of min{g(n, S_n), T}, which bounds the draws below the cut given the rewards."""
    levels = np.geomspace(1e-3, float(rounds), 200)
    luck = struggle(mean, cut, levels, rounds, 1e-6 / rounds, drag=False)
    return luck.peak + rounds * luck.beyond

"""The lemmas of the paper's proof, along simulated paths; `verification/lemmas.py` has the figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaincinv

from belated import Fixed, Geometric, Law, Loss, Uniform
from paths import Paths, bad_delays, bad_draws, pulls_until_known, simulated, too_few_shown

LAWS = {"fixed": Fixed(20), "geometric": Geometric(0.05), "loss": Loss(0.4), "uniform": Uniform(0, 40)}
MEANS, ROUNDS, REPLICATIONS = (0.9, 0.2), 400, 1000


@pytest.fixture(scope="module", params=LAWS)
def case(request: pytest.FixtureRequest) -> tuple[Law, Paths]:
    law = LAWS[request.param]
    return law, simulated(MEANS, [law, law], ROUNDS, REPLICATIONS, seed=5)


def at_least(happened: np.ndarray) -> float:
    """The lower end of the exact 99.9 % interval of a chance."""
    count = int(happened.sum())
    return float(betaincinv(count, len(happened) - count + 1, 0.0005)) if count else 0.0


def quantile(law: Law) -> tuple[float, int]:
    d = law.quantile(0.3)
    return law.cdf(d), int(d)


def test_the_paths_keep_account(case: tuple[Law, Paths]) -> None:
    _, paths = case
    rounds = np.arange(ROUNDS + 1)[:, None]
    assert (paths.pulls.sum(axis=1) == rounds).all()
    assert (paths.shown <= paths.pulls).all()
    assert (np.diff(paths.shown, axis=0) >= 0).all()


def test_l1_few_rewards_are_late(case: tuple[Law, Paths]) -> None:
    law, paths = case
    q, d = quantile(law)
    for arm in range(2):
        for m in (1, 2, 4, 8, 16, 32):
            assert at_least(too_few_shown(paths, arm, m, q, d)) <= math.exp(-q * m / 8)


def test_l1_can_fail() -> None:
    """The negative control: with the exponent forty times as large, the chance is above it."""
    paths = simulated(MEANS, [Loss(0.4)] * 2, ROUNDS, REPLICATIONS, seed=5)
    assert at_least(too_few_shown(paths, 0, 8, 0.4, 0)) > math.exp(-40 * 0.4 * 8 / 8)


def test_l2_the_bad_events_are_rare(case: tuple[Law, Paths]) -> None:
    law, paths = case
    q, d = quantile(law)
    assert at_least(bad_delays(paths, (q, q), (d, d))) <= 1 / ROUNDS
    assert at_least(bad_draws(paths)) <= 2 / ROUNDS
    assert at_least(bad_draws(paths, share=0.01)) > 2 / ROUNDS  # with a hundredth of the observations it is not rare


def test_l4_arm_2_is_known_after_so_many_pulls(case: tuple[Law, Paths]) -> None:
    """On the good event; one pull more than the paper has, for rewards that arrive together (docs/theory.md)."""
    law, paths = case
    q, d = quantile(law)
    for share in (1.0, 0.05):  # a smaller threshold, so that it is reached
        good = ~bad_delays(paths, (q, q), (d, d))
        bound = share * 48 * paths.log / (q * paths.gap**2) + d + 1
        pulls = pulls_until_known(paths, share)[good]
        assert pulls.max() <= max(bound, 24 * paths.log / q + d + 1)
        assert not pulls.max() <= 0.01 * bound

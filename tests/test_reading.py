"""Reading the silence: estimators and posteriors beside independent ones, and whole policies beside their oracles."""

from __future__ import annotations

import itertools
import math
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import betainc, betaln
from scipy.stats import beta

from belated import Conversions, Fixed, Geometric, Law, Loss, Pareto, RewardDependent, Scenario, Uniform
from belated.policies import named
from belated.policies.base import hear
from belated.policies.curve import difference, product_limit, tally
from belated.policies.exact import POINTS, drawn, spread
from oracle import oracle
from quiet_oracles import QUIET, OracleExact, OracleKnown, OracleLearned, OracleWait, Pull
from test_oracle import agree, package, replications_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own dependencies warn of one another
    from lifelines import KaplanMeierFitter

# --- The curve ------------------------------------------------------------------------------------------------------


def conversions(law: Law, size: int, bins: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Lags and ages of conversions that could be seen: of pulls at all ages, those whose lag is below their age."""
    rng = np.random.default_rng(seed)
    lags = np.array([law.quantile(v) for v in rng.random(size)])
    ages = rng.integers(1, bins + 1, size)
    return lags[lags < ages], ages[lags < ages]


def curve(events: np.ndarray, risk: np.ndarray) -> np.ndarray:
    level = np.zeros(len(events))
    product_limit(events, risk, level)
    return level


@pytest.mark.parametrize("seed", range(6))
def test_the_right_truncated_curve_is_kaplan_meier_in_reversed_time(seed: int) -> None:
    """Time runs backward from the window: a conversion enters at window - age and ends at window - lag."""
    bins = 12
    lags, ages = conversions((Geometric(0.2), Uniform(0, 9), Pareto(0.6))[seed % 3], (60, 4000)[seed % 2], bins, seed)
    lags, ages = np.append(lags, 0), np.append(ages, bins)  # so that someone is at risk at all times
    level = curve(*tally(lags, ages, 1, bins))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = KaplanMeierFitter().fit(bins - lags, entry=bins - ages)
    expected = fitted.predict([bins - y - 1 for y in range(bins)]).to_numpy()
    assert level == pytest.approx(expected, abs=1e-12)


def test_the_curve_is_not_biased_by_young_pulls_and_a_histogram_is() -> None:
    bins, law = 30, Geometric(0.05)
    truth = np.array([law.cdf(y) for y in range(bins)]) / law.cdf(bins - 1)
    found, naive = [], []
    for seed in range(40):
        lags, ages = conversions(law, 1500, bins, seed)
        found.append(curve(*tally(lags, ages, 1, bins)))
        naive.append(np.cumsum(np.bincount(lags.astype(int), minlength=bins)) / len(lags))
    for estimates, right in ((np.array(found), True), (np.array(naive), False)):
        error = estimates.std(axis=0, ddof=1)[:-1] / math.sqrt(len(estimates))
        worst = (np.abs(estimates.mean(axis=0) - truth)[:-1] / np.maximum(error, 1e-12)).max()
        assert (worst < 4.0) == right


def test_counts_are_repetitions_and_widths_are_units() -> None:
    lags, ages = conversions(Geometric(0.2), 200, 12, 1)
    plain = tally(lags, ages, 1, 12)
    twice = tally(lags, ages, 1, 12, counts=np.full(len(lags), 2.0))
    wide = tally(60.0 * lags + 7.0, 60.0 * ages + 7.0, 60.0, 12)
    for one, two, other in zip(plain, twice, wide, strict=True):
        assert two.tolist() == (2 * one).tolist()
        assert other.tolist() == one.tolist()


def test_arms_of_one_speed_differ_by_chance_and_of_two_by_more() -> None:
    scores = []
    for seed in range(120):
        arms = [tally(*conversions(Geometric(0.1), size, 20, 1000 * seed + size), 1, 20) for size in (150, 400)]
        scores.append(difference(*arms[0], *(one + other for one, other in zip(*arms, strict=True))))
    assert abs(np.mean(scores)) < 4 / math.sqrt(120)
    assert abs(np.var(scores, ddof=1) - 1) < 4 * math.sqrt(2 / 119)
    slow, fast = (tally(*conversions(Geometric(p), 400, 20, 1), 1, 20) for p in (0.05, 0.3))
    both = [one + other for one, other in zip(slow, fast, strict=True)]
    assert difference(*slow, *both) > 4 > -4 > difference(*fast, *both)


# --- States, fed a history ------------------------------------------------------------------------------------------

MEANS = (0.3, 0.5, 0.15)


def fed(policy: Any, laws: tuple[Law, ...], rounds: int, seed: int, oracle: Any) -> tuple[Any, Any]:
    """The state after a history of random pulls, and an oracle that remembers it."""
    rng = np.random.default_rng(seed)
    state, player = policy.knowing(laws).start(len(laws), rounds), oracle(laws, rounds, rng)
    due: dict[int, list[tuple[int, int, float]]] = {}
    for t in range(1, rounds + 1):
        arm, v = int(rng.integers(len(laws))), rng.random()
        reward = float(rng.random() < MEANS[arm])
        state.sent(t, arm)
        player.pulls[t] = Pull(t, arm, None, None)
        wait, shown = laws[arm].delay(None, t, reward, v), laws[arm].revealed(None, t, reward, v)
        if wait < math.inf:
            due.setdefault(t + int(wait), []).append((t, arm, shown))
        for s, who, what in due.pop(t, []):
            hear(state, t, s, who, what, rng)
            player.hear(t, s, who, what)
    return state, player


@pytest.mark.parametrize(("window", "blocks", "rounds"), [(9, 50, 80), (60, 12, 300), (61, 12, 40), (1, 50, 30)])
def test_the_learned_state_is_what_all_pulls_say(window: int, blocks: int, rounds: int) -> None:
    """The product limit, its trust and the effective trials, from the pulls themselves."""
    laws = (Conversions(Geometric(0.02), window), Conversions(Uniform(0, 70), window), Conversions(Fixed(5), window))
    for seed in range(4):
        state, player = fed(named("thompson-silence", blocks=blocks), laws, rounds, seed, OracleLearned)
        player.blocks = blocks
        player.prepare()
        for arm, (a, b) in enumerate(player.posterior(arm, rounds + 1) for arm in range(3)):
            assert (state.successes[arm], state.failures[arm]) == pytest.approx((a, b), abs=1e-9)


def test_effective_trials_end_at_the_window_of_their_own_arm() -> None:
    for delay in (Geometric(0.1), Uniform(0, 30), Pareto(0.5)):
        laws = tuple(Conversions(delay, window) for window in (4, 15, 40))
        state, player = fed(named("thompson-silence-known"), laws, 100, 1, OracleKnown)
        for arm, law in enumerate(laws):
            ages = [min(100 - pull.round, law.window) for pull in player.of(arm)]
            assert state.trials.effective[arm] == pytest.approx(sum(map(delay.cdf, ages)), abs=1e-9)


def test_a_fraction_of_a_trial_is_right_to_first_order_and_no_further_than_the_bound() -> None:
    """0 <= log(1 - theta tau) - tau log(1 - theta) <= tau (1 - tau) theta^2 / (2 (1 - theta)^2), and near if rare."""
    theta, tau = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e-4, 0.95, 60), np.linspace(0.01, 0.99, 50)))
    error = np.log1p(-theta * tau) - tau * np.log1p(-theta)
    bound = tau * (1 - tau) * theta**2 / (2 * (1 - theta) ** 2)
    assert (error >= 0).all()
    assert (error <= bound).all()
    rare = theta < 1e-3
    assert error[rare] == pytest.approx(bound[rare], rel=3e-3)


def test_a_beta_of_effective_trials_is_too_narrow_by_what_the_theory_says() -> None:
    """At theta = tau = .5 its variance is two thirds of the exact one; where all pulls are old, all of it."""
    theta = np.linspace(0.3, 0.7, 4001)
    for tau, expected in ((0.5, 2 / 3), (0.999, 0.999)):
        pulls, ones = 4000, 0.5 * tau * 4000
        log = ones * np.log(theta) + (pulls - ones) * np.log(1 - theta * tau)
        density = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
        variance = density @ theta**2 - (density @ theta) ** 2
        narrow = beta.var(ones + 1, tau * pulls - ones + 1)
        assert narrow / variance == pytest.approx(expected, rel=0.01)
        assert density @ theta == pytest.approx(beta.mean(ones + 1, tau * pulls - ones + 1), abs=1e-3)


def augmented(player: Any, arm: int, t: int, theta: np.ndarray) -> np.ndarray:
    """P(mean <= theta): the mixture of Betas over all that the rewards of the pending pulls may be."""
    ones, zeros, pending = 0, 0, []
    for pull in player.of(arm):
        if pull.heard is None or (isinstance(player.laws[arm], Conversions) and not pull.reward):
            one, zero = player.come(arm, t - player.lag - pull.round)
            pending.append((1 - zero, 1 - one))
        else:
            ones, zeros = ones + pull.reward, zeros + 1 - pull.reward
    weights, parts = [], []
    for late in itertools.product((0, 1), repeat=len(pending)):
        a, b = 1 + ones + sum(late), 1 + zeros + len(late) - sum(late)
        weights.append(math.prod(pair[each] for pair, each in zip(pending, late, strict=True)) * math.exp(betaln(a, b)))
        parts.append(betainc(a, b, theta))
    return np.array(weights) @ np.array(parts) / sum(weights)


LATE_ONES, LATE_ZEROS = RewardDependent(Geometric(0.05), Fixed(1)), RewardDependent(Uniform(0, 3), Geometric(0.1))


@pytest.mark.parametrize(
    "laws",
    [
        (LATE_ONES, LATE_ZEROS, RewardDependent(Loss(0.6), Fixed(2))),
        (Conversions(Geometric(0.1), 6), Conversions(Fixed(3), 9), Conversions(Pareto(0.5), 4)),
        (Geometric(0.1), LATE_ONES, Conversions(Uniform(2, 8), 7)),
    ],
)
def test_the_exact_posterior_is_the_mixture_over_what_is_pending(laws: tuple[Law, ...]) -> None:
    """With a block a round; and taking each pull for five rounds older is told apart."""
    wrong = []
    for rounds, seed in ((3, 1), (12, 2), (24, 3)):
        state, player = fed(named("thompson-silence-exact"), laws, rounds, seed, OracleExact)
        for arm in range(3):
            spread(state, arm)  # what was heard in the last round, too
            theta = 1 / (1 + np.exp(-state.point[arm, 0] - state.point[arm, 1] * np.arange(POINTS)))
            ours = state.cumulative[arm] / state.cumulative[arm, -1]
            assert ours == pytest.approx(augmented(player, arm, rounds + 1, theta), abs=3e-3)
            wrong.append(np.abs(ours - augmented(player, arm, rounds + 6, theta)).max())
    assert max(wrong) > 0.02


def test_a_draw_is_from_the_grid() -> None:
    state, _ = fed(named("thompson-silence-exact"), (LATE_ONES, LATE_ZEROS), 40, 5, OracleExact)
    rng, u = np.random.default_rng(1), np.array([0.1, 0.5, 0.9])
    draws = np.array([drawn(state.cumulative[0], *state.point[0], rng) for _ in range(4000)])
    places = state.point[0, 0] + state.point[0, 1] * np.interp(
        u, state.cumulative[0] / state.cumulative[0, -1], range(POINTS)
    )
    assert (np.abs((draws[:, None] <= places).mean(axis=0) - u) < 4 * np.sqrt(u * (1 - u) / 4000)).all()


@pytest.mark.parametrize("delay", [Geometric(0.05), Loss(0.5)])
def test_where_delays_do_not_depend_on_rewards_the_exact_posterior_ignores_silence(delay: Law) -> None:
    state, player = fed(named("thompson-silence-exact"), (delay, delay), 400, 1, OracleExact)
    for arm in range(2):
        spread(state, arm)
        theta = 1 / (1 + np.exp(-state.point[arm, 0] - state.point[arm, 1] * np.arange(POINTS)))
        heard = [pull.reward for pull in player.of(arm) if pull.heard is not None]
        expected = betainc(1 + sum(heard), 1 + len(heard) - sum(heard), theta)
        assert state.cumulative[arm] / state.cumulative[arm, -1] == pytest.approx(expected, abs=3e-3)


# --- Whole policies -------------------------------------------------------------------------------------------------

PLAIN = Scenario((0.8, 0.3), Conversions(Geometric(0.2), 10), 40)
SPEEDS = Scenario((0.9, 0.5), (Conversions(Geometric(0.05), 24), Conversions(Geometric(0.5), 24)), 60)
BOTH = Scenario((0.8, 0.4), (RewardDependent(Fixed(15), Fixed(0)), RewardDependent(Fixed(0), Fixed(15))), 40)
BESIDE = [
    *((PLAIN, policy) for policy in QUIET if policy != "elimination-optimistic"),
    (SPEEDS, "wait"),
    (BOTH, "thompson-silence-exact"),
    (Scenario((1.0, 0.0, 0.1), (Fixed(9), Fixed(0), LATE_ZEROS), 90), "elimination-optimistic"),
]


@pytest.mark.parametrize(("scenario", "policy"), BESIDE)
def test_every_strength_agrees_with_its_oracle(scenario: Scenario, policy: str) -> None:
    theirs = replications_of(partial(oracle, scenario, QUIET[policy]), 80)
    assert agree(package(scenario, policy, 400), theirs)


class Hasty(OracleWait):
    """It learns a one as soon as it is told."""

    def draw(self, arm: int, t: int) -> float:
        ripe = [pull.reward for pull in self.of(arm) if pull.heard is not None]
        return float(self.rng.beta(1 + sum(ripe), 1 + len(ripe) - sum(ripe)))


class Blind(OracleExact):
    """It takes delays to be independent of rewards."""

    def come(self, arm: int, age: int) -> tuple[float, float]:
        return 0.5, 0.5


class Old(OracleKnown):
    """It takes each pull for ten rounds older."""

    lag = -9


@pytest.mark.parametrize(
    ("scenario", "policy", "bugged"),
    [(SPEEDS, "wait", Hasty), (BOTH, "thompson-silence-exact", Blind), (SPEEDS, "thompson-silence-known", Old)],
)
def test_a_bug_planted_in_an_oracle_is_caught(scenario: Scenario, policy: str, bugged: Any) -> None:
    assert not agree(package(scenario, policy, 1000), replications_of(partial(oracle, scenario, bugged), 60))

"""Policies: the protocol over all of them, and what is known of each."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from belated import (
    QPMD,
    UCB1,
    UDUCB,
    Fixed,
    InvalidInput,
    Law,
    Loss,
    Pareto,
    PatientBandits,
    PhasedElimination,
    Policy,
    Scenario,
    SuccessiveElimination,
    Thompson,
    Uniform,
    Wait,
    policies,
)
from belated.policies.base import hear
from belated.policies.conversions import poisson_upper
from belated.policies.effective import effective_trials
from support import LAWS, actions, every_policy

POLICIES = every_policy()


def _arrays(state: object) -> list[np.ndarray]:
    if isinstance(state, np.ndarray):
        return [state]
    return [array for part in state for array in _arrays(part)] if isinstance(state, tuple) else []


@pytest.mark.parametrize("name", POLICIES)
def test_choose_only_reads(name: str) -> None:
    """Two calls with the same random numbers give the same arm, and nothing but scratch changes."""
    state = POLICIES[name].start(3, 100)
    rng = np.random.default_rng(2)
    for t in range(1, 60):
        kept = copy.deepcopy(state)
        twin = copy.deepcopy(rng)
        arm = state.choose(t, rng)
        assert 0 <= arm < 3
        assert state.choose(t, twin) == arm
        for field in getattr(state, "_fields", ()):
            if field != "scores":
                before, after = _arrays(getattr(kept, field)), _arrays(getattr(state, field))
                if field != "base":  # whose own scratch is checked with the base
                    assert all((one == other).all() for one, other in zip(before, after, strict=True)), field
        state.sent(t, arm)
        if t % 2:
            hear(state, t, t, arm, float(t % 3 == 0), rng)


@pytest.mark.parametrize("name", policies.POLICIES)
def test_every_name_makes_a_policy_labelled_by_it(name: str) -> None:
    assert policies.label(policies.named(name)) == name


def test_labels_tell_what_differs() -> None:
    assert policies.label(UCB1(log=False)) == "ucb1-nolog"
    assert policies.label(Thompson(prior=(2, 1))) == "thompson(prior=(2.0, 1.0))"
    assert policies.label(QPMD(base=Thompson())) == "qpm-d(base=thompson)"
    assert policies.label(SuccessiveElimination(log=True)) == "elimination-log"


def _textbook_ucb1(means: tuple[float, ...], rounds: int, seed: int) -> list[int]:
    """Auer et al. (2002) without delay, on the same visitors and tie-breaking numbers as the package's."""
    from belated.simulation import POLICY, VISITORS, stream

    visitors, own = stream(seed, 0, VISITORS), stream(seed, 0, POLICY)
    total, count, pulled = [0.0] * len(means), [0] * len(means), []
    for t in range(1, rounds + 1):
        scores = [
            total[i] / count[i] + math.sqrt(2 * math.log(t)) * (1 / math.sqrt(count[i])) if count[i] else math.inf
            for i in range(len(means))
        ]
        ties = [i for i in range(len(means)) if scores[i] == max(scores)]
        arm = ties[int(own.random() * len(ties))] if len(ties) > 1 else ties[0]
        u, _ = visitors.random(), visitors.random()
        total[arm] += u < means[arm]
        count[arm] += 1
        pulled.append(arm)
    return pulled


def test_without_delay_delayed_ucb1_is_the_textbook_ucb1() -> None:
    from support import MEANS

    assert actions(UCB1(), Fixed(0), rounds=400).tolist() == _textbook_ucb1(MEANS, 400, seed=5)
    assert actions(UCB1(), Fixed(1), rounds=400).tolist() != _textbook_ucb1(MEANS, 400, seed=5)


@pytest.mark.parametrize(
    "base", [Thompson(), Thompson(coin=True), UCB1(), SuccessiveElimination(), PhasedElimination()]
)
def test_without_delay_qpm_d_is_its_base(base: Policy) -> None:
    for rewards in ("bernoulli", "uniform"):
        alone, wrapped = (actions(policy, Fixed(0), rounds=400, rewards=rewards) for policy in (base, QPMD(base=base)))
        assert (alone == wrapped).all()
    late, wrapped = (actions(policy, Fixed(20), rounds=400) for policy in (base, QPMD(base=base)))
    assert (late != wrapped).any()


@pytest.mark.parametrize("compiled", [True, False])
def test_qpm_d_does_not_lead_its_base_beyond_the_horizon(compiled: bool) -> None:
    """Without delay all rewards are in store at the end, and UD-UCB remembers as many rounds as it was told of."""
    base = UDUCB(delay=Uniform(2, 5))
    pulled = actions(QPMD(base=base), Fixed(0), rounds=50, compiled=compiled)
    assert (pulled == actions(base, Fixed(0), rounds=50)).all()
    state = QPMD(base=base).start(2, 50)
    rng = np.random.default_rng(1)
    for t in range(1, 51):
        arm = state.choose(t, rng)
        state.sent(t, arm)
        state.learn(arm, 1.0, rng)
    assert state.base.pulls.sum() == 50


def test_qpm_d_pulls_what_its_base_wants_until_a_reward_of_it_comes() -> None:
    pulled = actions(QPMD(base=UCB1()), Fixed(10), rounds=11)
    assert len(set(pulled.tolist()[:11])) == 1


def test_elimination_sweeps_in_order_and_never_revives_an_arm() -> None:
    pulled = actions(SuccessiveElimination(), Fixed(0), rounds=3000)
    assert pulled[:6].tolist() == [0, 1, 2, 0, 1, 2]
    last = [int(np.flatnonzero(pulled == arm).max()) for arm in range(3)]
    assert last[1] == 2999  # the best arm stays
    for arm in (0, 2):  # each other arm is pulled in every sweep until its end
        gaps = np.diff(np.flatnonzero(pulled == arm))
        assert gaps.max() <= 3
    assert max(last[0], last[2]) < 2900


def test_elimination_by_hand() -> None:
    """Radius sqrt(2 / n): after 9 ones and 9 zeros, 0 + sqrt(2 / 9) < 1 - sqrt(2 / 9), and at 8 not yet."""
    for count, survives in ((8, True), (9, False)):
        state = SuccessiveElimination().start(2, 1000)
        rng = np.random.default_rng(0)
        for _ in range(count):
            for arm, reward in ((0, 0.0), (1, 1.0)):
                state.sent(1, arm)
                state.learn(arm, reward, rng)
        assert (state.choose(1, rng) == 0) is survives


@pytest.mark.parametrize("policy", [SuccessiveElimination(), PhasedElimination()])
def test_an_eliminated_arm_stays_out_whatever_comes_late(policy: Policy) -> None:
    state, rng, pulled = policy.start(2, 1000), np.random.default_rng(0), []
    for t in range(1, 301):
        arm = state.choose(t, rng)
        state.sent(t, arm)
        state.learn(arm, float(arm), rng)
        pulled.append(arm)
        if t == 100:
            assert pulled[-20:] == [1] * 20  # arm 0 is out
            for _ in range(5000):  # and now seems the better one
                state.learn(0, 1.0, rng)
                state.learn(1, 0.0, rng)
    assert pulled[100:] == [1] * 200


def test_phases_fill_their_quota() -> None:
    """With quota 1, 2, 4, … and no delay, the arms alive have equal counts at the end of each phase."""
    pulled = actions(PhasedElimination(), Fixed(0), rounds=12)
    assert pulled.tolist() == [0, 1, 2] * 4


def test_an_arm_that_never_reports_never_fills_its_quota() -> None:
    laws: tuple[Law, ...] = (Loss(1), Loss(0), Loss(1))
    pulled = actions(PhasedElimination(), laws, rounds=200)
    assert (pulled[-150:] == 1).all()


def test_the_theory_constants_do_not_end_a_phase_in_the_papers_horizon() -> None:
    state = policies.named("phased-theory").start(20, 10_000)
    assert state.quota[0] * 20 > 0.25 * 10_000
    assert state.quota[0] == pytest.approx(16 * math.log(10_000))


def test_patient_index_by_hand() -> None:
    state, rng = PatientBandits(alpha=0.2).start(2, 3000), np.random.default_rng(0)
    for arm, pulls, conversions in ((0, 50, 20), (1, 10, 1)):
        for pull in range(pulls):
            state.sent(1, arm)
            state.learn(arm, float(pull < conversions), rng)
    expected = [s / m + math.sqrt(2 * math.log(2 * 2 * 3000**3) / m) + 2 * m**-0.2 for m, s in ((50, 20), (10, 1))]
    assert state.indices.tolist() == pytest.approx(expected)
    assert state.choose(61, rng) == int(np.argmax(expected))


def test_patient_is_told_the_smallest_alpha() -> None:
    assert PatientBandits().knowing([Pareto(1.0), Pareto(0.2)]) == PatientBandits(alpha=0.2)
    with pytest.raises(InvalidInput, match=r"policy\.alpha: patient needs it"):
        PatientBandits().knowing([Pareto(1.0), Fixed(3)])


@pytest.mark.parametrize("name", ["geometric", "uniform", "pareto", "loss", "fixed", "mixture", "observed"])
def test_effective_trials_are_the_sum_of_the_cdf_over_ages(name: str) -> None:
    laws = [LAWS[name], LAWS[name], LAWS[name]]
    trials = effective_trials(laws, 80)
    pulled = np.random.default_rng(1).integers(0, 3, 80).tolist()
    for t in range(1, 81):
        trials.ripen(t, pulled[t - 1])
        # Choosing in round t + 1, a pull of round s has age t - s.
        expected = [sum(LAWS[name].cdf(t - s) for s in range(1, t + 1) if pulled[s - 1] == arm) for arm in range(3)]
        assert trials.effective.tolist() == pytest.approx(expected, abs=1e-9)


def test_kl_index_solves_its_equation() -> None:
    for p, c in ((0.1, 0.05), (0.5, 2.0), (1e-6, 0.1)):
        q = poisson_upper(p, c)
        assert q > p
        assert p * math.log(p / q) + q - p == pytest.approx(c, rel=1e-9)
    assert poisson_upper(0.0, 0.3) == 0.3


def test_thompson_with_a_coin_learns_whole_rewards() -> None:
    state = Thompson(coin=True).start(1, 10)
    rng = np.random.default_rng(0)
    for _ in range(1000):
        state.learn(0, 0.3, rng)
    assert state.successes[0] == int(state.successes[0])
    assert abs(state.successes[0] - 301) < 4 * math.sqrt(1000 * 0.3 * 0.7)
    assert state.successes[0] + state.failures[0] == 1002


def test_waiting_by_hand() -> None:
    """Arm 0 in rounds 1 to 3, window 2: a success in time, silence, and a success after its window has closed."""
    found = {}
    for provisional in (True, False):
        state = Wait(window=2, provisional=provisional).start(2, 9)
        rng = np.random.default_rng(1)
        found[provisional] = []
        for t in range(1, 8):
            state.sent(t, 0 if t <= 3 else 1)
            for s in {2: [1], 6: [3]}.get(t, []):
                state.heard(t, s, 0, 1.0, rng)
            found[provisional].append((state.successes[0], state.failures[0]))
    # The first counts in round 3; silence in round 4, and in 5 until its success is heard in 6.
    assert found[True] == [(1, 1), (1, 1), (2, 1), (2, 2), (2, 3), (3, 2), (3, 2)]
    assert found[False] == [(1, 1), (1, 1), (2, 1), (2, 1), (2, 1), (3, 1), (3, 1)]


def test_split_is_uniform() -> None:
    counts = np.bincount(actions(policies.named("split"), Fixed(0), rounds=3000), minlength=3)
    assert ((counts - 1000) ** 2 / 1000).sum() < 13.8  # chi-square, 2 degrees, 0.1 %


def test_ud_ucb_knows_the_scenarios_law() -> None:
    told = UDUCB().knowing([Uniform(1, 4)] * 2)
    assert told.delay == (Uniform(1, 4), Uniform(1, 4))
    with pytest.raises(InvalidInput, match=r"policy\.delay: must be one law or one for each of 3 arms, got 2"):
        told.start(3, 10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Thompson(prior=(0, 1)), r"policy\.prior: must be above 0, got 0"),
        (lambda: Thompson(prior=3), r"policy\.prior: must be two numbers, got 3"),
        (lambda: Thompson(coin=3), r"policy\.coin: must be true or false, got 3"),
        (lambda: UCB1(log=7), r"policy\.log: must be true or false, got 7"),
        (lambda: SuccessiveElimination(log="no"), r"policy\.log: must be true or false, got 'no'"),
        (lambda: PhasedElimination(log=1), r"policy\.log: must be true or false, got 1"),
        (lambda: UDUCB(kl=0), r"policy\.kl: must be true or false, got 0"),
        (
            lambda: PhasedElimination(first_phase=5000),
            r"policy\.first_phase: growth\^first_phase is too large a number, got 2\^5000",
        ),
        (lambda: PhasedElimination(growth=1), r"policy\.growth: must be above 1, got 1"),
        (lambda: PatientBandits(alpha=-1), r"policy\.alpha: must be above 0, got -1"),
        (lambda: UDUCB(eps=-1), r"policy\.eps: must be at least 0, got -1"),
        (lambda: UDUCB(delay="geometric"), r"policy\.delay: must be a delay law, got 'geometric'"),
        (lambda: QPMD(base="ucb1"), r"policy\.base: must be a policy, got 'ucb1'"),
        (lambda: policies.named("thomson"), r"unknown policy 'thomson'; did you mean 'thompson'\?"),
        (lambda: policies.named("ucb1", logs=True), r"unknown parameter of ucb1 'logs'; did you mean 'log'\?"),
        (lambda: UDUCB().start(2, 10), r"policy\.delay: ud-ucb needs it"),
    ],
)
def test_bad_policies_are_refused_in_one_line(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()  # type: ignore[operator]


def test_a_scenario_of_two_arms_is_the_least() -> None:
    with pytest.raises(InvalidInput, match="means: at least two arms are needed, got 1"):
        Scenario(means=[0.5], delay=Fixed(1), rounds=10)

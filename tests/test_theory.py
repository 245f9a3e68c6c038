"""The bounds as the theorems state them: against the formulas by hand, in their limits, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from belated import Between, Fixed, Geometric, Law, Loss, Mixture, Pareto, Queue, RewardDependent, Uniform, theory
from belated.inputs import InvalidInput
from belated.theory.bounds import most_missing, tail_exponent
from support import IID_LAWS

LOG = math.log(3000)


def test_theorem_1_by_hand() -> None:
    gap, d_1, d_2 = 0.2, 40.0, 25.0
    bound = theory.thompson([0.6, 0.4], [Fixed(40), Fixed(25)], 3000)
    by_hand = 48 * LOG / gap + 6 / gap * (32 * LOG / gap + d_1 * gap + gap) + d_2 * gap
    assert bound.value == pytest.approx(by_hand, rel=1e-12)
    assert bound.explicit_only
    assert bound.order == pytest.approx(1 / gap + 1 / gap**3)
    assert bound.quantiles == (1.0, 1.0)
    assert bound.delays == (40.0, 25.0)
    assert bound.trivial == pytest.approx(600)
    known = theory.thompson([0.6, 0.4], [Fixed(40), Fixed(25)], 3000, constant=2.0)
    assert known.value == pytest.approx(by_hand + 2.0 * bound.order)
    assert not known.explicit_only


def test_theorem_2_by_hand() -> None:
    gaps, constant = (0.1, 0.3), 0.5
    size = sum(1 / gap + 1 / gap**3 for gap in gaps)
    unsaturated = sum(48 * LOG / gap**2 + 7 for gap in gaps)
    explicit = sum(48 * LOG / gap + 7 * gap + 6 / gap * (32 * LOG / gap + 7 * gap + gap) for gap in gaps) + 4 * (3 - 1)
    bound = theory.thompson([0.5, 0.6, 0.3], Fixed(7), 3000)
    assert bound.value == pytest.approx(explicit, rel=1e-12)
    assert bound.order == pytest.approx(size * (1 + unsaturated))
    known = theory.thompson([0.5, 0.6, 0.3], Fixed(7), 3000, constant=constant)
    assert known.value == pytest.approx(explicit + constant * size * (1 + unsaturated), rel=1e-12)


@pytest.mark.parametrize("name", IID_LAWS)
@pytest.mark.parametrize("constant", [None, 3.0])
def test_no_other_quantile_gives_less(name: str, constant: float | None) -> None:
    """Theorems 1 and 2 at each step of the law, the same for all arms, are not below the minimum."""
    law, means = IID_LAWS[name], (0.7, 0.4, 0.3)
    for count in (2, 3):
        bound = theory.thompson(means[:count], law, 300, constant=constant)
        gaps = [means[0] - mean for mean in means[1:count]]
        log, size = math.log(300), sum(1 / gap + gap**-3 for gap in gaps)
        for d in range(300):
            q = law.cdf(d)
            if q > 0:
                pulls = sum(48 * log / (q * gap**2) + d for gap in gaps)
                total = sum(gap * (48 * log / (q * gap**2) + d) for gap in gaps) + 4 * (count - 1) * (count > 2)
                total += sum(6 / gap * (32 * log / (q * gap) + d * gap + gap) for gap in gaps)
                total += (constant or 0.0) * size * (1 + pulls * (count > 2))
                assert bound.value <= total * (1 + 1e-12)


def test_elimination_by_hand() -> None:
    two = theory.elimination([0.6, 0.4], [Fixed(40), Fixed(25)], 3000)
    assert two.value == pytest.approx(40 * LOG / 0.2 * 2 + math.log(2) * 65 * 0.2, rel=1e-9)
    three = theory.elimination([0.6, 0.4, 0.1], Fixed(40), 3000)
    by_hand = 40 * LOG * 2 * (1 / 0.2 + 1 / 0.5) + math.log(3) * 80 * 0.5
    assert three.value == pytest.approx(by_hand, rel=1e-5)
    lossy = theory.elimination([0.6, 0.4], [Loss(0.5), Loss(0.2)], 3000)
    assert lossy.value == pytest.approx(40 * LOG / 0.2 * (2 + 5), rel=1e-9)


def test_phased_by_hand() -> None:
    bound = theory.phased([0.6, 0.4, 0.1], [Fixed(1), Fixed(40), Fixed(25)], 3000)
    by_hand = 290 * LOG * (1 / 0.2 + 1 / 0.5) + LOG * math.log(3) * 25 * 0.5
    assert bound.value == pytest.approx(by_hand, rel=1e-5)
    assert math.isnan(bound.quantiles[0])
    two = theory.phased([0.6, 0.4], [Fixed(1), Uniform(1, 9)], 3000)
    every = (290 * LOG / 0.2 * 9 / d + LOG * math.log(2) * d * 0.2 for d in range(1, 10))
    assert two.value == pytest.approx(min(every), rel=1e-12)


def test_ucb1_by_hand() -> None:
    without = theory.ucb1([0.6, 0.4, 0.3], Fixed(0), 3000)
    assert without.value == pytest.approx(8 * LOG * (1 / 0.2 + 1 / 0.3) + 3.5 * (0.2 + 0.3), rel=1e-12)
    late = theory.ucb1([0.6, 0.4, 0.3], Fixed(40), 3000)
    assert late.value == pytest.approx(without.value + 40 * (0.2 + 0.3), rel=1e-12)


@pytest.mark.parametrize("law", [Geometric(0.02), Uniform(5, 30), Pareto(0.9), Loss(0.9), Fixed(12)])
def test_as_many_rewards_are_missing_as_the_bound_says_or_fewer(law: Law) -> None:
    rounds, paths = 500, 400
    rng = np.random.default_rng(4)
    delays = np.array([[law.quantile(v) for v in row] for row in rng.random((paths, rounds))])
    missing = np.zeros((paths, rounds + 1))
    for s in range(rounds):
        last = np.minimum(rounds, s + delays[:, s]).astype(int)  # missing when choosing in rounds s + 1 … s + l
        for path in range(paths):
            missing[path, s + 1 : last[path] + 1] += 1
    most = missing.max(axis=1)
    bound = most_missing(law, rounds)
    assert most.mean() <= bound
    assert bound <= 3.0 * most.mean() + 8.0


def test_patient_by_hand() -> None:
    bound = theory.patient([0.45, 0.40], [Pareto(0.2), Pareto(1.0)], 3000)
    assert bound.choices["alpha"] == 0.2
    assert bound.value == pytest.approx(max(64 * math.log(6000) / 0.05, (8 / 0.05) ** 4) + 4)
    assert theory.patient([0.45, 0.40], Pareto(1.0), 3000, alpha=0.2).value == bound.value
    with pytest.raises(InvalidInput, match=r"alpha: .* at most 0.2, got 0.5"):
        theory.patient([0.45, 0.40], [Pareto(0.2), Pareto(1.0)], 3000, alpha=0.5)
    with pytest.raises(InvalidInput, match=r"laws: .* holds for no alpha"):
        theory.patient([0.45, 0.40], Fixed(9), 3000)


@pytest.mark.parametrize("law", [Geometric(0.4), Mixture([0.6, 0.4], [Fixed(0), Pareto(0.8)]), Pareto(0.5), Loss(0.4)])
def test_the_tail_exponent_is_the_largest_that_holds(law: Law) -> None:
    rounds = 400
    alpha = tail_exponent(law, rounds)
    slack = [m**-alpha - (1 - law.cdf(m - 1)) for m in range(2, rounds + 1)]
    assert min(slack) == pytest.approx(0.0, abs=1e-9)
    assert min(slack) >= -1e-12


def test_lai_robbins_by_hand() -> None:
    bound = theory.lai_robbins([0.6, 0.4], 3000)
    divergence = 0.4 * math.log(0.4 / 0.6) + 0.6 * math.log(0.6 / 0.4)
    assert bound.value == pytest.approx(LOG * 0.2 / divergence)
    with pytest.raises(InvalidInput, match=r"means\[0\]: must be below 1"):
        theory.lai_robbins([1.0, 0.4], 3000)


BOUNDS = (theory.thompson, theory.elimination, theory.phased, theory.ucb1, theory.patient, theory.thompson_certified)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("means", "laws", "rounds", "message"),
    [
        ([0.5, 0.5], Fixed(1), 100, "means: there must be one best arm, got two of mean 0.5"),
        ([0.5], Fixed(1), 100, "means: at least two arms are needed, got 1"),
        ([], Fixed(1), 100, "means: at least two arms are needed, got none"),
        ([0.5, 1.4], Fixed(1), 100, r"means\[1\]: must be between 0 and 1, got 1.4"),
        ([0.5, Between(0.1, 0.2)], Fixed(1), 100, r"means\[1\]: must be one number, not a range, got 0.1..0.2"),
        ("half", Fixed(1), 100, "means: must be a list of numbers, got 'half'"),
        ([0.5, 0.4], [Fixed(1)], 100, "laws: must be one law or one for each of 2 arms, got 1"),
        ([0.5, 0.4], "soon", 100, "laws: must be delay laws, got 'soon'"),
        ([0.5, 0.4], [Fixed(1), 3], 100, r"laws\[1\]: must be a delay law, got 3"),
        ([0.5, 0.4], Queue(0.1), 100, r"laws\[0\]: must be a law of independent delays, got Queue"),
        ([0.5, 0.4], RewardDependent(Fixed(1), Fixed(2)), 100, r"laws\[0\]: .* got RewardDependent"),
        ([0.5, 0.4], Loss(Between(0, 1)), 100, r"laws\[0\]: must have numbers, not ranges"),
        ([0.5, 0.4], Fixed(1), 1, "rounds: must be at least 2, got 1"),
        ([0.5, 0.4], Fixed(1), 99.5, "rounds: must be a whole number, got 99.5"),
    ],
)
def test_what_the_theorems_do_not_speak_of_is_refused(
    bound: object, means: object, laws: object, rounds: object, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        bound(means, laws, rounds)  # type: ignore[operator]


@pytest.mark.parametrize("bound", [theory.thompson, theory.elimination, theory.phased])
def test_arms_that_never_report_have_no_bound(bound: object) -> None:
    found = bound([0.6, 0.4], Loss(0.0), 100)  # type: ignore[operator]
    assert found.value == math.inf
    assert "never come" in next(iter(found.terms))


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_order_of_the_arms_does_not_matter(bound: object) -> None:
    laws = [Pareto(0.5), Geometric(0.1), Pareto(0.9)]
    one = bound([0.7, 0.5, 0.2], laws, 400)  # type: ignore[operator]
    other = bound([0.2, 0.7, 0.5], [laws[2], laws[0], laws[1]], 400)  # type: ignore[operator]
    assert one.value == pytest.approx(other.value, rel=1e-6)
    assert math.fsum(one.terms.values()) == one.value
    assert str(one).startswith(one.name)


def test_every_bound_of_a_problem_or_why_there_is_none() -> None:
    rows = {row.name: row for row in theory.every([1.0, 0.4], Fixed(9), 300)}
    assert list(rows) == ["thompson-certified", "thompson", "elimination", "phased", "ucb1", "patient", "lai-robbins"]
    assert rows["ucb1"].bound == theory.ucb1([1.0, 0.4], Fixed(9), 300)
    assert rows["lai-robbins"].bound is None
    assert "must be below 1" in rows["lai-robbins"].refused
    assert "holds for no alpha" in rows["patient"].refused
    assert "thompson" not in {row.name for row in theory.every([1.0, 0.4], Fixed(9), 300, without=["thompson"])}
    with pytest.raises(InvalidInput, match="one best arm"):
        theory.every([0.4, 0.4], Fixed(9), 300)


def test_importing_the_theory_does_not_import_numba() -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", "import sys; from belated import theory; print('numba' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "False\n"

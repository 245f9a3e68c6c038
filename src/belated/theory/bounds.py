"""The bounds of the paper and of the algorithms it compares with, as their theorems state them.

Each is minimised exactly over the quantiles of the delay laws, d(q) up to the horizon. `gap` is the distance of an
arm's mean to the best one's, T is `rounds`, K the number of arms, log the natural logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np

from belated.delays import Fixed, Pareto
from belated.inputs import InvalidInput, number
from belated.law import Law
from belated.theory.problem import Bound, Problem, problem, quantiles
from belated.theory.quantiles import Choice, cheapest, together
from belated.theory.walks import divergence


def thompson(means: Sequence[float], laws: Law | Sequence[Law], rounds: int, *, constant: float | None = None) -> Bound:
    """Thompson sampling: Theorem 1 (two arms) and Theorem 2 (more) of Wu & Wager (2022), as they are stated.

    Two arms: 48 log T / (q_2 gap) + d_2 gap + (6 / gap)(32 log T / (q_1 gap) + d_1 gap + gap) + O(1/gap + 1/gap^3).
    More: the same summed over the arms i > 1, plus O(sum_i 1/gap_i + 1/gap_i^3) (1 + sum_i 48 log T / (q_i gap_i^2) +
    d_i) + 4 (K - 1). The constants in O(·) are not known: `constant` stands for them, and without it the value is the
    explicit part alone, which is not a bound. `thompson_certified` has no such constant.

    It assumes Bernoulli rewards, one best arm, and delays that are i.i.d. for each arm and do not depend on rewards;
    any other law is refused.

    >>> from belated import Fixed
    >>> round(thompson([.6, .4], Fixed(40), 3000).value, 1)
    40606.1
    """
    if constant is not None:
        number("constant", constant, low=0.0)
    asked = problem(means, laws, rounds)
    several = len(asked.means) > 2
    size = sum(1.0 / asked.gap(arm) + asked.gap(arm) ** -3 for arm in asked.others)
    unknown = 0.0 if constant is None else constant * size
    spread = unknown if several else 0.0  # what an unsaturated pull costs beyond its own gap
    chosen, unsaturated = {}, 0.0
    for arm in asked.others:
        pulls = 48.0 * asked.log / asked.gap(arm) ** 2
        weight = asked.gap(arm) + spread
        chosen[arm] = cheapest(asked.laws[arm], pulls * weight, weight, asked.rounds)
        unsaturated += pulls / chosen[arm].q + chosen[arm].delay
    rate = sum(6.0 / asked.gap(arm) * 32.0 * asked.log / asked.gap(arm) for arm in asked.others)
    chosen[asked.best] = cheapest(asked.laws[asked.best], rate, 6.0 * len(asked.others), asked.rounds)
    terms = _learning(asked, chosen) | {
        "best arm: 192 log T / (q gap^2)": rate / chosen[asked.best].q,
        "best arm: 6 d": 6.0 * len(asked.others) * chosen[asked.best].delay,
        "best arm: 6": 6.0 * len(asked.others),
    }
    if several:
        terms["4 (K - 1)"] = 4.0 * (len(asked.means) - 1)
    order = size * (1.0 + unsaturated) if several else size
    if constant is not None:
        terms["O(·)"] = constant * order
    theorem = f"Wu & Wager 2022, Theorem {2 if several else 1}"
    return _bound("thompson", theorem, asked, terms, chosen, order=order, constant=constant)


def elimination(means: Sequence[float], laws: Law | Sequence[Law], rounds: int) -> Bound:
    """Successive elimination with the radius sqrt(2 log T / n): Lancewicki et al. (2021), as Wu & Wager quote it.

    min over q of sum_(i > 1) (40 log T / gap_i)(1/q_1 + 1/q_i) + log(K) max_(i > 1) (d_1 + d_i) gap_i; for two arms
    that is their equation (5). Rewards in [0, 1], one best arm, i.i.d. delays that do not depend on rewards. It does
    not hold for the radius sqrt(2 / n) printed in the paper's Algorithm 2. With more than two arms the minimum is exact
    but for a millionth of it.

    >>> from belated import Fixed
    >>> round(elimination([.6, .4], Fixed(40), 3000).value, 1)
    3213.6
    """
    asked = problem(means, laws, rounds)
    scales = [40.0 * asked.log / asked.gap(arm) for arm in asked.others]
    count = math.log(len(asked.means))
    if len(asked.means) == 2:
        weight = count * asked.gap(asked.others[0])
        chosen = {arm: cheapest(asked.laws[arm], scales[0], weight, asked.rounds) for arm in range(2)}
    else:
        chosen = _tied(asked, [sum(scales), *scales], count)
    first = chosen[asked.best]
    terms = {
        "observations: 40 log T / gap (1/q_1 + 1/q)": sum(
            scale * (1.0 / first.q + 1.0 / chosen[arm].q) for scale, arm in zip(scales, asked.others, strict=True)
        ),
        "delay: log K max (d_1 + d) gap": count
        * max((first.delay + chosen[arm].delay) * asked.gap(arm) for arm in asked.others),
    }
    return _bound("elimination", "Lancewicki et al. 2021", asked, terms, chosen)


def phased(means: Sequence[float], laws: Law | Sequence[Law], rounds: int) -> Bound:
    """Phased successive elimination with its theory's constants: Lancewicki et al. (2021), from memory of the source.

    min over q of sum_(i > 1) 290 log T / (q_i gap_i) + log(T) log(K) max_(i > 1) d_i gap_i. Rewards in [0, 1], one best
    arm, i.i.d. delays that do not depend on rewards. With more than two arms the minimum is exact but for a millionth.

    >>> from belated import Fixed
    >>> round(phased([.6, .4], Fixed(40), 3000).value, 1)
    11653.6
    """
    asked = problem(means, laws, rounds)
    scales = [290.0 * asked.log / asked.gap(arm) for arm in asked.others]
    weight = asked.log * math.log(len(asked.means))
    if len(asked.means) == 2:
        (arm,) = asked.others
        chosen = {arm: cheapest(asked.laws[arm], scales[0], weight * asked.gap(arm), asked.rounds)}
    else:
        chosen = _tied(asked, [0.0, *scales], weight)
        del chosen[asked.best]
    terms = {
        "observations: 290 log T / (q gap)": sum(
            scale / chosen[arm].q for scale, arm in zip(scales, asked.others, strict=True)
        ),
        "delay: log T log K max d gap": weight * max(chosen[arm].delay * asked.gap(arm) for arm in asked.others),
    }
    return _bound("phased", "Lancewicki et al. 2021", asked, terms, chosen)


def _tied(asked: Problem, observations: list[float], waiting: float) -> dict[int, Choice]:
    """The choices of all arms where the longest wait is what counts; the best arm's observations come first."""
    order = (asked.best, *asked.others)
    laws = [asked.laws[arm] for arm in order]
    _, chosen = together(laws, observations, [asked.gap(arm) for arm in order], waiting, asked.rounds)
    return dict(zip(order, chosen, strict=True))


def ucb1(means: Sequence[float], laws: Law | Sequence[Law], rounds: int) -> Bound:
    """Delayed-UCB1 with the logarithm: Joulani, György & Szepesvári (2013).

    sum over gap > 0 of 8 log T / gap_i + 3.5 gap_i, plus sum_i gap_i E G*_i, where G*_i is the largest number of
    rewards of arm i that are missing at one time. E G*_i is not in closed form. Bounded here by the case that the arm
    is pulled in every round: the missing ones are then independent, and E max_t G_t <= (log T + log E exp(z G)) / z for
    any z > 0, minimised over z; and never more than the longest delay, or T. Rewards in [0, 1], delays i.i.d. and not
    dependent on rewards.

    >>> from belated import Fixed
    >>> round(ucb1([.6, .4], Fixed(40), 3000).value, 1)
    329.0
    """
    asked = problem(means, laws, rounds)
    terms = {
        "without delay: 8 log T / gap": sum(8.0 * asked.log / asked.gap(arm) for arm in asked.others),
        "without delay: 3.5 gap": sum(3.5 * asked.gap(arm) for arm in asked.others),
        "missing rewards: gap E G*": sum(
            asked.gap(arm) * most_missing(asked.laws[arm], asked.rounds) for arm in asked.others
        ),
    }
    return _bound("ucb1", "Joulani et al. 2013", asked, terms, {})


@lru_cache(maxsize=512)
def most_missing(law: Law, rounds: int) -> float:
    """A bound of the expected largest number of rewards missing at one time, with a pull in every one of `rounds`.

    >>> from belated import Fixed
    >>> most_missing(Fixed(40), 3000)
    40.0
    """
    ages = _ages(rounds)
    chances = np.array([1.0 - law.cdf(age - 1.0) for age in ages[:-1]])  # P(l >= age)
    exponents = np.geomspace(1e-3, 30.0, 60)
    logs = math.log(rounds) + np.log1p(chances * np.expm1(exponents)[:, None]) @ np.diff(ages)
    return float(min(rounds, law.quantile(1.0), (logs / exponents).min()))


@cache
def _ages(rounds: int) -> np.ndarray:
    """Ages from 1 to `rounds`: all up to 500, then in blocks of at most a hundredth, counted by their youngest."""
    ages = [1.0]
    while ages[-1] < rounds:
        ages.append(min(float(rounds), ages[-1] + max(1.0, float(math.floor((ages[-1] - 400.0) / 100.0)))))
    return np.array(ages)


def patient(means: Sequence[float], laws: Law | Sequence[Law], rounds: int, *, alpha: float | None = None) -> Bound:
    """PatientBandits: Theorem 2 of Gael et al. (2020).

    sum over gap > 0 of max(64 log(2 T) / gap_i, (8 / gap_i)^max((1 - alpha) / alpha, 1)) + 2 K, if P(D > m) <= m^-alpha
    for every arm and m, where their D is l + 1. Without `alpha`, the largest that holds up to the horizon; one that
    does not hold is refused. Conversions are i.i.d., delays do not depend on rewards.

    >>> from belated import Pareto
    >>> round(patient([.45, .40], Pareto(0.5), 3000).value, 1)
    11139.4
    """
    asked = problem(means, laws, rounds)
    held = min(tail_exponent(law, asked.rounds) for law in asked.laws)
    if not held > 0.0:
        raise InvalidInput(
            "laws", "P(D > m) <= m^-alpha holds for no alpha > 0: some arm's delay is never below 2 rounds"
        )
    if alpha is None:
        alpha = held
    elif alpha > held * (1.0 + 1e-9):
        raise InvalidInput("alpha", f"P(D > m) <= m^-alpha must hold for all delays: at most {held:.4g}, got {alpha:g}")
    else:
        number("alpha", alpha, above=0.0)
    power = max(1.0 / alpha - 1.0, 1.0)
    terms = {
        "arms: max(64 log(2 T) / gap, (8 / gap)^max((1 - alpha) / alpha, 1))": sum(
            _largest(64.0 * math.log(2.0 * asked.rounds) / asked.gap(arm), 8.0 / asked.gap(arm), power)
            for arm in asked.others
        ),
        "2 K": 2.0 * len(asked.means),
    }
    bound = _bound("patient", "Gael et al. 2020, Theorem 2", asked, terms, {})
    return replace(bound, choices={"alpha": alpha})


def _largest(plain: float, base: float, power: float) -> float:
    """The larger of `plain` and base^power, which may be too large for a number."""
    return max(plain, base**power) if power * math.log(base) < 700.0 else math.inf


@lru_cache(maxsize=512)
def tail_exponent(law: Law, rounds: int) -> float:
    """The largest alpha with P(l + 1 > m) <= m^-alpha for m up to `rounds`; 0 if there is none.

    >>> from belated import Pareto
    >>> round(tail_exponent(Pareto(0.5), 3000), 6)
    0.5
    """
    if isinstance(law, Pareto):
        return float(law.alpha)

    def least(young: int, old: int) -> float:
        tail = 1.0 - law.cdf(young - 1.0)
        return -math.log(tail) / math.log(old) if tail > 0.0 else math.inf

    # Branch and bound: between two ages the tail is at most that of the younger, its power at least that of the older.
    alpha, parts = min(least(2, 2), least(rounds, rounds)), [(2, rounds)]
    while parts:
        young, old = parts.pop()
        middle = (young + old) // 2
        alpha = min(alpha, least(middle, middle), least(middle + 1, middle + 1))
        parts += [part for part in ((young, middle), (middle + 1, old)) if part[0] < part[1] and least(*part) < alpha]
    return alpha


def lai_robbins(means: Sequence[float], rounds: int) -> Bound:
    """The floor: what no consistent policy can be below as T grows, without delay. Lai & Robbins (1985).

    log T sum over gap > 0 of gap_i / d(mu_i, mu*), d the Kullback–Leibler divergence of Bernoulli laws: an asymptotic
    lower bound, not one for each T. It needs laws of the same support: a best mean of 1 is refused, for then one zero
    rules an arm out.

    >>> round(lai_robbins([.6, .4], 3000).value, 2)
    19.75
    """
    asked = problem(means, Fixed(0), rounds)
    if asked.means[asked.best] >= 1.0:
        raise InvalidInput(f"means[{asked.best}]", "must be below 1, for the rewards of all arms to have one support")
    floor = sum(asked.gap(arm) / divergence(asked.means[arm], asked.means[asked.best]) for arm in asked.others)
    terms = {"log T sum gap / d(mu, mu*)": asked.log * floor}
    return _bound("lai-robbins", "Lai & Robbins 1985, asymptotic", asked, terms, {})


def _learning(asked: Problem, chosen: dict[int, Choice]) -> dict[str, float]:
    others = asked.others
    return {
        "other arms: 48 log T / (q gap)": sum(48.0 * asked.log / asked.gap(arm) / chosen[arm].q for arm in others),
        "other arms: d gap": sum(chosen[arm].delay * asked.gap(arm) for arm in others),
    }


def _bound(
    name: str,
    theorem: str,
    asked: Problem,
    terms: dict[str, float],
    chosen: dict[int, Choice],
    *,
    order: float = 0.0,
    constant: float | None = None,
) -> Bound:
    if not all(math.isfinite(term) for term in terms.values()):
        terms, order = {"infinite: rewards that never come in time, or too large a number": math.inf}, 0.0
    found = quantiles(asked, chosen)
    return Bound(name, theorem, asked.rounds, terms, *found, asked.trivial, order=order, constant=constant)

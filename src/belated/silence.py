"""The experiments of `belated silence`, as data: what silence says, and what reading it is worth.

Conversions by rate, by window, by the law of their delay and by its speed; delays that drift; and delays that depend on
the reward. What is asked of them is in `targets`.
"""

from __future__ import annotations

from dataclasses import replace

from belated.delays import Conversions, Drifting, Fixed, Geometric, Loss, Mixture, Pareto, RewardDependent
from belated.inputs import number
from belated.law import Law
from belated.paper import Experiment
from belated.scenario import Scenario

TODAY = ("thompson", "wait", "silence-is-failure", "split")
"""What is done today: what has been told counts; what has matured counts; silence is failure; equal shares."""
LEARNED, KNOWN, EXACT = "thompson-silence", "thompson-silence-known", "thompson-silence-exact"
OPTIMISTIC = "elimination-optimistic"
TOLD = (KNOWN, EXACT)
"""Those that are told the laws of the delays."""

REPLICATIONS = 150
FIVE = (
    # (means, the mean delay, rounds), with a window of five mean delays
    ((0.5, 0.4, 0.3), 200, 20_000),
    ((0.33, 0.25, 0.25, 0.2), 200, 20_000),
    ((0.11, 0.08, 0.05), 200, 20_000),
    ((0.05, 0.04, 0.03), 200, 20_000),
    ((0.11, 0.08, 0.05), 1000, 30_000),
    ((0.05, 0.04, 0.03), 1000, 30_000),
)
RATES = (0.5, 0.35, 0.2, 0.1, 0.05, 0.02)
WINDOWS = (0.5, 1, 2, 5, 10)
LATE = (500, 1000, 2500, 5000)  # up to a quarter of the horizon


def _conversions(
    name: str,
    title: str,
    means: tuple[float, ...],
    laws: Law | tuple[Law, ...],
    window: int,
    *,
    rounds: int = 20_000,
    strengths: tuple[str, ...] = (LEARNED, KNOWN, EXACT),
    at: float | None = None,
) -> Experiment:
    hidden = [Conversions(law, window) for law in (laws if isinstance(laws, tuple) else (laws,) * len(means))]
    return Experiment(name, title, Scenario(means, hidden, rounds), REPLICATIONS, (*TODAY, *strengths), at)


def _dependent(
    name: str,
    title: str,
    best: Law,
    others: Law,
    *,
    strengths: tuple[str, ...] = (LEARNED, EXACT),
    at: float | None = None,
) -> Experiment:
    """Means .6, .5 and .4: the best arm has a law of its own. There is no window, so nothing to wait for."""
    policies = ("thompson", "silence-is-failure", "split", OPTIMISTIC, *strengths)
    return Experiment(
        name, title, Scenario((0.6, 0.5, 0.4), (best, others, others), 20_000), REPLICATIONS, policies, at
    )


def _five(means: tuple[float, ...], mean: int, rounds: int) -> Experiment:
    shown = "/".join(f"{each:g}".removeprefix("0") for each in means)
    name = "five/" + "-".join(f"{each:g}".removeprefix("0.") for each in means) + ("-slow" if mean > 200 else "")
    made = _conversions(name, f"Rates {shown}, mean delay {mean}", means, Geometric(1 / mean), 5 * mean, rounds=rounds)
    return replace(made, replications=2 * REPLICATIONS)


def _rate(rate: float) -> Experiment:
    means = (rate, round(0.8 * rate, 6), round(0.6 * rate, 6))
    return _conversions(f"rate/{rate}", f"Best rate {rate}", means, Geometric(0.005), 1000, at=rate)


def _window(times: float) -> Experiment:
    window = int(200 * times)
    return _conversions(
        f"window/{times:g}", f"A window of {times:g} mean delays", (0.2, 0.16, 0.12), Geometric(0.005), window, at=times
    )


def _late(delay: int) -> Experiment:
    ones, zeros = RewardDependent(Fixed(delay), Fixed(0)), RewardDependent(Fixed(0), Fixed(delay))
    return _dependent(f"late/{delay}", f"Best arm's ones, others' zeros {delay} late", ones, zeros, at=delay)


_SLOW, _QUICK, _SWIFT = Geometric(0.001), Geometric(0.01), Geometric(0.05)
_MIXED = Mixture((0.6, 0.4), (Geometric(0.1), Geometric(0.002)))
_BLIND = (LEARNED,)  # a law that drifts is not one that can be told

SPEEDS = (
    _conversions("speed/trap", "The best arm is ten times slower", (0.10, 0.08), (_SLOW, _QUICK), 5000, rounds=30_000),
    _conversions(
        "speed/steep",
        "The best arm is fifty times slower",
        (0.3, 0.25, 0.2),
        (_SLOW, _SWIFT, _SWIFT),
        5000,
        rounds=30_000,
    ),
    _conversions("speed/low", "The same at rates .05 and .04", (0.05, 0.04), (_SLOW, _SWIFT), 5000, rounds=30_000),
    _conversions("speed/fast-best", "The best arm is the fast one", (0.10, 0.08), (_QUICK, _SLOW), 5000, rounds=30_000),
    _conversions(
        "speed/short-window", "The slow best arm, window one mean", (0.10, 0.08), (_SLOW, _QUICK), 1000, rounds=30_000
    ),
)
SHAPES = (
    _conversions("shape/pareto-1", "Pareto delays, alpha = 1", (0.2, 0.16, 0.12), Pareto(1.0), 1000),
    _conversions("shape/pareto-0.5", "Pareto delays, alpha = 0.5", (0.2, 0.16, 0.12), Pareto(0.5), 1000),
    _conversions("shape/mixture", "Three fifths at once, the others late", (0.2, 0.16, 0.12), _MIXED, 1000),
)
DRIFTS = tuple(
    _conversions(f"drift/{name}", title, (0.2, 0.16, 0.12), Drifting(before, after, 10_000), 2500, strengths=_BLIND)
    for name, title, before, after in (
        ("slower", "Delays grow tenfold", Geometric(0.02), Geometric(0.002)),
        ("faster", "Delays shrink to a tenth", Geometric(0.002), Geometric(0.02)),
    )
)
DEPENDENT = (
    _dependent("reward/ones", "Every arm's ones 5000 late", *(RewardDependent(Fixed(5000), Fixed(0)),) * 2),
    _dependent("reward/zeros", "Every arm's zeros 5000 late", *(RewardDependent(Fixed(0), Fixed(5000)),) * 2),
    _dependent(
        "reward/geometric",
        "Good or bad news slow by arm, geometric",
        RewardDependent(Geometric(0.001), Geometric(0.1)),
        RewardDependent(Geometric(0.1), Geometric(0.001)),
    ),
    _dependent("reward/neither", "Delays do not depend on the reward", *(Geometric(0.001),) * 2),
    _dependent(
        "reward/lost",
        "Half of good or bad news lost, by arm",
        RewardDependent(Loss(0.5), Loss(0.9)),
        RewardDependent(Loss(0.9), Loss(0.5)),
    ),
)

EXPERIMENTS: tuple[Experiment, ...] = (
    *(_five(*each) for each in FIVE),
    *map(_rate, RATES),
    *map(_window, WINDOWS),
    *SHAPES,
    *SPEEDS,
    *DRIFTS,
    *map(_late, LATE),
    *DEPENDENT,
)

FIVE_MEANS = tuple(each.name for each in EXPERIMENTS if each.name.startswith(("five/", "rate/")))
"""Conversions with a window of five mean delays."""

GROUPS: dict[str, tuple[str, str]] = {
    "five": ("A window of five mean delays", ""),
    "rate": ("Conversions from frequent to rare, a window of five mean delays", "rate of the best arm"),
    "window": ("From a short window to a long one", "window, in mean delays"),
    "shape": ("Delays with heavy tails, or of two kinds", ""),
    "speed": ("Arms that differ in speed", ""),
    "drift": ("Delays that drift", ""),
    "late": ("The best arm's good news is late, and the others' bad news", "how late, in rounds"),
    "reward": ("Other delays that depend on the reward, or do not", ""),
}
"""What the experiments before the slash have in common, and the axis of those along which one number changes."""

STORY = {
    "five/5-4-3": "Every arm as slow as the others",
    "speed/trap": "The best arm is the slowest",
    "late/1000": "The best arm's good news is late",
}
"""Those that tell it to a newcomer, side by side, and what they are called there."""


def experiments(replications: int | None = None) -> list[Experiment]:
    """All experiments; with `replications`, each with so many."""
    if replications is None:
        return list(EXPERIMENTS)
    number("replications", replications, low=1, whole=True)
    return [replace(each, replications=int(replications)) for each in EXPERIMENTS]

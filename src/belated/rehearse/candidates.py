"""What can be rehearsed: the policies, by their names, as they read what is reported of an experiment."""

from __future__ import annotations

from typing import Any

from belated import policies
from belated.inputs import InvalidInput, listed, nearest
from belated.live.settings import checked_prior
from belated.policies import Policy, SilenceIsFailure, Split, Thompson, ThompsonSilence, Wait
from belated.rehearse.watched import Pair

WINDOWED = ("thompson-silence", "wait", "silence-is-failure", "split")
"""Those that make sense of an experiment of which only successes are reported."""
TOLD = ("thompson", "ucb1", "ucb1-nolog", "elimination", "elimination-log", "phased", "qpm-d", "split")
"""Those for which both outcomes are reported."""

LABELS = {
    "thompson": "Thompson",
    "thompson-silence": "Thompson, reading the silence",
    "wait": "Thompson, waiting for the window",
    "silence-is-failure": "Thompson, silence taken for failure",
    "split": "A/B test, equal split",
    "ucb1": "UCB1",
}

PHRASES = {
    "thompson": "Thompson sampling",
    "thompson-silence": "Thompson sampling that reads the silence",
    "wait": "Thompson sampling that waits for the window",
    "silence-is-failure": "Thompson sampling that takes silence for failure",
    "split": "the A/B test",
}
"""The same within a sentence."""

LIVE: dict[str, dict[str, Any]] = {
    "thompson": {"policy": "thompson"},
    "thompson-silence": {"policy": "thompson", "reading": "silence"},
    "wait": {"policy": "thompson", "reading": "wait"},
    "split": {"policy": "split"},
}
"""Of these, those that run live, and how each is created there."""


def names(given: Any, windowed: bool) -> tuple[str, ...]:
    """The names that were given, or else the usual ones."""
    if given is None:
        return ("thompson-silence", "wait", "split") if windowed else ("thompson", "split")
    chosen = tuple(str(each) for each in listed("policies", given))
    if not chosen:
        raise InvalidInput("policies", "at least one is needed, got none")
    for name in chosen:
        if chosen.count(name) > 1:
            raise InvalidInput("policies", f"{name} is given twice")
    return chosen


def policy(name: str, window: int | None, prior: tuple[float, float] | tuple[tuple[float, float], ...]) -> Policy:
    """The policy of that name, with a posterior that can be read; `window` in rounds, None if failures are told."""
    known = TOLD if window is None else WINDOWED
    if name not in known:
        other = WINDOWED if window is None else TOLD
        if name in other:
            raise InvalidInput("policies", f"{name} {'needs a window' if window is None else 'needs all outcomes'}")
        raise nearest("policies", "policy", name, known)
    reader = Thompson(prior, lazy=False) if window is None else Wait(prior, window, provisional=True)
    if name in ("thompson", "wait"):
        return reader
    if name == "thompson-silence":
        return ThompsonSilence(prior=prior, window=window)
    if name == "silence-is-failure":
        return SilenceIsFailure(prior)
    return Pair(Split() if name == "split" else policies.named(name), reader)


def prior(given: Any) -> tuple[float, float]:
    """The Beta prior of every arm."""
    return checked_prior(given)


def label(name: str) -> str:
    """The name as a table has it."""
    return LABELS.get(name, name)


def phrase(name: str) -> str:
    """The name as a sentence has it."""
    return PHRASES.get(name, label(name))

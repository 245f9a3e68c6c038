"""The plan of an experiment: what is expected of it, in days and rates, and the same in rounds.

A visitor is a round. Visitors come evenly, so a time is so many of them; a wait is rounded up, to the visitor before
whom its outcome is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from belated import study
from belated.delays import Conversions, Loss, Outage, RewardDependent
from belated.inputs import Between, InvalidInput, listed, nearest, number, probability
from belated.law import Law
from belated.live import values
from belated.policies import Policy
from belated.rehearse import candidates, observed

DAY = 86_400_000  # ms
MOST_ARMS = 50
MOST_ROUNDS = 5_000_000
REPLICATIONS = 300

KEYS = (
    "arms", "visitors", "days", "window", "delay", "outage", "duplicates", "horizon", "policies", "refresh",
    "certainty", "prior", "replications", "seed",
)  # fmt: skip
NEEDED = ("arms", "visitors", "days", "delay")
DEFAULTS: dict[str, Any] = {
    "window": None,
    "outage": None,
    "duplicates": 0.0,
    "horizon": "90d",
    "policies": None,
    "refresh": ["1h", "6h", "1d"],
    "certainty": 0.95,
    "prior": [1, 1],
    "replications": None,
    "seed": 1,
}

_TIME = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?\s*(?:ms|s|m|h|d|w))\b")
_WHOLE = ("uniform", "observed", "outage", "refreshed")  # laws whose parameters are whole rounds


@dataclass(frozen=True)
class Plan:
    """A plan, checked. Times are in ms, laws in rounds; a round is a visitor."""

    arms: tuple[str, ...]
    rates: tuple[float | Between, ...]
    step: int  # ms from a visitor to the next
    rounds: int
    window: int | None  # ms
    laws: tuple[Law, ...]  # from decision to outcome, by arm; of successes only, if there is a window
    outage: tuple[int, int] | None  # rounds
    duplicates: float
    horizon: int  # rounds
    policies: tuple[str, ...]
    refresh: tuple[int, ...]  # ms
    certainty: float
    prior: tuple[float, float]
    replications: int
    seed: int

    def __post_init__(self) -> None:
        for name in self.policies:
            self.policy(name)

    def in_rounds(self, time: float) -> int:
        """How many visitors come in a time in ms; at least one."""
        return max(1, round(time / self.step))

    def days(self, rounds: float) -> float:
        """How many days it takes until so many visitors have come."""
        return rounds * self.step / DAY

    @property
    def window_rounds(self) -> int | None:
        """A pull counts from so many rounds on: its window has closed before the next visitor is decided for."""
        return None if self.window is None else math.ceil(self.window / self.step) - 1

    def heard(self) -> tuple[Law, ...]:
        """When each arm's outcome is heard of, if ever: failures never, if there is a window, and nothing in an outage.

        Windows close by the clock, and that is the policies' own to know.
        """
        return tuple(self._heard(law) for law in self.laws)

    def without_outage(self) -> Plan:
        """The same plan, if nothing fails."""
        return replace(self, outage=None)

    def _heard(self, law: Law) -> Law:
        if self.window is not None:
            law = RewardDependent(success=law, failure=Loss(0.0))
        return law if self.outage is None else Outage(law, *self.outage)

    def policy(self, name: str) -> Policy:
        """The policy of that name, as it reads this experiment's silence."""
        return candidates.policy(name, self.window_rounds, self.prior)


def plan(given: Mapping[str, Any], *, folder: Path = Path()) -> Plan:
    """The plan that these keys describe; files are looked for in `folder`.

    >>> made = plan({"arms": {"red": 0.1, "green": "0.1..0.2"}, "visitors": 100, "days": 14, "delay": "exponential:2d"})
    >>> made.rounds, made.laws[0], made.rates[1]
    (1400, Exponential(mean=200.0), Between(low=0.1, high=0.2))
    """
    for key in given:
        if key not in KEYS:
            raise nearest("plan", "key", str(key), KEYS)
    for key in NEEDED:
        if key not in given:
            raise InvalidInput(key, "is needed; `belated rehearse --example` prints a whole plan")
    asked = {**DEFAULTS, **given}
    names, rates = _arms(asked["arms"])
    number("visitors", asked["visitors"], above=0.0, high=1e6)
    number("days", asked["days"], above=0.0, high=3660)
    step = max(1, round(DAY / float(asked["visitors"])))
    rounds = round(float(asked["days"]) * DAY / step)
    _check_rounds(rounds)
    window = None if asked["window"] is None else _time("window", asked["window"])
    if window is not None and window < step:
        raise InvalidInput("window", f"must not be shorter than from one visitor to the next, got {asked['window']}")
    probability("duplicates", asked["duplicates"])
    probability("certainty", asked["certainty"])
    if not 0.5 <= asked["certainty"] < 1.0:
        raise InvalidInput("certainty", f"must be at least 0.5 and below 1, got {asked['certainty']}")
    number("seed", asked["seed"], low=0, high=2**63, whole=True)
    horizon = round(_time("horizon", asked["horizon"]) / step)
    if horizon < rounds and "horizon" in given:
        raise InvalidInput("horizon", f"must not be shorter than days = {asked['days']}, got {asked['horizon']}")
    chosen = asked["policies"]
    return Plan(
        arms=names,
        rates=rates,
        step=step,
        rounds=rounds,
        window=window,
        laws=_laws(asked["delay"], len(names), step, window is not None, folder),
        outage=_outage(asked["outage"], step),
        duplicates=float(asked["duplicates"]),
        horizon=max(horizon, rounds),
        policies=candidates.names(chosen, window is not None),
        refresh=tuple(_above_nought("refresh", each) for each in listed("refresh", asked["refresh"])),
        certainty=float(asked["certainty"]),
        prior=candidates.prior(asked["prior"]),
        replications=_replications(asked["replications"], rounds, len(names)),
        seed=int(asked["seed"]),
    )


def read(path: Path) -> Plan:
    """The plan in a TOML file."""
    return plan(study.read_toml(path), folder=path.parent)


def example() -> str:
    """A whole plan, as text: the default."""
    return files("belated").joinpath("rehearse/plan.toml").read_text(encoding="utf-8")


def _check_rounds(rounds: int) -> None:
    if rounds < 10:
        raise InvalidInput("visitors", f"a rehearsal needs 10 at least in all its days, got {rounds}")
    if rounds > MOST_ROUNDS:
        raise InvalidInput("visitors", f"a rehearsal takes at most {MOST_ROUNDS:,} in all its days, got {rounds:,}")


def _replications(given: Any, rounds: int, arms: int) -> int:
    """So many rehearsals as were asked for; of a long one by default fewer, but 50 at least."""
    if given is not None:
        number("replications", given, low=2, high=100_000, whole=True)
        return int(given)
    return int(max(50, min(REPLICATIONS, 4e7 / (rounds * arms))))


def _arms(given: Any) -> tuple[tuple[str, ...], tuple[float | Between, ...]]:
    if not isinstance(given, Mapping):
        raise InvalidInput("arms", f"must be a table of names and rates, got {values.shown(given)}")
    if not 2 <= len(given) <= MOST_ARMS:
        raise InvalidInput("arms", f"must be 2 to {MOST_ARMS}, got {len(given) or 'none'}")
    rates = []
    for name, rate in given.items():
        values.name("arms", name)
        field = f"arms.{name}"
        rate = study.value(rate, field) if isinstance(rate, str) else rate
        probability(field, rate, ranged=True)
        rates.append(rate if isinstance(rate, Between) else float(rate))
    return tuple(given), tuple(rates)


def _time(field: str, given: Any) -> int:
    """A time in ms; a number alone could be anything."""
    if not isinstance(given, str):
        raise InvalidInput(field, f"must be a time such as 7d, 12h or 30m, got {values.shown(given)}")
    return values.duration(field, given)


def _above_nought(field: str, given: Any) -> int:
    time = _time(field, given)
    if time < 1:
        raise InvalidInput(field, f"must be at least 1ms, got {values.shown(given)}")
    return time


def _outage(given: Any, step: int) -> tuple[int, int] | None:
    if given is None:
        return None
    ends = listed("outage", given)
    if len(ends) != 2:
        raise InvalidInput("outage", f"must be two times, from and to, got {values.shown(given)}")
    start, end = (_time("outage", each) for each in ends)
    if start > end:
        raise InvalidInput("outage", f"must not end before it begins, got {ends[0]} to {ends[1]}")
    return round(start / step), round(end / step)


def _laws(given: Any, arms: int, step: int, windowed: bool, folder: Path) -> tuple[Law, ...]:
    each = given if isinstance(given, list) else [given] * arms
    if len(each) != arms:
        raise InvalidInput("delay", f"must be one law or one for each of {arms} arms, got {len(each)}")
    return tuple(_law(written, step, windowed, folder) for written in each)


def _law(written: Any, step: int, windowed: bool, folder: Path) -> Law:
    """A law in rounds, from what has times in it, or from a file of observed waits."""
    if isinstance(written, str) and written.strip().lower().endswith(".csv"):
        return observed.law(folder / written.strip(), step, successes=windowed)
    made = study.law(_timed(written, step))
    if windowed and not made.iid:
        raise InvalidInput("delay", f"with a window it is that of the successes, one law by itself, got {written!r}")
    if isinstance(made, Conversions):
        raise InvalidInput("delay", "is that of the successes; the window is a key of its own")
    if made.memory or made.is_drawn():
        raise InvalidInput("delay", f"must be a law with numbers, not ranges, and without memory, got {written!r}")
    return made


def _timed(written: Any, step: int) -> Any:
    """The law as `study.law` reads it: each time is so many rounds; numbers without a unit are rounds already."""
    if isinstance(written, Mapping):
        name = str(written.get("law", ""))
        return {key: _timed_value(value, name, step) if key != "law" else value for key, value in written.items()}
    return _timed_value(written, written.partition(":")[0].strip(), step) if isinstance(written, str) else written


def _timed_value(value: Any, name: str, step: int) -> Any:
    if isinstance(value, str) and ":" not in value and not _TIME.search(value):
        return value
    if isinstance(value, str):
        if _TIME.fullmatch(value.strip()):
            return _rounds(value, name, step)
        own = value.partition(":")[0].strip() if ":" in value else name
        return _TIME.sub(lambda match: repr(_rounds(match[0], own, step)), value)
    if isinstance(value, list):
        return [_timed_value(each, name, step) for each in value]
    return _timed(value, step)


def _rounds(text: str, law: str, step: int) -> float | int:
    exact = values.duration("delay", text) / step
    return max(1, round(exact)) if law in _WHOLE else exact

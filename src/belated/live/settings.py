"""What is fixed when an experiment is created: its policy, what its silence means, and how it is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from belated.inputs import InvalidInput, flag, nearest, number
from belated.live.values import duration, spoken
from belated.policies import Policy, Split, Thompson, named

READINGS = ("silence", "wait")
POLICIES = ("split", "thompson", "ucb1")  # those whose state is a fold of totals
STATUSES = ("running", "stopped", "archived")
ARM_STATUSES = ("active", "paused", "retired")
MOST_ARMS = 1000
SMALLEST_PRIOR = 1e-3  # below it no posterior could be integrated in good time
GRAINS = 1000  # a window, at most: `BINS` times 20
GRAIN = 600_000  # of the totals by time, in ms, where no window sets it


@dataclass(frozen=True)
class Pending:
    """Successes and failures are both reported; what is missing is missing (the paper's model)."""

    @property
    def window(self) -> int | None:
        return None


@dataclass(frozen=True)
class Failure:
    """Only successes are sure to be reported: silence until the end of the window `after` is a failure.

    >>> Failure(after="7d")
    Failure(after='7d')
    """

    after: Any

    def __post_init__(self) -> None:
        if duration("silence.after", self.after) < 1:
            raise InvalidInput("silence.after", f"must be at least 1ms, got {self.after!r}")

    @property
    def window(self) -> int | None:
        return duration("silence.after", self.after)


Silence = Pending | Failure


@dataclass(frozen=True)
class Settings:
    """The settings of an experiment, checked."""

    policy: str = "thompson"
    silence: Silence = field(default_factory=Pending)
    sticky: bool = False
    floor: float = 0.0
    prior: tuple[float, float] = (1.0, 1.0)
    reading: str | None = None  # of what is pending within a window; read as `silence` where that can be done

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise nearest("policy", "live policy", str(self.policy), POLICIES)
        if not isinstance(self.silence, Pending | Failure):
            raise InvalidInput("silence", f'must be Pending() or Failure(after="7d"), got {self.silence!r}')
        flag("sticky", self.sticky)
        number("floor", self.floor, low=0.0, high=1.0)
        object.__setattr__(self, "floor", float(self.floor))
        object.__setattr__(self, "prior", checked_prior(self.prior))
        object.__setattr__(self, "reading", self._read())

    def _read(self) -> str:
        """How what is pending is read: as given, or as far as it can be."""
        readable = self.window is not None and self.policy == "thompson"
        if self.reading is None:
            return "silence" if readable else "wait"
        if self.reading not in READINGS:
            raise nearest("reading", "reading", str(self.reading), READINGS)
        if self.reading == "silence" and not readable:
            where = "where silence is pending" if self.window is None else f"by {self.policy}"
            message = f'silence cannot be read {where}: it takes Failure(after="7d") and the policy thompson'
            raise InvalidInput("reading", message)
        return self.reading

    @property
    def window(self) -> int | None:
        """The window in ms, or None if silence means nothing."""
        return self.silence.window

    @property
    def grain(self) -> int:
        """The width in ms of the buckets of time by which totals are kept."""
        return GRAIN if self.window is None else -(-self.window // GRAINS)

    def policy_with(self, priors: list[tuple[float, float]]) -> Policy:
        """The policy, its arms having these priors."""
        if self.policy == "thompson":
            return Thompson(prior=tuple(priors))
        return Split() if self.policy == "split" else named(self.policy)

    def to_json(self) -> str:
        return json.dumps(
            {
                "policy": self.policy,
                "silence": silence_to_text(self.silence),
                "sticky": self.sticky,
                "floor": self.floor,
                "prior": list(self.prior),
                "reading": self.reading,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Settings:
        given = {"reading": "wait", **json.loads(text)}  # those of before there was another one waited
        return cls(**{**given, "silence": silence_from_text(given["silence"]), "prior": tuple(given["prior"])})


def checked_prior(prior: Any) -> tuple[float, float]:
    """The two parameters of a Beta prior."""
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise InvalidInput("prior", f"must be two numbers, got {prior!r}")
    for value in prior:
        number("prior", value, low=SMALLEST_PRIOR, high=1e7)
    return float(prior[0]), float(prior[1])


def silence_to_text(silence: Silence) -> str:
    """`pending`, or the window: the form on the command line, in files and over HTTP.

    >>> silence_to_text(Failure(after=3600))
    '1h'
    """
    return "pending" if silence.window is None else spoken(silence.window)


def silence_from_text(text: str) -> Silence:
    """What `silence_to_text` wrote."""
    return Pending() if text == "pending" else Failure(after=text)


def refuse_floor(floor: float, active: int) -> None:
    """Refuse a minimum share that so many arms cannot all have."""
    if floor * active > 1.0 + 1e-12:
        raise InvalidInput("floor", f"{active} active arms cannot have at least {floor:g} each")

"""What a person may give: numbers, ranges of numbers, and the one error for what they may not."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np


class InvalidInput(ValueError):
    """A value that cannot be meant. Its text is one line that names the field and the value."""

    def __init__(self, field: str, message: str):
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True)
class Between:
    """A number drawn uniformly from [low, high], afresh for each arm of each instance.

    >>> Between(0.25, 0.75)
    Between(low=0.25, high=0.75)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        number("low", self.low)
        number("high", self.high)
        if not self.low <= self.high:
            raise InvalidInput("range", f"the low end must not exceed the high end, got {self.low}..{self.high}")

    def draw(self, rng: np.random.Generator) -> float:
        return self.low + (self.high - self.low) * rng.random()


# The type of a law's parameter: a number, or a range to be drawn from before the law is used.
Number: TypeAlias = Any


def number(
    field: str,
    value: object,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: float = -math.inf,
    whole: bool = False,
    ranged: bool = False,
) -> None:
    """Refuse what is not a finite number within [low, high] and above `above` nor, if `ranged`, a range of such."""
    kind = "a whole number" if whole else "a number"
    if isinstance(value, Between):
        if not ranged:
            kind = kind.replace("a", "one", 1)
            raise InvalidInput(field, f"must be {kind}, not a range, got {value.low:g}..{value.high:g}")
        number(field, value.low, low=low, high=high, above=above)
        number(field, value.high, low=low, high=high, above=above)
        return
    if isinstance(value, bool) or (not isinstance(value, int | float) and not hasattr(value, "__float__")):
        raise InvalidInput(field, f"must be {kind}, got {value!r}")
    try:
        plain = float(value)
    except OverflowError:
        raise InvalidInput(field, f"is too large a number, got {value}") from None
    if not math.isfinite(plain) or (whole and plain != int(plain)):
        raise InvalidInput(field, f"must be {kind}, got {value}")
    if not low <= plain <= high or not plain > above:
        raise InvalidInput(field, f"must be {_bounds(plain, low, high, above)}, got {value}")


def _bounds(value: float, low: float, high: float, above: float) -> str:
    if above > -math.inf:
        return f"above {above:g}" + (f" and at most {high:g}" if high < math.inf else "")
    if high - low <= 1.0:
        return f"between {low:g} and {high:g}"
    bound = low if value < low else high
    return f"at {'least' if value < low else 'most'} {bound:.0f}" if bound == int(bound) else f"at least {bound:g}"


def probability(field: str, value: object, *, ranged: bool = False) -> None:
    """Refuse what is not a number in [0, 1] nor, if `ranged`, a range within it."""
    number(field, value, low=0.0, high=1.0, ranged=ranged)


def flag(field: str, value: object) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, bool):
        raise InvalidInput(field, f"must be true or false, got {value!r}")


def nearest(field: str, kind: str, given: str, known: Iterable[str]) -> InvalidInput:
    """The error for an unknown name, with the name that was probably meant."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
    return InvalidInput(field, f"unknown {kind} {given!r}; {hint}")


def listed(field: str, value: object) -> tuple[Any, ...]:
    """The members of a list; refuse what is not one."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(field, f"must be a list, got {value!r}")
    return tuple(value)

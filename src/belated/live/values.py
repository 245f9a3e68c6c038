"""What a person may give to a live experiment, and the form in which the ledger keeps it.

Times are whole milliseconds since 1970, UTC; rewards whole billionths, so that sums are exact in any order; ids are the
16 bytes of a UUID.
"""

from __future__ import annotations

import datetime
import math
import os
import re
import unicodedata
from functools import lru_cache
from typing import Any

from belated.inputs import InvalidInput, number

UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
BILLION = 1_000_000_000
LATEST = 190_000_000_000  # the latest time that can be meant, in seconds
SKEW = 60_000  # how far, in ms, clocks may differ before it is an error

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_HEX = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)


def shown(value: object) -> str:
    """A value as an error may quote it: short, on one line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text)} characters)"


def text(field: str, value: object, *, longest: int = 200) -> str:
    """A text without control characters that is neither empty nor too long."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text, got {shown(value)}")
    if not value.strip():
        raise InvalidInput(field, f"must not be empty, got {shown(value)}")
    if len(value) > longest:
        raise InvalidInput(field, f"must be at most {longest} characters, got {len(value)}: {shown(value)}")
    if not value.isprintable() and any(unicodedata.category(letter) in ("Cc", "Cs") for letter in value):
        raise InvalidInput(field, f"must hold no control character, got {shown(value)}")
    return value


def name(field: str, value: object) -> str:
    """A text that can also be part of an address."""
    if text(field, value) in (".", ".."):
        raise InvalidInput(field, f"must be a name that an address can hold, got {value!r}")
    return str(value)


def duration(field: str, value: object) -> int:
    """Milliseconds from a text such as 7d, 12h or 1.5s, from a number of seconds, or from a timedelta.

    >>> duration("after", "7d")
    604800000
    """
    if isinstance(value, datetime.timedelta):
        amount = value.total_seconds() * 1000.0
    elif isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*", value)
        if not match:
            raise InvalidInput(field, f"must be a time such as 7d, 12h, 30m or 10s, got {shown(value)}")
        amount = float(match[1]) * _UNITS[match[2]]
    else:
        number(field, value)
        amount = float(value) * 1000.0  # type: ignore[arg-type]
    if not 0.0 <= amount <= 1e14:
        raise InvalidInput(field, f"must be between 0 and 3000 years, got {shown(value)}")
    return round(amount)


def spoken(milliseconds: int) -> str:
    """A duration as `duration` reads it: whole, in the largest unit in which it is.

    >>> spoken(604800000), spoken(5400000), spoken(86400000000)
    ('7d', '90m', '1000d')
    """
    for unit in ("d", "h", "m", "s"):
        if milliseconds % _UNITS[unit] == 0 and milliseconds:
            return f"{milliseconds // _UNITS[unit]}{unit}"
    return f"{milliseconds}ms"


def instant(field: str, value: object) -> int:
    """Milliseconds since 1970 from a datetime with its zone, from ISO 8601 text, or from a number of seconds."""
    moment: Any = value
    if isinstance(value, str):
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(field, f"must be a time such as 2025-01-31T12:00:00Z, got {shown(value)}") from None
    if isinstance(moment, datetime.datetime):
        if moment.tzinfo is None:
            raise InvalidInput(field, f"must name its time zone, such as …Z or …+01:00, got {shown(value)}")
        moment = (moment - EPOCH).total_seconds()
        if not 0 <= moment <= LATEST:
            raise InvalidInput(field, f"must be a time between 1970 and 8000, got {shown(value)}")
    number(field, moment, low=0, high=LATEST)
    return round(float(moment) * 1000)


@lru_cache(maxsize=1024)
def moment(milliseconds: int) -> datetime.datetime:
    """The time that the ledger wrote as `milliseconds`."""
    return EPOCH + datetime.timedelta(milliseconds=milliseconds)


@lru_cache(maxsize=1024)  # what is asked in one millisecond is often answered with the same text
def iso(milliseconds: int) -> str:
    """The time in ISO 8601, in UTC, to the millisecond."""
    return moment(milliseconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def reward(value: object) -> int:
    """A reward in [0, 1], in billionths."""
    if value is True or value is False:
        return BILLION if value else 0
    if not isinstance(value, int | float) and not hasattr(value, "__float__"):
        raise InvalidInput("reward", f"must be a number between 0 and 1, got {shown(value)}")
    try:
        plain = float(value)
    except OverflowError:
        plain = math.inf
    if not 0.0 <= plain <= 1.0:  # nan fails too
        problem = "between 0 and 1" if math.isfinite(plain) else "a number between 0 and 1"
        raise InvalidInput("reward", f"must be {problem}, got {plain:g}")
    return round(plain * BILLION)


def identity(field: str, value: object) -> bytes:
    """The bytes of a UUID."""
    if isinstance(value, str) and _HEX.fullmatch(value):
        return bytes.fromhex(value.replace("-", ""))
    if hasattr(value, "bytes") and isinstance(value.bytes, bytes) and len(value.bytes) == 16:
        return value.bytes
    raise InvalidInput(field, f"must be a UUID, got {shown(value)}")


def written(identity: bytes) -> str:
    """The usual form of a UUID."""
    h = identity.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


class _Random:
    """The system's random bytes, ten at a time, fetched for many ids at once. A child process fetches its own."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        os.register_at_fork(after_in_child=self._pieces.clear)

    def take(self) -> bytes:
        try:
            return self._pieces.pop()  # one to each thread
        except IndexError:
            many = os.urandom(10 * 256)
            self._pieces.extend(many[start : start + 10] for start in range(10, len(many), 10))
            return many[:10]


_random = _Random()


def new_identity(now: int) -> bytes:
    """A UUIDv7 (RFC 9562): 48 bits of time, 74 random ones, so that new ids are neighbours in the index."""
    random = bytearray(_random.take())
    random[0] = 0x70 | (random[0] & 0x0F)
    random[2] = 0x80 | (random[2] & 0x3F)
    return now.to_bytes(6, "big") + random

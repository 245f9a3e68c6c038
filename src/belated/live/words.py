"""Numbers and times in the words of a person."""

from __future__ import annotations

import math


def plain(number: float, digits: int) -> str:
    """A number with so many digits, without an exponent.

    >>> plain(1234.5, 3), plain(0.000123, 2)
    ('1,234', '0.00012')
    """
    if number >= 10.0 ** (digits - 1):
        return f"{number:,.0f}"
    if number <= 0.0:
        return "0"
    places = digits - 1 - math.floor(math.log10(number))
    return f"{number:.{places}f}".rstrip("0").rstrip(".")


def span(milliseconds: float) -> str:
    """A time in words.

    >>> span(374_000_000), span(3_600_000), span(5000)
    ('4.3 days', '1 hour', '5 seconds')
    """
    units = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))
    word, size = next(((word, size) for word, size in units if milliseconds >= size), ("millisecond", 1))
    number = plain(milliseconds / size, 2)
    return f"{number} {word}{'s' if number != '1' else ''}"


def loss(amount: float | None) -> str:
    """An expected loss with one digit, and none where there is none.

    >>> loss(0.00009), loss(None), loss(3e-12), loss(0.034)
    ('0.00009', '–', '<\\xa00.0000001', '0.03')
    """
    if amount is None:
        return "–"
    return "<\N{NO-BREAK SPACE}0.0000001" if amount < 1e-7 else plain(amount, 1)

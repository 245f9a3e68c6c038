"""Numbers as the pages write them."""

from __future__ import annotations

import math

from belated.live import Summary

SPACE = "\N{NO-BREAK SPACE}"


def percent(share: float) -> str:
    """A share with three digits.

    >>> percent(0.12345), percent(1.0), percent(0.0), percent(0.000321)
    ('12.3\\xa0%', '100\\xa0%', '0\\xa0%', '0.0321\\xa0%')
    """
    return f"{plain(100.0 * share, 3)}{SPACE}%"


def rough(share: float) -> str:
    """A share with two digits, and the very small ones as such.

    >>> rough(0.256), rough(0.0), rough(0.000004), rough(0.9999)
    ('26\\xa0%', '0\\xa0%', '<\\xa00.01\\xa0%', '>\\xa099.9\\xa0%')
    """
    if 0.0 < share < 1e-4:
        return f"<{SPACE}0.01{SPACE}%"
    if 0.999 < share < 1.0:
        return f">{SPACE}99.9{SPACE}%"
    return f"{plain(100.0 * share, 3 if share > 0.99 else 2)}{SPACE}%"


def chance(probability: float) -> str:
    """A probability with two or three digits, never a false 0 or 1.

    >>> chance(0.5), chance(0.9876), chance(0.99999), chance(0.00001)
    ('0.50', '0.988', '>\\xa00.999', '<\\xa00.001')
    """
    if probability > 0.999:
        return f">{SPACE}0.999"
    if probability < 0.001:
        return f"<{SPACE}0.001"
    return f"{probability:.3f}" if probability > 0.95 or probability < 0.095 else f"{probability:.2f}"


def loss(amount: float | None) -> str:
    """An expected loss with one digit, and none where there is none.

    >>> loss(0.00009), loss(None), loss(3e-12), loss(0.034)
    ('0.00009', '–', '<\\xa00.0000001', '0.03')
    """
    if amount is None:
        return "–"
    return f"<{SPACE}0.0000001" if amount < 1e-7 else plain(amount, 1)


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


def amount(number: float) -> str:
    """A count, or a sum of rewards that are no whole numbers.

    >>> amount(12345), amount(12.5)
    ('12,345', '12.5')
    """
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def captions(whole: Summary, leaders: int, window: int | None) -> list[tuple[str, str, str]]:
    """The name, title and explanation of each chart."""
    leading = "each arm" if leaders == len(whole.arms) else f"the {leaders} leading arms"
    open_ = " Grey: windows still open." if window is not None else ""
    dotted = " Dotted: the end of the window." if window is not None else ""
    return [
        ("beliefs", "What is known of each arm", "How likely each success rate is; below, mean and 95 % interval."),
        ("allocation", "Who got the decisions", "The share of each arm, over time."),
        (
            "success",
            "How often they succeeded",
            f"By the time of the decision; {leading} and all together.{open_}",
        ),
        ("waits", "How late outcomes come", f"What is pending counts for as long as it has waited.{dotted}"),
        ("coming", "What is still to come", coming(whole)),
    ]


def span(milliseconds: float) -> str:
    """A time in words.

    >>> span(374_000_000), span(3_600_000), span(5000)
    ('4.3 days', '1 hour', '5 seconds')
    """
    units = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))
    word, size = next(((word, size) for word, size in units if milliseconds >= size), ("millisecond", 1))
    number = plain(milliseconds / size, 2)
    return f"{number} {word}{'s' if number != '1' else ''}"


def coming(whole: Summary) -> str:
    """What is expected of the pending, and when."""
    forecast = whole.to_come
    if not whole.pending:
        return "Nothing is pending."
    many = f"{whole.pending:,} outcome{'s are' if whole.pending > 1 else ' is'} pending"
    if not whole.observed:
        return f"{many}. None has come yet, so when they will come is not known."
    if forecast.half_within is None or forecast.most_within is None or forecast.expected < 0.5:
        return f"{many}, for longer than any that came took: hardly one is expected any more."
    half, most = span(forecast.half_within), span(forecast.most_within)
    return f"{many}; some {forecast.expected:,.0f} are expected, half within {half} and nine in ten within {most}."


FILTERS = {
    "percent": percent,
    "rough": rough,
    "chance": chance,
    "loss": loss,
    "amount": amount,
}

"""Numbers as the pages write them."""

from __future__ import annotations

from belated.live import Summary
from belated.live.words import loss, plain, span

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
        ("learned", "How much silence says", learned(whole)),
        ("coming", "What is still to come", coming(whole)),
    ]


def learned(whole: Summary) -> str:
    """What the curve is by which silence is read."""
    if whole.learned is None:
        return ""
    own = " In colour: arms whose curve is their own, in part." if whole.learned.arms else ""
    return (
        f"Of the successes within the window, the share that has come by then, learned from "
        f"{whole.learned.conversions:,}. A decision without one counts as so much of a failure.{own}"
    )


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


def sentence(text: str) -> str:
    """A text with a capital and a full stop.

    >>> sentence("this it is")
    'This it is.'
    """
    return f"{text[:1].upper()}{text[1:]}."


FILTERS = {
    "sentence": sentence,
    "percent": percent,
    "rough": rough,
    "chance": chance,
    "loss": loss,
    "amount": amount,
}

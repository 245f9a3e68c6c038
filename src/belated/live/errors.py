"""What can go wrong with a live experiment. Each error has a stable `kind`, and a text of one clear line."""

from __future__ import annotations

from typing import ClassVar

from belated.live.values import SKEW, iso


class LiveError(Exception):
    """What the live engine refuses, or cannot do now. The ledger is as it was."""

    kind: ClassVar[str] = "live-error"
    retryable: ClassVar[bool] = False

    def __init__(self, field: str, message: str):
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class NotFound(LiveError):
    """An experiment, arm or decision that there is not."""

    kind = "not-found"


class Conflict(LiveError):
    """It contradicts what is already written."""

    kind = "conflict"


class Stopped(LiveError):
    """The experiment is stopped, or none of its arms is active: it hears outcomes, and decides nothing."""

    kind = "stopped"


class Archived(LiveError):
    """The experiment is archived: it can be read, and nothing else."""

    kind = "archived"


class ClockRanBackwards(LiveError):
    """The clock reads much earlier than what is already written. Set right, it will do: try again then."""

    kind = "clock-ran-backwards"


def behind(clock: int, last: int) -> str:
    """That a clock is behind what is written, and what to do about it."""
    return (
        f"reads {iso(clock)}, but there is a decision of {iso(last)}; if this clock is wrong, set it right; "
        "if the one before was wrong, wait until then"
    )


def notice(clock: int, last: int) -> str | None:
    """What to say of numbers that are as of the last decision, the clock being far behind it; None if it is not."""
    if clock >= last - SKEW:
        return None
    return (
        f"this machine's clock reads {iso(clock)}, but there is a decision of {iso(last)}: all is shown as of then, "
        "and nothing more is decided before; set the clock right, unless it is the other one that was wrong"
    )


class Unavailable(LiveError):
    """The store cannot be reached or written now. Nothing was acknowledged; try again."""

    kind = "unavailable"
    retryable = True


class Unreadable(LiveError):
    """The experiment has settings that this version does not know."""

    kind = "unreadable"


class WrongLedger(LiveError):
    """The file or database is not a ledger, or damaged, or of a newer version than this program."""

    kind = "wrong-ledger"

"""What can go wrong with a live experiment. Each error has a stable `kind`, and a text of one clear line."""

from __future__ import annotations

from typing import ClassVar


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
    """The clock reads much earlier than what is already written."""

    kind = "clock-ran-backwards"


class Unavailable(LiveError):
    """The store cannot be reached or written now. Nothing was acknowledged; try again."""

    kind = "unavailable"
    retryable = True


class WrongLedger(LiveError):
    """The file or database is not a ledger, or damaged, or of a newer version than this program."""

    kind = "wrong-ledger"

"""Limits of time. One timer serves them all: a timer for each request would cost as much as a tenth of its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

PAUSE = 0.01  # seconds between two looks at least


class Watch:
    """Cancels the tasks whose time is over."""

    def __init__(self) -> None:
        self._deadlines: set[Deadline] = set()
        self._next: asyncio.TimerHandle | None = None
        self._look_at = 0.0

    def within(self, seconds: float, error: Callable[[], Exception]) -> Deadline:
        """A context that raises that error if what is in it takes longer."""
        return Deadline(self, seconds, error)

    def add(self, deadline: Deadline) -> None:
        self._deadlines.add(deadline)
        if self._next is None or deadline.end < self._look_at:
            self._plan(deadline.end)

    def remove(self, deadline: Deadline) -> None:
        self._deadlines.discard(deadline)

    def _plan(self, end: float) -> None:
        if self._next is not None:
            self._next.cancel()
        self._look_at = end
        wait = max(PAUSE, end - time.monotonic())
        self._next = asyncio.get_running_loop().call_later(wait, self._look)

    def _look(self) -> None:
        self._next = None
        now = time.monotonic()
        for deadline in [deadline for deadline in self._deadlines if deadline.end <= now]:
            self._deadlines.discard(deadline)
            deadline.pass_()
        if self._deadlines:
            self._plan(min(deadline.end for deadline in self._deadlines))


class Deadline:
    """The time that a part of a task may take."""

    __slots__ = ("_before", "_error", "_passed", "_task", "_watch", "end")

    def __init__(self, watch: Watch, seconds: float, error: Callable[[], Exception]):
        self.end = time.monotonic() + seconds
        self._error = error
        self._watch = watch
        self._task: asyncio.Task[Any] | None = None
        self._passed = False
        self._before = 0  # cancellations by others

    def change(self, seconds: float, error: Callable[[], Exception]) -> None:
        """From now on, another deadline."""
        self.end = time.monotonic() + seconds
        self._error = error
        self._watch.add(self)

    def lift(self) -> None:
        """Let it take as long as it takes."""
        self._watch.remove(self)

    def pass_(self) -> None:
        """The time is over."""
        if self._task is not None:
            self._passed = True
            self._before = self._task.cancelling()
            self._task.cancel()

    def __enter__(self) -> Deadline:
        self._task = asyncio.current_task()
        self._watch.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.remove(self)
        if self._passed and self._task is not None:
            others = self._task.uncancel() > self._before
            if kind is asyncio.CancelledError and not others:
                raise self._error() from None

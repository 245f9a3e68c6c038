"""From the event loop to the writer's thread and back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from belated.live import LiveError
from belated.live.judge import Operation
from belated.live.writer import LARGEST, Writer

LINGER = 0.001  # seconds at most that a batch waits for those who were answered just now: they often come again

Waiting = list[tuple[Operation, asyncio.Future[Any]]]


class Bridge:
    """Awaits what a writer answers. What comes during a commit is handed in together after it, and answered together.

    So a thread is woken twice for each commit, not for each operation, and commits are few and large.
    """

    def __init__(self, writer: Writer, loop: asyncio.AbstractEventLoop):
        self._writer = writer
        self._loop = loop
        self._waiting: Waiting = []
        self._busy = False  # a batch is under way, or there is a plan to hand one in
        self._plan: asyncio.Handle | None = None
        self._enough = 0  # of those who wait, for a batch to wait no longer

    def answer(self, operation: Operation) -> asyncio.Future[Any]:
        """The answer to an operation, once it is durable. To be called in the loop."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((operation, future))
        if not self._busy:
            self._busy = True
            self._plan = self._loop.call_soon(self._hand_in)  # with all that this turn of the loop brings
        elif len(self._waiting) == self._enough and self._plan is not None:
            self._plan.cancel()
            self._plan = self._loop.call_soon(self._hand_in)
        return future

    def _hand_in(self) -> None:
        self._plan = None
        batch, self._waiting = self._waiting[:LARGEST], self._waiting[LARGEST:]
        self._busy = bool(batch)
        if not batch:
            return
        try:
            self._writer.submit_all([each for each, _ in batch], lambda answers: self._answered(batch, answers))
        except LiveError as closed:
            self._deliver(batch, [closed] * len(batch))

    def _answered(self, batch: Waiting, answers: Sequence[Any]) -> None:
        """In the writer's thread."""
        self._loop.call_soon_threadsafe(self._deliver, batch, answers)

    def _deliver(self, batch: Waiting, answers: Sequence[Any]) -> None:
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():  # its client has gone
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        self._enough = len(batch) + len(self._waiting)
        if self._enough > 1:
            self._plan = self._loop.call_soon(self._linger)  # once they have their answers
        else:
            self._hand_in()

    def _linger(self) -> None:
        self._plan = self._loop.call_later(LINGER, self._hand_in)

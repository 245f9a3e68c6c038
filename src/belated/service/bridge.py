"""From the event loop to the writer's thread and back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from belated.live import LiveError
from belated.live.judge import Operation
from belated.live.writer import LARGEST, Writer

Waiting = list[tuple[Operation, asyncio.Future[Any]]]


class Bridge:
    """Awaits what a writer answers. What comes during a commit is handed in together after it, and answered together.

    So a thread is woken twice for each commit, not for each operation.
    """

    def __init__(self, writer: Writer, loop: asyncio.AbstractEventLoop):
        self._writer = writer
        self._loop = loop
        self._waiting: Waiting = []
        self._busy = False  # a batch is under way, or about to be handed in

    def answer(self, operation: Operation) -> asyncio.Future[Any]:
        """The answer to an operation, once it is durable. To be called in the loop."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((operation, future))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._hand_in)  # with all that this turn of the loop brings
        return future

    def _hand_in(self) -> None:
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
        self._hand_in()

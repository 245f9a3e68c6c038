"""From the event loop to the writer's thread and back."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, TypeVar

from belated.live.engine import Steps
from belated.live.judge import Operation
from belated.live.writer import Writer

Done = TypeVar("Done")


class Bridge:
    """Awaits what a writer answers. All the answers of a commit wake the loop once."""

    def __init__(self, writer: Writer, loop: asyncio.AbstractEventLoop):
        self._writer = writer
        self._loop = loop
        self._ready: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._woken = False

    async def answer(self, operation: Operation) -> Any:
        """The answer to an operation, once it is durable."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._writer.submit(operation, lambda answer: self._answered(future, answer))
        return await future

    async def carry_out(self, steps: Steps[Done]) -> Done:
        """What the steps come to."""
        try:
            operation = next(steps)
            while True:
                try:
                    answer = await self.answer(operation)
                except Exception as error:
                    operation = steps.throw(error)
                else:
                    operation = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _answered(self, future: asyncio.Future[Any], answer: Any) -> None:
        self._ready.append((future, answer))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False
        while self._ready:
            future, answer = self._ready.popleft()
            if future.done():  # its client has gone
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

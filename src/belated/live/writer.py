"""Group commit: one thread gathers what callers ask and commits it together; each is answered after its commit."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from belated.live.errors import Unavailable
from belated.live.judge import Operation, judge
from belated.live.store import Collision, Store

LARGEST = 2000  # operations in one transaction
LINGER = 0.0005  # seconds that a batch waits for the other callers, if there were others in the one before
ATTEMPTS = 50  # at a batch that collides with those of other writers

log = logging.getLogger("belated.live")


Then = Callable[[Sequence[Any]], None]


class Handed(NamedTuple):
    """Operations on their way, and who is told their answers, in the writer's thread."""

    operations: Sequence[Operation]
    then: Then


class Call:
    """An operation that a thread waits for."""

    __slots__ = ("_answer", "_done")

    def __init__(self) -> None:
        self._answer: Any = None
        self._done = threading.Lock()
        self._done.acquire()

    def answered(self, answers: Sequence[Any]) -> None:
        self._answer = answers[0]
        self._done.release()

    def wait(self) -> Any:
        """The answer, once it is durable; raises it if it is an exception."""
        with self._done:
            answer = self._answer
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Writer:
    """The one writer of a store in this process."""

    def __init__(self, store: Store):
        self._store = store
        self._handed: queue.SimpleQueue[Handed | None] = queue.SimpleQueue()
        self._open = True
        self._door = threading.Lock()
        self.batches = 0
        self.operations = 0
        self.seconds = 0.0  # spent in transactions
        self.committed: Callable[[int, float], None] = lambda operations, seconds: None  # told of each batch
        self._thread = threading.Thread(target=self._run, name="belated-writer", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation) -> Call:
        """Hand in an operation, to wait for."""
        call = Call()
        self.submit_all((operation,), call.answered)
        return call

    def submit_all(self, operations: Sequence[Operation], then: Then) -> None:
        """Hand in operations for one transaction. `then` is called with their answers, in the writer's thread."""
        if not self._open:
            raise Unavailable("ledger", "it has been closed")
        self._handed.put(Handed(operations, then))
        if not self._open and self._thread is not threading.current_thread():
            self._thread.join()  # the door has been closed since: the thread may have gone without them
            self._refuse_the_late()

    def close(self) -> None:
        """Commit what has been handed in, and stop."""
        with self._door:
            if self._open:
                self._open = False
                self._handed.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        crowded = False
        while True:
            batch, last = self._gather(crowded)
            if batch:
                crowded = len(batch) > 1
                self._commit(batch)
            if last:
                break
        self._refuse_the_late()

    def _refuse_the_late(self) -> None:
        """Answer what was handed in while the door closed."""
        with suppress(queue.Empty):
            while True:
                late = self._handed.get_nowait()
                if late is not None:
                    self._answer([late], [Unavailable("ledger", "it has been closed")] * len(late.operations))

    def _gather(self, crowded: bool) -> tuple[list[Handed], bool]:
        """The next batch, and whether it is the last: what is there, and in a crowd what soon follows."""
        handed = self._handed.get()
        if crowded:
            time.sleep(LINGER)  # one sleep costs less than being woken by each
        batch: list[Handed] = []
        size = 0
        while handed is not None:
            batch.append(handed)
            size += len(handed.operations)
            if size >= LARGEST or self._handed.empty():
                return batch, False
            handed = self._handed.get()
        return batch, True

    def _commit(self, batch: list[Handed]) -> None:
        operations = [operation for handed in batch for operation in handed.operations]
        began = time.perf_counter()
        answers = self._answers(operations)
        seconds = time.perf_counter() - began
        self.batches += 1
        self.operations += len(operations)
        self.seconds += seconds
        try:
            self.committed(len(operations), seconds)
        except Exception:
            log.exception("a batch could not be counted")
        self._answer(batch, answers)

    def _answer(self, batch: list[Handed], answers: Sequence[Any]) -> None:
        start = 0
        for operations, then in batch:
            end = start + len(operations)
            try:
                then(answers[start:end])
            except Exception:  # such as an event loop that has ended: the other callers wait for this thread
                log.exception("an answer could not be passed on")
            start = end

    def _answers(self, operations: Sequence[Operation]) -> Sequence[Any]:
        for _ in range(ATTEMPTS):
            try:
                with self._store.writing() as connection:
                    answers = judge(connection, operations)
                return answers  # noqa: RET504, committed by now
            except Collision:
                continue
            except Unavailable as error:
                return [error] * len(operations)
            except Exception as error:
                log.exception("a batch of %d failed", len(operations))
                if len(operations) == 1:
                    return [error]
                return [answer for operation in operations for answer in self._answers([operation])]
        return [Unavailable("ledger", "other writers were always first")] * len(operations)

"""Batches of replications over an executor: in any order, by any workers, kept as they finish.

A batch may fail once, for its worker may have died: it is handed in again, and if the executor takes no more, threads
of this process do the rest. What fails twice is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from belated.result import ARRAYS_DAMAGED, written_whole


class Outcome(NamedTuple):
    """What some replications of one policy left, a row each."""

    regret: np.ndarray
    pulls: np.ndarray
    fates: np.ndarray
    seconds: float


class Shelf:
    """Finished batches in a folder, a file each, under a name that tells all that decides its numbers.

    Without a folder nothing is kept.
    """

    def __init__(self, folder: Path | None):
        self._folder = folder

    def find(self, name: str) -> Outcome | None:
        """The outcome of that name, if it is there and whole."""
        if self._folder is None:
            return None
        try:
            with open(self._folder / f"{name}.npz", "rb") as raw, np.load(raw, allow_pickle=False) as file:
                return Outcome(file["regret"], file["pulls"], file["fates"], float(file["seconds"]))
        except (OSError, *ARRAYS_DAMAGED):  # there is none, or not all of it: it is made again
            return None

    def keep(self, name: str, outcome: Outcome) -> None:
        if self._folder is not None:
            with written_whole(self._folder / f"{name}.npz") as file:
                np.savez(file, **outcome._asdict())


class Hands:
    """An executor, and threads of our own in its place or once it is lost."""

    def __init__(self, executor: Executor | None, workers: int):
        self._executor = executor
        self._workers = workers
        self._threads: ThreadPoolExecutor | None = None
        self._stop = np.zeros(1, np.uint8)
        self._futures: list[Future[Outcome]] = []
        self._finished: SimpleQueue[tuple[int, Future[Outcome], bool]] = SimpleQueue()

    def __enter__(self) -> Hands:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:  # Ctrl-C included: what runs is told to stop, what waits is taken back
            self._stop[0] = 1
            for future in self._futures:
                future.cancel()
        if self._threads is not None:
            self._threads.shutdown(wait=True)

    def take(self, place: int, run: Callable[..., Outcome]) -> None:
        """Have it done; `next` gives it back."""
        future, here = self._submitted(run)
        self._futures.append(future)
        future.add_done_callback(lambda done: self._finished.put((place, done, here)))

    def next(self) -> tuple[int, Future[Outcome], bool]:
        """A batch that is done, and whether it was done in this process."""
        return self._finished.get()

    def _submitted(self, run: Callable[..., Outcome]) -> tuple[Future[Outcome], bool]:
        if isinstance(self._executor, ThreadPoolExecutor):
            return self._executor.submit(run, self._stop), True
        if self._executor is not None:
            try:
                return self._executor.submit(run), False
            except (BrokenExecutor, RuntimeError):  # RuntimeError: it has been shut down
                self._executor = None
        self._threads = self._threads or ThreadPoolExecutor(self._workers)
        return self._threads.submit(run, self._stop), True


def outcomes(
    batches: Sequence[Any],
    *,
    executor: Executor | None,
    workers: int,
    keep: Path | None,
    progress: Callable[[int, int], None],
) -> list[Outcome]:
    """The outcomes of the batches, in their order.

    `progress` is told the place of each batch that is done, and how many are; of those that a former run has finished
    only how many there are, with the place -1.
    """
    shelf = Shelf(keep)
    names = [batch.name if keep else "" for batch in batches]
    results = {place: kept for place, name in enumerate(names) if (kept := shelf.find(name)) is not None}
    if results:
        progress(-1, len(results))
    failed: set[int] = set()
    with Hands(executor, workers) as hands:
        for place in range(len(batches)):
            if place not in results:
                hands.take(place, batches[place].run)
        while len(results) < len(batches):
            place, future, here = hands.next()
            try:
                results[place] = future.result()
            except Exception:
                if here or place in failed:
                    raise
                failed.add(place)
                hands.take(place, batches[place].run)
            else:
                shelf.keep(names[place], results[place])
                progress(place, len(results))
    return [results[place] for place in range(len(batches))]

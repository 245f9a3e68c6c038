"""Numbers that grow, each under a key. With a folder, all processes that share it see the numbers of all of them.

There each process has two files: its numbers, which are a part of its memory, and their keys, a line each.
"""

from __future__ import annotations

import logging
import mmap
import os
import time
from collections.abc import Callable, MutableSequence
from pathlib import Path

import msgspec

Key = tuple[str, ...]
MOST = 1 << 20  # numbers of a process; the file has holes where there are none

log = logging.getLogger("belated.service")


class Counts:
    """The numbers of this process. Two threads must not move the same number."""

    def __init__(self, folder: Path | None = None):
        self._folder = folder
        self._places: dict[Key, int] = {}
        self._numbers: MutableSequence[float] = []
        if folder is not None:
            self._own = folder / f"{os.getpid()}-{time.time_ns()}.numbers"
            with self._own.open("w+b") as file:
                file.truncate(8 * MOST)
                self._numbers = memoryview(mmap.mmap(file.fileno(), 8 * MOST)).cast("d")  # type: ignore[assignment]

    def adder(self, key: Key) -> Callable[[float], None]:
        """What adds to the number of a key; to be kept by whom adds often."""
        numbers = self._numbers
        place = self._places.get(key)
        if place is None:
            place = len(self._places)
            if self._folder is None:
                numbers.append(0.0)
            else:
                try:
                    with self._own.with_suffix(".keys").open("ab") as file:  # at once, so that a line is whole
                        file.write(msgspec.json.encode(key) + b"\n")
                except OSError as error:  # what was counted is done, and must be answered
                    log.warning("%s cannot be counted: %s", "/".join(key), error)
                    return lambda amount: None
            self._places[key] = place

        def add(amount: float) -> None:
            numbers[place] += amount

        return add

    def all(self) -> dict[Key, float]:
        """The numbers of all processes together."""
        if self._folder is None:
            return {key: self._numbers[place] for key, place in list(self._places.items())}
        sums: dict[Key, float] = {}
        for keys in sorted(self._folder.glob("*.keys")):
            lines = keys.read_bytes().split(b"\n")[:-1]
            with keys.with_suffix(".numbers").open("rb") as file:
                numbers = memoryview(file.read(8 * len(lines))).cast("d")
            for line, number in zip(lines, numbers, strict=True):
                key = tuple(msgspec.json.decode(line, type=list[str]))
                sums[key] = sums.get(key, 0.0) + number
        return sums

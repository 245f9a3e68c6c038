"""How many requests a client may send, counted over all the processes of a server."""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SHELVES, PLACES = 4096, 8  # so many clients are told apart, 8 whose digests begin alike
_ENTRY = struct.Struct("<Qd")  # of a client: the start of its digest, and the time at which it has nothing spent
_SHELF = _ENTRY.size * PLACES
SIZE = SHELVES * _SHELF


class Limit:
    """At most `rate` requests a second of each client, and as many at once as in one second.

    A generic cell rate algorithm (ITU-T I.371): all that is kept of a client is when it will have nothing spent. A file
    of `SIZE` zeros is shared by all the processes that name it, a shelf of it locked for a moment at a time; the system
    releases the lock of one that dies. A client that finds no place takes that of the one with the least spent.
    """

    def __init__(self, rate: float, shared: str | None = None, clock: Callable[[], float] = time.monotonic):
        self.rate = rate
        self._burst = max(1.0, rate) / rate  # seconds that may be spent ahead
        self._clock = clock
        self._file = None if shared is None else Path(shared).open("r+b")  # noqa: SIM115, for as long as this lives
        self._table = mmap.mmap(-1 if self._file is None else self._file.fileno(), SIZE)

    @staticmethod
    def prepare(path: str) -> None:
        """Make the file that processes are to share."""
        Path(path).write_bytes(bytes(SIZE))

    def wait(self, client: str) -> float:
        """Spend one request; or, if there is none to spend, how many seconds there will not be."""
        digest = hashlib.blake2b(client.encode(), digest_size=16).digest()
        name = int.from_bytes(digest[:8], "little") or 1
        shelf = int.from_bytes(digest[8:], "little") % SHELVES
        now = self._clock()
        with self._locked(shelf):
            at, spent_until = self._place(shelf, name)
            after = max(now, spent_until) + 1.0 / self.rate
            if after - now > self._burst + 1e-9:
                return after - now - self._burst
            _ENTRY.pack_into(self._table, at, name, after)
        return 0.0

    def _place(self, shelf: int, name: int) -> tuple[int, float]:
        """Where a client stands, or may, and when it will have nothing spent."""
        start = shelf * _SHELF
        entries = [(at, *_ENTRY.unpack_from(self._table, at)) for at in range(start, start + _SHELF, _ENTRY.size)]
        for at, there, until in entries:
            if there == name:
                return at, until
        return min(entries, key=lambda entry: entry[2])[0], 0.0

    @contextmanager
    def _locked(self, shelf: int) -> Iterator[None]:
        if self._file is None:  # this process alone, and its event loop does one thing at a time
            yield
            return
        fcntl.lockf(self._file, fcntl.LOCK_EX, _SHELF, shelf * _SHELF)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, _SHELF, shelf * _SHELF)

    def close(self) -> None:
        self._table.close()
        if self._file is not None:
            self._file.close()

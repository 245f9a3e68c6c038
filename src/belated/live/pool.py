"""A pool of connections for reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Kept = TypeVar("Kept", bound=Any)


class Pool(Generic[Kept]):
    """Connections that are used again, the last one first. One that failed is closed instead."""

    def __init__(self, connect: Callable[[], Kept]):
        self._connect = connect
        self._idle: list[Kept] = []
        self._closed = False

    @contextmanager
    def borrowed(self) -> Iterator[Kept]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def clear(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        self._closed = True
        self.clear()

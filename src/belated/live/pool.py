"""A pool of connections for reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from belated.inputs import InvalidInput
from belated.live.errors import LiveError, Unavailable, WrongLedger

Kept = TypeVar("Kept", bound=Any)


class Pool(Generic[Kept]):
    """Connections that are used again, the last one first. One that failed is closed instead.

    That something is refused, such as an unknown name, is no failure of the connection. Whoever borrows one has ended
    what was under way on it when it is given back, whatever was raised.
    """

    def __init__(self, connect: Callable[[], Kept]):
        self._connect = connect
        self._idle: list[Kept] = []
        self._closed = False

    @contextmanager
    def borrowed(self) -> Iterator[Kept]:
        if self._closed:
            raise Unavailable("ledger", "it has been closed")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except BaseException as error:
            if _is_refusal(error):
                self._give_back(connection)
            else:
                connection.close()
            raise
        self._give_back(connection)

    def _give_back(self, connection: Kept) -> None:
        self._idle.append(connection)
        if self._closed:  # in the meantime
            self.clear()

    def clear(self) -> None:
        """Close those that are not in use."""
        with suppress(IndexError):  # another may take the last one
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        """Close all, those in use as soon as they are given back."""
        self._closed = True
        self.clear()


def _is_refusal(error: BaseException) -> bool:
    """Whether it is about what was asked, and not about the store."""
    return isinstance(error, LiveError | InvalidInput) and not isinstance(error, Unavailable | WrongLedger)

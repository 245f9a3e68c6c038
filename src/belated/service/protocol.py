"""uvicorn's protocol, with one write for each answer, and without those who never ask."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE = 20.0  # seconds for the head of a request, once its connection or its first byte is there
LONGEST = 65_536  # bytes of a head


class Joined:
    """A transport that writes what one turn of the loop gives it in one piece: a system call an answer, not two."""

    __slots__ = ("_loop", "_pieces", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop):
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def _flush(self) -> None:
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
        self._silent: asyncio.TimerHandle | None = None
        self._head = 0  # bytes of a head that is not yet whole
        self._in_body = False
        self._watch()

    def data_received(self, data: bytes) -> None:
        if not self._in_body:
            self._head += len(data)
            self._watch()
        super().data_received(data)
        if not self._in_body and self._head > LONGEST:
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._in_body = True
        self._head = 0
        self._stop_watching()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        self._head = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Close the connection if no whole head comes in time."""
        if self._silent is None:
            self._silent = self.loop.call_later(PATIENCE, self.transport.close)

    def _stop_watching(self) -> None:
        if self._silent is not None:
            self._silent.cancel()
            self._silent = None

"""uvicorn's protocol, with one write for each answer, and without those who never ask."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE = 20.0  # seconds for the first request of a connection


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
        self._silent = self.loop.call_later(PATIENCE, self._refuse_silence)

    def on_headers_complete(self) -> None:
        self._silent.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._silent.cancel()
        super().connection_lost(exc)

    def _refuse_silence(self) -> None:
        """It has been open for long, and nothing whole has been asked."""
        self.transport.close()

"""uvicorn's protocol, with one write for each answer, fewer timers, and without those who never ask or listen."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from weakref import ref

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from belated.service.reply import WHOLE

PATIENCE = 20.0  # seconds for the head of a request, once its connection or its first byte is there
LONGEST = 65_536  # bytes of a head, or beside a body
FRAME = 8  # bytes for each of a body, at most: one a chunk has six
TAKEN = 16_384  # bytes that a client must take within so long, if so many wait for it
UNREAD = 30.0  # seconds for them; what the system holds for a slow client goes by in bursts


class Joined:
    """A transport that writes what one turn of the loop gives it in one piece: a system call an answer, not two.

    It also ends what waits for a client that does not read, which neither a task nor `close` would ever do.
    """

    __slots__ = ("_loop", "_pieces", "_stuck", "_transport", "_waiting")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop):
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []
        self._stuck: asyncio.TimerHandle | None = None
        self._waiting = 0  # bytes that the client had not taken when that timer began

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def write_whole(self, data: bytes) -> None:
        """Write what nothing more will follow in this turn."""
        self._flush()
        self._write(data)

    def _flush(self) -> None:
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._write(data)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():  # of requests sent together, uvicorn tells only the last that it is lost
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self.hurry()

    def hurry(self) -> None:
        """From now on, abort if the client takes too little of what waits for it."""
        if self._stuck is None:
            self._waiting = self._transport.get_write_buffer_size()
            self._stuck = self._loop.call_later(UNREAD, self._look)

    def _look(self) -> None:
        self._stuck = None
        if self._transport.get_write_buffer_size() > self._waiting - TAKEN:
            self._transport.abort()
        else:
            self.hurry()

    def calm(self) -> None:
        """The client has taken enough, or is gone."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._joined = Joined(transport, self.loop)
        super().connection_made(self._joined)  # type: ignore[arg-type]
        self._silent: asyncio.TimerHandle | None = None
        self._head = 0  # bytes of a head that is not yet whole, or of what is sent as a body
        self._body = 0  # of these, the body itself, without the frames of its chunks and what trails them
        self._in_body = False
        self._watch()

    def data_received(self, data: bytes) -> None:
        was_in_body = self._in_body
        self._head += len(data)
        super().data_received(data)
        if self._in_body and self._head > LONGEST + FRAME * self._body:  # trailers without end
            self.transport.close()
        if self._in_body or was_in_body:
            return
        if self._head > LONGEST:
            self.transport.close()
        elif self._head:
            self._watch()

    def on_headers_complete(self) -> None:
        self._in_body = True
        self._head = self._body = 0
        self._stop_watching()
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.scope is self.scope and self.scope["method"] != "HEAD":
            # Weakly, for the cycle has the scope: a loop of references, one a request, is a long collection in the end.
            self.scope["extensions"] = {WHOLE: partial(_answer, ref(self.cycle))}  # type: ignore[dict-item]

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._head = 0
        super().on_message_complete()
        if self.cycle.response_complete:  # answered before its body ended, which put an end to uvicorn's own timer
            self._stop_watching()
            self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body and self.cycle.response_complete:
            # The rest may come, for a client that is still sending would not see the answer; but it must end.
            self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._joined.hurry()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._joined.is_closing():  # or else the rest has to go, too
            self._joined.calm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)
        self._joined.calm()

    def _watch(self) -> None:
        """Close the connection if no whole head comes in time, or not the rest of a body that was answered before."""
        if self._silent is None:
            self._silent = self.loop.call_later(PATIENCE, self.transport.close)

    def _stop_watching(self) -> None:
        if self._silent is not None:
            self._silent.cancel()
            self._silent = None


def _answer(of: ref[RequestResponseCycle], status: int, head: bytes, body: bytes) -> bool:
    """Send a whole answer at once, its head being well formed; False if a client does not read."""
    cycle = of()
    if cycle is None or cycle.disconnected:
        return True
    if cycle.flow.write_paused:
        return False
    transport: Any = cycle.transport
    end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
    date = [b"%b: %b\r\n" % header for header in cycle.default_headers]
    transport.write_whole(b"".join((STATUS_LINE[status], *date, head, end, body)))
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.message_event.set()
    if not cycle.keep_alive:
        transport.close()
    cycle.on_response()
    return True

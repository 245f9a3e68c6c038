"""A request that is allowed: what an answer may look at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from belated.live import Experiment, NotFound, values
from belated.service.keys import Access
from belated.service.problems import Problem

if TYPE_CHECKING:
    from belated.service.app import Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Asked:
    """A request, its key known and its body decoded; where that is no JSON, it is still to be received."""

    __slots__ = ("access", "form", "path", "receive", "scope", "service")

    def __init__(
        self, service: Service, scope: Scope, access: Access, path: dict[str, str], form: Any, receive: Receive
    ):
        self.service = service
        self.scope = scope
        self.access = access
        self.path = path
        self.form = form
        self.receive = receive

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1")))

    async def experiment(self) -> Experiment:
        """The experiment that the path names, if the key is for it; to another key it does not exist."""
        name = self.path["name"]
        if self.access.experiment not in (None, name):
            raise NotFound("experiment", f"there is none named {values.shown(name)}")
        return self.service.ledger.known(name) or await self.service.experiment(name)

    async def only(self) -> int | None:
        """The number of the one experiment that the key is for, if it is for one."""
        if self.access.experiment is None:
            return None
        return (await self.service.experiment(self.access.experiment)).id


async def body(scope: Scope, receive: Receive, largest: int) -> bytes:
    """The whole body, unless it is too large."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > largest:
            raise _too_large(largest)
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(408, "too-slow", "the client went away before its body had come")
        piece = message.get("body", b"")
        size += len(piece)
        if size > largest:
            raise _too_large(largest)
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


def _too_large(largest: int) -> Problem:
    return Problem(413, "too-large", f"the body may have at most {largest:,} bytes")

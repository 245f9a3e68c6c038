"""Who may come in: keys, names of the server, origins, media types, and how often."""

from __future__ import annotations

import asyncio
import math
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from belated.live import Ledger
from belated.service.keys import Access, Keys
from belated.service.limit import Limit
from belated.service.problems import Problem
from belated.service.request import Scope

if TYPE_CHECKING:
    from belated.service.routes import Route

COOKIE = "belated_key"
_EVERYTHING = Access("admin")
_LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}
_FORWARDED = {b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"}


class Guard:
    """Admits requests. Without any key, on loopback, everyone is an admin."""

    def __init__(self, ledger: Ledger, *, limit: Limit | None, loopback: bool):
        self._ledger = ledger
        self._loopback = loopback
        self._keys = Keys(ledger)
        self._limited = limit
        self._reading: asyncio.Future[None] | None = None

    async def admitted(self, scope: Scope, headers: dict[bytes, bytes], route: Route) -> Access:
        """What the caller may do, if it may do this."""
        if route.form is not None and not _is_json(headers.get(b"content-type", b"")):
            raise Problem(415, "unsupported-type", "the body must be sent as application/json")
        client = (scope.get("client") or ("?",))[0]
        if route.role is None:  # such as /healthz, which is right also when the store is gone
            if route.limited:
                self._limit(client)
            return Access("reader")
        key, from_cookie = _key(headers)
        access = await self.access(key, headers)
        self._limit(key if key and access else client)
        if access is None:
            what = "this key is unknown or revoked" if key else "send Authorization: Bearer and a key"
            raise Problem(401, "unauthorized", what, headers={"WWW-Authenticate": "Bearer"})
        if (from_cookie or not key) and route.method != "GET":
            _refuse_foreign(headers)
        if not access.allows(route.role):
            raise Problem(403, "forbidden", f"this needs the role {route.role}, the key's is {access.role}")
        if access.experiment is not None and route.path == "/metrics":
            raise Problem(403, "forbidden", "this key is for one experiment only")
        return access

    async def access(self, key: str | None, headers: dict[bytes, bytes]) -> Access | None:
        """What a key allows; None if it allows nothing."""
        if self._keys.stale():
            await asyncio.shield(self._read_keys())
        elif self._keys.ages():
            self._read_keys()  # so that nobody will have to wait
        if self._keys.needed:
            return self._keys.access(key) if key else None
        if not self._loopback:
            return None
        if not _FORWARDED.isdisjoint(headers):
            raise Problem(421, "misdirected", "without keys this server answers to nobody through another server")
        host = headers.get(b"host", b"").decode("latin-1")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if name not in _LOOPBACK:  # a page of another site, whose name leads to this machine
            raise Problem(421, "misdirected", f"without keys this server answers to localhost only, not to {name!r}")
        return _EVERYTHING

    def _read_keys(self) -> asyncio.Future[None]:
        """However many wait for them, they are read once."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(run_in_threadpool(self._keys.read))
            self._reading.add_done_callback(self._have_read)
        return self._reading

    def _have_read(self, reading: asyncio.Future[None]) -> None:
        self._reading = None
        if not reading.cancelled():
            reading.exception()  # whoever waits for it will raise it; perhaps nobody does

    def _limit(self, client: str) -> None:
        if self._limited is None:
            return
        wait = self._limited.wait(client)
        if wait > 0.0:
            message = f"more than {self._limited.rate:g} requests a second"
            raise Problem(429, "too-many-requests", message, headers={"Retry-After": str(math.ceil(wait))})


def _is_json(media: bytes) -> bool:
    return media == b"application/json" or media.split(b";")[0].strip().lower() == b"application/json"


def _key(headers: dict[bytes, bytes]) -> tuple[str | None, bool]:
    """The key that came with a request, and whether it came in the page's cookie."""
    if b"authorization" in headers:
        scheme, _, given = headers[b"authorization"].decode("latin-1").partition(" ")
        if scheme.lower() == "bearer" and given:
            return given.strip(), False
    if b"cookie" not in headers:
        return None, False
    try:
        cookie = SimpleCookie(headers[b"cookie"].decode("latin-1")).get(COOKIE)
    except CookieError:
        cookie = None
    return (cookie.value, True) if cookie else (None, False)


def _refuse_foreign(headers: dict[bytes, bytes]) -> None:
    """Without a key in its header, a change must not come from a page of another site."""
    origin = headers.get(b"origin")
    if origin is not None and origin.split(b"://", 1)[-1] != headers.get(b"host"):
        raise Problem(403, "forbidden", "a change cannot come from a page of another site")

"""The service: an ASGI application over a ledger. It finds the route, the key and the body, and times what it does."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import anyio
import anyio.to_thread
import msgspec
import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

import belated
from belated.live import Experiment, Ledger, ledger
from belated.live.judge import Do
from belated.live.version import Version
from belated.service import logs, openapi, pages, problems, request
from belated.service.bridge import Bridge
from belated.service.deadlines import Deadline, Watch
from belated.service.forms import DECODERS
from belated.service.guard import Guard
from belated.service.kept import Kept
from belated.service.limit import Limit
from belated.service.metrics import Counted
from belated.service.problems import Problem
from belated.service.reply import GUARDS, Json
from belated.service.request import Asked, Receive, Scope, Send
from belated.service.routes import Route, table

PATIENCE = 10.0  # seconds for a body to come in
TIME = 30.0  # seconds for the answer to it
LOOKERS = 8  # readings of much at once
PROVEN = 1.0  # seconds for which a proof that the store can be written holds
LARGEST = 1_000_000  # bytes of a body
LARGEST_MANY = 16_000_000  # of a body with many outcomes
_ID = re.compile(rb"[\w.:-]{1,64}").fullmatch  # of a request, that may stand in a log

log = logging.getLogger("belated.service")


class Limits(NamedTuple):
    """What one client may take."""

    rate: float | None = None  # requests a second, by key or address; None: as many as it likes
    shared: str | None = None  # the file by which several processes count them together
    body: int = LARGEST
    bodies: int = LARGEST_MANY


def _late() -> Problem:
    return Problem(503, "unavailable", f"no answer after {TIME:g} seconds", headers={"Retry-After": "1"})


def _slow() -> Problem:
    return Problem(408, "too-slow", f"the body had not come after {PATIENCE:g} seconds")


class Place(NamedTuple):
    """The routes of one path, by method, and the names of its parameters."""

    names: tuple[str, ...]
    routes: dict[str, Route]


class Service:
    """An ASGI application. `open_ledger` is called when it starts, and what it gives is closed when it ends."""

    def __init__(
        self,
        open_ledger: Callable[[], Ledger],
        *,
        limits: Limits | None = None,
        loopback: bool = True,
        counts: Path | None = None,  # a folder that all processes of the service share
    ):
        self._open_ledger = open_ledger
        self.limits = limits or Limits()
        self.counted = Counted(counts)
        api = table()
        self.description = msgspec.json.encode(openapi.description(api, belated.__version__))
        self._places = _places(api + pages.table())
        self._loopback = loopback
        self._refreshing: dict[str, asyncio.Future[Any]] = {}
        self._watch = Watch()
        self._ids = itertools.count(secrets.randbits(63))  # of requests without one
        self.ledger: Ledger
        self.bridge: Bridge
        self.guard: Guard
        self._lookers: anyio.CapacityLimiter
        self._drawers: anyio.CapacityLimiter
        self._proven: Kept[None] = Kept(PROVEN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    # --- Life ---

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._lookers = anyio.CapacityLimiter(LOOKERS)
        self._drawers = anyio.CapacityLimiter(1)  # as there is one pen
        try:
            await run_in_threadpool(self.start, asyncio.get_running_loop())
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": f"error: {error}"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await run_in_threadpool(self.ledger.close)
        logs.flush()
        await send({"type": "lifespan.shutdown.complete"})

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the ledger."""
        from belated.live.posterior import chances

        chances(np.ones(2), np.ones(2))  # which imports what the first ask would otherwise wait for
        self.ledger = self._open_ledger()
        self.ledger.writer.committed = self.counted.committed
        self.bridge = Bridge(self.ledger.writer, loop)
        rate = self.limits.rate
        limit = None if rate is None else Limit(rate, self.limits.shared)
        self.guard = Guard(self.ledger, limit=limit, loopback=self._loopback)

    # --- One request ---

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        id = self._request_id(headers)
        route: Route | None = None
        try:
            route, path = self._found(scope)
            with self._watch.within(TIME, _late) as deadline:
                response = await self._answered(route, path, headers, scope, receive, deadline)
        except Exception as error:
            response = self._refused(error, id, route, scope)
        if isinstance(response, Json):
            response.request_id = id.encode()
            await response(scope, send)
        else:
            own = {name for name, _ in response.raw_headers}
            response.raw_headers += [header for header in GUARDS if header[0] not in own]
            response.raw_headers.append((b"x-request-id", id.encode()))
            await response(scope, receive, send)
        seconds = time.perf_counter() - began
        where = route.path if route else "other"
        self.counted.timed(where, response.status_code, seconds)
        logs.request(id, scope["method"], where, response.status_code, seconds)

    def _request_id(self, headers: dict[bytes, bytes]) -> str:
        """The client's own id of its request, if it may stand in a log, or a new one."""
        given = headers.get(b"x-request-id")
        if given is not None and _ID(given):
            return given.decode()
        return f"{next(self._ids):016x}"

    def _found(self, scope: Scope) -> tuple[Route, dict[str, str]]:
        path = scope.get("raw_path") or scope["path"].encode()
        words = path.split(b"?", 1)[0].split(b"/")[1:]
        place, given = _walk(self._places, words)
        if place is None:
            raise Problem(404, "not-found", "there is nothing at this address")
        route = place.routes.get(scope["method"])
        if route is None and scope["method"] == "HEAD":  # the server leaves out the body
            route = place.routes.get("GET")
        if route is None:
            allowed = ", ".join(sorted(place.routes.keys() | ({"HEAD"} if "GET" in place.routes else set())))
            raise Problem(405, "method-not-allowed", f"this address takes {allowed}", headers={"Allow": allowed})
        return route, dict(zip(place.names, map(_text, given), strict=True))

    async def _answered(
        self,
        route: Route,
        path: dict[str, str],
        headers: dict[bytes, bytes],
        scope: Scope,
        receive: Receive,
        deadline: Deadline,
    ) -> Any:
        access = await self.guard.admitted(scope, headers, route)
        form = None
        if route.form is not None:
            largest = self.limits.bodies if route.path == "/v1/outcomes" else self.limits.body
            deadline.change(PATIENCE, _slow)
            whole = await request.body(scope, receive, largest)
            deadline.change(TIME, _late)
            form = DECODERS[route.form].decode(whole)
        if route.slow:
            deadline.lift()
        return await route.answer(Asked(self, scope, access, path, form, receive))

    def _refused(self, error: Exception, id: str, route: Route | None, scope: Scope) -> Response:
        problem = problems.of(error, route.form if route is not None else None)
        if problem.kind == "unavailable":
            log.warning("request %s: %s", id, error)
        if problem.status == 500:
            log.error("request %s failed", id, exc_info=error)
        for_a_person = route.page if route is not None else b"text/html" in dict(scope["headers"]).get(b"accept", b"")
        return pages.refusal(problem, scope) if for_a_person else problem.response()

    # --- What answers share ---

    async def looking(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """What a call gives that reads much. Few run at once, so that they leave threads to those who decide."""
        return await _in_a_thread(self._lookers, call, *arguments)

    async def drawing(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """What a call gives that waits for the pen."""
        return await _in_a_thread(self._drawers, call, *arguments)

    async def writable(self) -> None:
        """Find out that the store can be written, by a commit that changes nothing; it says so a second long."""
        await self._proven.current(None, self._prove)

    async def _prove(self) -> None:
        await self.bridge.answer(Do(ledger.touch))

    async def experiment(self, name: str) -> Experiment:
        """The experiment of that name."""
        experiment = self.ledger.known(name)
        if experiment is None:
            experiment = await run_in_threadpool(self.ledger.get, name)
        return experiment

    async def fresh(self, experiment: Experiment) -> Version:
        """A posterior that may serve asks; however many wait for it, it is read once, and never in the loop."""
        version = experiment.fresh()
        if version is None:
            version = await asyncio.shield(self._reading(experiment))
        elif experiment.ages(version):
            self._reading(experiment)  # so that nobody will have to wait
        return version

    def _reading(self, experiment: Experiment) -> asyncio.Future[Version]:
        reading = self._refreshing.get(experiment.name)
        if reading is None:
            reading = asyncio.ensure_future(run_in_threadpool(experiment.refreshed))
            self._refreshing[experiment.name] = reading
            reading.add_done_callback(lambda done: self._have_read(experiment.name, done))
        return reading

    def _have_read(self, name: str, reading: asyncio.Future[Version]) -> None:
        del self._refreshing[name]
        if not reading.cancelled():
            reading.exception()  # whoever waits for it will raise it; perhaps nobody does


def _text(raw: bytes) -> str:
    try:
        return (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
    except UnicodeDecodeError:
        raise Problem(404, "not-found", "there is nothing at this address") from None


def _places(routes: list[Route]) -> dict[bytes, Any]:
    """A tree of the words of paths; None stands for a parameter, and the empty word for the end."""
    tree: dict[Any, Any] = {}
    for route in routes:
        words = route.path.split("/")[1:]
        branch = tree
        for word in words:
            branch = branch.setdefault(None if word.startswith("{") else word.encode(), {})
        names = tuple(word[1:-1] for word in words if word.startswith("{"))
        branch.setdefault(b"//", Place(names, {})).routes[route.method] = route
    return tree


def _walk(tree: dict[Any, Any], words: list[bytes]) -> tuple[Place | None, list[bytes]]:
    given: list[bytes] = []
    for word in words:
        branch = tree.get(word)
        if branch is None:
            branch = tree.get(None)
            if branch is None or not word:
                return None, given
            given.append(word)
        tree = branch
    return tree.get(b"//"), given


async def _in_a_thread(limiter: anyio.CapacityLimiter, call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives. A request that is given up leaves its thread running, which counts until it has ended."""
    running = asyncio.ensure_future(anyio.to_thread.run_sync(call, *arguments, limiter=limiter))
    running.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear it
    return await asyncio.shield(running)

"""The pages for people. They are made on the server; a small script of our own keeps them up to date."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from starlette.responses import RedirectResponse, Response

from belated.live import Experiment, Ledger, ledger
from belated.live.summary import without_reading
from belated.service import reference, request, views, words
from belated.service.drawing import PEN
from belated.service.guard import COOKIE
from belated.service.html import Bodies, Body, File, Html, environment, local, origin, signed_in
from belated.service.kept import Kept
from belated.service.problems import TITLES, Problem
from belated.service.request import Asked, Scope
from belated.service.routes import Route
from belated.service.views import Card, View

if TYPE_CHECKING:
    from belated.service.app import Service

FOLDED = 250  # arms that are kept up to date though folded away
FRESH, DRAWN = 1.0, 5.0  # seconds for which numbers and pictures are kept at least
ROUND = 600_000  # ms of the ledger's time after which pictures are drawn again though nothing new is known


def table() -> list[Route]:
    """The addresses of the pages."""
    pages = Pages()
    return [
        Route("GET", "/", "reader", pages.list, page=True),
        Route("GET", "/experiments/{name}", "reader", pages.experiment, page=True),
        Route("GET", "/docs", None, pages.docs, page=True),
        Route("GET", "/login", None, pages.login, page=True),
        Route("POST", "/login", None, pages.enter, page=True),
        Route("POST", "/logout", None, pages.leave, page=True),
        Route("GET", "/static/{file}", None, pages.static, page=True),
    ]


def refusal(problem: Problem, scope: Scope) -> Response:
    """What a person sees instead of a page: the login, if it is a key that is missing."""
    part = b"part=" in scope["query_string"]
    if problem.status == 401 and scope["method"] == "GET" and not part:
        wanted = quote(scope["path"]) + ("?" + scope["query_string"].decode("latin-1") if scope["query_string"] else "")
        return RedirectResponse(f"/login?next={quote(wanted, safe='')}", 303)
    if part:
        return Response(problem.detail, problem.status, headers=problem.headers, media_type="text/plain")
    given = {"title": TITLES[problem.kind], "detail": problem.detail, "signed_in": signed_in(scope)}
    text = environment().get_template("refusal.html").render(given)
    return Html(text, problem.status, headers=problem.headers)


class Pages:
    """The answers of the pages, and what they keep for all who look."""

    def __init__(self) -> None:
        self._cards: Kept[list[Card]] = Kept(FRESH)
        self._views: dict[int, Kept[View]] = {}
        self._pictures: dict[int, Kept[dict[str, str]]] = {}
        self._bodies = Bodies()

    # --- Experiments ---

    async def list(self, asked: Asked) -> Response:
        """All experiments."""
        home = asked.service.ledger
        looking = asked.service.looking
        epochs = await looking(_epochs, home)
        cards = await self._cards.current(epochs, lambda: looking(views.cards, home))
        await asked.service.drawing(PEN.start)  # the next page that is looked at has charts
        only = asked.access.experiment
        given = {**await _common(asked), "cards": [card for card in cards if only in (None, card.name)]}
        render = partial(looking, _body, "list_live.html", given)
        live = await self._bodies.body(("list", only, *_who(given)), (cards,), render)
        return await _answered(asked, "list.html", given, live)

    async def experiment(self, asked: Asked) -> Response:
        """One experiment."""
        experiment = await asked.experiment()
        view = await self._view(experiment, asked.service)
        looking = asked.service.looking
        given = {**await _common(asked), "view": view, "most": FOLDED}
        key = (experiment.id, *_who(given))
        rest = Body.of("")
        if view.rest and asked.query.get("part") != "live":
            render = partial(looking, _body, "rest.html", given)
            rest = await self._bodies.body(("rest", *key), (view,), render)
        if asked.query.get("part") == "rest":
            return rest.response(asked.scope)
        pictures = await self._drawn(view, asked.service)
        given |= {"pictures": pictures, **_told(view)}
        render = partial(looking, _body, "experiment_live.html", given)
        live = await self._bodies.body(("live", *key), (view, pictures), render)
        return await _answered(asked, "experiment.html", {**given, "rest": rest.markup}, live)

    async def _view(self, experiment: Experiment, service: Service) -> View:
        """Where an experiment stands: as of a second ago at most, and never from before its last change of status."""
        home = service.ledger
        epoch = await service.looking(_epoch, home, experiment.name)
        kept = self._views.setdefault(experiment.id, Kept(FRESH))
        return await kept.current(epoch, lambda: service.looking(views.view, experiment, home))

    async def _drawn(self, view: View, service: Service) -> dict[str, str]:
        """The charts, drawn at most once in some seconds, whoever looks and however many."""
        home = service.ledger
        if not view.summary.asked:
            return {}
        kept = self._pictures.setdefault(view.row.id, Kept(DRAWN))
        key = view.at, home.ticks() // ROUND
        return await kept.settled(key, lambda: service.drawing(_drawing, view, home))

    # --- The API for people ---

    async def docs(self, asked: Asked) -> Response:
        """The API, address by address."""
        description = json.loads(asked.service.description)
        trouble = Problem(422, "invalid-input", "reward: must be between 0 and 1, got 2", "reward").body()
        given = {
            **await _common(asked),
            "operations": reference.operations(description, origin(asked.scope)),
            "types": reference.types(description),
            "errors": reference.errors(description),
            "trouble": json.dumps(trouble, indent=2),
        }
        return Html(await asked.service.looking(_rendered, "docs.html", given))

    # --- Keys ---

    async def login(self, asked: Asked) -> Response:
        """The form that asks for a key."""
        wanted = local(asked.query.get("next", "/"))
        if not (await _common(asked))["keyed"]:
            return RedirectResponse(wanted, 303)
        return _login(asked, wanted)

    async def enter(self, asked: Asked) -> Response:
        """Take a key, and keep it in a cookie."""
        headers = dict(asked.scope["headers"])
        _refuse_foreign(asked.scope)
        body = await request.body(asked.scope, asked.receive, 10_000)
        given = dict(parse_qsl(body.decode("utf-8", "replace")))
        wanted, key = local(given.get("next", "/")), given.get("key", "").strip()
        if not (await _common(asked))["keyed"]:
            return RedirectResponse(wanted, 303)
        if not key or await asked.service.guard.access(key, headers) is None:
            return _login(asked, wanted, "This key is unknown or revoked.")
        response = RedirectResponse(wanted, 303)
        response.set_cookie(COOKIE, key, path="/", httponly=True, samesite="strict", secure=_secure(asked.scope))
        return response

    async def leave(self, asked: Asked) -> Response:
        """Forget the key."""
        _refuse_foreign(asked.scope)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=_secure(asked.scope))
        return response

    # --- Files ---

    async def static(self, asked: Asked) -> Response:
        """A style sheet, a script or a picture."""
        file = File.all().get(asked.path["file"])
        if file is None:
            raise Problem(404, "not-found", "there is nothing at this address")
        return file.response(asked.scope, asked.query.get("v"))


# --- What goes into a page ---


async def _common(asked: Asked) -> dict[str, Any]:
    """What every page may look at."""
    keyed = await asked.service.guard.access(None, dict(asked.scope["headers"])) is None
    return {
        "admin": asked.access.allows("admin"),
        "keyed": keyed,
        "signed_in": keyed and signed_in(asked.scope),
        "origin": origin(asked.scope),
    }


def _who(given: dict[str, Any]) -> tuple[Any, ...]:
    return given["admin"], given["keyed"], given["origin"]


def _rendered(template: str, given: dict[str, Any]) -> str:
    return environment().get_template(template).render(given)


def _body(template: str, given: dict[str, Any]) -> Body:
    return Body.of(_rendered(template, given))


async def _answered(asked: Asked, template: str, given: dict[str, Any], live: Body) -> Response:
    """The part that changes, if only that is asked for, or the whole page around it."""
    if "part" in asked.query:
        return live.response(asked.scope)
    whole = {**given, "live": live.markup, "tag": live.tag}
    body: Body = await asked.service.looking(_body, template, whole)
    return body.response(asked.scope)


def _epochs(home: Ledger) -> list[tuple[int, int]]:
    with home.store.reading() as connection:
        return [(row.id, row.epoch) for row in ledger.experiments(connection)]


def _epoch(home: Ledger, name: str) -> int:
    with home.store.reading() as connection:
        return ledger.experiment(connection, name).epoch


def _drawing(view: View, home: Ledger) -> dict[str, str]:
    return PEN.drawn(views.drawing(view, home))


def _told(view: View) -> dict[str, Any]:
    """What is said in words, and the scale of the bars."""
    arms = [arm for _, arm in view.top]
    verdict = view.summary.verdict
    return {
        "verdict": f"{verdict[0].upper()}{verdict[1:]}" if view.summary.leader is None else verdict,
        "waited": without_reading(view.summary),
        "low": min(arm.low for arm in arms),
        "high": max(arm.high for arm in arms),
        "captions": words.captions(view.summary, min(views.LEADERS, len(arms)), view.row.failure_after),
    }


# --- Keys ---


def _login(asked: Asked, wanted: str, problem: str = "") -> Response:
    # A link on another site brings no cookie, which from a page of ours would go along.
    foreign = dict(asked.scope["headers"]).get(b"sec-fetch-site") == b"cross-site"
    given = {"next": wanted, "problem": problem, "signed_in": False, "foreign": foreign}
    return Html(_rendered("login.html", given), 401 if problem else 200)


def _secure(scope: Scope) -> bool:
    """Whether the cookie may go over HTTPS only. A proxy's word can but make it stricter."""
    return "https" in (scope["scheme"], dict(scope["headers"]).get(b"x-forwarded-proto", b"").decode("latin-1"))


def _refuse_foreign(scope: Scope) -> None:
    """A form must come from a page of this site."""
    headers = dict(scope["headers"])
    sent = headers.get(b"origin")
    if sent is not None and sent.split(b"://", 1)[-1] != headers.get(b"host"):
        raise Problem(403, "forbidden", "a form cannot come from a page of another site")

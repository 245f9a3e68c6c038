"""Templates, static files, and parts of pages that are sent only if they have changed."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import string
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import cache
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from belated.service.guard import COOKIE
from belated.service.request import Scope
from belated.service.words import FILTERS

KEPT = 200  # parts that are remembered
SMALL = 1000  # bytes that are not worth compressing
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def environment() -> Environment:
    """The templates. Whatever a person has named is escaped."""
    made = Environment(
        loader=PackageLoader("belated.service"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters.update(FILTERS)
    made.filters["path"] = lambda text: quote(text, safe="")
    made.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    made.filters["ticked"] = lambda text: Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))
    made.globals["static"] = lambda name: f"/static/{name}?v={File.all()[name].tag}"
    return made


class Html(Response):
    """A page."""

    media_type = "text/html"


class Body(NamedTuple):
    """A page, or a part of one, ready to be sent."""

    text: str
    plain: bytes
    packed: bytes
    tag: str

    @classmethod
    def of(cls, text: str) -> Body:
        plain = text.encode()
        return cls(text, plain, gzip.compress(plain, 5, mtime=0), f'W/"{_digest(plain)}"')

    @property
    def markup(self) -> Markup:
        return Markup(self.text)  # our own template's, escaped there

    def response(self, scope: Scope) -> Response:
        """The body, packed if the client takes that; nothing if it has it already."""
        headers = {"ETag": self.tag, "Vary": "Accept-Encoding"}
        asked = dict(scope["headers"])
        if asked.get(b"if-none-match", b"").decode("latin-1") == self.tag:
            return Response(None, 304, headers=headers)
        if len(self.plain) > SMALL and b"gzip" in asked.get(b"accept-encoding", b""):
            return Html(self.packed, headers={**headers, "Content-Encoding": "gzip"})
        return Html(self.plain, headers=headers)


class Bodies:
    """Parts that have been rendered, by what they show and to whom, as long as what they are made of is the same."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, tuple[tuple[Any, ...], Body]] = OrderedDict()

    async def body(self, key: Any, sources: tuple[Any, ...], render: Callable[[], Awaitable[Body]]) -> Body:
        """The part of that key, rendered if its sources are others than those it was rendered from."""
        known = self._kept.get(key)
        if known is not None and all(a is b for a, b in zip(known[0], sources, strict=True)):
            self._kept.move_to_end(key)
            return known[1]
        made = await render()
        self._kept[key] = sources, made
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return made


class File(NamedTuple):
    """A static file, by whose content its address is told from that of its earlier versions."""

    data: bytes
    type: str
    tag: str

    @staticmethod
    @cache
    def all() -> dict[str, File]:
        """The static files by name."""
        folder = files("belated.service").joinpath("static")
        read = {each.name: each.read_bytes() for each in folder.iterdir() if each.name.rsplit(".", 1)[-1] in TYPES}
        return {name: File(data, TYPES[name.rsplit(".", 1)[-1]], _digest(data)) for name, data in read.items()}

    def response(self, scope: Scope, version: str | None) -> Response:
        """The file, to be kept for good if the address names this very version."""
        kept = "public, max-age=31536000, immutable" if version == self.tag else "no-cache"
        headers = {"ETag": f'"{self.tag}"', "Cache-Control": kept}
        if dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1") == headers["ETag"]:
            return Response(None, 304, headers=headers)
        return Response(self.data, headers=headers, media_type=self.type)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


# --- What a request says of itself ---


def signed_in(scope: Scope) -> bool:
    """Whether it came with the page's cookie."""
    try:
        return COOKIE in SimpleCookie(dict(scope["headers"]).get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return False


def origin(scope: Scope) -> str:
    """The address of this service, as its client sees it."""
    host = dict(scope["headers"]).get(b"host", b"localhost:8000").decode("latin-1")
    plain = set(string.ascii_letters + string.digits + ".:-[]")
    return f"{scope['scheme']}://{host if host and set(host) <= plain else 'localhost:8000'}"


def local(address: str) -> str:
    """The address if it is of this site, otherwise the first page's.

    >>> local("/experiments/a?b=c"), local("//elsewhere/"), local("/\\\\elsewhere"), local("https://elsewhere")
    ('/experiments/a?b=c', '/', '/', '/')
    """
    strange = any(letter == "\\" or not " " < letter < "\x7f" for letter in address)
    return "/" if strange or not address.startswith("/") or address.startswith("//") else address

"""Answers in JSON, and the headers that guard every answer."""

from __future__ import annotations

from typing import Any

import msgspec

from belated.service.request import Scope, Send

WHOLE = "belated.whole"  # the extension of ASGI by which our own server takes an answer in one piece
GUARDS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]  # fmt: skip
_ALWAYS = [(b"content-type", b"application/json"), *GUARDS]
_ALWAYS_TEXT = b"".join(b"%b: %b\r\n" % header for header in _ALWAYS)
_encode = msgspec.json.Encoder().encode


class Json:
    """JSON, encoded by msgspec; sent with less ado than Starlette's responses, for it is most of what is sent."""

    __slots__ = ("_body", "request_id", "status_code")

    def __init__(self, content: Any, status: int = 200):
        self._body = _encode(content)
        self.status_code = status
        self.request_id = b""

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """Type, guards, length and the id of the request."""
        return [*_ALWAYS, (b"content-length", b"%d" % len(self._body)), (b"x-request-id", self.request_id)]

    async def __call__(self, scope: Scope, send: Send) -> None:
        body = self._body
        whole = scope["extensions"].get(WHOLE) if "extensions" in scope else None
        if whole is not None:
            own = b"content-length: %d\r\nx-request-id: %b\r\n" % (len(body), self.request_id)
            if whole(self.status_code, _ALWAYS_TEXT + own, body):
                return
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": body})

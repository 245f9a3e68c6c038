"""Errors over HTTP: RFC 9457 problem details, with a stable `type`, one clear `detail` and the offending `field`."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from starlette.responses import Response

from belated.inputs import InvalidInput
from belated.live import errors
from belated.service.refusals import plainly

STATUS: dict[type[Exception], int] = {
    InvalidInput: 422,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Stopped: 409,
    errors.Archived: 410,
    errors.ClockRanBackwards: 503,
    errors.Unavailable: 503,
    errors.WrongLedger: 503,  # it was one when the service started
    errors.Unreadable: 500,
}
TITLES = {
    "invalid-input": "A value that cannot be meant",
    "not-json": "The body is not JSON",
    "not-found": "There is no such thing",
    "method-not-allowed": "Not a method of this address",
    "conflict": "It contradicts what is already written",
    "stopped": "The experiment decides nothing more",
    "archived": "The experiment is archived",
    "unauthorized": "A key is needed",
    "forbidden": "This key may not do that",
    "too-large": "The body is too large",
    "too-slow": "The body came too slowly",
    "unsupported-type": "The body must be application/json",
    "misdirected": "Not a name of this server",
    "too-many-requests": "Too many requests",
    "unavailable": "The store cannot be reached now",
    "clock-ran-backwards": "The server's clock is behind the ledger",
    "unreadable": "The experiment cannot be read",
    "internal": "An error of the server",
}


log = logging.getLogger("belated.service")


class Problem(Exception):
    """A refusal, on its way to the client."""

    def __init__(
        self, status: int, kind: str, detail: str, field: str | None = None, headers: dict[str, str] | None = None
    ):
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.field = field
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """The fields of RFC 9457, and `field`."""
        whole = {
            "type": f"urn:belated:{self.kind}",
            "title": TITLES[self.kind],
            "status": self.status,
            "detail": self.detail,
        }
        return whole if self.field is None else {**whole, "field": self.field}

    def response(self) -> Response:
        body = msgspec.json.encode(self.body())
        return Response(body, self.status, headers=self.headers, media_type="application/problem+json")


def of(error: Exception, form: Any = None) -> Problem:
    """The problem that an exception is to a client; what we did not foresee is ours, and says nothing of itself."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, InvalidInput):
        return Problem(422, "invalid-input", f"{error.field}: {error.message}", error.field)
    if isinstance(error, errors.LiveError):
        status = STATUS[type(error)]
        if isinstance(error, errors.Unavailable | errors.WrongLedger):  # its own words may tell of hosts and users
            message = "the store cannot be reached or written now; try again"
            return Problem(503, "unavailable", message, headers={"Retry-After": "1"})
        headers = {"Retry-After": "60"} if status == 503 else {}
        return Problem(status, error.kind, str(error), error.field, headers)
    if isinstance(error, msgspec.ValidationError):
        field, message = plainly(error, form)
        return Problem(422, "invalid-input", f"{field}: {message}" if field else message, field)
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        return Problem(400, "not-json", f"the body is not JSON: {error}")
    return Problem(500, "internal", "an error of the server; its log has the request id")


def in_a_list(name: str, error: Exception) -> Problem:
    """The problem of one experiment among others that have none. The log has the cause."""
    log.error("the experiment %r cannot be shown", name, exc_info=error)
    return of(error)

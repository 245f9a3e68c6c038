"""Every address of the API in one table: who may use it, what comes in, what goes out, and who answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from belated.service import forms


class Route(NamedTuple):
    """An address and a method."""

    method: str
    path: str
    role: str | None  # the least role that may use it; None: anyone
    answer: Callable[..., Awaitable[Any]]
    form: Any = None  # the type of the body, if it has one
    # The type of the answer, by status; None: no JSON; several: a list of these.
    gives: Mapping[int, Any] = MappingProxyType({200: None})
    refuses: tuple[int, ...] = ()  # statuses of problems, beside those that any address may have
    page: bool = False  # for people: refusals are pages too
    slow: bool = False  # takes as long as it takes
    asks: Mapping[str, Any] = MappingProxyType({})  # the query's parameters, as JSON schemas
    limited: bool = True  # not for a load balancer: whoever shares its address could make it take the service out

    @property
    def says(self) -> str:
        """What it does, in a sentence."""
        return " ".join((self.answer.__doc__ or "").split())


def table() -> list[Route]:
    """The routes, those that are used most first."""
    from belated.service import api

    name = "/v1/experiments/{name}"
    decision = "/v1/decisions/{decision}/outcome"
    formats = {"format": {"type": "string", "enum": ["csv", "ndjson", "parquet"], "default": "csv"}}
    unit = {"unit": {"type": "string", "default": "1s", "examples": ["1h"]}}
    return [
        Route("POST", f"{name}/decisions", "writer", api.decide, forms.Question,
              {201: forms.Decided | list[forms.Decided], 200: forms.Decided}, (404, 409, 410)),
        Route("PUT", decision, "writer", api.tell, forms.Answer, {200: forms.Status}, (404, 409, 410)),
        Route("DELETE", decision, "writer", api.void, None, {200: forms.Status}, (404, 410)),
        Route("POST", "/v1/outcomes", "writer", api.tell_many, list[forms.AnswerOf], {200: list[forms.StatusOf]}),
        Route("GET", "/v1/experiments", "reader", api.overview, None, {200: (forms.Overview, forms.Unreadable)}),
        Route("POST", "/v1/experiments", "admin", api.create, forms.NewExperiment, {201: forms.Overview}, (409,)),
        Route("GET", name, "reader", api.summary, None, {200: forms.Overview}, (404,)),
        Route("PATCH", name, "admin", api.change, forms.NewStatus, {200: forms.Overview}, (404, 410)),
        Route("POST", f"{name}/arms", "admin", api.add_arm, forms.NewArm, {201: forms.Overview}, (404, 409, 410)),
        Route("PATCH", f"{name}/arms/{{arm}}", "admin", api.change_arm, forms.NewArmStatus, {200: forms.Overview},
              (404, 409, 410)),
        Route("GET", f"{name}/waits", "reader", api.waits, None, {200: forms.Curves}, (404,), asks=unit),
        Route("GET", f"{name}/export", "reader", api.export, None, {200: None}, (404,), asks=formats, slow=True),
        Route("GET", "/healthz", None, api.alive, limited=False),
        Route("GET", "/readyz", None, api.ready, limited=False),
        Route("GET", "/metrics", "reader", api.metrics),
        Route("GET", "/openapi.json", None, api.description),
    ]  # fmt: skip

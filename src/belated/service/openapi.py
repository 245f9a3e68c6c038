"""The OpenAPI 3.1 description of the API, from its table of routes and its types."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from belated.service.forms import Trouble
from belated.service.problems import TITLES
from belated.service.routes import Route

_MEANS = {
    200: "Done.", 201: "Made.", 400: TITLES["not-json"], 401: TITLES["unauthorized"], 403: TITLES["forbidden"],
    404: TITLES["not-found"], 405: TITLES["method-not-allowed"], 408: TITLES["too-slow"],
    409: "It contradicts what is already written, or the experiment is stopped", 410: TITLES["archived"],
    413: TITLES["too-large"], 415: TITLES["unsupported-type"], 421: TITLES["misdirected"],
    422: TITLES["invalid-input"], 429: TITLES["too-many-requests"], 503: TITLES["unavailable"],
}  # fmt: skip


def description(routes: list[Route], version: str) -> dict[str, Any]:
    """The description as a dict."""
    types: list[Any] = [Trouble]
    for route in routes:
        for given in (route.form, *route.gives.values()):
            types += given if isinstance(given, tuple) else [given] if given is not None else []
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    refs = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "belated",
            "version": version,
            "summary": "Live experiments whose outcomes come late.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key of belated."}},
        },
        "security": [{"key": []}, {}],
    }


def _operation(route: Route, refs: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.answer.__name__,
        "summary": route.says,
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
              for name in re.findall(r"{(\w+)}", route.path)),
            *({"name": name, "in": "query", "required": False, "schema": schema}
              for name, schema in route.asks.items()),
        ],
        "responses": {str(status): _response(status, given, refs, route) for status, given in route.gives.items()},
    }  # fmt: skip
    if route.role is None:
        operation["security"] = []
    else:
        operation["description"] = f"Needs the role {route.role}."
    if route.form is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": refs[repr(route.form)]}},
        }
    trouble = {"application/problem+json": {"schema": refs[repr(Trouble)]}}
    for status in sorted(problems(route)):
        operation["responses"][str(status)] = {"description": _MEANS[status], "content": trouble}
    return operation


def problems(route: Route) -> set[int]:
    """The statuses of problems that an address may answer with."""
    always = {421, 429, 503} if route.limited else {421, 503}
    keyed = {401, 403} if route.role else set()
    bodied = {400, 408, 413, 415, 422} if route.form is not None else set()
    located = {422} if "{" in route.path or route.asks else set()
    return always | keyed | bodied | located | set(route.refuses)


def _response(status: int, given: Any, refs: dict[str, Any], route: Route) -> dict[str, Any]:
    response: dict[str, Any] = {"description": _MEANS[status]}
    if given is not None:
        response["content"] = {"application/json": {"schema": _schema(given, refs)}}
    return response


def _schema(given: Any, refs: dict[str, Any]) -> Any:
    if isinstance(given, tuple):
        return {"type": "array", "items": {"anyOf": [refs[repr(each)] for each in given]}}
    return refs[repr(given)]

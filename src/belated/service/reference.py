"""The API as a page for people, from its OpenAPI description."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, NamedTuple

EXAMPLES: dict[str, Any] = {
    "decide": {"unit": "user-17"},
    "tell": {"reward": 1},
    "tell_many": [{"decision": "0190f3c2-7b1e-7cc0-9b6a-3f5d0c1a2b4e", "reward": 1}],
    "create": {"name": "checkout", "arms": ["red", "green"], "silence": {"after": "7d"}},
    "change": {"status": "stopped"},
    "add_arm": {"name": "blue"},
    "change_arm": {"status": "paused"},
}
PATHS = {"name": "checkout", "arm": "red", "decision": "0190f3c2-7b1e-7cc0-9b6a-3f5d0c1a2b4e"}


Words = list[tuple[str, bool]]  # a text in pieces, each with whether it is the name of a type


class Row(NamedTuple):
    """A field, or a parameter of the query."""

    name: str
    type: Words
    says: str
    required: bool
    default: str


class Table(NamedTuple):
    """The fields of a type; of one that a client sends, `given`, also which are needed."""

    title: str
    rows: list[Row]
    given: bool


class Operation(NamedTuple):
    """An address and a method."""

    id: str
    method: str
    path: str
    says: str
    role: str
    tables: list[Table]
    example: str
    answers: list[tuple[str, str, Words]]
    errors: list[str]


def operations(description: dict[str, Any], origin: str) -> list[Operation]:
    """Every operation of the description, in its order."""
    schemas = description["components"]["schemas"]
    return [
        _operation(method.upper(), path, given, schemas, origin)
        for path, methods in description["paths"].items()
        for method, given in methods.items()
    ]


def types(description: dict[str, Any]) -> list[Table]:
    """Every type of the description, by name."""
    schemas = description["components"]["schemas"]
    sent = {each.title for operation in operations(description, "") for each in operation.tables}
    return [_table(name, of, schemas) for name, of in sorted(schemas.items()) if f"Body: {name}" not in sent]


def errors(description: dict[str, Any]) -> list[tuple[str, str]]:
    """The statuses of errors, and what they mean."""
    found: dict[str, str] = {}
    for methods in description["paths"].values():
        for given in methods.values():
            found |= {status: each["description"] for status, each in given["responses"].items() if status >= "400"}
    return sorted(found.items())


def _operation(method: str, path: str, given: dict[str, Any], schemas: dict[str, Any], origin: str) -> Operation:
    tables = []
    asked = [each for each in given["parameters"] if each["in"] == "query"]
    if asked:
        tables.append(Table("Query", [_row(each["name"], each["schema"], False, schemas) for each in asked], True))
    body = given.get("requestBody")
    if body is not None:
        schema = body["content"]["application/json"]["schema"]
        name = schema.get("items", schema)["$ref"].rsplit("/", 1)[-1]
        table = _table(name, schemas[name], schemas)
        tables.append(table._replace(title=f"Body: {'a list of ' if 'items' in schema else ''}{name}"))
    good = {status: each for status, each in given["responses"].items() if status < "400"}
    return Operation(
        id=given["operationId"],
        method=method,
        path=path,
        says=given["summary"],
        role=given.get("description", "Needs no key."),
        tables=tables,
        example=_example(method, path, given, origin),
        answers=[(status, each["description"], _answer(each, schemas)) for status, each in good.items()],
        errors=[status for status in given["responses"] if status >= "400"],
    )


def _answer(response: dict[str, Any], schemas: dict[str, Any]) -> Words:
    return [
        word for media in response.get("content", {}).values() for word in _words(spelled(media["schema"]), schemas)
    ]


def _example(method: str, path: str, given: dict[str, Any], origin: str) -> str:
    """The operation as a command of curl."""
    for name, value in PATHS.items():
        path = path.replace(f"{{{name}}}", value)
    query = "&".join(
        f"{each['name']}={each['schema'].get('examples', [each['schema'].get('default')])[0]}"
        for each in given["parameters"]
        if each["in"] == "query"
    )
    url = f"{origin}{path}?{query}" if query else f"{origin}{path}"
    words = ["curl", shlex.quote(url)]
    if method not in ("GET", "POST") or (method == "POST" and "requestBody" not in given):
        words += ["-X", method]
    lines = [" ".join(words)]
    if given.get("security") != []:
        lines.append('  -H "Authorization: Bearer $KEY"')
    if given["operationId"] in EXAMPLES:
        lines.append(f"  --json {shlex.quote(json.dumps(EXAMPLES[given['operationId']]))}")
    return " \\\n".join(lines)


# --- Types in words ---


def _table(name: str, of: dict[str, Any], schemas: dict[str, Any]) -> Table:
    required = of.get("required", [])
    rows = [_row(field, each, field in required, schemas) for field, each in of["properties"].items()]
    return Table(name, rows, of.get("additionalProperties") is False)


def _row(name: str, schema: dict[str, Any], required: bool, schemas: dict[str, Any]) -> Row:
    says = schema.get("description", "")
    if "examples" in schema:
        says = f"{says} Such as {', '.join(map(str, schema['examples']))}.".strip()
    default = "" if required or "default" not in schema else json.dumps(schema["default"])
    return Row(name, _words(spelled(schema), schemas), says, required, default)


def _words(text: str, schemas: dict[str, Any]) -> Words:
    pieces = re.split(rf"\b({'|'.join(map(re.escape, schemas))})\b", text)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


def spelled(schema: dict[str, Any]) -> str:
    """A type in words.

    >>> spelled({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    'list of text, or null'
    """
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if "anyOf" in schema:
        return ", or ".join(spelled(each) for each in schema["anyOf"])
    kind = schema.get("type", "anything")
    if kind == "array":
        parts = schema.get("prefixItems")
        return f"[{', '.join(map(spelled, parts))}]" if parts else f"list of {spelled(schema['items'])}"
    if kind == "object":
        return (
            f"object of {spelled(schema['additionalProperties'])}" if schema.get("additionalProperties") else "object"
        )
    return {"string": "text", "integer": "whole number"}.get(kind, str(kind)) + _limits(schema)


def _limits(schema: dict[str, Any]) -> str:
    low, above, high = (_number(schema.get(key)) for key in ("minimum", "exclusiveMinimum", "maximum"))
    words = [
        f"from {low}" if low is not None else "",
        f"above {above}" if above is not None else "",
        f"to {high}" if high is not None else "",
    ]
    said = " ".join(word for word in words if word)
    return f" {said}" if said else ""


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}" if value == int(value) else f"{value:,}"

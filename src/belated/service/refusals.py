"""What msgspec says of a body that is not as its type says, in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from belated.inputs import nearest

_KINDS = {
    "str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip
_SIZES = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_PLAIN: list[tuple[str, Callable[[re.Match[str]], str]]] = [
    (r"expected `([^`]+)`, got `(\w+)`", lambda said: f"must be {_kinds(said[1])}, got {_kinds(said[2])}"),
    (
        r"expected `(\w+)` of length ([<>]=?) (\d+)",
        lambda said: f"must have {_SIZES[said[2]]} {_many(said[3], said[1])}",
    ),
    (r"expected `\w+` of length (\d+)(?:, got \d+)?", lambda said: f"must have {said[1]} entries"),
    (r"expected `str` matching regex .*", lambda said: "must be a UUID"),  # the one pattern that forms have
    (r"expected `\w+` ([<>]=?) ([\d.]+)", lambda said: f"must be {_SIZES[said[1]]} {float(said[2]):g}"),
    (r"object missing required field `.*`", lambda said: "is missing"),
    (r"object contains unknown field `.*`", lambda said: "there is no such field"),
]


def plainly(error: msgspec.ValidationError, form: Any = None) -> tuple[str | None, str]:
    """The field and the message of msgspec's "… - at `$.field`", for a body of the type `form`.

    >>> from belated.service.forms import Window
    >>> try: msgspec.json.decode(b'{"after": 7}', type=Window)
    ... except msgspec.ValidationError as error: plainly(error, Window)
    ('after', 'must be a text, got a whole number')
    """
    match = re.fullmatch(r"(.*?)(?: - at `(?:key in )?\$\.?(.*?)`)?", str(error), flags=re.DOTALL)
    message, field = (match[1], (match[2] or "").replace("[...]", "")) if match else (str(error), "")
    said = message[:1].lower() + message[1:]
    unknown = re.fullmatch(r"invalid enum value '(.*)'", said, flags=re.DOTALL)
    if unknown and field and form is not None:
        known = _choices(form, field)
        return field, nearest(field, field.rsplit(".", 1)[-1], unknown[1], known).message
    named = re.search(r"(?:unknown field|required field) `([^`]+)`", said)
    if named:
        field = f"{field}.{named[1]}" if field else named[1]
    for pattern, words in _PLAIN:
        found = re.fullmatch(pattern, said)
        if found:
            return field or None, words(found)
    return field or None, said


def _many(count: str, kind: str) -> str:
    one, more = ("entry", "entries") if kind == "array" else ("character", "characters")
    return f"{count} {one if count == '1' else more}"


def _kinds(union: str) -> str:
    return " or ".join(_KINDS.get(kind, kind) for kind in union.split(" | "))


def _choices(form: Any, field: str) -> list[str]:
    """What a field may be: texts, and an object by its first field."""
    there = [inspect.type_info(form)]
    for step in re.findall(r"\w+|\[", field):
        there = [inner for each in there for inner in _within(each, step)]
    texts = [str(value) for each in there if isinstance(each, inspect.LiteralType) for value in each.values]
    objects = [f'{{"{each.fields[0].encode_name}": …}}' for each in there if isinstance(each, inspect.StructType)]
    return sorted(texts + objects)


def _within(type: Any, step: str) -> Iterator[Any]:
    """What a step into a type leads to, through unions and what is only said of a type."""
    inner = [type]
    if step == "[":
        inner = [type.item_type] if isinstance(type, inspect.ListType) else []
    elif isinstance(type, inspect.StructType):
        inner = [each.type for each in type.fields if each.encode_name == step]
    for each in inner:
        each = each.type if isinstance(each, inspect.Metadata) else each
        yield from each.types if isinstance(each, inspect.UnionType) else [each]

"""The mark on a plain helper function that compiled code may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

MARKED: list[Callable[..., Any]] = []


def compiled(function: Function) -> Function:
    """Let policies and delay laws call `function` when they are compiled. The function itself stays as it is.

    >>> @compiled
    ... def half(x):
    ...     return x / 2
    >>> half(3.0)
    1.5
    """
    MARKED.append(function)
    return function

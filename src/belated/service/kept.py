"""What many viewers share: made once, kept for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")

DEAR = 10.0  # what takes a second to make is made at most once in so many


class Kept(Generic[Made]):
    """One thing that takes time to make. Whoever asks while it is being made waits for the same."""

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._until = 0.0
        self._made: tuple[Any, Made] | None = None
        self._making: tuple[Any, asyncio.Future[Made]] | None = None

    async def current(self, key: Any, make: Callable[[], Awaitable[Made]]) -> Made:
        """What was made for this key, some seconds ago at most."""
        while True:
            if self._made is not None and key == self._made[0] and time.monotonic() < self._until:
                return self._made[1]
            if self._making is None or self._making[0] == key:
                return await self._anew(key, make)
            await asyncio.wait([self._making[1]])

    async def settled(self, key: Any, make: Callable[[], Awaitable[Made]]) -> Made:
        """What was made for this key, or for another one some seconds ago at most."""
        if self._made is not None and (key == self._made[0] or time.monotonic() < self._until):
            return self._made[1]
        return await self._anew(key, make)

    async def _anew(self, key: Any, make: Callable[[], Awaitable[Made]]) -> Made:
        if self._making is None:
            self._making = key, asyncio.ensure_future(self._timed(key, make))
        return await asyncio.shield(self._making[1])

    async def _timed(self, key: Any, make: Callable[[], Awaitable[Made]]) -> Made:
        began = time.monotonic()
        try:
            made = await make()
        finally:
            self._making = None
        now = time.monotonic()
        self._made, self._until = (key, made), now + max(self._seconds, DEAR * (now - began))
        return made

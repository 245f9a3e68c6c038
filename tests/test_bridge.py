"""From the event loop to the writer: in few batches, each waiter with the answer that is his own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from belated import live
from belated.live import NotFound, Unavailable
from belated.live.judge import Do
from belated.service.bridge import Bridge


class Writer:
    """Answers each operation with itself, when told to."""

    def __init__(self) -> None:
        self.batches: list[tuple[Sequence[Any], Callable[[Sequence[Any]], None]]] = []

    def submit_all(self, operations: Sequence[Any], then: Callable[[Sequence[Any]], None]) -> None:
        self.batches.append((list(operations), then))

    def commit(self) -> None:
        operations, then = self.batches[-1]
        then(operations)


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_what_comes_during_a_commit_is_handed_in_together_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.service.bridge.LINGER", 60.0)  # so that no moment is over before we have looked

    async def work() -> None:
        writer = Writer()
        bridge = Bridge(writer, asyncio.get_running_loop())  # type: ignore[arg-type]
        first = [bridge.answer(each) for each in "ab"]  # type: ignore[arg-type]
        await turns()
        assert [operations for operations, _ in writer.batches] == [["a", "b"]]
        more = [bridge.answer(each) for each in "cde"]  # type: ignore[arg-type]
        more[1].cancel()  # its client has gone
        await turns()
        assert len(writer.batches) == 1
        writer.commit()
        assert await asyncio.gather(*first) == ["a", "b"]
        await turns()
        assert len(writer.batches) == 1  # it waits a moment for those who were answered just now
        last = [bridge.answer(each) for each in "fg"]  # type: ignore[arg-type]
        await turns()  # they came: it waits no longer
        assert writer.batches[1][0] == ["c", "d", "e", "f", "g"]
        monkeypatch.setattr("belated.service.bridge.LINGER", 0.001)
        writer.commit()
        assert await asyncio.gather(more[0], more[2], *last) == ["c", "e", "f", "g"]
        alone = bridge.answer("h")  # type: ignore[arg-type]
        async with asyncio.timeout(5):
            while len(writer.batches) < 3:
                await asyncio.sleep(0.001)  # they did not come again: it does not wait for long
            writer.commit()
            assert await alone == "h"

    asyncio.run(work())


def test_a_refusal_is_for_its_own_waiter_and_a_closed_writer_for_all(tmp_path: Path) -> None:
    def refuse(connection: Any) -> None:
        raise NotFound("arm", "there is none")

    async def work() -> None:
        with live.open(f"sqlite:///{tmp_path}/ledger.db") as shop:
            bridge = Bridge(shop.writer, asyncio.get_running_loop())
            fine, refused = bridge.answer(Do(lambda connection: 7)), bridge.answer(Do(refuse))
            assert await fine == 7
            with pytest.raises(NotFound):
                await refused
        with pytest.raises(Unavailable, match="it has been closed"):
            await bridge.answer(Do(lambda connection: 7))

    asyncio.run(work())

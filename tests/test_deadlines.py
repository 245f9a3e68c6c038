"""Deadlines of time: what is in time passes, what is not is ended with its own error, and one timer serves all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from belated.service.deadlines import Watch


class Late(Exception):
    pass


class Later(Exception):
    pass


def test_what_is_in_time_passes() -> None:
    async def work() -> int:
        watch = Watch()
        with watch.within(0.05, Late):
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)  # its deadline has gone with it
        return 1

    assert asyncio.run(work()) == 1


def test_what_is_not_is_ended() -> None:
    async def slow(watch: Watch, seconds: float, error: Any) -> None:
        with watch.within(seconds, error):
            await asyncio.sleep(30)

    async def work() -> list[Any]:
        watch = Watch()
        slows = [slow(watch, 0.02, Late), slow(watch, 0.06, Later), slow(watch, 0.01, Late)]
        async with asyncio.timeout(5):
            return await asyncio.gather(*slows, return_exceptions=True)

    assert [type(each) for each in asyncio.run(work())] == [Late, Later, Late]


def test_a_deadline_that_changes_and_one_that_is_lifted() -> None:
    async def work() -> list[str]:
        watch, ends = Watch(), []
        with watch.within(30, Late) as deadline:
            deadline.change(0.02, Later)
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise
        return ends

    async def lifted() -> str:
        watch = Watch()
        with watch.within(0.02, Late) as deadline:
            deadline.lift()
            await asyncio.sleep(0.1)
        return "done"

    with pytest.raises(Later):
        asyncio.run(work())
    assert asyncio.run(lifted()) == "done"


def test_whoever_is_cancelled_by_others_is_cancelled() -> None:
    async def slow(watch: Watch) -> None:
        with watch.within(30, Late):
            await asyncio.sleep(30)

    async def work() -> bool:
        task = asyncio.ensure_future(slow(Watch()))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(work())


def test_one_timer_serves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> int:
        loop, count = asyncio.get_running_loop(), 0
        original = loop.call_later

        def counting(*given: Any) -> Any:
            nonlocal count
            count += 1
            return original(*given)

        monkeypatch.setattr(loop, "call_later", counting)
        watch = Watch()
        for _ in range(1000):
            with watch.within(30, Late):
                pass
        return count

    assert asyncio.run(work()) == 1

"""Processes beside the test's own, that work on a ledger and say what they were answered.

`python crew.py` waits for tasks, a line of JSON each, and does each in a fork of its own, which may be killed. What is
said goes to a pipe at once, a line of JSON an answer, so that it is known however the process ends.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import traceback
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from belated import live
from belated.live import LiveError, Unavailable, fold


def say(*what: Any) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())  # short enough to be written whole, from any thread


def worth(id: str) -> float:
    """The reward of a decision, known to all who know its id."""
    return uuid.UUID(id).int % 1001 / 1000


# --- The tasks --------------------------------------------------------------------------------------------------------


def hammer(url: str, seed: int, threads: int, again: list[str], early: bool = False) -> None:
    """Ask and tell as fast as can be, for ever, and say each answer. `again` are outcomes told by others before."""
    if early:
        acknowledge_before_the_commit()
    shop = live.open(url, refresh=0.01)
    test = shop.get("test")

    def work(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        mine = [id for place, id in enumerate(again) if place % threads == number]
        while True:
            id = str(uuid.UUID(int=chance.getrandbits(128)))
            say("asking", id)
            say("asked", id, test.ask(id=id).arm)
            mine.append(id)
            chosen = mine.pop(chance.randrange(len(mine)))
            say("telling", chosen)
            say("told", chosen, test.tell(chosen, worth(chosen)))
            if chance.random() < 0.2:
                say("told", chosen, test.tell(chosen, worth(chosen)))

    in_threads(threads, work)


def acknowledge_before_the_commit() -> None:
    """A writer that is wrong: it answers what it has only begun. The kill test must see it."""
    from belated.live import writer

    def commit(self: Any, batch: list[writer.Handed]) -> None:
        with self._store.writing() as connection:
            for operations, then in batch:
                then(writer.judge(connection, operations))

    writer.Writer._commit = commit  # type: ignore[method-assign]


def tell_all(url: str, seed: int, threads: int, ids: list[str]) -> None:
    """Tell the outcomes of all these decisions in each thread, in an order of its own."""
    with live.open(url) as shop:
        test = shop.get("test")

        def work(number: int) -> None:
            mine = random.Random(f"{seed} {number}").sample(ids, len(ids))
            if number % 2:
                for told in test.tell_many([(id, worth(id)) for id in mine]):
                    say("told", told.decision, told.status)
            else:
                for id in mine:
                    say("told", id, test.tell(id, worth(id)))

        in_threads(threads, work)


def ask_all(url: str, seed: int, threads: int, ids: list[str], units: list[str]) -> None:
    """Ask with all these ids, and for all these units, in each thread, in an order of its own."""
    with live.open(url) as shop:
        test, sticky = shop.get("test"), shop.get("sticky")

        def work(number: int) -> None:
            chance = random.Random(f"{seed} {number}")
            for id in chance.sample(ids, len(ids)):
                answer = test.ask(id=id)
                say(id, answer.id, answer.arm, answer.propensity, answer.replayed)
            for unit in chance.sample(units, len(units)):
                answer = sticky.ask(unit=unit)
                say(unit, answer.id, answer.arm, answer.propensity, answer.replayed)

        in_threads(threads, work)


def ask_until_stopped(url: str, seed: int, threads: int) -> None:
    """Ask until the experiment is stopped, on posteriors as old as can be."""
    with live.open(url, refresh=3600) as shop:
        test = shop.get("test")

        def work(number: int) -> None:
            while True:
                try:
                    test.ask()
                except LiveError as error:
                    return say(error.kind)

        in_threads(threads, work)


def open_and_close(url: str, seed: int) -> None:
    """Open a ledger, which may have to be made or brought up to date."""
    with live.open(url) as shop:
        say([test.summary().asked for test in shop.experiments()])


def fill(url: str, seed: int, ballast: str, limit: int) -> None:
    """Ask and tell until there is no room, then with room again. Room is a limit of files, or a ballast to drop."""
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    else:
        Path(ballast).write_bytes(b"0" * 1_000_000)
    with live.open(url, refresh=3600) as shop:
        test, told = shop.create("full", ["red", "green"]), 0
        try:
            while told < 100_000:
                test.tell(test.ask().id, 1)
                told += 1
        except Unavailable as error:
            say("refused", str(error), error.retryable)
        verify("beside", url)
    verify("reopened", url)
    with live.open(url) as shop:
        test = shop.get("full")
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        else:
            Path(ballast).unlink()
        applied = [test.tell(test.ask().id, 1) for _ in range(10)].count("applied")
        say("again", told, applied, sum(arm.successes for arm in test.summary().arms))
    verify("at last", url)


def verify(when: str, url: str) -> None:
    """Open a ledger as another would, and say what is in it and what is wrong with it."""
    with live.open(url) as shop, shop.store.reading() as connection:
        say(when, [each.name for each in shop.experiments()], fold.differences(connection), fold.strays(connection))


TASKS = (hammer, tell_all, ask_all, ask_until_stopped, open_and_close, fill)


def in_threads(count: int, work: Any) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- The process ------------------------------------------------------------------------------------------------------


def serve() -> None:
    """Do each task in a fork: what is imported is imported once, and none is there any more when it is killed."""
    tasks = {task.__name__: task for task in TASKS}
    for line in sys.stdin:
        name, given = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.alarm(120)  # nothing runs for ever, whatever becomes of the test
            say("begun", os.getpid())
            status = 1
            try:
                tasks[name](**given)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        say("ended", os.waitstatus_to_exitcode(status))


class Hand:
    """One such process, as the test sees it."""

    def __init__(self, *before: str) -> None:
        command = [*before, sys.executable, __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = 0

    def begin(self, task: Any, url: str, seed: int, **given: Any) -> None:
        if self.pid:  # a test that failed has left it
            self.kill()
            list(self.answers())
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([task.__name__, {"url": url, "seed": seed, **given}]) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout is not None
        begun, self.pid = json.loads(self._process.stdout.readline())
        assert begun == "begun"

    def answers(self) -> Iterator[list[Any]]:
        """What the task says, until it ends; it must end well, or have been killed."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if said[0] == "ended":
                killed, self.pid = said[1] == -signal.SIGKILL, 0
                assert killed or said[1] == 0, f"the task ended with {said[1]}"
                return
            else:
                yield said
        raise AssertionError("the process is gone")

    def kill(self) -> None:
        """Kill the task. That it has ended is not read yet, so its id is hardly another's."""
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.read()
        self._process.stdout.close()
        self._process.wait(timeout=30)


if __name__ == "__main__":
    serve()

"""Whatever is killed, whenever: what was acknowledged is there, once; and what was not can be tried again."""

from __future__ import annotations

import random
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import crew
from belated import live
from belated.live import Unavailable, fold, ledger
from belated.live.values import BILLION, written
from crew import Hand, worth
from servers import Postgres


class Memory:
    """What clients were answered, and what they were about to do when they were killed."""

    def __init__(self) -> None:
        self.asking: set[str] = set()
        self.telling: set[str] = set()
        self.asked: dict[str, str] = {}
        self.told: dict[str, list[str]] = {}

    def note(self, kind: str, id: str, answer: str = "") -> None:
        if kind == "asking":
            self.asking.add(id)
        elif kind == "telling":
            self.telling.add(id)
        elif kind == "asked":
            assert self.asked.setdefault(id, answer) == answer
        else:
            self.told.setdefault(id, []).append(answer)

    def check(self, url: str) -> None:
        """Compare the ledger with what was answered, row by row and sum by sum."""
        with live.open(url) as shop, shop.store.reading() as connection:
            assert fold.differences(connection) == []
            assert fold.strays(connection) == []
            test = ledger.experiment(connection, "test")
            names = [arm.name for arm in ledger.arms(connection, test.id)]
            arms, rewards, sums = {}, {}, Counter[str]()
            for rows in ledger.every_decision(connection, test.id):
                for decision, revisions in rows:
                    id, arm = written(decision.id), names[decision.arm]
                    arms[id] = arm
                    sums[arm, "asked"] += 1
                    for outcome in revisions:
                        assert id not in rewards, "an outcome was credited twice"
                        rewards[id] = outcome.reward
                        sums[arm, "told"] += 1
                        sums[arm, "rewards"] += outcome.reward or 0
            totals = ledger.totals(connection, test.id)
        self.compare(arms, rewards)
        for place, found in totals.items():
            expected = [sums[names[place], what] for what in found._fields]
            assert list(found) == expected

    def compare(self, arms: dict[str, str], rewards: dict[str, int | None]) -> None:
        lost = [id for id, arm in self.asked.items() if arms.get(id) != arm]
        assert not lost, f"{len(lost)} acknowledged decisions lost"
        lost = [id for id in self.told if id not in rewards]
        assert not lost, f"{len(lost)} acknowledged outcomes lost"
        assert arms.keys() <= self.asking, "decisions that nobody asked for"
        assert rewards.keys() <= self.telling, "outcomes that nobody told"
        assert all(reward == round(worth(id) * BILLION) for id, reward in rewards.items())
        assert all(answers.count("applied") <= 1 for answers in self.told.values()), "applied twice"
        assert all("applied" not in answers[1:] for answers in self.told.values()), "applied after it was acknowledged"


def hammered(hand: Hand, url: str, memory: Memory, chance: random.Random, *, early: bool = False) -> None:
    """Let clients work on the ledger, and kill them at a random moment."""
    repeated = chance.sample(sorted(memory.told), min(10, len(memory.told)))
    unsure = sorted(memory.telling - memory.told.keys())[:10]
    hand.begin(crew.hammer, url, chance.getrandbits(32), threads=4, again=repeated + unsure, early=early)
    patience = chance.choice([0, 1, chance.randrange(20), chance.randrange(200)])
    if patience == 0:
        hand.kill()  # while it opens the ledger that the one before left as it was
    for number, said in enumerate(hand.answers(), start=1):
        memory.note(*said)
        if number == patience:
            hand.kill()  # what it had said by then is read to the end


@pytest.mark.parametrize(("new_ledger", "rounds"), [("sqlite", 60), ("postgresql", 15)], indirect=["new_ledger"])
def test_clients_killed(ledger_url: str, rounds: int, crew: list[Hand]) -> None:
    with live.open(ledger_url) as shop:
        shop.create("test", ["red", "green", "blue"])
    memory, chance = Memory(), random.Random(1)
    for number in range(1, rounds + 1):
        hammered(crew[0], ledger_url, memory, chance)
        if number % 5 == 0:
            memory.check(ledger_url)
    answers = Counter(answer for answers in memory.told.values() for answer in answers)
    assert answers.keys() == {"applied", "duplicate"}
    assert answers["applied"] > rounds
    assert len(memory.asking) > len(memory.asked)  # some were killed while they waited


@pytest.mark.parametrize("new_ledger", ["sqlite", "postgresql"], indirect=True)
def test_an_answer_before_the_commit_is_found_out(ledger_url: str, crew: list[Hand]) -> None:
    """The negative control: a writer that acknowledges what it has not committed."""
    with live.open(ledger_url) as shop:
        shop.create("test", ["red", "green", "blue"])
    memory, chance = Memory(), random.Random(2)
    for _ in range(50):
        hammered(crew[0], ledger_url, memory, chance, early=True)
        try:
            memory.check(ledger_url)
        except AssertionError as found:
            assert "lost" in str(found)  # noqa: PT017
            return
    pytest.fail("an engine that loses what it acknowledged passes for one that does not")


# --- The server itself ------------------------------------------------------------------------------------------------


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that the test may kill."""
    with Postgres() as server:
        yield server


class Caller(threading.Thread):
    """A client that tries again what could not be done, and notes how long it was kept waiting."""

    def __init__(self, test: live.Experiment, number: int):
        super().__init__()
        self.memory = Memory()
        self.refused, self.longest = 0, 0.0
        self.failure: Exception | None = None
        self.leaving = threading.Event()
        self._test, self._chance = test, random.Random(number)

    def run(self) -> None:
        try:
            while not self.leaving.is_set():
                id = str(uuid.UUID(int=self._chance.getrandbits(128)))
                self.memory.note("asking", id)
                self.memory.note("asked", id, self._insist(lambda id=id: self._test.ask(id=id).arm))
                self.memory.note("telling", id)
                self.memory.note("told", id, self._insist(lambda id=id: self._test.tell(id, worth(id))))
        except Exception as failure:
            self.failure = failure

    def _insist(self, call: Callable[[], str]) -> str:
        while True:
            began = time.monotonic()
            try:
                return call()
            except Unavailable as error:
                if not error.retryable or "\n" in str(error):
                    raise
                self.longest = max(self.longest, time.monotonic() - began)
                self.refused += 1
                if self.leaving.wait(0.01):
                    raise


def until(callers: list[Caller], reached: Callable[[Caller], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not all(reached(caller) for caller in callers):
        for caller in callers:
            assert caller.failure is None, caller.failure
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_server_killed(own_postgres: Postgres) -> None:
    url = own_postgres.url(own_postgres.create())
    with live.open(url, refresh=0.01) as shop:
        test = shop.create("test", ["red", "green", "blue"])
        callers = [Caller(test, number) for number in range(4)]
        for caller in callers:
            caller.start()
        try:
            for _ in range(3):
                heard = {caller: len(caller.memory.told) + 10 for caller in callers}
                until(callers, lambda caller, heard=heard: len(caller.memory.told) >= heard[caller])
                refused = {caller: caller.refused for caller in callers}
                own_postgres.kill()
                until(callers, lambda caller, refused=refused: caller.refused > refused[caller])
                with pytest.raises(Unavailable, match="PostgreSQL cannot be reached now"):
                    test.summary()
                own_postgres.start()
            heard = {caller: len(caller.memory.told) + 10 for caller in callers}
            until(callers, lambda caller: len(caller.memory.told) >= heard[caller])  # the same handle works again
        finally:
            for caller in callers:
                caller.leaving.set()
            for caller in callers:
                caller.join()
        assert max(caller.longest for caller in callers) < 15.0
        assert test.summary().asked >= sum(len(caller.memory.asked) for caller in callers)
    memory = Memory()
    for caller in callers:
        assert caller.failure is None or isinstance(caller.failure, Unavailable)
        memory.asking |= caller.memory.asking
        memory.telling |= caller.memory.telling
        memory.asked |= caller.memory.asked
        memory.told |= caller.memory.told
    memory.check(url)


# --- A full disk ------------------------------------------------------------------------------------------------------


def filled(hand: Hand, folder: Path, limit: int) -> str:
    """Fill the room that there is, and see what an engine without room still does; the line that it refuses with."""
    hand.begin(crew.fill, f"sqlite:///{folder}/full.db", 1, ballast=str(folder / "ballast"), limit=limit)
    said = {kind: rest for kind, *rest in hand.answers()}
    line, retryable = said["refused"]
    assert retryable
    assert said["beside"] == said["reopened"] == [["full"], [], []]
    told, applied, successes = said["again"]
    assert told > 20
    assert (applied, successes) == (10, told + 10)
    assert said["at last"] == [["full"], [], []]
    return str(line)


def test_a_file_that_may_not_grow(tmp_path: Path, crew: list[Hand]) -> None:
    line = filled(crew[0], tmp_path, limit=3_000_000)
    assert line == "ledger: cannot be read or written now: disk I/O error"


def test_a_full_disk(tmp_path: Path) -> None:
    """On a disk of three megabytes, which only the process that fills it has."""
    mount = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=3m none "{tmp_path}" && exec "$@"', "sh"]
    if subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    hand = Hand(*mount)
    try:
        line = filled(hand, tmp_path, limit=0)
    finally:
        hand.close()
    assert line == "ledger: cannot be read or written now: database or disk is full"

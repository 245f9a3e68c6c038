"""Any executor gives the same bytes, a worker that dies loses nothing, and an interrupted study goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from belated import UCB1, Between, Fixed, InvalidInput, Loss, Policy, Result, Scenario, Split, Thompson, simulate
from belated.cluster import dask
from belated.simulation import Batch

WORLD = Scenario(means=Between(0.2, 0.8), arms=4, delay=Loss(Between(0.1, 1.0)), rounds=300)
POLICIES = [Thompson(), UCB1()]


def _numbers(result: Result) -> bytes:
    return result.regret.tobytes() + result.pulls.tobytes() + result.fates.tobytes()


@pytest.fixture(scope="module")
def expected() -> bytes:
    return _numbers(simulate(WORLD, POLICIES, replications=40, seed=3))


def test_threads_and_processes_give_the_same_bytes(expected: bytes) -> None:
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2) as processes:
        for executor in (threads, processes):
            assert _numbers(simulate(WORLD, POLICIES, replications=40, seed=3, executor=executor)) == expected
            assert _numbers(simulate(WORLD, POLICIES, replications=40, seed=4, executor=executor)) != expected


# --- Workers that die -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mine(Policy):
    """Plays like Split; in another process it does what `harm` says, until the file `once` is there."""

    name: ClassVar[str] = "mine"

    home: int
    harm: str
    once: str

    def start(self, arms: int, rounds: int) -> Any:
        if os.getpid() != self.home and not Path(self.once).exists():
            if self.harm == "die":
                Path(self.once).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("it cannot start here")
        return Split().start(arms, rounds)


def test_a_process_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    mine = Mine(os.getpid(), "die", str(tmp_path / "once"))
    with ProcessPoolExecutor(2) as processes:
        result = simulate(WORLD, [Thompson(), mine], replications=40, seed=3, executor=processes)
    assert (tmp_path / "once").exists()
    assert _numbers(result) == _numbers(simulate(WORLD, [Thompson(), mine], replications=40, seed=3))


def test_what_fails_twice_is_an_error(tmp_path: Path) -> None:
    mine = Mine(os.getpid(), "raise", str(tmp_path / "never"))
    with ProcessPoolExecutor(2) as processes, pytest.raises(ValueError, match="it cannot start here"):
        simulate(WORLD, [mine], replications=40, seed=3, executor=processes)


# --- A real Dask scheduler --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and two workers, processes of their own on loopback."""
    folder = tmp_path_factory.mktemp("dask")
    address = folder / "scheduler.json"
    here = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(address)]
    workers = [*here, "--nworkers", "2", "--nthreads", "1", "--local-directory", str(folder)]
    started = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{what}", *options], stderr=subprocess.DEVNULL)
        for what, options in (("scheduler", [*here, "--port", "0"]), ("worker", workers))
    ]
    try:
        until = time.monotonic() + 60
        while not address.exists() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(0.2)  # the file is written in one piece, but not renamed
        yield json.loads(address.read_text())["address"]
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def test_dask_gives_the_same_bytes_also_when_a_worker_is_killed(scheduler: str, expected: bytes) -> None:
    from distributed import Client

    with Client(scheduler, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        workers = list(client.run(os.getpid).values())
    assert len({*workers, os.getpid()}) == 3
    killed = []

    def kill_one(what: str, done: float) -> None:
        if done > 0 and not killed:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    with dask(scheduler) as executor:
        assert _numbers(simulate(WORLD, POLICIES, replications=40, seed=3, executor=executor)) == expected
        result = simulate(WORLD, POLICIES, replications=40, seed=3, executor=executor, progress=kill_one)
    assert killed
    assert _numbers(result) == expected


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belated.cluster.PATIENCE", 1)
    with (
        pytest.raises(InvalidInput, match=r"--dask: no scheduler answers at tcp://127\.0\.0\.1:9"),
        dask("tcp://127.0.0.1:9"),
    ):
        pass
    with pytest.raises(InvalidInput, match=r"--dask: must be an address such as .*, got 'nowhere'"), dask("nowhere"):
        pass


# --- Studies that are interrupted -------------------------------------------------------------------------------------


def _interrupted(keep: Path, after: float, **options: Any) -> None:
    def interrupt(what: str, done: float) -> None:
        if done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(WORLD, POLICIES, replications=40, seed=3, keep=keep, progress=interrupt, **options)


def test_a_study_goes_on_where_it_was_interrupted(tmp_path: Path, expected: bytes) -> None:
    _interrupted(tmp_path, 0.3)
    kept = len(list(tmp_path.iterdir()))
    assert kept == 24  # of 80 batches
    seen: list[tuple[str, float]] = []
    result = simulate(
        WORLD, POLICIES, replications=40, seed=3, keep=tmp_path, progress=lambda *shown: seen.append(shown), workers=1
    )
    assert _numbers(result) == expected
    assert result.provenance["resumed"] == kept
    assert ("resumed", 0.3) in seen
    assert "resumed" not in simulate(WORLD, POLICIES, replications=40, seed=3).provenance


def test_a_damaged_file_is_made_again(tmp_path: Path, expected: bytes) -> None:
    _interrupted(tmp_path, 0.3)
    one, other, third = sorted(tmp_path.iterdir())[:3]
    one.write_bytes(one.read_bytes()[:100])
    other.write_bytes(b"")
    third.write_bytes(b"something else")
    result = simulate(WORLD, POLICIES, replications=40, seed=3, keep=tmp_path)
    assert _numbers(result) == expected
    assert result.provenance["resumed"] == 21


def test_what_is_kept_serves_no_other_study(tmp_path: Path) -> None:
    simulate(WORLD, POLICIES, replications=4, seed=3, keep=tmp_path)
    for world, policies, seed in (
        (replace(WORLD, rounds=301), POLICIES, 3),
        (replace(WORLD, delay=Fixed(3)), POLICIES, 3),
        (WORLD, [Thompson(prior=(2, 2)), UCB1(log=False)], 3),
        (WORLD, POLICIES, 4),
    ):
        other = simulate(world, policies, replications=4, seed=seed, keep=tmp_path)
        assert "resumed" not in other.provenance
        assert _numbers(other) == _numbers(simulate(world, policies, replications=4, seed=seed))
    assert simulate(WORLD, POLICIES, replications=4, seed=3, keep=tmp_path).provenance["resumed"] == 8


def test_the_name_of_a_batch_follows_the_code_of_its_policy() -> None:
    def named(body: str) -> str:
        names: dict[str, Any] = {"Split": Split, "dataclass": dataclass}
        exec(f"@dataclass(frozen=True)\nclass Own(Split):\n    def start(self, arms, rounds):\n        {body}", names)
        return Batch(WORLD, names["Own"](), 1, range(2), (1, 300), True).name

    assert named("return Split().start(arms, rounds)") == named("return Split().start(arms, rounds)")
    assert named("return Split().start(arms, rounds)") != named("return Split().start(arms, rounds + 1)")

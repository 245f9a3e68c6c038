"""The server as a process: how it starts, stops, dies, and what it logs."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from belated import live
from belated.cli import main
from belated.client import Client
from belated.inputs import InvalidInput
from belated.live import fold
from belated.service import keys
from belated.service.serve import refuse_taken
from serving import BELATED, Server, free_port, serving

ENDED = (0, -signal.SIGTERM)  # uvicorn hands the signal on once all is done


def test_two_workers_on_one_ledger(tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    with serving(ledger, tmp_path, "--workers", "2") as server, Client(server.url) as client:
        client.create("checkout", ["red", "green"])
        threads = [threading.Thread(target=lambda: [client.ask("checkout") for _ in range(10)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.summary("checkout")["asked"] == 80
        for _ in range(10):  # whichever worker answers
            with urllib.request.urlopen(f"{server.url}/metrics") as answer:
                metrics = answer.read().decode()
            assert 'belated_decisions_total{experiment="checkout"} 80.0' in metrics
        found = shared_out(server, 64)
        assert len(found) == 2
        assert min(found) > 10, found  # by chance alone this fails once in a hundred million runs
        with pytest.raises(InvalidInput, match="Address already in use"):  # though it shares it with its own workers
            refuse_taken("127.0.0.1", server.port)
        assert server.stop() in ENDED


def shared_out(server: Server, many: int) -> list[int]:
    """How many of so many new connections each worker has, once both are there."""
    whole = psutil.Process(server.process.pid)
    deadline = time.monotonic() + 30.0

    def held(status: str) -> list[int]:
        every = ([each.status for each in child.net_connections("tcp")] for child in whole.children(recursive=True))
        return [count for count in (each.count(status) for each in every) if count]

    while held(psutil.CONN_LISTEN) != [1, 1]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    opened = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(many)]
    while sum(found := held(psutil.CONN_ESTABLISHED)) < many:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    for each in opened:
        each.close()
    return found


def test_workers_count_requests_together(tmp_path: Path) -> None:
    """However many workers there are, `--rate` is that of the service."""
    rate, answers = 100, list[int]()
    with serving(
        f"sqlite:///{tmp_path}/ledger.db", tmp_path, "--workers", "2", "--rate", str(rate), "--quiet"
    ) as server:
        began = time.monotonic()

        def work() -> None:
            while time.monotonic() < began + 1.0:  # each time by a new connection, which any worker may take
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
                with contextlib.closing(connection):
                    connection.request("GET", "/openapi.json")
                    answers.append(connection.getresponse().status)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
    assert set(answers) == {200, 429}
    assert 1.5 * rate < answers.count(200) <= rate + rate * seconds + 1


def test_requests_under_way_end_and_what_they_were_answered_is_there(tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    with serving(ledger, tmp_path) as server, Client(server.url, patience=0.0) as client:
        client.create("checkout", ["red", "green"])
        answered: list[str] = []

        def work() -> None:
            try:
                while True:
                    answered.append(client.ask("checkout").id)
            except live.Unavailable:  # it has stopped
                pass

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        while len(answered) < 200:
            time.sleep(0.01)
        assert server.stop() in ENDED
        for thread in threads:
            thread.join()
    with live.open(ledger) as shop:
        for id in answered:
            assert shop.get("checkout").ask(id=id).replayed
        with shop.store.reading() as connection:
            assert fold.differences(connection) == []


@pytest.mark.parametrize(("new_ledger", "kills"), [("sqlite", 3), ("postgresql", 2)], indirect=["new_ledger"])
def test_killed_in_the_middle_nothing_acknowledged_is_lost(
    ledger_url: str, kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many clients, and kill -9 of the server and its workers; the clients go on with the next one."""
    monkeypatch.setattr("belated.client.LONGEST", 0.1)
    ledger, port = ledger_url, free_port()
    chance = random.Random(1)
    with live.open(ledger) as shop:
        shop.create("checkout", ["red", "green"])
    done = threading.Event()
    asked: dict[str, str] = {}
    told: dict[str, str] = {}

    def work() -> None:
        with Client(f"http://127.0.0.1:{port}", patience=120.0) as client:
            while not done.is_set():
                decision = client.ask("checkout")
                asked[decision.id] = decision.arm
                told[decision.id] = client.tell(decision.id, 1)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        with serving(ledger, tmp_path, "--workers", "2", "--quiet", port=port) as server:
            count = len(told)
            while len(told) < count + 100:
                time.sleep(0.01)
            time.sleep(chance.random() * 0.2)
            server.kill()
    with serving(ledger, tmp_path, port=port):
        done.set()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
    assert set(told.values()) <= {"applied", "duplicate"}  # a retry of what was committed is a duplicate
    with live.open(ledger) as shop:
        test = shop.get("checkout")
        for id, arm in asked.items():
            replayed = test.ask(id=id)
            assert (replayed.replayed, replayed.arm) == (True, arm)
            assert test.tell(id, 1) == "duplicate"
        summary = test.summary()
        assert summary.observed == len(told) == sum(round(arm.successes) for arm in summary.arms)
        with shop.store.reading() as connection:
            assert fold.differences(connection) == []
            assert fold.strays(connection) == []


def test_a_full_disk_is_not_ready(tmp_path: Path) -> None:
    """On a disk of three megabytes, which only the server has; once there is room again it goes on by itself."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=3m none "{disk}" && exec "$@"', "sh"]
    if subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    with serving(f"sqlite:///{disk}/ledger.db", tmp_path, "--quiet", before=mount) as server:

        def answers(path: str, wanted: int) -> http.client.HTTPMessage:
            deadline = time.monotonic() + 30
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
                with contextlib.closing(connection):
                    connection.request("GET", path)
                    answer = connection.getresponse()
                    if answer.status == wanted:
                        return answer.headers
                assert time.monotonic() < deadline, (path, answer.status)
                time.sleep(0.05)

        ballast = Path(f"/proc/{server.process.pid}/root{disk}/ballast")
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        refused = answers("/readyz", 503)
        assert refused["content-type"] == "application/problem+json"
        assert refused["retry-after"] == "1"
        answers("/healthz", 200)
        answers("/v1/experiments", 200)
        ballast.unlink()
        answers("/readyz", 200)


def test_log_lines_are_json_without_keys_or_units(tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    with live.open(ledger) as shop:
        secret = keys.create(shop, "admin")[1]
    with serving(ledger, tmp_path) as server, Client(server.url, key=secret) as client:
        client.create("checkout", ["red", "green"])
        client.ask("checkout", unit="jane@example.org")
        assert server.stop() in ENDED
    lines = [json.loads(line) for line in server.log.splitlines()]
    requests = [line for line in lines if "request" in line]
    assert {"/v1/experiments", "/v1/experiments/{name}/decisions"} <= {line["route"] for line in requests}
    assert all(line["request"] and line["ms"] >= 0 for line in requests)
    assert secret not in server.log
    assert "jane" not in server.log


@pytest.mark.parametrize("head", [b"", b"POST /v1/experiments HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_client_that_says_nothing_stops_nobody(head: bytes, tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/ledger.db", tmp_path) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for each in idle:
            each.sendall(head)
        began = time.monotonic()
        with Client(server.url) as client:
            assert client.experiments() == []
        assert time.monotonic() - began < 5.0
        for each in idle:
            each.close()


Said = tuple[int, str, str]  # the exit code, and what stood on both outputs
Run = Callable[..., Said]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process, but for the server itself."""
    monkeypatch.setattr("uvicorn.run", lambda *given, **options: pytest.fail("it started"))

    def run(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["belated", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(str(ended.value.code or 0)), said.out, said.err

    return run


def test_it_does_not_start(tmp_path: Path, run: Run) -> None:
    def refused(*options: str) -> str:
        """The one line with which it does not start."""
        code, _, said = run("serve", *options)
        assert (code, said.count("\n")) == (2, 1), said
        return said

    ledger = f"--ledger=sqlite:///{tmp_path}/ledger.db"
    assert "host: 0.0.0.0 can be reached from elsewhere: make a key first" in refused(ledger, "--host=0.0.0.0")
    assert "port: must be at most 65535, got 70000" in refused(ledger, "--port=70000")
    assert "port: must be a whole number, got 'x'" in refused(ledger, "--port=x")
    assert "workers: must be at least 1, got 0" in refused(ledger, "--workers=0")
    assert "rate: must be above 0, got 0" in refused(ledger, "--rate=0")
    assert "ledger: there is no folder" in refused("--ledger=sqlite:////nowhere/x.db")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "Address already in use" in refused(ledger, f"--port={taken.getsockname()[1]}")
    with live.open(f"sqlite:///{tmp_path}/ledger.db") as shop:
        keys.revoke(shop, keys.create(shop, "admin")[0].id)
    assert "make a key first" in refused(ledger, "--host=0.0.0.0")


def test_keys_from_the_command_line(tmp_path: Path, run: Run) -> None:
    ledger = f"--ledger=sqlite:///{tmp_path}/ledger.db"
    code, out, _ = run("keys", "create", "--role=writer", ledger)
    secret = out.strip()
    assert (code, secret[:8]) == (0, "belated_")
    listed = run("keys", "list", ledger)[1]
    assert "writer" in listed
    assert secret not in listed
    with serving(ledger.removeprefix("--ledger="), tmp_path) as server, Client(server.url, key=secret) as client:
        assert client.experiments() == []
        assert run("keys", "revoke", "1", ledger)[0] == 0
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:  # a second, and however slow the machine is
            try:
                client.experiments()
            except live.LiveError as error:
                assert "this key is unknown or revoked" in str(error)  # noqa: PT017
                break
        else:
            raise AssertionError("the key is still in force")
    for words, refusal in (
        (("revoke", "7"), "there is none with the number 7"),
        (("create", "--role=wrtier"), "did you mean 'writer'"),
        (("create", "--role=reader", "--experiment=nowhere"), "there is none named 'nowhere'"),
    ):
        code, _, said = run("keys", *words, ledger)
        assert (code, refusal in said) == (2, True)


def test_the_demo_shows_experiments_that_move(tmp_path: Path) -> None:
    with serving("", tmp_path, command="demo") as server, Client(server.url) as client:
        first = {each["name"]: each["asked"] for each in client.experiments()}
        assert len(first) == 3
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if all(each["asked"] > first[each["name"]] for each in client.experiments()):
                break
            time.sleep(0.1)
        else:
            raise AssertionError("no visitors come")
        interrupted(server)
    assert "the page is at http://127.0.0.1:" in server.log


def interrupted(server: Server) -> None:
    """Ctrl-C, as a person would end it."""
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(60) in (0, 130)
    assert "Traceback" not in server.log


def test_a_copy_taken_while_it_runs_restores(tmp_path: Path) -> None:
    """docs/service.md: SQLite's own backup, then verify."""
    import sqlite3

    ledger = f"sqlite:///{tmp_path}/ledger.db"
    with serving(ledger, tmp_path, "--quiet") as server, Client(server.url) as client:
        client.create("checkout", ["red", "green"])
        known = [client.ask("checkout").id for _ in range(50)]
        done = threading.Event()

        def work() -> None:
            while not done.is_set():
                client.tell(client.ask("checkout").id, 1)

        thread = threading.Thread(target=work)
        thread.start()
        source, copy = sqlite3.connect(tmp_path / "ledger.db"), sqlite3.connect(tmp_path / "copy.db")
        source.backup(copy, pages=10)
        source.close()
        copy.close()
        done.set()
        thread.join()
    run = subprocess.run(
        [BELATED, "live", "verify", f"--ledger=sqlite:///{tmp_path}/copy.db"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    with live.open(f"sqlite:///{tmp_path}/copy.db") as shop:
        assert all(shop.get("checkout").ask(id=id).replayed for id in known)

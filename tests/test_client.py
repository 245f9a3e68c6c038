"""The client, against a real server."""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from belated import InvalidInput, live
from belated.client import Client, Refused
from serving import Server, free_port, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("client")
    with serving(f"sqlite:///{folder}/ledger.db", folder) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


def test_an_experiment_from_first_to_last(client: Client) -> None:
    name = "checkout / ü"
    client.create(name, ["red", "green"], silence=live.Failure(after="7d"), floor=0.1, reading="wait")
    decision = client.ask(name, unit="user-17")
    assert decision.arm in ("red", "green")
    assert decision.at.tzinfo == datetime.UTC
    assert client.ask(name, id=decision.id)._replace(replayed=False) == decision
    assert client.tell(decision.id, 1, occurred_at=decision.at) == "applied"
    assert client.tell(decision.id, 1) == "duplicate"
    assert client.tell(decision.id, 0.5, revise=True) == "revised"
    assert client.void(decision.id) == "voided"
    told = client.tell_many([(decision.id, 1), (str(uuid.uuid4()), 1), (decision.id, 0, None, False)])
    assert [each.status for each in told] == ["applied", "not-found", "conflict"]
    assert isinstance(told[1].error, live.NotFound)
    assert client.summary(name)["observed"] == 1
    assert [each["name"] for each in client.experiments()] == [name]
    assert client.set_status(name, "stopped")["status"] == "stopped"


def test_refusals_are_the_errors_of_the_engine(client: Client) -> None:
    client.create("errors", ["a", "b"])
    with pytest.raises(live.Conflict, match="name: there is an experiment"):
        client.create("errors", ["a", "b"])
    with pytest.raises(live.NotFound, match="experiment: there is none named 'nowhere'"):
        client.ask("nowhere")
    with pytest.raises(InvalidInput, match="arms: "):
        client.create("few", ["a"])
    with pytest.raises(InvalidInput, match="reward: must be"):
        client.tell(str(uuid.uuid4()), float("nan"))
    client.set_status("errors", "stopped")
    with pytest.raises(live.Stopped):
        client.ask("errors")
    client.set_status("errors", "archived")
    with pytest.raises(live.Archived):
        client.ask("errors")
    for url in ("", "localhost:8000", "ftp://x", 17):
        with pytest.raises(InvalidInput, match="url: must be"):
            Client(url)  # type: ignore[arg-type]


def test_nobody_there() -> None:
    port = free_port()
    with pytest.raises(live.Unavailable, match=f"127.0.0.1:{port} cannot be reached"):
        Client(f"http://127.0.0.1:{port}", patience=0.2).ask("checkout")


class Flaky(BaseHTTPRequestHandler):
    """Answers 503, breaks off, answers nonsense, and at last answers."""

    bodies: list[bytes] = []  # noqa: RUF012, of one test

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        if len(self.bodies) == 1:
            self._say(503, b'{"detail": "service: busy"}')
        elif len(self.bodies) == 2:
            self.connection.close()
        else:
            self._say(
                201, b'{"id": "x", "arm": "red", "propensity": 1, "asked_at": "2025-01-01T00:00:00Z", "unit": null}'
            )

    def do_GET(self) -> None:
        self._say(200, b"<html>")

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def test_a_retry_sends_the_same_id() -> None:
    with HTTPServer(("127.0.0.1", 0), Flaky) as flaky:
        thread = threading.Thread(target=flaky.serve_forever)
        thread.start()
        try:
            with Client(f"http://127.0.0.1:{flaky.server_port}") as client:
                assert client.ask("checkout").arm == "red"
                with pytest.raises(Refused, match="not in JSON: is it belated's"):
                    client.experiments()
        finally:
            flaky.shutdown()
            thread.join()
    assert len(Flaky.bodies) == 3
    assert len(set(Flaky.bodies)) == 1


def test_many_threads_share_it(client: Client, tmp_path: Path) -> None:
    client.create("threads", ["a", "b"])
    threads = [threading.Thread(target=lambda: [client.ask("threads") for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.summary("threads")["asked"] == 160

"""Answers in one piece: the same as any ASGI server would send, in order, also to a client that does not read."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from belated import live
from belated.service.app import Service
from serving import Server, serving

ASK = b"POST /v1/experiments/many/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
x-request-id: mine-%d\r\ncontent-length: 2\r\n\r\n{}"
LOOK = b"GET /v1/experiments/many HTTP/1.1\r\nhost: localhost\r\nx-request-id: mine-%d\r\n\r\n"
ARMS = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with live.open(f"sqlite:///{folder}/ledger.db") as shop:
        shop.create("many", [f"arm {number}" for number in range(ARMS)], policy="split")
    with serving(f"sqlite:///{folder}/ledger.db", folder) as server:
        yield server


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def test_the_same_headers_as_from_any_server(server: Server, tmp_path: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", "/healthz", headers={"X-Request-Id": "mine"})
    own = {name.lower(): value for name, value in connection.getresponse().getheaders()}
    connection.close()
    assert own.pop("date").endswith("GMT")
    plain = Service(lambda: live.open(f"sqlite:///{tmp_path}/ledger.db"))
    with TestClient(plain, base_url="http://localhost") as client:
        assert own == dict(client.get("/healthz", headers={"X-Request-Id": "mine"}).headers)
    assert own["x-request-id"] == "mine"


def answers(connection: socket.socket, count: int) -> list[bytes]:
    """All that comes until so many answers have, each from its status on."""
    received = b""
    while received.count(b"HTTP/1.1 ") < count or not received.endswith(b"}"):
        piece = connection.recv(1 << 16)
        assert piece, received
        received += piece
    each = [b"HTTP/1.1 " + rest for rest in received.split(b"HTTP/1.1 ")[1:]]
    for number, answer in enumerate(each):
        assert b"x-request-id: mine-%d\r\n" % number in answer
        assert b"content-length: %d\r\n" % len(answer.partition(b"\r\n\r\n")[2]) in answer
    return each


def test_asked_together_answered_in_order(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(b"".join(ASK % number for number in range(20)))
        assert {answer[:12] for answer in answers(connection, 20)} == {b"HTTP/1.1 201"}


def test_a_client_that_does_not_read_gets_all_when_it_does(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(b"".join(LOOK % number for number in range(60)))
        time.sleep(0.5)
        assert min(map(len, answers(connection, 60))) > 100 * ARMS


def test_whom_a_connection_is_closed_for(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")
        received = connection.makefile("rb").read()  # to its end
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert body == b'{"status":"ok"}'

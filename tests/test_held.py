"""Nobody holds a connection for ever: neither by never ending a body that was answered, nor by never reading."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from belated import live
from belated.service import protocol
from belated.service.app import Service
from belated.service.serve import options
from serving import free_port

HELD = b"POST /v1/experiments HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n"
JSON = b"content-type: application/json\r\n"
UNENDED = {  # by status
    200: b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n",
    404: b"GET /nowhere HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1000\r\n",
    408: HELD.replace(b"1000000000", b"1000") + JSON + b"\r\n",
    413: HELD + JSON + b"\r\n",
    415: HELD + b"\r\n",
}
SHORT = b"POST /v1/experiments HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n"
MANY = 400


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[uvicorn.Server]:
    """The server in a thread, and of little patience."""
    monkeypatch.setattr(protocol, "PATIENCE", 0.6)
    monkeypatch.setattr(protocol, "UNREAD", 0.6)
    monkeypatch.setattr("belated.service.app.PATIENCE", 0.2)
    service = Service(lambda: live.open(f"sqlite:///{tmp_path}/ledger.db"))
    server = uvicorn.Server(uvicorn.Config(service, **options("127.0.0.1", free_port())))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield server
    finally:
        server.should_exit = True
        thread.join()


def connected(server: uvicorn.Server) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that little is on its way
    one.settimeout(30)
    one.connect(("127.0.0.1", server.config.port))
    return one


def ends(server: uvicorn.Server, seconds: float = 20.0) -> bool:
    """Whether the server holds neither a connection nor a task before so long."""
    deadline = time.monotonic() + seconds
    while server.server_state.connections or server.server_state.tasks:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("status", UNENDED)
def test_a_body_that_drips_on_after_its_answer(server: uvicorn.Server, status: int) -> None:
    with connected(server) as one:
        one.sendall(UNENDED[status])
        assert one.recv(12) == b"HTTP/1.1 %d" % status
        answered, dripped = time.monotonic(), 0
        while server.server_state.connections:
            assert time.monotonic() < answered + 15.0, "it is held"
            time.sleep(0.05)
            try:
                one.sendall(b"x")
                dripped += 1
            except OSError:
                break
        assert dripped > 2  # it was not closed while the answer was on its way
        assert ends(server)


def test_a_body_that_ends_after_its_answer_can_be_followed(server: uvicorn.Server) -> None:
    with connected(server) as one:
        for _ in range(2):  # each as by a client that sends all before it reads
            one.sendall(SHORT)
            time.sleep(0.1)
            one.sendall(b"{}")
            answer = http.client.HTTPResponse(one)
            answer.begin()
            assert answer.status == 415
            assert b"unsupported-type" in answer.read()
        assert ends(server)  # and then it is not kept for ever


def asked_for_much(one: socket.socket) -> None:
    """Ask for more than what the system takes on its own."""
    one.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * MANY)


def test_a_client_that_never_reads(server: uvicorn.Server, caplog: pytest.LogCaptureFixture) -> None:
    with connected(server) as one:
        asked_for_much(one)
        time.sleep(0.3)
        assert server.server_state.tasks  # it waits for the client
        assert ends(server)
    time.sleep(0.1)
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_a_client_that_never_reads_what_is_left_when_it_is_closed(server: uvicorn.Server) -> None:
    """What is too little for any task to wait for it."""
    with connected(server) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert one.recv(12)
        (held,) = server.server_state.connections
        held.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        one.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n")
        time.sleep(0.3)
        assert held.transport.get_write_buffer_size()
        assert not server.server_state.tasks
        one.sendall(b"GET")  # the head of which does not come: it is closed
        assert ends(server)


def test_a_client_that_reads_slowly_gets_all(server: uvicorn.Server) -> None:
    """It takes more than the patience of the server, but goes on."""
    began, sizes = time.monotonic(), set[int]()
    with connected(server) as one:
        asked_for_much(one)
        stream = one.makefile("rb")
        for _ in range(MANY):
            length = 0
            while (line := stream.readline()) != b"\r\n":
                assert line
                if line.startswith(b"content-length: "):
                    length = int(line.split()[1])
            sizes.add(len(stream.read(length)))
            time.sleep(1.5 / MANY)
    assert len(sizes) == 1
    assert time.monotonic() - began > 1.5


def test_trailers_without_end_are_cut_short(server: uvicorn.Server) -> None:
    """A parser joins them piece by piece, which would hold up every other request."""
    with connected(server) as one:
        one.sendall(HELD.replace(b"content-length: 1000000000", b"transfer-encoding: chunked") + b"\r\n0\r\nx: ")
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 4_000_000:
                sent += one.send(b"v" * 10_000)
        assert sent < 4_000_000
        assert ends(server)


def test_a_body_in_small_chunks_is_a_body(server: uvicorn.Server) -> None:
    """The frames of its chunks are not held against it."""
    body = b'{"name": "small", "arms": ["a", "b"], "silence": "pending"' + b" " * 30_000 + b"}"
    with connected(server) as one:
        one.sendall(HELD.replace(b"content-length: 1000000000", b"transfer-encoding: chunked") + JSON + b"\r\n")
        one.sendall(b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n")
        assert one.recv(12) == b"HTTP/1.1 201"

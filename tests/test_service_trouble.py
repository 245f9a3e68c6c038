"""The service in trouble: a store that is gone or full, a wrong clock, an experiment that fails, and many who look."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from belated import live
from belated.live.judge import Do
from belated.service import views
from belated.service.app import Service
from live_support import Clock, spoil
from service_support import DECISIONS, made, problem


@pytest.fixture
def service(ledger_url: str) -> Service:
    return Service(lambda: live.open(ledger_url, refresh=0))


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(service, base_url="http://localhost") as client:
        yield client


def test_the_store_is_gone(client: TestClient, service: Service, monkeypatch: Any) -> None:
    made(client)

    def gone() -> Any:
        raise live.Unavailable("ledger", "cannot be reached")

    monkeypatch.setattr(service.ledger.store, "writing", gone)
    answer = client.post(DECISIONS, json={})
    assert problem(answer, 503, "unavailable") == "the store cannot be reached or written now; try again"
    assert answer.headers["retry-after"] == "1"
    ready = client.get("/readyz")
    problem(ready, 503, "unavailable")
    assert ready.headers["retry-after"] == "1"
    assert client.get("/healthz").status_code == 200


def no_longer_writable(service: Service) -> None:
    """Make the store one that can only be read."""
    store: Any = service.ledger.store
    if store.tokens["bytes"] == "BLOB":
        store._writer.execute("PRAGMA query_only = ON")
    else:
        store._writer.execute("SET default_transaction_read_only = on")


def test_ready_means_that_the_store_can_be_written(client: TestClient, service: Service, monkeypatch: Any) -> None:
    assert client.get("/readyz").status_code == 200
    batches = service.ledger.writer.batches
    assert client.get("/readyz").status_code == 200
    assert service.ledger.writer.batches == batches  # proven within the last second
    monkeypatch.setattr(service._proven, "_until", 0.0)
    no_longer_writable(service)
    answer = client.get("/readyz")
    problem(answer, 503, "unavailable")
    assert answer.headers["retry-after"] == "1"
    answer = client.post("/v1/experiments", json={"name": "checkout", "arms": ["red", "green"]})
    assert problem(answer, 503, "unavailable") == "the store cannot be reached or written now; try again"
    assert client.get("/v1/experiments").json() == []


def test_ready_leaves_nothing_behind(client: TestClient, service: Service, monkeypatch: Any) -> None:
    monkeypatch.setattr(service._proven, "_seconds", 0.0)
    before = rows(service)
    for _ in range(5):
        assert client.get("/readyz").status_code == 200
    assert rows(service) == before


def rows(service: Service) -> dict[str, int]:
    store = service.ledger.store
    with store.reading() as connection:
        return {name: connection.rows(f"SELECT COUNT(*) FROM {name}")[0][0] for name in store.tables(connection)}


def test_a_store_that_does_not_answer_is_not_ready(client: TestClient, service: Service, monkeypatch: Any) -> None:
    monkeypatch.setattr("belated.service.api.READY", 0.05)
    held = threading.Event()
    service.ledger.writer.submit(Do(lambda connection: held.wait(30)))
    try:
        assert "has not taken anything for" in problem(client.get("/readyz"), 503, "unavailable")
        assert client.get("/healthz").status_code == 200
    finally:
        held.set()


@pytest.mark.parametrize("new_ledger", ["sqlite"], indirect=True)
def test_a_ledger_that_has_been_moved_away(client: TestClient, service: Service, ledger_url: str) -> None:
    """What would be written to it would be lost with the process."""
    made(client)
    file = Path(ledger_url.removeprefix("sqlite:///"))
    for done in (lambda: file.rename(f"{file}.old"), file.touch):
        done()
        for answer in (client.post(DECISIONS, json={}), client.get("/v1/experiments"), client.get("/readyz")):
            problem(answer, 503, "unavailable")
    Path(f"{file}.old").rename(file)
    assert client.post(DECISIONS, json={}).status_code == 201


def test_a_clock_that_is_behind_the_ledger(ledger_url: str) -> None:
    clock = Clock()
    with TestClient(Service(lambda: live.open(ledger_url, clock=clock)), base_url="http://localhost") as client:
        made(client, silence={"after": "1h"})
        id = client.post(DECISIONS, json={}).json()["id"]
        before = client.get("/v1/experiments/checkout").json()
        clock.pass_(-3600)
        both = "clock: reads 2023-11-14T21:13:20.000Z, but there is a decision of 2023-11-14T22:13:20.000Z"
        for answer in (client.post(DECISIONS, json={}), client.put(f"/v1/decisions/{id}/outcome", json={"reward": 1})):
            assert problem(answer, 503, "clock-ran-backwards", "clock").startswith(both)
            assert int(answer.headers["retry-after"]) >= 1
        told = client.post("/v1/outcomes", json=[{"decision": id, "reward": 1}]).json()
        assert told[0]["status"] == "clock-ran-backwards"
        assert told[0]["detail"].startswith(both)
        summary = client.get("/v1/experiments/checkout").json()
        assert summary | {"notice": None} == before
        waits = client.get("/v1/experiments/checkout/waits").json()
        for notice in (summary["notice"], client.get("/v1/experiments").json()[0]["notice"], waits["notice"]):
            assert notice.startswith("this machine's clock reads 2023-11-14T21:13:20.000Z")
        for page in ("/", "/experiments/checkout"):
            assert "This machine&#39;s clock reads 2023-11-14T21:13:20.000Z" in client.get(page).text
        assert client.get("/v1/experiments/checkout/export").status_code == 200
        for path in ("/healthz", "/readyz", "/metrics"):
            assert client.get(path).status_code == 200
        assert client.patch("/v1/experiments/checkout", json={"status": "stopped"}).status_code == 200


def test_one_experiment_that_cannot_be_read_hides_no_other(ledger_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with live.open(ledger_url) as shop:
        for name in ("first", "odd", "last"):
            shop.create(name, ["red", "green"])
        spoil(shop, "odd")
    with TestClient(
        Service(lambda: live.open(ledger_url)), base_url="http://localhost", raise_server_exceptions=False
    ) as client:
        first, odd, last = client.get("/v1/experiments").json()
        assert (first["asked"], last["asked"]) == (0, 0)
        assert (odd["name"], odd["status"], odd["problem"]["type"]) == ("odd", "running", "urn:belated:unreadable")
        assert "cannot read: policy: " in odd["problem"]["detail"]
        page = client.get("/").text
        assert page.count("nothing known yet") == 2
        assert "It cannot be shown: experiment: &#39;odd&#39; has settings" in page
        assert "clairvoyant" in caplog.text
        problem(client.get("/v1/experiments/odd"), 500, "unreadable", "experiment")
        assert client.get("/experiments/odd").status_code == 500
        assert client.get("/metrics").status_code == 200
        assert client.post("/v1/experiments/first/decisions", json={}).status_code == 201


def test_an_error_of_ours_in_one_experiment_hides_no_other(
    client: TestClient, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made(client)
    client.post("/v1/experiments", json={"name": "other", "arms": ["red", "green"]})
    summary = live.Experiment.summary
    monkeypatch.setattr(live.Experiment, "summary", lambda self: summary(self) if self.name == "other" else 1 / 0)
    failing, other = client.get("/v1/experiments").json()
    assert (failing["problem"]["type"], other["asked"]) == ("urn:belated:internal", 0)
    assert "division" not in failing["problem"]["detail"]
    assert "ZeroDivisionError" in caplog.text


def test_viewers_take_no_threads_from_those_who_decide(
    client: TestClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many look and however long their reading takes, a decision is made at once."""
    made(client)
    held = threading.Event()
    reading = views.view
    monkeypatch.setattr(views, "view", lambda *given: held.wait(60) and reading(*given))
    for number in range(60):
        service.ledger.create(f"other {number}", ["red", "green"])

    def look(path: str) -> None:
        assert client.get(path).status_code == 200

    paths = [f"/experiments/other%20{number}" for number in range(60)]
    viewers = [threading.Thread(target=look, args=(path,)) for path in ["/", *paths]]
    for viewer in viewers:
        viewer.start()
    try:
        deadline = time.monotonic() + 60
        while service._lookers.statistics().tasks_waiting < 40 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert service._lookers.statistics().tasks_waiting >= 40
        assert client.post(DECISIONS, json={"count": 2}).status_code == 201
        assert client.post(DECISIONS, json={}).status_code == 201
    finally:
        held.set()
        for viewer in viewers:
            viewer.join()

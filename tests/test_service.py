"""The service, address by address: what it answers, whom it lets in, and how it refuses."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from belated import live
from belated.service import keys
from belated.service.app import Limits, Service
from belated.service.routes import table
from service_support import made, problem

Response = Any
ADDRESSES = [route for route in table() if route.role is not None]


@pytest.fixture
def service(ledger_url: str) -> Service:
    return Service(lambda: live.open(ledger_url, refresh=0))


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(service, base_url="http://localhost") as client:
        yield client


# --- The way of one visitor ---


def test_an_experiment_from_first_to_last(client: TestClient) -> None:
    begun = made(client, silence={"after": "7d"}, floor=0.1)
    assert (begun["silence"], begun["reading"], begun["learned"]["conversions"]) == ("7d", "silence", 0)
    first = client.post("/v1/experiments/checkout/decisions", json={"unit": "user-17"})
    assert first.status_code == 201
    decision = first.json()
    assert decision["arm"] in ("red", "green")
    outcome = f"/v1/decisions/{decision['id']}/outcome"
    assert client.put(outcome, json={"reward": 1}).json() == {"status": "applied"}
    assert client.put(outcome, json={"reward": 1}).json() == {"status": "duplicate"}
    assert "already has 1, got 0" in problem(client.put(outcome, json={"reward": 0}), 409, "conflict", "reward")
    assert client.put(outcome, json={"reward": 0.5, "revise": True}).json() == {"status": "revised"}
    assert client.delete(outcome).json() == {"status": "voided"}
    assert client.put(outcome, json={"reward": 1}).json() == {"status": "applied"}

    summary = client.get("/v1/experiments/checkout").json()
    assert (summary["asked"], summary["observed"], summary["pending"]) == (1, 1, 0)
    assert client.get("/v1/experiments").json()[0]["name"] == "checkout"
    assert client.get("/v1/experiments/checkout/waits?unit=1h").json()["pooled"]["levels"] == [1.0]

    added = client.post("/v1/experiments/checkout/arms", json={"name": "blue/ü"})
    assert (added.status_code, added.json()["arms"][2]["name"]) == (201, "blue/ü")
    paused = client.patch("/v1/experiments/checkout/arms/blue%2F%C3%BC", json={"status": "paused"})
    assert paused.json()["arms"][2]["status"] == "paused"
    assert client.patch("/v1/experiments/checkout", json={"status": "stopped"}).json()["status"] == "stopped"
    problem(client.post("/v1/experiments/checkout/decisions", json={}), 409, "stopped", "experiment")
    client.patch("/v1/experiments/checkout", json={"status": "archived"})
    problem(client.put(outcome, json={"reward": 0}), 410, "archived", "experiment")


def test_a_retry_is_the_same_decision(client: TestClient) -> None:
    made(client)
    own = {"id": str(uuid.uuid4())}
    first, second = (client.post("/v1/experiments/checkout/decisions", json=own) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()


def test_several_at_once(client: TestClient) -> None:
    made(client)
    decisions = client.post("/v1/experiments/checkout/decisions", json={"count": 3}).json()
    assert len(decisions) == 3
    body = [{"decision": each["id"], "reward": 1} for each in decisions]
    body += [{"decision": str(uuid.uuid4()), "reward": 1}, {"decision": decisions[0]["id"], "reward": 0}]
    body += [{"decision": decisions[0]["id"], "reward": 1.5}]
    told = client.post("/v1/outcomes", json=body).json()
    assert [each["status"] for each in told] == ["applied"] * 3 + ["not-found", "conflict", "invalid"]
    assert "detail" not in told[0]
    assert "there is none" in told[3]["detail"]


def test_the_service_itself(client: TestClient) -> None:
    made(client)
    client.post("/v1/experiments/checkout/decisions", json={})
    assert client.get("/healthz").json() == client.get("/readyz").json() == {"status": "ok"}
    metrics = client.get("/metrics").text
    for line in ('belated_decisions_total{experiment="checkout"} 1.0', 'belated_pending{experiment="checkout"} 1.0'):
        assert line in metrics
    description = client.get("/openapi.json").json()
    assert description["openapi"] == "3.1.0"
    for route in table():
        assert route.method.lower() in description["paths"][route.path]


def test_a_look_at_the_head_alone(client: TestClient) -> None:
    for path in ("/", "/healthz", "/readyz", "/v1/experiments", "/openapi.json"):
        assert client.head(path).status_code == 200
    assert client.head(DECISIONS).status_code == 405
    assert client.put("/v1/experiments").headers["allow"] == "GET, HEAD, POST"


def test_every_answer_is_guarded_by_headers(client: TestClient) -> None:
    for answer in (client.get("/healthz"), client.get("/nowhere"), client.post("/v1/experiments", json={})):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"]
    assert client.get("/healthz", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert client.get("/healthz", headers={"X-Request-Id": "<script>"}).headers["x-request-id"] != "<script>"


# --- Refusals ---

EXPERIMENTS, DECISIONS = "/v1/experiments", "/v1/experiments/checkout/decisions"
OUTCOME = f"/v1/decisions/{uuid.UUID(int=7)}/outcome"
REFUSED: list[tuple[str, str, Any, int, str, str | None]] = [
    ("POST", EXPERIMENTS, {"name": "new"}, 422, "invalid-input", "arms"),
    ("POST", EXPERIMENTS, {"name": "new", "arms": ["a"]}, 422, "invalid-input", "arms"),
    ("POST", EXPERIMENTS, {"name": "new", "arms": ["a", "a"]}, 422, "invalid-input", "arms"),
    ("POST", EXPERIMENTS, {"name": "n\u0007", "arms": ["a", "b"]}, 422, "invalid-input", "name"),
    ("POST", EXPERIMENTS, {"name": "checkout", "arms": ["a", "b"]}, 409, "conflict", "name"),
    ("POST", EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "reading": "silence"}, 422, "invalid-input", "reading"),
    ("POST", EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "silence": {"after": "soon"}}, 422, "invalid-input",
     "silence.after"),
    ("POST", EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "flor": 0.1}, 422, "invalid-input", "flor"),
    ("POST", EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "floor": 0.9}, 422, "invalid-input", "floor"),
    ("POST", EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "prior": [0, 1]}, 422, "invalid-input", "prior[0]"),
    ("POST", EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "prior": [1e-9, 1]}, 422, "invalid-input", "prior[0]"),
    ("POST", DECISIONS, {"unit": 17}, 422, "invalid-input", "unit"),
    ("POST", DECISIONS, {"unit": "x" * 501}, 422, "invalid-input", "unit"),
    ("POST", DECISIONS, {"id": "17"}, 422, "invalid-input", "id"),
    ("POST", DECISIONS, {"count": 0}, 422, "invalid-input", "count"),
    ("POST", DECISIONS, {"count": 2, "unit": "x"}, 422, "invalid-input", "count"),
    ("POST", "/v1/experiments/nowhere/decisions", {}, 404, "not-found", "experiment"),
    ("PUT", OUTCOME, {"reward": "0.9"}, 422, "invalid-input", "reward"),
    ("PUT", OUTCOME, {"reward": True}, 422, "invalid-input", "reward"),
    ("PUT", OUTCOME, {"reward": 1.5}, 422, "invalid-input", "reward"),
    ("PUT", OUTCOME, {"reward": 1, "occurred_at": "yesterday"}, 422, "invalid-input", "occurred_at"),
    ("PUT", OUTCOME, {"reward": 1, "occurred_at": "9999-12-31T23:59:59-23:59"}, 422, "invalid-input", "occurred_at"),
    ("PUT", OUTCOME, {"reward": 1, "occurred_at": "0001-01-01T00:00:00+23:00"}, 422, "invalid-input", "occurred_at"),
    ("PUT", OUTCOME, {"reward": 1}, 404, "not-found", "decision"),
    ("PUT", "/v1/decisions/17/outcome", {"reward": 1}, 422, "invalid-input", "decision"),
    ("PATCH", "/v1/experiments/checkout", {"status": "paused"}, 422, "invalid-input", "status"),
    ("PATCH", "/v1/experiments/checkout/arms/blue", {"status": "paused"}, 404, "not-found", "arm"),
    ("GET", "/v1/experiments/checkout/waits?unit=soon", None, 422, "invalid-input", "unit"),
    ("GET", "/v1/experiments/checkout/export?format=xls", None, 422, "invalid-input", "format"),
    ("GET", "/v1/nothing", None, 404, "not-found", None),
    ("GET", "/v1/experiments/checkout/decisions", None, 405, "method-not-allowed", None),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "kind", "field"), REFUSED)
def test_refusals_name_the_field(
    method: str, path: str, body: Any, status: int, kind: str, field: str | None, client: TestClient
) -> None:
    made(client)
    detail = problem(client.request(method, path, json=body), status, kind, field)
    assert len(detail) < 250
    assert client.get("/v1/experiments").json()[0]["asked"] == 0


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        (EXPERIMENTS, {"name": "n", "arms": "a"}, "arms: must be a list, got a text"),
        (EXPERIMENTS, {"name": "n", "arms": ["a"]}, "arms: must have at least 2 entries"),
        (EXPERIMENTS, {"name": "n", "arms": ["a", 7]}, "arms[1]: must be a text, got a whole number"),
        (EXPERIMENTS, {"name": "n"}, "arms: is missing"),
        (EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "flor": 0.1}, "flor: there is no such field"),
        (EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "policy": "tompson"},
         "policy: unknown policy 'tompson'; did you mean 'thompson'?"),
        (EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "silence": "7d"},
         "silence: unknown silence '7d'; there are pending, {\"after\": …}"),
        (EXPERIMENTS, {"name": "n", "arms": ["a", "b"], "prior": [1]}, "prior: must have 2 entries"),
        (DECISIONS, {"id": "17"}, "id: must be a UUID"),
        (DECISIONS, {"count": 0}, "count: must be at least 1"),
        ("/v1/outcomes", [{"decision": "17", "reward": 1}], "[0].decision: must be a UUID"),
    ],
)  # fmt: skip
def test_refusals_are_plain_words(path: str, body: Any, detail: str, client: TestClient) -> None:
    assert client.post(path, json=body).json()["detail"] == detail


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "headers", "status", "kind"),
    [
        (b"{", JSON, 400, "not-json"),
        (b"\xff\xfe", JSON, 400, "not-json"),
        (b'{"reward": NaN}', JSON, 400, "not-json"),
        (b'{"reward": 1e999}', JSON, 422, "invalid-input"),
        (b"[" * 100_000, JSON, 422, "invalid-input"),
        (b'{"reward": 1, "x": ' + b"[" * 100_000, JSON, 422, "invalid-input"),
        (b"reward=1", {"content-type": "application/x-www-form-urlencoded"}, 415, "unsupported-type"),
        (b'{"reward": 1}', {}, 415, "unsupported-type"),
        (b'{"reward": 1, "x": "' + b"x" * 1_100_000 + b'"}', JSON, 413, "too-large"),
    ],
)
def test_bodies_that_are_none(body: bytes, headers: dict[str, str], status: int, kind: str, client: TestClient) -> None:
    answer = client.put(OUTCOME, content=body, headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:belated:{kind}"), answer.text


def test_a_body_that_never_ends_and_one_that_never_comes(
    service: Service, client: TestClient, monkeypatch: Any
) -> None:
    monkeypatch.setattr("belated.service.app.PATIENCE", 0.05)

    async def endless() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 100_000, "more_body": True}

    async def silent() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    for receive, status in ((endless, 413), (silent, 408)):
        assert client.portal is not None
        assert client.portal.call(_status_of_put, service, receive) == status


async def _status_of_put(service: Service, receive: Any) -> int:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
    scope = {"type": "http", "method": "PUT", "path": OUTCOME, "query_string": b"", "headers": headers}
    await service(scope, receive, send)
    return int(sent[0]["status"])


def test_an_error_of_ours_says_nothing_of_itself(service: Service, ledger_url: str, monkeypatch: Any) -> None:
    with TestClient(service, base_url="http://localhost", raise_server_exceptions=False) as client:
        made(client)
        monkeypatch.setattr(live.Experiment, "summary", lambda self: 1 / 0)
        answer = client.get("/v1/experiments/checkout")
        assert "division" not in problem(answer, 500, "internal")


def test_a_limit_of_requests(ledger_url: str) -> None:
    with TestClient(
        Service(lambda: live.open(ledger_url), limits=Limits(rate=5.0)), base_url="http://localhost"
    ) as client:
        answers = [client.get("/openapi.json") for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert 20 <= len(refused) <= 25
        assert problem(refused[0], 429, "too-many-requests") == "more than 5 requests a second"
        assert int(refused[0].headers["retry-after"]) >= 1
        for path in ("/healthz", "/readyz"):  # whatever others at the load balancer's address do
            assert {client.get(path).status_code for _ in range(30)} == {200}


# --- Keys ---


def with_keys(service: Service) -> dict[str, str]:
    service.ledger.create("checkout", ["red", "green"])
    service.ledger.create("other", ["red", "green"])
    made = {role: keys.create(service.ledger, role)[1] for role in keys.ROLES}
    made["reader of other"] = keys.create(service.ledger, "reader", "other")[1]
    made["writer of other"] = keys.create(service.ledger, "writer", "other")[1]
    return made


def test_each_route_lets_in_each_role_that_it_is_for_and_no_other(client: TestClient, service: Service) -> None:
    known = with_keys(service)
    for route in ADDRESSES:
        path = route.path.format(name="checkout", arm="red", decision=uuid.UUID(int=7))
        for role, key in [("nobody", ""), ("stranger", "belated_x"), *known.items()]:
            body = None if route.form is None else "not a form"  # a caller who is let in is refused for this
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            status = client.request(route.method, path, json=body, headers=headers).status_code
            if role in ("nobody", "stranger"):
                assert status == 401, (route.method, path, role)
                continue
            first = role.split(" ", maxsplit=1)[0]
            enough = keys.ROLES.index(first) >= keys.ROLES.index(route.role or "reader")
            assert (status not in (401, 403)) == enough or route.path == "/metrics", (route.method, path, role, status)


def test_a_key_of_one_experiment_sees_no_other(client: TestClient, service: Service) -> None:
    known = with_keys(service)
    id = service.ledger.get("checkout").ask().id
    headers = {"Authorization": f"Bearer {known['writer of other']}"}
    assert [each["name"] for each in client.get("/v1/experiments", headers=headers).json()] == ["other"]
    problem(client.get("/v1/experiments/checkout", headers=headers), 404, "not-found", "experiment")
    problem(client.post(DECISIONS, json={}, headers=headers), 404, "not-found", "experiment")
    problem(
        client.put(f"/v1/decisions/{id}/outcome", json={"reward": 1}, headers=headers), 404, "not-found", "decision"
    )
    problem(client.delete(f"/v1/decisions/{id}/outcome", headers=headers), 404, "not-found", "decision")
    told = client.post("/v1/outcomes", json=[{"decision": id, "reward": 1}], headers=headers).json()
    assert told[0]["status"] == "not-found"
    assert client.get("/metrics", headers=headers).status_code == 403
    assert service.ledger.get("checkout").summary().observed == 0


def test_a_revoked_key_is_forgotten(client: TestClient, service: Service, monkeypatch: Any) -> None:
    monkeypatch.setattr(keys.Keys, "FRESH", 0)
    known = with_keys(service)
    headers = {"Authorization": f"Bearer {known['reader']}"}
    assert client.get("/v1/experiments", headers=headers).status_code == 200
    keys.revoke(service.ledger, 1)
    problem(client.get("/v1/experiments", headers=headers), 401, "unauthorized")
    assert known["reader"].encode() not in json.dumps([str(key) for key in keys.listed(service.ledger)]).encode()


def test_without_keys_it_answers_to_localhost_only(client: TestClient) -> None:
    problem(client.get("/v1/experiments", headers={"Host": "evil.example"}), 421, "misdirected")
    made(client)
    foreign = {"Origin": "http://evil.example"}
    problem(client.post(DECISIONS, json={}, headers=foreign), 403, "forbidden")
    assert client.post(DECISIONS, json={}, headers={"Origin": "http://localhost"}).status_code == 201


def test_without_keys_it_answers_to_nobody_through_another_server(client: TestClient) -> None:
    problem(client.get("/v1/experiments", headers={"X-Forwarded-For": "203.0.113.7"}), 421, "misdirected")
    assert client.get("/healthz", headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 200


def test_a_cookie_is_a_key_but_not_for_other_sites(client: TestClient, service: Service) -> None:
    known = with_keys(service)
    cookie = {"Cookie": f"belated_key={known['writer']}"}
    assert client.post(DECISIONS, json={}, headers=cookie).status_code == 201
    problem(client.post(DECISIONS, json={}, headers={**cookie, "Origin": "https://evil.example"}), 403, "forbidden")

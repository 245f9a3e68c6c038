"""What several tests of the service need: an experiment, and what a refusal says."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

DECISIONS = "/v1/experiments/checkout/decisions"
Response = Any


def made(client: TestClient, **settings: Any) -> dict[str, Any]:
    answer = client.post("/v1/experiments", json={"name": "checkout", "arms": ["red", "green"], **settings})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def problem(answer: Response, status: int, kind: str, field: str | None = None) -> str:
    """The detail of a problem of that kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["type"] == f"urn:belated:{kind}"
    assert body["status"] == status
    assert body.get("field") == field
    assert "\n" not in body["detail"]
    return str(body["detail"])

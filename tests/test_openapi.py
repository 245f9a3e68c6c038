"""The service does what its description says, whatever is sent to it: no 5xx, no answer beyond its schemas."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from belated import live
from belated.service import keys
from belated.service.routes import table
from serving import Server, serving

ALWAYS = [
    not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_schema_conformance,
]  # fmt: skip
CHECKS = {
    GenerationMode.POSITIVE: ALWAYS,
    GenerationMode.NEGATIVE: [*ALWAYS, checks.negative_data_rejection],
}
ROLES = ("nobody", "reader", "admin")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Server, str | None]]]:
    """A server without keys, and one with, each with an experiment that the examples of the schema may meet."""
    folder = tmp_path_factory.mktemp("openapi")
    made: dict[str, str] = {}
    for kind in ("open", "keyed"):
        with live.open(f"sqlite:///{folder}/{kind}.db") as shop:
            shop.create("0", ["0", "1"]).ask()
            if kind == "keyed":
                made = {role: keys.create(shop, role)[1] for role in ("reader", "admin")}
    with (
        serving(f"sqlite:///{folder}/open.db", folder, "--quiet") as free,
        serving(f"sqlite:///{folder}/keyed.db", folder, "--quiet") as keyed,
    ):
        yield {"nobody": (free, None), "reader": (keyed, made["reader"]), "admin": (keyed, made["admin"])}


MEANT, NOT_MEANT = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
# Every address of the API but that of Prometheus, whose text is not of this schema; only a body can be not meant.
CASES = [
    (route.method, route.path, mode)
    for route in table()
    if route.path != "/metrics"
    for mode in ([MEANT, NOT_MEANT] if route.form is not None else [MEANT])
]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_no_server_error_and_no_answer_beyond_the_schema(
    role: str, method: str, path: str, mode: GenerationMode, servers: dict[str, tuple[Server, str | None]]
) -> None:
    server, key = servers[role]
    operation = schemathesis.openapi.from_url(f"{server.url}/openapi.json")[path][method]
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    statuses = set()

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def check(case: Any) -> None:
        response = case.call(headers=headers)
        case.validate_response(response, headers=headers, checks=CHECKS[mode])
        statuses.add(response.status_code)

    check()
    assert statuses


def test_a_service_that_breaks_its_word_is_caught(servers: dict[str, tuple[Server, str | None]]) -> None:
    """The control: against a description that promises something else, the same check fails."""
    server, _ = servers["nobody"]
    with urllib.request.urlopen(f"{server.url}/openapi.json") as answer:
        description = json.load(answer)
    description["paths"]["/healthz"]["get"]["responses"] = {"204": {"description": "Nothing."}}
    operation = schemathesis.openapi.from_dict(description)["/healthz"]["GET"]
    case = operation.Case()
    response = case.call(base_url=server.url)
    with pytest.raises(FailureGroup, match="Undocumented"):
        case.validate_response(response, checks=CHECKS[MEANT])

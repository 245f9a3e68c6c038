"""The service does what its description says, whatever is sent to it: no 5xx, no answer beyond its schemas."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

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
# With and without keys, and with every power, over both stores; what a reader may not do is no matter of the store.
CALLERS = [("sqlite", "nobody"), ("sqlite", "reader"), ("postgresql", "nobody"), ("postgresql", "admin")]


class Place(NamedTuple):
    """A server, its description, and how to be let in."""

    server: Server
    schema: Any
    headers: dict[str, str]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, postgres: Any) -> Iterator[dict[tuple[str, str], Place]]:
    """For each caller a server whose experiment the examples of the schema may meet."""
    folder = tmp_path_factory.mktemp("openapi")
    with contextlib.ExitStack() as stack:
        started = {}
        for store, role in CALLERS:
            url = postgres.url(postgres.create()) if store == "postgresql" else f"sqlite:///{folder}/{role}.db"
            with live.open(url) as shop:
                shop.create("0", ["0", "1"]).ask()
                key = None if role == "nobody" else keys.create(shop, role)[1]
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            started[store, role] = stack.enter_context(serving(url, folder, "--quiet", wait=False)), headers
        for server, _ in started.values():
            server.wait_until_ready()
        yield {
            caller: Place(server, schemathesis.openapi.from_url(f"{server.url}/openapi.json"), headers)
            for caller, (server, headers) in started.items()
        }


MEANT, NOT_MEANT = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
# Every address of the API but that of Prometheus, whose text is not of this schema; only a body can be not meant.
CASES = [
    (route.method, route.path, mode)
    for route in table()
    if route.path != "/metrics"
    for mode in ([MEANT, NOT_MEANT] if route.form is not None else [MEANT])
]


@pytest.mark.parametrize("caller", CALLERS, ids="-".join)
@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_no_server_error_and_no_answer_beyond_the_schema(
    caller: tuple[str, str], method: str, path: str, mode: GenerationMode, places: dict[tuple[str, str], Place]
) -> None:
    place = places[caller]
    statuses = set()

    @given(case=place.schema[path][method].as_strategy(generation_mode=mode))
    @settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def check(case: Any) -> None:
        response = case.call(headers=place.headers)
        case.validate_response(response, headers=place.headers, checks=CHECKS[mode])
        statuses.add(response.status_code)

    check()
    assert statuses


def test_a_service_that_breaks_its_word_is_caught(places: dict[tuple[str, str], Place]) -> None:
    """The control: against a description that promises something else, the same check fails."""
    server = places["sqlite", "nobody"].server
    with urllib.request.urlopen(f"{server.url}/openapi.json") as answer:
        description = json.load(answer)
    description["paths"]["/healthz"]["get"]["responses"] = {"204": {"description": "Nothing."}}
    operation = schemathesis.openapi.from_dict(description)["/healthz"]["GET"]
    case = operation.Case()
    response = case.call(base_url=server.url)
    with pytest.raises(FailureGroup, match="Undocumented"):
        case.validate_response(response, checks=CHECKS[MEANT])

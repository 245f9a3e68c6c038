"""A small client of the service. Safe to share between threads, and safe to retry: it makes the ids itself.

>>> from belated.client import Client
>>> with Client("http://127.0.0.1:8000", key=None) as client:
...     pass  # client.ask("checkout")
"""

from __future__ import annotations

import datetime
import http.client
import json
import random
import ssl
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlsplit

from belated.inputs import InvalidInput, number
from belated.live import errors, values
from belated.live.engine import Told, outcome_parts
from belated.live.experiment import Decision
from belated.live.pool import Pool
from belated.live.settings import Pending, Silence, silence_to_text

_ERRORS = {each.kind: each for each in errors.LiveError.__subclasses__()}
LONGEST = 5.0  # seconds between two tries
_AGAIN = {408, 429, 502, 503, 504}


class Refused(errors.LiveError):
    """The service does not let this key in, or does not understand."""

    kind = "refused"


class Client:
    """The service at `url`. A call is tried again, with growing pauses, until `patience` seconds have passed."""

    def __init__(self, url: str, key: str | None = None, *, patience: float = 30.0, timeout: float = 10.0):
        parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput("url", f"must be http://… or https://…, got {values.shown(url)}")
        number("patience", patience, low=0.0)
        number("timeout", timeout, above=0.0)
        self._parts = parts
        self._key = key
        self._patience = float(patience)
        self._timeout = float(timeout)
        self._connections: Pool[http.client.HTTPConnection] = Pool(self._connect)
        self._random = random.Random()

    # --- Deciding and hearing ---

    def ask(self, experiment: str, *, unit: str | None = None, id: str | None = None) -> Decision:
        """Decide. A retry, by this client or with the same `id`, gives the same decision."""
        own = values.written(values.new_identity(round(time.time() * 1000))) if id is None else id
        body = {"id": own} if unit is None else {"id": own, "unit": unit}
        status, given = self._call("POST", f"/v1/experiments/{quote(experiment, safe='')}/decisions", body)
        at = datetime.datetime.fromisoformat(given["asked_at"])
        return Decision(given["id"], given["arm"], given["propensity"], at, given["unit"], status == 200)

    def tell(
        self, decision: str, reward: float, *, occurred_at: datetime.datetime | str | None = None, revise: bool = False
    ) -> str:
        """The outcome of a decision: applied, late, revised, or duplicate if it was told before."""
        _, given = self._call("PUT", _outcome(decision), _answer(reward, occurred_at, revise))
        return str(given["status"])

    def tell_many(self, outcomes: Iterable[Any]) -> list[Told]:
        """Many outcomes, each (decision, reward), with `occurred_at` and `revise` if wished; none stops the others."""
        body = []
        for outcome in outcomes:
            decision, reward, occurred_at, revise = outcome_parts(outcome)
            body.append({"decision": decision, **_answer(reward, occurred_at, revise)})
        _, given = self._call("POST", "/v1/outcomes", body)
        return [Told(each["decision"], each["status"], _refusal(each)) for each in given]

    def void(self, decision: str) -> str:
        """Take the outcome of a decision back."""
        _, given = self._call("DELETE", _outcome(decision))
        return str(given["status"])

    # --- Looking and changing ---

    def summary(self, experiment: str) -> dict[str, Any]:
        """Where an experiment stands."""
        return self._call("GET", f"/v1/experiments/{quote(experiment, safe='')}")[1]  # type: ignore[no-any-return]

    def experiments(self) -> list[dict[str, Any]]:
        """The summaries of all experiments."""
        return self._call("GET", "/v1/experiments")[1]  # type: ignore[no-any-return]

    def create(self, name: str, arms: list[str], *, silence: Silence | None = None, **settings: Any) -> dict[str, Any]:
        """Create an experiment; the settings are those of `Ledger.create`."""
        kind = silence_to_text(silence or Pending())
        body = {"name": name, "arms": list(arms), "silence": kind if kind == "pending" else {"after": kind}, **settings}
        return self._call("POST", "/v1/experiments", body)[1]  # type: ignore[no-any-return]

    def set_status(self, experiment: str, status: str) -> dict[str, Any]:
        """Make an experiment running, stopped or archived."""
        return self._call("PATCH", f"/v1/experiments/{quote(experiment, safe='')}", {"status": status})[1]  # type: ignore[no-any-return]

    # --- The wire ---

    def _call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the answer, after as many tries as it takes or patience allows."""
        deadline = time.monotonic() + self._patience
        pause = 0.05
        while True:
            asked_to_wait = 0.0
            try:
                status, headers, text = self._once(method, path, body)
                if status not in _AGAIN:
                    return status, _understood(status, text)
                failure: Exception = errors.Unavailable("service", _detail(text) or f"answered {status}")
                wait = headers.get("Retry-After") or ""
                asked_to_wait = float(wait) if wait.isdigit() else 0.0
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
                failure = errors.Unavailable("service", f"{self._parts.netloc} cannot be reached: {reason}")
            sleep = max(asked_to_wait, pause * self._random.uniform(0.5, 1.0))
            if time.monotonic() + sleep > deadline:
                raise failure from None
            time.sleep(sleep)
            pause = min(2.0 * pause, LONGEST)

    def _once(self, method: str, path: str, body: Any) -> tuple[int, Any, bytes]:
        headers = {"Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        sent = None if body is None else json.dumps(body).encode()
        with self._connections.borrowed() as connection:
            connection.request(method, self._parts.path.rstrip("/") + path, sent, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=self._timeout)

    def close(self) -> None:
        """Close the connections that are kept."""
        self._connections.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _outcome(decision: str) -> str:
    return f"/v1/decisions/{quote(str(decision), safe='')}/outcome"


def _answer(reward: float, occurred_at: Any, revise: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"reward": values.reward(reward) / values.BILLION}
    if occurred_at is not None:
        answer["occurred_at"] = values.iso(values.instant("occurred_at", occurred_at))
    return {**answer, "revise": True} if revise else answer


def _understood(status: int, text: bytes) -> Any:
    """What the service answered; its refusals as the errors that the engine would raise."""
    try:
        given = json.loads(text)
    except ValueError:
        raise Refused("service", f"answered {status}, and not in JSON: is it belated's?") from None
    if status < 400:
        return given
    kind = str(given.get("type", "")).removeprefix("urn:belated:") if isinstance(given, dict) else ""
    raise _error(kind, _detail(text) or f"answered {status}")


def _error(kind: str, detail: str) -> Exception:
    field, _, message = detail.partition(": ")
    if kind == "invalid-input":
        return InvalidInput(field, message)
    if kind in _ERRORS:
        return _ERRORS[kind](field, message)
    return Refused("service", detail)


def _refusal(told: dict[str, Any]) -> Exception | None:
    detail = told.get("detail", "")
    return _error("invalid-input" if told["status"] == "invalid" else told["status"], detail) if detail else None


def _detail(text: bytes) -> str:
    try:
        return str(json.loads(text)["detail"])
    except (ValueError, KeyError, TypeError):
        return ""

"""What an export holds: a header with the experiment and its arms, and a row a decision. And the way back, checked.

The outcome that stands is in the columns of a row; revisions that stand no longer, or take one back, are in `earlier`.
Times are milliseconds here, and ISO 8601 in text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from belated.inputs import InvalidInput, nearest, number
from belated.live import values
from belated.live.settings import ARM_STATUSES, MOST_ARMS, STATUSES, Settings, checked_prior
from belated.live.store import ArmRow, DecisionRow, ExperimentRow, OutcomeRow
from belated.live.values import BILLION, SKEW, iso, shown, written

FORMAT = 1  # grows when a header or a row changes its meaning


class Row(NamedTuple):
    """A decision with its outcome, as a person may read it."""

    decision: str
    arm: str
    propensity: float
    unit: str | None
    asked_at: int
    reward: float | None
    occurred_at: int | None
    received_at: int | None
    heard_at: int | None  # of a correction: when the outcome was first heard
    revision: int | None
    earlier: list[dict[str, Any]]


COLUMNS = Row._fields
OUTCOME = ("reward", "occurred_at", "received_at", "heard_at", "revision")


# --- Out --------------------------------------------------------------------------------------------------------------


def header(row: ExperimentRow, arms: Iterable[ArmRow]) -> dict[str, Any]:
    """All that is known of an experiment besides its decisions."""
    return {
        "format": FORMAT,
        "name": row.name,
        "status": row.status,
        "epoch": row.epoch,
        "created_at": iso(row.created_at),
        "grain": row.grain,
        "settings": json.loads(row.settings),
        "arms": [
            {"name": arm.name, "status": arm.status, "prior": [arm.prior_a, arm.prior_b], "added_at": iso(arm.added_at)}
            for arm in arms
        ],
    }


def flat(decision: DecisionRow, revisions: Sequence[OutcomeRow], arms: Mapping[int, str]) -> Row:
    """The row of a decision and all revisions of its outcome."""
    stands = bool(revisions) and revisions[-1].reward is not None
    past, last = (revisions[:-1], revisions[-1]) if stands else (revisions, None)
    return Row(
        decision=written(decision.id),
        arm=arms[decision.arm],
        propensity=decision.propensity,
        unit=decision.unit,
        asked_at=decision.asked_at,
        reward=_amount(last.reward) if last else None,
        occurred_at=last.occurred_at if last else None,
        received_at=last.received_at if last else None,
        heard_at=last.heard_at if last else None,
        revision=last.revision if last else None,
        earlier=[_told(each) for each in past],
    )


def _told(outcome: OutcomeRow) -> dict[str, Any]:
    times = (outcome.occurred_at, outcome.received_at, outcome.heard_at)
    shown = (None if time is None else iso(time) for time in times)
    return dict(zip(OUTCOME, (_amount(outcome.reward), *shown, outcome.revision), strict=True))


def _amount(billionths: int | None) -> float | None:
    if billionths is None:
        return None
    return billionths // BILLION if billionths % BILLION == 0 else billionths / BILLION


# --- And back ---------------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """An experiment to be imported, its number in the ledger not known yet."""

    experiment: ExperimentRow
    arms: list[ArmRow]
    sticky: bool
    places: dict[str, int]  # of the arms, by name
    latest: int  # no time may be later


def planned(given: Any, now: int) -> Plan:
    """The experiment that a header describes."""
    head = _fields("header", given, ("name", "status", "epoch", "created_at", "grain", "settings", "arms"))
    if head.get("format") != FORMAT:
        raise InvalidInput("format", f"must be {FORMAT}, all that this belated knows, got {shown(head.get('format'))}")
    settings = _settings(head["settings"])
    number("grain", head["grain"], low=1, high=1e14, whole=True)
    number("epoch", head["epoch"], low=1, high=1e15, whole=True)
    row = ExperimentRow(
        id=0,
        name=values.text("name", head["name"]),
        settings=settings.to_json(),
        status=_one_of("status", head["status"], STATUSES),
        epoch=int(head["epoch"]),
        grain=int(head["grain"]),
        failure_after=settings.window,
        created_at=_time("created_at", head["created_at"], now + SKEW),
    )
    arms = _arms(head["arms"], now + SKEW)
    return Plan(row, arms, settings.sticky, {arm.name: arm.arm for arm in arms}, now + SKEW)


def _settings(given: Any) -> Settings:
    try:
        return Settings.from_json(json.dumps(given))
    except (TypeError, KeyError, AttributeError):  # other keys, or other kinds of values
        raise InvalidInput("settings", f"are not those of an experiment, got {shown(given)}") from None


def _arms(given: Any, latest: int) -> list[ArmRow]:
    if not isinstance(given, list) or not 2 <= len(given) <= MOST_ARMS:
        raise InvalidInput("arms", f"must be a list of 2 to {MOST_ARMS}, got {shown(given)}")
    arms: list[ArmRow] = []
    for place, each in enumerate(given):
        arm = _fields(f"arms[{place}]", each, ("name", "status", "prior", "added_at"))
        name = values.text("arms", arm["name"])
        if any(name == other.name for other in arms):
            raise InvalidInput("arms", f"{shown(name)} is given twice")
        status = _one_of("arms.status", arm["status"], ARM_STATUSES)
        added = _time("arms.added_at", arm["added_at"], latest)
        arms.append(ArmRow(0, place, name, status, *checked_prior(arm["prior"]), added))
    return arms


def parsed(given: Mapping[str, Any], plan: Plan) -> tuple[DecisionRow, list[OutcomeRow]]:
    """The decision of a row, and the revisions of its outcome."""
    identity = values.identity("decision", given["decision"])
    if given["arm"] not in plan.places:
        raise InvalidInput("arm", f"there is none named {shown(given['arm'])} in the header")
    propensity = _number("propensity", given["propensity"])
    number("propensity", propensity, low=0.0, high=1.0)
    unit = given["unit"]
    if unit is not None:
        values.text("unit", unit, longest=500)
    elif plan.sticky:
        raise InvalidInput("unit", "a sticky experiment needs it")
    asked = _time("asked_at", given["asked_at"], plan.latest)
    decision = DecisionRow(identity, 0, plan.places[given["arm"]], asked, float(propensity), unit)
    past = _earlier(given["earlier"])
    revisions = [_outcome(each, decision, place, plan.latest) for place, each in enumerate(past, 1)]
    if given["reward"] is not None:
        revisions.append(_outcome(given, decision, len(past) + 1, plan.latest))
    else:
        stray = next((field for field in OUTCOME if given[field] is not None), None)
        if stray is not None:
            raise InvalidInput(stray, f"there is no reward, so it must be empty, got {shown(given[stray])}")
    return decision, revisions


def _earlier(given: Any) -> list[dict[str, Any]]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            raise InvalidInput("earlier", f"must be a list in JSON, got {shown(given)}") from None
    if given is None:
        return []
    if not isinstance(given, list):
        raise InvalidInput("earlier", f"must be a list, got {shown(given)}")
    return [_fields("earlier", each, OUTCOME) for each in given]


def _outcome(given: Mapping[str, Any], decision: DecisionRow, place: int, latest: int) -> OutcomeRow:
    """Revision number `place` of an outcome."""
    revision = _number("revision", given["revision"])
    if revision != place:
        raise InvalidInput("revision", f"must be {place}, got {shown(given['revision'])}")
    reward = None if given["reward"] is None else values.reward(_number("reward", given["reward"]))
    received = _time("received_at", given["received_at"], latest, since=decision.asked_at)
    occurred, heard = given["occurred_at"], given["heard_at"]
    if occurred is not None:
        occurred = _time("occurred_at", occurred, latest, since=decision.asked_at - SKEW)
    if heard is not None:
        heard = _time("heard_at", heard, latest, since=decision.asked_at)
    return OutcomeRow(decision.id, place, reward, occurred, received, heard)


def _fields(field: str, given: Any, wanted: Sequence[str]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidInput(field, f"must be an object in JSON, got {shown(given)}")
    missing = next((key for key in wanted if key not in given), None)
    if missing is not None:
        raise InvalidInput(field, f"has no {missing!r}")
    return given


def _one_of(field: str, given: Any, known: Sequence[str]) -> str:
    if given not in known:
        raise nearest(field, "status", str(given), known)
    return str(given)


def _number(field: str, given: Any) -> Any:
    """A number as a number, also from text; what is not one is left for the check of its field."""
    if isinstance(given, str):
        try:
            return float(given)
        except ValueError:
            raise InvalidInput(field, f"must be a number, got {shown(given)}") from None
    return given


def _time(field: str, given: Any, latest: int, *, since: int = 0) -> int:
    time = values.instant(field, given)
    if time < since:
        raise InvalidInput(field, f"{iso(time)} is too early: its decision is of {iso(since)}")
    if time > latest:
        raise InvalidInput(field, f"is in the future, got {iso(time)}")
    return time

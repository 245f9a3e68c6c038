"""The single place where asks and tells are judged: a batch of them, within one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from belated.inputs import InvalidInput
from belated.live import ledger
from belated.live.errors import Archived, ClockRanBackwards, Conflict, LiveError, NotFound, Stopped, behind
from belated.live.fold import Moves
from belated.live.store import Connection, DecisionRow, ExperimentRow, OutcomeRow
from belated.live.values import BILLION, SKEW, iso, written


class Ask(NamedTuple):
    """Write this decision, unless its id or its sticky unit has one already."""

    row: DecisionRow
    epoch: int  # of the experiment when the arm was chosen
    repeated: bool  # whether the id is the client's, and may be there already
    sticky: bool


class Tell(NamedTuple):
    """Write this outcome; a reward of None takes back the one that stands."""

    decision: bytes
    reward: int | None
    at: int
    occurred_at: int | None = None
    revise: bool = False
    experiment: int | None = None  # if given, the decision must be of it


class Do(NamedTuple):
    """Do something else to the ledger, in the transaction of the batch."""

    what: Callable[[Connection], Any]


class Asked(NamedTuple):
    """A decision, and whether it was there already."""

    row: DecisionRow
    replayed: bool


class Stale(Exception):
    """The experiment has changed since the arm was chosen: choose again."""


Operation = Ask | Tell | Do


def judge(connection: Connection, operations: Sequence[Operation]) -> list[Any]:
    """The answers to a batch, in its order; an answer that is an exception is for its caller alone."""
    answers: list[Any] = [None] * len(operations)
    moves = Moves()
    steps: list[tuple[type, Callable[..., list[Any]]]] = [(Do, _do), (Ask, _asks), (Tell, _tells)]
    for kind, judged in steps:
        places = [place for place, operation in enumerate(operations) if type(operation) is kind]
        if places:
            found = judged(connection, [operations[place] for place in places], moves)
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
    moves.apply(connection)
    return answers


def _do(connection: Connection, operations: list[Do], moves: Moves) -> list[Any]:
    answers: list[Any] = []
    for operation in operations:
        connection.script("SAVEPOINT one")
        try:
            answers.append(operation.what(connection))
        except (InvalidInput, LiveError) as refusal:
            connection.script("ROLLBACK TO SAVEPOINT one")
            answers.append(refusal)
        connection.script("RELEASE SAVEPOINT one")
    return answers


def _asks(connection: Connection, asks: list[Ask], moves: Moves) -> list[Any]:
    experiments = ledger.experiments_by_id(connection, sorted({ask.row.experiment for ask in asks}))
    known = ledger.decisions(connection, [ask.row.id for ask in asks if ask.repeated])
    held = _held(connection, asks, known)
    fresh: list[DecisionRow] = []
    claims: list[tuple[int, str, bytes]] = []
    answers: list[Any] = []
    for ask in asks:
        row = ask.row
        there = known.get(row.id) or (held.get((row.experiment, row.unit)) if ask.sticky else None)
        if there is not None:
            answers.append(_replay(there, row))
            continue
        refusal = _refused(experiments.get(row.experiment), ask)
        if refusal is not None:
            answers.append(refusal)
            continue
        fresh.append(row)
        moves.asked(row, experiments[row.experiment])
        if ask.repeated:
            known[row.id] = row
        if ask.sticky and row.unit is not None:
            held[row.experiment, row.unit] = row
            claims.append((row.experiment, row.unit, row.id))
        answers.append(Asked(row, False))
    ledger.append(connection, sorted(fresh))  # in order, so that two writers cannot wait for each other
    ledger.claim(connection, sorted(claims))
    return answers


def _held(
    connection: Connection, asks: list[Ask], known: dict[bytes, DecisionRow]
) -> dict[tuple[int, str | None], DecisionRow]:
    """The decisions that the units of sticky experiments have."""
    units: dict[int, list[str]] = {}
    for ask in asks:
        if ask.sticky and ask.row.unit is not None and ask.row.id not in known:
            units.setdefault(ask.row.experiment, []).append(ask.row.unit)
    holders = {
        (experiment, unit): decision
        for experiment, wanted in units.items()
        for unit, decision in ledger.holders(connection, experiment, wanted).items()
    }
    rows = ledger.decisions(connection, list(holders.values()))
    return {key: rows[decision] for key, decision in holders.items()}


def _replay(there: DecisionRow, wanted: DecisionRow) -> Asked | Conflict:
    if there.experiment != wanted.experiment:
        return Conflict("id", f"{written(wanted.id)} is a decision of another experiment")
    if wanted.unit not in (None, there.unit):
        return Conflict("unit", f"the decision {written(wanted.id)} is that of another unit")
    return Asked(there, True)


def _refused(experiment: ExperimentRow | None, ask: Ask) -> Exception | None:
    if experiment is None:
        return NotFound("experiment", "there is none with this id")
    if experiment.status == "archived":
        return Archived("experiment", f"{experiment.name} is archived")
    if experiment.status != "running":
        return Stopped("experiment", f"{experiment.name} is stopped: it decides nothing more")
    if experiment.epoch != ask.epoch:
        return Stale()
    if ask.row.arm < 0:
        return Stopped("experiment", f"{experiment.name} has no active arm")
    return None


def _tells(connection: Connection, tells: list[Tell], moves: Moves) -> list[Any]:
    ids = sorted({tell.decision for tell in tells})  # in order, so that two writers cannot wait for each other
    decisions = ledger.decisions(connection, ids)
    experiments = ledger.experiments_by_id(connection, sorted({row.experiment for row in decisions.values()}))
    standing: dict[bytes, OutcomeRow] = ledger.outcomes(connection, ids)
    fresh: list[OutcomeRow] = []
    answers: list[Any] = []
    for tell in tells:
        decision = decisions.get(tell.decision)
        if decision is None or tell.experiment not in (None, decision.experiment):
            answers.append(NotFound("decision", f"there is none with the id {written(tell.decision)}"))
            continue
        experiment, before = experiments[decision.experiment], standing.get(tell.decision)
        try:
            status, after = _judged(tell, decision, experiment, before)
        except (InvalidInput, LiveError) as refusal:
            answers.append(refusal)
            continue
        if after is not None:
            moves.told(decision, before, experiment, -1)
            moves.told(decision, after, experiment)
            standing[tell.decision] = after
            fresh.append(after)
        answers.append(status)
    ledger.append(connection, sorted(fresh))
    return answers


def _judged(
    tell: Tell, decision: DecisionRow, experiment: ExperimentRow, before: OutcomeRow | None
) -> tuple[str, OutcomeRow | None]:
    """The status of a tell, and the row that it appends, if any."""
    stands = None if before is None else before.reward
    if experiment.status == "archived":
        raise Archived("experiment", f"{experiment.name} is archived")
    if tell.occurred_at is not None and tell.occurred_at < decision.asked_at - SKEW:
        message = f"{iso(tell.occurred_at)} is before its decision, of {iso(decision.asked_at)}"
        raise InvalidInput("occurred_at", message)
    if tell.reward is None:
        if stands is None:
            return "voided", None
        status = "voided"
    elif tell.reward == stands:
        return "duplicate", None
    elif stands is not None:
        if not tell.revise:
            raise Conflict(
                "reward",
                f"decision {written(decision.id)} already has {stands / BILLION:g}, "
                f"got {tell.reward / BILLION:g}; say revise to correct it",
            )
        status = "revised"
    else:
        window = experiment.failure_after
        status = "late" if window is not None and tell.at >= decision.asked_at + window else "applied"
    if tell.at < decision.asked_at - SKEW:
        raise ClockRanBackwards("clock", behind(tell.at, decision.asked_at))
    corrected = before.heard if before is not None and status == "revised" else None
    received = max(tell.at, decision.asked_at)  # clocks of two machines may differ a little
    revision = 1 if before is None else before.revision + 1
    return status, OutcomeRow(decision.id, revision, tell.reward, tell.occurred_at, received, corrected)

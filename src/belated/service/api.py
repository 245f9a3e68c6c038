"""The answers of the API: each takes a request that is allowed and well formed, and calls what Python users call."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from belated.inputs import InvalidInput, nearest
from belated.live import Experiment, values
from belated.live.engine import Told
from belated.live.experiment import Decision
from belated.live.judge import Stale
from belated.live.settings import silence_from_text
from belated.live.store import ExperimentRow
from belated.live.summary import Summary
from belated.service import forms, problems
from belated.service.problems import Problem
from belated.service.reply import Json
from belated.service.request import Asked

if TYPE_CHECKING:
    from belated.service.app import Service

CHUNK = 1 << 16
READY = 5.0  # seconds that a store may take to be written
MEDIA = {"csv": "text/csv", "ndjson": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}


# --- Deciding and hearing ---


async def decide(asked: Asked) -> Json:
    """Decide; with `count`, several times."""
    experiment = await asked.experiment()
    question: forms.Question = asked.form
    if question.count is not None:
        if question.id is not None or question.unit is not None:
            raise InvalidInput("count", "goes with neither unit nor id")
        decisions = await run_in_threadpool(experiment.ask_many, question.count)
        asked.service.counted.decided(experiment.name, len(decisions))
        return Json([_decided(each) for each in decisions], 201)
    decided, replayed = await _one(asked.service, experiment, question)
    if replayed:
        return Json(decided, 200)
    asked.service.counted.decided(experiment.name)
    return Json(decided, 201)


async def _one(service: Service, experiment: Experiment, question: forms.Question) -> tuple[forms.Decided, bool]:
    while True:
        version = await service.fresh(experiment)
        ask = experiment.choice(version, unit=question.unit, id=question.id)
        try:
            row, replayed = await service.bridge.answer(ask)
        except Stale:  # an arm or a status has changed: choose again
            experiment.forget(version)
        else:
            name = experiment.arm_name(version, row)
            at = values.iso(row.asked_at)
            return forms.Decided(values.written(row.id), name, row.propensity, at, row.unit), replayed


def _decided(decision: Decision) -> forms.Decided:
    at = decision.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return forms.Decided(decision.id, decision.arm, decision.propensity, at, decision.unit)


async def tell(asked: Asked) -> Json:
    """Tell the outcome of a decision. The same value again is a duplicate, another one a conflict unless `revise`."""
    answer: forms.Answer = asked.form
    service = asked.service
    operation = service.ledger.telling(
        asked.path["decision"], answer.reward, answer.occurred_at, answer.revise, await asked.only()
    )
    status = await service.bridge.answer(operation)
    service.counted.told(status)
    return Json(forms.Status(status))


async def void(asked: Asked) -> Json:
    """Take the outcome of a decision back."""
    operation = asked.service.ledger.voiding(asked.path["decision"], await asked.only())
    status = await asked.service.bridge.answer(operation)
    asked.service.counted.told(status)
    return Json(forms.Status(status))


async def tell_many(asked: Asked) -> Json:
    """Tell many outcomes; none stops the others, and each has its status."""
    answers: list[forms.AnswerOf] = asked.form
    given = [(each.decision, each.reward, each.occurred_at, each.revise) for each in answers]
    only = asked.access.experiment
    teller: Any = asked.service.ledger if only is None else await asked.service.experiment(only)
    told: list[Told] = await run_in_threadpool(teller.tell_many, given)
    for each in told:
        asked.service.counted.told(each.status)
    return Json([forms.StatusOf(each.decision, each.status, str(each.error or "")) for each in told])  # type: ignore[arg-type]


# --- Looking ---


async def overview(asked: Asked) -> Json:
    """The summaries of all experiments."""
    return Json(await asked.service.looking(summaries, asked))


def summaries(asked: Asked) -> list[dict[str, Any]]:
    """The summaries of the experiments that the key is for."""
    only = asked.access.experiment
    found = asked.service.ledger.each(Experiment.summary)
    return [_listed(row, each) for row, each in found if only in (None, row.name)]


def _listed(row: ExperimentRow, found: Summary | Exception) -> dict[str, Any]:
    if isinstance(found, Summary):
        return plain(found)
    return {"name": row.name, "status": row.status, "problem": problems.in_a_list(row.name, found).body()}


async def summary(asked: Asked) -> Json:
    """Where an experiment stands now."""
    return await _standing(asked, await asked.experiment())


async def _standing(asked: Asked, experiment: Experiment, status: int = 200) -> Json:
    return Json(plain(await asked.service.looking(experiment.summary)), status)


def plain(whole: Summary) -> dict[str, Any]:
    """A summary as JSON."""
    return whole.to_dict()


async def waits(asked: Asked) -> Json:
    """How late the outcomes of an experiment come, by Kaplan and Meier, in rounds of `unit`."""
    unit = asked.query.get("unit", "1s")
    if values.duration("unit", unit) < 1:
        raise InvalidInput("unit", f"must be at least 1ms, got {unit}")
    experiment = await asked.experiment()
    found = await asked.service.looking(experiment.waits, unit)
    arms = {name: _steps(law) for name, law in found.arms.items()}
    return Json(forms.Curves(unit, _steps(found.pooled), arms, found.notice))


def _steps(law: Any) -> forms.Steps | None:
    return None if law is None else forms.Steps(list(law.delays), list(law.levels))


async def export(asked: Asked) -> Response:
    """Every decision of an experiment with its outcome, to keep or to import elsewhere."""
    format = asked.query.get("format", "csv")
    if format not in MEDIA:
        raise nearest("format", "format", format, MEDIA)
    experiment = await asked.experiment()
    file = await asked.service.looking(_exported, experiment, format)
    return StreamingResponse(_pieces(file), media_type=MEDIA[format], headers=_attached(experiment.name, format))


def _exported(experiment: Experiment, format: str) -> Any:
    from belated.live.exchange import export

    file = tempfile.TemporaryFile()  # noqa: SIM115, closed by _pieces
    export(experiment, file, format)
    file.seek(0)
    return file


async def _pieces(file: Any) -> AsyncIterator[bytes]:
    with file:
        while piece := await run_in_threadpool(file.read, CHUNK):
            yield piece


def _attached(name: str, format: str) -> dict[str, str]:
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)
    return {"Content-Disposition": f'attachment; filename="{plain}.{format}"'}


# --- Changing ---


async def create(asked: Asked) -> Json:
    """Create an experiment."""
    form: forms.NewExperiment = asked.form
    silence = silence_from_text("pending" if form.silence == "pending" else form.silence.after)
    experiment = await run_in_threadpool(
        asked.service.ledger.create,
        form.name,
        form.arms,
        silence=silence,
        policy=form.policy,
        sticky=form.sticky,
        floor=form.floor,
        prior=form.prior,
        priors=form.priors,
        reading=form.reading,
    )
    return await _standing(asked, experiment, 201)


async def change(asked: Asked) -> Json:
    """Stop an experiment, let it run again, or archive it for good."""
    experiment = await asked.experiment()
    form: forms.NewStatus = asked.form
    act = {"running": experiment.resume, "stopped": experiment.stop, "archived": experiment.archive}[form.status]
    await run_in_threadpool(act)
    return await _standing(asked, experiment)


async def add_arm(asked: Asked) -> Json:
    """Add an arm to an experiment."""
    experiment = await asked.experiment()
    form: forms.NewArm = asked.form
    await run_in_threadpool(experiment.add_arm, form.name, prior=form.prior)
    return await _standing(asked, experiment, 201)


async def change_arm(asked: Asked) -> Json:
    """Pause an arm, make it active again, or retire it for good."""
    experiment = await asked.experiment()
    form: forms.NewArmStatus = asked.form
    act = {"active": experiment.activate, "paused": experiment.pause, "retired": experiment.retire}[form.status]
    await run_in_threadpool(act, asked.path["arm"])
    return await _standing(asked, experiment)


# --- The service itself ---


async def alive(asked: Asked) -> Json:
    """The process lives."""
    return Json({"status": "ok"})


async def ready(asked: Asked) -> Json:
    """The store can be written: something has been, within the last second."""
    try:
        async with asyncio.timeout(READY):
            await asked.service.writable()
    except TimeoutError:
        message = f"the store has not taken anything for {READY:g} seconds"
        raise Problem(503, "unavailable", message, headers={"Retry-After": "1"}) from None
    return Json({"status": "ok"})


async def metrics(asked: Asked) -> Response:
    """Counts and times, for Prometheus."""
    answer: Response = await asked.service.looking(asked.service.counted.page, asked.service.ledger)
    return answer


async def description(asked: Asked) -> Response:
    """This description."""
    return Response(asked.service.description, media_type="application/json")

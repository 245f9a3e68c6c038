"""Where an experiment stands, in numbers and in plain words."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import numpy as np

from belated.live import ledger
from belated.live.errors import notice
from belated.live.ledger import Connection
from belated.live.settings import Settings, silence_to_text
from belated.live.values import BILLION, iso, moment
from belated.live.version import Standing, Version, evidence
from belated.live.waits import by_when, kaplan_meier, to_come
from belated.live.words import loss, span


class ArmSummary(NamedTuple):
    """An arm: what was asked of it and heard, and the posterior of its mean."""

    name: str
    status: str
    asked: int
    observed: int  # outcomes told, and failures that silence stands for
    assumed: int  # of these, the failures that silence stands for
    pending: int
    successes: float  # the sum of rewards
    mean: float
    low: float
    high: float
    best: float  # P(it is the best of those not retired)
    loss: float | None  # expected, by visitor, if it were chosen for good; None of a retired arm
    share: float  # of the decisions made now: its propensity


class Forecast(NamedTuple):
    """What is still to come of what is pending, by the curve of the waits so far."""

    expected: float  # outcomes that will be told yet
    half_within: int | None  # ms from now by which half of them have come
    most_within: int | None  # and nine in ten


class Summary(NamedTuple):
    """An experiment as of `at`."""

    name: str
    status: str
    policy: str
    silence: str
    at: datetime.datetime
    asked: int
    observed: int
    pending: int
    arms: list[ArmSummary]
    leader: str | None
    to_come: Forecast
    verdict: str
    notice: str | None = None  # what is wrong with the time at which it was made

    def to_dict(self) -> dict[str, Any]:
        """The form over HTTP and in files: numbers, texts, lists and dicts."""
        whole = self._asdict()
        whole["at"] = iso(round(self.at.timestamp() * 1000))
        whole["arms"] = [arm._asdict() for arm in self.arms]
        whole["to_come"] = self.to_come._asdict()
        return whole


def summarised(connection: Connection, at: Standing, settings: Settings, clock: int) -> Summary:
    """The summary of a standing."""
    now = max(clock, at.last_asked)
    arms = _arms(at, settings, now)
    leader = _leader(arms, evidence(at)[1])
    forecast = _forecast(connection, at, sum(arm.pending for arm in arms), now)
    whole = Summary(
        name=at.experiment.name,
        status=at.experiment.status,
        policy=settings.policy,
        silence=silence_to_text(settings.silence),
        at=moment(now),
        asked=sum(arm.asked for arm in arms),
        observed=sum(arm.observed for arm in arms),
        pending=sum(arm.pending for arm in arms),
        arms=arms,
        leader=leader.name if leader else None,
        to_come=forecast,
        verdict="",
        notice=notice(clock, at.last_asked),
    )
    return whole._replace(verdict=_verdict(whole, leader))


def _arms(at: Standing, settings: Settings, now: int) -> list[ArmSummary]:
    from belated.live.posterior import intervals
    from belated.live.posterior import standing as posterior

    total, seen = evidence(at)
    a = np.array([arm.prior_a for arm in at.arms]) + total
    b = np.array([arm.prior_b for arm in at.arms]) + (seen - total)
    low, high = intervals(a, b)
    best, loss = np.zeros(len(a)), np.zeros(len(a))
    standing = [place for place, arm in enumerate(at.arms) if arm.status != "retired"]
    if standing:
        best[standing], loss[standing] = posterior(a[standing], b[standing])
    share = np.zeros(len(a))
    if at.experiment.status == "running":
        version = Version(at, settings, now)
        share[version.active] = version.shares()
    return [
        ArmSummary(
            name=arm.name,
            status=arm.status,
            asked=sums.asked,
            observed=sums.told + at.assumed(place),
            assumed=at.assumed(place),
            pending=sums.asked - sums.told - at.assumed(place),
            successes=sums.rewards / BILLION,
            mean=float(a[place] / (a[place] + b[place])),
            low=float(low[place]),
            high=float(high[place]),
            best=float(best[place]),
            loss=None if arm.status == "retired" else float(loss[place]),
            share=float(share[place]),
        )
        for place, (arm, sums) in enumerate(zip(at.arms, at.sums, strict=True))
    ]


def _leader(arms: list[ArmSummary], seen: np.ndarray) -> ArmSummary | None:
    """The arm most likely the best, once anything is known: where silence is a failure, once a window has closed."""
    if not seen.any():
        return None
    return max((arm for arm in arms if arm.status != "retired"), key=lambda arm: arm.best, default=None)


def _forecast(connection: Connection, at: Standing, pending: int, now: int) -> Forecast:
    """From totals by time alone, so to the grain of the experiment: exact curves are `Experiment.waits`."""
    row = at.experiment
    heard: dict[int, int] = {}
    for _, lag, told in ledger.lags(connection, row.id):
        heard[lag] = heard.get(lag, 0) + told
    if not heard or not pending:
        return Forecast(0.0, None, None)
    newest = now // row.grain
    horizon = max(heard) if row.failure_after is None else row.failure_after // row.grain
    young = ledger.unanswered_by_bucket(connection, row.id, newest - horizon)
    # All else has outlasted the horizon: what was asked longer ago, and what came later than that.
    older = sum(sums.asked - sums.told for sums in at.sums) - sum(young.values())
    older += sum(told for lag, told in heard.items() if lag > horizon)
    lags = np.array([lag for lag in sorted(heard) if lag <= horizon], float)
    ages = np.array([*(max(0, newest - bucket) for bucket in young), horizon + 1], float)
    counts = np.array([*young.values(), older], float)
    outcomes = [heard[int(lag)] for lag in lags]
    curve = kaplan_meier(lags, ages, waits_counts=outcomes, ages_counts=counts)
    # Of those asked longer ago than any wait seen so far, none is expected any more.
    return Forecast(
        expected=to_come(curve, ages[:-1], counts=counts[:-1]),
        half_within=_in_time(by_when(curve, ages[:-1], counts=counts[:-1], fraction=0.5), row.grain),
        most_within=_in_time(by_when(curve, ages[:-1], counts=counts[:-1], fraction=0.9), row.grain),
    )


def _in_time(grains: float | None, grain: int) -> int | None:
    return None if grains is None else round(grains * grain)


def _verdict(whole: Summary, leader: ArmSummary | None) -> str:
    """What a person would say of it."""
    waiting = _waiting(whole)
    if leader is None:
        heard = whole.observed and any(arm.status != "retired" for arm in whole.arms)
        return f"{'no window has closed yet' if heard else 'nothing is known yet'}; {waiting}"
    chance = "more than 0.999" if leader.best > 0.999 else f"{leader.best:.3g}"
    return f"{leader.name} leads with P = {chance}; {waiting}; stopping now risks {loss(leader.loss)} per visitor"


def _waiting(whole: Summary) -> str:
    if not whole.pending:
        return "nothing is pending"
    forecast = whole.to_come
    text = f"{whole.pending:,} outcome{'s are' if whole.pending > 1 else ' is'} pending"
    if forecast.most_within is not None and forecast.expected >= 0.5:
        text += f", of which some {forecast.expected:,.0f} will come, most within {span(forecast.most_within)}"
    return text

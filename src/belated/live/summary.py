"""Where an experiment stands, in numbers and in plain words."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import numpy as np

from belated.live import ledger, silence
from belated.live.errors import notice
from belated.live.settings import Settings, silence_to_text
from belated.live.store import Connection
from belated.live.values import BILLION, iso, moment
from belated.live.version import Standing, Version, posterior, silence_of, waited
from belated.live.waits import by_when, kaplan_meier, to_come
from belated.live.words import loss, span
from belated.policies.learned import LearnedState


class Waited(NamedTuple):
    """What the posterior of an arm would be, had nothing been read of silence before the window has closed."""

    trials: float
    mean: float
    best: float


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
    trials: float  # how many outcomes the posterior is worth
    delay: str | None  # "later" or "sooner", if its conversions come so by more than chance
    waited: Waited | None  # only where silence is read


class Forecast(NamedTuple):
    """What is still to come of what is pending, by the curve of the waits so far."""

    expected: float  # outcomes that will be told yet
    half_within: int | None  # ms from now by which half of them have come
    most_within: int | None  # and nine in ten


class Learned(NamedTuple):
    """How late conversions come, as silence is read by it: P(lag <= age | it converts), by age in steps.

    `levels[k]` is for ages between k and k + 1 steps, as far as the experiment has seen. An arm that is not in `arms`
    has that of all.
    """

    step: int  # ms
    conversions: int  # that it was learned from
    levels: list[float]
    arms: dict[str, list[float]]


class Summary(NamedTuple):
    """An experiment as of `at`."""

    name: str
    status: str
    policy: str
    silence: str
    reading: str
    at: datetime.datetime
    asked: int
    observed: int
    pending: int
    arms: list[ArmSummary]
    leader: str | None
    to_come: Forecast
    learned: Learned | None  # only where silence is read
    verdict: str
    notice: str | None = None  # what is wrong with the time at which it was made

    def to_dict(self) -> dict[str, Any]:
        """The form over HTTP and in files: numbers, texts, lists and dicts."""
        whole = self._asdict()
        whole["at"] = iso(round(self.at.timestamp() * 1000))
        whole["arms"] = [{**arm._asdict(), "waited": arm.waited and arm.waited._asdict()} for arm in self.arms]
        whole["to_come"] = self.to_come._asdict()
        whole["learned"] = self.learned and self.learned._asdict()
        return whole


def summarised(connection: Connection, at: Standing, settings: Settings, clock: int) -> Summary:
    """The summary of a standing."""
    now = max(clock, at.last_asked)
    read = None if at.past is None else silence_of(at)
    arms = _arms(at, settings, now, read)
    leader = _leader(arms)
    forecast = _forecast(connection, at, sum(arm.pending for arm in arms), now)
    whole = Summary(
        name=at.experiment.name,
        status=at.experiment.status,
        policy=settings.policy,
        silence=silence_to_text(settings.silence),
        reading=str(settings.reading),
        at=moment(now),
        asked=sum(arm.asked for arm in arms),
        observed=sum(arm.observed for arm in arms),
        pending=sum(arm.pending for arm in arms),
        arms=arms,
        leader=leader.name if leader else None,
        to_come=forecast,
        learned=read and _learned(at, read),
        verdict="",
        notice=notice(clock, at.last_asked),
    )
    return whole._replace(verdict=_verdict(whole, leader))


def _arms(at: Standing, settings: Settings, now: int, read: LearnedState | None) -> list[ArmSummary]:
    from belated.live.posterior import intervals
    from belated.live.posterior import standing as compared

    a, b = posterior(at)
    low, high = intervals(a, b)
    best, loss = np.zeros(len(a)), np.zeros(len(a))
    standing = [place for place, arm in enumerate(at.arms) if arm.status != "retired"]
    if standing:
        best[standing], loss[standing] = compared(a[standing], b[standing])
    delays, without = _delays(read, len(a)), _without(at, standing)
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
            trials=_trials(at, place, a, b),
            delay=delays[place],
            waited=without[place],
        )
        for place, (arm, sums) in enumerate(zip(at.arms, at.sums, strict=True))
    ]


def _trials(at: Standing, place: int, a: np.ndarray, b: np.ndarray) -> float:
    arm = at.arms[place]
    return float(a[place] - arm.prior_a + b[place] - arm.prior_b)


def _without(at: Standing, standing: list[int]) -> list[Waited | None]:
    """What waiting would say of each arm."""
    from belated.live.posterior import chances

    if at.past is None:
        return [None] * len(at.arms)
    a, b = waited(at)
    best = np.zeros(len(a))
    if standing:
        best[standing] = chances(a[standing], b[standing])
    return [
        Waited(_trials(at, place, a, b), float(a[place] / (a[place] + b[place])), float(best[place]))
        for place in range(len(a))
    ]


def _delays(read: LearnedState | None, arms: int) -> list[str | None]:
    """Whether each arm's conversions come later or sooner than all of them, by more than chance."""
    words = {1.0: "later", -1.0: "sooner"}
    signs = [0.0] * arms if read is None else silence.apart(read).tolist()
    return [words.get(sign) for sign in signs]


def _learned(at: Standing, read: LearnedState) -> Learned:
    seen = silence.seen(read)
    pooled, own = silence.curves(read)
    return Learned(
        step=at.experiment.width,
        conversions=round(float(read.events.sum())),
        levels=pooled[:seen].round(6).tolist(),
        arms={at.arms[place].name: levels[:seen].round(6).tolist() for place, levels in own.items()},
    )


def _leader(arms: list[ArmSummary]) -> ArmSummary | None:
    """The arm most likely the best, once anything counts: who waits for a window knows nothing before it has closed."""
    if not any(arm.trials > 0.0 for arm in arms):
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
        early = "it is too early to tell" if whole.learned else "no window has closed yet"
        return f"{early if heard else 'nothing is known yet'}; {waiting}"
    leads = f"{leader.name} leads with P = {_chance(leader.best)}"
    risk = f"stopping now risks {loss(leader.loss)} per visitor"
    return "; ".join([leads, waiting, risk, *_apart(whole)])


def _apart(whole: Summary) -> list[str]:
    """Which arms differ in delay by more than chance: those that are later, or if there are none, sooner."""
    for word in ("later", "sooner"):
        names = [arm.name for arm in whole.arms if arm.delay == word]
        if names:
            who = f"{len(names)} arms" if len(names) > 3 else " and ".join(names)
            verb = "converts" if len(names) == 1 else "convert"
            others = "the other" if len(whole.arms) == 2 else "the others"
            return [f"{who} {verb} {word} than {others}, by more than chance"]
    return []


def without_reading(whole: Summary) -> str:
    """What would be known had it waited for windows to close; nothing where it does."""
    pairs = [(arm, arm.waited) for arm in whole.arms if arm.waited is not None and arm.status != "retired"]
    if not pairs or whole.leader is None:
        return ""
    now, then = (sum(each) for each in zip(*((arm.trials, waited.trials) for arm, waited in pairs), strict=True))
    arm, waited = max(pairs, key=lambda pair: pair[1].best)
    counts = f"{then:,.0f} outcome{'s' * (round(then) != 1)} would count in place of {now:,.0f}"
    if not then:
        return f"Had it waited for windows to close, nothing would be known yet: {counts}"
    return f"Had it waited for windows to close, {arm.name} would lead with P = {_chance(waited.best)}: {counts}"


def _chance(probability: float) -> str:
    return "more than 0.999" if probability > 0.999 else f"{probability:.3g}"


def _waiting(whole: Summary) -> str:
    if not whole.pending:
        return "nothing is pending"
    forecast = whole.to_come
    text = f"{whole.pending:,} outcome{'s are' if whole.pending > 1 else ' is'} pending"
    if forecast.most_within is not None and forecast.expected >= 0.5:
        text += f", of which some {forecast.expected:,.0f} will come, most within {span(forecast.most_within)}"
    return text

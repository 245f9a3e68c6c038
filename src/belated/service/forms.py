"""What comes in and goes out over HTTP, as types. Unknown fields and wrong types are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Share = Annotated[float, Meta(ge=0, le=1)]
Id = Annotated[str, Meta(description="A UUID.", pattern="^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$")]
Moment = Annotated[str, Meta(description="A time in ISO 8601, with its zone.", examples=["2025-01-31T12:00:00Z"])]
Positive = Annotated[float, Meta(ge=1e-3, le=1e7)]
Prior = Annotated[tuple[Positive, Positive], Meta(description="The two parameters of a Beta distribution.")]


class Form(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a client sends."""


class Window(Form):
    """Silence is a failure after this time."""

    after: Annotated[str, Meta(description="A time such as 7d, 12h, 30m or 10s.", examples=["7d"])]


class NewExperiment(Form):
    """An experiment to create."""

    name: Name
    arms: Annotated[list[Name], Meta(min_length=2, max_length=1000)]
    silence: Literal["pending"] | Window = "pending"
    policy: Literal["thompson", "split", "ucb1"] = "thompson"
    sticky: bool = False
    floor: Share = 0.0
    prior: Prior = (1.0, 1.0)
    priors: dict[str, Prior] = {}
    reading: Annotated[
        Literal["silence", "wait"] | None,
        Meta(
            description=(
                "What a decision counts before its window has closed: with silence, as far as it has had the time to "
                "convert, the default where it can be read; with wait, nothing."
            )
        ),
    ] = None


class NewStatus(Form):
    """The status that an experiment is to have."""

    status: Literal["running", "stopped", "archived"]


class NewArm(Form):
    """An arm to add."""

    name: Name
    prior: Prior | None = None


class NewArmStatus(Form):
    """The status that an arm is to have."""

    status: Literal["active", "paused", "retired"]


class Question(Form):
    """A decision to make, or with `count` several."""

    unit: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    id: Id | None = None
    count: Annotated[int, Meta(ge=1, le=1000)] | None = None


class Answer(Form):
    """The outcome of a decision."""

    reward: Share
    occurred_at: Moment | None = None
    revise: bool = False


class AnswerOf(Form):
    """The outcome of one decision among many."""

    decision: Id
    reward: Annotated[float, Meta(description="Between 0 and 1; another is refused by itself.")]
    occurred_at: Moment | None = None
    revise: bool = False


class Decided(msgspec.Struct):
    """A decision: the arm, and the probability with which it was chosen."""

    id: str
    arm: str
    propensity: float
    asked_at: str
    unit: str | None = None


class Status(msgspec.Struct):
    """What became of an outcome."""

    status: Literal["applied", "duplicate", "late", "revised", "voided"]


class StatusOf(msgspec.Struct, omit_defaults=True):
    """What became of one outcome among many; for one that was refused, why."""

    decision: str
    status: Literal[
        "applied",
        "duplicate",
        "late",
        "revised",
        "invalid",
        "not-found",
        "conflict",
        "archived",
        "unavailable",
        "clock-ran-backwards",
    ]
    detail: str = ""


class Waited(msgspec.Struct):
    """What an arm would be, had nothing been read of silence before the window has closed."""

    trials: float
    mean: float
    best: float


class Arm(msgspec.Struct):
    """An arm of a summary."""

    name: str
    status: Literal["active", "paused", "retired"]
    asked: int
    observed: int
    assumed: int
    pending: int
    successes: float
    mean: float
    low: float
    high: float
    best: float
    loss: float | None
    share: float
    trials: Annotated[float, Meta(description="How many outcomes its posterior is worth.")]
    delay: Annotated[
        Literal["later", "sooner"] | None, Meta(description="If its conversions come so by more than chance.")
    ]
    waited: Waited | None


class ToCome(msgspec.Struct):
    """What is still to come of what is pending."""

    expected: float
    half_within: int | None
    most_within: int | None


class Learned(msgspec.Struct):
    """How late conversions come, as silence is read by it; an arm that is not in `arms` has the levels of all."""

    step: Annotated[int, Meta(description="In ms: levels[k] is for ages from k to k + 1 steps.")]
    conversions: int
    levels: list[float]
    arms: dict[str, list[float]]


class Overview(msgspec.Struct):
    """An experiment as of `at`."""

    name: str
    status: Literal["running", "stopped", "archived"]
    policy: str
    silence: str
    reading: Literal["silence", "wait"]
    at: str
    asked: int
    observed: int
    pending: int
    arms: list[Arm]
    leader: str | None
    to_come: ToCome
    learned: Annotated[Learned | None, Meta(description="Only where silence is read.")]
    verdict: str
    notice: str | None  # what is wrong with the time `at`, if anything is


class Unreadable(msgspec.Struct):
    """An experiment that this service cannot read; the others are not hidden by it."""

    name: str
    status: Literal["running", "stopped", "archived"]
    problem: Trouble


class Steps(msgspec.Struct):
    """A delay curve: P(wait <= delays[k] units) = levels[k]."""

    delays: list[float]
    levels: list[float]


class Curves(msgspec.Struct):
    """How late outcomes come."""

    unit: str
    pooled: Steps | None
    arms: dict[str, Steps | None]
    notice: str | None  # what is wrong with the time as of which they are, if anything is


class Trouble(msgspec.Struct, omit_defaults=True):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    form: msgspec.json.Decoder(form)
    for form in (NewExperiment, NewStatus, NewArm, NewArmStatus, Question, Answer, list[AnswerOf])
}

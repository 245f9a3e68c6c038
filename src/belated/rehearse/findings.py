"""What the rehearsals of a plan say, each number with its error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from belated.inputs import nearest
from belated.result import Comparison, paired

if TYPE_CHECKING:
    from pathlib import Path

    from belated.rehearse.dress import Dress
    from belated.rehearse.plan import Plan
    from belated.rehearse.running import Running


class Track(NamedTuple):
    """What the replications of one policy left, a row each."""

    means: np.ndarray  # the true rates, by arm
    regret: np.ndarray  # conversions lost to the best arm, by mark
    best: np.ndarray  # P(best), by mark and arm
    pulls: np.ndarray  # by arm


class Share(NamedTuple):
    """A share of some cases, with its 95 % interval."""

    share: float
    low: float
    high: float
    of: int


class When(NamedTuple):
    """A quantile of a time in days over the rehearsals, with its 95 % interval; infinite if too few ever got there."""

    days: float
    low: float
    high: float


class Known(NamedTuple):
    """By when an arm is declared the best, and how often that is right."""

    by_end: Share  # of the rehearsals
    half: When
    most: When  # nine in ten
    wrong: Share  # of those declared: another arm is better
    loss: Comparison  # what is then lost per visitor, on average of all declared
    curve: np.ndarray  # the share declared by each mark


class Stopping(NamedTuple):
    """What it costs to stop at each mark and use the leader from then on, with the error of each mean."""

    loss: np.ndarray  # per visitor
    loss_se: np.ndarray
    total: np.ndarray  # conversions lost by the horizon
    total_se: np.ndarray

    @property
    def cheapest(self) -> int:
        """The mark at which stopping costs least."""
        return int(self.total.argmin())


@dataclass(frozen=True)
class Rehearsal:
    """The rehearsals of a plan: all policies in the same worlds."""

    plan: Plan
    marks: np.ndarray  # rounds after which was looked
    tracks: Mapping[str, Track]
    changes: Mapping[str, Track]  # the first policy, with one thing of the plan changed
    dress: Dress | None
    provenance: dict[str, Any]
    running: Running | None = field(default=None)

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(self.tracks)

    @property
    def days(self) -> np.ndarray:
        """When was looked, in days."""
        days: np.ndarray = self.marks * self.plan.days(1)
        return days

    def track(self, policy: str) -> Track:
        """What the replications of that policy left."""
        if policy not in self.tracks:
            raise nearest("policy", "policy", policy, self.tracks)
        return self.tracks[policy]

    def lost(self, policy: str) -> Comparison:
        """Conversions that a policy loses to the best arm, on average."""
        return paired(self.track(policy).regret[:, -1])

    def compare(self, one: str, other: str) -> Comparison:
        """What `one` loses more than `other`, paired."""
        return paired(self.track(one).regret[:, -1] - self.track(other).regret[:, -1])

    def cost_of(self, change: str) -> Comparison:
        """What the first policy loses more with that change of the plan, paired."""
        return paired(self.changes[change].regret[:, -1] - self.track(self.policies[0]).regret[:, -1])

    def best_possible(self) -> float:
        """The conversions of a visitor to the best arm, on average, times the visitors."""
        return float(self.track(self.policies[0]).means.max(axis=1).mean()) * self.plan.rounds

    def known(self, policy: str) -> Known:
        """When P(best) of some arm first reaches the certainty that was asked for, and whether it is that arm."""
        track = self.track(policy)
        reached = track.best.max(axis=2) >= self.plan.certainty
        ever, first = reached.any(axis=1), reached.argmax(axis=1)
        days = np.where(ever, self.days[first], math.inf)
        rows = np.flatnonzero(ever)
        losses = _losses(track)[rows, first[rows]]
        return Known(
            by_end=wilson(int(ever.sum()), len(ever)),
            half=_when(days, 0.5),
            most=_when(days, 0.9),
            wrong=wilson(int((losses > 1e-12).sum()), len(losses)),
            loss=paired(losses) if len(losses) else Comparison(math.nan, math.nan, math.nan, math.nan, 0),
            curve=np.array([(days <= day).mean() for day in self.days]),
        )

    def stopping(self, policy: str) -> Stopping:
        """What it costs to stop at each mark."""
        track = self.track(policy)
        losses = _losses(track)
        rest = self.plan.horizon - self.marks
        totals = track.regret + rest * losses
        root = math.sqrt(len(losses))
        return Stopping(
            losses.mean(axis=0),
            losses.std(axis=0, ddof=1) / root,
            totals.mean(axis=0),
            totals.std(axis=0, ddof=1) / root,
        )

    def total(self, policy: str, mark: int) -> np.ndarray:
        """Conversions lost by the horizon in each replication, if it is stopped at that mark."""
        track = self.track(policy)
        totals: np.ndarray = track.regret[:, mark] + (self.plan.horizon - self.marks[mark]) * _losses(track)[:, mark]
        return totals

    def as_good(self, policy: str) -> tuple[int, int]:
        """The first and last mark around the cheapest at which to stop costs no more than the error of its own cost."""
        stopping = self.stopping(policy)
        at = stopping.cheapest
        near = stopping.total <= stopping.total[at] + 1.96 * stopping.total_se[at]
        first, last = at, at
        while first > 0 and near[first - 1]:
            first -= 1
        while last + 1 < len(near) and near[last + 1]:
            last += 1
        return first, last

    @property
    def best_policy(self) -> str:
        """The one that loses least while it runs."""
        return min(self.policies, key=lambda policy: self.lost(policy).difference)

    def equals(self) -> list[str]:
        """The policies whose paired difference from the best cannot be told from nought."""
        best = self.best_policy
        return [name for name in self.policies if name != best and self.compare(name, best).sign == 0]

    def summary(self) -> list[dict[str, Any]]:
        """A row per policy, the least lost first."""
        rows = []
        for policy in sorted(self.policies, key=lambda policy: self.lost(policy).difference):
            lost, known, stopping = self.lost(policy), self.known(policy), self.stopping(policy)
            at = stopping.cheapest
            rows.append(
                {
                    "policy": policy,
                    "lost": lost.difference,
                    "lost_low": lost.low,
                    "lost_high": lost.high,
                    "known_by_end": known.by_end.share,
                    "half_known_day": known.half.days,
                    "most_known_day": known.most.days,
                    "wrong": known.wrong.share,
                    "stop_day": float(self.days[at]),
                    "stop_cost": float(stopping.total[at]),
                }
            )
        return rows

    def verdict(self) -> list[str]:
        """What it all means, in plain words."""
        from belated.rehearse import words

        return words.verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """The form of rehearsal.json."""
        from belated.rehearse import words

        return words.to_dict(self)

    def write(self, folder: Path) -> list[Path]:
        """Write rehearsal.json and report.html, each whole or not at all; their paths."""
        from belated.rehearse import page

        return page.write(self, folder)


def _losses(track: Track) -> np.ndarray:
    """What is lost per visitor if the leader of each mark is used for good; arms that lead together, by lot."""
    leads = track.best >= track.best.max(axis=2, keepdims=True) - 1e-9
    chosen = (leads * track.means[:, None, :]).sum(axis=2) / leads.sum(axis=2)
    losses: np.ndarray = track.means.max(axis=1, keepdims=True) - chosen
    return losses


def wilson(count: int, of: int) -> Share:
    """A share and its 95 % interval (Wilson, JASA 1927).

    >>> wilson(0, 20)
    Share(share=0.0, low=0.0, high=0.161..., of=20)
    """
    if of == 0:
        return Share(math.nan, 0.0, 1.0, 0)
    z, share = 1.96, count / of
    middle, reach = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    return Share(share, max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale), of)


def _when(days: np.ndarray, q: float) -> When:
    """The q-quantile, between the order statistics that hold it with 95 %."""
    ordered, count = np.sort(days), len(days)
    reach = 1.96 * math.sqrt(q * (1 - q) / count)
    at = [min(count - 1, max(0, math.ceil(level * count) - 1)) for level in (q, q - reach, q + reach)]
    return When(*(float(ordered[place]) for place in at))

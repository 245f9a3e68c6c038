"""What is asked of policies that read the silence, as data, and how it is judged; and what their regrets say in words.

A target is a set of paired comparisons. One is met if the 95 % interval of its margin, which is positive where the
target is met, lies above zero; where no more is asked than that a policy is not worse, if it does not lie below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from belated.claims import Verdict
from belated.result import Comparison, Result, paired
from belated.silence import EXACT, FIVE_MEANS, KNOWN, LEARNED, OPTIMISTIC, TOLD


class Target(NamedTuple):
    """In each of `where`, the regret of `policy` should be below `share` times that of `rival`.

    If not `strictly`, it is enough that it is not significantly above.
    """

    id: str
    text: str
    where: tuple[str, ...]
    policy: str
    share: float
    rival: str
    strictly: bool = True


TRAPS = ("speed/trap", "speed/steep", "speed/low")
LATE = ("late/1000",)

TARGETS: tuple[Target, ...] = (
    Target("S1", "A learned curve costs at most 0.7 of the regret of waiting.", FIVE_MEANS, LEARNED, 0.7, "wait"),
    Target(
        "S2",
        "A learned curve costs never more than taking silence for failure.",
        FIVE_MEANS,
        LEARNED,
        1.0,
        "silence-is-failure",
        strictly=False,
    ),
    Target("S3", "Where the best arm is the slow one, a learned curve beats waiting.", TRAPS, LEARNED, 1.0, "wait"),
    Target(
        "S4",
        "Where rewards decide the delay, the exact posterior has a tenth of Algorithm 1's regret.",
        LATE,
        EXACT,
        0.1,
        "thompson",
    ),
    Target(
        "S5",
        "There, learned delays cost clearly less than Algorithm 1: less than half.",
        LATE,
        LEARNED,
        0.5,
        "thompson",
    ),
)


class Check(NamedTuple):
    """One comparison of a target, and the shares of the rival's regret that were measured."""

    where: str
    margin: Comparison
    share: float
    floor: float
    """That of the best policy that knows the delays, which nobody who must learn them can be asked to beat; or nan."""
    verdict: Verdict


class Judged(NamedTuple):
    """A target and what was measured."""

    target: Target
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """All comparisons must hold; one that fails is enough to fail."""
        verdicts = {check.verdict for check in self.checks}
        return "fails" if "fails" in verdicts else "cannot tell" if "cannot tell" in verdicts else "holds"

    def to_dict(self) -> dict[str, Any]:
        """In the form of a claim of results.json."""
        parts = [
            {
                "what": f"{check.where}: {self.target.share:g} x regret of {self.target.rival} - {self.target.policy}",
                "expected": "positive" if self.target.strictly else "not negative",
                "difference": check.margin.difference,
                "low": check.margin.low,
                "high": check.margin.high,
                "share": check.share,
                "verdict": check.verdict,
            }
            for check in self.checks
        ]
        found = {"id": self.target.id, "text": self.target.text, "reading": "as written", "verdict": self.verdict}
        return {**found, "evidence": parts}


def judged(results: Mapping[str, Result]) -> list[Judged]:
    """The targets, as far as their experiments were run."""
    found = []
    for target in TARGETS:
        checks = tuple(_check(target, name, results[name]) for name in target.where if name in results)
        if checks:
            found.append(Judged(target, checks))
    return found


def _check(target: Target, name: str, result: Result) -> Check:
    mine, rival = result.finals(target.policy), result.finals(target.rival)
    margin = paired(target.share * rival - mine)
    verdict: Verdict = "cannot tell" if target.strictly or margin.replications < 2 else "holds"
    if margin.sign != 0:
        verdict = "holds" if margin.sign > 0 else "fails"
    told = [result.finals(policy).mean() for policy in TOLD if policy in result.policies]
    floor = min(told) / rival.mean() if told else float("nan")
    return Check(name, margin, float(mine.mean() / rival.mean()), float(floor), verdict)


# --- In words -------------------------------------------------------------------------------------------------------

PAIRS = (
    (LEARNED, "wait"),
    (LEARNED, "silence-is-failure"),
    (LEARNED, "thompson"),
    (LEARNED, KNOWN),
    (LEARNED, EXACT),
    (KNOWN, "wait"),
    (KNOWN, "silence-is-failure"),
    (KNOWN, EXACT),
    (EXACT, "wait"),
    (EXACT, "silence-is-failure"),
    (EXACT, "thompson"),
    (OPTIMISTIC, "thompson"),
)


class Duel(NamedTuple):
    """Where one policy has less regret than another, more, or neither that could be told: the shares by experiment."""

    policy: str
    rival: str
    less: dict[str, float]
    level: dict[str, float]
    more: dict[str, float]

    @property
    def words(self) -> str:
        """What was measured, in a sentence."""
        count = len(self.less) + len(self.level) + len(self.more)
        said = []
        if self.less:
            said.append(f"less in {len(self.less)} of {count}, at {_span(self.less)} of its regret")
        if self.level:
            said.append(f"no difference that can be told in {len(self.level)}")
        if self.more:
            where = ", ".join(f"{name} ({share:.3g} times)" for name, share in self.more.items())
            said.append(f"more in {len(self.more)}: {where}")
        return f"{self.policy} beside {self.rival}: {'; '.join(said)}."

    def to_dict(self) -> dict[str, Any]:
        return self._asdict() | {"words": self.words}


def _span(shares: Mapping[str, float]) -> str:
    low, high = min(shares.values()), max(shares.values())
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


def fought(results: Mapping[str, Result], pairs: Sequence[tuple[str, str]] = PAIRS) -> list[Duel]:
    """Each strength beside what is done today, and beside the stronger one."""
    found = []
    for policy, rival in pairs:
        sides: dict[int, dict[str, float]] = {1: {}, 0: {}, -1: {}}
        for name, result in results.items():
            if policy in result.policies and rival in result.policies:
                mine, other = result.finals(policy), result.finals(rival)
                sides[paired(other - mine).sign][name] = float(mine.mean() / other.mean())
        if any(sides.values()):
            found.append(Duel(policy, rival, sides[1], sides[0], sides[-1]))
    return found

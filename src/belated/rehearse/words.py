"""What rehearsals say, in the words of a person and in the form of a file."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from belated.inputs import Between
from belated.law import Law
from belated.live.words import plain, span
from belated.rehearse import candidates
from belated.rehearse.findings import Share, When
from belated.rehearse.plan import DAY, Plan
from belated.result import Comparison, paired

if TYPE_CHECKING:
    from belated.rehearse.findings import Rehearsal

ENOUGH = 0.9  # of the rehearsals, for a duration to be recommended


def verdict(found: Rehearsal) -> list[str]:
    """What to do, how long, what it costs, and what the risks are."""
    if found.running is not None:
        return [_stop_or_go(found), _where(found), _stop_now(found), *_going_on(found), _risk(found)]
    said = [_what(found), _how_long(found), _when_to_stop(found), _risk(found), _refreshing(found)]
    return [sentence for sentence in said if sentence]


def _what(found: Rehearsal) -> str:
    best, plan = found.best_policy, found.plan
    text = (
        f"Use {candidates.phrase(best)}: it loses {amount(found.lost(best))} of the {found.best_possible():,.0f} "
        f"conversions that the best arm alone would bring in {day(plan.days(plan.rounds))}"
    )
    equals = found.equals()
    others = [name for name in found.policies if name != best and name not in equals]
    if others:
        text += "; " + " and ".join(f"{candidates.phrase(name)} loses {amount(found.lost(name))}" for name in others)
    if equals:
        names = " and ".join(candidates.phrase(name) for name in equals)
        text += f". Within the error of these rehearsals {names} {'does' if len(equals) == 1 else 'do'} as well"
    return text + "."


def _how_long(found: Rehearsal) -> str:
    known, plan = found.known(found.best_policy), found.plan
    asked = f"P(best) ≥ {plan.certainty:g}"
    if known.by_end.share >= ENOUGH:
        return (
            f"Plan for {day(known.most.days)}: by then an arm has reached {asked} in nine rehearsals of ten, in half "
            f"of them by {day(known.half.days)}."
        )
    text = f"Within {day(plan.days(plan.rounds))} an arm reaches {asked} in {percent(known.by_end)} of the rehearsals"
    if math.isfinite(known.half.days):
        text += f", in half of them by {day(known.half.days)}"
    return text + ": be ready to go on longer, or to choose between arms that are nearly alike."


def _when_to_stop(found: Rehearsal) -> str:
    best, plan = found.best_policy, found.plan
    stopping = found.stopping(best)
    at, (first, last) = stopping.cheapest, found.as_good(best)
    cost = f"{stopping.total[at]:,.0f} ± {1.96 * stopping.total_se[at]:,.0f} conversions in all"
    days = [plain(float(found.days[mark]), 3) for mark in (first, last)]
    range = f"; to stop anywhere from day {days[0]} to day {days[1]} is within that error" if first < last else ""
    return (
        f"If the leader is then used, until {span(plan.horizon * plan.step)} after the start, it is cheapest to stop "
        f"after {day(float(found.days[at]))}, which loses {cost}{range}."
    )


def _risk(found: Rehearsal) -> str:
    known = found.known(found.best_policy)
    if not known.wrong.of:
        return ""
    return (
        f"The risk: whoever stops as soon as P(best) ≥ {found.plan.certainty:g}, looking every {_interval(found)}, has "
        f"the wrong arm in {percent(known.wrong)} of the cases; such a stop loses {rate(known.loss)} on average."
    )


def _refreshing(found: Rehearsal) -> str:
    ages = [name for name in found.changes if name.startswith("refresh")]
    if not ages:
        return ""
    dear = [name for name in ages if found.cost_of(name).sign > 0]
    which, cost = (dear[0], "costs") if dear else (ages[-1], "costs nothing that can be told:")
    return f"A posterior {change(which)}, not at each visitor, {cost} {signed(found.cost_of(which))} conversions."


# --- Of a running experiment ---


def _more(found: Rehearsal, name: str) -> Comparison:
    """What it loses more to go on with that policy until the end than to stop now, by the first policy's reading."""
    return paired(found.total(name, len(found.marks) - 1) - found.total(found.policies[0], 0))


def _stop_or_go(found: Rehearsal) -> str:
    best = min(found.policies, key=lambda name: _more(found, name).difference)
    length, sign = day(found.plan.days(found.plan.rounds)), _more(found, best).sign
    if sign < 0:
        return f"Go on for {length} with {candidates.phrase(best)}: to stop now would lose more."
    if sign > 0:
        return f"Stop now and use {_leader(found)[0]}: to go on for {length} only costs more."
    return f"To stop now and use {_leader(found)[0]}, or to go on for {length}: neither is better within the error."


def _leader(found: Rehearsal) -> tuple[str, float]:
    """Who leads now as the first policy reads it, and P(best) of it."""
    best = found.track(found.policies[0]).best[0, 0]
    return found.plan.arms[int(best.argmax())], float(best.max())


def _where(found: Rehearsal) -> str:
    now = found.running
    assert now is not None
    text = (
        f"{now.leader} leads with P(best) = {now.best:.3f} after {now.asked:,} decisions, {now.pending:,} still pending"
    )
    if found.plan.window is not None and not now.reads_silence:
        leader, best = _leader(found)
        text += f"; if their silence is read as well, {leader} with P = {best:.3f}"
    return f"{text}. Some {now.visitors:,.0f} visitors come a day."


def _stop_now(found: Rehearsal) -> str:
    stopping = found.stopping(found.policies[0])
    return (
        f"To stop now and use {_leader(found)[0]} for {day(found.plan.days(found.plan.horizon))} loses "
        f"{stopping.total[0]:,.0f} ± {1.96 * stopping.total_se[0]:,.0f} conversions to the best arm, "
        f"{1000 * stopping.loss[0]:.2g} ± {1960 * stopping.loss_se[0]:.1g} per 1,000 visitors."
    )


def _going_on(found: Rehearsal) -> list[str]:
    length = day(found.plan.days(found.plan.rounds))
    said = []
    for name in found.policies:
        more = _more(found, name)
        text = {1: "loses more", -1: "loses less", 0: "makes no difference that can be told"}[more.sign]
        who = candidates.phrase(name)
        said.append(f"To go on for {length} with {who}, and choose then, {text}: {signed(more)} conversions.")
    return said


def title(found: Rehearsal) -> str:
    """What the page is called."""
    if found.running is not None:
        return f"{found.running.name}: stop now, or go on?"
    arms = found.plan.arms
    return f"A rehearsal of {', '.join(arms)}" if len(arms) <= 4 else f"A rehearsal of {len(arms)} arms"


# --- Numbers ----------------------------------------------------------------------------------------------------------


def amount(of: Comparison) -> str:
    """A mean of conversions, with the half width of its 95 % interval."""
    return f"{of.difference:,.0f} ± {(of.high - of.low) / 2:,.0f}"


def signed(of: Comparison) -> str:
    """A difference in conversions, with its 95 % interval."""
    return f"{of.difference:+,.1f} [{of.low:+,.1f}, {of.high:+,.1f}]"


def percent(of: Share) -> str:
    """A share with its 95 % interval."""
    return "–" if math.isnan(of.share) else f"{of.share:.0%} [{of.low:.0%}, {of.high:.0%}]"


def _interval(found: Rehearsal) -> str:
    """How often a rehearsal is looked at: how often one looks decides how often one is misled."""
    days = found.plan.days(int(found.marks[1] - found.marks[0])) if len(found.marks) > 1 else 1.0
    return "day" if abs(days - 1.0) < 0.01 else day(days)


def day(days: float) -> str:
    """Days, in words.

    >>> day(7.0), day(1.0), day(0.25), day(9.5)
    ('7 days', '1 day', '6 hours', '9.5 days')
    """
    return span(days * DAY)


def when(of: When, end: float) -> str:
    """A time in days with its 95 % interval; beyond the end it is not known."""
    edges = [f">{plain(end, 3)}" if math.isinf(days) else plain(days, 3) for days in (of.days, of.low, of.high)]
    return edges[0] if math.isinf(of.low) else f"{edges[0]} [{edges[1]}, {edges[2]}]"


def rate(of: Comparison) -> str:
    """A loss per visitor, by the thousand."""
    return f"{plain(1000 * of.difference, 2)} ± {plain(500 * (of.high - of.low), 1)} per 1,000 visitors"


def change(name: str) -> str:
    """What has been changed of a plan."""
    if not name.startswith("refresh"):
        return "no outage"
    return f"read every {span(int(name.split()[1])).removeprefix('1 ')}"


# --- Tables -----------------------------------------------------------------------------------------------------------


def policies(found: Rehearsal) -> tuple[list[str], list[list[str]]]:
    """The heads and rows of what each policy comes to, the least lost first."""
    certainty, end = f"{found.plan.certainty:g}", float(found.days[-1])
    heads = [
        "policy", "conversions lost", f"P ≥ {certainty} by the end", "in half by day", "in nine tenths", "then wrong",
        "cheapest stop", "lost in all",
    ]  # fmt: skip
    rows = []
    for name in sorted(found.policies, key=lambda name: found.lost(name).difference):
        known, stopping = found.known(name), found.stopping(name)
        at = stopping.cheapest
        rows.append(
            [
                candidates.label(name),
                amount(found.lost(name)),
                percent(known.by_end),
                when(known.half, end),
                when(known.most, end),
                percent(known.wrong),
                "now" if found.marks[at] == 0 else f"day {plain(float(found.days[at]), 3)}",
                f"{stopping.total[at]:,.0f} ± {1.96 * stopping.total_se[at]:,.0f}",
            ]
        )
    return heads, rows


def changes(found: Rehearsal) -> list[list[str]]:
    """A row for each change of the plan: what it is, and what it costs the first policy."""
    return [[change(name), signed(found.cost_of(name))] for name in found.changes]


def dress(found: Rehearsal) -> str:
    """What the dress rehearsal showed, in a sentence."""
    made = found.dress
    if made is None:
        return ""
    which = "all" if made.rounds == made.of_rounds else f"the first {made.rounds:,} of"
    every = f"every {day(found.plan.days(made.every))}" if made.every > 1 else "at each visitor"
    text = (
        f"Dress rehearsal: {which} {made.of_rounds:,} visitors of one world were decided for by the live engine itself "
        f"({candidates.phrase(made.policy)}, the posterior read anew {every}); it was told {made.told:,} "
        f"outcomes, {made.duplicates:,} of them again and {made.late:,} after their window, in any order"
    )
    if made.agrees:
        return f"{text}. Every choice and every sum is that of the compiled rehearsal."
    wrong = " and ".join(
        what for what, right in (("choices", made.same_choices), ("sums", made.same_sums)) if not right
    )
    return f"{text}. ITS {wrong.upper()} DIFFER from the compiled rehearsal: do not trust these numbers, and report it."


def assumptions(found: Rehearsal) -> list[tuple[str, str]]:
    """What was assumed, in words."""
    made = found.plan
    rates = ", ".join(f"{name} {_range(rate)}" for name, rate in zip(made.arms, made.rates, strict=True))
    laws = list(dict.fromkeys(made.laws))
    rows = [
        ("arms", rates if found.running is None else f"{', '.join(made.arms)}: drawn from the posterior"),
        ("visitors", f"{DAY / made.step:,.0f} a day, evenly; {made.rounds:,} in {day(made.days(made.rounds))}"),
        (
            "silence",
            "is pending"
            if made.window is None
            else f"for {span(made.window)} is a failure; a success after that takes it back",
        ),
        ("delay", "; ".join(_wait(law, made) for law in laws)),
    ]
    if made.outage is not None:
        start, end = (plain(made.days(each), 3) for each in made.outage)
        rows.append(("outage", f"nothing is heard from day {start} to day {end}; then all of it"))
    if found.running is None:
        rows.append(("duplicates", f"{made.duplicates:.0%} of the outcomes are told again"))
    rows.append(("rehearsals", f"{made.replications:,}, all policies in the same worlds; seed {made.seed}"))
    return rows


def _range(rate: float | Between) -> str:
    return f"{rate.low:g}–{rate.high:g}" if isinstance(rate, Between) else f"{rate:g}"


def _wait(law: Law, made: Plan) -> str:
    """A law by its quartiles, in time."""
    if not law.iid:
        return str(law)
    found = [law.quantile(q) for q in (0.5, 0.9)]
    half, most = ("never" if math.isinf(each) else day(made.days(each)) for each in found)
    return f"half of the outcomes within {half}, nine tenths within {most}"


def to_dict(found: Rehearsal) -> dict[str, Any]:
    """The form of rehearsal.json."""
    made = found.plan
    policies = {}
    for row in found.summary():
        name = row["policy"]
        stopping, known = found.stopping(name), found.known(name)
        policies[name] = {key: _finite(value) for key, value in row.items() if key != "policy"} | {
            "known": known.curve.tolist(),
            "wrong_interval": [known.wrong.low, known.wrong.high],
            "lost_by_day": found.track(name).regret.mean(axis=0).tolist(),
            "loss_per_visitor": stopping.loss.tolist(),
            "loss_se": stopping.loss_se.tolist(),
            "lost_in_all": stopping.total.tolist(),
            "lost_in_all_se": stopping.total_se.tolist(),
        }
    changed = {name: found.cost_of(name)._asdict() for name in found.changes}
    return {
        "provenance": found.provenance,
        "verdict": verdict(found),
        "plan": dict(assumptions(found)) | {"certainty": made.certainty, "horizon": made.days(made.horizon)},
        "days": found.days.tolist(),
        "policies": policies,
        "changes": changed,
        "dress": None if found.dress is None else {**asdict(found.dress), "agrees": found.dress.agrees},
        "running": None if found.running is None else found.running._asdict(),
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

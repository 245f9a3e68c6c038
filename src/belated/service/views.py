"""What the pages show, read from the ledger in snapshots that block no writer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from belated.live import Experiment, Ledger, Summary, ledger
from belated.live.ledger import STANDING
from belated.live.store import Connection, ExperimentRow
from belated.live.summary import ArmSummary, summarised
from belated.live.values import BILLION
from belated.live.version import Standing, posterior, standing
from belated.live.waits import Curve, kaplan_meier, to_come
from belated.live_shown import MOST, OTHERS, POOLED, Belief, History, Steps, nice
from belated.service import problems
from belated.service.drawing import Drawing

EXACT = 50_000  # decisions up to which charts are made from every row; beyond, from totals by time
SLOTS = 40  # of time, at most
EACH = 10  # decisions a slot, at least, on average
BINS = 200  # of waits
LEADERS = 3  # arms whose success rate is drawn over time


class View(NamedTuple):
    """Where an experiment stands, with its arms in the order in which they are shown."""

    row: ExperimentRow
    at: Standing
    summary: Summary
    order: list[int]  # places of the arms, the best first
    colours: dict[int, int]  # of the arms that charts show apart, by place

    @property
    def top(self) -> list[tuple[int, ArmSummary]]:
        """The arms that are shown first, each with the number of its colour."""
        return [(self.colours[place], self.summary.arms[place]) for place in self.order if place in self.colours]

    @property
    def rest(self) -> list[ArmSummary]:
        """The arms that are folded away."""
        return [self.summary.arms[place] for place in self.order if place not in self.colours]


def view(experiment: Experiment, home: Ledger) -> View:
    """Where an experiment stands now."""
    clock = home.ticks()
    with home.store.reading() as connection:
        row = ledger.experiment(connection, experiment.name)
        at = standing(connection, row, clock)
        summary = summarised(connection, at, experiment.settings, clock)
    order = sorted(range(len(summary.arms)), key=lambda place: _rank(summary.arms[place]))
    return View(row, at._replace(last_asked=0), summary, order, _colours(order[:MOST]))


class Card(NamedTuple):
    """An experiment in the list of them."""

    id: int
    name: str
    status: str
    asked: int
    pending: int
    leader: str | None
    best: float
    spark: list[tuple[str, str]]  # a colour and a path, the last drawn uppermost
    notice: str | None = None  # what is wrong with the time at which it was made
    problem: str | None = None  # why it cannot be shown, and all else is nothing


def cards(home: Ledger) -> list[Card]:
    """All experiments, the newest first."""
    return [
        _blank(row, found) if isinstance(found, Exception) else found
        for row, found in reversed(home.each(lambda experiment: _card(experiment, home)))
    ]


def _blank(row: ExperimentRow, error: Exception) -> Card:
    problem = problems.in_a_list(row.name, error)
    return Card(row.id, row.name, row.status, 0, 0, None, 0.0, [], problem=problem.detail)


def _card(experiment: Experiment, home: Ledger) -> Card:
    shown = view(experiment, home)
    with home.store.reading() as connection:
        asked = allocation(connection, shown.row, len(shown.summary.arms))
    whole = shown.summary
    best = next((arm.best for arm in whole.arms if arm.name == whole.leader), 0.0)
    spark = _spark(asked, shown)
    counts = whole.asked, whole.pending
    return Card(shown.row.id, whole.name, whole.status, *counts, whole.leader, best, spark, whole.notice)


def _spark(asked: list[list[int]], shown: View) -> list[tuple[str, str]]:
    """The shares as areas from nought up in a picture of 120 by 28, those that reach lower later."""
    if not asked:
        return []
    places = sorted(shown.colours, key=lambda place: shown.colours[place])
    counts = np.array([asked[place] for place in places], float)
    totals = np.maximum(np.sum(asked, axis=0), 1)
    tops = np.cumsum(counts / totals, axis=0)
    width = 120.0 / len(totals)
    paths = [("others", "M0,28V0H120V28")] if shown.rest else []
    for place, top in reversed(list(zip(places, tops.tolist(), strict=True))):
        steps = "".join(f"V{28 - 28 * share:.1f}H{width * (slot + 1):.1f}" for slot, share in enumerate(top))
        paths.append((str(shown.colours[place]), f"M0,28{steps}V28"))
    return paths


def _rank(arm: ArmSummary) -> tuple[bool, float, float]:
    """Those most likely the best first; retired ones last."""
    return arm.status == "retired", -round(arm.best, 2), -arm.mean


def _colours(places: list[int]) -> dict[int, int]:
    """A number for each arm: its place, or the next free one, so that few arms change theirs when others lead."""
    free = list(range(MOST))
    colours = {}
    for place in sorted(places):
        wanted = place % MOST
        colours[place] = wanted if wanted in free else free[0]
        free.remove(colours[place])
    return colours


def drawing(shown: View, home: Ledger) -> Drawing:
    """What the charts of a view are made from."""
    now = max(home.ticks(), round(shown.summary.at.timestamp() * 1000))
    window = shown.row.failure_after
    with home.store.reading() as connection:
        exact = shown.summary.asked <= EXACT
        history = _history(connection, shown, exact)
        curves, coming = _waits(connection, shown, exact, now)
    ripe = None if window is None else now - window
    leaders = [str(colour) for colour, _ in shown.top[:LEADERS]]
    return Drawing(_beliefs(shown), history, leaders, ripe, curves, window, coming, _learned(shown))


def _beliefs(shown: View) -> list[Belief]:
    a, b = posterior(shown.at)
    beliefs = []
    for place, colour in sorted(shown.colours.items()):
        arm = shown.summary.arms[place]
        beliefs.append(Belief(str(colour), colour, float(a[place]), float(b[place]), arm.low, arm.high))
    return beliefs


def _learned(shown: View) -> dict[str, Steps]:
    """The curve by which silence is read: of all arms, and of those shown apart that have one of their own."""
    learned = shown.summary.learned
    if learned is None or not learned.levels:
        return {}
    own = {str(colour): learned.arms[arm.name] for colour, arm in shown.top if arm.name in learned.arms}
    ages = [(place + 0.5) * learned.step for place in range(len(learned.levels))]
    return {name: Steps(ages, levels) for name, levels in {**dict(sorted(own.items())), POOLED: learned.levels}.items()}


# --- What happened ---


def _apart(shown: View, arm: str) -> str:
    """SQL that leaves the arms that are shown apart as they are, and makes all others one."""
    return f"CASE WHEN {arm} IN ({', '.join(str(int(place)) for place in shown.colours)}) THEN {arm} ELSE -1 END"


def _named(shown: View, place: int) -> str:
    return OTHERS if place < 0 else str(shown.colours[place])


def _history(connection: Connection, shown: View, exact: bool) -> History | None:
    """Sums by slots of time, from rows or from buckets."""
    id, grain = shown.row.id, shown.row.grain
    if not shown.summary.asked:
        return None
    ((first, last),) = connection.rows(
        "SELECT (SELECT MIN(asked_at) FROM decisions WHERE experiment = ?), "
        "(SELECT MAX(asked_at) FROM decisions WHERE experiment = ?)",
        (id, id),
    )
    slots = max(4, min(SLOTS, shown.summary.asked // EACH))
    width = nice(max(1 if exact else grain, -(-(last - first + 1) // slots)))
    start = first // width * width
    arm = _apart(shown, "d.arm" if exact else "arm")
    if exact:
        slot = f"(d.asked_at - {int(start)}) / {int(width)}"
        sql = (
            f"SELECT {slot}, {arm}, COUNT(*), COUNT(o.reward), COALESCE(SUM(o.reward), 0) FROM decisions d "
            f"LEFT JOIN {STANDING} WHERE d.experiment = ? GROUP BY 1, 2"
        )
    else:
        slot = f"(CASE WHEN bucket * {grain} < {start} THEN 0 ELSE bucket * {grain} - {start} END) / {int(width)}"
        sql = (
            f"SELECT {slot}, {arm}, SUM(asked), SUM(told), SUM(rewards) FROM buckets WHERE experiment = ? GROUP BY 1, 2"
        )
    slots = (last - start) // width + 1
    names = [str(colour) for colour in sorted(shown.colours.values())] + [OTHERS] * bool(shown.rest)
    sums = {name: np.zeros((3, slots)) for name in names}
    for at, place, *counts in connection.rows(sql, (id,)):
        sums[_named(shown, place)][:, min(int(at), slots - 1)] += [int(count) for count in counts]
    return History(
        start,
        width,
        {name: each[0].tolist() for name, each in sums.items()},
        {name: each[1].tolist() for name, each in sums.items()},
        {name: (each[2] / BILLION).tolist() for name, each in sums.items()},
    )


def allocation(connection: Connection, row: ExperimentRow, arms: int, slots: int = 24) -> list[list[int]]:
    """How many decisions each arm got in each slot of time, from buckets."""
    ((first, last),) = connection.rows("SELECT MIN(bucket), MAX(bucket) FROM buckets WHERE experiment = ?", (row.id,))
    if first is None:
        return []
    width = -(-(last - first + 1) // slots)
    sums = np.zeros((arms, (last - first) // width + 1), int)
    sql = f"SELECT (bucket - {int(first)}) / {width}, arm, SUM(asked) FROM buckets WHERE experiment = ? GROUP BY 1, 2"
    for slot, arm, asked in connection.rows(sql, (row.id,)):
        sums[arm, int(slot)] = int(asked)
    return sums.tolist()  # type: ignore[no-any-return]


# --- What is late ---


class _Ages(NamedTuple):
    """(arm, wait, outcomes) of what was heard, and (arm, age, decisions) of what was not, in units of `unit` ms."""

    unit: int
    heard: list[tuple[int, int, int]]
    pending: list[tuple[int, int, int]]


def _waits(
    connection: Connection, shown: View, exact: bool, now: int
) -> tuple[dict[str, Steps], tuple[list[float], list[float]] | None]:
    """The curve of each arm that is shown apart, and pooled; and what is expected of the pending, by time from now."""
    ages = (_by_row if exact else _by_bucket)(connection, shown, now)
    if not ages.heard:
        return {}, None
    curves = {}
    for place, colour in sorted(shown.colours.items(), key=lambda each: each[1]):
        curve = _curve(ages, place)
        if len(curve.times):
            curves[str(colour)] = _steps(curve, ages.unit)
    pooled = _curve(ages)
    curves[POOLED] = _steps(pooled, ages.unit)
    return curves, _coming(pooled, ages, shown.row.failure_after)


def _curve(ages: _Ages, place: int | None = None) -> Curve:
    heard = [(wait, count) for arm, wait, count in ages.heard if place in (None, arm)]
    pending = [(age, count) for arm, age, count in ages.pending if place in (None, arm)]
    (waits, came), (reached, waiting) = (zip(*rows, strict=True) if rows else ((), ()) for rows in (heard, pending))
    return kaplan_meier(waits, reached, waits_counts=came, ages_counts=waiting)


def _steps(curve: Curve, unit: int) -> Steps:
    return Steps((curve.times * unit).tolist(), curve.levels.tolist())


def _coming(curve: Curve, ages: _Ages, window: int | None) -> tuple[list[float], list[float]] | None:
    """Outcomes expected within each of some times from now, of what is pending."""
    kept = [(age, count) for _, age, count in ages.pending if window is None or age * ages.unit < window]
    if not kept:
        return None
    reached, waiting = zip(*kept, strict=True)
    within = np.linspace(0.0, float(curve.times[-1]), 61)
    expected = [to_come(curve, reached, counts=waiting, within=time) for time in within]
    if expected[-1] < 0.5:
        return None
    last = next(place for place, count in enumerate(expected) if count >= 0.995 * expected[-1])
    return (within[: last + 1] * ages.unit).tolist(), expected[: last + 1]


def _by_row(connection: Connection, shown: View, now: int) -> _Ages:
    wait = "(CASE WHEN {0} > 0 THEN {0} ELSE 0 END)".format("(COALESCE(o.heard_at, o.received_at) - d.asked_at)")
    rows = f"FROM decisions d JOIN {STANDING} WHERE d.experiment = ?"
    ((longest,),) = connection.rows(f"SELECT MAX({wait}) {rows}", (shown.row.id,))
    unit = max(1, -(-int(longest or 0) // BINS))
    arm = _apart(shown, "d.arm")
    heard = connection.rows(
        f"SELECT {arm}, ({wait} + {unit - 1}) / {unit}, COUNT(*) {rows} GROUP BY 1, 2", (shown.row.id,)
    )
    pending = connection.rows(
        f"SELECT {arm}, ({int(now)} - d.asked_at) / {unit}, COUNT(*) FROM decisions d LEFT JOIN {STANDING} "
        "WHERE d.experiment = ? AND o.decision IS NULL GROUP BY 1, 2",
        (shown.row.id,),
    )
    return _Ages(unit, _ints(heard), _ints(pending))


def _by_bucket(connection: Connection, shown: View, now: int) -> _Ages:
    """From totals by time: what was asked longer ago than any wait and the window counts as of one age."""
    id, grain = shown.row.id, shown.row.grain
    ((longest,),) = connection.rows("SELECT MAX(lag) FROM lags WHERE experiment = ? AND told <> 0", (id,))
    reach = max(int(longest or 0), (shown.row.failure_after or 0) // grain)
    grains = max(1, -(-reach // BINS))
    heard = connection.rows(
        f"SELECT {_apart(shown, 'arm')}, (lag + {grains - 1}) / {grains}, SUM(told) FROM lags "
        "WHERE experiment = ? AND told <> 0 GROUP BY 1, 2",
        (id,),
    )
    newest, oldest = now // grain, now // grain - reach
    age = f"(CASE WHEN bucket >= {newest} THEN 0 WHEN bucket < {oldest} THEN {reach + 1} ELSE {newest} - bucket END)"
    pending = connection.rows(
        f"SELECT {_apart(shown, 'arm')}, {age} / {grains}, SUM(asked - told) FROM buckets WHERE experiment = ? "
        "GROUP BY 1, 2",
        (id,),
    )
    return _Ages(grain * grains, _ints(heard), _ints(pending))


def _ints(rows: list[tuple[int, ...]]) -> list[tuple[int, int, int]]:
    return [(int(arm), int(time), int(count)) for arm, time, count in rows if count]

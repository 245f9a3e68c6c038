"""How decisions and outcomes move the sums that are kept of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from belated.live import ledger
from belated.live.ledger import STANDING, Connection, DecisionRow, OutcomeRow

_NAMES = ("totals", "buckets", "lags")


class Moves:
    """The changes of totals, buckets and lags that a batch makes."""

    def __init__(self) -> None:
        self._buckets: defaultdict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        self._lags: Counter[tuple[int, ...]] = Counter()

    def asked(self, decision: DecisionRow, grain: int) -> None:
        self._buckets[decision.experiment, decision.asked_at // grain, decision.arm][0] += 1

    def told(self, decision: DecisionRow, outcome: OutcomeRow | None, grain: int, sign: int = 1) -> None:
        """An outcome now stands, or with sign -1 stands no longer; one without a reward never did."""
        if outcome is None or outcome.reward is None:
            return
        bucket = decision.asked_at // grain
        counts = self._buckets[decision.experiment, bucket, decision.arm]
        counts[1] += sign
        counts[2] += sign * outcome.reward
        self._lags[decision.experiment, decision.arm, max(0, outcome.heard // grain - bucket)] += sign

    def apply(self, connection: Connection) -> None:
        totals: defaultdict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        for (experiment, _, arm), counts in self._buckets.items():
            total = totals[experiment, arm]
            for place, count in enumerate(counts):
                total[place] += count
        ledger.add(connection, "totals", totals)
        ledger.add(connection, "buckets", self._buckets)
        ledger.add(connection, "lags", {key: (count,) for key, count in self._lags.items()})


class Difference(NamedTuple):
    """A stored sum that is not what the rows give."""

    table: str
    key: tuple[int, ...]
    stored: tuple[int, ...]
    folded: tuple[int, ...]


_COUNTS = "COUNT(*), COUNT(o.reward), COALESCE(SUM(o.reward), 0)"
_LAG = "COALESCE(o.heard_at, o.received_at) / e.grain - d.asked_at / e.grain"
_AFRESH = {
    "totals": f"SELECT d.experiment, d.arm, {_COUNTS} FROM decisions d LEFT JOIN {STANDING} GROUP BY 1, 2",
    "buckets": (
        f"SELECT d.experiment, d.asked_at / e.grain, d.arm, {_COUNTS} FROM decisions d "
        f"JOIN experiments e ON e.id = d.experiment LEFT JOIN {STANDING} GROUP BY 1, 2, 3"
    ),
    "lags": (
        f"SELECT d.experiment, d.arm, {_LAG}, COUNT(*) FROM decisions d "
        f"JOIN experiments e ON e.id = d.experiment JOIN {STANDING} GROUP BY 1, 2, 3"
    ),
}
_STORED = {
    "totals": "SELECT experiment, arm, asked, told, rewards FROM totals",
    "buckets": "SELECT experiment, bucket, arm, asked, told, rewards FROM buckets",
    "lags": "SELECT experiment, arm, lag, told FROM lags",
}
_KEYS = {"totals": 2, "buckets": 3, "lags": 3}


def differences(connection: Connection) -> list[Difference]:
    """Every stored sum that is not what the rows give, the rows being folded afresh by the database."""
    found = []
    for table in _NAMES:
        stored, folded = (_sums(connection, sql[table], _KEYS[table]) for sql in (_STORED, _AFRESH))
        nothing = (0,) * (1 if table == "lags" else 3)
        for key in sorted({*stored, *folded}):
            pair = stored.get(key, nothing), folded.get(key, nothing)
            if pair[0] != pair[1]:
                found.append(Difference(table, key, *pair))
    return found


def _sums(connection: Connection, sql: str, keys: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    return {tuple(map(int, row[:keys])): tuple(map(int, row[keys:])) for row in connection.rows(sql)}


def strays(connection: Connection) -> list[str]:
    """Rows that belong to nothing, and revisions that do not count from 1 on."""
    checks = {
        "outcomes of no decision": (
            "SELECT COUNT(*) FROM outcomes o WHERE NOT EXISTS (SELECT 1 FROM decisions d WHERE d.id = o.decision)"
        ),
        "decisions of no arm": (
            "SELECT COUNT(*) FROM decisions d WHERE NOT EXISTS "
            "(SELECT 1 FROM arms a WHERE a.experiment = d.experiment AND a.arm = d.arm)"
        ),
        "units whose decision there is not": (
            "SELECT COUNT(*) FROM units u WHERE NOT EXISTS "
            "(SELECT 1 FROM decisions d WHERE d.id = u.decision AND d.experiment = u.experiment)"
        ),
        "outcomes with a revision missing": (
            "SELECT COUNT(*) FROM (SELECT decision FROM outcomes GROUP BY decision "
            "HAVING MIN(revision) <> 1 OR MAX(revision) <> COUNT(*)) AS gaps"
        ),
    }
    counts = {what: int(connection.rows(sql)[0][0]) for what, sql in checks.items()}
    return [f"{count} {what}" for what, count in counts.items() if count]

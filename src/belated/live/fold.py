"""How decisions and outcomes move the sums that are kept of them."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from belated.live import ledger
from belated.live.ledger import BINS, STANDING, SUMS, Connection, DecisionRow, ExperimentRow, OutcomeRow


class Moves:
    """The changes of the sums that a batch makes."""

    def __init__(self) -> None:
        self._changes = {table: _zeros(table) for table in SUMS}
        self._totals, self._buckets, self._lags = (self._changes[table] for table in ("totals", "buckets", "lags"))
        self._blocks, self._bins, self._fresh = (self._changes[table] for table in ("blocks", "bins", "fresh"))

    def asked(self, decision: DecisionRow, experiment: ExperimentRow) -> None:
        for sums in self._sums(decision, experiment):
            sums[0] += 1

    def told(self, decision: DecisionRow, outcome: OutcomeRow | None, experiment: ExperimentRow, sign: int = 1) -> None:
        """An outcome now stands, or with sign -1 stands no longer; one without a reward never did."""
        if outcome is None or outcome.reward is None:
            return
        sums = self._sums(decision, experiment)
        for each in sums:
            each[1] += sign
            each[2] += sign * outcome.reward
        id, arm, grain, window = experiment.id, decision.arm, experiment.grain, experiment.failure_after
        self._lags[id, arm, max(0, outcome.heard // grain - decision.asked_at // grain)][0] += sign
        wait = max(0, outcome.heard - decision.asked_at)
        if window is not None and wait < window and outcome.reward > 0:
            width = experiment.width
            bin = wait // width
            edge = decision.asked_at // width + bin + 2  # then that bin is over for the whole block
            sums[2][3] += sign
            self._bins[id, arm, bin][0] += sign
            self._fresh[id, edge, arm, bin][0] += sign

    def _sums(self, decision: DecisionRow, experiment: ExperimentRow) -> list[list[int]]:
        """What counts a decision and its outcome: total, bucket and, if there is a window, block."""
        id, arm, at = experiment.id, decision.arm, decision.asked_at
        sums = [self._totals[id, arm], self._buckets[id, at // experiment.grain, arm]]
        if experiment.failure_after is not None:
            sums.append(self._blocks[id, at // experiment.width, arm])
        return sums

    def apply(self, connection: Connection) -> None:
        for table, changes in self._changes.items():
            ledger.add(connection, table, {key: tuple(counts) for key, counts in changes.items()})


def _zeros(table: str) -> dict[tuple[int, ...], list[int]]:
    nothing = [0] * len(ledger.columns(table)[1])
    return defaultdict(nothing.copy)


class Difference(NamedTuple):
    """A stored sum that is not what the rows give."""

    table: str
    key: tuple[int, ...]
    stored: tuple[int, ...]
    folded: tuple[int, ...]


_COUNTS = "COUNT(*), COUNT(o.reward), COALESCE(SUM(o.reward), 0)"
_HEARD = "COALESCE(o.heard_at, o.received_at)"
_WIDTH = f"(e.grain * ((e.failure_after + {BINS} * e.grain - 1) / ({BINS} * e.grain)))"
_CONVERTED = f"o.reward > 0 AND {_HEARD} - d.asked_at < e.failure_after"
_BLOCK, _BIN = f"d.asked_at / {_WIDTH}", f"({_HEARD} - d.asked_at) / {_WIDTH}"
_ALL = "FROM decisions d JOIN experiments e ON e.id = d.experiment"
_AFRESH = {
    "totals": f"SELECT d.experiment, d.arm, {_COUNTS} FROM decisions d LEFT JOIN {STANDING} GROUP BY 1, 2",
    "buckets": (
        f"SELECT d.experiment, d.asked_at / e.grain, d.arm, {_COUNTS} {_ALL} LEFT JOIN {STANDING} GROUP BY 1, 2, 3"
    ),
    "lags": (
        f"SELECT d.experiment, d.arm, {_HEARD} / e.grain - d.asked_at / e.grain, COUNT(*) {_ALL} JOIN {STANDING} "
        "GROUP BY 1, 2, 3"
    ),
    "blocks": (
        f"SELECT d.experiment, {_BLOCK}, d.arm, {_COUNTS}, COUNT(CASE WHEN {_CONVERTED} THEN 1 END) {_ALL} "
        f"LEFT JOIN {STANDING} WHERE e.failure_after IS NOT NULL GROUP BY 1, 2, 3"
    ),
    "bins": f"SELECT d.experiment, d.arm, {_BIN}, COUNT(*) {_ALL} JOIN {STANDING} WHERE {_CONVERTED} GROUP BY 1, 2, 3",
    "fresh": (
        f"SELECT d.experiment, {_BLOCK} + {_BIN} + 2, d.arm, {_BIN}, COUNT(*) {_ALL} JOIN {STANDING} "
        f"WHERE {_CONVERTED} GROUP BY 1, 2, 3, 4"
    ),
}


def differences(connection: Connection) -> list[Difference]:
    """Every stored sum that is not what the rows give, the rows being folded afresh by the database."""
    found = []
    for table in SUMS:
        keys, counts = ledger.columns(table)
        stored = _sums(connection, f"SELECT {', '.join(keys + counts)} FROM {table}", len(keys))
        folded = _sums(connection, _AFRESH[table], len(keys))
        nothing = (0,) * len(counts)
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

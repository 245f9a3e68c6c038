"""How decisions and outcomes move the sums that are kept of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple, TypeAlias

from belated.live import ledger
from belated.live.ledger import STANDING, SUMS
from belated.live.store import BINS, Connection, DecisionRow, ExperimentRow, OutcomeRow

Sums: TypeAlias = defaultdict[tuple[int, ...], list[int]]


class Moves:
    """The changes of the sums that a batch makes: kept by bucket, of which totals and blocks are made at its end."""

    def __init__(self) -> None:
        self._experiments: dict[int, ExperimentRow] = {}
        self._buckets: Sums = defaultdict(lambda: [0, 0, 0])
        self._lags: Counter[tuple[int, ...]] = Counter()
        self._converted: Counter[tuple[int, int, int, int]] = Counter()  # by experiment, block, arm and bin of the lag

    def asked(self, decision: DecisionRow, experiment: ExperimentRow) -> None:
        self._experiments[experiment.id] = experiment
        self._buckets[experiment.id, decision.asked_at // experiment.grain, decision.arm][0] += 1

    def told(self, decision: DecisionRow, outcome: OutcomeRow | None, experiment: ExperimentRow, sign: int = 1) -> None:
        """An outcome now stands, or with sign -1 stands no longer; one without a reward never did."""
        if outcome is None or outcome.reward is None:
            return
        self._experiments[experiment.id] = experiment
        id, arm, bucket = experiment.id, decision.arm, decision.asked_at // experiment.grain
        counts = self._buckets[id, bucket, arm]
        counts[1] += sign
        counts[2] += sign * outcome.reward
        self._lags[id, arm, max(0, outcome.heard // experiment.grain - bucket)] += sign
        wait, window = max(0, outcome.heard - decision.asked_at), experiment.failure_after
        if window is not None and wait < window and outcome.reward > 0:
            self._converted[id, decision.asked_at // experiment.width, arm, wait // experiment.width] += sign

    def apply(self, connection: Connection) -> None:
        totals: Sums = defaultdict(lambda: [0, 0, 0])
        blocks: Sums = defaultdict(lambda: [0, 0, 0, 0])
        bins: Counter[tuple[int, ...]] = Counter()
        fresh: Counter[tuple[int, ...]] = Counter()
        for (id, bucket, arm), counts in self._buckets.items():
            experiment = self._experiments[id]
            into = [totals[id, arm]]
            if experiment.failure_after is not None:
                into.append(blocks[id, bucket * experiment.grain // experiment.width, arm])
            for sums in into:
                for place, count in enumerate(counts):
                    sums[place] += count
        for (id, block, arm, bin), count in self._converted.items():
            blocks[id, block, arm][3] += count
            bins[id, arm, bin] += count
            fresh[id, block + bin + 2, arm, bin] += count  # from then on that bin is over for the whole block
        for table, moved in (("totals", totals), ("buckets", self._buckets), ("blocks", blocks)):
            ledger.add(connection, table, moved)
        for table, counted in (("lags", self._lags), ("bins", bins), ("fresh", fresh)):
            ledger.add(connection, table, {key: (count,) for key, count in counted.items()})


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

"""An experiment whose ledger is in four parts: each decision lies in one, and the posterior is made of their sums.

Totals are sums over decisions. So the totals of the parts, added, are those of the whole, in whatever part a decision
lies; and whoever has them can decide, without any of the parts.
"""

import json
import tempfile
import uuid
from pathlib import Path

import numpy as np

from belated import Thompson, live
from belated.live import exchange

PARTS = 4
RATES = {"red": 0.06, "green": 0.08, "blue": 0.07}


def ledger(folder, name):
    """A ledger in the folder."""
    return live.open(f"sqlite:///{folder}/{name}.db")


def whole_of(folder):
    """An experiment in one ledger: 3,000 visitors, the outcomes of a third of them still to come."""
    rng = np.random.default_rng(1)
    with ledger(folder, "whole") as shop:
        test = shop.create("checkout", list(RATES))
        decisions = test.ask_many(3000)
        test.tell_many([(each.id, int(rng.random() < RATES[each.arm])) for each in decisions if rng.random() < 2 / 3])
        exchange.export(test, folder / "whole.ndjson")
        return totals(test)


def parts_of(folder):
    """The same decisions, each with its outcome in the part that its id says."""
    header, *rows = (folder / "whole.ndjson").read_text().splitlines()
    files = [[header] for _ in range(PARTS)]
    for row in rows:
        files[uuid.UUID(json.loads(row)["decision"]).int % PARTS].append(row)
    for part, lines in enumerate(files):
        (folder / f"part{part}.ndjson").write_text("\n".join(lines) + "\n")
        with ledger(folder, f"part{part}") as shop:
            yield totals(exchange.load(shop, folder / f"part{part}.ndjson"))


def totals(test):
    """The sum of rewards and the number of outcomes of each arm: all that a posterior needs."""
    arms = test.summary().arms
    return np.array([[arm.successes, arm.observed] for arm in arms]).T


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        whole = whole_of(Path(name))
        parts = list(parts_of(Path(name)))
    print("outcomes of each arm, by part:", *(part[1].astype(int).tolist() for part in parts))
    assert (sum(parts) == whole).all(), "the parts do not add up"

    snapshot = Thompson().resumed(*sum(parts))  # 48 bytes of sums: what a decider is sent
    rng = np.random.default_rng(2)
    shares = np.bincount([snapshot.choose(0, rng) for _ in range(2000)], minlength=3) / 2000
    for arm, share in zip(RATES, shares, strict=True):
        print(f"{arm:6} {share:.3f} ± {np.sqrt(share * (1 - share) / 2000):.3f} of the decisions")

"""Numbers that grow, of one process and of several, and what Prometheus reads of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from belated import live
from belated.service.counts import Counts
from belated.service.metrics import Counted


def test_of_one_process() -> None:
    counts = Counts()
    add = counts.adder(("asks", 'a "name"\n'))
    add(2)
    counts.adder(("tells",))(0.5)
    counts.adder(("asks", 'a "name"\n'))(1)
    assert counts.all() == {("asks", 'a "name"\n'): 3.0, ("tells",): 0.5}


def test_of_several_processes(tmp_path: Path) -> None:
    here = Counts(tmp_path)
    here.adder(("asks", "ü\n"))(1)
    code = (
        "import sys; from pathlib import Path; from belated.service.counts import Counts; "
        "counts = Counts(Path(sys.argv[1])); counts.adder(('tells',))(5); counts.adder(('asks', 'ü\\n'))(2); "
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"  # what it has counted outlives it
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert here.all() == {("asks", "ü\n"): 3.0, ("tells",): 5.0}
    here.adder(("asks", "ü\n"))(1)
    assert Counts(tmp_path).all()["asks", "ü\n"] == 4.0


def test_the_page(tmp_path: Path) -> None:
    counted = [Counted(tmp_path), Counted(tmp_path)]
    for each in counted:
        each.decided('a "name"', 3)
        each.told("late")
        for seconds in (0.0005, 0.001, 0.0011, 99.0):
            each.timed("/x", 200, seconds)
        each.committed(5, 0.3)
    with live.open(f"sqlite:///{tmp_path}/ledger.db") as shop:
        shop.create("test", ["red", "green"]).ask()
        text = bytes(counted[0].page(shop).body).decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["belated_decisions_total", 'a "name"'] == 6
    assert found["belated_outcomes_total", "late"] == 2
    assert found["belated_pending", "test"] == 1
    buckets = {key[1]: value for key, value in found.items() if key[0] == "belated_request_seconds_bucket"}
    assert list(buckets.values()) == sorted(buckets.values())
    assert (buckets["0.001"], buckets["0.0025"], buckets["10.0"], buckets["+Inf"]) == (4, 6, 6, 8)
    assert found["belated_request_seconds_count", "/x", "200"] == 8
    assert abs(found["belated_request_seconds_sum", "/x", "200"] - 2 * 99.0026) < 1e-9
    assert found["belated_commit_operations_bucket", "5.0"] == found["belated_commit_operations_count",] == 2

"""The Result: its statistics, its forms, and that it survives a file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from belated import InvalidInput, Result, Scenario, Split, Thompson, simulate
from belated.delays import Fixed
from belated.result import paired, written_whole


@pytest.fixture(scope="module")
def result() -> Result:
    world = Scenario(means=[0.6, 0.4], delay=Fixed(20), rounds=500)
    return simulate(world, [Thompson(), Split()], replications=40, seed=1)


def test_statistics_are_those_of_the_replications(result: Result) -> None:
    finals = result.finals("thompson")
    assert len(finals) == result.replications == 40
    assert result.mean("thompson")[-1] == pytest.approx(finals.mean())
    assert result.se("thompson")[-1] == pytest.approx(finals.std(ddof=1) / math.sqrt(40))
    assert result.quantile("thompson", 0.5)[-1] == pytest.approx(np.median(finals))
    best, worst = result.summary()
    assert (best["policy"], worst["policy"]) == ("thompson", "split")
    assert abs(worst["regret"] - 50) < 4 * worst["se"]
    assert best["revealed"] + best["pending"] + best["never"] == 500


def test_the_paired_interval_is_students() -> None:
    from scipy import stats

    values = np.random.default_rng(1).normal(0.3, 1.0, 25)
    found = paired(values)
    expected = stats.t.interval(0.95, 24, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)
    assert [paired(np.array(each)).sign for each in ([1.0, 1.1, 0.9], [-1.0, -1.1], [-1.0, 1.0])] == [1, -1, 0]
    assert paired(np.array([2.0])).sign == 0
    assert paired(np.zeros(5)).sign == 0


def test_compare_is_negative_when_the_first_is_better(result: Result) -> None:
    assert result.compare("thompson", "split").sign == -1
    assert result.compare("thompson", "split").difference == -result.compare("split", "thompson").difference


def test_an_unknown_policy_is_named_with_the_nearest(result: Result) -> None:
    with pytest.raises(InvalidInput, match="unknown policy 'thomson'; did you mean 'thompson'"):
        result.compare("thomson", "split")


def test_table_has_columns_of_one_length(result: Result) -> None:
    table = result.table()
    assert {len(column) for column in table.values()} == {2 * len(result.rounds)}
    assert list(table) == ["policy", "round", "mean", "se", "q05", "median", "q95"]


def test_save_and_load_keep_every_number(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "study.npz")
    again = Result.load(tmp_path / "study.npz")
    assert again.policies == result.policies
    assert again.provenance == result.provenance
    for name in ("rounds", "regret", "pulls", "fates", "seconds"):
        assert (getattr(again, name) == getattr(result, name)).all()
    assert [path.name for path in tmp_path.iterdir()] == ["study.npz"]


def test_a_file_that_is_no_result_is_refused(result: Result, tmp_path: Path) -> None:
    (tmp_path / "other.npz").write_text("hello")
    with pytest.raises(InvalidInput, match=r"other\.npz: is not a saved result, or a damaged one"):
        Result.load(tmp_path / "other.npz")
    result.save(tmp_path / "study.npz")
    whole = (tmp_path / "study.npz").read_bytes()
    middle = len(whole) // 2
    for damaged in (b"", whole[:middle], whole[:middle] + b"\0" * 99 + whole[middle + 99 :]):
        (tmp_path / "other.npz").write_bytes(damaged)
        with pytest.raises(InvalidInput, match=r"other\.npz: is not a saved result, or a damaged one"):
            Result.load(tmp_path / "other.npz")
    with pytest.raises(InvalidInput, match=r"missing\.npz: cannot be read: No such file"):
        Result.load(tmp_path / "missing.npz")


def test_a_place_that_cannot_be_written_is_named(result: Result, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InvalidInput, match=r"file/study\.npz: cannot be written: "):
        result.save(tmp_path / "file" / "study.npz")
    (tmp_path / "study.npz").mkdir()
    with pytest.raises(InvalidInput, match=r"study\.npz: cannot be written: Is a directory"):
        result.save(tmp_path / "study.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "study.npz"]


def test_one_replication_has_no_standard_error() -> None:
    world = Scenario(means=[0.6, 0.4], delay=Fixed(20), rounds=50)
    single = simulate(world, [Thompson(), Split()], replications=1)
    assert math.isnan(single.summary()[0]["se"])
    assert single.to_dict()["policies"]["split"]["se"] == [None] * len(single.rounds)
    json.dumps(single.to_dict(), allow_nan=False)


def test_provenance_tells_seed_versions_and_time(result: Result) -> None:
    assert result.provenance["seed"] == 1
    assert result.provenance["replications"] == 40
    assert set(result.provenance["versions"]) >= {"python", "belated", "numpy", "numba"}
    assert result.provenance["seconds"] > 0
    assert "command" in result.provenance
    assert "Fixed(rounds=20)" in result.provenance["study"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("before")

    def interrupted() -> None:
        with written_whole(tmp_path / "kept") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "kept").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1

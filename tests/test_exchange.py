"""Export and import: nothing is lost on the way."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from belated import live
from belated.inputs import InvalidInput
from belated.live import exchange, rows
from belated.live import ledger as tables
from live_support import Clock, filled, opened, sound, words

FORMATS = ("csv", "ndjson", "parquet")


def everything(home: live.Ledger, name: str) -> list[Any]:
    """All that the tables hold of an experiment, but for its number."""
    with home.store.reading() as connection:
        row = tables.experiment(connection, name)
        arms = [arm[1:] for arm in tables.arms(connection, row.id)]
        decisions = [each for chunk in tables.every_decision(connection, row.id) for each in chunk]
        return [row[1:], arms, [(d._replace(experiment=0), revisions) for d, revisions in decisions]]


@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_a_round_trip_loses_nothing(format: str, sticky: bool, ledger_url: str, tmp_path: Path) -> None:
    """Into the store under test, and out of it: the same rows, summary and bytes."""
    clock = Clock()
    one, two, three = (tmp_path / f"{name}.{format}" for name in ("one", "two", "three"))
    with opened(f"sqlite:///{tmp_path}/from.db", clock) as home:
        original = filled(home, clock, sticky=sticky)
        assert exchange.export(original, one) == 60
        with opened(ledger_url, clock) as other:
            other.create("another", ["x", "y"]).ask()  # the next has another number
            imported = exchange.load(other, one)
            assert words(imported) == words(original)
            assert everything(other, "checkout") == everything(home, "checkout")
            assert sound(other)
            exchange.export(imported, two)
            assert two.read_bytes() == one.read_bytes()
        with opened(f"sqlite:///{tmp_path}/to.db", clock) as third:
            assert words(exchange.load(third, two)) == words(original)
            exchange.export(third.get("checkout"), three)
            assert three.read_bytes() == one.read_bytes()


@pytest.mark.parametrize("silence", [live.Pending(), live.Failure(after="30s")])
def test_an_imported_experiment_goes_on(silence: Any, ledger_url: str, tmp_path: Path) -> None:
    """Asked and told the same, it decides the same as the original, which was asked and told too."""
    clock = Clock()
    with opened(f"sqlite:///{tmp_path}/from.db", clock) as home, opened(ledger_url, clock) as other:
        original = filled(home, clock, sticky=True, silence=silence)
        exchange.export(original, tmp_path / "e.csv")
        imported = exchange.load(other, tmp_path / "e.csv")
        assert imported.ask(unit="unit 7").replayed
        held = imported.ask(unit="unit 0").id
        assert [each.tell(held, 0.75, revise=True) for each in (original, imported)] == ["revised", "revised"]
        assert words(imported) == words(original)
        fresh = imported.ask(unit="unit 60")
        assert not fresh.replayed
        assert imported.tell(fresh.id, 1) == "applied"
        assert sound(other)


@pytest.mark.parametrize("format", FORMATS)
def test_an_experiment_without_decisions(format: str, ledger_url: str, tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / f"e.{format}"
    with opened(f"sqlite:///{tmp_path}/from.db", clock) as home, opened(ledger_url, clock) as other:
        original = home.create("empty", ["a", "b"])
        original.archive()
        assert exchange.export(original, path) == 0
        assert words(exchange.load(other, path)) == words(original)


def test_many_rows_in_chunks(ledger_url: str, tmp_path: Path) -> None:
    clock = Clock()
    with opened(f"sqlite:///{tmp_path}/from.db", clock) as home, opened(ledger_url, clock) as other:
        original = home.create("big", ["a", "b"])
        asked = original.ask_many(11_000)
        original.tell_many([(each.id, 1) for each in asked[::2]])
        parts: list[float] = []
        exchange.export(original, tmp_path / "e.ndjson", progress=parts.append)
        assert parts == [5000 / 11_000, 10_000 / 11_000, 1.0]
        parts.clear()
        imported = exchange.load(other, tmp_path / "e.ndjson", progress=parts.append)
        assert len(parts) == 3
        assert parts == sorted(parts)
        assert parts[-1] == 1.0
        assert words(imported) == words(original)
        assert sound(other)


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """A third chunk takes no more than the first: the peak of 15,000 rows is about that of 5,000."""
    clock = Clock()
    peaks = {}
    for chunks in (1, 3):
        with opened(f"sqlite:///{tmp_path}/{chunks}.db", clock) as home:
            made = home.create("big", ["a", "b"])
            for _ in range(chunks):
                made.ask_many(exchange.CHUNK)
            tracemalloc.start()
            exchange.export(made, tmp_path / "e.csv")
            exchange.load(home, _renumbered(tmp_path / "e.csv"), name="again")
            peaks[chunks] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert peaks[3] < 1.5 * peaks[1]


def _renumbered(path: Path) -> Path:
    """The same export with other ids, so that one ledger can hold both."""
    other = path.with_suffix(".other.csv")
    with path.open() as lines, other.open("w") as out:
        for line in lines:
            out.write(line if line.startswith(("#", "decision")) else f"f{line[1:]}")
    return other


def test_it_can_be_read_by_anything(tmp_path: Path) -> None:
    """What the columns say, in each format: reward and times of what stands, all else in `earlier`."""
    import pyarrow.parquet as pq

    clock = Clock()
    with opened(f"sqlite:///{tmp_path}/e.db", clock) as home:
        made = home.create("shop", ["a", "b"], sticky=True)
        id = made.ask(unit="=1,\n"[:3]).id
        clock.pass_(5)
        made.tell(id, 0)
        clock.pass_(5)
        made.tell(id, 1, revise=True, occurred_at=clock() - 2)
        other = made.ask(unit="two").id
        made.tell(other, 0.1)
        made.void(other)
        for format in FORMATS:
            exchange.export(made, tmp_path / f"e.{format}")
    mark, *lines = (tmp_path / "e.csv").read_text().splitlines()
    assert json.loads(mark.removeprefix("# belated "))["name"] == "shop"
    first, second = csv.DictReader(lines)
    assert first["unit"] == "=1,"
    assert first["reward"] == "1"
    assert first["asked_at"] == "2023-11-14T22:13:20.000Z"
    assert first["occurred_at"] == "2023-11-14T22:13:28.000Z"
    assert first["received_at"] == "2023-11-14T22:13:30.000Z"
    assert first["heard_at"] == "2023-11-14T22:13:25.000Z"
    assert first["revision"] == "2"
    (past,) = json.loads(first["earlier"])
    assert (past["reward"], past["revision"], past["received_at"]) == (0, 1, "2023-11-14T22:13:25.000Z")
    assert [second[name] for name in rows.OUTCOME] == [""] * 5
    assert [past["reward"] for past in json.loads(second["earlier"])] == [0.1, None]
    _, *lines = (tmp_path / "e.ndjson").read_text().splitlines()
    assert [json.loads(line)["decision"] for line in lines] == [first["decision"], second["decision"]]
    table = pq.read_table(tmp_path / "e.parquet")
    assert table.column_names == list(rows.COLUMNS)
    assert table["reward"].to_pylist() == [1.0, None]
    assert str(table.schema.field("asked_at").type) == "timestamp[ms, tz=UTC]"


def test_to_an_open_file(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/e.db", Clock()) as home:
        made = home.create("shop", ["a", "b"])
        made.ask()
        for format in FORMATS:
            out = io.BytesIO()
            assert exchange.export(made, out, format) == 1
            exchange.export(made, tmp_path / "e", format)
            assert out.getvalue() == (tmp_path / "e").read_bytes()
        with pytest.raises(InvalidInput, match="format: say which"):
            exchange.export(made, out)

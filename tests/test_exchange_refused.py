"""Exports that cannot be imported: what is refused is named, and leaves nothing behind."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belated import live
from belated.inputs import InvalidInput
from belated.live import exchange
from belated.live.ledger import SUMS
from live_support import Clock, filled, opened, sound


@pytest.fixture
def exported(tmp_path: Path) -> tuple[Clock, Path]:
    clock, path = Clock(), tmp_path / "shop.ndjson"
    with opened(f"sqlite:///{tmp_path}/from.db", clock) as home:
        exchange.export(filled(home, clock, sticky=True), path)
    return clock, path


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def refused(url: str, clock: Clock, path: Path, kind: type[Exception] = InvalidInput) -> str:
    """The error of an import, after which the ledger is as it was, and works."""
    with opened(url, clock) as home:
        before = [each.name for each in home.experiments()]
        with pytest.raises(kind) as error:
            exchange.load(home, path)
        assert [each.name for each in home.experiments()] == before
        with home.store.reading() as connection:
            for table in ("decisions", "outcomes", "units", "arms", *SUMS):
                assert before or connection.rows(f"SELECT COUNT(*) FROM {table}") == [(0,)], table
        assert sound(home)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


ROWS: list[tuple[str, Any, str]] = [
    ("decision", "x", "decision: must be a UUID, got 'x'"),
    ("decision", None, "decision: must be a UUID, got None"),
    ("arm", "blue", "arm: there is none named 'blue' in the header"),
    ("arm", None, "arm: there is none named None in the header"),
    ("propensity", 1.5, "propensity: must be between 0 and 1, got 1.5"),
    ("propensity", "much", "propensity: must be a number, got 'much'"),
    ("propensity", None, "propensity: must be a number, got None"),
    ("propensity", float("nan"), "propensity: must be a number, got nan"),
    ("unit", None, "unit: a sticky experiment needs it"),
    ("unit", 7, "unit: must be a text, got 7"),
    ("unit", "a\tb", "unit: must hold no control character, got 'a\\tb'"),
    ("unit", "unit 3", "unit: 'unit 3' is there already, in the ledger or in a row above"),
    ("asked_at", "yesterday", "asked_at: must be a time such as 2025-01-31T12:00:00Z, got 'yesterday'"),
    ("asked_at", "2023-11-14", "asked_at: must name its time zone, such as …Z or …+01:00, got '2023-11-14'"),
    ("asked_at", "2123-11-14T00:00:00Z", "asked_at: is in the future, got 2123-11-14T00:00:00.000Z"),
    ("asked_at", "1923-11-14T00:00:00Z", "asked_at: must be a time between 1970 and 8000"),
    ("reward", 2, "reward: must be between 0 and 1, got 2"),
    ("reward", "won", "reward: must be a number, got 'won'"),
    ("reward", None, "received_at: there is no reward, so it must be empty, got '"),
    ("received_at", None, "received_at: must be a number, got None"),
    (
        "received_at",
        "2023-11-14T00:00:00Z",
        "received_at: 2023-11-14T00:00:00.000Z is too early: its decision is of ",
    ),
    (
        "occurred_at",
        "2023-11-14T00:00:00Z",
        "occurred_at: 2023-11-14T00:00:00.000Z is too early: its decision is of ",
    ),
    ("heard_at", "2123-11-14T00:00:00Z", "heard_at: is in the future, got 2123-11-14T00:00:00.000Z"),
    ("revision", 3, "revision: must be 1, got 3"),
    ("earlier", "[", "earlier: must be a list in JSON, got '['"),
    ("earlier", {}, "earlier: must be a list, got {}"),
    ("earlier", [{"reward": 1}], "earlier: has no 'occurred_at'"),
    ("earlier", [7], "earlier: must be an object in JSON, got 7"),
]


@pytest.mark.parametrize(("field", "value", "message"), ROWS, ids=lambda value: str(value)[:20])
def test_a_bad_row_is_named_and_nothing_is_imported(
    field: str, value: Any, message: str, ledger_url: str, exported: tuple[Clock, Path]
) -> None:
    clock, path = exported
    lines = lines_of(path)
    place = next(n for n, row in enumerate(lines) if n > 5 and row["reward"] is not None and not row["earlier"])
    lines[place][field] = value
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    kind = live.Conflict if "already" in message else InvalidInput
    found = refused(ledger_url, clock, path, kind)
    assert found.startswith(f"line {place + 1}: {message}")


HEADERS: list[tuple[str, Any, str]] = [
    ("format", 2, "format: must be 1, all that this belated knows, got 2"),
    ("name", " ", "name: must not be empty, got ' '"),
    ("status", "runing", "status: unknown status 'runing'; did you mean 'running'?"),
    ("status", [], "status: unknown status '[]'; there are archived, running, stopped"),
    ("epoch", 0, "epoch: must be at least 1, got 0"),
    ("grain", 1.5, "grain: must be a whole number, got 1.5"),
    ("created_at", None, "created_at: must be a number, got None"),
    ("settings", {}, "settings: are not those of an experiment, got {}"),
    ("settings", 7, "settings: are not those of an experiment, got 7"),
    ("arms", [], "arms: must be a list of 2 to 1000, got []"),
    ("arms", [1, 2], "arms[0]: must be an object in JSON, got 1"),
]


@pytest.mark.parametrize(("field", "value", "message"), HEADERS, ids=lambda value: str(value)[:20])
def test_a_bad_header_is_named(
    field: str, value: Any, message: str, ledger_url: str, exported: tuple[Clock, Path]
) -> None:
    clock, path = exported
    first, *rest = lines_of(path)
    first["belated"][field] = value
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (first, *rest)))
    assert refused(ledger_url, clock, path) == f"header: {message}"


def _cut(text: str) -> str:
    return text[: text.rindex("{") + 40]


FILES: list[tuple[str, Callable[[str], str | bytes], str]] = [
    ("e.csv", lambda text: text, "line 1: must begin with '# belated': this is not an export"),
    ("e.csv", lambda text: "# belated {", "line 1: must be JSON: "),
    (
        "e.csv",
        lambda text: f"# belated {json.dumps(json.loads(text.splitlines()[0])['belated'])}\n",
        "line 2: must name",
    ),
    (
        "e.csv",
        lambda text: f"# belated {json.dumps(json.loads(text.splitlines()[0])['belated'])}\na,b\n",
        "line 2: must",
    ),
    ("e.csv", lambda text: b"\xff\xfe", "line 1: cannot be read: "),
    ("e.ndjson", lambda text: "", "line 1: must be JSON: "),
    ("e.ndjson", lambda text: "{}\n", 'line 1: must be {"belated": …}: this is not an export'),
    ("e.ndjson", lambda text: f"{text}[]\n", "line 62: must be an object of decision, arm"),
    ("e.ndjson", _cut, "line 61: must be JSON: "),
    ("e.ndjson", lambda text: f"{text}{text.splitlines()[9]}\n", "line 62: decision: "),
    ("e.ndjson", lambda text: text.encode() + b"\xff\n", "line "),
    ("e.parquet", lambda text: text, "parquet: cannot be read: "),
]


@pytest.mark.parametrize(("name", "spoil", "message"), FILES, ids=lambda value: str(value)[:20])
def test_a_file_that_is_something_else(
    name: str,
    spoil: Callable[[str], str | bytes],
    message: str,
    ledger_url: str,
    exported: tuple[Clock, Path],
    tmp_path: Path,
) -> None:
    clock, path = exported
    spoilt = spoil(path.read_text())
    (tmp_path / name).write_bytes(spoilt if isinstance(spoilt, bytes) else spoilt.encode())
    kind = live.Conflict if message.endswith("decision: ") else InvalidInput
    assert refused(ledger_url, clock, tmp_path / name, kind).startswith(message)


def test_a_parquet_file_of_something_else(ledger_url: str, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1]}), tmp_path / "e.parquet")
    message = refused(ledger_url, Clock(), tmp_path / "e.parquet")
    assert message == "parquet: this is not an export: its columns are ['a']"


def test_no_such_file(ledger_url: str, tmp_path: Path) -> None:
    assert refused(ledger_url, Clock(), tmp_path / "e.csv") == "cannot be read: No such file or directory"


def test_a_name_that_is_taken_and_another(ledger_url: str, exported: tuple[Clock, Path]) -> None:
    clock, path = exported
    with opened(ledger_url, clock) as home:
        home.create("checkout", ["x", "y"])
    message = refused(ledger_url, clock, path, live.Conflict)
    assert message == "name: there is an experiment named 'checkout' already; import it under another name"
    with opened(ledger_url, clock) as home:
        assert exchange.load(home, path, name="older").name == "older"
        assert sound(home)
        with pytest.raises(live.Conflict, match=r"line 2: decision: .* is there already"):
            exchange.load(home, path, name="again")
        assert [each.name for each in home.experiments()] == ["checkout", "older"]


def test_a_refusal_in_a_later_chunk_takes_back_the_earlier(ledger_url: str, tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "e.ndjson"
    with opened(f"sqlite:///{tmp_path}/from.db", clock) as home:
        made = home.create("big", ["a", "b"])
        made.ask_many(6000)
        exchange.export(made, path)
    text = path.read_text()
    path.write_text(f"{text}{text.splitlines()[1]}\n")
    assert refused(ledger_url, clock, path, live.Conflict).startswith("line 6002: decision: ")


def test_a_refused_import_leaves_alone_what_is_committed_with_it(ledger_url: str, exported: tuple[Clock, Path]) -> None:
    """They share a transaction when they come at the same time."""
    clock, path = exported
    path.write_text(path.read_text() + "[]\n")
    with opened(ledger_url, clock) as home:
        made = home.create("other", ["a", "b"])
        held, go = threading.Event(), threading.Event()
        first = threading.Thread(target=lambda: home.do(lambda connection: (held.set(), go.wait(10))))
        first.start()
        held.wait(10)
        failures: list[Exception] = []

        def load() -> None:
            try:
                exchange.load(home, path)
            except InvalidInput as error:
                failures.append(error)

        others = [threading.Thread(target=load), threading.Thread(target=made.ask), threading.Thread(target=made.ask)]
        for thread in others:
            thread.start()
        go.set()
        for thread in (first, *others):
            thread.join()
        assert len(failures) == 1
        assert made.summary().asked == 2
        assert sound(home)


def test_an_import_that_is_interrupted_ends_soon_and_leaves_nothing(
    ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = Clock(), tmp_path / "e.csv"
    with opened(f"sqlite:///{tmp_path}/from.db", clock) as home:
        made = home.create("big", ["a", "b"])
        made.ask_many(12_000)
        exchange.export(made, path)
    with opened(ledger_url, clock) as home:
        begun, go = threading.Event(), threading.Event()
        parts: list[float] = []

        def progress(part: float) -> None:
            parts.append(part)
            begun.set()
            go.wait(10)

        do = home.do

        def writer(what: Any) -> None:
            with pytest.raises(InvalidInput, match="stopped"):
                do(what)

        def interrupted(what: Any) -> Any:
            threading.Thread(target=writer, args=(what,)).start()
            begun.wait(10)
            threading.Timer(0.1, go.set).start()
            raise KeyboardInterrupt

        monkeypatch.setattr(home, "do", interrupted)
        with pytest.raises(KeyboardInterrupt):
            exchange.load(home, path, progress=progress)
        monkeypatch.undo()
        home.do(lambda connection: None)  # after it
        assert len(parts) == 1
        assert home.experiments() == []
        assert sound(home)


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(f"sqlite:///{tmp_path}/e.db", Clock()) as home:
        made = home.create("shop", ["a", "b"])
        made.ask()

        def fail(part: float) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            exchange.export(made, tmp_path / "out" / "e.csv", progress=fail)
        assert list((tmp_path / "out").iterdir()) == []
        with pytest.raises(InvalidInput, match=r"format: say which: csv, ndjson or parquet; .*e\.txt does not tell"):
            exchange.export(made, tmp_path / "e.txt")
        with pytest.raises(InvalidInput, match="format: unknown format 'cvs'; did you mean 'csv'"):
            exchange.export(made, tmp_path / "e.txt", "cvs")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "belated.live.parquet", raising=False)
    with opened(f"sqlite:///{tmp_path}/e.db", Clock()) as home:
        made = home.create("shop", ["a", "b"])
        with pytest.raises(InvalidInput, match=r"format: parquet needs pyarrow: pip install 'belated\[parquet\]'"):
            exchange.export(made, tmp_path / "e.parquet")
        assert exchange.export(made, tmp_path / "e.csv") == 0

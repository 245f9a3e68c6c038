"""Ledgers of earlier and later schemas, and what is no ledger at all."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crew as task
from belated import live
from belated.live import LiveError, Unavailable, WrongLedger, fold, ledger, schema
from belated.live.values import written
from crew import Hand
from live_support import Clock, opened, sound
from old_ledgers import BEGAN, HOUR, identity, write_first

KEPT = Path(__file__).parent / "ledgers"


def version(shop: live.Ledger) -> int:
    with shop.store.reading() as connection:
        ((found,),) = connection.rows("SELECT MAX(version) FROM belated_schema")
    return int(found)


def check_first(url: str) -> None:
    """What was written in schema 1 is all there, and the ledger works on."""
    now = BEGAN + 20 * HOUR
    with live.open(url, clock=lambda: now / 1000, refresh=0) as shop:
        assert version(shop) == schema.VERSION
        test = shop.get("checkout")
        summary = test.summary()
        found = [(arm.name, arm.asked, arm.observed, arm.assumed, arm.pending, arm.successes) for arm in summary.arms]
        assert found == [("red", 4, 4, 1, 0, 2.0), ("green", 4, 3, 1, 1, 1.75)]
        # Of green two windows have closed, with .75 and nothing; of red all, with two successes in four.
        assert [arm.mean for arm in summary.arms] == pytest.approx([3 / 6, 1.75 / 4])
        with shop.store.reading() as connection:
            assert fold.differences(connection) == []
            assert fold.strays(connection) == []
            lags = ledger.lags(connection, test.id)
        grain = 10 * HOUR // 1024
        waited = [(0, 0, 1), (0, 0, 2), (0, 1, 12), (1, 2, 3), (1, 15, 16)]  # arm, asked, first heard
        expected = Counter((arm, (BEGAN + h * HOUR) // grain - (BEGAN + a * HOUR) // grain) for arm, a, h in waited)
        assert {(arm, lag): told for arm, lag, told in lags} == expected
        assert test.ask(unit="ann").id == written(identity(0))
        assert test.tell(written(identity(3)), 1) == "late"
        assert test.tell(written(identity(7)), 1) == "applied"
        assert test.tell(written(identity(4)), 0.75) == "duplicate"
        test.tell(test.ask(unit="ida").id, 1)
        with shop.store.reading() as connection:
            assert fold.differences(connection) == []
            assert fold.strays(connection) == []


# --- Earlier ----------------------------------------------------------------------------------------------------------


def test_a_ledger_of_schema_1(ledger_url: str) -> None:
    store = live._store(ledger_url)
    write_first(store)
    store.close()
    check_first(ledger_url)
    check_first_again(ledger_url)


def check_first_again(url: str) -> None:
    with live.open(url) as shop:
        assert version(shop) == schema.VERSION
        assert shop.get("checkout").summary().asked == 9


def test_the_kept_file_of_schema_1(tmp_path: Path) -> None:
    shutil.copy(KEPT / "0001.db", tmp_path / "old.db")
    check_first(f"sqlite:///{tmp_path}/old.db")


def test_the_kept_file_of_schema_3(tmp_path: Path) -> None:
    """Its experiments go on as they were created: those with a window wait for it to close."""
    shutil.copy(KEPT / "0003.db", tmp_path / "old.db")
    clock = Clock(1_700_184_954.0)
    with opened(f"sqlite:///{tmp_path}/old.db", clock) as shop:
        assert version(shop) == schema.VERSION
        test = shop.get("checkout")
        summary = test.summary()
        found = [(arm.name, arm.asked, arm.observed, arm.assumed, arm.pending) for arm in summary.arms]
        assert found == [("rød", 30, 30, 11, 0), ("green", 9, 9, 3, 0), ('a "b", c', 21, 21, 5, 0), ("blå", 0, 0, 0, 0)]
        means = [0.296778549375, 0.25287356331034483, 0.3221953836521739, 0.75]
        assert [arm.mean for arm in summary.arms] == pytest.approx(means, rel=1e-12)
        assert summary.reading == "wait"
        assert shop.get("letter").summary().asked == 20
        with shop.store.reading() as connection:
            assert all(connection.rows(f"SELECT * FROM {table}") for table in ledger.SUMS)
        assert sound(shop)
        test.tell(test.ask().id, 1)
        assert shop.create("new", ["a", "b"], silence=live.Failure(after="1d")).settings.reading == "silence"
        assert sound(shop)


@pytest.mark.parametrize("upto", [0, 1])
def test_processes_that_open_it_at_once(new_ledger: Callable[[], str], crew: list[Hand], upto: int) -> None:
    """Each migration happens once, whoever comes first."""
    for _ in range(3 if upto or "postgresql" in new_ledger() else 20):
        url = new_ledger()
        if upto:
            store = live._store(url)
            write_first(store)
            store.close()
        for hand in crew:
            hand.begin(task.open_and_close, url, 1)
        assert [list(hand.answers()) for hand in crew] == [[[[8] * upto]]] * 4
        with live.open(url) as shop:
            with shop.store.reading() as connection:
                numbers = connection.rows("SELECT version FROM belated_schema ORDER BY version")
            assert [number for (number,) in numbers] == list(range(1, schema.VERSION + 1))


def test_a_migration_that_fails_leaves_the_ledger(ledger_url: str, tmp_path: Path, monkeypatch: Any) -> None:
    store = live._store(ledger_url)
    write_first(store)
    store.close()
    broken = tmp_path / "0002_broken.sql"
    broken.write_text("CREATE TABLE half_done (a BIGINT);\nINSERT INTO nowhere VALUES (1);\n")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", [schema.MIGRATIONS[0], broken, *schema.MIGRATIONS[2:]])
        with pytest.raises(Exception, match="nowhere"):
            live.open(ledger_url)
    check_first(ledger_url)


# --- Later, and other -------------------------------------------------------------------------------------------------


def test_a_newer_schema_is_refused(ledger_url: str) -> None:
    with live.open(ledger_url) as shop:
        shop.create("test", ["red", "green"])
        newer = schema.VERSION + 1
        shop.do(lambda connection: connection.many("INSERT INTO belated_schema (version) VALUES (?)", [(newer,)]))
    for _ in range(2):
        with pytest.raises(
            WrongLedger, match=rf"^ledger: its schema is {newer}, newer than {schema.VERSION}, all that"
        ):
            live.open(ledger_url)


def test_a_database_of_something_else_is_refused_and_left(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE customers (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(WrongLedger, match=r"^ledger: it is a database of something else: "):
        live.open(f"sqlite:///{path}")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["other.db"]


def test_a_database_with_other_things_in_it_is_shared(postgres: Any) -> None:
    """In PostgreSQL a ledger has a schema of its own, beside whatever else there is."""
    import psycopg

    name = postgres.create()
    with psycopg.connect(postgres.url(name), autocommit=True) as other:
        other.execute("CREATE TABLE experiments (name TEXT)")
        with live.open(postgres.url(name)) as shop:
            shop.create("test", ["red", "green"]).ask()
        assert other.execute("SELECT COUNT(*) FROM experiments").fetchone() == (0,)
    postgres.drop(name)


@pytest.mark.parametrize(
    ("content", "error", "line"),
    [
        (b"decision,reward\n" * 1000, WrongLedger, "ledger: it is not an SQLite database"),
        (b"x", WrongLedger, "ledger: it is not an SQLite database"),
        (b"SQLite format 3\0" + b"\xff" * 5000, WrongLedger, "ledger: it is not an SQLite database"),
    ],
)
def test_a_file_that_is_no_database(content: bytes, error: type[LiveError], line: str, tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    path.write_bytes(content)
    with pytest.raises(error) as refused:
        live.open(f"sqlite:///{path}")
    assert str(refused.value) == line
    assert path.read_bytes() == content


def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    shutil.copy(KEPT / "0001.db", path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(WrongLedger, match=r"^ledger: it is damaged: "):
        live.open(f"sqlite:///{path}")


def test_a_damaged_page_is_named_to_its_reader_alone(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    with live.open(f"sqlite:///{path}", refresh=0) as shop:
        test = shop.create("test", ["red", "green"])
        for _ in range(3):
            test.ask_many(100)
        with shop.store.reading() as connection:
            ((page,),) = connection.rows("SELECT rootpage FROM sqlite_master WHERE name = 'totals'")
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with live.open(f"sqlite:///{path}", refresh=0) as shop:
        for call in (shop.get("test").summary, shop.get("test").ask):
            with pytest.raises(WrongLedger, match=r"^ledger: it is damaged: "):
                call()
        assert shop.get("test").status == "running"


def test_a_missing_folder_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(WrongLedger, match=r"^ledger: there is no folder .*nowhere"):
        live.open(f"sqlite:///{tmp_path}/nowhere/shop.db")
    with pytest.raises(WrongLedger, match=r"^ledger: .* is a folder"):
        live.open(f"sqlite:///{tmp_path}")


def test_no_server_and_no_database(postgres: Any, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"^ledger: PostgreSQL cannot be reached now: ") as refused:
        live.open(f"postgresql://postgres@/shop?host={tmp_path}")
    assert "\n" not in str(refused.value)
    with pytest.raises(Unavailable, match='database "nowhere" does not exist') as refused:
        live.open(postgres.url("nowhere"))
    assert "\n" not in str(refused.value)

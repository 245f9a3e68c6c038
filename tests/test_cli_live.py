"""`belated live`, as a person meets it: in processes of its own."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from belated import live
from live_support import Clock, filled, opened, words

BELATED = [sys.executable, "-c", "from belated.cli import main; main()", "live"]
HERE = {**os.environ, "BELATED_LEDGER": "sqlite:///shop.db"}


def belated(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BELATED, *arguments], cwd=cwd, env=HERE, capture_output=True, text=True, check=False, timeout=120
    )


def said(command: str, cwd: Path) -> str:
    """What a command that succeeds prints."""
    done = belated(*shlex.split(command), cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a ledger, shop.db, and in it an experiment named checkout."""
    clock = Clock(time.time() - 200_000)
    with opened(f"sqlite:///{tmp_path}/shop.db", clock) as home:
        filled(home, clock)
    return tmp_path


def asked(folder: Path, count: int) -> list[str]:
    with live.open(f"sqlite:///{folder}/shop.db") as home:
        return [decision.id for decision in home.get("checkout").ask_many(count)]


def test_from_creation_to_the_archive(tmp_path: Path) -> None:
    assert said("create checkout --arm red --arm green --silence 7d --prior 2,2 --prior green=1,3", tmp_path) == (
        "checkout: red, green\n"
    )
    id, arm = said("ask checkout --unit user-17", tmp_path).split()
    assert arm in ("red", "green")
    assert said(f"tell {id} 1", tmp_path) == "applied\n"
    assert said(f"tell {id} 1.0", tmp_path) == "duplicate\n"
    assert said(f"tell {id} 0.25 --revise", tmp_path) == "revised\n"
    assert said(f"void {id}", tmp_path) == "voided\n"
    assert said(f"tell {id} 1 --at {time.time():.0f}", tmp_path) == "applied\n"
    status = said("status checkout", tmp_path)
    assert "checkout: running, thompson, silence for 7d is a failure, and read until then, as of " in status
    assert "it is too early to tell; nothing is pending" in status
    for word in ("red", "green", "active", "trials", "95 % interval", "P(best)", "expected loss"):
        assert word in status
    assert said("arms checkout --add blue --prior 1,9 --pause red --retire green", tmp_path).split() == (
        ["arm", "status", "─" * 17, "red", "paused", "green", "retired", "blue", "active"]
    )
    assert json.loads(said("arms checkout --activate red --json", tmp_path)) == (
        {"red": "active", "green": "retired", "blue": "active"}
    )
    assert said("stop checkout", tmp_path) == "checkout: stopped\n"
    assert "checkout is stopped" in belated("ask", "checkout", cwd=tmp_path).stderr
    assert said("resume checkout", tmp_path) == "checkout: running\n"
    assert said("verify", tmp_path) == "ok: 1 experiment, 1 decisions, 1 outcomes\n"
    assert said("archive checkout", tmp_path) == "checkout: archived\n"
    assert "archived" in said("status", tmp_path)
    with live.open(f"sqlite:///{tmp_path}/shop.db") as home:
        arms = home.get("checkout").summary().arms
        assert [round(arm.mean, 9) for arm in arms if arm.name == "blue"] == [0.1]


def test_ask_for_many_in_json_and_again(tmp_path: Path) -> None:
    said("create checkout --arm a --arm b --sticky --floor 0.1", tmp_path)
    first = json.loads(said("ask checkout --unit one --json", tmp_path))
    assert first.keys() == {"id", "arm", "propensity", "asked_at", "unit", "replayed"}
    assert json.loads(said("ask checkout --unit one --json", tmp_path)) == {**first, "replayed": True}
    id = "01890a5d-ac96-774b-bcce-b302099a8057"
    said("create free --arm a --arm b --policy split", tmp_path)
    assert said(f"ask free --id {id}", tmp_path) == said(f"ask free --id {id}", tmp_path)
    lines = said("ask free --count 500", tmp_path).splitlines()
    assert len({line.split()[0] for line in lines}) == 500
    assert {line.split()[1] for line in lines} == {"a", "b"}


def test_status_for_machines_is_the_summary(shop: Path) -> None:
    whole = json.loads(said("status checkout --json", shop))
    (again,) = json.loads(said("status --json", shop))
    for one in (whole, again):
        assert one.pop("at")
    assert whole == again
    assert [arm["status"] for arm in whole["arms"]] == ["paused", "retired", "active", "active"]
    assert whole["arms"][1]["loss"] is None
    table = said("status", shop)
    for word in ("checkout", "running", "thompson", "1d", "60"):
        assert word in table


def test_an_empty_ledger_says_what_to_do(tmp_path: Path) -> None:
    with live.open(f"sqlite:///{tmp_path}/shop.db"):
        pass
    assert said("status", tmp_path) == "There is no experiment yet; `belated live create` makes one.\n"
    assert said("status --json", tmp_path) == "[]\n"
    assert said("verify", tmp_path) == "ok: 0 experiments, 0 decisions, 0 outcomes\n"


def test_waits(shop: Path) -> None:
    table = said("waits checkout", shop)
    for word in ("rød", "all", "half within", "nothing"):  # blå was never asked
        assert word in table
    curves = json.loads(said("waits checkout --unit 1h --json", shop))
    assert curves["unit_ms"] == 3_600_000
    assert curves["arms"]["blå"] is None
    assert len(curves["pooled"]["delays"]) == len(curves["pooled"]["levels"]) > 1


# --- Many outcomes ----------------------------------------------------------------------------------------------------


def test_telling_from_a_file_twice(shop: Path) -> None:
    ids = asked(shop, 4100)
    now = int(time.time())
    lines = ["\ufeffwhen,reward,decision", *(f"{now if n % 2 else ''},{n % 2},{id}" for n, id in enumerate(ids))]
    (shop / "o.csv").write_text("\r\n".join(lines))
    assert said("tell --csv o.csv", shop).split() == ["4,100", "applied", "4,100", "lines"]
    assert said("tell --csv o.csv", shop).split() == ["4,100", "duplicate", "4,100", "lines"]
    assert said("verify", shop).startswith("ok: 1 experiment, 4,160 decisions, ")


def test_every_refused_line_is_named_and_the_others_are_told(shop: Path) -> None:
    ids = asked(shop, 30)
    other = "01890a5d-ac96-774b-bcce-b302099a8057"
    odd = [f"{ids[0]},0", f"{ids[1]},1.5", f"{ids[2]},won", "x,1", f"{other},1", f"{ids[3]}", f"{ids[4]},nan"]
    lines = ["decision,reward", *(f"{id},1" for id in ids[:1] + ids[5:]), *odd, *(["y,1"] * 20)]
    (shop / "o.csv").write_text("\n".join(lines))
    done = belated("tell", "--csv", "o.csv", cwd=shop)
    assert done.returncode == 1
    assert done.stdout.split() == (["26", "applied", "1", "conflict", "25", "invalid", "1", "not-found", "53", "lines"])
    named = done.stderr.splitlines()
    assert named[:7] == [
        f"line 28: reward: decision {ids[0]} already has 1, got 0; say revise to correct it",
        "line 29: reward: must be between 0 and 1, got 1.5",
        "line 30: reward: must be a number between 0 and 1, got 'won'",
        "line 31: decision: must be a UUID, got 'x'",
        f"line 32: decision: there is none with the id {other}",
        "line 33: columns: must be 2, got 1",
        "line 34: reward: must be a number between 0 and 1, got nan",
    ]
    assert len(named) == 21
    assert named[-1] == "and 7 more"
    (shop / "o.csv").write_text(f"decision,reward\n{ids[0]},0\n")
    assert said("tell --csv o.csv --revise", shop).split() == ["1", "revised", "1", "lines"]


def test_late_outcomes_are_counted_as_such(tmp_path: Path) -> None:
    clock = Clock(time.time() - 100_000)
    with opened(f"sqlite:///{tmp_path}/shop.db", clock) as home:
        id = home.create("old", ["a", "b"], silence=live.Failure(after="1d")).ask().id
    (tmp_path / "o.csv").write_text(f"decision,reward,when\n{id},1,2020-01-01T00:00:00Z\n{id},1,\n")
    done = belated("tell", "--csv", "o.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.split() == ["1", "late", "1", "invalid", "2", "lines"]
    assert done.stderr.startswith("line 2: occurred_at: 2020-01-01T00:00:00.000Z is before its decision")


# --- Out and in -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["csv", "ndjson", "parquet"])
def test_export_and_import(format: str, shop: Path) -> None:
    assert said(f"export checkout kept/e.{format}", shop) == f"60 decisions in kept/e.{format}\n"
    url = "sqlite:///other.db"
    made = said(f"import kept/e.{format} --ledger {url} --name again", shop)
    assert made == "again: 60 decisions, 41 outcomes\n"
    said(f"export again back.{format} --ledger {url}", shop)
    clock = Clock(time.time())
    with opened(f"sqlite:///{shop}/shop.db", clock) as one, opened(f"sqlite:///{shop}/other.db", clock) as other:
        assert words(other.get("again")).replace('"again"', '"checkout"') == words(one.get("checkout"))
    if format != "parquet":
        same = (shop / f"back.{format}").read_text().replace('"again"', '"checkout"')
        assert same == (shop / "kept" / f"e.{format}").read_text()
        assert said(f"export checkout - --format {format}", shop) == same


def test_export_to_a_reader_who_has_seen_enough(shop: Path) -> None:
    asked(shop, 20_000)
    process = subprocess.Popen(
        [*BELATED, "export", "checkout"], cwd=shop, env=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline().startswith(b"# belated {")
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 1  # typer's word for it


# --- Verifying --------------------------------------------------------------------------------------------------------


def test_verify_names_every_difference(shop: Path) -> None:
    with sqlite3.connect(shop / "shop.db") as raw:
        ((told,),) = raw.execute("SELECT told FROM totals WHERE arm = 1").fetchall()
        raw.execute("UPDATE totals SET told = told + 1 WHERE arm = 1")
        raw.execute("UPDATE lags SET told = told + 1 WHERE arm = 0 AND lag = (SELECT MIN(lag) FROM lags WHERE arm = 0)")
        raw.execute("INSERT INTO buckets VALUES (9, 0, 4, 1, 0, 0)")
        raw.execute("INSERT INTO blocks VALUES (1, 1000000, 1, 3, 2, 500000000, 1)")
        raw.execute("INSERT INTO bins VALUES (1, 0, 49, 1)")
        raw.execute("INSERT INTO fresh VALUES (1, 1000000, 0, 49, 1)")
        raw.execute("INSERT INTO outcomes VALUES (x'00', 1, 0, NULL, 0, NULL)")
    raw.close()
    done = belated("verify", cwd=shop)
    assert done.returncode == 1
    totals, bucket, lag, block, bin, fresh, stray = done.stdout.splitlines()
    assert totals.startswith("checkout / green: stored ")
    assert f"{told + 1} told" in totals.split(";")[0]
    assert f"{told} told" in totals.split(";")[1]
    assert bucket == "no. 9 / no. 4: stored 1 asked, 0 told, rewards 0; folded 0 asked, 0 told, rewards 0"
    assert lag.startswith("checkout / rød, heard ")
    edge = "2024-10-04T00:00:00.000Z"  # of a block of 1728 seconds
    asked = (
        f"checkout / green, asked in the 1728s from {edge}: stored 3 asked, 2 told, 1 converted, rewards 0.5; folded 0"
    )
    assert block.startswith(asked)
    assert bin == "checkout / rød, converted 84672s later: stored 1 converted; folded 0 converted"
    assert fresh.startswith(f"checkout / rød, counting from {edge}, converted 84672s later: stored 1")
    assert stray == "1 outcomes of no decision"
    assert done.stderr == "7 differences\n"


# --- What is refused --------------------------------------------------------------------------------------------------

ID = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("status chekout", "experiment: there is none named 'chekout'"),
        ("status --ledger sqlite:///nowhere.db", "ledger: there is no file nowhere.db; `belated live create` makes it"),
        ("status --ledger shop.db", "ledger: must be sqlite:///FILE or postgresql://…, got 'shop.db'"),
        ("create x --arm a --arm b --ledger sqlite:///no/such.db", "ledger: there is no folder "),
        ("status --ledger sqlite:///text.txt", "ledger: it is not an SQLite database"),
        ("create checkout --arm a --arm b", "name: there is an experiment named 'checkout' already"),
        ("create new --arm a", "arms: must be 2 to 1000, got 1"),
        ("create new --arm a --arm a", "arms: 'a' is given twice"),
        ("create new --arm a --arm ''", "arms: must not be empty, got ''"),
        ("create new --arm a --arm b --reading silence", "reading: silence cannot be read where silence is pending"),
        ("create new --arm a --arm b --silence soon", "silence.after: must be a time such as 7d, 12h, 30m"),
        ("create new --arm a --arm b --policy tompson", "policy: unknown live policy 'tompson'; did you mean"),
        ("create new --arm a --arm b --floor 0.6", "floor: 2 active arms cannot have at least 0.6 each"),
        ("create new --arm a --arm b --prior 1", "--prior: must be two numbers, such as 1,1, or red=2,8, got '1'"),
        ("create new --arm a --arm b --prior c=1,1", "priors: unknown arm 'c'; there are a, b"),
        ("create new --arm a --arm b --prior 0,1", "prior: must be at least 0.001, got 0"),
        ("ask checkout --count 0", "count: must be at least 1, got 0"),
        ("ask checkout --count x", "Invalid value for '--count'"),
        ("ask checkout --count 2 --unit u", "--count: is not for a unit or an id"),
        ("ask checkout --id 7", "id: must be a UUID, got '7'"),
        (f"tell {ID} 1", f"decision: there is none with the id {ID}"),
        (f"tell {ID} 2", "reward: must be between 0 and 1, got 2"),
        (f"tell {ID} won", "reward: must be a number between 0 and 1, got 'won'"),
        (f"tell {ID} 1 --at noon", "occurred_at: must be a time such as 2025-01-31T12:00:00Z, got 'noon'"),
        (f"tell {ID}", "tell: needs a decision and its reward, or --csv FILE"),
        (f"tell {ID} 1 --csv text.txt", "--csv: has the decisions"),
        ("tell --csv none.csv", "none.csv: cannot be read: No such file or directory"),
        ("tell --csv text.txt", "text.txt: line 1: must name the columns decision, reward and, if wished, when; got "),
        ("void 7", "decision: must be a UUID, got '7'"),
        ("waits checkout --unit x", "unit: must be a time such as"),
        ("arms checkout --pause blue", "arm: there is none named 'blue' in checkout"),
        ("arms checkout --activate green", "arm: green is retired, for good"),
        ("arms checkout --prior 1,1", "--prior: is for new arms: give --add too"),
        ("export checkout e.txt", "format: say which: csv, ndjson or parquet; e.txt does not tell"),
        ("export checkout --format parquet", "--format: parquet needs a file"),
        ("export checkout text.txt/e.csv", "text.txt/e.csv: cannot be written: "),
        ("import none.csv", "none.csv: cannot be read: No such file or directory"),
        ("import text.txt --format csv", "text.txt: line 1: must begin with '# belated': this is not an export"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(command: str, message: str, shop: Path) -> None:
    (shop / "text.txt").write_text("kept " * 1000)
    done = belated(*shlex.split(command), cwd=shop)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert {path.name for path in shop.iterdir()} <= {"shop.db", "shop.db-wal", "shop.db-shm", "text.txt"}
    with live.open(f"sqlite:///{shop}/shop.db") as home:
        assert [(each.name, each.summary().asked) for each in home.experiments()] == [("checkout", 60)]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///cut.db", "ledger: it is damaged: database disk image is malformed"),
        ("postgresql://localhost/x?nope=1", 'ledger: invalid URI query parameter: "nope"'),
        ("postgresql://localhost:1/x", "ledger: PostgreSQL cannot be reached now: "),
    ],
)
def test_a_ledger_that_cannot_be_opened_is_one_line(url: str, message: str, shop: Path) -> None:
    with sqlite3.connect(shop / "shop.db") as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw.close()
    (shop / "cut.db").write_bytes((shop / "shop.db").read_bytes()[:5000])
    done = belated("status", "--ledger", url, cwd=shop)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"error: {message}")


def test_a_ledger_must_be_named(tmp_path: Path) -> None:
    given = {key: value for key, value in HERE.items() if key != "BELATED_LEDGER"}
    done = subprocess.run([*BELATED, "status"], cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: Missing option '--ledger'")
    assert "BELATED_LEDGER" in done.stderr


def test_ctrl_c_while_telling_says_how_to_go_on(shop: Path) -> None:
    ids = asked(shop, 100)
    with (shop / "o.csv").open("w") as out:
        out.write("decision,reward\n")
        out.writelines(f"{ids[n % 100]},1\n" for n in range(2_000_000))
    process = subprocess.Popen(
        [*BELATED, "tell", "--csv", "o.csv"], cwd=shop, env=HERE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    time.sleep(4)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    told, _, stopped = errors.strip().splitlines()
    assert told.endswith(" lines were told; run it again for the rest")
    assert stopped == "stopped; nothing was left half-written"
    assert said("verify", shop).startswith("ok")


def test_ctrl_c_while_importing_leaves_nothing(shop: Path) -> None:
    said("export checkout e.ndjson", shop)
    mark, *rows = (shop / "e.ndjson").read_text().splitlines()
    row = {**json.loads(rows[0]), "unit": None}
    with (shop / "e.ndjson").open("w") as out:
        out.write(f"{mark}\n")
        out.writelines(json.dumps({**row, "decision": f"{n:032x}"}) + "\n" for n in range(600_000))
    process = subprocess.Popen(
        [*BELATED, "import", "e.ndjson", "--name", "big"], cwd=shop, env=HERE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    time.sleep(4)
    assert process.poll() is None
    began = time.perf_counter()
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert time.perf_counter() - began < 15
    assert (process.returncode, errors.strip()) == (130, "stopped; nothing was left half-written")
    assert said("verify", shop).startswith("ok: 1 experiment, 60 decisions, ")


def test_help_is_light(tmp_path: Path) -> None:
    """The live engine is not imported for the sake of the help, nor numba for the engine's."""
    code = "import sys, belated.cli; print([name for name in sys.modules if name.startswith('belated.live')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "[]\n"
    code = "import sys, belated.screen_live, belated.live.exchange; print({'numba', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "set()\n"

"""`belated rehearse`, as a person meets it: in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from belated.cli import main

SMALL = """
visitors = 50
days = 8
window = "2d"
delay = "exponential:12h"
refresh = ["6h"]
replications = 10
[arms]
red = 0.3
green = "0.3..0.5"
"""
COMMAND = [sys.executable, "-c", "from belated.cli import main; main()", "rehearse"]


def rehearsed(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=240)


def test_a_plan_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(SMALL)
    done = rehearsed("plan.toml", "--out", "kept", cwd=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    text = " ".join(done.stdout.split())
    for word in ("Use Thompson sampling", "conversions lost", "Dress rehearsal: all 400", "read every 6 hours"):
        assert word in text
    assert "Every choice and every sum is that of the compiled rehearsal." in text
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"report.html", "rehearsal.json"}
    read = json.loads((tmp_path / "kept" / "rehearsal.json").read_text())
    assert read["provenance"]["command"].endswith("rehearse plan.toml --out kept")
    assert read["verdict"][0] in text


def within(arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the command, run in this process."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["belated", "rehearse", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_json_for_machines_and_options_over_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.toml").write_text(SMALL)
    options = ("plan.toml", "--json", "--seed", "7", "--replications", "4")
    assert within(options, tmp_path, monkeypatch) == 0
    written = capsys.readouterr()
    read = json.loads(written.out)
    assert written.err == ""
    assert read["provenance"]["seed"] == 7
    assert read["plan"]["rehearsals"].startswith("4,")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


def test_the_example_is_printed_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert within(("--example",), tmp_path, monkeypatch) == 0
    assert capsys.readouterr().out == (Path(__file__).parent.parent / "examples" / "plan.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.toml",), "error: nowhere.toml: cannot be read: No such file or directory"),
        (("--replications", "many"), "error: replications: must be a whole number, got 'many'"),
        (("--out", "/dev/null/x"), "error: --out: /dev/null is a file, not a folder"),
        (("--workers", "0"), "error: workers: must be at least 1, got 0"),
        (("--days", "0.001"), "error: visitors: a rehearsal needs 10 at least in all its days, got 1"),
        (("--ledger", "sqlite:///shop.db"), "error: --experiment: is needed too"),
        (("--experiment", "checkout"), "error: --ledger: is needed too"),
        (("--ledger", "sqlite:///shop.db", "--experiment", "x"), "error: ledger: there is no file shop.db"),
        (("plan.toml", "--ledger", "x", "--experiment", "x"), "error: plan: is not for a running experiment"),
    ],
)
def test_bad_input_is_one_line(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert within(arguments, tmp_path, monkeypatch) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith(message)
    assert written.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_ctrl_c_leaves_one_line_and_no_files(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(SMALL.replace("visitors = 50", "visitors = 300000").replace("= 10", "= 500"))
    process = subprocess.Popen(
        [*COMMAND, "plan.toml", "--workers", "1"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    time.sleep(2.5)
    if process.poll() is not None:
        raise AssertionError(f"it has ended already: {process.communicate()}")
    began = time.perf_counter()
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert time.perf_counter() - began < 15
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "stopped; nothing was left half-written"
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]

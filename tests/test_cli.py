"""The command line, as a person meets it: in processes of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from belated import Result
from belated.delays import LAWS
from belated.policies import POLICIES


def belated(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from belated.cli import main; main()", *arguments],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip


ONE_LINER = ("simulate", "--arms", ".5,.4,.3", "--delay", "geometric:0.01", "--rounds", "500", "--replications", "5")


def test_simulate_without_a_file(tmp_path: Path) -> None:
    done = belated(*ONE_LINER, cwd=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    for word in ("thompson", "ucb1", "elimination", "split", "95 % interval", "pending"):
        assert word in done.stdout
    assert not list(tmp_path.iterdir())


def test_simulate_from_a_file_with_an_option_over_it(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'means = "0.2..0.8"\narms = 4\ndelay = "loss:0..1"\nrounds = 300\n'
        'policies = ["thompson", "split"]\nreplications = 3\n'
    )
    done = belated("simulate", "study.toml", "--seed", "9", "--policy", "ucb1", "--out", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept = tmp_path / "kept"
    assert {path.name for path in kept.iterdir()} == {
        "report.html", "results.json", "result.npz", "regret.svg", "regret.png", "regret-log.svg", "regret-log.png",
    }  # fmt: skip
    read = json.loads((kept / "results.json").read_text())
    assert read["provenance"]["seed"] == 9
    assert "simulate study.toml --seed 9" in read["provenance"]["command"]
    assert list(read["experiments"]["study"]["policies"]) == ["ucb1"]
    assert Result.load(kept / "result.npz").replications == 3


def test_paper_with_few_replications(tmp_path: Path) -> None:
    run = ("paper", "--replications", "2", "--experiment", "delay-sweep", "--experiment", "geometric", "--out", "o")
    done = belated(*run, "--fixed-instance", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("delay-sweep/0", "delay-sweep/1000", "geometric", "claim", "E1.4", "E4.1", "open o/report.html"):
        assert word in done.stdout
    first = json.loads((tmp_path / "o" / "results.json").read_text())
    assert belated(*run, "--workers", "1", "--fixed-instance", "3", cwd=tmp_path).returncode == 0
    again = json.loads((tmp_path / "o" / "results.json").read_text())
    assert again["experiments"] == first["experiments"]
    assert again["claims"] == first["claims"]


def test_silence_with_one_replication(tmp_path: Path) -> None:
    """Where no interval is finite, all is written all the same."""
    run = (
        "silence",
        "--replications",
        "1",
        "--experiment",
        "reward/neither",
        "--experiment",
        "speed/trap",
        "--out",
        "o",
    )
    done = belated(*run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("speed/trap", "S3", "cannot tell", "thompson-silence beside wait", "open o/report.html"):
        assert word in done.stdout
    assert json.loads((tmp_path / "o" / "results.json").read_text())["claims"][0]["evidence"][0]["low"] is None


BOUND = ("bound", "--arms", ".45,.4", "--delay", "pareto:1,0.5", "--rounds", "3000")


def test_bound_prints_every_bound_and_what_minimises_it(tmp_path: Path) -> None:
    done = belated(*BOUND, cwd=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    table = {words[0]: words for line in done.stdout.splitlines() if len(words := line.split()) > 2}
    for name in ("thompson-certified", "thompson*", "elimination", "phased", "ucb1", "patient", "lai-robbins"):
        assert name in table
    assert table["thompson*"][1:] == ["626,698", "4,178", "0.9969,", "0.9768", "320,", "1,864"]
    assert "Always pulling the worst arm costs 150.0" in done.stdout
    assert "O(8,020)" in done.stdout
    assert "measured" not in done.stdout


def test_bound_with_what_is_measured(tmp_path: Path) -> None:
    done = belated(*BOUND, "--quick", "--simulate", "--replications", "20", cwd=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert "measured, ± s.e." in done.stdout
    assert len(re.findall(r"[\d.]+ ± [\d.]+ ", done.stdout)) == 5
    assert "certified" not in done.stdout
    assert belated(*BOUND, "--quick", "--simulate", "--replications", "20", "--seed", "1", "--workers", "1",
                   cwd=tmp_path).stdout == done.stdout  # fmt: skip
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("command", "names"), [("policies", POLICIES), ("delays", LAWS)])
def test_listings_name_everything_with_its_parameters(command: str, names: dict[str, object], tmp_path: Path) -> None:
    done = belated(command, cwd=tmp_path)
    assert done.returncode == 0
    for name in names:
        assert name in done.stdout
    assert "prior=(1.0, 1.0)" in done.stdout or command == "delays"


SIMULATE = "simulate --arms .5,.4 --delay fixed:1 --rounds 9"
DELAYED = "simulate --arms .5,.4 --rounds 9 --delay"
BOUNDED = "bound --quick --arms .5,.4 --delay fixed:1 --rounds 9"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{SIMULATE} --arms .5,1.4", "means[1]: must be between 0 and 1, got 1.4"),
        (f"{SIMULATE} --arms .5", "means: at least two arms are needed, got 1"),
        (f"{SIMULATE} --arms ''", "means: at least two arms are needed, got none"),
        (f"{SIMULATE} --arms ²x0..1", "arms: must be means, such as .5,.4, or a count and a range"),
        (f"{SIMULATE} --arms 3y0.1..0.2", "means: must be a number or a range such as 0.25..0.75, got '3y0.1..0.2'"),
        (f"{DELAYED} pareto:-1", "delay.alpha: must be above 0, got -1"),
        (f"{DELAYED} loss:1.5", "delay.p: must be between 0 and 1, got 1.5"),
        (f"{DELAYED} parto:1", "delay: unknown law 'parto'; did you mean 'pareto'?"),
        (f"{SIMULATE} --rounds -9", "rounds: must be at least 1, got -9"),
        (f"{SIMULATE} --rounds lots", "rounds: must be a whole number, got 'lots'"),
        (f"{SIMULATE} --rounds +-5", "rounds: must be a whole number, got '+-5'"),
        (f"{SIMULATE} --workers all", "workers: must be a whole number, got 'all'"),
        ("paper --replications few", "replications: must be a whole number, got 'few'"),
        ("simulate --arms .5,.4 --delay fixed:1", "rounds: is needed"),
        (f"{SIMULATE} --policy tomson", "policies: unknown policy 'tomson'; did you mean 'thompson'?"),
        (f"{SIMULATE} --replications 9999999999", "replications: 9999999999 would need"),
        ("simulate none.toml", "none.toml: cannot be read: No such file or directory"),
        ("simulate --round 9", "No such option: --round"),
        ("paper --experiment fixd", "experiment: unknown experiment 'fixd'; did you mean 'fixed'?"),
        ("silence --experiment sped", "experiment: unknown experiment 'sped'; did you mean 'speed'?"),
        ("paper --replications 0", "replications: must be at least 1, got 0"),
        ("paper --seed -4", "seed: must be at least 0, got -4"),
        ("paper --fixed-instance -4", "instance: must be at least 0, got -4"),
        ("papr", "No such command 'papr'"),
        ("simulate", "means: is needed, in the study file or as --arms"),
        (f"{SIMULATE} --policy phased:first_phase=5000", "policy.first_phase: growth^first_phase is too large"),
        (f"{SIMULATE} --policy ucb1:log=7", "policy.log: must be true or false, got 7"),
        (f"{SIMULATE} --out file/here", "--out: "),
        ("paper --replications 1 --experiment geometric --out file", "--out: "),
        (f"{SIMULATE} --arms .5,.2...3", "means[1]: must be one number, not a range, got 0.2..0.3"),
        (f"{BOUNDED} --arms .5,.5", "means: there must be one best arm, got two of mean 0.5"),
        (f"{BOUNDED} --arms .5", "means: at least two arms are needed, got 1"),
        (f"{BOUNDED} --arms .5,1.4", "means[1]: must be between 0 and 1, got 1.4"),
        (f"{BOUNDED} --arms .5,.2...3", "means[1]: must be one number, not a range, got 0.2..0.3"),
        (f"{BOUNDED} --arms 20x0.25..0.75", "arms: must be means, for a bound is of one instance, got '20x0.25..0.75'"),
        (f"{BOUNDED} --delay queue:0.1", "delay[1]: must be a law of independent delays, got Queue"),
        (f"{BOUNDED} --rounds -9", "rounds: must be at least 1, got -9"),
        (f"{BOUNDED} --rounds 1", "rounds: must be at least 2, got 1"),
        (f"{BOUNDED} --rounds lots", "rounds: must be a whole number, got 'lots'"),
        (f"{BOUNDED} --replications 9", "replications: is for a simulation: add --simulate"),
        (f"{BOUNDED} --simulate --replications 0", "replications: must be at least 1, got 0"),
        ("bound --arms .5,.4 --rounds 9", "Missing option '--delay'"),
        ("bound --arms .5,.4 --delay parto:1 --rounds 9", "delay: unknown law 'parto'; did you mean 'pareto'?"),
        ("bound --arms .5,.4 --delay loss:0..1 --rounds 9", "delay[0]: must have numbers, not ranges, for parameters"),
        (
            "bound --arms .5,.4 --delay fixed:1,2,3 --rounds 9",
            "delay: must be one law or one for each of 2 arms, got 3",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    done = belated(*shlex.split(command), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_a_command_the_help_is_shown_and_no_empty_error(tmp_path: Path) -> None:
    done = belated(cwd=tmp_path)
    assert "Usage:" in done.stdout + done.stderr
    assert "error" not in done.stderr


def test_a_folder_that_fails_late_is_one_line(tmp_path: Path) -> None:
    """It looked writable before the run, but a figure's name is taken by a folder."""
    (tmp_path / "kept" / "regret.svg").mkdir(parents=True)
    done = belated(*ONE_LINER, "--out", "kept", cwd=tmp_path)
    assert done.returncode == 2
    kept, error = done.stderr.splitlines()
    assert kept == "what is finished is kept in kept/unfinished: the same command with --resume goes on"
    assert error == "error: kept/regret.svg: cannot be written: Is a directory"
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"regret.svg", "unfinished"}
    (tmp_path / "kept" / "regret.svg").rmdir()
    again = belated(*ONE_LINER, "--out", "kept", cwd=tmp_path)
    assert (again.returncode, again.stderr) == (
        2, "error: --out: kept holds an interrupted run: add --resume to go on, or delete kept/unfinished\n"
    )  # fmt: skip
    other = belated(*ONE_LINER, "--seed", "9", "--out", "kept", "--resume", cwd=tmp_path)
    assert other.returncode == 2
    assert "--resume: kept holds an interrupted run of another study" in other.stderr
    resumed = belated(*ONE_LINER, "--out", "kept", "--resume", cwd=tmp_path)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert "after 20 batches of an interrupted run" in " ".join(resumed.stdout.split())
    assert not (tmp_path / "kept" / "unfinished").exists()


def test_a_misspelt_toml_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('means = [0.5, 0.4]\ndelay = "fixed:1"\nrounds = 9\nreplication = 3\n')
    done = belated("simulate", "study.toml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "error: study: unknown key 'replication'; did you mean 'replications'?\n",
    )


def test_ctrl_c_leaves_one_line_and_no_files(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from belated.cli import main; main()", "simulate", "--arms", "50x0.2..0.8",
         "--delay", "fixed:9", "--rounds", "5000000", "--policy", "thompson:lazy=false", "--out", "kept"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    time.sleep(6)
    if process.poll() is not None:
        raise AssertionError(f"it has ended already: {process.communicate()}")
    began = time.perf_counter()
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert time.perf_counter() - began < 15
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "stopped; nothing was left half-written"
    assert "Traceback" not in errors
    assert not list(tmp_path.iterdir())

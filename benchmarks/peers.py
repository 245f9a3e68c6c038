"""Beta–Thompson sampling by other libraries beside ours: the time of a round, and whether they do the same.

    python benchmarks/peers.py [--only NAME,…] [--turns N] [--seconds S]

The libraries are installed into out/peers, never beside belated, in two environments: peers.txt pins the one, and
peers-numpy1.txt that of those which want NumPy 1. What they play is in contestants.py. All take turns, each in a
process of its own, on one core; of several turns the fastest counts, and the spread says how much slower the slowest
was. Prints tables in Markdown. A library that does not install or run here is listed with the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, NamedTuple

from contestants import ARMS, BATCH, DELAY, ROUNDS

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent / "out" / "peers"
PINS = {"numpy2": HERE / "peers.txt", "numpy1": HERE / "peers-numpy1.txt"}
LONGEST = 120  # seconds a turn
APART = 4.0  # standard errors between two mean regrets that are called different


class Library(NamedTuple):
    """Where a library is installed, and with what: all it asks for, unless `alone` with what is named."""

    environment: str
    wants: tuple[str, ...] = ()
    alone: bool = False


LIBRARIES = {
    "pymab": Library("numpy2"),
    "river": Library("numpy2"),
    "mabwiser": Library("numpy2"),
    "pybandits": Library("numpy2"),
    "bayesianbandits": Library("numpy2"),
    "mabby": Library("numpy1"),
    "SMPyBandits": Library("numpy1"),
    "obp": Library("numpy1", ("numpy", "PyYAML", "scikit-learn"), alone=True),  # without PyTorch, which is not for this
}


class Row(NamedTuple):
    """A row of the table: what it shows, whose it is, and the name of the contestant."""

    shown: str
    library: str
    contestant: str


TABLES: dict[str, list[Row]] = {
    f"A round at a time, each reward {DELAY} rounds late": [
        Row("`belated.simulate`, compiled", "belated", "compiled"),
        Row("its policy, interpreted", "belated", "interpreted"),
        Row("its live engine, each ask and tell on the disk", "belated", "live"),
        *(Row(name, name, name) for name in LIBRARIES),
        Row("the queue, and no policy", "belated", "queue"),
    ],
    f"{BATCH} decisions at a time, their rewards learned {BATCH} rounds after the last of them": [
        Row("`belated.simulate`, compiled", "belated", "compiled, batches"),
        Row("its live engine, each ask and tell on the disk", "belated", "live, batches"),
        *(Row(name, name, f"{name}, batches") for name in ("mabwiser", "pybandits", "bayesianbandits")),
    ],
    "A simulator's own loop, without delay": [
        Row("`belated.simulate`, compiled", "belated", "compiled, at once"),
        Row("pymab's `Experiment`, in Rust", "pymab", "pymab, at once"),
    ],
}


class Runs(NamedTuple):
    """What a contestant did in all its turns; or why it did not."""

    ns: list[float]
    regrets: list[float]
    version: str = ""
    reason: str = ""

    @property
    def mean(self) -> float:
        return sum(self.regrets) / len(self.regrets)

    @property
    def deviation(self) -> float:
        """The standard deviation of a replication; infinite of a single one."""
        squares = sum((regret - self.mean) ** 2 for regret in self.regrets)
        return math.sqrt(squares / (len(self.regrets) - 1)) if len(self.regrets) > 1 else math.inf

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / math.sqrt(len(self.regrets))

    def z_score(self, ours: Runs) -> float:
        """How many standard errors the mean lies from ours, if a replication deviates as ours do: they have few."""
        return (self.mean - ours.mean) / (ours.deviation * math.sqrt(1 / len(self.regrets) + 1 / len(ours.regrets)))


def python_of(library: str) -> str:
    """The Python that has this library."""
    if library == "belated":
        return sys.executable
    return str(ENVIRONMENTS / LIBRARIES[library].environment / "bin" / "python")


def last_line(text: str) -> str:
    """The last line that says something; of what pip says, the last error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it says nothing"])[-1]


def install(name: str) -> str:
    """Install a library where it belongs; the reason if that fails."""
    library = LIBRARIES[name]
    folder = ENVIRONMENTS / library.environment
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    print(f"installing {name}", file=sys.stderr)
    pip = [python_of(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = ["--constraint", str(PINS[library.environment])]
    steps = [["--no-deps", name], [*library.wants]] if library.alone else [[name]]
    for step in steps:
        done = subprocess.run([*pip, *pinned, *step], capture_output=True, text=True)
        if done.returncode:
            return f"not installed: {last_line(done.stderr)}"
    return ""


def turn(row: Row, seed: int, seconds: float) -> dict[str, Any] | str:
    """One turn of a contestant; or why it failed."""
    command = [
        python_of(row.library),
        str(HERE / "contestants.py"),
        row.contestant,
        str(seed),
        str(seconds),
        row.library,
    ]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PEERS_FOLDER": folder}
        if row.library != "belated":
            environment.pop("PYTHONPATH", None)
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return f"a turn takes more than {LONGEST} s"
    if done.returncode:
        return f"does not run: {last_line(done.stderr)}"
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def measured(rows: list[Row], reasons: dict[str, str], turns: int, seconds: float) -> dict[str, Runs]:
    """All of them, taking turns."""
    runs = {row.contestant: Runs([], [], reason=reasons.get(row.library, "")) for row in rows}
    for seed in range(1, turns + 1):
        for place, row in enumerate(rows, 1):
            own = runs[row.contestant]
            if own.reason:
                continue
            print(f"\rturn {seed} of {turns}: {place} of {len(rows)}, {row.contestant:28}", end="", file=sys.stderr)
            said = turn(row, seed, seconds)
            if isinstance(said, str):
                runs[row.contestant] = own._replace(reason=said)
            else:
                own.ns.append(said["ns"])
                own.regrets.extend(said["regrets"])
                runs[row.contestant] = own._replace(version=said["version"])
    print(file=sys.stderr)
    return runs


def cells(row: Row, runs: Runs, ours: Runs) -> list[str]:
    """A row as it is printed."""
    if runs.reason:
        return [row.shown, runs.version, runs.reason, "", "", "", ""]
    best = min(runs.ns)
    if row.contestant == "queue":
        regret, apart = "", ""
    else:
        regret = f"{runs.mean:.0f} ± {runs.error:.0f} ({len(runs.regrets):,})"
        z = runs.z_score(ours)
        apart = "" if runs is ours else f"{z:+.1f}{'' if abs(z) < APART else ', differs'}"
    spread, ratio = f"+{max(runs.ns) / best - 1:.0%}", best / min(ours.ns)
    return [row.shown, runs.version, written(best / 1000), spread, written(ratio), regret, apart]


def written(value: float) -> str:
    """Two digits or three."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def print_table(title: str, rows: list[Row], runs: dict[str, Runs]) -> None:
    """One table in Markdown; its first row is what the others are held against."""
    print(f"\n{title}:\n")
    print("| | version | µs a round | spread | times ours | regret, its error (replications) | z |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(cells(row, runs[row.contestant], runs[rows[0].contestant]))} |")


def main() -> int:
    """Install, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", help="these libraries, separated by commas")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn, at least one replication")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else list(LIBRARIES)
    unknown = set(wanted) - set(LIBRARIES)
    if unknown:
        parser.error(f"--only: must be of {', '.join(LIBRARIES)}, got {', '.join(sorted(unknown))}")
    tables = {
        title: [row for row in rows if row.library == "belated" or row.library in wanted]
        for title, rows in TABLES.items()
    }
    reasons = {name: reason for name in wanted if (reason := install(name))}
    print(f"Thompson sampling, {ARMS} arms, {ROUNDS} rounds, one core. Python {platform.python_version()}, ", end="")
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; best of {given.turns} turns")
    runs = measured([row for rows in tables.values() for row in rows], reasons, given.turns, given.seconds)
    for title, rows in tables.items():
        print_table(title, rows, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())

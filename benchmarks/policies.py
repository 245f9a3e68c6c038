"""Times six policies beside a plain C program that does the same work (policies.c), and the loop without a policy.

Every number printed is measured by this run. The two programs take turns, so that a busy or throttled machine slows
both; of several runs the fastest counts, and the spread says how much slower the slowest was. The simulator's time is
that of a call of `belated.simulate`, all included. `idle` pulls the first arm and learns nothing: what is left is the
loop, the calendar and the visitors, common to all, below which no policy can come. Exit code: 1 if the two programs do
not agree on the regret, 2 without gcc.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from thompson import DELAY, ROUNDS, Run, fastest, policy_named, regret, run_ours, spread, world, z_score

from belated import Geometric, Policy, Scenario

POLICIES = ("ucb1", "elimination", "phased", "patient", "ud-ucb", "qpm-d")
ARMS = 20
TARGET = 1.5  # the speed wanted, as a multiple of the C program's


class IdleState(NamedTuple):
    """What it remembers, so that rewards are delivered somewhere."""

    total: np.ndarray

    def choose(self, t: int, rng: Generator) -> int:
        return 0

    def sent(self, t: int, arm: int) -> None:
        pass

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward


@dataclass(frozen=True)
class Idle(Policy):
    """Always the first arm."""

    name: ClassVar[str] = "idle"

    def start(self, arms: int, rounds: int) -> IdleState:
        return IdleState(np.zeros(arms))


class Row(NamedTuple):
    """All runs of one policy under one law."""

    name: str
    scenario: Scenario
    policy: Policy
    c: list[Run]
    ours: list[Run]

    @property
    def law(self) -> str:
        return type(self.scenario.delay).__name__.lower()


def rows() -> list[Row]:
    """What is measured: each policy in its world, and no policy in each of these worlds."""
    geometric = Scenario(means=world(ARMS).means, delay=Geometric(1 / DELAY), rounds=ROUNDS)
    idle = [Row("idle", scenario, Idle(), [], []) for scenario in (world(ARMS), geometric)]
    return idle + [Row(name, world(ARMS, name), policy_named(name), [], []) for name in POLICIES]


def complain(text: str, code: int) -> int:
    """Say on standard error what is wrong, and return the exit code."""
    print(f"benchmarks/policies.py: {text}", file=sys.stderr)
    return code


def build(folder: Path) -> Path:
    """Compile the C program into `folder`."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise SystemExit(complain("gcc is not installed, and the yardstick is a C program", 2))
    source, program = Path(__file__).with_suffix(".c"), folder / "policies"
    if subprocess.run([gcc, "-O3", "-march=native", "-o", program, source, "-lm"]).returncode:
        raise SystemExit(complain("gcc cannot compile policies.c", 2))
    return program


def run_c(program: Path, row: Row, replications: int, seed: int) -> Run:
    """Run the C program once."""
    command = [program, row.name, ARMS, ROUNDS, DELAY, row.law, replications, seed]
    done = subprocess.run([str(each) for each in command], stdout=subprocess.PIPE, text=True, check=True)
    return Run(*map(float, done.stdout.split()))


def measure(program: Path, table: list[Row], replications: int, repeats: int) -> None:
    """Let the two take turns, `repeats` times."""
    for row in table:
        run_ours(row.scenario, row.policy, 1)  # compiles
    for seed in range(repeats):
        for row in table:
            row.c.append(run_c(program, row, replications, seed))
            row.ours.append(run_ours(row.scenario, row.policy, replications, seed))


def print_table(table: list[Row]) -> None:
    """The two programs beside one another; `own` is what a policy costs beside the loop of its program."""
    idle = {row.law: (fastest(row.c), fastest(row.ours)) for row in table if row.name == "idle"}
    print(f"\nK = {ARMS}, {ROUNDS} rounds, delay {DELAY}; ns a round on one core; own: without the idle loop")
    print(
        f"{'policy':13}{'delay':11}{'C':>7}{'spread':>8}{'ours':>7}{'spread':>8}{'C/ours':>8}  {f'>= {TARGET}':9}"
        f"{'C/idle':>6}{'own C':>8}{'ours':>7}{'regret C':>11}{'ours':>9}{'z':>6}"
    )
    for row in table:
        c, ours = fastest(row.c), fastest(row.ours)
        line = f"{row.name:13}{row.law:11}{c:7.1f}{spread(row.c):>8}{ours:7.1f}{spread(row.ours):>8}{c / ours:8.2f}"
        if row.name != "idle":
            met = "met" if c / ours >= TARGET else "not met"
            idle_c, idle_ours = idle[row.law]
            line += f"  {met:9}{c / idle_ours:6.2f}{c - idle_c:8.1f}{ours - idle_ours:7.1f}"
            line += f"{regret(row.c)[0]:11.1f}{regret(row.ours)[0]:9.1f}{z_score(row):6.1f}"
        print(line)


def agree(row: Row) -> bool:
    """Whether the regrets of the two programs are the same, up to chance."""
    if row.name == "idle":
        return math.isclose(regret(row.c)[0], regret(row.ours)[0], rel_tol=1e-9)
    return abs(z_score(row)) < 4


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    options = parser.parse_args()
    replications, repeats = (32, 3) if options.quick else (128, 9)
    table = rows()
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
        measure(program, table, replications, repeats)
    print_table(table)
    apart = [row.name for row in table if not agree(row)]
    return complain(f"the two programs do not agree on the regret of {', '.join(apart)}", 1) if apart else 0


if __name__ == "__main__":
    sys.exit(main())

"""Times the simulator beside a plain C program that does the same work (thompson.c), and every policy.

Every number printed is measured by this run. The two programs take turns, so that a busy or throttled machine slows
both; of several runs the fastest counts, and the spread says how much slower the slowest was. The simulator's time is
that of a call of `belated.simulate`, all included. Exit code: 1 if the two do not agree on the regret, 2 without gcc.
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
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from belated import Fixed, Geometric, Policy, Scenario, Thompson, simulate
from belated.policies import POLICIES, named

ROUNDS, DELAY = 20_000, 250
FEW = ("split", "thompson")  # the policies of a quick run


class Case(NamedTuple):
    """A number of arms and of rounds, the replications of a run, and how many times the speed of C is wanted."""

    arms: int
    rounds: int
    replications: int
    goal: float


CASES = (
    Case(2, ROUNDS, 256, 1.2),
    Case(20, ROUNDS, 64, 6.0),
    Case(200, ROUNDS, 8, 12.0),
    Case(20, 1_000_000, 4, 10.0),
)


class Run(NamedTuple):
    """One run: its speed, and the mean regret of its replications with the standard error."""

    ns: float
    regret: float
    error: float


class Row(NamedTuple):
    """All runs of a case; `threads` and `pair` are of two workers and of two C programs at once."""

    case: Case
    c: list[Run]
    ours: list[Run]
    threads: list[Run]
    pair: list[Run]


def build(folder: Path) -> Path:
    """Compile the C program into `folder`."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise SystemExit(complain("gcc is not installed, and the yardstick is a C program", 2))
    source, program = Path(__file__).with_suffix(".c"), folder / "thompson"
    if subprocess.run([gcc, "-O3", "-march=native", "-o", program, source, "-lm"]).returncode:
        raise SystemExit(complain("gcc cannot compile thompson.c", 2))
    return program


def complain(text: str, code: int) -> int:
    """Say on standard error what is wrong, and return the exit code."""
    print(f"benchmarks/thompson.py: {text}", file=sys.stderr)
    return code


def run_c(program: Path, case: Case, replications: int, seeds: Sequence[int]) -> list[Run]:
    """Run the C program once for each seed, all at once, each with so many replications."""
    command = [str(each) for each in (program, case.arms, case.rounds, DELAY, replications)]
    running = [subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, text=True) for seed in seeds]
    outputs = [process.communicate()[0] for process in running]
    return [Run(*map(float, output.split())) for output in outputs]


def run_ours(scenario: Scenario, policy: Policy, replications: int, seed: int = 0, workers: int = 1) -> Run:
    """Time one call of `simulate`."""
    began = time.perf_counter()
    result = simulate(scenario, [policy], replications=replications, seed=seed, workers=workers)
    elapsed = time.perf_counter() - began
    regret, error = result.mean(result.policies[0])[-1], result.se(result.policies[0])[-1]
    return Run(elapsed / replications / scenario.rounds * 1e9, float(regret), float(error))


def world(arms: int, policy: str = "thompson", rounds: int = ROUNDS) -> Scenario:
    """The scenario of the C program; with delays that are geometric, of the same mean, for the policy made for them."""
    delay = Geometric(1 / DELAY) if policy == "ud-ucb" else Fixed(DELAY)
    return Scenario(means=np.linspace(0.25, 0.75, arms).tolist(), delay=delay, rounds=rounds)


def measure(program: Path, case: Case, share: int, repeats: int) -> Row:
    """Let the two take turns, `repeats` times, with a share of the replications."""
    row, scenario = Row(case, [], [], [], []), world(case.arms, rounds=case.rounds)
    replications = max(4, case.replications // share)
    run_ours(world(case.arms), Thompson(), 1)  # compiles
    for seed in range(repeats):
        row.c.extend(run_c(program, case, replications, [seed]))
        row.ours.append(run_ours(scenario, Thompson(), replications, seed))
        row.pair.append(max(run_c(program, case, replications, [seed, seed + repeats])))
        row.threads.append(run_ours(scenario, Thompson(), 2 * replications, seed, workers=2))
    return row


def fastest(runs: list[Run]) -> float:
    """The speed of the fastest run."""
    return min(run.ns for run in runs)


def spread(runs: list[Run]) -> str:
    """How much slower the slowest run was than the fastest."""
    return f"+{max(run.ns for run in runs) / fastest(runs) - 1:.0%}"


def regret(runs: list[Run]) -> tuple[float, float]:
    """The mean regret of runs of equal size, and its standard error."""
    mean = sum(run.regret for run in runs) / len(runs)
    return mean, math.sqrt(sum(run.error**2 for run in runs)) / len(runs)


def z_score(row: Row) -> float:
    """How many standard errors the mean regrets of the two programs lie apart."""
    (one, one_error), (other, other_error) = regret(row.c), regret(row.ours)
    return (other - one) / math.hypot(one_error, other_error)


def ratios(row: Row) -> str:
    """The smallest and the largest ratio of neighbouring runs."""
    each = [c.ns / ours.ns for c, ours in zip(row.c, row.ours, strict=True)]
    return f"{min(each):.1f}-{max(each):.1f}"


def print_comparison(rows: list[Row]) -> None:
    """The first table: the two programs beside one another."""
    print(f"\nThompson sampling, delay {DELAY}; ns a round on one core, and speed-ups on two")
    print(
        f"{'K':>4}{'T':>9}{'C':>9}{'spread':>8}{'ours':>8}{'spread':>8}{'C/ours':>8}{'runs':>11}{'goal':>6}  {'':8}"
        f"{'2 threads':>10}{'2 C programs':>14}{'regret C':>10}{'ours':>9}{'z':>7}"
    )
    for row in rows:
        c, ours, goal = fastest(row.c), fastest(row.ours), row.case.goal
        met = "met" if c / ours >= goal else "not met"
        print(
            f"{row.case.arms:4}{row.case.rounds:9}{c:9.1f}{spread(row.c):>8}{ours:8.1f}{spread(row.ours):>8}"
            f"{c / ours:8.2f}{ratios(row):>11}{goal:6g}  {met:8}"
            f"{ours / fastest(row.threads):10.2f}{2 * c / fastest(row.pair):14.2f}"
            f"{regret(row.c)[0]:10.1f}{regret(row.ours)[0]:9.1f}{z_score(row):7.1f}"
        )


def policy_named(name: str) -> Policy:
    """The policy of that name, with the parameters that it cannot do without."""
    return named(name, **({"alpha": 0.5} if name == "patient" else {}))


def time_policy(name: str, repeats: int, seconds: float) -> list[Run]:
    """Time a policy with 20 arms, in runs of some `seconds`."""
    scenario, policy = world(20, name), policy_named(name)
    run_ours(scenario, policy, 2)  # compiles
    trial = run_ours(scenario, policy, 2)
    replications = max(2, round(seconds * 1e9 / trial.ns / ROUNDS))
    return [run_ours(scenario, policy, replications, seed) for seed in range(repeats)]


def time_first_run(name: str) -> float:
    """Seconds by which a process's first run of a policy exceeds its second; to be called in a process of its own."""
    import belated.kernels  # noqa: F401, the import of numba is not counted

    times = []
    for _ in range(2):
        began = time.perf_counter()
        simulate(world(20, name), [policy_named(name)], replications=1, workers=1)
        times.append(time.perf_counter() - began)
    return times[0] - times[1]


def time_compilation(name: str) -> tuple[float, float]:
    """`time_first_run` with nothing in the cache of compiled loops, and with the loop there."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, __file__, "--first-run", name]
        cold, warm = (
            float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
            for _ in range(2)
        )
    return cold, warm


def print_policies(names: Sequence[str], repeats: int, seconds: float) -> None:
    """The second table: every policy, and what its first run in a process costs more."""
    print("\nEvery policy, K = 20, one core; and the seconds that the first run in a process takes longer")
    print(f"{'policy':18}{'delay':12}{'ns/round':>10}{'spread':>8}{'not cached':>12}{'cached':>9}")
    for name in names:
        runs = time_policy(name, repeats, seconds)
        cold, warm = time_compilation(name)
        law = type(world(20, name).delay).__name__.lower()
        print(f"{name:18}{law:12}{fastest(runs):10.1f}{spread(runs):>8}{cold:12.2f}{warm:9.2f}")


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer runs and policies, in under 20 s")
    parser.add_argument("--first-run", metavar="POLICY", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Print the two tables."""
    options = arguments()
    if options.first_run:
        print(time_first_run(options.first_run))
        return 0
    repeats, share = (2, 4) if options.quick else (7, 1)
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
        rows = [measure(program, case, share, repeats) for case in CASES[: 3 if options.quick else 4]]
    print_comparison(rows)
    apart = [row.case.arms for row in rows if not abs(z_score(row)) < 4]
    if apart:
        return complain(f"the two programs do not agree on the regret with K = {apart}", 1)
    print_policies(FEW if options.quick else tuple(POLICIES), repeats, seconds=0.1 if options.quick else 0.4)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Times what a person waits for before anything happens: processes from start to end, the best of several runs.

Exit code: 1 if a target is not met.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

BELATED = str(Path(sys.executable).parent / "belated")
RUNS = 15
COMMANDS: tuple[tuple[str, list[str], float | None], ...] = (
    ("python, nothing else", [sys.executable, "-c", "pass"], None),
    ("belated --help", [BELATED, "--help"], 0.15),
    ("import belated", [sys.executable, "-c", "import belated"], 0.3),
    ("every public name", [sys.executable, "-c", "from belated import *"], 0.3),
    ("import belated.live", [sys.executable, "-c", "import belated.live"], 0.3),
    ("belated policies", [BELATED, "policies"], None),
)


def waited(command: list[str]) -> float:
    """Seconds from the start of a process to its end."""
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> int:
    """Print a row a command."""
    missed = 0
    print(f"{'start-up':24}{'ms':>8}{'spread':>8}{'wanted':>10}")
    for name, command, target in COMMANDS:
        times = [waited(command) for _ in range(RUNS)]
        best = min(times)
        missed += target is not None and best > target
        wanted = "" if target is None else f"<= {1000 * target:.0f}"
        print(f"{name:24}{1000 * best:8.0f}{f'+{max(times) / best - 1:.0%}':>8}{wanted:>10}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

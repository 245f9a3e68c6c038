"""Prints the peak memory of a long simulation with many arms: a million rounds, a hundred arms, Thompson sampling."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from belated import Fixed, Scenario, Thompson, simulate

ROUNDS, ARMS, DELAY = 1_000_000, 100, 250
LIMIT = 1_000_000_000  # bytes


def run(replications: int) -> None:
    """Run the simulation in this process."""
    world = Scenario(means=np.linspace(0.25, 0.75, ARMS).tolist(), delay=Fixed(DELAY), rounds=ROUNDS)
    simulate(world, [Thompson()], replications=replications)


def peak_of_children() -> int:
    """The peak resident memory, in bytes, of the largest process that this one has waited for."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> int:
    """Run the simulation in a process of its own and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        run(options.replications)
        return 0
    began = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--here", f"--replications={options.replications}"], check=True)
    elapsed, peak = time.perf_counter() - began, peak_of_children()
    met = peak < LIMIT
    print(f"{ROUNDS} rounds, {ARMS} arms, {options.replications} replications: {elapsed:.0f} s")
    print(f"peak memory {peak / 1e6:.0f} MB, wanted under {LIMIT / 1e6:.0f} MB: {'met' if met else 'not met'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

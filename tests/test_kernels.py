"""Compilation: policies and laws of one's own, and a disk cache that never serves a stale policy."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.random import Generator

from belated import Fixed, Law, Mixture, Policy, Scenario, Thompson, compiled, simulate
from belated.kernels import fingerprint
from support import MEANS, regrets

POLICY = """
from typing import NamedTuple
import numpy as np
from belated import Fixed, Policy, Scenario, compiled, simulate
from dataclasses import dataclass

@compiled
def favourite(arms):
    return {favourite}

class State(NamedTuple):
    arms: int
    def choose(self, t, rng):
        return {choose}
    def sent(self, t, arm):
        pass
    def learn(self, arm, reward, rng):
        pass

@dataclass(frozen=True)
class Own(Policy):
    name = "own"
    def start(self, arms, rounds):
        return State(arms)
"""

RUN = """
import sys
from mine import Own
from belated import Fixed, Scenario, kernels, simulate
world = Scenario(means=[0.5, 0.4, 0.3], delay=Fixed(1), rounds=10)
print(simulate(world, [Own()], replications=1).pulls[0, 0].tolist())
print(sum(kernels._lean.stats.cache_hits.values()))
"""


def _run(folder: Path, choose: str, favourite: str = "0") -> tuple[list[int], int]:
    """Write the policy, run it in a fresh process, and return its pulls and how often the disk cache served."""
    module = folder / "mine.py"
    module.write_text(POLICY.format(choose=choose, favourite=favourite))
    os.utime(module, (1, 1))  # a cache that looked at times and sizes would not see an edit of the same length
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, check=True, capture_output=True, text=True, cwd=folder
    )
    pulls, hits = done.stdout.splitlines()
    return [int(each) for each in pulls.strip("[]").split(",")], int(hits)


def test_the_disk_cache_serves_the_same_policy_and_never_a_stale_one(tmp_path: Path) -> None:
    assert _run(tmp_path, "0") == ([10, 0, 0], 0)
    assert _run(tmp_path, "0") == ([10, 0, 0], 1)
    assert _run(tmp_path, "1") == ([0, 10, 0], 0)  # an edited function
    assert _run(tmp_path, "favourite(3)", "2") == ([0, 0, 10], 0)
    assert _run(tmp_path, "favourite(3)", "1") == ([0, 10, 0], 0)  # an edited helper
    assert _run(tmp_path, "favourite(3)", "1") == ([0, 10, 0], 1)


def test_the_fingerprint_sees_constants_helpers_and_defaults() -> None:
    def made(constant: int, scale: float) -> object:
        names: dict[str, object] = {"SCALE": scale}
        exec(f"def helper(x): return x + {constant}\ndef outer(x): return SCALE * helper(x)", names)
        return names["outer"]

    assert fingerprint(made(1, 2.0)) == fingerprint(made(1, 2.0))
    assert fingerprint(made(1, 2.0)) != fingerprint(made(2, 2.0))
    assert fingerprint(made(1, 2.0)) != fingerprint(made(1, 3.0))


@compiled
def doubled(x: float) -> float:
    """A helper that compiled code calls."""
    return 2.0 * x


@dataclass(frozen=True)
class Weibull(Law):
    """A law of one's own, with a helper and a tuple among its parameters."""

    scale: float
    shape: float
    offsets: tuple[float, ...] = (1.0, 2.0)

    def quantile(self, q: float) -> float:
        stretched = doubled(self.scale) * (-math.log1p(-q)) ** (1.0 / self.shape)
        return self.offsets[0] + float(np.ceil(stretched)) if q < 1.0 else math.inf

    def cdf(self, d: float) -> float:
        held = np.floor(d) - self.offsets[0]
        return 1.0 - math.exp(-((held / doubled(self.scale)) ** self.shape)) if held > 0 else 0.0


class GreedyState(NamedTuple):
    """What an epsilon-greedy policy remembers."""

    total: np.ndarray
    seen: np.ndarray
    epsilon: float

    def choose(self, t: int, rng: Generator) -> int:
        if rng.random() < self.epsilon:
            return int(rng.integers(0, len(self.total)))
        return int(np.argmax(self.total / np.maximum(self.seen, 1.0)))  # it makes arrays

    def sent(self, t: int, arm: int) -> None:
        pass

    def learn(self, arm: int, reward: float, rng: Generator) -> None:
        self.total[arm] += reward
        self.seen[arm] += 1.0


@dataclass(frozen=True)
class Greedy(Policy):
    """A policy of one's own."""

    name = "greedy"
    epsilon: float = 0.1

    def start(self, arms: int, rounds: int) -> GreedyState:
        return GreedyState(np.zeros(arms), np.zeros(arms), self.epsilon)


@pytest.mark.parametrize("law", [Weibull(5.0, 0.7), Mixture([0.5, 0.5], [Weibull(5.0, 0.7), Fixed(3)])])
def test_a_law_of_ones_own_is_compiled(law: Law) -> None:
    assert regrets(Thompson(), law, rounds=200, compiled=True) == regrets(Thompson(), law, rounds=200, compiled=False)


def test_a_policy_of_ones_own_is_compiled_even_if_it_makes_arrays() -> None:
    one, other = (regrets(Greedy(), Fixed(5), rounds=200, compiled=compiled) for compiled in (True, False))
    assert one == other


def test_a_policy_that_cannot_be_compiled_says_so_and_runs_as_it_is() -> None:
    class OddState(NamedTuple):
        arms: int

        def choose(self, t: int, rng: Generator) -> int:
            return {"first": 0}["first"] if open else 1  # a built-in that numba does not know

        def sent(self, t: int, arm: int) -> None:
            pass

        def learn(self, arm: int, reward: float, rng: Generator) -> None:
            pass

    @dataclass(frozen=True)
    class Odd(Policy):
        name = "odd"

        def start(self, arms: int, rounds: int) -> OddState:
            return OddState(arms)

    world = Scenario(means=MEANS, delay=Fixed(1), rounds=10)
    with pytest.raises(TypeError, match=r"OddState does not compile; simulate\(…, compiled=False\) runs it as it is"):
        simulate(world, [Odd()], replications=1)
    assert simulate(world, [Odd()], replications=1, compiled=False).pulls[0, 0].tolist() == [10, 0, 0]


def test_importing_belated_does_not_import_numba() -> None:
    code = "import sys, belated; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"

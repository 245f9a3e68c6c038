"""Replications: reproducible whatever runs them, paired, complete, bounded in memory, and easy to stop."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from belated import (
    UCB1,
    Between,
    Fixed,
    Geometric,
    InvalidInput,
    Loss,
    PatientBandits,
    Queue,
    Result,
    Scenario,
    Split,
    Thompson,
    simulate,
)
from belated.simulation import INSTANCE, POLICY, VISITORS, checkpoints, stream
from support import LAWS, actions

WORLD = Scenario(means=Between(0.2, 0.8), arms=4, delay=Loss(Between(0.1, 1.0)), rounds=300)


def _numbers(result: Result) -> bytes:
    return result.regret.tobytes() + result.pulls.tobytes() + result.fates.tobytes()


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_threads() -> None:
    runs = [
        simulate(WORLD, [Thompson(), UCB1()], replications=13, seed=3, workers=workers, compiled=compiled)
        for workers, compiled in ((1, True), (2, True), (5, True), (2, False))
    ]
    assert len({_numbers(run) for run in runs}) == 1
    assert _numbers(simulate(WORLD, [Thompson(), UCB1()], replications=13, seed=4)) != _numbers(runs[0])


def test_neither_the_order_of_the_policies_nor_the_number_of_replications_changes_a_replication() -> None:
    one = simulate(WORLD, [Thompson(), UCB1()], replications=9, seed=3)
    other = simulate(WORLD, [UCB1(), Split(), Thompson()], replications=5, seed=3)
    for policy in one.policies:
        assert (one.curves(policy)[:5] == other.curves(policy)).all()


def test_every_policy_meets_the_same_visitors() -> None:
    """With rewards that depend on the visitor alone, two policies that pull the same arms see the same rewards."""
    same = Scenario(means=[0.5, 0.5], delay=Fixed(0), rounds=500)
    result = simulate(same, [Thompson(), Split()], replications=3, seed=1)
    assert not result.regret.any()
    paired = simulate(WORLD, [Thompson(), UCB1()], replications=200, seed=2)
    apart = simulate(WORLD, [UCB1()], replications=200, seed=77)
    unpaired = paired.finals("thompson") - apart.finals("ucb1")
    assert paired.compare("thompson", "ucb1").se < 0.8 * unpaired.std(ddof=1) / np.sqrt(200)


@pytest.mark.parametrize("name", LAWS)
def test_every_pull_is_revealed_or_pending_or_never_comes(name: str) -> None:
    world = Scenario(means=[0.4, 0.6, 0.5], delay=LAWS[name], rounds=200)
    result = simulate(world, [Thompson()], replications=20, seed=1)
    assert (result.fates.sum(axis=2) == 200).all()
    assert (result.pulls.sum(axis=2) == 200).all()
    revealed, pending, never = result.fates[0].sum(axis=0)
    assert revealed > 0
    assert (never > 0) == (LAWS[name].iid and LAWS[name].cdf(1e12) < 1 - 1e-6)
    assert pending > 0 or name == "loss"


def test_a_reward_due_in_the_last_round_is_revealed() -> None:
    world = Scenario(means=[0.4, 0.6], delay=Fixed(9), rounds=200)
    assert simulate(world, [Thompson()], replications=2, seed=1).fates[0].tolist() == [[191, 9, 0]] * 2


def test_the_streams_of_a_replication_have_nothing_in_common() -> None:
    """Were two the same, a policy would be drawn by the very numbers that decide its rewards."""
    streams = [stream(seed, r, purpose) for seed in (1, 2) for r in (0, 1) for purpose in (INSTANCE, VISITORS, POLICY)]
    numbers = np.concatenate([each.random(50) for each in streams])
    assert len(np.unique(numbers)) == 50 * len(streams)


def test_no_reward_is_revealed_before_its_pull_nor_after_its_delay() -> None:
    """A policy that learns nothing for d rounds acts for d rounds as if it knew nothing, and then differs."""
    for d in (0, 1, 17):
        silent = actions(Thompson(), Loss(0), rounds=120)
        late = actions(Thompson(), Fixed(d), rounds=120)
        assert (silent[: d + 1] == late[: d + 1]).all()
        assert (silent != late).any()


def test_regret_is_the_sum_of_the_gaps_of_the_pulls() -> None:
    world = Scenario(means=[0.4, 0.6, 0.5], delay=Geometric(0.1), rounds=400)
    result = simulate(world, [Thompson(), UCB1()], replications=10, seed=1)
    expected = result.pulls @ (0.6 - np.array([0.4, 0.6, 0.5]))
    assert np.allclose(result.regret[:, :, -1], expected, rtol=1e-12)


def test_uniform_rewards_have_their_mean() -> None:
    """Each arm's rewards: the fractional posterior mean of Thompson approaches the arm's mean."""
    uniforms = stream(1, 0, VISITORS).random(20_000)
    rewards = 0.3 + (2 * uniforms - 1) * 0.3
    assert abs(rewards.mean() - 0.3) < 4 * 0.3 / np.sqrt(3 * 20_000)
    from belated.loop import World

    world = World(np.array([0.3]), 0.3, False, None, None)
    assert [world.reward_of(0, u) for u in uniforms[:100]] == pytest.approx(rewards[:100].tolist())


def test_checkpoints_are_some_two_hundred_from_the_first_round_to_the_last() -> None:
    for rounds in (1, 2, 50, 1000, 20_000, 10**6):
        marks = checkpoints(rounds)
        assert marks[0] == 1
        assert marks[-1] == rounds
        assert (np.diff(marks) > 0).all()
        assert min(rounds, 50) <= len(marks) <= 200


def test_a_fixed_instance_is_shared_by_all_replications_and_a_redrawn_one_is_not() -> None:
    fixed = replace(WORLD, instance=7)
    drawn = [world.draw(stream(1, r, INSTANCE)).means.tolist() for world in (fixed, WORLD) for r in (0, 1)]
    assert drawn[0] == drawn[1]
    assert drawn[2] != drawn[3]


def test_the_best_arm_can_have_its_own_law() -> None:
    instance = replace(WORLD, best_delay=Loss(0.108)).draw(stream(1, 0, INSTANCE))
    best = int(instance.means.argmax())
    assert [law == Loss(0.108) for law in instance.laws] == [arm == best for arm in range(4)]
    plain = WORLD.draw(stream(1, 0, INSTANCE))
    assert (plain.means == instance.means).all()
    assert [law for arm, law in enumerate(plain.laws) if arm != best] == [
        law for arm, law in enumerate(instance.laws) if arm != best
    ]


def test_progress_goes_from_nothing_to_all() -> None:
    seen: list[tuple[str, float]] = []
    simulate(WORLD, [Thompson(), UCB1()], replications=8, progress=lambda what, done: seen.append((what, done)))
    fractions = [done for _, done in seen]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert {what for what, _ in seen} == {"thompson", "ucb1"}


def test_an_interrupted_study_stops_at_once() -> None:
    long = Scenario(means=[0.5, 0.4], delay=Queue(1.0), rounds=10**7)

    def interrupt(what: str, done: float) -> None:
        raise KeyboardInterrupt

    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        simulate(long, [Thompson()], replications=8, progress=interrupt)
    assert time.perf_counter() - began < 20  # all of it takes minutes
    assert threading.active_count() < 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replications": 0}, "replications: must be at least 1, got 0"),
        ({"replications": 2.5}, r"replications: must be a whole number, got 2\.5"),
        ({"replications": 10**9}, r"replications: 1000000000 would need \d+ GB of memory, \d+ GB are free"),
        ({"scenario": replace(WORLD, arms=10**9)}, r"arms: 1000000000 would need \d+ GB of memory, \d+ GB are free"),
        ({"seed": -1}, "seed: must be at least 0, got -1"),
        ({"workers": 0}, "workers: must be at least 1, got 0"),
        ({"workers": 10**12}, r"workers: 1000000000000 would need \d+ GB of memory, \d+ GB are free"),
        ({"policies": []}, "policies: at least one is needed, got none"),
        ({"policies": [Thompson(), Thompson()]}, "policies: thompson is given twice"),
        ({"policies": ["thompson"]}, r"policies: must be policies, such as Thompson\(\), got 'thompson'"),
    ],
)
def test_bad_studies_are_refused_in_one_line(options: dict[str, object], message: str) -> None:
    policies = options.pop("policies", [Thompson()])
    with pytest.raises(InvalidInput, match=message):
        simulate(**{"scenario": WORLD, "policies": policies, **options})  # type: ignore[arg-type]


def test_a_policy_that_cannot_play_is_refused_before_any_work() -> None:
    with pytest.raises(InvalidInput, match=r"policy\.alpha: patient needs it"):
        simulate(WORLD, [Thompson(), PatientBandits()], progress=lambda what, done: pytest.fail("work was done"))


def test_whole_numbers_may_be_written_with_a_point() -> None:
    """As in TOML, where 3.0 is a float."""
    pointed = simulate(replace(WORLD, instance=2.0, rounds=50.0), [Thompson()], replications=3.0, seed=1.0)  # type: ignore[arg-type]
    assert _numbers(pointed) == _numbers(
        simulate(replace(WORLD, instance=2, rounds=50), [Thompson()], replications=3, seed=1)
    )


def test_a_horizon_beyond_memory_is_named() -> None:
    with pytest.raises(InvalidInput, match="rounds: 2000000000 would need"):
        simulate(replace(WORLD, rounds=2 * 10**9), [Thompson()], replications=1, workers=4)


def _peak_megabytes(replications: int) -> float:
    """The peak memory of a run with T = 10^6 and K = 100, in a process of its own."""
    code = (
        "from belated import *; from pathlib import Path;"
        "world = Scenario(means=Between(.2, .8), arms=100, delay=Fixed(1000), rounds=10**6);"
        f"simulate(world, [Split()], replications={replications}, workers=2);"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1000


def test_memory_does_not_grow_with_replications() -> None:
    """Of the promised run (100 replications under 1 GB) a few replications tell: each adds nothing that matters."""
    few, more = _peak_megabytes(2), _peak_megabytes(12)
    assert more < 500
    assert more - few < 30  # keeping each round of a replication would add 8 MB for each

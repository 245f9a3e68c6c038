"""The limit of requests: what it lets through over any time, in one process and in several together."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from belated.service.limit import PLACES, SHELVES, Limit
from live_support import Clock


def test_a_second_of_requests_at_once_and_then_the_rate() -> None:
    clock = Clock(100.0)
    limit = Limit(5.0, clock=clock)
    assert [limit.wait("a") for _ in range(5)] == [0.0] * 5
    assert limit.wait("a") == pytest.approx(0.2)
    assert limit.wait("b") == 0.0
    clock.pass_(0.19)
    assert limit.wait("a") > 0.0
    clock.pass_(0.02)
    assert limit.wait("a") == 0.0
    clock.pass_(3600.0)  # what is not used is not saved up
    assert sum(limit.wait("a") == 0.0 for _ in range(20)) == 5


def test_fewer_than_one_a_second() -> None:
    clock = Clock(100.0)
    limit = Limit(0.1, clock=clock)
    assert limit.wait("a") == 0.0
    assert limit.wait("a") == pytest.approx(10.0)


def test_no_client_gets_more_than_its_rate_however_it_asks() -> None:
    clock, chance = Clock(0.0), random.Random(1)
    limit, passed = Limit(7.0, clock=clock), []
    for _ in range(5000):
        clock.pass_(chance.expovariate(20.0))
        if limit.wait("a") == 0.0:
            passed.append(clock())
    for first, last in zip(passed, passed[50:], strict=False):
        assert 7.0 * (last - first) + 7.0 + 1e-6 >= 51
    assert len(passed) > 0.99 * 7.0 * passed[-1]


def test_many_clients_each_have_their_own() -> None:
    limit = Limit(2.0, clock=Clock(100.0))
    refused = sum(limit.wait(f"client {number}") > 0.0 for number in range(SHELVES * PLACES // 4) for _ in range(2))
    assert refused == 0
    assert limit.wait("client 7") > 0.0


def test_those_who_share_a_file_count_together(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "limit"), Clock(100.0)
    Limit.prepare(path)
    one, other = Limit(5.0, path, clock), Limit(5.0, path, clock)
    assert sum(limit.wait("a") == 0.0 for _ in range(10) for limit in (one, other)) == 5
    one.close()
    clock.pass_(0.4)
    assert sum(other.wait("a") == 0.0 for _ in range(10)) == 2
    other.close()

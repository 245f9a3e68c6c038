"""A version of the posterior: the state of the policy at some totals, and the exact chance of each arm under it."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.live import ledger
from belated.live.ledger import ArmRow, Connection, ExperimentRow, Sums
from belated.live.settings import Settings
from belated.live.values import BILLION


class Standing(NamedTuple):
    """Where an experiment stands at a time: its arms and their totals, an entry an arm."""

    experiment: ExperimentRow
    arms: list[ArmRow]
    sums: list[Sums]
    young: list[Sums]  # of these, the decisions whose window is open; nothing where silence means nothing
    last_asked: int

    def assumed(self, place: int) -> int:
        """The failures that silence stands for: decisions whose window has closed without an outcome."""
        if self.experiment.failure_after is None:
            return 0
        whole, young = self.sums[place], self.young[place]
        return (whole.asked - whole.told) - (young.asked - young.told)


NOTHING = Sums(0, 0, 0)


def standing(connection: Connection, row: ExperimentRow, clock: int) -> Standing:
    """The standing as of now, by the clock and never before the last decision.

    A window that has closed by then is closed, whether or not anyone has looked since.
    """
    last_asked = ledger.last_asked(connection, row.id)
    now = max(clock, last_asked)
    arms = ledger.arms(connection, row.id)
    totals = ledger.totals(connection, row.id)
    young: dict[int, Sums] = {}
    if row.failure_after is not None:
        young = ledger.asked_after(connection, row.id, row.grain, now - row.failure_after)
    return Standing(
        row,
        arms,
        [totals.get(arm.arm, NOTHING) for arm in arms],
        [young.get(arm.arm, NOTHING) for arm in arms],
        last_asked,
    )


def evidence(at: Standing) -> tuple[np.ndarray, np.ndarray]:
    """The sum of rewards and the number of outcomes of each arm that the posterior is made of.

    Where silence is a failure, a decision counts once its window has closed, whatever came of it: successes are heard
    early and failures late, so counting each as it is heard would flatter every arm, and the fastest most.
    """
    total = np.array([whole.rewards - young.rewards for whole, young in zip(at.sums, at.young, strict=True)], float)
    if at.experiment.failure_after is None:
        seen = np.array([whole.told for whole in at.sums], float)
    else:
        seen = np.array([whole.asked - young.asked for whole, young in zip(at.sums, at.young, strict=True)], float)
    return total / BILLION, seen


class Version:
    """The policy's state at a standing. It serves asks from any thread."""

    def __init__(self, at: Standing, settings: Settings, loaded_at: int):
        self.at = at
        self.loaded_at = loaded_at
        self.active = [place for place, arm in enumerate(at.arms) if arm.status == "active"]
        self._floor = settings.floor
        self._round = sum(each.asked for each in at.sums) + 1
        self._lock = threading.Lock()  # the state has scratch, and the generator one owner at a time
        self._shares: list[float] | None = None
        total, seen = evidence(at)
        priors = [(at.arms[place].prior_a, at.arms[place].prior_b) for place in self.active]
        if self.active:
            self._policy = settings.policy
            self._state = settings.policy_with(priors).resumed(total[self.active], seen[self.active])

    def choose(self, rng: Generator) -> tuple[int, float]:
        """An arm and its propensity: the policy's own `choose`, or with the floor's probability any active arm."""
        arms = len(self.active)
        with self._lock:
            if self._shares is None:
                self._shares = self._propensities().tolist()
            spared = rng.random() if self._floor > 0.0 else 1.0
            if spared < arms * self._floor:
                place = min(arms - 1, int(spared / self._floor))
            else:
                place = int(self._state.choose(self._round, rng))
            return self.active[place], self._shares[place]

    def shares(self) -> list[float]:
        """The propensity of each active arm."""
        if not self.active:
            return []
        with self._lock:
            if self._shares is None:
                self._shares = self._propensities().tolist()
            return self._shares

    def _propensities(self) -> np.ndarray:
        arms = len(self.active)
        own = _SHARES[self._policy](self._state, self._round)
        shares: np.ndarray = self._floor + (1.0 - arms * self._floor) * own
        return shares


def _thompson_shares(state: Any, t: int) -> np.ndarray:
    from belated.live.posterior import chances

    return chances(state.successes, state.failures)


def _ucb1_shares(state: Any, t: int) -> np.ndarray:
    """Equal shares to the arms of the largest index, which `choose` leaves in the scratch of a state."""
    scratch = state._replace(scores=np.zeros_like(state.scores))
    scratch.choose(t, np.random.default_rng(0))
    largest = scratch.scores == scratch.scores.max()
    return np.asarray(largest / largest.sum())


def _split_shares(state: Any, t: int) -> np.ndarray:
    return np.full(state.arms, 1.0 / state.arms)


_SHARES = {"thompson": _thompson_shares, "ucb1": _ucb1_shares, "split": _split_shares}

"""A version of the posterior: the state of the policy at some totals, and the exact chance of each arm under it."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from belated.live import ledger, silence
from belated.live.ledger import Sums
from belated.live.settings import Settings
from belated.live.silence import Past
from belated.live.store import ArmRow, Connection, ExperimentRow
from belated.live.values import BILLION
from belated.policies import ucb
from belated.policies.learned import LearnedState
from belated.policies.thompson import ThompsonState


class Standing(NamedTuple):
    """Where an experiment stands at a time: its arms and their totals, an entry an arm."""

    experiment: ExperimentRow
    arms: list[ArmRow]
    sums: list[Sums]
    young: list[Sums]  # of these, the decisions whose window is open; nothing where silence means nothing
    past: Past | None  # what silence is read from; None where it is waited for
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
    past = None
    if row.failure_after is not None:
        blocks = ledger.blocks(connection, row.id, silence.first_open(row, now))
        young = ledger.asked_after(connection, row, blocks, now - row.failure_after)
        if Settings.from_json(row.settings).reading == "silence":
            past = silence.past(connection, row, blocks, now)
    return Standing(
        row,
        arms,
        [totals.get(arm.arm, NOTHING) for arm in arms],
        [young.get(arm.arm, NOTHING) for arm in arms],
        past,
        last_asked,
    )


def posterior(at: Standing) -> tuple[np.ndarray, np.ndarray]:
    """The a and b of the Beta of each arm that decisions are drawn from, however silence is read."""
    if at.past is None:
        return waited(at)
    read = silence_of(at)
    return read.successes, read.failures


def waited(at: Standing) -> tuple[np.ndarray, np.ndarray]:
    """What they would be had nothing been read of silence before the window has closed."""
    total, seen = evidence(at)
    a, b = np.array([(arm.prior_a, arm.prior_b) for arm in at.arms], float).reshape(-1, 2).T
    return a + total, b + (seen - total)


def silence_of(at: Standing) -> LearnedState:
    """The state of the policy that reads silence, of an experiment that does."""
    assert at.past is not None
    return silence.state(at.experiment, [(arm.prior_a, arm.prior_b) for arm in at.arms], at.sums, at.past)


def evidence(at: Standing) -> tuple[np.ndarray, np.ndarray]:
    """The sum of rewards and the number of outcomes of each arm, if all silence is waited for.

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
        if self.active:
            self._policy = settings.policy
            self._state = self._resumed(settings)

    def _resumed(self, settings: Settings) -> Any:
        """The state of the policy, of the active arms alone."""
        if self.at.past is not None:
            a, b = (each[self.active] for each in posterior(self.at))
            return ThompsonState(a, b, False)
        total, seen = (each[self.active] for each in evidence(self.at))
        priors = [(self.at.arms[place].prior_a, self.at.arms[place].prior_b) for place in self.active]
        return settings.policy_with(priors).resumed(total, seen)

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
    """Equal shares to the arms of the largest index."""
    scale = ucb.scale_of(t, state.log)
    index = np.array([ucb.index_of(state, arm, scale) for arm in range(len(state.seen))])
    largest = index == index.max()
    return np.asarray(largest / largest.sum())


def _split_shares(state: Any, t: int) -> np.ndarray:
    return np.full(state.arms, 1.0 / state.arms)


_SHARES = {"thompson": _thompson_shares, "ucb1": _ucb1_shares, "split": _split_shares}

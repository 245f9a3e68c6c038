"""What a study found: regret curves of every policy and replication at some 200 rounds, and what follows from them."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from belated.inputs import InvalidInput, nearest, number

_ARRAYS = ("rounds", "regret", "pulls", "fates", "seconds")
# What NumPy and zipfile raise on files that are something else, cut short or altered.
ARRAYS_DAMAGED = (
    ValueError, KeyError, AttributeError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class Comparison(NamedTuple):
    """A paired mean difference with its 95 % interval (Student's t on the replications)."""

    difference: float
    se: float
    low: float
    high: float
    replications: int

    @property
    def sign(self) -> int:
        """+1 or -1 if the interval excludes zero on that side, else 0."""
        return int(self.low > 0) - int(self.high < 0)


def paired(differences: np.ndarray) -> Comparison:
    """The mean of differences between replications of the same worlds.

    >>> paired(np.array([1.0, 2.0, 3.0])).difference
    2.0
    """
    from scipy.special import stdtrit

    count = len(differences)
    mean = float(np.mean(differences))
    if count < 2:
        return Comparison(mean, float("nan"), float("-inf"), float("inf"), count)
    se = float(np.std(differences, ddof=1) / np.sqrt(count))
    reach = float(stdtrit(count - 1, 0.975)) * se
    return Comparison(mean, se, mean - reach, mean + reach, count)


def finite(value: Any) -> Any:
    """The same lists and dicts, with None for each number that JSON has no word for.

    >>> finite({"low": float("-inf"), "all": [1.0, float("nan")]})
    {'low': None, 'all': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name only once it is complete."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise InvalidInput(str(path), f"cannot be written: {error.strerror or error}") from None
        raise


def refuse_unusable(folder: Path) -> None:
    """Refuse a folder that cannot be written, before any work is done."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise InvalidInput("--out", f"{existing} is a file, not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InvalidInput("--out", f"{existing} cannot be written")


@dataclass(frozen=True)
class Result:
    """The outcome of `simulate`. Arrays are policies x replications x …

    `regret` is cumulative pseudo-regret after each of `rounds`; `pulls` counts the pulls of each arm; `fates` counts
    the rewards revealed, still pending at the horizon, and never to come; `seconds` is the time spent on each policy.
    """

    policies: tuple[str, ...]
    rounds: np.ndarray
    regret: np.ndarray
    pulls: np.ndarray
    fates: np.ndarray
    seconds: np.ndarray
    provenance: dict[str, Any]

    @property
    def replications(self) -> int:
        return int(self.regret.shape[1])

    def _place(self, policy: str) -> int:
        if policy not in self.policies:
            raise nearest("policy", "policy", policy, self.policies)
        return self.policies.index(policy)

    def curves(self, policy: str) -> np.ndarray:
        """Regret by replication and checkpoint."""
        curves: np.ndarray = self.regret[self._place(policy)]
        return curves

    def finals(self, policy: str) -> np.ndarray:
        """Regret at the horizon, by replication."""
        finals: np.ndarray = self.curves(policy)[:, -1]
        return finals

    def mean(self, policy: str) -> np.ndarray:
        mean: np.ndarray = self.curves(policy).mean(axis=0)
        return mean

    def se(self, policy: str) -> np.ndarray:
        """Standard error of the mean; nan with one replication."""
        if self.replications < 2:
            return np.full(len(self.rounds), np.nan)
        error: np.ndarray = self.curves(policy).std(axis=0, ddof=1) / np.sqrt(self.replications)
        return error

    def quantile(self, policy: str, q: float) -> np.ndarray:
        """The q-quantile over replications, at each checkpoint."""
        number("q", q, low=0.0, high=1.0)
        quantile: np.ndarray = np.quantile(self.curves(policy), q, axis=0)
        return quantile

    def compare(self, one: str, other: str) -> Comparison:
        """Final regret of `one` minus that of `other`, paired by replication: negative if `one` is better."""
        return paired(self.finals(one) - self.finals(other))

    def summary(self) -> list[dict[str, Any]]:
        """A row per policy, best first."""
        rows = []
        for place, policy in enumerate(self.policies):
            finals = self.finals(policy)
            revealed, pending, never = self.fates[place].mean(axis=0).tolist()
            rows.append(
                {
                    "policy": policy,
                    "regret": float(finals.mean()),
                    "se": float(self.se(policy)[-1]),
                    "median": float(np.median(finals)),
                    "q05": float(np.quantile(finals, 0.05)),
                    "q95": float(np.quantile(finals, 0.95)),
                    "revealed": revealed,
                    "pending": pending,
                    "never": never,
                    "seconds": float(self.seconds[place]),
                }
            )
        return sorted(rows, key=lambda row: float(str(row["regret"])))

    def table(self) -> dict[str, list[Any]]:
        """Columns of the curves: policy, round, mean, se, q05, median, q95."""
        columns: dict[str, list[Any]] = {key: [] for key in ("policy", "round", "mean", "se", "q05", "median", "q95")}
        for policy in self.policies:
            columns["policy"] += [policy] * len(self.rounds)
            columns["round"] += self.rounds.tolist()
            columns["mean"] += self.mean(policy).tolist()
            columns["se"] += self.se(policy).tolist()
            for key, q in (("q05", 0.05), ("median", 0.5), ("q95", 0.95)):
                columns[key] += self.quantile(policy, q).tolist()
        return columns

    def to_dict(self) -> dict[str, Any]:
        """The form of an experiment in results.json."""
        policies = {}
        for policy in self.policies:
            errors = [None if np.isnan(error) else error for error in self.se(policy).tolist()]
            policies[policy] = {"round": self.rounds.tolist(), "mean": self.mean(policy).tolist(), "se": errors}
        return {"rounds": int(self.rounds[-1]), "replications": self.replications, "policies": policies}

    def chart(self, **options: Any) -> Any:
        """Regret against rounds with 95 % bands; see `charts.regret` for the options."""
        from belated import charts

        return charts.finished(charts.regret(self, **options))

    def save(self, path: str | Path) -> None:
        """Write all of it to one .npz file."""
        text = {"policies": list(self.policies), "provenance": self.provenance}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        with written_whole(Path(path)) as file:
            np.savez_compressed(file, text=np.array(json.dumps(text)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Result:
        try:
            with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                text = json.loads(str(file["text"]))
                arrays = {name: file[name] for name in _ARRAYS}
            return cls(policies=tuple(text["policies"]), provenance=text["provenance"], **arrays)
        except OSError as error:
            raise InvalidInput(str(path), f"cannot be read: {error.strerror or error}") from None
        except ARRAYS_DAMAGED:
            raise InvalidInput(str(path), "is not a saved result, or a damaged one") from None

"""Executors on other machines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from belated.inputs import InvalidInput
from belated.provenance import versions

PATIENCE = 10  # seconds for a scheduler, and its first worker, to answer


@contextmanager
def dask(address: str | None) -> Iterator[Executor | None]:
    """The executor of the Dask scheduler at an address such as tcp://127.0.0.1:8786; without one, none."""
    if address is None:
        yield None
        return
    if not re.fullmatch(r"\w+://.+:\d+", address):
        raise InvalidInput("--dask", f"must be an address such as tcp://127.0.0.1:8786, got {address!r}")
    try:
        from distributed import Client
    except ImportError:
        raise InvalidInput("--dask", "needs Dask: pip install 'belated[dask]'") from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput("--dask", f"no scheduler answers at {address} ({type(error).__name__})") from None
    with client:
        _refuse_strangers(client, address)
        with client.get_executor(pure=False) as executor:
            yield executor


def _refuse_strangers(client: Any, address: str) -> None:
    """All workers must have the versions that are here, or the numbers could differ."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise InvalidInput("--dask", f"the scheduler at {address} has no workers") from None
    try:
        found = client.run(versions)
    except Exception as error:  # whatever the workers make of it
        raise InvalidInput("--dask", f"the workers at {address} cannot run belated: {error}") from None
    for worker, theirs in found.items():
        for package, ours in versions().items():
            if theirs[package] != ours:
                raise InvalidInput("--dask", f"worker {worker} has {package} {theirs[package]}, here it is {ours}")

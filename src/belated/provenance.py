"""Where a result comes from: the command, the seed, the versions, the time."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def versions() -> dict[str, str]:
    """What numbers may depend on."""
    packages = ("belated", "numpy", "numba", "scipy")
    return {"python": platform.python_version(), **{package: _version(package) for package in packages}}


def provenance(*, seed: int, seconds: float, **more: Any) -> dict[str, Any]:
    """What every output carries."""
    command = [os.path.basename(sys.argv[0] or "python"), *sys.argv[1:]]
    return {
        "command": shlex.join(command),
        "seed": seed,
        "seconds": round(seconds, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions(),
        **{key: value if isinstance(value, int | float | str | dict) else repr(value) for key, value in more.items()},
    }

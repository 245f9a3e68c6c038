"""The public names are a sorted list, each is there, and each is documented."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import belated


def test_names_are_sorted_present_and_documented() -> None:
    names = belated.__all__
    upper = [name for name in names if name.isupper()]
    mixed = [name for name in names if name[0].isupper() and not name.isupper()]
    lower = [name for name in names if name[0].islower()]
    assert names == sorted(upper) + sorted(mixed) + sorted(lower)
    for name in names:
        assert getattr(belated, name).__doc__, name


def test_one_version() -> None:
    assert belated.__version__ == version("belated")


def _imported(code: str) -> set[str]:
    """The packages that a fresh process has imported after running some code."""
    shown = "; import sys; print(*{each.split('.')[0] for each in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code + shown], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_nothing_is_imported_before_it_is_needed() -> None:
    """The start of a process is what its imports cost; `benchmarks/startup.py` times it."""
    heavy = {"altair", "dask", "distributed", "jinja2", "numba", "numpy", "pandas", "scipy", "starlette", "vl_convert"}
    assert not heavy & _imported("import belated, belated.cli")
    assert heavy & _imported("from belated import *; import belated.live") == {"numpy", "scipy"}
    assert "numba" in _imported("import belated.kernels")

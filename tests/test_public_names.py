"""The public names are a sorted list, each is there, and each is documented."""

from __future__ import annotations

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

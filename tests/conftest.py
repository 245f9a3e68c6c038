"""Settings of the tests as a whole."""

from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run: a failure can be repeated. No deadline: a busy machine is not a wrong result.
# `--hypothesis-profile=search` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=20_000, deadline=None)
settings.load_profile("same")


@pytest.fixture
def ledger_url(tmp_path: Path) -> str:
    """A ledger of its own for every test."""
    return f"sqlite:///{tmp_path}/ledger.db"

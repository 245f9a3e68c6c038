"""Every example runs, as a person would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_script_runs(script: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "±" in done.stdout


def test_there_is_an_example_of_a_policy_and_of_a_law_of_ones_own() -> None:
    assert {"own_policy.py", "own_law.py", "study.toml"} <= {path.name for path in EXAMPLES.iterdir()}

"""The files of deploy/: what can be known of them where nothing is deployed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer._click.exceptions import ClickException
from typer.main import get_command

from belated.cli import app

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"


@pytest.fixture(autouse=True)
def _ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELATED_LEDGER", "sqlite:///belated.db")  # as all three set it


def understood(words: list[str]) -> None:
    """Find out that this is a command of belated, with options that it has; nothing is run."""
    command: Any = get_command(app)
    while hasattr(command, "get_command"):
        name, *words = words
        command = command.get_command(command.make_context(command.name, [], resilient_parsing=True), name)
        assert command is not None, name
    command.make_context(command.name, list(words))


def last(text: str, instruction: str) -> list[str]:
    found = re.findall(rf"^{instruction} (\[.*\])$", text, flags=re.MULTILINE)
    return [str(word) for word in json.loads(found[-1])]


def test_the_image_installs_what_there_is_and_runs_what_is_known() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert last(text, "ENTRYPOINT") == ["belated"]
    understood(last(text, "CMD"))
    (extras,) = re.findall(r"/src\[([\w,]+)\]", text)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)
    compile(last(text, "HEALTHCHECK CMD")[2], "HEALTHCHECK", "exec")


def test_the_composition_is_whole() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    assert set(services["service"]["depends_on"]) <= set(services)
    assert (DEPLOY / services["service"]["build"]["context"] / services["service"]["build"]["dockerfile"]).is_file()
    assert all(each.startswith("127.0.0.1:") for each in services["service"]["ports"])
    (command,) = re.findall(r"docker compose run --rm service (.*)$", text, flags=re.MULTILINE)
    understood(shlex.split(command))


def test_the_unit_is_one(tmp_path: Path) -> None:
    text = (DEPLOY / "belated.service").read_text()
    (start,) = re.findall(r"^ExecStart=/opt/belated/bin/belated (.*)$", text, flags=re.MULTILINE)
    understood(shlex.split(start))
    (keys,) = re.findall(r"^#   /opt/belated/bin/belated (.*)$", text, flags=re.MULTILINE)
    understood(shlex.split(keys))
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    unit = tmp_path / "belated.service"
    unit.write_text(text.replace("/opt/belated/bin/belated", "/bin/true"))  # which is where it is installed
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")


def test_an_option_that_there_is_not_is_found_out() -> None:
    """The control."""
    with pytest.raises(ClickException, match="No such option"):
        understood(["serve", "--hots", "x"])

"""Documentation is true: commands exist, links lead somewhere, every law and policy is told of."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from belated import study
from belated.cli import app
from belated.delays import LAWS
from belated.policies import POLICIES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(group: Any, before: str = "") -> dict[str, Any]:
    """Every command by all of its words: `paper`, `live ask`."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        found[before + name] = command
        if hasattr(command, "commands"):
            found |= commands(command, f"{before}{name} ")
    return found


COMMANDS = commands(typer.main.get_command(app))


def test_every_command_and_option_has_help() -> None:
    for name, command in COMMANDS.items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), (name, parameter.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_commands_shown_exist_with_their_options(page: Path) -> None:
    for line in re.findall(r"^belated .*$|(?<=`)belated [^`]*(?=`)", page.read_text(), flags=re.MULTILINE):
        words = shlex.split(line.replace("…", "x"))
        name = next((" ".join(words[1:end]) for end in (3, 2) if " ".join(words[1:end]) in COMMANDS), None)
        assert name, line
        options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_toml_shown_is_a_study(page: Path) -> None:
    import tomllib

    for block in re.findall(r"```toml\n(.*?)```", page.read_text(), flags=re.DOTALL):
        study.study(tomllib.loads(block))


def test_every_verb_of_the_makefile_shown_exists() -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"(?:^|`)make ([a-z-]+)(?=`|\s+#)", page.read_text(), flags=re.MULTILINE)) <= verbs


def test_every_law_and_policy_is_told_of() -> None:
    laws = (ROOT / "docs" / "delays.md").read_text()
    for name, law in LAWS.items():
        assert f"`{law.__name__}(" in laws, name
    told = (ROOT / "docs" / "policies.md").read_text()
    for name in POLICIES:
        assert f"`{name}`" in told, name

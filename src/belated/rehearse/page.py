"""What a rehearsal leaves on disk: a page that opens offline, and its numbers."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from belated.rehearse import candidates, figures, words
from belated.result import written_whole

if TYPE_CHECKING:
    from belated.rehearse.findings import Rehearsal


def write(found: Rehearsal, folder: Path) -> list[Path]:
    """Write both files, each whole or not at all, the page last; their paths."""
    made = {
        "rehearsal.json": json.dumps(words.to_dict(found), allow_nan=False).encode(),
        "report.html": rendered(found).encode(),
    }
    # Drawing takes a second: only when all is made is the folder touched, so that Ctrl-C leaves no part of it.
    for name, data in made.items():
        with written_whole(folder / name) as file:
            file.write(data)
    return [folder / name for name in made]


def rendered(found: Rehearsal) -> str:
    """The page."""
    from jinja2 import Environment

    template = files("belated").joinpath("templates/rehearsal.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    heads, rows = words.policies(found)
    return environment.from_string(template).render(
        found=found,
        title=words.title(found),
        verdict=words.verdict(found),
        heads=heads,
        rows=rows,
        labels={name: candidates.label(name) for name in found.policies},
        colours=figures.colours(found.policies),
        figures=figures.all_of(found),
        changes=words.changes(found),
        dress=words.dress(found),
        assumptions=words.assumptions(found),
    )

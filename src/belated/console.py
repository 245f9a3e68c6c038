"""What every command shows alike: the two consoles, tables, a bar of progress, a spinner."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

errors = Console(stderr=True, highlight=False)
# Piped to a file, tables must not be cut at 80 columns.
output = Console(highlight=False, soft_wrap=False, width=None if os.isatty(1) else 160)


@contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error that disappears when all is done."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(what: str, fraction: float) -> None:
            bar.update(task, description=escape(what), completed=fraction)

        yield show


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner with a word of what is going on."""
    with errors.status(what):
        yield


def table(*columns: str, title: str | None = None) -> Table:
    """A table whose first column holds names, the others numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place == 0 else "right", no_wrap=place == 0)
    return made


def listing(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table."""
    made = Table(box=box.SIMPLE_HEAD)
    for place, column in enumerate(head):
        made.add_column(column, no_wrap=place == 0)
    for row in rows:
        made.add_row(*(escape(cell) for cell in row))
    output.print(made)

"""What `belated rehearse` shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from belated.console import output, table
from belated.rehearse import Rehearsal, candidates, words


def rehearsal(found: Rehearsal, written: Sequence[Path]) -> None:
    """The verdict, then the numbers, then what was rehearsed and where the report is."""
    for place, sentence in enumerate(words.verdict(found)):
        output.print(escape(sentence), style="bold" if place == 0 else None)
    heads, rows = words.policies(found)
    # A column a policy, for rows of eight cells are too wide for a screen; by the names that a plan has.
    names = {candidates.label(name): name for name in found.policies}
    made = table("", *(names[row[0]] for row in rows))
    for place, head in enumerate(heads[1:], start=1):
        made.add_row(head, *(escape(row[place]) for row in rows))
    output.print(made)
    if found.changes:
        changed = table("if the plan were another", "conversions lost, more or less")
        for what, cost in words.changes(found):
            changed.add_row(what, escape(cost))
        output.print(changed)
    if found.dress is not None:
        output.print(escape(words.dress(found)), style=None if found.dress.agrees else "bold red")
    output.print(
        escape(
            f"± and brackets are 95 % intervals over {found.plan.replications:,} rehearsals; seed {found.plan.seed}; "
            f"{found.provenance['seconds']:.1f} s"
        ),
        style="dim",
    )
    output.print(f"open {written[-1]}")

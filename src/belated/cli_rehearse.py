"""`belated rehearse`: thin; it calls what Python users call."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from belated.inputs import InvalidInput


def rehearse(
    plan: Annotated[
        Path | None, typer.Argument(help="A plan, such as examples/plan.toml; without one, that of --example.")
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Print a whole plan, to be changed, and end.")] = False,
    ledger: Annotated[
        str | None,
        typer.Option(help="Of a running experiment: sqlite:///FILE or postgresql://…; it is only read.", metavar="URL"),
    ] = None,
    experiment: Annotated[str | None, typer.Option(help="Its name.")] = None,
    days: Annotated[str | None, typer.Option(help="How long it may go on; 7 by default.", metavar="N")] = None,
    horizon: Annotated[
        str | None, typer.Option(help="How long the arm that is chosen will be used: 90d.", metavar="TIME")
    ] = None,
    replications: Annotated[str | None, typer.Option(help="How many rehearsals.", metavar="N")] = None,
    seed: Annotated[str | None, typer.Option(help="All numbers follow from it.", metavar="N")] = None,
    workers: Annotated[
        str | None, typer.Option(help="Threads; all cores by default. They do not change a number.", metavar="N")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for report.html and rehearsal.json.")] = Path("out/rehearsal"),
    as_json: Annotated[bool, typer.Option("--json", help="JSON, for machines; nothing is written to --out.")] = False,
) -> None:
    """Rehearse an experiment before it is launched, or a running one from where it stands."""
    from belated import rehearse as door

    if example:
        typer.echo(door.example(), nl=False)
        return
    options = {"days": days, "horizon": horizon, "replications": replications, "seed": seed}
    given = {key: _value(text) for key, text in options.items() if text is not None}
    threads = None if workers is None else _value(workers)
    if ledger is not None or experiment is not None:
        if plan is not None:
            raise InvalidInput("plan", f"is not for a running experiment, whose ledger has it all, got {plan}")
        if ledger is None or experiment is None:
            raise InvalidInput("--ledger" if ledger is None else "--experiment", "is needed too")
        _show(
            lambda progress: door.going_on(ledger, experiment, workers=threads, progress=progress, **given),
            out,
            as_json,
        )
        return
    made = door.plan(_keys(plan) | given, folder=Path() if plan is None else plan.parent)
    _show(lambda progress: door.run(made, workers=threads, progress=progress), out, as_json)
    if plan is None and not as_json:
        typer.echo("This was the plan of `belated rehearse --example`. Save it, change it, and rehearse your own.")


def _keys(plan: Path | None) -> dict[str, Any]:
    import tomllib

    from belated import rehearse as door
    from belated import study

    return tomllib.loads(door.example()) if plan is None else study.read_toml(plan)


def _show(made: Any, out: Path, as_json: bool) -> None:
    from belated import console, screen_rehearse
    from belated.result import refuse_unusable

    if not as_json:
        refuse_unusable(out)
    with console.progress() as show:
        found = made(show)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), allow_nan=False))
    else:
        with console.waiting("drawing the figures"):
            written = found.write(out)
        screen_rehearse.rehearsal(found, written)
    if found.dress is not None and not found.dress.agrees:  # our bug, and whoever reads the numbers must know
        print(
            "error: the live engine did otherwise in the dress rehearsal: do not trust these numbers", file=sys.stderr
        )
        raise typer.Exit(1)


def _value(text: str) -> Any:
    """A number as typed; what is not one is left for the check of its field, which names it."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text

"""`belated live`: the live engine from the command line. Thin; every command calls what Python users call."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belated.inputs import InvalidInput

if TYPE_CHECKING:
    from belated.live import Decision, Ledger, Summary
    from belated.live.store import ExperimentRow

app = typer.Typer(
    help="Run an experiment: ask for decisions now, tell their outcomes whenever they come.", no_args_is_help=True
)

Url = Annotated[
    str, typer.Option("--ledger", envvar="BELATED_LEDGER", metavar="URL", help="sqlite:///shop.db or postgresql://…")
]
Name = Annotated[str, typer.Argument(help="The experiment.")]
Json = Annotated[bool, typer.Option("--json", help="JSON, for machines.")]
Format = Annotated[str | None, typer.Option(help="csv, ndjson or parquet; the file's ending tells it too.")]


# --- Deciding and hearing ---------------------------------------------------------------------------------------------


@app.command()
def create(
    name: Name,
    ledger: Url,
    arm: Annotated[list[str], typer.Option(help="The name of an arm. Repeat it: two or more are needed.")],
    silence: Annotated[
        str, typer.Option(help="What a missing outcome means: pending, or a failure after a time such as 7d.")
    ] = "pending",
    reading: Annotated[
        str | None,
        typer.Option(
            help="What is pending within that time counts: silence, as far as it tells; or wait, nothing yet."
        ),
    ] = None,
    policy: Annotated[str, typer.Option(help="thompson, ucb1 or split.")] = "thompson",
    sticky: Annotated[bool, typer.Option("--sticky", help="Each unit keeps its one decision.")] = False,
    floor: Annotated[float, typer.Option(help="The smallest share that every active arm gets.")] = 0.0,
    prior: Annotated[
        list[str] | None, typer.Option(help="A Beta prior: 1,1 for every arm, red=2,8 for one. May be repeated.")
    ] = None,
) -> None:
    """Create an experiment, and its ledger if there is none yet."""
    from belated.live.settings import silence_from_text

    pairs = [_prior(each) for each in prior or []]
    common = [pair for arm, pair in pairs if arm is None]
    own = {arm: pair for arm, pair in pairs if arm is not None}
    meaning = silence_from_text(silence)
    with _opened(ledger, fresh=True) as home:
        made = home.create(
            name,
            arm,
            silence=meaning,
            policy=policy,
            sticky=sticky,
            floor=floor,
            prior=common[-1] if common else (1.0, 1.0),
            priors=own,
            reading=reading,
        )
        print(f"{made.name}: {', '.join(made.arms())}")


@app.command()
def ask(
    name: Name,
    ledger: Url,
    unit: Annotated[str | None, typer.Option(help="Whom it is for; a sticky experiment needs it.")] = None,
    id: Annotated[str | None, typer.Option(help="A UUID of your own: a retry returns the same decision.")] = None,
    count: Annotated[int, typer.Option(help="How many decisions.")] = 1,
    as_json: Json = False,
) -> None:
    """Decide. Prints the decision's id, which `tell` wants, and its arm."""
    if count != 1 and (unit is not None or id is not None):
        raise InvalidInput("--count", "is not for a unit or an id: these are asked for one by one")
    with _opened(ledger) as home:
        experiment = home.get(name)
        decided = [experiment.ask(unit=unit, id=id)] if count == 1 else experiment.ask_many(count)
    for decision in decided:
        print(_json(_decision(decision)) if as_json else f"{decision.id} {decision.arm}")


@app.command()
def tell(
    ledger: Url,
    decision: Annotated[str | None, typer.Argument(help="The id that `ask` printed.")] = None,
    reward: Annotated[str | None, typer.Argument(help="Between 0 and 1.")] = None,
    at: Annotated[
        str | None, typer.Option(help="When it happened: 2025-01-31T12:00:00Z, or seconds since 1970.")
    ] = None,
    revise: Annotated[bool, typer.Option("--revise", help="Correct an outcome that was told before.")] = False,
    csv: Annotated[
        Path | None, typer.Option(help="Many outcomes: a file with the columns decision, reward and, if wished, when.")
    ] = None,
) -> None:
    """Tell the outcome of a decision, or of many from a file. Telling again what was told changes nothing."""
    from belated.live import bulk

    if csv is not None:
        if decision is not None or at is not None:
            raise InvalidInput("--csv", "has the decisions, their rewards and times: give nothing else but --revise")
        _tell_all(ledger, csv, revise)
        return
    if decision is None or reward is None:
        raise InvalidInput("tell", "needs a decision and its reward, or --csv FILE")
    with _opened(ledger) as home:
        print(home.tell(decision, bulk.amount(reward), occurred_at=bulk.moment(at), revise=revise))


def _tell_all(ledger: str, path: Path, revise: bool) -> None:
    from belated import console, screen_live
    from belated.live import bulk

    report = bulk.Report()
    with _opened(ledger) as home:
        try:
            with console.progress() as show:
                bulk.tell(home, path, revise=revise, report=report, progress=lambda part: show("telling", part))
        except BaseException:
            if report.counts:
                print(f"{report.counts.total():,} lines were told; run it again for the rest", file=sys.stderr)
            raise
    screen_live.told(report)
    if report.refusals:
        raise typer.Exit(1)


@app.command()
def void(decision: Annotated[str, typer.Argument(help="The id that `ask` printed.")], ledger: Url) -> None:
    """Take back the outcome of a decision."""
    with _opened(ledger) as home:
        print(home.void(decision))


# --- Looking ----------------------------------------------------------------------------------------------------------


@app.command()
def status(
    ledger: Url,
    name: Annotated[str | None, typer.Argument(help="The experiment; without it, all are listed.")] = None,
    as_json: Json = False,
) -> None:
    """Show where an experiment stands, arm by arm, or list all experiments."""
    from belated import screen_live
    from belated.live import Experiment

    with _opened(ledger) as home:
        if name is not None:
            summary = home.get(name).summary()
            print(_json(summary.to_dict())) if as_json else screen_live.standing(summary)
            return
        found = home.each(Experiment.summary)
    if as_json:
        print(_json([_listed(row, each) for row, each in found]))
    else:
        screen_live.experiments(found)


@app.command()
def waits(
    name: Name,
    ledger: Url,
    unit: Annotated[str, typer.Option(help="Waits are rounded up to this.")] = "1s",
    as_json: Json = False,
) -> None:
    """Show how late outcomes come: the delay curve of each arm, and of all."""
    from belated import screen_live

    with _opened(ledger) as home:
        found = home.get(name).waits(unit)
    if not as_json:
        screen_live.waits(found)
        return
    curves = {arm: None if law is None else _curve(law) for arm, law in found.arms.items()}
    pooled = None if found.pooled is None else _curve(found.pooled)
    print(_json({"unit_ms": found.unit, "pooled": pooled, "arms": curves}))


@app.command()
def verify(ledger: Url) -> None:
    """Fold the ledger afresh, and compare it with every sum that is kept. Any difference is named, and exits 1."""
    from belated import console, screen_live
    from belated.live import fold
    from belated.live import ledger as rows

    with _opened(ledger) as home, home.store.reading() as connection:
        with console.waiting("folding the ledger"):
            differences, strays = fold.differences(connection), fold.strays(connection)
        experiments = rows.experiments(connection)
        arms = {row.id: rows.arms(connection, row.id) for row in experiments}
        sums = [each for row in experiments for each in rows.totals(connection, row.id).values()]
    if differences or strays:
        screen_live.wrong(differences, strays, experiments, arms)
        raise typer.Exit(1)
    asked, told = sum(each.asked for each in sums), sum(each.told for each in sums)
    print(f"ok: {len(experiments):,} experiment{'s' * (len(experiments) != 1)}, {asked:,} decisions, {told:,} outcomes")


# --- Changing ---------------------------------------------------------------------------------------------------------


@app.command()
def arms(
    name: Name,
    ledger: Url,
    add: Annotated[list[str] | None, typer.Option(help="A new arm. May be repeated, as those below.")] = None,
    activate: Annotated[list[str] | None, typer.Option(help="Give a paused arm decisions again.")] = None,
    pause: Annotated[list[str] | None, typer.Option(help="Give an arm no more decisions, for now.")] = None,
    retire: Annotated[list[str] | None, typer.Option(help="Give an arm no more decisions, for good.")] = None,
    prior: Annotated[str | None, typer.Option(help="The Beta prior of the new arms: 1,1.")] = None,
    as_json: Json = False,
) -> None:
    """List the arms of an experiment; add, pause, activate or retire some."""
    from belated import console

    if prior is not None and not add:
        raise InvalidInput("--prior", "is for new arms: give --add too")
    own = None if prior is None else _pair(prior)
    with _opened(ledger) as home:
        experiment = home.get(name)
        for arm in add or []:
            experiment.add_arm(arm, prior=own)
        for change, chosen in ((experiment.activate, activate), (experiment.pause, pause), (experiment.retire, retire)):
            for arm in chosen or []:
                change(arm)
        found = experiment.arms()
    print(_json(found)) if as_json else console.listing(("arm", "status"), list(found.items()))


@app.command()
def stop(name: Name, ledger: Url) -> None:
    """Decide nothing more. Outcomes are still heard."""
    _change(ledger, name, "stop")


@app.command()
def resume(name: Name, ledger: Url) -> None:
    """Decide again."""
    _change(ledger, name, "resume")


@app.command()
def archive(name: Name, ledger: Url) -> None:
    """Close an experiment for good: it can be read, and nothing else."""
    _change(ledger, name, "archive")


def _change(ledger: str, name: str, verb: str) -> None:
    with _opened(ledger) as home:
        experiment = home.get(name)
        getattr(experiment, verb)()
        print(f"{name}: {experiment.status}")


# --- Out and in -------------------------------------------------------------------------------------------------------


@app.command("export")
def export_(
    name: Name,
    ledger: Url,
    out: Annotated[str, typer.Argument(metavar="[FILE]", help="A file, or - for standard output.")] = "-",
    format: Format = None,
) -> None:
    """Write all that is known of an experiment to a file, a row a decision."""
    from belated import console
    from belated.live import exchange

    with _opened(ledger) as home:
        experiment = home.get(name)
        if out != "-":
            with console.progress() as show:
                count = exchange.export(experiment, out, format, progress=lambda part: show("exporting", part))
            print(f"{count:,} decisions in {out}")
        elif format == "parquet":
            raise InvalidInput("--format", "parquet needs a file")
        else:
            exchange.export(experiment, sys.stdout.buffer, format or "csv")
            sys.stdout.buffer.flush()


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What `export` wrote.")],
    ledger: Url,
    name: Annotated[str | None, typer.Option(help="Another name for the experiment.")] = None,
    format: Format = None,
) -> None:
    """Read an exported experiment into a ledger: all of it, or nothing if a line is refused."""
    from belated import console
    from belated.live import exchange

    with _opened(ledger, fresh=True) as home:
        with console.progress() as show:
            made = exchange.load(home, file, format, name=name, progress=lambda part: show("importing", part))
        summary = made.summary()
    told = sum(arm.observed - arm.assumed for arm in summary.arms)
    print(f"{made.name}: {summary.asked:,} decisions, {told:,} outcomes")


# --- Helpers ----------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(url: str, *, fresh: bool = False) -> Iterator[Ledger]:
    """The ledger. A file that there is not is an error, unless it may be a `fresh` one: a name misspelt makes none."""
    from belated import live

    file = url.removeprefix("sqlite:///")
    if not fresh and file and file != url and not Path(file).exists():
        raise live.NotFound("ledger", f"there is no file {file}; `belated live create` makes it")
    with live.open(url) as home:
        yield home


def _prior(text: str) -> tuple[str | None, tuple[float, float]]:
    """A prior, and the arm that it is of: None if it is of all."""
    arm, equals, pair = text.rpartition("=")
    return (arm if equals else None), _pair(pair)


def _pair(text: str) -> tuple[float, float]:
    try:
        a, b = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput("--prior", f"must be two numbers, such as 1,1, or red=2,8, got {text!r}") from None
    return a, b


def _decision(decision: Decision) -> dict[str, Any]:
    at = decision.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "id": decision.id,
        "arm": decision.arm,
        "propensity": decision.propensity,
        "asked_at": at,
        "unit": decision.unit,
        "replayed": decision.replayed,
    }


def _curve(law: Any) -> dict[str, Any]:
    return {"delays": list(law.delays), "levels": list(law.levels)}


def _listed(row: ExperimentRow, found: Summary | Exception) -> dict[str, Any]:
    if isinstance(found, Exception):
        return {"name": row.name, "status": row.status, "problem": str(found)}
    return found.to_dict()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)

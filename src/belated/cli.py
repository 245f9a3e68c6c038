"""The command line: thin; every command calls what Python users call."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer._click.exceptions import ClickException  # typer does not export its base class of usage errors

from belated import cli_live, cli_rehearse, cli_service
from belated.inputs import InvalidInput, nearest

if TYPE_CHECKING:
    from belated.paper import Experiment
    from belated.report import Report

app = typer.Typer(
    help="Bandits for rewards that arrive late.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(cli_live.app, name="live")
app.add_typer(cli_service.keys_app, name="keys")
app.command()(cli_service.serve)
app.command()(cli_service.demo)
app.command()(cli_rehearse.rehearse)


def _whole(text: str) -> Any:
    """A whole number as typed; what is not one is left for the check of its field, which names it."""
    try:
        return int(text)
    except ValueError:
        return text


def _option(description: str) -> Any:
    return typer.Option(help=description, parser=_whole, metavar="N")


Workers = Annotated[Any, _option("Threads; all cores by default. They do not change a number.")]
Dask = Annotated[
    str | None, typer.Option(help="A Dask scheduler, tcp://HOST:PORT, whose workers do the work.", metavar="ADDRESS")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run that had the same --out.")]


@app.command()
def paper(
    out: Annotated[Path, typer.Option(help="The folder for report.html, results.json and the figures.")] = Path(
        "out/paper"
    ),
    seed: Annotated[Any, _option("All numbers follow from it.")] = "1",
    replications: Annotated[Any, _option("Instead of the paper's own number.")] = None,
    experiment: Annotated[list[str] | None, typer.Option(help="Only this one, or this sweep; may be repeated.")] = None,
    fixed_instance: Annotated[
        Any, _option("A seed: all replications of an experiment share the instance drawn from it.")
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    resume: Resume = False,
) -> None:
    """Run the paper's experiments, test its claims, and write a report."""
    from belated import report, screen
    from belated.paper import experiments

    _refuse_unusable(out)
    chosen = _named(experiments(instance=fixed_instance, replications=replications), experiment)
    options = {"seed": seed, "workers": workers}
    whole, written = _studied(chosen, report.of_paper, out, dask=dask, resume=resume, **options)
    screen.finals(whole)
    screen.verdicts(whole.findings)
    screen.answers(whole.questions)
    screen.promises(whole.bounds)
    screen.origin(whole)
    screen.files(written)


@app.command()
def silence(
    out: Annotated[Path, typer.Option(help="The folder for report.html, results.json and the figures.")] = Path(
        "out/silence"
    ),
    seed: Annotated[Any, _option("All numbers follow from it.")] = "1",
    replications: Annotated[Any, _option("Of every experiment; 150, or 300, by default.")] = None,
    experiment: Annotated[
        list[str] | None, typer.Option(help="Only this one, or this group, such as speed; may be repeated.")
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    resume: Resume = False,
) -> None:
    """Measure what reading the silence is worth, and where it is not, and write a report."""
    from belated import report, screen
    from belated.silence import experiments

    _refuse_unusable(out)
    chosen = _named(experiments(replications), experiment)
    options = {"seed": seed, "workers": workers}
    whole, written = _studied(chosen, report.of_silence, out, dask=dask, resume=resume, **options)
    screen.finals(whole)
    screen.asked_of_silence(whole)
    screen.origin(whole)
    screen.files(written)


@app.command()
def simulate(
    study: Annotated[Path | None, typer.Argument(help="A study file, such as examples/study.toml.")] = None,
    arms: Annotated[str | None, typer.Option(help="Means, .5,.4,.3, or a count and a range, 20x0.25..0.75.")] = None,
    delay: Annotated[
        list[str] | None,
        typer.Option(help="A law, geometric:0.01; see `belated delays`. Repeat it for one law an arm."),
    ] = None,
    rounds: Annotated[Any, _option("The horizon.")] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="A policy, thompson; see `belated policies`. May be repeated.")
    ] = None,
    replications: Annotated[Any, _option("How many worlds; 100 by default.")] = None,
    seed: Annotated[Any, _option("All numbers follow from it; 1 by default.")] = None,
    workers: Workers = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for report.html, results.json, result.npz and the figures.")
    ] = None,
    dask: Dask = None,
    resume: Resume = False,
) -> None:
    """Simulate a study of your own, from a file, from options, or from both: options override the file."""
    import belated
    from belated import cluster, console, report, screen
    from belated import study as studies

    if out:
        _refuse_unusable(out)
    given: dict[str, Any] = studies.read_toml(study) if study else {}
    if arms is not None:
        given = {key: value for key, value in given.items() if key not in ("arms", "means")} | studies.arms(arms)
    options: dict[str, Any] = {"rounds": rounds, "policies": policy, "replications": replications, "seed": seed}
    options["delay"] = delay[0] if delay is not None and len(delay) == 1 else delay
    given |= {key: value for key, value in options.items() if value is not None}
    asked = studies.study(given)
    with _unfinished(out, resume, asked) as keep:
        with cluster.dask(dask) as executor, console.progress() as show:
            result = belated.simulate(
                asked.scenario,
                asked.policies,
                replications=asked.replications,
                seed=asked.seed,
                workers=workers,
                executor=executor,
                keep=keep,
                progress=show,
            )
        whole = report.of_study(result, title=study.stem if study else "A study")
        screen.finals(whole)
        screen.comparison(result)
        screen.origin(whole)
        if out:
            with console.waiting("drawing the figures"):
                written = whole.write(out)
            result.save(out / "result.npz")
            screen.files([*written, out / "result.npz"])


@app.command()
def bound(
    arms: Annotated[str, typer.Option(help="Means, .45,.4: one instance.")],
    delay: Annotated[
        list[str],
        typer.Option(help="A law, geometric:0.01; see `belated delays`. Repeat it for one law an arm."),
    ],
    rounds: Annotated[Any, _option("The horizon.")],
    simulate: Annotated[bool, typer.Option("--simulate", help="Measure the regret beside the bounds.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the certified bound, which takes seconds.")] = False,
    replications: Annotated[Any, _option("How many worlds to simulate; 100 by default.")] = None,
    seed: Annotated[Any, _option("All simulated numbers follow from it; 1 by default.")] = None,
    workers: Workers = None,
) -> None:
    """Print every bound of the regret, and with --simulate what is measured beside it."""
    from belated import Scenario, beside, console, screen, theory
    from belated import study as studies

    given = {"replications": replications, "seed": seed, "workers": workers}
    options = {key: value for key, value in given.items() if value is not None}
    if options and not simulate:
        raise InvalidInput(next(iter(options)), "is for a simulation: add --simulate")
    means, laws = studies.instance(arms, delay)
    world = Scenario(means=means, delay=laws, rounds=rounds)
    try:
        with console.waiting("computing the bounds"):
            rows = theory.every(means, laws, world.rounds, without=["thompson-certified"] if quick else [])
    except InvalidInput as error:  # what Python calls laws is an option --delay here
        raise InvalidInput(error.field.replace("laws", "delay"), error.message) from None
    if simulate:
        with console.progress() as show:
            lines = beside.simulated(rows, world, **({"replications": 100, "seed": 1} | options), progress=show)
    else:
        lines = beside.lines(rows)
    screen.bounds(lines, f"Bounds of the expected regret after {world.rounds:,} rounds")
    screen.notes(lines)


@app.command("policies")
def list_policies() -> None:
    """List the policies, with their parameters."""
    from belated import console
    from belated.policies import POLICIES

    rows = []
    for name, preset in POLICIES.items():
        defaults = preset.make(**preset.parameters)
        rows.append(
            (
                name,
                ", ".join(f"{key}={_shown(value)}" for key, value in defaults.parameters()),
                _first_line(preset.make),
            )
        )
    console.listing(("policy", "parameters", ""), rows)


@app.command("delays")
def list_delays() -> None:
    """List the delay laws, with their parameters."""
    from belated import console
    from belated.delays import LAWS

    rows = [(name, ", ".join(each.name for each in fields(law)), _first_line(law)) for name, law in LAWS.items()]
    console.listing(("law", "parameters", ""), rows)


def _studied(
    chosen: list[Experiment],
    of: Callable[..., Report],
    out: Path,
    *,
    dask: str | None,
    resume: bool,
    **options: Any,
) -> tuple[Report, list[Path]]:
    """The experiments run, with a bar of progress, and their report `of` them as written to `out`."""
    from belated import cluster, console
    from belated.paper import run

    with _unfinished(out, resume, (chosen, options.get("seed"))) as keep:
        with cluster.dask(dask) as executor, console.progress() as show:
            results, provenance = run(chosen, executor=executor, keep=keep, progress=show, **options)
        whole = of(results, provenance)
        with console.waiting("drawing the figures"):
            written = whole.write(out)
    return whole, written


def _named(every: Sequence[Experiment], names: Sequence[str] | None) -> list[Experiment]:
    """Those of these names, or of these groups; all without any."""
    groups = {each.name: each.name.partition("/")[0] for each in every}
    known = {*groups, *groups.values()}
    for name in names or ():
        if name not in known:
            raise nearest("experiment", "experiment", name, known)
    return [each for each in every if not names or each.name in names or groups[each.name] in names]


def _refuse_unusable(folder: Path) -> None:
    """Refuse a folder that cannot be written, before any work is done."""
    from belated.result import refuse_unusable  # which imports NumPy

    refuse_unusable(folder)


@contextmanager
def _unfinished(out: Path | None, resume: bool, study: Any) -> Iterator[Path | None]:
    """The folder in which what is finished of a study is kept until all is written, with a note of what it is."""
    if out is None:
        if resume:
            raise InvalidInput("--resume", "it needs the --out of the run to go on with")
        yield None
        return
    folder, note = out / "unfinished", out / "unfinished" / "study.txt"
    _refuse_other(out, note, resume, repr(study))
    made = [each for each in (out, *out.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    note.write_text(repr(study), encoding="utf-8")
    try:
        yield folder
    except BaseException:
        if any(folder.glob("*.npz")):
            print(f"what is finished is kept in {folder}: the same command with --resume goes on", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # which is not empty
                for each in made:
                    each.rmdir()
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _refuse_other(out: Path, note: Path, resume: bool, study: str) -> None:
    """Refuse to begin where something is unfinished, and to go on with something else than that."""
    folder = note.parent
    if resume and not folder.exists():
        raise InvalidInput("--resume", f"nothing is unfinished in {out}")
    if not resume and folder.exists():
        raise InvalidInput("--out", f"{out} holds an interrupted run: add --resume to go on, or delete {folder}")
    if resume and (not note.exists() or note.read_text(encoding="utf-8") != study):
        message = f"{out} holds an interrupted run of another study: give the options that it had, or delete {folder}"
        raise InvalidInput("--resume", message)


def _shown(value: Any) -> str:
    from belated.policies import Policy, label

    return label(value) if isinstance(value, Policy) else str(value)


def _first_line(described: type) -> str:
    """The first line of a docstring, as plain words."""
    line = (described.__doc__ or "").strip().splitlines()[0]
    return re.sub(r"`", "", line)


def main() -> None:
    """Run a command. Bad input is one line on standard error and exit code 2; Ctrl-C is 130."""
    try:
        code = app(standalone_mode=False)
        if code == 130:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
    except InvalidInput as error:
        code = _complain(str(error))
    except ClickException as error:
        code = _complain(error.format_message())
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        sys.stderr.close()
        code = 0
    except Exception as error:
        if not _of_live(error):
            raise
        code = _complain(str(error))
    except KeyboardInterrupt:
        print("\nstopped; nothing was left half-written", file=sys.stderr)
        code = 130
    sys.exit(code)


def _of_live(error: Exception) -> bool:
    """Whether it is an error of the live engine, which is not imported for the sake of asking."""
    errors = sys.modules.get("belated.live.errors")
    return errors is not None and isinstance(error, errors.LiveError)


def _complain(message: str) -> int:
    if message:  # there is none where typer has shown the help instead
        print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 2

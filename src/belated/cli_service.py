"""The commands of the service: thin; each calls what Python users call."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from belated.inputs import InvalidInput, number

LedgerUrl = Annotated[
    str, typer.Option("--ledger", envvar="BELATED_LEDGER", help="sqlite:///FILE or postgresql://…", metavar="URL")
]

keys_app = typer.Typer(help="Keys of the service.", no_args_is_help=True)


def serve(
    ledger: LedgerUrl = "sqlite:///belated.db",
    host: Annotated[
        str, typer.Option(help="The address to listen on; beyond this machine it needs a key.")
    ] = "127.0.0.1",
    port: Annotated[str, typer.Option(help="The port to listen on.", metavar="N")] = "8000",
    workers: Annotated[str, typer.Option(help="Processes on the one ledger.", metavar="N")] = "1",
    rate: Annotated[
        str | None, typer.Option(help="Requests a second that one key may make; without it, any number.", metavar="N")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log errors only, not every request.")] = False,
) -> None:
    """Serve live experiments over HTTP, with a page to follow them."""
    from belated.service import serve

    serve.run(
        ledger,
        host=host,
        port=_whole("port", port),
        workers=_whole("workers", workers),
        rate=None if rate is None else _number("rate", rate),
        log=not quiet,
    )


def demo(
    port: Annotated[str, typer.Option(help="The port to listen on; 0 takes a free one.", metavar="N")] = "8000",
    speed: Annotated[str, typer.Option(help="Seconds of simulated time in each second.", metavar="N")] = "3600",
) -> None:
    """Start the service on a temporary ledger with simulated visitors whose conversions come late."""
    from belated.service import demo

    demo.run(port=_whole("port", port), speed=_number("speed", speed))


@keys_app.command("create")
def create_key(
    role: Annotated[str, typer.Option(help="reader, writer or admin.")],
    ledger: LedgerUrl = "sqlite:///belated.db",
    experiment: Annotated[str | None, typer.Option(help="The one experiment that it is for.")] = None,
) -> None:
    """Make a key. It is printed this once; the ledger keeps only a digest."""
    from belated import live
    from belated.service import keys

    with live.open(ledger) as opened:
        key, secret = keys.create(opened, role, experiment)
    typer.echo(secret)
    typer.echo(f"key {key.id}, {_described(key)}; it is shown only now", err=True)


@keys_app.command("list")
def list_keys(ledger: LedgerUrl = "sqlite:///belated.db") -> None:
    """List the keys, without what would let anyone in."""
    from belated import live
    from belated.console import listing
    from belated.service import keys

    with live.open(ledger) as opened:
        rows = [
            (
                str(key.id),
                _described(key),
                _when(key.created_at),
                _when(key.revoked_at),
            )
            for key in keys.listed(opened)
        ]
    listing(("key", "role", "created", "revoked"), rows)


@keys_app.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(help="Its number; see `belated keys list`.")],
    ledger: LedgerUrl = "sqlite:///belated.db",
) -> None:
    """End a key: within a second no server takes it any more."""
    from belated import live
    from belated.service import keys

    with live.open(ledger) as opened:
        keys.revoke(opened, _whole("key", key))
    typer.echo(f"key {key} is revoked", err=True)


def _when(milliseconds: int | None) -> str:
    from belated.live import values

    return "" if milliseconds is None else values.iso(milliseconds)


def _described(key: Any) -> str:
    return key.role if key.experiment is None else f"{key.role} of {key.experiment}"


def _whole(field: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InvalidInput(field, f"must be a whole number, got {text!r}")
    return int(text)


def _number(field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(field, f"must be a number, got {text!r}") from None
    number(field, value)
    return value

"""The schema of a ledger, and how an older one is brought up to it: numbered files, each applied once."""

from __future__ import annotations

from importlib import resources

from belated.live.errors import WrongLedger
from belated.live.store import Connection, Store

MIGRATIONS = sorted(
    (each for each in resources.files("belated.live").joinpath("migrations").iterdir() if each.name.endswith(".sql")),
    key=lambda each: each.name,
)
VERSION = len(MIGRATIONS)


def migrate(store: Store, *, upto: int = VERSION) -> None:
    """Bring the schema up to this program's, one numbered file at a time, all in one transaction under a lock."""
    with store.locked() as connection:
        found = _version(store, connection)
        if found > VERSION:
            raise WrongLedger("ledger", f"its schema is {found}, newer than {VERSION}, all that this belated knows")
        for number in range(found + 1, upto + 1):
            text = MIGRATIONS[number - 1].read_text()
            for token, meaning in store.tokens.items():
                text = text.replace(f"{{{token}}}", meaning)
            connection.script(text)
            connection.many("INSERT INTO belated_schema (version) VALUES (?)", [(number,)])


def refuse_unreadable(store: Store, connection: Connection) -> None:
    """Refuse what is no ledger, or not of this program's schema: what only reads does not migrate."""
    if "belated_schema" not in store.tables(connection):
        raise WrongLedger("ledger", "there is no experiment in it")
    found = _version(store, connection)
    if found != VERSION:
        older = f"older than {VERSION}: open it once, as with `belated live list`"
        raise WrongLedger("ledger", f"its schema is {found}, {older if found < VERSION else f'newer than {VERSION}'}")


def _version(store: Store, connection: Connection) -> int:
    tables = store.tables(connection)
    if not tables:
        connection.script("CREATE TABLE belated_schema (version BIGINT NOT NULL PRIMARY KEY)")
    elif "belated_schema" not in tables:
        raise WrongLedger("ledger", "it is a database of something else: it has tables, but none of belated")
    ((version,),) = connection.rows("SELECT COALESCE(MAX(version), 0) FROM belated_schema")
    return int(version)

"""Keys: who may read, write or administer. The ledger keeps a digest of each, never the key."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import time
from typing import NamedTuple

from belated.inputs import InvalidInput, nearest
from belated.live import Ledger, NotFound, values
from belated.live.store import Connection

ROLES = ("reader", "writer", "admin")  # each may do what those before it may
PREFIX = "belated_"


class Key(NamedTuple):
    """A key, as it may be shown."""

    id: int
    role: str
    experiment: str | None
    created_at: int
    revoked_at: int | None


class Access(NamedTuple):
    """What a caller may do."""

    role: str
    experiment: str | None = None  # only this one, if any

    def allows(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


def digest(key: str) -> bytes:
    """What is kept of a key. It has 256 random bits, so no salt or slow hash would make it harder to guess."""
    return hashlib.sha256(key.encode()).digest()


def create(ledger: Ledger, role: str, experiment: str | None = None) -> tuple[Key, str]:
    """A new key: the row that is kept, and the key itself, which is shown this once."""
    if role not in ROLES:
        raise nearest("role", "role", str(role), ROLES)
    if experiment is not None:
        if role == "admin":
            raise InvalidInput("experiment", "an admin's key is for all experiments")
        ledger.get(experiment)
    secret = PREFIX + secrets.token_urlsafe(32)
    now = ledger.now()

    def write(connection: Connection) -> Key:
        ((last,),) = connection.rows("SELECT COALESCE(MAX(id), 0) FROM keys")
        key = Key(last + 1, role, experiment, now, None)
        sql = "INSERT INTO keys (id, digest, role, experiment, created_at) VALUES (?, ?, ?, ?, ?)"
        connection.many(sql, [(key.id, digest(secret), role, experiment, now)])
        return key

    return ledger.do(write), secret


def listed(ledger: Ledger) -> list[Key]:
    """All keys that there ever were, the oldest first."""
    with ledger.store.reading() as connection:
        sql = "SELECT id, role, experiment, created_at, revoked_at FROM keys ORDER BY id"
        return [Key(*row) for row in connection.rows(sql)]


def revoke(ledger: Ledger, id: int) -> None:
    """End a key. Every server forgets it within `Keys.FRESH` seconds."""
    now = ledger.now()
    if not 0 < id < 2**62:
        raise NotFound("key", f"there is none with the number {values.shown(id)}")

    def write(connection: Connection) -> None:
        if not connection.rows("SELECT id FROM keys WHERE id = ?", (id,)):
            raise NotFound("key", f"there is none with the number {values.shown(id)}")
        connection.many("UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", [(now, id)])

    ledger.do(write)


class Keys:
    """The keys in force, read anew every second: a key is known or unknown without a look into the database."""

    FRESH = 1.0  # seconds

    def __init__(self, ledger: Ledger):
        self._ledger = ledger
        self._read_at = -math.inf
        self._known: list[tuple[bytes, Access]] = []
        self.needed = False  # from the first key on, for good: that the last one is revoked opens no door

    def stale(self) -> bool:
        """Whether they must be read before they are used."""
        return time.monotonic() >= self._read_at + self.FRESH

    def ages(self) -> bool:
        """Whether they had better be read soon."""
        return time.monotonic() >= self._read_at + self.FRESH / 2

    def read(self) -> None:
        """Read them anew."""
        began = time.monotonic()
        with self._ledger.store.reading() as connection:
            rows = connection.rows("SELECT digest, role, experiment, revoked_at FROM keys")
        self.needed = bool(rows)
        self._known = [(bytes(each), Access(role, only)) for each, role, only, revoked in rows if revoked is None]
        self._read_at = began

    def access(self, key: str) -> Access | None:
        """What a key allows. Every digest is compared, in constant time."""
        given, found = digest(key), None
        for known, access in self._known:
            if hmac.compare_digest(known, given):
                found = access
        return found

"""Make, list, revoke and check the keys of a store.

A key's text is `gk_ID_SECRET`. The secret has 256 random bits, so that its plain SHA-256 can't be guessed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from germane.access import AccessKey, AccessRight, NewKey
from germane.errors import InvalidInput
from germane.model.text import user_tenant
from germane.model.validation import as_utc, checked_word
from germane.operations.inputs import checked_agent, checked_time
from germane.operations.stores import in_tables
from germane.protocols import Clock, Store

_KEY, _REVOKED = "key:", "revoked-key:"
_PREFIX: Final = "gk"
_NOBODY: Final = "0" * 64
_ID_BYTES, _SECRET_BYTES = 6, 32


def create_key(
    store: Store,
    agent: str,
    *,
    user: str | None,
    may: Iterable[AccessRight | str],
    expires: datetime | timedelta | str | None,
    clock: Clock,
) -> NewKey:
    """Store a new key of an agent, hashed. Raises InvalidInput, also for a store that isn't in tables."""
    now = as_utc(clock(), name="clock")
    words = [may] if isinstance(may, str) else list(may)
    rights = tuple(dict.fromkeys(checked_word(AccessRight, each, name="may") for each in words))
    if not rights:
        raise InvalidInput(f"may={words!r} is empty: a key may read, write or admin.")
    until = now + expires if isinstance(expires, timedelta) else expires
    ends = None if until is None else checked_time(until, name="expires", clock=clock)
    if ends is not None and ends <= now:
        raise InvalidInput(f"expires={expires!r} lies in the past, so that the key would be of no use.")
    checked_agent(agent)
    if user is not None:
        user_tenant(user, agent)  # Raises for what can't be a name.
    key_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    key = AccessKey(
        id=key_id,
        agent=agent,
        user=user,
        may=rights,
        created_at=now,
        expires_at=ends,
    )
    stored = {
        "agent": key.agent,
        "user": key.user,
        "may": rights,
        "created_at": now.isoformat(),
        "expires_at": ends and ends.isoformat(),
        "sha256": sha256(secret.encode()).hexdigest(),
    }
    in_tables(store).maintenance.add_entry(_KEY + key_id, json.dumps(stored))
    return NewKey(text=f"{_PREFIX}_{key_id}_{secret}", key=key)


def keys(store: Store) -> tuple[AccessKey, ...]:
    """Every key of the store, also those that are revoked or have expired, the oldest first."""
    return tuple(key for key, _ in _stored(store))


def revoke_key(store: Store, key_id: str, *, clock: Clock) -> AccessKey:
    """End a key; one that is revoked already stays so. Raises InvalidInput for an unknown one."""
    known = {key.id: key for key in keys(store)}
    if key_id not in known:
        raise InvalidInput(f"There is no key {key_id!r} in this store. `germane keys list` names the keys.")
    now = as_utc(clock(), name="clock")
    in_tables(store).maintenance.add_entry(_REVOKED + key_id, now.isoformat())
    return next(key for key in keys(store) if key.id == key_id)


def key_of(store: Store, text: str, *, clock: Clock) -> AccessKey | None:
    """The valid key of that text, compared in constant time; None for what is none."""
    prefix, _, rest = text.partition("_")
    key_id, _, secret = rest.partition("_")
    found, expected = None, _NOBODY
    for key, digest in _stored(store):
        if key.id == key_id:
            found, expected = key, digest
    same = compare_digest(sha256(secret.encode("utf-8", "surrogatepass")).hexdigest(), expected)
    now = as_utc(clock(), name="clock")
    return found if same and prefix == _PREFIX and found is not None and found.is_valid(now) else None


def _stored(store: Store) -> list[tuple[AccessKey, str]]:
    """Each key with the hash of its secret."""
    entries = in_tables(store).maintenance.entries()
    found = []
    for name, text in entries.items():
        if not name.startswith(_KEY):
            continue
        key_id, values = name.removeprefix(_KEY), json.loads(text)
        key = AccessKey(
            id=key_id,
            agent=values["agent"],
            user=values["user"],
            may=tuple(map(AccessRight, values["may"])),
            created_at=datetime.fromisoformat(values["created_at"]),
            expires_at=_time(values["expires_at"]),
            revoked_at=_time(entries.get(_REVOKED + key_id)),
        )
        found.append((key, values["sha256"]))
    return sorted(found, key=lambda each: (each[0].created_at, each[0].id))


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)

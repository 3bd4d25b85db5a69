"""Do what a request asks once, however often it is sent, in whatever process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Final

from germane.access import Answered, Attempt
from germane.model.validation import as_utc
from germane.operations.stores import in_tables
from germane.protocols import Clock, Store

_LONGEST: Final = 256 << 10
"""The most bytes of an answer that is stored."""


def once(
    store: Store,
    agent: str,
    key: str,
    request: bytes,
    make: Callable[[], bytes | None],
    *,
    gives_up: timedelta,
    clock: Clock,
) -> Attempt:
    """Make the answer to an agent's request and store it, or give the one that is stored under its key.

    Raises InvalidInput for a store that isn't in tables, and what `make` raises.
    """
    replies, at = in_tables(store).maintenance, as_utc(clock(), name="clock")
    # What a short request says could be guessed from a plain hash of it, and a purge may miss none.
    name, mark = sha256(key.encode()).digest(), digest(key.encode(), request, "sha256")
    known = replies.begin_reply(agent, name, mark, at=at, gives_up=gives_up)
    if known is not None:
        if known.mark is not None and not compare_digest(known.mark, mark):
            return Attempt(Answered.OTHERWISE)
        if not known.done:
            return Attempt(Answered.NOT_YET)
        return Attempt(Answered.GONE if known.answer is None else Answered.BEFORE, known.answer)
    made = None
    try:
        made = make()
    finally:
        stored = made if made is None or len(made) <= _LONGEST else None
        replies.end_reply(agent, name, stored, at=at, done=made is not None)
    return Attempt(Answered.NOW, made)

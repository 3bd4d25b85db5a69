"""Kinds that a filter asks for and nobody knows: most often a slip, which finds nothing and says little.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from germane.model.memory import Status
from germane.model.query import Filter
from germane.model.trace import Note
from germane.verbs.session import Session

__all__ = ["unknown_kinds"]

_ANY_STATUS = tuple(Status)


def unknown_kinds(sessions: Sequence[Session], kinds: Iterable[str]) -> tuple[Note, ...]:
    """A note for each of the kinds that is neither registered nor stored, with the one that is nearest.

    The stores are only asked about kinds that aren't registered.
    """
    unregistered = [kind for kind in dict.fromkeys(kinds) if kind not in sessions[0].kinds]
    unknown = [kind for kind in unregistered if not any(_is_stored(session, kind) for session in sessions)]
    if not unknown:
        return ()
    known = {kind.name for kind in sessions[0].kinds}
    known.update(*(session.store.stats(session.agent).by_kind for session in sessions))
    return tuple(
        Note(
            code="unknown_kind",
            text=f"No memory is of kind {kind!r}, and no such kind is registered{_nearest(kind, known)}",
        )
        for kind in unknown
    )


def _is_stored(session: Session, kind: str) -> bool:
    return bool(session.store.find(session.agent, Filter(kinds=(kind,), statuses=_ANY_STATUS), limit=1))


def _nearest(kind: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - Only a slip needs it.

    near = get_close_matches(kind.casefold(), sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."

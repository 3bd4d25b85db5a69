"""Kinds that a filter asks for and nobody knows: most often a slip, which finds nothing and says little.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from germane.model.memory import Status
from germane.model.query import Filter
from germane.model.trace import Note
from germane.verbs.session import Session

__all__ = ["unknown_kinds"]

_ANY_STATUS = tuple(Status)


def unknown_kinds(sessions: Sequence[Session], where: Filter) -> tuple[Note, ...]:
    """A note for each kind of a filter that is neither registered nor stored, with the one that is nearest.

    The stores are only asked about kinds that aren't registered. Where the filter says more of whose or
    which memories these are, only kinds of those are stored, and only registered ones are near.
    """
    among = replace(where, kinds=(), when=None, statuses=_ANY_STATUS, without=())
    unregistered = [kind for kind in dict.fromkeys(where.kinds) if kind not in sessions[0].kinds]
    unknown = [
        kind for kind in unregistered if not any(_is_stored(session, kind, among) for session in sessions)
    ]
    if not unknown:
        return ()
    known = {kind.name for kind in sessions[0].kinds}
    if among == Filter(statuses=_ANY_STATUS):
        known.update(*(session.store.stats(session.agent).by_kind for session in sessions))
    return tuple(
        Note(
            code="unknown_kind",
            text=f"No memory is of kind {kind!r}, and no such kind is registered{_nearest(kind, known)}",
        )
        for kind in unknown
    )


def _is_stored(session: Session, kind: str, among: Filter) -> bool:
    return bool(session.store.find(session.agent, replace(among, kinds=(kind,)), limit=1))


def _nearest(kind: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - Only a slip needs it.

    near = get_close_matches(kind.casefold(), sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."

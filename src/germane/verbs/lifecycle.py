"""revise, supersede, forget, restore, purge: what becomes of a memory after it was stored.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from germane.errors import InvalidInput, PurgeNotConfirmed, StaleRevision
from germane.model.change import Applied, Purge, SetStatus
from germane.model.draft import Draft
from germane.model.memory import Memory, Outcome, Status, as_utc
from germane.verbs.checks import (
    checked_content,
    checked_count,
    checked_flag,
    checked_id,
    checked_json,
    checked_number,
    checked_sequence,
    checked_tags,
    checked_text,
    checked_word,
)
from germane.verbs.embed import vectors_to_store
from germane.verbs.living import restored
from germane.verbs.read import current, get_many, head_of
from germane.verbs.remember import content_hash_of, draft_of, memory_of, renew_renditions
from germane.verbs.session import Session
from germane.verbs.versions import store_version

__all__ = ["Changes", "forget", "forget_many", "purge", "purge_many", "restore", "revise", "supersede"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a revision changes; None leaves a field as it was."""

    content: str | None = None
    subject: str | None = None
    tags: Sequence[str] | None = None
    importance: float | None = None
    confidence: float | None = None
    outcome: Outcome | str | None = None
    pinned: bool | None = None
    metadata: Mapping[str, Any] | None = None


def revise(session: Session, memory_id: str, changes: Changes, *, expected: int | None = None) -> Memory:
    """Store the next version of a memory; the one before is kept as history.

    Raises NotFound, InvalidInput, or StaleRevision when another version than the `expected` is current, or
    somebody else revises it at the same time.
    """
    now = as_utc(session.clock(), name="clock")
    old = _expected(session, memory_id, expected)
    if old.status is Status.FORGOTTEN:
        raise InvalidInput(f"Memory {memory_id!r} is forgotten; restore it before you revise it.")
    checked = _checked(changes)
    if not checked:
        raise InvalidInput(f"revise({memory_id!r}) changes nothing: name at least one field to change.")
    new = renew_renditions(
        session,
        old.evolve(
            **checked,
            status=Status.ACTIVE,
            version=old.version + 1,
            updated_at=now,
            created_at=now,
            superseded_by=None,
            seen_count=1,
            access_count=0,
            accessed_at=None,
        ),
    )
    if not checked.keys().isdisjoint(("content", "subject")):
        new = new.evolve(content_hash=content_hash_of(new))
    vector = vectors_to_store(session.embedder, [new.content])[0]
    return store_version(session, old, new, vector)


def supersede(
    session: Session, memory_id: str, draft: Draft | Mapping[str, Any], *, expected: int | None = None
) -> Memory:
    """Store a draft as the next version of a memory; what it leaves open stays as it was.

    Raises NotFound, InvalidInput, or StaleRevision, as `revise` does.
    """
    now = as_utc(session.clock(), name="clock")
    old = _expected(session, memory_id, expected)
    if old.status is Status.FORGOTTEN:
        raise InvalidInput(f"Memory {memory_id!r} is forgotten; restore it before it is superseded.")
    given = draft_of(draft)
    whole = replace(
        given,
        importance=old.importance if given.importance is None else given.importance,
        confidence=old.confidence if given.confidence is None else given.confidence,
        outcome=old.outcome if given.outcome is None else given.outcome,
        trust=old.trust if given.trust is None else given.trust,
        pinned=old.pinned or given.pinned,
    )
    new = memory_of(session, whole, now=now).evolve(id=old.id, version=old.version + 1)
    vector = vectors_to_store(session.embedder, [new.content])[0]
    return store_version(session, old, new, vector, at=now)


def forget(session: Session, memory_id: str) -> Memory:
    """Keep a memory out of everything until it is restored. Raises NotFound."""
    return forget_many(session, [memory_id])[0]


def forget_many(session: Session, memory_ids: Iterable[str]) -> tuple[Memory, ...]:
    """Keep memories out of everything, in one transaction: all of them or none. Raises NotFound."""
    at = as_utc(session.clock(), name="clock")
    ids = _ids(memory_ids)
    changes = [
        SetStatus(memory_id=head_of(session, memory).id, status=Status.FORGOTTEN, at=at)
        for memory in get_many(session, ids)
    ]
    return tuple(map(_stored, session.store.apply(session.agent, changes))) if changes else ()


def restore(session: Session, memory_id: str) -> Memory:
    """Undo a forget, a retirement or an archiving.

    Raises NotFound, or InvalidInput when the memory is in use or superseded.
    """
    memory = current(session, memory_id)
    if memory.status not in (Status.FORGOTTEN, Status.ARCHIVED):
        raise InvalidInput(
            f"Memory {memory_id!r} is {memory.status}; only a forgotten or an archived one can be restored."
        )
    if (again := restored(session, memory)) is not None:
        return again
    return _set_status(session, memory.id, Status.SUPERSEDED if memory.superseded_by else Status.ACTIVE)


def purge(session: Session, memory_id: str, *, confirm: bool) -> int:
    """Remove a memory and all its versions from every form; returns how many versions went.

    Raises PurgeNotConfirmed unless `confirm` is true, and NotFound.
    """
    return purge_many(session, [memory_id], confirm=confirm)


def purge_many(session: Session, memory_ids: Iterable[str], *, confirm: bool) -> int:
    """Remove memories and all their versions, in one transaction; returns how many versions went.

    Raises PurgeNotConfirmed unless `confirm` is true, and NotFound, without having removed any.
    """
    if confirm is not True:
        raise PurgeNotConfirmed
    at = as_utc(session.clock(), name="clock")
    changes = [Purge(memory_id=memory_id, at=at) for memory_id in _ids(memory_ids)]
    purged = sum(each.purged for each in session.store.apply(session.agent, changes)) if changes else 0
    session.lines.clear()  # They hold their texts, and so do the next.
    return purged


def _expected(session: Session, memory_id: str, expected: int | None) -> Memory:
    """The current version of a memory. Raises StaleRevision where that isn't the one expected."""
    memory = current(session, memory_id)
    if expected is not None and checked_count(expected, name="expected", least=1) != memory.version:
        raise StaleRevision(f"{memory.id}@{expected}", memory.version_id)
    return memory


def _ids(memory_ids: Iterable[str]) -> tuple[str, ...]:
    """Each id once."""
    given = checked_sequence(memory_ids, name="memory_ids")
    return tuple(dict.fromkeys(map(checked_id, given)))


def _set_status(session: Session, memory_id: str, status: Status) -> Memory:
    at = as_utc(session.clock(), name="clock")
    change = SetStatus(memory_id=checked_id(memory_id), status=status, at=at)
    return _stored(session.store.apply(session.agent, [change])[0])


def _checked(changes: Changes) -> dict[str, Any]:
    """The fields that change, checked as `remember` checks them."""
    given: dict[str, Any] = {}
    if changes.content is not None:
        given["content"] = checked_content(changes.content)
    if changes.subject is not None:
        given["subject"] = checked_text(changes.subject, name="subject")
    if changes.tags is not None:
        given["tags"] = checked_tags(changes.tags)
    if changes.importance is not None:
        given["importance"] = checked_number(changes.importance, 0, 10, name="importance")
    if changes.confidence is not None:
        given["confidence"] = checked_number(changes.confidence, 0, 1, name="confidence")
    if changes.outcome is not None:
        given["outcome"] = checked_word(Outcome, changes.outcome, name="outcome")
    if changes.pinned is not None:
        given["pinned"] = checked_flag(changes.pinned, name="pinned")
    if changes.metadata is not None:
        given["metadata"] = checked_json(changes.metadata)
    return given


def _stored(applied: Applied) -> Memory:
    if applied.memory is None:  # These changes always leave a memory; a store that breaks this is broken.
        raise AssertionError("The store's answer has no memory.")
    return applied.memory

"""Quarantine: what looks like an instruction to a model or like a secret is stored, and never shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import MappingProxyType

from germane.errors import InvalidInput, PurgeNotConfirmed
from germane.model.change import Change, Purge
from germane.model.memory import Memory, Status
from germane.model.query import Filter, Order
from germane.model.validation import as_utc, checked_id
from germane.operations.context import AgentContext
from germane.operations.drafts import content_hash_of, renew_renditions
from germane.operations.inputs import checked_count, checking_verbs, vectors_to_store
from germane.operations.read import by_key, get_many, stored_pages, version_changes, whole_id
from germane.provenance import QUARANTINE, RELEASED, QuarantinedMemory, quarantine_of
from germane.retrieval.suspicion import visible

_IN_QUARANTINE = Filter(statuses=(Status.FORGOTTEN,), where=f"{QUARANTINE} exists")


def quarantine(session: AgentContext) -> Quarantine:
    """The agent's quarantine."""
    return Quarantine(session)


@checking_verbs
class Quarantine:
    """The memories of an agent that rules keep out of every result. Made by `engine.quarantine()`."""

    def __init__(self, session: AgentContext) -> None:
        self._session = session

    def __repr__(self) -> str:
        return f"<germane.Quarantine agent={self._session.agent!r}>"

    def list(self, *, limit: int | None = None, after: str | None = None) -> tuple[QuarantinedMemory, ...]:
        """The memories in quarantine, the latest first, at most `limit` (None: all).

        `after` is the id of the memory that ended the page before. Raises NotFound where it is gone.
        """
        most = None if limit is None else checked_count(limit, name="limit")
        last = None if after is None else checked_id(after, name="after")
        session = self._session
        found = session.store.find(session.agent, _IN_QUARANTINE, order=Order.NEWEST, limit=most, after=last)
        return tuple(_shown(each) for each in found)

    def release(self, memory_id: str) -> Memory:
        """Let a memory out: it is stored as a new version that results show, without hidden characters.

        The version before stays in its history, and the metadata `_released` names the rules and the time.
        One that was to replace another memory becomes that one's next version. Raises NotFound, or
        InvalidInput for a memory that isn't in quarantine.
        """
        session = self._session
        marked = _quarantined(session, memory_id)
        now = as_utc(session.clock(), name="clock")
        note = dict(marked.metadata[QUARANTINE])
        key = note.get("key")
        replaced = None if key is None else by_key(session, key)
        if "replaces" in note:
            (replaced,) = session.store.get(session.agent, [note["replaces"]])
        former = marked if replaced is None or replaced.status is not Status.ACTIVE else replaced
        released = {RELEASED: {"rules": list(quarantine_of(marked)), "at": now.isoformat()}}
        left = {name: value for name, value in marked.metadata.items() if name != QUARANTINE}
        new = marked.unused(
            id=former.id,
            version=former.version + 1,
            content=visible(marked.content),
            status=Status.ACTIVE,
            key=key or former.key,
            metadata=MappingProxyType({**left, **released}),
            updated_at=now,
            superseded_by=None,
        )
        new = renew_renditions(session, new)
        new = new.evolve(content_hash=content_hash_of(new))
        vector = vectors_to_store(session.embedder, [new.content])[0]
        changes: list[Change] = []
        if former is not marked:
            changes.append(Purge(memory_id=marked.id, at=now))
        changes += version_changes(session, former, new, vector, at=now)
        applied = session.store.apply(session.agent, changes)
        return next(
            one.memory
            for one in applied
            if one.memory is not None and one.memory.version_id == new.version_id
        )

    def purge(self, memory_id: str | None = None, *, confirm: bool = False) -> int:
        """Remove one memory in quarantine, or all, and every trace of their text; how many went.

        It can't be undone, so it needs `confirm=True`. Raises PurgeNotConfirmed, NotFound, or InvalidInput
        for a memory that isn't in quarantine.
        """
        session = self._session
        if memory_id is not None:
            ids: Sequence[str] = (_quarantined(session, memory_id).id,)
        else:
            ids = [each.id for page in stored_pages(session, _IN_QUARANTINE) for each in page]
        if confirm is not True:
            raise PurgeNotConfirmed
        now = as_utc(session.clock(), name="clock")
        if ids:
            session.store.apply(session.agent, [Purge(memory_id=each, at=now) for each in ids])
            session.clear_texts()
        return len(ids)


def _quarantined(session: AgentContext, memory_id: str) -> Memory:
    (memory,) = get_many(session, [whole_id(session, memory_id)])
    if not quarantine_of(memory):
        raise InvalidInput(f"Memory {memory_id!r} isn't in quarantine. `quarantine().list()` says which are.")
    return memory


def _shown(memory: Memory) -> QuarantinedMemory:
    at: datetime = memory.updated_at
    return QuarantinedMemory(
        memory=memory,
        rules=quarantine_of(memory),
        at=at,
        replaces=memory.metadata[QUARANTINE].get("replaces"),
    )

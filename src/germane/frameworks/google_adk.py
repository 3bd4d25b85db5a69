"""Google ADK memory in germane (extra `google-adk`): a memory service for runners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from germane.engine import Engine
from germane.engine.handle import StoreHandle
from germane.errors import MissingExtra, NotFound
from germane.frameworks.shared import to_the_end
from germane.model.context import Ranked
from germane.model.memory import Draft, Memory, Status
from germane.model.query import Filter

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai.types import Content, Part
except ImportError as error:
    raise MissingExtra(feature="The memory service of Google ADK", extra="google-adk") from error

__all__ = ["ADKMemoryService"]

_FIELD: Final = "google_adk"
"""The metadata field of a memory that says which event of which session it is."""
_NO_SESSION: Final = ""


class ADKMemoryService(BaseMemoryService):
    """The memory of each app and user in a store, for `Runner(memory_service=...)`.

    An app is an agent of the store, and its user one of that agent's users: nothing of one shows for another,
    and what the agent itself remembers is found for all its users. Each event with text is a memory of the
    kind `kind`. A search returns at most `limit` memories, and with a `budget` only as many as ADK's
    `PreloadMemoryTool` writes in so many tokens. A cancelled call still finishes what it began.
    """

    def __init__(
        self, handle: StoreHandle, *, limit: int = 10, budget: int | None = None, kind: str = "episode"
    ) -> None:
        self._handle = handle
        self._limit = limit
        self._budget = budget
        self._kind = kind

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session. Added again, the session replaces what was stored of it.

        A deleted event doesn't come back. Raises InvalidInput.
        """
        engine = self._engine(session.app_name, session.user_id)
        await to_the_end(lambda: self._add(engine, session.events, session.id, replaces=True))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store those of the events that aren't stored yet, with the metadata. Raises InvalidInput."""
        engine, session = self._engine(app_name, user_id), session_id or _NO_SESSION
        await to_the_end(lambda: self._add(engine, events, session, metadata=custom_metadata))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories, of the kind that their metadata name, else "fact". Raises InvalidInput."""
        engine = self._engine(app_name, user_id)
        drafts = []
        for entry in memories:
            own = {**(custom_metadata or {}), **entry.custom_metadata}
            field = {"id": entry.id, "author": entry.author, "metadata": own}
            at = None if entry.timestamp is None else datetime.fromisoformat(entry.timestamp).astimezone(UTC)
            kind = str(own.get("kind", "fact"))
            drafts.append(
                Draft(content=_text(entry.content), kind=kind, created_at=at, metadata={_FIELD: field})
            )
        await to_the_end(lambda: engine.remember_many(drafts))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The memories of the app and the user that have most to do with a query, best first."""
        engine, budget = self._engine(app_name, user_id), self._budget
        found = await to_the_end(lambda: engine.recall(query, limit=self._limit, budget=budget))
        entries = [_entry(one) for one in found]
        while budget is not None and engine.counter.count("\n".join(map(_written, entries))) > budget:
            entries.pop()
        return SearchMemoryResponse(memories=entries)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget a memory by the id that a search shows; an unknown one is fine.

        `engine.restore` brings it back, and `engine.purge` removes it for good.
        """
        engine = self._engine(app_name, user_id)

        def forget() -> None:
            known = [each.id for each in engine.memories({f"{_FIELD}.id": memory_id})]
            with suppress(NotFound):
                engine.forget_many(known or [str(memory_id)])

        if memory_id:
            await to_the_end(forget)

    def _engine(self, app_name: str, user_id: str) -> Engine:
        return self._handle.agent(app_name).for_user(user_id)

    def _add(
        self,
        engine: Engine,
        events: Sequence[Event],
        session: str,
        *,
        replaces: bool = False,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        texts = {event.id: (event, text) for event in events if (text := _text(event.content))}
        stored = _stored(engine, session)
        if replaces:
            gone = [
                each.id
                for name, each in stored.items()
                if each.status is Status.ACTIVE and (name not in texts or texts[name][1] != each.content)
            ]
            if gone:
                engine.purge_many(gone, confirm=True)
                stored = {name: each for name, each in stored.items() if each.id not in gone}
        drafts = [
            Draft(
                content=text,
                kind=self._kind,
                source=f"google-adk:{session}/{name}",
                session=session or None,
                created_at=datetime.fromtimestamp(event.timestamp, UTC),
                metadata={
                    _FIELD: {
                        "id": name,
                        "session": session,
                        "author": event.author,
                        "metadata": dict(metadata or {}),
                    }
                },
            )
            for name, (event, text) in texts.items()
            if name not in stored
        ]
        engine.remember_many(drafts, force=True)


def _stored(engine: Engine, session: str) -> dict[str, Memory]:
    """The memories of a session's events in any status, by the ids of the events."""
    where = replace(Filter.of({f"{_FIELD}.session": session}), statuses=())
    return {each.metadata[_FIELD]["id"]: each for each in engine.memories(where)}


def _text(content: Content | None) -> str:
    """The text of a content; thoughts, calls and files have none."""
    parts = (content.parts or ()) if content is not None else ()
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def _written(entry: MemoryEntry) -> str:
    """The lines that ADK's `PreloadMemoryTool` writes of a memory."""
    return f"Time: {entry.timestamp}\n{entry.author}: {_text(entry.content)}"


def _entry(one: Ranked) -> MemoryEntry:
    field = one.memory.metadata.get(_FIELD, {})
    return MemoryEntry(
        id=field.get("id") or one.id,
        content=Content(role="user", parts=[Part(text=one.content)]),
        author=field.get("author") or one.kind,
        timestamp=one.memory.created_at.isoformat(),
        custom_metadata={"kind": one.kind, "score": one.score, **field.get("metadata", {})},
    )

"""Conversations: written in one transaction, read from what a process keeps of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from germane.errors import InvalidInput, StoreBusy, StoreUnavailable
from germane.model.conversation import (
    Append,
    ConversationChange,
    ConversationInfo,
    GroupScores,
    LastGroups,
    Message,
    PurgeMessages,
    SetAnchor,
)
from germane.stores.relational.cache import ConversationCaches
from germane.stores.relational.conversation_cache import (
    ConversationCache,
    ConversationRow,
    ConversationWriter,
    Record,
    message_of,
    num_of,
    number_of,
    row_of,
    spoken,
    spread,
)
from germane.stores.relational.tables import Connection, Connections, gated, moment, try_id_bytes
from germane.stores.sql.tables import MessageRow

__all__ = ["ConversationTables"]

_LONGEST_NAME: Final = 1000
_MOST_READ_APART: Final = 100
"""Groups up to which each is read by itself."""

_WORTH_STORING: Final = 100
"""Records from which on those that were made are stored: fewer are made sooner than a reader could write."""

_STORED_AT_ONCE: Final = 5000
"""As many as one question stores, in one transaction, so that neither it nor other writers wait for long."""


@gated
class ConversationTables:
    """The log of conversations, each of one agent and one session."""

    def __init__(self, connections: Connections, conversations: ConversationCaches) -> None:
        self._connections = connections
        self._conversation_caches = conversations

    def apply(self, agent: str, session: str, changes: Sequence[ConversationChange]) -> tuple[Message, ...]:
        """Apply all changes in one transaction, in order, or none of them.

        Returns the messages that they appended, moved or deleted, as they are afterwards or were before.
        A PurgeMessages rewrites a file as the purge of a memory does, and raises StoreBusy or
        StoreUnavailable as that does.
        """
        for name, value in (("agent", agent), ("session", session)):
            if not value or len(value) > _LONGEST_NAME:
                raise InvalidInput(f"{name}={value[:50]!r} is no name. Use 1 to {_LONGEST_NAME} characters.")
        if not changes:
            return ()
        purges = any(isinstance(each, PurgeMessages) for each in changes)
        with self._connections.writing(agent) as connection:
            known = spoken(connection, agent, session)
            begins = any(isinstance(each, Append | SetAnchor) for each in changes)
            if begins and not known.conversation:
                connection.run("add_agent", {"name": agent})
                connection.run("add_conversation", {"agent": agent, "session": session})
                known = spoken(connection, agent, session)
            moved = ConversationWriter(connection, agent, session, known).apply(changes)
            if purges:
                self._connections.note_purge(connection, "conversations")
        if purges:
            self._conversation_caches.drop(agent, session)
            self._connections.erase()
        return moved

    def messages(self, agent: str, session: str, *, hidden: bool = False) -> tuple[Message, ...]:
        """The messages of a conversation in order; those of hidden groups if asked."""
        with self._conversation(agent, session) as (talk, *_):
            return talk.messages(hidden=hidden)

    def last_groups(self, agent: str, session: str, count: int) -> LastGroups | None:
        """What a window of the last `count` groups shows, exactly as `messages` has it.

        None where reading all is as good: much of it is asked for, or it is in memory already.
        """
        if self._conversation_caches.has(agent, session) or count > _MOST_READ_APART:
            return None
        with self._connections.reading(agent) as connection:
            known = spoken(connection, agent, session)
            values = spread(known)
            opened = [name for (name,) in connection.run("groups_opened", values)]
            rows = list(map(MessageRow._make, connection.run("messages_kept", values)))
            for name in opened[-count:]:
                of_group = {"agent": known.agent, "conversation": known.conversation, "group_name": name}
                rows += map(MessageRow._make, connection.run("messages_of_group", of_group))
        # What the system says in a group is kept in every window, and read already.
        messages = {row.num: message_of(row, agent, session) for row in rows}
        shown = (messages[num] for num in sorted(messages) if not messages[num].hidden)
        return LastGroups(messages=tuple(shown), opened=tuple(opened))

    def message(self, agent: str, message_id: str) -> Message | None:
        """The agent's message of that id, hidden or not; None where there is none."""
        raw = try_id_bytes(message_id)
        if raw is None:
            return None
        with self._connections.reading(agent) as connection:
            values = {"agent": agent, "id": raw}
            row = connection.run("message", values).fetchone()
        if row is None:
            return None
        *stored, session = row
        return message_of(stored, agent, session)

    def match_groups(self, agent: str, session: str, terms: Sequence[str]) -> GroupScores:
        """How well the visible groups match any of these terms, by the statistics of this session alone.

        Records that had to be made for it, because an older version or other rules stored the messages, are
        stored for who asks next, where that can be done.
        """
        with self._conversation(agent, session) as (talk, connection, known):
            found = talk.match(connection, terms, known.language)
            made = talk.take_made(_STORED_AT_ONCE)
        if len(made) >= _WORTH_STORING and not self._connections.read_only:
            # The answer is there, and what can't be stored now is made anew by who needs it next.
            with suppress(StoreBusy, StoreUnavailable):
                self._store_made(agent, known, made)
        return found

    def anchors(self, agent: str, session: str) -> Mapping[str, str]:
        """The texts that stand outside any window, by name."""
        with self._connections.reading(agent) as connection:
            values = {"agent": agent, "session": session}
            return dict(connection.run("anchors", values).fetchall())

    def sessions(self, agent: str) -> tuple[ConversationInfo, ...]:
        """All conversations of the agent, by the names of their sessions."""
        with self._connections.reading(agent) as connection:
            rows = connection.run("conversations", {"agent": agent}).fetchall()
        return tuple(
            ConversationInfo(
                session=session,
                messages=count,
                hidden=hidden,
                first_at=None if first is None else moment(first),
                last_at=None if last is None else moment(last),
            )
            for session, count, hidden, first, last in rows
        )

    def _store_made(self, agent: str, known: ConversationRow, made: Mapping[int, Record]) -> None:
        """Store records of messages that are still there."""
        with self._connections.writing(agent) as connection:
            left = {number_of(num) for num, _ in connection.run("messages_left", spread(known))}
            rows = [
                row_of(num_of(known, number), known.agent, known.language, record)
                for number, record in made.items()
                if number in left
            ]
            if rows:
                connection.many("insert_message_lex", rows)

    @contextmanager
    def _conversation(
        self, agent: str, session: str
    ) -> Iterator[tuple[ConversationCache, Connection, ConversationRow]]:
        talk = self._conversation_caches.of(agent, session, ConversationCache)
        with talk.lock, self._connections.reading(agent) as connection:
            known = spoken(connection, agent, session)
            talk.catch_up(connection, known)
            yield talk, connection, known

"""Conversations as the store offers them: written in one transaction, read from what a process keeps of them.

Level: stores (imports model and errors).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final

from germane.errors import InvalidInput
from germane.model.conversation import GroupScores
from germane.model.log import Append, ConversationChange, ConversationInfo, PurgeMessages, SetAnchor
from germane.model.message import Message
from germane.stores.sql import queries
from germane.stores.sqlite.connections import Connections
from germane.stores.sqlite.erasing import erase
from germane.stores.sqlite.rows import moment, try_id_bytes
from germane.stores.sqlite.saying import Saying, message_of, spoken
from germane.stores.sqlite.settings import note_erasure
from germane.stores.sqlite.talk import Talk

__all__ = ["Conversations", "KeptTalks"]

_LONGEST_NAME: Final = 1000
_MOST_TALK_BYTES: Final = 256 << 20


class KeptTalks:
    """The conversations that a process keeps in memory, the least used leave first."""

    def __init__(self) -> None:
        self._talks: OrderedDict[tuple[str, str], Talk] = OrderedDict()
        self._guard = Lock()

    def of(self, agent: str, session: str) -> Talk:
        """What is kept of a conversation, if only an empty beginning."""
        with self._guard:
            talk = self._talks.setdefault((agent, session), Talk(agent, session))
            self._talks.move_to_end((agent, session))
            total = sum(each.nbytes for each in self._talks.values())
            while total > _MOST_TALK_BYTES and len(self._talks) > 1:
                _, dropped = self._talks.popitem(last=False)
                total -= dropped.nbytes
            return talk

    def drop(self, agent: str, session: str) -> None:
        """Keep nothing of a conversation."""
        with self._guard:
            self._talks.pop((agent, session), None)

    def clear(self) -> None:
        """Keep nothing."""
        with self._guard:
            self._talks.clear()


class Conversations:
    """The part of a SQLite store that is `Conversing`. Threads and processes may share it."""

    _connections: Connections
    _talks: KeptTalks

    def converse(
        self, agent: str, session: str, changes: Sequence[ConversationChange]
    ) -> tuple[Message, ...]:
        """Apply all changes in one transaction, in order, or none of them.

        A PurgeMessages rewrites the file as the purge of a memory does, and raises StoreBusy or
        StoreUnavailable as that does.
        """
        for name, value in (("agent", agent), ("session", session)):
            if not value or len(value) > _LONGEST_NAME:
                raise InvalidInput(f"{name}={value[:50]!r} is no name. Use 1 to {_LONGEST_NAME} characters.")
        if not changes:
            return ()
        purges = any(isinstance(each, PurgeMessages) for each in changes)
        with self._connections.writing() as connection:
            begins = any(isinstance(each, Append | SetAnchor) for each in changes)
            if begins and not spoken(connection, agent, session).conversation:
                connection.execute(queries("sqlite")["add_agent"], {"name": agent})
                connection.execute(
                    queries("sqlite")["add_conversation"], {"agent": agent, "session": session}
                )
            moved = Saying(connection, agent, session).apply(changes)
            if purges:
                note_erasure(connection, owed=True)
        if purges:
            self._talks.drop(agent, session)
            erase(self._connections)
        return moved

    def messages(self, agent: str, session: str, *, hidden: bool = False) -> tuple[Message, ...]:
        """The messages of a conversation in order; those of hidden groups if asked."""
        with self._talk(agent, session) as (talk, _):
            return talk.messages(hidden=hidden)

    def message(self, agent: str, message_id: str) -> Message | None:
        """The agent's message of that id, hidden or not; None where there is none."""
        raw = try_id_bytes(message_id)
        if raw is None:
            return None
        with self._connections.reading() as connection:
            values = {"agent": agent, "id": raw}
            row = connection.execute(queries("sqlite")["message"], values).fetchone()
        return None if row is None else message_of(row, agent, row[-1])

    def match_groups(self, agent: str, session: str, terms: Sequence[str]) -> GroupScores:
        """How well the visible groups match any of these terms, by the statistics of this session alone."""
        with self._talk(agent, session) as (talk, language):
            return talk.match(terms, language)

    def anchors(self, agent: str, session: str) -> Mapping[str, str]:
        """The texts that stand outside any window, by name."""
        with self._connections.reading() as connection:
            values = {"agent": agent, "session": session}
            return dict(connection.execute(queries("sqlite")["anchors"], values).fetchall())

    def conversations(self, agent: str) -> tuple[ConversationInfo, ...]:
        """All conversations of the agent, by the names of their sessions."""
        with self._connections.reading() as connection:
            rows = connection.execute(queries("sqlite")["conversations"], {"agent": agent}).fetchall()
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

    @contextmanager
    def _talk(self, agent: str, session: str) -> Iterator[tuple[Talk, str]]:
        talk = self._talks.of(agent, session)
        with talk.lock, self._connections.reading() as connection:
            known = spoken(connection, agent, session)
            talk.catch_up(connection, known)
            yield talk, known.language

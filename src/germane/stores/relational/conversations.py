"""Conversations: written in one transaction, read from what a process keeps of them."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final
from zlib import crc32

from germane.errors import EmbedderMismatch, InvalidInput, MessageNotFound, StoreBusy, StoreUnavailable
from germane.model.conversation import (
    Append,
    ConversationChange,
    ConversationInfo,
    LastGroups,
    Message,
    MessageRole,
    PurgeMessages,
    RemoveGroup,
    RemoveMessage,
    RewriteMessage,
    SetAnchor,
    SetHidden,
)
from germane.model.memory import Vector
from germane.model.query import EmbeddingIdentity, Query, SearchResult
from germane.model.text import check_free_name
from germane.stores.relational.cache import Caches
from germane.stores.relational.checksums import is_intact
from germane.stores.relational.conversation_cache import ConversationCache, MadeTurn, TurnVectors
from germane.stores.relational.conversation_log import AgentLog, PastTurns
from germane.stores.relational.conversation_records import (
    MOST_MESSAGES,
    SHIFT,
    ConversationRow,
    MessageRow,
    Record,
    conversation_row,
    is_indexed,
    message_of,
    num_of,
    number_of,
    packed_parts,
    record_of,
    row_of,
    set_vector,
    spread,
)
from germane.stores.relational.inserts import packed_vectors
from germane.stores.relational.ledger import remove_quotations
from germane.stores.relational.message_columns import BLOCK, pack_block, unpack_blocks
from germane.stores.relational.settings import (
    agent_state,
    check_embedding,
    store_embedding,
    stored_embedding,
)
from germane.stores.relational.tables import (
    Connection,
    Connections,
    gated,
    id_bytes,
    microseconds,
    moment,
    try_id_bytes,
)
from germane.stores.relational.tables import number_of as number_of_agent

_MOST_READ_APART: Final = 100
"""Groups up to which each is read by itself."""

_WORTH_STORING: Final = 100
"""Records from which on those that were made are stored: fewer are made sooner than a reader could write."""

_STORED_AT_ONCE: Final = 5000
"""As many as one question stores, in one transaction, so that neither it nor other writers wait for long."""


@gated
class ConversationTables:
    """The log of conversations, each of one agent and one session."""

    def __init__(
        self,
        connections: Connections,
        caches: Caches[tuple[str, str], ConversationCache],
        logs: Caches[str, AgentLog],
        *,
        embedding: EmbeddingIdentity | None = None,
    ) -> None:
        self._connections = connections
        self._caches = caches
        self._logs = logs
        self._embedding = embedding

    def apply(self, agent: str, session: str, changes: Sequence[ConversationChange]) -> tuple[Message, ...]:
        """Apply all changes in one transaction, in order, or none of them.

        Returns the messages that they appended, moved or deleted, as they are afterwards or were before.
        A PurgeMessages rewrites a file as the purge of a memory does, and raises StoreBusy or
        StoreUnavailable as that does.
        """
        check_free_name(agent, "agent")
        check_free_name(session, "session")
        if not changes:
            return ()
        purges = any(isinstance(each, PurgeMessages) for each in changes)
        with self._connections.writing(agent) as connection:
            known = conversation_row(connection, agent, session)
            begins = any(isinstance(each, Append | SetAnchor) for each in changes)
            if begins and not known.conversation:
                connection.run("add_agent", {"name": agent})
                connection.run("add_conversation", {"agent": agent, "session": session})
                known = conversation_row(connection, agent, session)
            embedding = self._makes_vectors(connection, agent, changes)
            moved = ConversationWriter(connection, agent, session, known, embedding).apply(changes)
            if any(isinstance(each, PurgeMessages | RemoveGroup | RemoveMessage) for each in changes):
                remove_quotations(
                    self._connections, connection, known.agent, session, changes=changes, gone=moved
                )
        if purges:
            self.forget(agent, session)
            self._connections.erase()
        return moved

    def purge(self, connection: Connection, agent: str, session: str) -> None:
        """Delete a conversation in a write transaction of the caller's, who calls `forget` after it.

        Raises MessageNotFound where there is none.
        """
        known, changes = conversation_row(connection, agent, session), (PurgeMessages(),)
        gone = ConversationWriter(connection, agent, session, known, None).apply(changes)
        remove_quotations(self._connections, connection, known.agent, session, changes=changes, gone=gone)

    def forget(self, agent: str, session: str) -> None:
        """Drop what is cached of a conversation that was purged."""
        self._caches.drop((agent, session))
        self._logs.drop(agent)

    def messages(self, agent: str, session: str, *, hidden: bool = False) -> tuple[Message, ...]:
        """The messages of a conversation in order; with `hidden`, also those of hidden groups."""
        cache = self._caches.of((agent, session))
        with cache.lock, self._connections.reading(agent) as connection:
            cache.catch_up(connection, conversation_row(connection, agent, session))
            found = cache.messages(hidden=hidden)
        self._caches.settle((agent, session))
        return found

    def last_groups(
        self, agent: str, session: str, count: int, *, searches: bool = False
    ) -> LastGroups | None:
        """What a window of the last `count` groups shows, exactly as `messages` has it.

        None where reading all is as good: a large part is requested, or it is cached. `searches` says that a
        search of the same conversation follows, which needs its index anyway.
        """
        cache = self._caches.peek((agent, session))
        if count > _MOST_READ_APART or (cache is not None and cache.has_messages):
            return None
        cache = self._caches.of((agent, session)) if searches else None
        with nullcontext() if cache is None else cache.lock, self._connections.reading(agent) as connection:
            known = conversation_row(connection, agent, session)
            values = spread(known)
            opened = (
                [name for (name,) in connection.run("groups_opened", values)]
                if cache is None
                else cache.index(connection, known).groups
            )
            rows = list(map(MessageRow._make, connection.run("messages_kept", values)))
            for name in opened[-count:]:
                of_group = {"agent": known.agent, "conversation": known.conversation, "group_name": name}
                rows += map(MessageRow._make, connection.run("messages_of_group", of_group))
        # System messages of a group are in every window, and read already.
        messages = {row.num: message_of(row, agent, session) for row in rows}
        shown = (messages[num] for num in sorted(messages) if not messages[num].hidden)
        return LastGroups(messages=tuple(shown), opened=tuple(opened))

    def latest(self, agent: str, session: str, count: int) -> tuple[Message, ...]:
        """The last visible messages of a conversation, in their order."""
        with self._connections.reading(agent) as connection:
            known = conversation_row(connection, agent, session)
            rows = connection.run("messages_latest", {**spread(known), "most": count}).fetchall()
        return tuple(message_of(row, agent, session) for row in reversed(rows))

    def of_groups(self, agent: str, session: str, groups: Sequence[str]) -> tuple[Message, ...]:
        """The visible messages of some groups, in their order."""
        with self._connections.reading(agent) as connection:
            known = conversation_row(connection, agent, session)
            values = {"agent": known.agent, "conversation": known.conversation}
            rows = [
                row
                for name in groups
                for row in connection.run("messages_of_group", {**values, "group_name": name})
            ]
        found = (message_of(row, agent, session) for row in sorted(rows, key=lambda row: int(row[0])))
        return tuple(message for message in found if not message.hidden)

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

    def search(
        self,
        agent: str,
        session: str,
        query: Query,
        make: MadeTurn,
        *,
        vectors: TurnVectors | None = None,
        groups: Container[str] | None = None,
    ) -> SearchResult:
        """The visible turns that match a query best, by the statistics of this session alone.

        Records that had to be made for it, because an older version or other rules stored the messages, are
        stored for the next query, where that can be done.
        """
        cache = self._caches.of((agent, session))
        with cache.lock, self._connections.reading(agent) as connection:
            known = conversation_row(connection, agent, session)
            index = cache.index(connection, known)
            stored = partial(self._vectors_of, connection, known)
            vectors = None if vectors is None else vectors._replace(stored=stored)
            found = index.search(query, make, vectors=vectors, groups=groups)
            unstored = cache.take_unstored(_STORED_AT_ONCE)
            embedded = {num_of(known, one): each for one, each in index.take_embedded().items()}
        self._caches.settle((agent, session))
        self._store_unstored(agent, [known], *unstored)
        self._store_embedded(agent, embedded)
        return found

    def search_all(self, agent: str, query: Query, past: PastTurns) -> SearchResult | None:
        """The visible turns of all conversations of an agent that match a query best; None where it has none.

        One slice, by the statistics of all its conversations. A slice with an order has the first by that.
        """
        cache = self._logs.of(agent)
        with cache.lock, self._connections.reading(agent) as connection:
            rows = connection.run("conversation_rows", {"agent": agent}).fetchall()
            known = [(session, ConversationRow._make(row)) for session, *row in rows]
            if past.vectors is not None:
                stored = partial(self._vectors_of_agent, connection, known)
                past = replace(past, vectors=past.vectors._replace(stored=stored))
            found = cache.search(connection, known, query, past) if known else None
            unstored = cache.take_unstored(_STORED_AT_ONCE)
            embedded = cache.take_embedded()
        self._logs.settle(agent)
        self._store_unstored(agent, [row for _, row in known], *unstored)
        self._store_embedded(agent, embedded)
        return found

    def waiting(self, agent: str, limit: int) -> tuple[tuple[int, Message], ...]:
        """The latest messages of an agent that wait for a vector, by their numbers in the store."""
        with self._connections.reading(agent) as connection:
            values = {"agent": number_of_agent(connection, agent), "most": limit}
            rows = connection.run("messages_waiting", values).fetchall()
        return tuple((row[0], message_of(row[:-1], agent, row[-1])) for row in rows)

    def pending(self, agent: str) -> int:
        """How many messages of an agent wait for a vector."""
        with self._connections.reading(agent) as connection:
            values = {"agent": number_of_agent(connection, agent)}
            return int(connection.run("count_waiting", values).fetchone()[0])

    def store_vectors(self, agent: str, vectors: Mapping[int, Vector]) -> None:
        """Store the vectors of messages that are still there, by their numbers; NOWHERE for one without.

        Raises EmbedderMismatch where another model makes the store's vectors by now.
        """
        packed = packed_vectors([*vectors.values()], self._embedding)
        self._store_packed(agent, {num: each or b"" for num, each in zip(vectors, packed, strict=True)})

    def point(self, agent: str) -> str:
        """How far the agent's conversations have come: equal points, equal messages."""
        with self._connections.reading(agent) as connection:
            rows = connection.run("conversation_rows", {"agent": agent}).fetchall()
        known = [ConversationRow._make(row) for _, *row in rows]
        marks = [(each.conversation, each.messages, each.revision) for each in known]
        return f"{sum(each.messages for each in known)}-{crc32(repr(marks).encode()):08x}"

    def has(self, agent: str, session: str) -> bool:
        """Whether the agent has a conversation of that name."""
        with self._connections.reading(agent) as connection:
            return conversation_row(connection, agent, session).conversation > 0

    def anchors(self, agent: str, session: str) -> Mapping[str, str]:
        """The texts that stand outside any window, by name."""
        with self._connections.reading(agent) as connection:
            values = {"agent": agent, "session": session}
            return {name: text for name, text, *_ in connection.run("anchors", values)}

    def sessions(self, agent: str, *, until: datetime | None = None) -> tuple[ConversationInfo, ...]:
        """All conversations of the agent, by the names of their sessions.

        With `until`, as they were then: later messages don't count, and what began later is left out.
        """
        values = {"agent": agent, "until": None if until is None else microseconds(until, name="until")}
        with self._connections.reading(agent) as connection:
            rows = connection.run("conversations", values).fetchall()
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

    def _makes_vectors(
        self, connection: Connection, agent: str, changes: Sequence[ConversationChange]
    ) -> EmbeddingIdentity | None:
        """The model of the vectors among the changes; None where another one makes those of the store."""
        if self._embedding is None or not any(isinstance(each, Append) and each.vectors for each in changes):
            return None
        rows = connection.run("agent", {"name": agent})
        stored = agent_state(rows, self._connections.location).embedding
        if stored is None:
            store_embedding(connection, self._embedding)
        return self._embedding if stored in (None, self._embedding) else None

    def _vectors_of(
        self, connection: Connection, known: ConversationRow, numbers: Sequence[int]
    ) -> dict[int, bytes]:
        """The stored vectors of messages of a conversation, by the messages' numbers in it."""
        nums = [num_of(known, number) for number in numbers]
        found = self._packed(connection, known.agent, nums, [spread(known)])
        return {number_of(num): vector for num, vector in found.items()}

    def _vectors_of_agent(
        self,
        connection: Connection,
        known: Sequence[tuple[str, ConversationRow]],
        nums: Sequence[int],
    ) -> dict[int, bytes]:
        """The stored vectors of messages of any conversation, by the messages' numbers in the store."""
        ranges = [spread(row) for _, row in known]
        return self._packed(connection, known[0][1].agent, nums, ranges)

    def _packed(
        self,
        connection: Connection,
        agent: int,
        nums: Sequence[int],
        ranges: Sequence[Mapping[str, int]],
    ) -> dict[int, bytes]:
        if self._embedding is None:
            return {}
        check_embedding(stored_embedding(dict(connection.run("settings").fetchall())), self._embedding)
        if len(nums) <= _MOST_READ_APART or len(ranges) > _MOST_READ_APART:
            values = {"agent": agent, "nums": json.dumps(list(nums))}
            rows = connection.run("message_vectors_of", values).fetchall()
        else:
            rows = [row for place in ranges for row in connection.run("message_vectors", {**place})]
        # A damaged one is made anew, as one that is missing.
        return {num: vector for num, vector, checksum in rows if is_intact(vector, checksum)}

    def _store_embedded(self, agent: str, packed: Mapping[int, bytes]) -> None:
        """Store vectors that a search had to make, where that can be done."""
        if len(packed) >= _WORTH_STORING and not self._connections.read_only:
            with suppress(StoreBusy, StoreUnavailable, EmbedderMismatch):
                self._store_packed(agent, packed)

    def _store_packed(self, agent: str, packed: Mapping[int, bytes]) -> None:
        with self._connections.writing(agent) as connection:
            known = agent_state(connection.run("agent", {"name": agent}), self._connections.location)
            check_embedding(known.embedding, self._embedding)
            if known.embedding is None and self._embedding is not None:
                store_embedding(connection, self._embedding)
            for num, vector in packed.items():
                set_vector(connection, known.agent, num, vector)

    def _store_unstored(
        self,
        agent: str,
        known: Sequence[ConversationRow],
        made: Mapping[int, Record],
        blocks: Sequence[tuple[int, int]],
    ) -> None:
        """Store the records that a search had to make, and pack the blocks that it read message by message.

        The result doesn't depend on it; what can't be stored now is made again when needed.
        """
        if self._connections.read_only or not (blocks or len(made) >= _WORTH_STORING):
            return
        touched = {num >> SHIFT for num in made} | {conversation for conversation, _ in blocks}
        rows = {row.conversation: row for row in known if row.conversation in touched}
        with suppress(StoreBusy, StoreUnavailable), self._connections.writing(agent) as connection:
            left = {num for row in rows.values() for num, _ in connection.run("messages_left", spread(row))}
            records = [
                row_of(num, row.agent, row.language, record)
                for num, record in made.items()
                if num in left and (row := rows[num >> SHIFT])
            ]
            if records:
                connection.many("insert_message_lex", records)
            for conversation, block in blocks:
                pack_block(connection, rows[conversation], block)


class ConversationWriter:
    """One transaction's work on one conversation, of which `known` is what is stored of itself."""

    def __init__(
        self,
        connection: Connection,
        agent: str,
        session: str,
        known: ConversationRow,
        embedding: EmbeddingIdentity | None = None,
    ) -> None:
        self._connection = connection
        self._embedding = embedding
        self._agent = agent
        self._session = session
        self._known = known
        self._values = {"agent": self._known.agent, "conversation": self._known.conversation}
        self._gone = False

    def apply(self, changes: Sequence[ConversationChange]) -> tuple[Message, ...]:
        """Apply all changes in order, and note how far the conversation has come."""
        moved: list[Message] = []
        for change in changes:
            moved += self._apply(change)
        if not self._gone:
            known = self._known
            counts = {"said": known.messages, "revision": known.revision, "opened": known.opened}
            values = {**self._values, **counts}
            self._connection.run("advance_conversation", values)
        return tuple(moved)

    def _apply(self, change: ConversationChange) -> Sequence[Message]:
        if self._gone:
            raise InvalidInput("A conversation can't be changed after it was purged in the same transaction.")
        if isinstance(change, Append):
            return self._append(change)
        if isinstance(change, SetAnchor):
            query = "set_anchor" if change.text else "remove_anchor"
            self._connection.run(query, {**self._values, "name": change.name, "text": change.text})
            return ()
        self._known = self._known._replace(revision=self._known.revision + 1)
        moved = self._move(change)
        if moved and not self._gone:
            # What was packed of them goes with them, and is packed anew by who needs it.
            unpack_blocks(self._connection, self._known, moved[0].seq, moved[-1].seq)
        return moved

    def _move(self, change: ConversationChange) -> Sequence[Message]:
        """Hide, put back, delete or rewrite messages."""
        if isinstance(change, SetHidden):
            self._of_group(change.group)
            self._connection.run(
                "hide_group",
                {**self._values, "group_name": change.group, "hidden": int(change.hidden)},
            )
            return self._of_group(change.group)
        if isinstance(change, RemoveGroup):
            return self._remove_group(change.group)
        if isinstance(change, RemoveMessage | RewriteMessage):
            return self._of_message(change)
        if isinstance(change, PurgeMessages):
            return self._purge(change)
        raise InvalidInput(
            f"{change!r} is no change of a conversation. Use Append, SetHidden, RemoveGroup, RemoveMessage, "
            "RewriteMessage, PurgeMessages or SetAnchor."
        )

    def _append(self, change: Append) -> list[Message]:
        if self._known.messages + len(change.messages) > MOST_MESSAGES:
            raise InvalidInput(f"Conversation {self._session!r} is full. Go on in another session.")
        made: list[Message] = []
        hidden: dict[str, bool] = {}
        for place, message in enumerate(change.messages):
            group = message.group
            if group is None and place < change.joining and message.role is not MessageRole.SYSTEM:
                group = self._known.opened
            if group is not None and group not in hidden:
                hidden[group] = self._enters(group)
            seq = self._known.messages + 1
            self._known = self._known._replace(messages=seq)
            made.append(
                message.evolve(
                    agent=self._agent,
                    session=self._session,
                    seq=seq,
                    group=group,
                    hidden=group is not None and hidden[group],
                )
            )
        self._connection.many("insert_message", [self._row(each) for each in made])
        agent, language = self._known.agent, self._known.language
        given = change.vectors if self._embedding is not None and change.vectors else [None] * len(made)
        records = [
            row_of(
                num_of(self._known, each.seq),
                agent,
                language,
                record_of(each, language),
                vector,
            )
            for each, vector in zip(made, packed_vectors(given, self._embedding), strict=True)
            if is_indexed(each)
        ]
        if records:
            self._connection.many("insert_message_lex", records)
        for block in range((self._known.messages - len(made)) // BLOCK, self._known.messages // BLOCK):
            pack_block(self._connection, self._known, block)
        return made

    def _enters(self, group: str) -> bool:
        """Whether a group that gets a message is hidden; a new one is the one that was opened last."""
        values = {**self._values, "group_name": group}
        row = self._connection.run("group_hidden", values).fetchone()
        if row is None:
            self._known = self._known._replace(opened=group)
        return bool(row and row[0])

    def _remove_group(self, group: str) -> list[Message]:
        going = self._of_group(group)
        self._connection.run("remove_group", {**self._values, "group_name": group})
        self._reopen()
        return going

    def _of_message(self, change: RemoveMessage | RewriteMessage) -> list[Message]:
        """The message that is removed, or as it is rewritten."""
        raw = try_id_bytes(change.message_id)
        row = raw and self._connection.run("message", {"agent": self._agent, "id": raw}).fetchone()
        stored = MessageRow._make(row[:-1]) if row else None
        if stored is None or stored.conversation != self._known.conversation:
            raise MessageNotFound("message", change.message_id, self._session)
        if isinstance(change, RewriteMessage):
            return self._rewrite(stored._replace(parts=packed_parts(change.parts)))
        self._connection.run("remove_message", {"agent": self._known.agent, "num": stored.num})
        self._reopen()
        return [message_of(stored, self._agent, self._session)]

    def _rewrite(self, stored: MessageRow) -> list[Message]:
        agent, language = self._known.agent, self._known.language
        stored = stored.sealed()
        values = {"parts": stored.parts, "checksum": stored.checksum}
        self._connection.run("rewrite_message", {"agent": agent, "num": stored.num, **values})
        written = message_of(stored, self._agent, self._session)
        if is_indexed(written):
            row = row_of(stored.num, agent, language, record_of(written, language))
            self._connection.many("insert_message_lex", [row])
            set_vector(self._connection, agent, stored.num, None)
        return [written]

    def _purge(self, change: PurgeMessages) -> list[Message]:
        if change.group is not None:
            return self._remove_group(change.group)
        if not self._known.conversation:
            raise MessageNotFound("conversation", self._session, self._session)
        rows = self._connection.run("messages_since", spread(self._known)).fetchall()
        self._connection.run("remove_conversation", self._values)
        self._gone = True
        return [message_of(row, self._agent, self._session) for row in rows]

    def _of_group(self, group: str) -> list[Message]:
        rows = self._connection.run("messages_of_group", {**self._values, "group_name": group}).fetchall()
        if not rows:
            raise MessageNotFound("group", group, self._session)
        return [message_of(row, self._agent, self._session) for row in rows]

    def _reopen(self) -> None:
        row = self._connection.run("opened_last", spread(self._known)).fetchone()
        self._known = self._known._replace(opened=row[0] if row else None)

    def _row(self, message: Message) -> MessageRow:
        at = message.created_at
        return MessageRow(
            num=num_of(self._known, message.seq),
            agent=self._known.agent,
            conversation=self._known.conversation,
            id=id_bytes(message.id),
            group_name=message.group,
            role=message.role.value,
            provider=message.provider.value,
            form=message.form,
            created_at=None if at is None else microseconds(at, name="created_at"),
            hidden=int(message.hidden),
            parts=packed_parts(message.parts),
            extra=message.extra,
        ).sealed()

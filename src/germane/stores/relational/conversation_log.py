"""All conversations of an agent as a process caches them: the index of their turns, without any text."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Hashable, MutableMapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from germane.model.memory import Memory
from germane.model.query import Query, SearchResult, TimeRange
from germane.stores.relational.conversation_cache import ConversationIndex, Turn, TurnVectors
from germane.stores.relational.conversation_records import (
    ConversationRow,
    MessageRow,
    Record,
    conversation_of,
    message_of,
)
from germane.stores.relational.message_columns import Unstored, read_columns
from germane.stores.relational.tables import Connection

if TYPE_CHECKING:
    from germane.model.conversation import Message

_MOST_DEAD: Final = 0.5
"""The share of removed turns from which on all is read anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurns:
    """Which turns of an agent's conversations are searched, and how one becomes a candidate.

    `without` names sessions that take no part; `when` is the time of those that do. `make` gets the
    messages of a turn, which part of its session it is in, from 0 (a part ends with a pause of four hours),
    and whether most messages of the session begin with a name. `known` has the candidates made before.
    """

    make: Callable[[Sequence[Message], int, bool], Memory]
    known: MutableMapping[Hashable, Memory]
    without: Container[str] = ()
    when: TimeRange | None = None
    vectors: TurnVectors | None = field(default=None, repr=False)


class _Known(NamedTuple):
    """How far a conversation was read."""

    session: str
    messages: int
    revision: int


class AgentLog:
    """The conversations of one agent as of one snapshot; hold `lock` as long as it is used."""

    def __init__(self, agent: str) -> None:
        self.lock = RLock()
        self._agent = agent
        self._known: dict[int, _Known] = {}
        self._index: ConversationIndex | None = None
        self._connection: Connection | None = None
        self._number = 0
        self._named: dict[int, tuple[int, int]] = {}
        self._unstored = Unstored()

    def shed(self) -> bool:
        """False: it has nothing that is quickly read again."""
        return False

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        return 0 if self._index is None else self._index.nbytes

    def take_embedded(self) -> dict[int, bytes]:
        """The vectors that weren't stored and were made, by their messages' numbers; once."""
        return {} if self._index is None else self._index.take_embedded()

    def take_unstored(self, most: int) -> tuple[dict[int, Record], list[tuple[int, int]]]:
        """What is to be stored for the next reader, of at most so many messages; see `Unstored`."""
        return self._unstored.take(most)

    def search(
        self,
        connection: Connection,
        rows: Sequence[tuple[str, ConversationRow]],
        query: Query,
        past: PastTurns,
    ) -> SearchResult:
        """The turns that match a query best; `rows` are all conversations of the agent as stored."""
        self._connection, self._number = connection, rows[0][1].agent
        try:
            index = self._catch_up(connection, rows)
            numbers = {number for number, known in self._known.items() if known.session in past.without}
            since, until = (None, None) if past.when is None else (past.when.start, past.when.end)
            admitted = index.admitted(without=numbers, since=since, until=until)
            return index.best(query, lambda turns: self._made(turns, past), admitted, vectors=past.vectors)
        finally:
            self._connection = None

    def _catch_up(
        self, connection: Connection, rows: Sequence[tuple[str, ConversationRow]]
    ) -> ConversationIndex:
        language = rows[0][1].language
        index = self._index
        if index is None or index.language != language or index.dead > _MOST_DEAD * (index.turns + 1) + 64:
            self._known, self._unstored = {}, Unstored()
            index = ConversationIndex(language, self._read)
        self._index = None
        now = {row.conversation: (session, row) for session, row in rows}
        for gone in [number for number in self._known if number not in now]:
            index.remove(gone)
            del self._known[gone]
        stale: dict[ConversationRow, int] = {}
        for number, (session, row) in now.items():
            known = self._known.get(number)
            if known is not None and known.revision != row.revision:
                # Something was hidden, put back or deleted.
                index.remove(number)
                known = None
            above = known.messages if known is not None else 0
            if above != row.messages:
                stale[row] = above
            self._known[number] = _Known(session, row.messages, row.revision)
        if stale:
            read = read_columns(connection, stale, self._message)
            self._unstored.add(read)
            for row, above in stale.items():
                columns = read.columns[row.conversation]
                index.add(row.conversation, columns)
                named, total = self._named.get(row.conversation, (0, 0)) if above else (0, 0)
                self._named[row.conversation] = (
                    named + int(np.count_nonzero(columns.named)),
                    total + len(columns.named),
                )
        self._index = index
        return index

    def _made(self, turns: Sequence[Turn], past: PastTurns) -> list[Memory]:
        """The candidates of turns; the messages of those that are new are read together."""
        names = list(map(self._is_transcript, turns))
        keys = [(self._agent, named, *turn.numbers) for turn, named in zip(turns, names, strict=True)]
        new = {
            key: (turn, named)
            for key, turn, named in zip(keys, turns, names, strict=True)
            if key not in past.known
        }
        messages = iter(self._read([number for turn, _ in new.values() for number in turn.numbers]))
        for key, (turn, named) in new.items():
            past.known[key] = past.make([next(messages) for _ in turn.numbers], turn.part, named)
        return [past.known[key] for key in keys]

    def _is_transcript(self, turn: Turn) -> bool:
        named, total = self._named[conversation_of(turn.numbers[0])[0]]
        return 2 * named > total

    def _read(self, numbers: Sequence[int]) -> list[Message]:
        """The messages of these numbers, in that order."""
        connection = self._connection
        if not numbers or connection is None:
            return []
        values = {"agent": self._number, "nums": json.dumps(list(numbers))}
        found: dict[int, Message] = {}
        for row in map(MessageRow._make, connection.run("messages_numbered", values)):
            found[row.num] = self._message(row)
        return [found[number] for number in numbers]

    def _message(self, row: MessageRow) -> Message:
        return message_of(row, self._agent, self._known[row.conversation].session)

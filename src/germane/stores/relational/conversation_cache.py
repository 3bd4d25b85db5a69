"""One conversation as a process caches it: its rows, its index, and its messages as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from threading import RLock
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.model.conversation import (
    Message,
    Messages,
)
from germane.model.memory import Memory, Vector
from germane.model.query import CandidateTable, Query, SearchResult
from germane.retrieval.bm25 import Postings, Sessions
from germane.retrieval.tokenizer import LONGEST, Forward
from germane.retrieval.vectors import VectorRows
from germane.stores.relational.conversation_records import (
    CALL_MARK,
    MOST_MESSAGES,
    RESULT_MARK,
    ConversationRow,
    MessageRow,
    Record,
    indexed_words,
    is_indexed,
    message_of,
    num_of,
    record_of,
    rules_of,
    spread,
    traffic_of,
)
from germane.stores.relational.signals import Columns, Cosines, distinct, signals_for
from germane.stores.relational.tables import Connection, microseconds

# What a process keeps in memory of one conversation: its messages, and its index once it is needed.

_OVERHEAD = 800

# Of so few new messages the words are read sooner than the records.
_FEW = 20


class ConversationCache:
    """One conversation as of one snapshot; hold `lock` from before the transaction as long as it is used."""

    def __init__(self, agent: str, session: str) -> None:
        self.lock = RLock()
        self._agent = agent
        self._session = session
        self._known = ConversationRow()
        self._messages: dict[int, Message] = {}
        self._bytes = 0
        self._all: Messages | None = None
        self._visible: Messages | None = None
        self._index: ConversationIndex | None = None
        self._indexed = ConversationRow()
        self._made: dict[int, Record] = {}
        self._snapshot: tuple[Connection, ConversationRow] | None = None

    def shed(self) -> bool:
        """False: it has nothing that is quickly read again."""
        return False

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        return self._bytes + (self._index.nbytes if self._index else 0)

    @property
    def has_messages(self) -> bool:
        """Whether the messages are here."""
        return bool(self._messages)

    def catch_up(self, connection: Connection, known: ConversationRow) -> None:
        """Become as the snapshot is."""
        before = self._known
        if (before.conversation, before.messages, before.revision) == (
            known.conversation,
            known.messages,
            known.revision,
        ):
            return
        if (before.conversation, before.revision) != (known.conversation, known.revision):
            # Something was hidden, put back or deleted, which is seldom.
            self._messages, self._bytes = {}, 0
            before = ConversationRow()
        self._all = self._visible = None
        self._known = ConversationRow()
        rows = connection.run("messages_since", spread(known, above=before.messages))
        for row in map(MessageRow._make, rows):
            message = message_of(row, self._agent, self._session)
            self._messages[message.seq] = message
            self._bytes += _OVERHEAD + 2 * len(row.parts)
        self._known = known

    def messages(self, *, hidden: bool) -> Messages:
        """The messages in order, with or without those that are hidden."""
        if self._all is None or self._visible is None:
            self._all = Messages(self._messages.values())
            self._visible = Messages(each for each in self._all if not each.hidden)
        return self._all if hidden else self._visible

    def index(self, connection: Connection, known: ConversationRow) -> ConversationIndex:
        """The index of the visible turns; the messages themselves needn't be here.

        What it finds is read by the connection, as long as that is in its transaction.
        """
        self._snapshot = connection, known
        index, before = self._index, self._indexed
        moved = (before.conversation, before.revision) != (known.conversation, known.revision)
        if index is None or moved or index.language != known.language:
            index, before, self._made = ConversationIndex(known.language, self._read), ConversationRow(), {}
        if before.messages != known.messages:
            self._index = None
            values = {"call": CALL_MARK, "result": RESULT_MARK, **spread(known, above=before.messages)}
            entries = [_entry(row) for row in connection.run("message_entries", values)]
            many = len(entries) > _FEW
            stored = self._stored(connection, known, index, above=before.messages) if many else {}
            made = index.add(entries, stored)
            # Whether the records of a few are stored isn't looked up: usually they are.
            self._made |= made if many else {}
        self._index, self._indexed = index, known
        return index

    def take_made(self, most: int) -> dict[int, Record]:
        """Some of the records that weren't stored and had to be made, by their messages' numbers; once."""
        numbers = list(self._made)[:most]
        return {number: self._made.pop(number) for number in numbers}

    def _read(self, numbers: Sequence[int]) -> list[Message]:
        if self._snapshot is None:
            return []
        connection, known = self._snapshot
        found = self._messages if self._known == known else {}
        missing = [number for number in numbers if number not in found]
        if missing:
            nums = [num_of(known, number) for number in missing]
            values = {"agent": known.agent, "nums": json.dumps(nums)}
            rows = connection.run("messages_numbered", values)
            read = (message_of(row, self._agent, self._session) for row in rows)
            found = {one: found[one] for one in numbers if one in found} | {each.seq: each for each in read}
        return [found[number] for number in numbers]

    def _stored(
        self, connection: Connection, known: ConversationRow, index: ConversationIndex, *, above: int = 0
    ) -> dict[int, Record]:
        """The stored records of the messages after a number."""
        values = {**spread(known, above=above), "rules": rules_of(index.language)}
        rows = connection.run("message_lex", values).fetchall()
        return {row[0] & MOST_MESSAGES: row[1:] for row in rows}


# The turns of one conversation: BM25 from the forward records of their messages, and vectors.

_MOST_FREQUENT: Final = 0xFF
_OF_A_TURN: Final = 600
"""Bytes that a turn takes besides its words."""
_PAUSE: Final = timedelta(hours=4) // timedelta(microseconds=1)
"""A message that comes so long after the one before it begins another session."""

# One entry as one number, so that sorting brings together what a turn's messages say of a term.
_TURN_SHIFT: Final = np.uint64(40)
_HASH_SHIFT: Final = np.uint64(8)
_HASH_MASK: Final = np.uint64(0xFFFFFFFF)
_FREQUENCY_MASK: Final = np.uint64(0xFF)


class TurnVectors(NamedTuple):
    """Where the vectors of messages come from: of a `model`, `stored` by the messages' numbers.

    `stored` gives the packed vectors that there are, empty for a text that points nowhere. `embed`, if given,
    makes those that are missing, None for such a text; without it, they are waited for.
    """

    model: str
    dimension: int
    embed: Callable[[Sequence[str]], Sequence[Vector | None]] | None = None
    stored: Callable[[Sequence[int]], Mapping[int, bytes]] = lambda _: {}


class Turn(NamedTuple):
    """A turn that an index found: its messages, and the number of the session that it stands in.

    A session ends with the conversation, or with a pause of four hours; `part` counts its sessions from 0.
    """

    messages: tuple[IndexedMessage, ...]
    session: str
    part: int


MadeTurn: TypeAlias = Callable[[Sequence[Message], str], Memory]
"""A turn as the candidate that it is ranked as: its messages, and the name of its session."""


class IndexedMessage(NamedTuple):
    """What an index stores of a message: its number, when it was made in microseconds since 1970, and what
    decides to which turn it belongs.

    `calls` are the ids of the calls in it, `answers` those of the calls that it answers. `named` says that it
    begins with a name.
    """

    number: int
    group: str
    at: int | None
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    conversation: int = 0
    named: bool = False


ReadMessages: TypeAlias = Callable[[Sequence[int]], Sequence[Message]]
"""The messages of these numbers, in that order."""


def entries_of(messages: Iterable[Message]) -> Iterator[IndexedMessage]:
    """What an index stores of each message that a question can find."""
    for message in messages:
        if message.group is None or message.hidden or not is_indexed(message):
            continue
        calls = tuple(call.id for call in message.calls)
        answers = tuple(result.call_id for result in message.results)
        at = None if message.created_at is None else microseconds(message.created_at, name="created_at")
        yield IndexedMessage(message.seq, message.group, at, calls, answers)


def _entry(row: Sequence[Any]) -> IndexedMessage:
    num, group, at, parts = row
    return IndexedMessage(num & MOST_MESSAGES, group, at, *(traffic_of(parts) if parts else ()))


class ConversationIndex:
    """The index of conversations in one language; what is hidden has no part in its statistics.

    It finds turns: a message with the results of its calls. It stores no text: `read` gives the messages.
    """

    def __init__(self, language: str, read: ReadMessages) -> None:
        self.language = language
        self.read = read
        self._records: dict[int, Record] = {}
        self._postings: Postings | None = None
        self._is_searched = False
        self._columns = Columns()
        self._turns: list[list[IndexedMessage]] = []
        self._of_call: dict[tuple[int, str], int] = {}
        self._of_conversation: dict[int, list[int]] = {}
        self._latest: dict[int, tuple[int | None, int]] = {}
        self._parts: dict[int, int] = {}
        self._waiting: list[tuple[tuple[Any, ...], int]] = []
        self._windows: Sessions | None = None
        self._vectors: VectorRows | None = None
        self._model = ""
        self._unembedded: dict[int, None] = {}
        self._embedded: dict[int, bytes] = {}

    @property
    def nbytes(self) -> int:
        """About how much memory the index takes."""
        postings = 0 if self._postings is None else self._postings.nbytes
        return postings + self._columns.nbytes + _OF_A_TURN * len(self._turns)

    @property
    def dead(self) -> int:
        """How many turns were removed; their places stay empty."""
        return self._columns.dead

    @property
    def turns(self) -> int:
        """How many turns the index finds."""
        return self._columns.used - self._columns.dead

    def add(self, messages: Iterable[IndexedMessage], stored: Mapping[int, Record]) -> dict[int, Record]:
        """Index messages that are new. Returns the records that had to be made, by the message's number.

        `stored` are those that needn't be, by the same.
        """
        self._records |= stored
        new = list(messages)
        missing = [each.number for each in new if each.number not in self._records]
        read = self.read(missing) if missing else ()
        made = {
            number: record_of(message, self.language) for number, message in zip(missing, read, strict=True)
        }
        self._records |= made
        touched: dict[int, None] = {}
        for each in new:
            turn = self._turn_of(each)
            if each.calls:
                self._of_call |= dict.fromkeys([(each.conversation, call) for call in each.calls], turn)
            touched[turn] = None
        # Row by row this would take most of the time.
        places = self._columns.append([row for row, _ in self._waiting]).tolist()
        for place, (_, pauses) in zip(places, self._waiting, strict=True):
            self._parts[self._columns.session(place)] = pauses
        self._waiting = []
        if touched:
            self._index(list(touched))
        return made

    def remove(self, conversation: int) -> None:
        """Remove all turns of a conversation."""
        self._latest.pop(conversation, None)
        turns = self._of_conversation.pop(conversation, ())
        self._of_call = {key: turn for key, turn in self._of_call.items() if key[0] != conversation}
        for turn in turns:
            if self._postings is not None:
                self._postings.remove(turn)
            self._columns.remove(turn)
            self._unembedded.pop(turn, None)
            if self._vectors is not None:
                self._vectors.remove(turn)
            for message in self._turns[turn]:
                self._records.pop(message.number, None)
            self._turns[turn] = []
        self._windows = None

    def search(
        self,
        query: Query,
        make: MadeTurn,
        *,
        vectors: TurnVectors | None = None,
        groups: Container[str] | None = None,
    ) -> SearchResult:
        """The turns of these groups, or of all, that are best by each signal of a query, in one slice."""
        admitted = np.array(
            [bool(turn) and (groups is None or turn[0].group in groups) for turn in self._turns],
            dtype=np.bool_,
        )

        def made(turns: Sequence[Turn]) -> list[Memory]:
            messages = iter(self.read([each.number for turn in turns for each in turn.messages]))
            return [make([next(messages) for _ in turn.messages], turn.session) for turn in turns]

        return self.best(query, made, admitted, vectors=vectors)

    def best(
        self,
        query: Query,
        make: Callable[[Sequence[Turn]], Sequence[Memory]],
        admitted: NDArray[np.bool_],
        *,
        vectors: TurnVectors | None = None,
    ) -> SearchResult:
        """The same of the turns that are admitted, by their places; `make` makes all candidates at once."""
        columns, (part,) = self._columns, query.slices
        if self._windows is None:
            self._windows = columns.sessions(columns.alive)
        signals, words, window_bound = signals_for(
            query,
            postings=self._holding,
            sessions=self._windows,
            turns=columns.turns,
            compared=None if vectors is None else self._compared(query.vector, vectors),
        )
        near = (signal.nearest(admitted, part.limit) for signal in signals)
        chosen = distinct([columns.best(places, values, part.limit) for places, values in near])
        if part.order is not None:
            chosen = np.sort(columns.first(admitted, part.order, part.limit))
            signals = []
        found = make([self._turn(place) for place in chosen.tolist()])
        return SearchResult(
            slices=(CandidateTable(found, {signal.name: signal.values(chosen) for signal in signals}),),
            lexical_bound=0.0 if words is None else words.bound,
            window_bound=window_bound,
            term_weights={} if words is None else words.weights,
            average_terms=1.0 if words is None else words.average,
            stored=self.turns,
            admitted=int(np.count_nonzero(admitted)),
            by_relevance=bool(signals),
        )

    def admitted(
        self, *, without: Container[int] = (), since: datetime | None = None, until: datetime | None = None
    ) -> NDArray[np.bool_]:
        """By place, the turns of a time that are in none of the conversations `without`."""
        first = None if since is None else microseconds(since, name="since")
        end = None if until is None else microseconds(until, name="until")

        def admits(turn: Sequence[IndexedMessage]) -> bool:
            if not turn or turn[0].conversation in without:
                return False
            if since is None and until is None:
                return True
            at = turn[0].at
            return at is not None and (first is None or at >= first) and (end is None or at < end)

        return np.array([admits(turn) for turn in self._turns], dtype=np.bool_)

    def _turn(self, place: int) -> Turn:
        session = self._columns.session(place)
        return Turn(tuple(self._turns[place]), str(session), self._parts[session])

    def _turn_of(self, message: IndexedMessage) -> int:
        """The turn that a message belongs to: that of the call that it answers in its group, or a new one."""
        conversation = message.conversation
        for call in message.answers:
            turn = self._of_call.get((conversation, call))
            if turn is not None and self._turns[turn][0].group == message.group:
                self._turns[turn].append(message)
                return turn
        at = message.at
        latest, pauses = self._latest.get(conversation, (None, 0))
        if at is not None:
            pauses += latest is not None and at - latest > _PAUSE
            latest = at
        self._latest[conversation] = latest, pauses
        key = message.number.to_bytes(16, "big")
        label = f"{conversation} {pauses}"
        self._waiting.append(((message.number, key, "", message.number, 0.0, label, None), pauses))
        self._of_conversation.setdefault(conversation, []).append(len(self._turns))
        self._turns.append([message])
        return len(self._turns) - 1

    def take_embedded(self) -> dict[int, bytes]:
        """The vectors that weren't stored and were made, by their messages' numbers; once."""
        made, self._embedded = self._embedded, {}
        return made

    def _compared(self, vector: Vector | None, vectors: TurnVectors) -> Cosines | None:
        """How near the turns are to a vector; those that have none yet get theirs, if there is one."""
        if vector is None:
            return None
        if self._vectors is None or self._model != vectors.model:
            self._vectors, self._model = VectorRows(vector.size, capacity=len(self._turns)), vectors.model
            self._unembedded = {turn: None for turn, messages in enumerate(self._turns) if messages}
        if self._unembedded:
            self._embed(vectors)
        return self._vectors.compare(vector)

    def _embed(self, vectors: TurnVectors) -> None:
        waiting = {turn: [each.number for each in self._turns[turn]] for turn in self._unembedded}
        numbers = list(chain.from_iterable(waiting.values()))
        known = dict(vectors.stored(numbers))
        missing = [number for number in numbers if number not in known] if vectors.embed is not None else []
        if missing and vectors.embed is not None:
            texts = [indexed_words(message) for message in self.read(missing)]
            for number, made in zip(missing, vectors.embed(texts), strict=True):
                known[number] = b"" if made is None else made.astype("<f2").tobytes()
                self._embedded[number] = known[number]
        ready = {turn: own for turn, own in waiting.items() if all(number in known for number in own)}
        for turn in ready:
            del self._unembedded[turn]
        packed = _turn_vectors({turn: [known[number] for number in own] for turn, own in ready.items()})
        if packed and self._vectors is not None:
            self._vectors.put(np.array(list(packed), dtype=np.int64), list(packed.values()))

    def _index(self, turns: Sequence[int]) -> None:
        self._windows = None
        self._unembedded |= dict.fromkeys(turns)
        if self._postings is None:
            return
        lengths, counts, hashes, frequencies = _joined(self._documents(turns))
        end = 0
        for ordinal, length, count in zip(turns, lengths.tolist(), counts.tolist(), strict=True):
            own = slice(end, end := end + count)
            forward = Forward(hashes=hashes[own], frequencies=frequencies[own], length=length)
            self._postings.add(ordinal, forward)

    def _holding(self, terms: Sequence[int]) -> Postings:
        """An index that holds at least the postings of the terms with these hashes.

        Many processes search once, so the first search sorts the postings of its own terms alone.
        """
        if self._postings is not None:
            return self._postings
        turns = [turn for turn, messages in enumerate(self._turns) if messages]
        arrays = _joined(self._documents(turns), None if self._is_searched else terms)
        whole = (len(turns), int(arrays[0].sum()))
        found = Postings.from_arrays(np.array(turns, dtype=np.int64), *arrays, whole=whole)
        if self._is_searched:
            self._postings = found
        self._is_searched = True
        return found

    def _documents(self, turns: Iterable[int]) -> list[list[Record]]:
        return [[self._records[message.number] for message in self._turns[turn]] for turn in turns]


def _turn_vectors(of_turn: Mapping[int, Sequence[bytes]]) -> dict[int, bytes]:
    """The vector of each turn: that of its message, or the direction of those of several together."""
    packed = {turn: own[0] for turn, own in of_turn.items() if len(own) == 1 and own[0]}
    several = {turn: [each for each in own if each] for turn, own in of_turn.items() if len(own) > 1}
    several = {turn: own for turn, own in several.items() if own}
    if several:
        starts = np.cumsum([0, *map(len, several.values())])[:-1]
        joined = b"".join(chain.from_iterable(several.values()))
        rows = np.frombuffer(joined, dtype="<f2").reshape(int(sum(map(len, several.values()))), -1)
        sums = np.add.reduceat(rows.astype(np.float32), starts, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        made = (sums / np.where(lengths > 0, lengths, 1)).astype("<f2")
        packed |= {turn: made[place].tobytes() for place, turn in enumerate(several) if lengths[place] > 0}
    return packed


_Arrays: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]


def _joined(documents: Sequence[Sequence[Record]], terms: Sequence[int] | None = None) -> _Arrays:
    """The records of each document as one: lengths, numbers of terms, and all hashes and frequencies.

    With `terms`, only those of these hashes.
    """
    records = list(chain.from_iterable(documents))
    of_record = np.repeat(np.arange(len(documents)), np.fromiter(map(len, documents), dtype=np.int64))
    its_lengths, its_hashes, its_frequencies = zip(*records, strict=True) if records else ((), (), ())
    hashes = np.frombuffer(b"".join(its_hashes), dtype="<u4")
    frequencies = np.frombuffer(b"".join(its_frequencies), dtype=np.uint8)
    sizes = np.fromiter(map(len, its_frequencies), dtype=np.int64)
    lengths = np.zeros(len(documents), dtype=np.int64)
    np.add.at(lengths, of_record, np.array(its_lengths, dtype=np.int64))
    if terms is None:
        of_entry = np.repeat(of_record, sizes)
    else:
        having = [np.flatnonzero(hashes == term) for term in set(terms)]
        places = np.concatenate([np.empty(0, dtype=np.int64), *having])
        of_entry = of_record[np.searchsorted(np.cumsum(sizes), places, side="right")]
        hashes, frequencies = hashes[places], frequencies[places]
    entries = of_entry.astype(np.uint64) << _TURN_SHIFT
    entries |= hashes.astype(np.uint64) << _HASH_SHIFT
    entries |= frequencies
    entries.sort()
    keys = entries >> _HASH_SHIFT
    firsts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    often = np.add.reduceat((entries & _FREQUENCY_MASK).astype(np.int64), firsts) if len(firsts) else firsts
    keys = keys[firsts]
    return (
        np.minimum(lengths, LONGEST),
        np.bincount((entries[firsts] >> _TURN_SHIFT).astype(np.int64), minlength=len(documents)),
        (keys & _HASH_MASK).astype(np.uint32),
        np.minimum(often, _MOST_FREQUENT).astype(np.uint8),
    )

"""One conversation as a process caches it: its rows, its index, and its messages as JSON."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from operator import itemgetter
from threading import RLock
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.model.conversation import (
    Message,
    Messages,
)
from germane.model.memory import Memory, Vector
from germane.model.query import CandidateTable, Query, SearchResult
from germane.retrieval.bm25 import Postings
from germane.retrieval.tokenizer import LONGEST, Forward
from germane.retrieval.vectors import VectorRows, as_stored
from germane.retrieval.windows import Sessions
from germane.stores.relational.conversation_records import (
    SHIFT,
    ConversationRow,
    MessageRow,
    Record,
    indexed_words,
    message_of,
    num_of,
    spread,
)
from germane.stores.relational.message_columns import (
    NO_TIME,
    NO_WORDS,
    MessageColumns,
    Unstored,
    Words,
    joined_words,
    read_columns,
)
from germane.stores.relational.signals import Columns, Cosines, distinct, signals_for
from germane.stores.relational.tables import Connection, microseconds

# What a process keeps in memory of one conversation: its messages, and its index once it is needed.

_OVERHEAD = 800


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
        self._unstored = Unstored()
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
            index, before, self._unstored = (
                ConversationIndex(known.language, self._read),
                ConversationRow(),
                Unstored(),
            )
        if before.messages != known.messages:
            self._index = None
            read = read_columns(connection, {known: before.messages}, self._message)
            index.add(0, read.columns[known.conversation])
            self._unstored.add(read)
        self._index, self._indexed = index, known
        return index

    def take_unstored(self, most: int) -> tuple[dict[int, Record], list[tuple[int, int]]]:
        """What is to be stored for the next reader, of at most so many messages; see `Unstored`."""
        return self._unstored.take(most)

    def _message(self, row: MessageRow) -> Message:
        return message_of(row, self._agent, self._session)

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


# The turns of one conversation: BM25 from the forward records of their messages, and vectors.

_MOST_FREQUENT: Final = 0xFF
_OF_A_TURN: Final = 400
"""Bytes that a turn takes besides its words."""
_MOST_PIECES: Final = 64
"""Pieces of the words of messages, one for each time that some were added, from which on they are joined."""
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
    """A turn that an index found: its messages' numbers, and the number of the session that it stands in.

    A session ends with the conversation, or with a pause of four hours; `part` counts its sessions from 0.
    """

    numbers: tuple[int, ...]
    session: str
    part: int


MadeTurn: TypeAlias = Callable[[Sequence[Message], str], Memory]
"""A turn as the candidate that it is ranked as: its messages, and the name of its session."""


ReadMessages: TypeAlias = Callable[[Sequence[int]], Sequence[Message]]
"""The messages of these numbers, in that order."""


class ConversationIndex:
    """The index of conversations in one language; what is hidden has no part in its statistics.

    It finds turns: a message with the results of its calls. It stores no text: `read` gives the messages.
    """

    def __init__(self, language: str, read: ReadMessages) -> None:
        self.language = language
        self.read = read
        self._words: list[tuple[int, Words]] = []
        self._postings: Postings | None = None
        self._is_searched = False
        self._columns = Columns()
        # Of each message in the order of adding: its number, its group, its time and its turn.
        self._numbers: list[int] = []
        self._groups: list[str] = []
        self._at: list[int] = []
        self._turn_of: list[int] = []
        # Of each turn, by its place in the columns: its first message and the others, and which part of its
        # session it is in. Lists of lists would keep the garbage collector busy.
        self._firsts: list[int] = []
        self._others: dict[int, list[int]] = {}
        self._parts: list[int] = []
        self._calls: dict[int, dict[str, int]] = {}
        self._results: set[int] = set()
        self._of_conversation: dict[int, list[int]] = {}
        self._latest: dict[int, tuple[int | None, int]] = {}
        self._windows: Sessions | None = None
        self._vectors: VectorRows | None = None
        self._model = ""
        self._unembedded: dict[int, None] = {}
        self._embedded: dict[int, bytes] = {}

    @property
    def nbytes(self) -> int:
        """About how much memory the index takes."""
        postings = 0 if self._postings is None else self._postings.nbytes
        words = sum(each.nbytes for _, each in self._words)
        return postings + words + self._columns.nbytes + _OF_A_TURN * len(self._firsts)

    @property
    def dead(self) -> int:
        """How many turns were removed; their places stay empty."""
        return self._columns.dead

    @property
    def turns(self) -> int:
        """How many turns the index finds."""
        return self._columns.used - self._columns.dead

    @property
    def groups(self) -> list[str]:
        """The groups of all messages, in the order in which they were opened."""
        return list(dict.fromkeys(self._groups))

    def add(self, conversation: int, new: MessageColumns) -> None:
        """Index messages of a conversation that are new and come after those that are here.

        Without its number, which is 0 then, its messages are numbered within it, else as in the store.
        """
        base, first = len(self._numbers), len(self._firsts)
        offset = conversation << SHIFT
        self._numbers += (new.numbers + offset).tolist()
        self._groups += new.groups
        joining = self._joining(conversation, base, new)
        begins = np.ones(len(new.groups), dtype=np.bool_)
        begins[[message - base for message in joining]] = False
        self._turn_of += (first - 1 + np.cumsum(begins)).tolist()
        self._firsts += (base + np.flatnonzero(begins)).tolist()
        for message, head in joining.items():
            turn = self._turn_of[message] = self._turn_of[head]
            self._others.setdefault(turn, []).append(message)
        self._results.update(self._turn_of[base + message] for message in new.answering.tolist())
        self._begin(conversation, new.numbers[begins] + offset, new.at[begins])
        self._words.append((base, new.words))
        if len(self._words) > _MOST_PIECES:
            self._whole()
        if new.groups:
            longer = {turn for message in joining if (turn := self._turn_of[message]) < first}
            self._index([*sorted(longer), *range(first, len(self._firsts))])

    def _joining(self, conversation: int, base: int, new: MessageColumns) -> dict[int, int]:
        """The new messages that join a turn, each with the message that a turn begins with.

        That is the turn of a call in the same group that the message answers, by the latest call of that id.
        """
        calls = self._calls.setdefault(conversation, {})
        begun = len(self._turn_of)
        joining: dict[int, int] = {}
        calling = zip((new.calling + base).tolist(), new.calls, strict=True)
        ahead = next(calling, None)
        for message, call in zip((new.answering + base).tolist(), new.answers, strict=True):
            while ahead is not None and ahead[0] < message:
                calls[ahead[1]] = ahead[0]
                ahead = next(calling, None)
            caller = calls.get(call)
            if caller is not None and message not in joining:
                head = joining.get(caller, caller) if caller >= begun else self._firsts[self._turn_of[caller]]
                if self._groups[head] == self._groups[message]:
                    joining[message] = head
        if ahead is not None:
            calls[ahead[1]] = ahead[0]
        calls.update((call, message) for message, call in calling)
        return joining

    def _begin(self, conversation: int, numbers: NDArray[np.int64], at: NDArray[np.int64]) -> None:
        """Note the turns that begin with these messages, and in which part of its session each is."""
        timed = at != NO_TIME
        times = at[timed]
        latest, part = self._latest.get(conversation, (None, 0))
        pauses = np.zeros(len(at), dtype=np.int64)
        if times.size:
            pauses[timed] = np.diff(times, prepend=times[0] if latest is None else latest) > _PAUSE
            latest = times.item(-1)
        parts: list[int] = (part + np.cumsum(pauses)).tolist()
        self._latest[conversation] = latest, (parts or [part])[-1]
        self._parts += parts
        self._at += at.tolist()
        self._of_conversation.setdefault(conversation, []).extend(
            range(self._columns.used, self._columns.used + len(parts))
        )
        # Columns of numbers, since row by row this would take most of the time.
        nums, count = numbers.tolist(), len(parts)
        ids = np.zeros((count, 2), dtype=">u8")
        ids[:, 1] = numbers
        labels = {each: f"{conversation} {each}" for each in parts}
        sessions = [labels[each] for each in parts]
        self._columns.append_columns(
            [nums, [ids.tobytes()], [""] * count, nums, [0.0] * count, sessions, [None] * count]
        )

    def remove(self, conversation: int) -> None:
        """Remove all turns of a conversation."""
        self._latest.pop(conversation, None)
        turns = self._of_conversation.pop(conversation, ())
        self._calls.pop(conversation, None)
        for turn in turns:
            if self._postings is not None:
                self._postings.remove(turn)
            self._columns.remove(turn)
            self._unembedded.pop(turn, None)
            self._results.discard(turn)
            if self._vectors is not None:
                self._vectors.remove(turn)
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
        admitted = self._columns.alive
        if groups is not None:
            admitted = np.array([self._groups[first] in groups for first in self._firsts], dtype=np.bool_)
            admitted &= self._columns.alive

        def made(turns: Sequence[Turn]) -> list[Memory]:
            messages = iter(self.read([number for turn in turns for number in turn.numbers]))
            return [make([next(messages) for _ in turn.numbers], turn.session) for turn in turns]

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
        # However many results of tools there are, as many other turns are candidates as without them.
        results = np.zeros(len(admitted), dtype=np.bool_)
        results[[*self._results]] = True
        groups = [admitted & ~results, admitted & results] if self._results else [admitted]
        near = (signal.nearest(group, part.limit) for signal in signals for group in groups)
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
        self, *, without: Iterable[int] = (), since: datetime | None = None, until: datetime | None = None
    ) -> NDArray[np.bool_]:
        """By place, the turns of a time that are in none of the conversations `without`."""
        admitted: NDArray[np.bool_] = self._columns.alive.copy()
        for conversation in without:
            admitted[self._of_conversation.get(conversation, [])] = False
        if since is not None or until is not None:
            at = np.array(self._at, dtype=np.int64)
            admitted &= at != NO_TIME
            if since is not None:
                admitted &= at >= microseconds(since, name="since")
            if until is not None:
                admitted &= at < microseconds(until, name="until")
        return admitted

    def _turn(self, place: int) -> Turn:
        return Turn(self._numbers_of(place), str(self._columns.session(place)), self._parts[place])

    def _messages_of(self, turn: int) -> tuple[int, ...]:
        return (self._firsts[turn], *self._others.get(turn, ()))

    def _numbers_of(self, turn: int) -> tuple[int, ...]:
        return tuple([self._numbers[message] for message in self._messages_of(turn)])

    def take_embedded(self) -> dict[int, bytes]:
        """The vectors that weren't stored and were made, by their messages' numbers; once."""
        made, self._embedded = self._embedded, {}
        return made

    def _compared(self, vector: Vector | None, vectors: TurnVectors) -> Cosines | None:
        """How near the turns are to a vector; those that have none yet get theirs, if there is one."""
        if vector is None:
            return None
        if self._vectors is None or self._model != vectors.model:
            self._vectors = VectorRows(vector.size, capacity=len(self._firsts))
            self._model = vectors.model
            self._unembedded = dict.fromkeys(np.flatnonzero(self._columns.alive).tolist())
        if self._unembedded:
            self._embed(vectors)
        return self._vectors.compare(vector)

    def _embed(self, vectors: TurnVectors) -> None:
        waiting = {turn: self._numbers_of(turn) for turn in self._unembedded}
        numbers = list(chain.from_iterable(waiting.values()))
        known = dict(vectors.stored(numbers))
        missing = [number for number in numbers if number not in known] if vectors.embed is not None else []
        if missing and vectors.embed is not None:
            texts = [indexed_words(message) for message in self.read(missing)]
            for number, made in zip(missing, vectors.embed(texts), strict=True):
                known[number] = b"" if made is None else as_stored(made[np.newaxis]).tobytes()
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
        messages = [self._messages_of(turn) for turn in turns]
        words = joined_words(list(map(self._record, chain.from_iterable(messages))))
        documents = np.repeat(np.arange(len(turns)), list(map(len, messages)))
        lengths, counts, hashes, frequencies = _by_document(words, documents, len(turns))
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
        alive, turn_of, words = self._columns.alive, np.array(self._turn_of, dtype=np.int64), self._whole()
        documents = (np.cumsum(alive) - 1)[turn_of]
        if self.dead:
            left = alive[turn_of]
            documents, words = documents[left], words.of(left)
        turns = np.flatnonzero(alive)
        arrays = _by_document(words, documents, len(turns), None if self._is_searched else terms)
        found = Postings.from_arrays(turns, *arrays, whole=(len(turns), int(arrays[0].sum())))
        if self._is_searched:
            self._postings = found
        self._is_searched = True
        return found

    def _whole(self) -> Words:
        """The records of all messages."""
        self._words = [(0, joined_words([words for _, words in self._words]))] if self._words else []
        return self._words[0][1] if self._words else NO_WORDS

    def _record(self, message: int) -> Words:
        """The record of one message."""
        start, words = self._words[bisect_right(self._words, message, key=itemgetter(0)) - 1]
        place = message - start
        end = int(words.distinct[: place + 1].sum())
        own = slice(end - words.distinct.item(place), end)
        one = slice(place, place + 1)
        return Words(words.lengths[one], words.distinct[one], words.hashes[own], words.frequencies[own])


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


def _by_document(
    words: Words, document_of: NDArray[np.int64], documents: int, terms: Sequence[int] | None = None
) -> _Arrays:
    """The records of each document as one: lengths, numbers of terms, and all hashes and frequencies.

    `document_of` has the document of each record. With `terms`, only those of these hashes.
    """
    hashes, frequencies = words.hashes, words.frequencies
    lengths = np.zeros(documents, dtype=np.int64)
    np.add.at(lengths, document_of, words.lengths)
    if terms is None:
        of_entry = np.repeat(document_of, words.distinct)
    else:
        having = [np.flatnonzero(hashes == term) for term in set(terms)]
        places = np.concatenate([np.empty(0, dtype=np.int64), *having])
        of_entry = document_of[np.searchsorted(np.cumsum(words.distinct), places, side="right")]
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
        np.bincount((entries[firsts] >> _TURN_SHIFT).astype(np.int64), minlength=documents),
        (keys & _HASH_MASK).astype(np.uint32),
        np.minimum(often, _MOST_FREQUENT).astype(np.uint8),
    )

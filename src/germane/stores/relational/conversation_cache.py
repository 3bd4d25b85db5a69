"""One conversation as a process caches it: its rows, its index, and its messages as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from itertools import chain
from threading import RLock
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.ids import id_text
from germane.model.conversation import (
    Message,
    MessageRole,
    Messages,
    OpaquePart,
    Part,
    Provider,
    TextPart,
    ToolCall,
    ToolResult,
)
from germane.model.memory import Memory, Vector
from germane.model.query import CandidateTable, Query, SearchResult
from germane.model.text import day_in_words
from germane.retrieval.bm25 import Postings, Sessions
from germane.retrieval.tokenizer import LONGEST, TOKENIZER, Forward, index_terms, term_hash
from germane.retrieval.vectors import VectorRows
from germane.stores.relational.signals import Columns, Cosines, distinct, signals_for
from germane.stores.relational.tables import UNREADABLE, Connection, damaged, moment

_SHIFT: Final = 32
MOST_MESSAGES: Final = (1 << _SHIFT) - 1
"""The most messages of one conversation."""

_ROLES: Final = {each.value: each for each in MessageRole}
_PROVIDERS: Final = {each.value: each for each in Provider}


class MessageRow(NamedTuple):
    """A row of `messages`."""

    num: int
    agent: int
    conversation: int
    id: bytes
    group_name: str | None
    role: str
    provider: str
    form: str
    created_at: int | None
    hidden: int
    parts: str
    extra: str


class ConversationRow(NamedTuple):
    """A conversation's row; numbers of 0 where it hasn't begun."""

    agent: int = 0
    conversation: int = 0
    messages: int = 0
    revision: int = 0
    opened: str | None = None
    language: str = "english"


def conversation_row(connection: Connection, agent: str, session: str) -> ConversationRow:
    """What is stored of a conversation itself."""
    values = {"agent": agent, "session": session}
    row = connection.run("conversation", values).fetchone()
    return ConversationRow._make(row) if row else ConversationRow()


def spread(known: ConversationRow, *, above: int = 0) -> dict[str, int]:
    """The placeholders for the messages of a conversation after the number `above`."""
    first = known.conversation << _SHIFT
    return {"agent": known.agent, "above": first + above, "below": first + (1 << _SHIFT)}


def number_of(num: int) -> int:
    """The number within its conversation of the message that a num stands for."""
    return num & MOST_MESSAGES


def num_of(known: ConversationRow, number: int) -> int:
    """The num of the message that has this number within its conversation."""
    return (known.conversation << _SHIFT) + number


def message_of(row: Sequence[Any], agent: str, session: str) -> Message:
    """The message of a row; the names of its agent and session aren't in it."""
    stored = MessageRow._make(row)
    try:
        parts = unpacked_parts(stored.parts)
    except UNREADABLE as error:
        raise damaged(f"Message {number_of(stored.num)} of conversation {session!r}", error) from error
    return Message(
        role=_ROLES[stored.role],
        parts=parts,
        id=id_text(stored.id),
        agent=agent,
        session=session,
        seq=number_of(stored.num),
        group=stored.group_name,
        provider=_PROVIDERS[stored.provider],
        created_at=None if stored.created_at is None else moment(stored.created_at),
        hidden=bool(stored.hidden),
        form=stored.form,
        extra=stored.extra,
    )


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
        self._made: dict[int, Record] = {}

    def shed(self) -> bool:
        """False: it has nothing that is quickly read again."""
        return False

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        return 2 * self._bytes if self._index else self._bytes

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
            self._index, self._made, before = None, {}, ConversationRow()
        self._all = self._visible = None
        self._known = ConversationRow()
        new = []
        rows = connection.run("messages_since", spread(known, above=before.messages))
        for row in map(MessageRow._make, rows):
            message = message_of(row, self._agent, self._session)
            new.append(message)
            self._messages[message.seq] = message
            self._bytes += _OVERHEAD + 2 * len(row.parts)
        if self._index is not None:
            many = len(new) > _FEW
            stored = self._stored(connection, known, self._index, above=before.messages) if many else {}
            made = self._index.add(new, stored)
            # Whether the records of a few are stored isn't looked up: usually they are.
            self._made |= made if many else {}
        self._known = known

    def messages(self, *, hidden: bool) -> Messages:
        """The messages in order, with or without those that are hidden."""
        if self._all is None or self._visible is None:
            self._all = Messages(self._messages.values())
            self._visible = Messages(each for each in self._all if not each.hidden)
        return self._all if hidden else self._visible

    def index(self, connection: Connection, language: str) -> ConversationIndex:
        """The index of the visible turns."""
        if self._index is None or self._index.language != language:
            index = ConversationIndex(language)
            self._made = index.add(self.messages(hidden=False), self._stored(connection, self._known, index))
            self._index = index
        return self._index

    def take_made(self, most: int) -> dict[int, Record]:
        """Some of the records that weren't stored and had to be made, by their messages' numbers; once."""
        numbers = list(self._made)[:most]
        return {number: self._made.pop(number) for number in numbers}

    def _stored(
        self, connection: Connection, known: ConversationRow, index: ConversationIndex, *, above: int = 0
    ) -> dict[int, Record]:
        """The stored records of the messages after a number."""
        values = {**spread(known, above=above), "rules": rules_of(index.language)}
        rows = connection.run("message_lex", values)
        return {number_of(num): Record(*record) for num, *record in rows}


# The turns of one conversation: BM25 from the forward records of their messages, and vectors.

_MOST_FREQUENT: Final = 0xFF
_PAUSE: Final = timedelta(hours=4)
"""A message that comes so long after the one before it begins another session."""

# One entry as one number, so that sorting brings together what a turn's messages say of a term.
_TURN_SHIFT: Final = np.uint64(40)
_HASH_SHIFT: Final = np.uint64(8)
_HASH_MASK: Final = np.uint64(0xFFFFFFFF)
_FREQUENCY_MASK: Final = np.uint64(0xFF)


class TurnVectors(NamedTuple):
    """Makes the vectors of turns: by `embed`, which gives None for a text that points nowhere."""

    model: str
    embed: Callable[[Sequence[str]], Sequence[Vector | None]]


MadeTurn: TypeAlias = Callable[[Sequence[Message], str], Memory]
"""A turn as the candidate that it is ranked as: its messages, and the name of its session."""


class ConversationIndex:
    """The index of a conversation in one language; what is hidden has no part in its statistics.

    It finds turns: a message with the results of its calls.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._records: dict[int, Record] = {}
        self._postings = Postings()
        self._columns = Columns()
        self._turns: list[list[Message]] = []
        self._of_call: dict[str, int] = {}
        self._pauses = 0
        self._latest: datetime | None = None
        self._windows: Sessions | None = None
        self._vectors: VectorRows | None = None
        self._model = ""
        self._unembedded: dict[int, None] = {}

    def add(self, messages: Iterable[Message], stored: Mapping[int, Record]) -> dict[int, Record]:
        """Index messages that are new. Returns the records that had to be made, by the message's number.

        `stored` are those that needn't be, by the same.
        """
        self._records |= stored
        made: dict[int, Record] = {}
        touched: dict[int, None] = {}
        known = len(self._turns)
        for message in messages:
            if message.hidden or not is_indexed(message):
                continue
            if message.seq not in self._records:
                self._records[message.seq] = made[message.seq] = record_of(message, self.language)
            turn = self._turn_of(message)
            self._of_call |= dict.fromkeys((call.id for call in message.calls), turn)
            touched[turn] = None
        if touched:
            self._index(list(touched), is_first=not known)
        return made

    def search(
        self,
        query: Query,
        make: MadeTurn,
        *,
        vectors: TurnVectors | None = None,
        groups: Container[str] | None = None,
    ) -> SearchResult:
        """The turns of these groups, or of all, that are best by each signal of a query, in one slice."""
        columns, (part,) = self._columns, query.slices
        admitted = np.array(
            [groups is None or turn[0].group in groups for turn in self._turns], dtype=np.bool_
        )
        self._windows = self._windows or columns.sessions(np.ones(columns.used, dtype=np.bool_))
        signals, words, window_bound = signals_for(
            query,
            postings=lambda _: self._postings,
            sessions=self._windows,
            turns=columns.turns,
            compared=None if vectors is None else self._compared(query.vector, vectors),
        )
        near = (signal.nearest(admitted, part.limit) for signal in signals)
        chosen = distinct([columns.best(places, values, part.limit) for places, values in near])
        found = [make(self._turns[place], str(columns.session(place))) for place in chosen.tolist()]
        return SearchResult(
            slices=(CandidateTable(found, {signal.name: signal.values(chosen) for signal in signals}),),
            lexical_bound=0.0 if words is None else words.bound,
            window_bound=window_bound,
            term_weights={} if words is None else words.weights,
            average_terms=1.0 if words is None else words.average,
            stored=columns.used,
            admitted=int(np.count_nonzero(admitted)),
            by_relevance=bool(signals),
        )

    def _turn_of(self, message: Message) -> int:
        """The turn that a message belongs to: that of the call that it answers in its group, or a new one."""
        for result in message.results:
            turn = self._of_call.get(result.call_id)
            if turn is not None and self._turns[turn][0].group == message.group:
                self._turns[turn].append(message)
                return turn
        at = message.created_at
        if at is not None:
            self._pauses += self._latest is not None and at - self._latest > _PAUSE
            self._latest = at
        key = message.seq.to_bytes(16, "big")
        self._columns.append([(message.seq, key, "", message.seq, 0.0, str(self._pauses), None)])
        self._turns.append([message])
        return len(self._turns) - 1

    def _compared(self, vector: Vector | None, vectors: TurnVectors) -> Cosines | None:
        """How near the turns are to a vector; those that have none yet get theirs."""
        if vector is None:
            return None
        if self._vectors is None or self._model != vectors.model:
            self._vectors, self._model = VectorRows(vector.size, capacity=len(self._turns)), vectors.model
            self._unembedded = dict.fromkeys(range(len(self._turns)))
        waiting = list(self._unembedded)
        texts = ["\n".join(map(indexed_words, self._turns[turn])) for turn in waiting]
        made = dict(zip(waiting, vectors.embed(texts), strict=True))
        packed = {turn: each.astype("<f2").tobytes() for turn, each in made.items() if each is not None}
        self._vectors.put(np.array(list(packed), dtype=np.int64), list(packed.values()))
        self._unembedded = {}
        return self._vectors.compare(vector)

    def _index(self, turns: Sequence[int], *, is_first: bool) -> None:
        self._windows = None
        self._unembedded |= dict.fromkeys(turns)
        documents = [[self._records[message.seq] for message in self._turns[turn]] for turn in turns]
        ordinals = np.array(turns, dtype=np.int64)
        lengths, counts, hashes, frequencies = _joined(documents)
        if is_first:
            self._postings = Postings.from_arrays(ordinals, lengths, counts, hashes, frequencies)
            return
        end = 0
        for ordinal, length, count in zip(turns, lengths.tolist(), counts.tolist(), strict=True):
            own = slice(end, end := end + count)
            forward = Forward(hashes=hashes[own], frequencies=frequencies[own], length=length)
            self._postings.add(ordinal, forward)


_Arrays: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]


def _joined(documents: Sequence[Sequence[Record]]) -> _Arrays:
    """The records of each document as one: lengths, numbers of terms, and all hashes and frequencies."""
    records = list(chain.from_iterable(documents))
    of_record = np.repeat(np.arange(len(documents)), [len(each) for each in documents])
    lengths = np.zeros(len(documents), dtype=np.int64)
    np.add.at(lengths, of_record, [each.length for each in records])
    of_entry = np.repeat(of_record, [len(each.frequencies) for each in records])
    entries = of_entry.astype(np.uint64) << _TURN_SHIFT
    hashes = np.frombuffer(b"".join(each.hashes for each in records), dtype="<u4")
    entries |= hashes.astype(np.uint64) << _HASH_SHIFT
    entries |= np.frombuffer(b"".join(each.frequencies for each in records), dtype=np.uint8)
    entries.sort()
    terms = entries >> _HASH_SHIFT
    firsts = np.flatnonzero(np.diff(terms, prepend=~terms[:1]))
    often = np.add.reduceat((entries & _FREQUENCY_MASK).astype(np.int64), firsts) if len(firsts) else firsts
    terms = terms[firsts]
    return (
        np.minimum(lengths, LONGEST),
        np.bincount((entries[firsts] >> _TURN_SHIFT).astype(np.int64), minlength=len(documents)),
        (terms & _HASH_MASK).astype(np.uint32),
        np.minimum(often, _MOST_FREQUENT).astype(np.uint8),
    )


# The forward record of a message: what is stored of its words beside it, and by which rules that was made.


class Record(NamedTuple):
    """How many terms a message has, the distinct ones' hashes, and how often each occurs; as in `lex`."""

    length: int
    hashes: bytes
    frequencies: bytes


def is_indexed(message: Message) -> bool:
    """Whether a question can find a message. The system speaks in every window: no group is found by it."""
    return message.group is not None and message.role is not MessageRole.SYSTEM


def record_of(message: Message, language: str) -> Record:
    """The record of a message's words in a language."""
    forward = index_terms(indexed_words(message), language=language)
    hashes = forward.hashes.astype("<u4", copy=False).tobytes()
    return Record(forward.length, hashes, forward.frequencies.tobytes())


def row_of(num: int, agent: int, language: str, record: Record) -> tuple[int, int, int, int, bytes, bytes]:
    """The row of the record of a message."""
    return (num, agent, rules_of(language), *record)


@cache
def rules_of(language: str) -> int:
    """A number for all that a record depends on beside its message; other rules have another one."""
    return term_hash(f"{WORDS_READ} {TOKENIZER} {language}")


WORDS_READ = "words-2"
"""Names what `indexed_words` reads; after a change of that function it needs another name."""

_TEXT, _OPAQUE, _CALL, _RESULT = "t", "o", "c", "r"

_read = json.JSONDecoder().raw_decode

_MOST_INDEXED = 8000
"""Characters of one result that the index reads, half from each end: what a result is about shows there."""


def packed_parts(parts: tuple[Part, ...]) -> str:
    """The parts as a JSON list of lists; each begins with what it is."""
    return json.dumps([_packed(part) for part in parts], ensure_ascii=False, separators=(",", ":"))


def unpacked_parts(text: str) -> tuple[Part, ...]:
    """What `packed_parts` packed."""
    # A process that reads a long log does this for each message; json.loads would take twice as long.
    return tuple(map(_unpacked, _read(text)[0]))


def indexed_words(message: Message) -> str:
    """The text of a message that is indexed: its words, calls and results, without recalled memories."""
    texts = [message.own_text]
    for part in message.parts:
        if isinstance(part, ToolCall):
            texts += [part.name, _ends(part.arguments)]
        elif isinstance(part, ToolResult):
            own = (each for each in part.content if isinstance(each, TextPart) and not each.recalled)
            texts += [_ends(each.text) for each in own]
    if message.created_at is not None:
        texts.append(day_in_words(message.created_at))
    return "\n".join(text for text in texts if text)


def _packed(part: Part) -> list[Any]:
    if isinstance(part, TextPart):
        packed: list[Any] = [_TEXT, part.text]
        if part.recalled or part.form or part.extra:
            packed += [int(part.recalled), part.form, part.extra]
        return packed
    if isinstance(part, OpaquePart):
        return [_OPAQUE, part.json, part.form]
    if isinstance(part, ToolCall):
        return [_CALL, part.id, part.name, part.arguments, part.form, part.extra]
    if isinstance(part, ToolResult):
        content = [_packed(each) for each in part.content]
        return [_RESULT, part.call_id, content, part.is_error, part.form, part.extra]
    raise InvalidInput(f"{part!r} is no part of a message: use TextPart, ToolCall, ToolResult or OpaquePart.")


def _unpacked(packed: list[Any]) -> Any:
    kind, *fields = packed
    if kind == _TEXT:
        if len(fields) == 1:
            return TextPart(text=fields[0])
        text, recalled, form, extra = fields
        return TextPart(text=text, recalled=bool(recalled), form=form, extra=extra)
    if kind == _OPAQUE:
        return OpaquePart(json=fields[0], form=fields[1])
    if kind == _CALL:
        call_id, name, arguments, form, extra = fields
        return ToolCall(id=call_id, name=name, arguments=arguments, form=form, extra=extra)
    call_id, content, is_error, form, extra = fields
    parts = tuple(map(_unpacked, content))
    return ToolResult(call_id=call_id, content=parts, is_error=is_error, form=form, extra=extra)


def _ends(text: str) -> str:
    half = _MOST_INDEXED // 2
    return text if len(text) <= _MOST_INDEXED else f"{text[:half]}\n{text[-half:]}"

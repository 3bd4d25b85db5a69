"""What an index reads of messages, in columns: from their rows, or 256 of them packed into one value."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from germane.model.conversation import Message, MessageRole
from germane.stores.relational.conversation_records import (
    CALL_MARK,
    RESULT_MARK,
    SHIFT,
    ConversationRow,
    MessageRow,
    Record,
    conversation_of,
    is_indexed,
    is_named,
    num_of,
    number_of,
    record_of,
    rules_of,
    traffic_of,
)
from germane.stores.relational.tables import UNREADABLE, Connection, microseconds

BLOCK: Final = 256
"""The messages of a block, of those that a question can find and others: numbers 1 to 256 are the first."""

NO_TIME: Final = np.iinfo(np.int64).min
"""The time of a message without one."""

_FEW: Final = 20
"""Of so few new messages the words are read sooner than the records."""

_MOST_READ_APART: Final = 8
"""Stretches of messages up to which each is read by itself."""

_ROW: Final = np.dtype(
    [
        ("number", "<u4"),
        ("at", "<i8"),
        ("group", "<u2"),
        ("named", "?"),
        ("length", "<u2"),
        ("distinct", "<u4"),
    ]
)
"""A message of a block but for its traffic and its terms; `group` is the place of its name in a list."""


class Words(NamedTuple):
    """The records of messages laid end to end.

    `lengths` is how many terms each message has, and `distinct` how many of `hashes` and `frequencies`.
    """

    lengths: NDArray[np.int64]
    distinct: NDArray[np.int64]
    hashes: NDArray[np.uint32]
    frequencies: NDArray[np.uint8]

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(each.nbytes for each in self)

    def of(self, chosen: NDArray[np.bool_]) -> Words:
        """Those of some messages."""
        own = np.repeat(chosen, self.distinct)
        return Words(self.lengths[chosen], self.distinct[chosen], self.hashes[own], self.frequencies[own])


NO_WORDS: Final = Words(
    np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint8)
)
"""The records of no message."""


class MessageColumns(NamedTuple):
    """Messages that a question can find, in their order, with what an index has of each.

    `numbers` count within the conversation, `at` is in microseconds since 1970, `named` says which begin with
    a name. `calls` are the ids of the calls in messages, `answers` those of the calls that they answer; which
    message each is in, as a place in these columns, is in `calling` and `answering`, ascending.
    """

    numbers: NDArray[np.int64]
    at: NDArray[np.int64]
    groups: list[str]
    named: NDArray[np.bool_]
    calling: NDArray[np.int64]
    calls: list[str]
    answering: NDArray[np.int64]
    answers: list[str]
    words: Words


class _Entry(NamedTuple):
    """What decides to which turn a message belongs, and of which session that is."""

    number: int
    at: int | None
    group: str
    calls: Sequence[str]
    answers: Sequence[str]
    named: bool


class ReadColumns(NamedTuple):
    """The columns of several conversations, by their numbers.

    `made` are records that weren't stored and had to be made, by the nums of their messages. `unpacked` are
    the full blocks whose messages were read one by one, by conversation and place.
    """

    columns: Mapping[int, MessageColumns]
    made: Mapping[int, Record]
    unpacked: Sequence[tuple[int, int]]


class Unstored:
    """What was read message by message, until it is stored for the next reader."""

    def __init__(self) -> None:
        self._made: dict[int, Record] = {}
        self._blocks: list[tuple[int, int]] = []

    def add(self, read: ReadColumns) -> None:
        """Note what had to be read."""
        self._made |= read.made
        self._blocks += read.unpacked

    def take(self, most: int) -> tuple[dict[int, Record], list[tuple[int, int]]]:
        """The records and the full blocks of at most so many messages; each is given once."""
        made = {num: self._made.pop(num) for num in list(self._made)[:most]}
        blocks, self._blocks = self._blocks[: most // BLOCK], self._blocks[most // BLOCK :]
        return made, blocks


class _Gap(NamedTuple):
    """A stretch of a conversation's messages that is read row by row: after one number, up to another."""

    known: ConversationRow
    above: int
    last: int

    @property
    def above_num(self) -> int:
        """The num after which those of its messages are."""
        return num_of(self.known, self.above)

    @property
    def below_num(self) -> int:
        """The num before which those of its messages are."""
        return num_of(self.known, self.last + 1)

    def holds(self, block: int) -> bool:
        """Whether all messages of a block are here."""
        return self.above <= block * BLOCK and (block + 1) * BLOCK <= self.last


def read_columns(
    connection: Connection, stale: Mapping[ConversationRow, int], message: Callable[[MessageRow], Message]
) -> ReadColumns:
    """What an index needs of conversations of one agent, of each the messages after a number.

    `message` gives that of a row, where its record isn't stored.
    """
    language = next(iter(stale)).language
    packed = _packed(connection, stale)
    gaps = [gap for known, above in stale.items() for gap in _gaps(known, above, packed)]
    rows = _rows_of(connection, gaps)
    many = sum(map(len, rows)) > _FEW
    stored = _records_of(connection, gaps, language) if many else {}
    pieces: dict[int, list[tuple[int, MessageColumns]]] = {known.conversation: [] for known in stale}
    for (conversation, block), columns in packed.items():
        pieces[conversation].append((block * BLOCK, columns))
    made: dict[int, Record] = {}
    unpacked: list[tuple[int, int]] = []
    for gap, own in zip(gaps, rows, strict=True):
        missing = {row.num: record_of(message(row), language) for row in own if row.num not in stored}
        # Whether the records of a few are stored isn't looked up: usually they are.
        made |= missing if many else {}
        columns = _columns(map(_entry, own), [stored.get(row.num) or missing[row.num] for row in own])
        pieces[gap.known.conversation].append((gap.above, columns))
        blocks = dict.fromkeys(((columns.numbers - 1) // BLOCK).tolist())
        unpacked += [(gap.known.conversation, block) for block in blocks if gap.holds(block)]
    found = {
        conversation: joined([columns for _, columns in sorted(own, key=itemgetter(0))] or [_columns((), ())])
        for conversation, own in pieces.items()
    }
    return ReadColumns(found, made, unpacked)


def pack_block(connection: Connection, known: ConversationRow, block: int) -> None:
    """Store what an index reads of a full block as one value, if the records of its messages are stored."""
    gap = _Gap(known, block * BLOCK, (block + 1) * BLOCK)
    unpack_blocks(connection, known, gap.above + 1, gap.last)
    rows, records = _rows_of(connection, [gap])[0], _records_of(connection, [gap], known.language)
    if rows and all(row.num in records for row in rows):
        columns = _columns(map(_entry, rows), [records[row.num] for row in rows])
        packed = _written(columns, rules_of(known.language))
        last = rows[-1].num
        values = {"agent": known.agent, "above": last - 1, "below": last + 1}
        connection.run("pack_messages", {**values, "packed": packed})


def unpack_blocks(connection: Connection, known: ConversationRow, first: int, last: int) -> None:
    """Delete the packed form of the blocks of the messages from one number to another."""
    above, below = (first - 1) // BLOCK * BLOCK, -(-last // BLOCK) * BLOCK + 1
    nums = {"above": num_of(known, above), "below": num_of(known, below)}
    connection.run("pack_messages", {"agent": known.agent, **nums, "packed": None})


def columns_of(messages: Iterable[Message], language: str) -> MessageColumns:
    """The columns of messages that no store has; those that no question finds are left out."""
    found = [each for each in messages if each.group is not None and not each.hidden and is_indexed(each)]
    entries = [
        _Entry(
            each.seq,
            None if each.created_at is None else microseconds(each.created_at, name="created_at"),
            each.group or "",
            tuple(call.id for call in each.calls),
            tuple(result.call_id for result in each.results),
            named=False,
        )
        for each in found
    ]
    return _columns(entries, [record_of(each, language) for each in found])


def joined(several: Sequence[MessageColumns]) -> MessageColumns:
    """Columns one after another as one."""
    if len(several) == 1:
        return several[0]
    numbers, at, groups, named, calling, calls, answering, answers, words = zip(*several, strict=True)
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    return MessageColumns(
        np.concatenate(numbers),
        np.concatenate(at),
        list(chain.from_iterable(groups)),
        np.concatenate(named),
        np.concatenate([own + start for own, start in zip(calling, starts, strict=False)]),
        list(chain.from_iterable(calls)),
        np.concatenate([own + start for own, start in zip(answering, starts, strict=False)]),
        list(chain.from_iterable(answers)),
        joined_words(words),
    )


def joined_words(several: Sequence[Words]) -> Words:
    """Records one after another as one."""
    return Words(*map(np.concatenate, zip(*several, strict=True)))


def _packed(
    connection: Connection, stale: Mapping[ConversationRow, int]
) -> dict[tuple[int, int], MessageColumns]:
    """The blocks of these conversations that are packed, by conversation and place."""
    wanted = {
        known.conversation: -(-above // BLOCK)
        for known, above in stale.items()
        if -(-above // BLOCK) < known.messages // BLOCK
    }
    if not wanted:
        return {}
    known = next(iter(stale))
    first, last = min(wanted), max(wanted)
    nums = {"above": first << SHIFT, "below": (last + 1) << SHIFT}
    found: dict[tuple[int, int], MessageColumns] = {}
    for num, data in connection.run("packed_messages", {"agent": known.agent, **nums}):
        conversation, number = conversation_of(num)
        block = (number - 1) // BLOCK
        columns = (
            _read(data, rules_of(known.language)) if block >= wanted.get(conversation, block + 1) else None
        )
        if columns is not None:
            found[conversation, block] = columns
    return found


def _gaps(known: ConversationRow, above: int, packed: Container[tuple[int, int]]) -> Iterator[_Gap]:
    """The stretches of a conversation after a number that aren't packed."""
    for block in range(-(-above // BLOCK), known.messages // BLOCK):
        if (known.conversation, block) in packed:
            if above < block * BLOCK:
                yield _Gap(known, above, block * BLOCK)
            above = (block + 1) * BLOCK
    if above < known.messages:
        yield _Gap(known, above, known.messages)


def _rows_of(connection: Connection, gaps: Sequence[_Gap]) -> list[list[MessageRow]]:
    """The messages of each stretch that a question can find."""
    return [
        [
            row
            for row in map(MessageRow._make, rows)
            if not row.hidden and row.group_name is not None and row.role != MessageRole.SYSTEM.value
        ]
        for rows in _of_gaps(connection, gaps, ("messages_since", "messages_of_agent"), {})
    ]


def _records_of(connection: Connection, gaps: Sequence[_Gap], language: str) -> dict[int, Record]:
    """The stored records of the messages of these stretches, by num."""
    rules = {"rules": rules_of(language)}
    found = _of_gaps(connection, gaps, ("message_lex", "message_lex_of_agent"), rules)
    # One that can't be read counts as missing.
    return {
        num: (length, hashes, often)
        for num, length, hashes, often in chain.from_iterable(found)
        if len(hashes) == _HEAD.itemsize * len(often)
    }


def _of_gaps(
    connection: Connection, gaps: Sequence[_Gap], names: tuple[str, str], values: Mapping[str, int]
) -> Sequence[Iterable[Sequence[Any]]]:
    """The rows of each stretch, by one query for each or by one for all of the agent."""
    if not gaps:
        return []
    alone, together = names
    values = {**values, "agent": gaps[0].known.agent}
    starts = [gap.above_num for gap in gaps]
    if len(gaps) <= _MOST_READ_APART:
        ends = [gap.below_num for gap in gaps]
        return [
            connection.run(alone, {**values, "above": above, "below": below})
            for above, below in zip(starts, ends, strict=True)
        ]
    found: list[list[Sequence[Any]]] = [[] for _ in gaps]
    for row in connection.run(together, values):
        place = bisect_left(starts, row[0]) - 1
        if place >= 0 and row[0] < gaps[place].below_num:
            found[place].append(row)
    return found


# A block as one value: the length of a head as JSON, that head, the rows, and the terms of all messages.

_HEAD: Final = np.dtype("<u4")


def _written(columns: MessageColumns, rules: int) -> bytes:
    names = {name: place for place, name in enumerate(dict.fromkeys(columns.groups))}
    rows = np.zeros(len(columns.groups), dtype=_ROW)
    rows["number"], rows["at"], rows["named"] = columns.numbers, columns.at, columns.named
    rows["group"] = [names[each] for each in columns.groups]
    rows["length"], rows["distinct"] = columns.words.lengths, columns.words.distinct
    traffic = [columns.calling.tolist(), columns.calls, columns.answering.tolist(), columns.answers]
    head = json.dumps([rules, len(rows), list(names), *traffic], separators=(",", ":")).encode()
    length = np.array([len(head)], dtype=_HEAD)
    hashes = columns.words.hashes.astype("<u4", copy=False)
    frequencies = columns.words.frequencies
    return b"".join([length.tobytes(), head, rows.tobytes(), hashes.tobytes(), frequencies.tobytes()])


def _read(data: bytes, rules: int) -> MessageColumns | None:
    """The columns of a block; None for one of other rules, or that can't be read."""
    try:
        start = _HEAD.itemsize + int(np.frombuffer(data, _HEAD, 1)[0])
        by, count, names, calling, calls, answering, answers = json.loads(data[_HEAD.itemsize : start])
        if by != rules:
            return None
        rows = np.frombuffer(data, _ROW, count, start)
        distinct = rows["distinct"].astype(np.int64)
        start, total = start + rows.nbytes, int(distinct.sum())
        hashes = np.frombuffer(data, "<u4", total, start)
        frequencies = np.frombuffer(data, np.uint8, -1, start + hashes.nbytes)
        groups = [names[place] for place in rows["group"].tolist()]
    except UNREADABLE:
        return None
    if len(frequencies) != total:
        return None
    return MessageColumns(
        rows["number"].astype(np.int64),
        rows["at"].astype(np.int64),
        groups,
        rows["named"],
        np.array(calling, dtype=np.int64),
        calls,
        np.array(answering, dtype=np.int64),
        answers,
        Words(rows["length"].astype(np.int64), distinct, hashes, frequencies),
    )


def _entry(row: MessageRow) -> _Entry:
    has_traffic = CALL_MARK in row.parts or RESULT_MARK in row.parts
    calls, answers = traffic_of(row.parts) if has_traffic else ((), ())
    return _Entry(
        number_of(row.num),
        row.created_at,
        row.group_name or "",
        calls,
        answers,
        is_named(row.parts, row.extra),
    )


def _columns(entries: Iterable[_Entry], records: Sequence[Record]) -> MessageColumns:
    numbers, at, groups, calls, answers, named = (
        map(list, zip(*entries, strict=True)) if records else [[]] * 6
    )
    lengths, hashes, frequencies = map(list, zip(*records, strict=True)) if records else [[]] * 3
    places = np.arange(len(records))
    return MessageColumns(
        np.array(numbers, dtype=np.int64),
        np.array([NO_TIME if each is None else each for each in at], dtype=np.int64),
        groups,
        np.array(named, dtype=np.bool_),
        np.repeat(places, list(map(len, calls))),
        list(chain.from_iterable(calls)),
        np.repeat(places, list(map(len, answers))),
        list(chain.from_iterable(answers)),
        Words(
            np.array(lengths, dtype=np.int64),
            np.fromiter(map(len, frequencies), dtype=np.int64),
            np.frombuffer(b"".join(hashes), dtype="<u4"),
            np.frombuffer(b"".join(frequencies), dtype=np.uint8),
        ),
    )

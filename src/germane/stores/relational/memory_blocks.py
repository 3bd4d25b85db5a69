"""What a search reads of many memories, packed into one value: a block, from which arrays are read at once.

A block is derived from the rows of its memories. What may change of them afterwards isn't in it, or takes the
block away in the same transaction; a memory that is in no block is read from its rows.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from germane.errors import StoreUnavailable
from germane.lifecycle import withdrawal
from germane.model.query import EmbeddingIdentity
from germane.renditions.passages import LONG_TOKENS, text_digest
from germane.retrieval.bm25 import PostingsBlock
from germane.retrieval.vectors import ScaledRows, small_numbers
from germane.stores.relational.checksums import REPAIR, check_intact
from germane.stores.relational.tables import UNREADABLE, Connection, Rows, damaged, numbered_memory, span

if TYPE_CHECKING:
    from germane.ledger import Finding

FEWEST: Final = 256
"""Of fewer new memories no block is made; and a write packs when its changes go past a multiple of it."""

MOST: Final = 16_384
"""The most memories of a block."""

_JOINED: Final = 3
"""So many blocks before a new one are joined with it where none of them is larger."""

ROWS_AT_ONCE: Final = 500  # Few enough to stay in the processor's cache from row to column.

_LATE, _DEPENDS = 1, 2  # Whether a memory may be read late, as the query `block_rows` says.

_REPACK = "Pack them again from the rows with `germane db reindex`."
_RULES: Final = 2
"""The form of a block; one of another form counts as missing."""

_HEAD: Final = np.dtype("<u4")
_ROW: Final = np.dtype(
    [
        ("num", "<i8"),
        ("id", "S16"),
        ("kind", "<i4"),
        ("created", "<i8"),
        ("importance", "<f8"),
        ("session", "<i4"),
        ("length", "<i4"),
        ("late", "?"),
    ]
)
"""A memory of a block but for its terms; `kind` and `session` are places in lists, -1 for no session.

`late` says whether it is short and its record may be read late while it is active, see `UnreadMemory`.
"""


Vectors = tuple[NDArray[np.int64], ScaledRows]
"""The nums of memories, ascending, and the vector of each in a row."""


class MemoryBlock(NamedTuple):
    """Consecutive memories of one agent, in the order of their writing."""

    rows: NDArray[Any]
    kinds: Sequence[str]
    sessions: Sequence[str]
    words: PostingsBlock
    digests: Mapping[int, str] = MappingProxyType({})
    """By num the `text_digest` of long memories that may be read late; of rows there are none."""
    withdrawn: Sequence[int] = ()
    """The nums of those memories that may be read late whose status withdraws them."""


class Unusual(NamedTuple):
    """The memories that aren't simply active and usable for ever, by num.

    Whether each is active or archived, whether it is the last of its memory's versions, whether what it tells
    of wasn't abandoned, and its expiry.
    """

    nums: NDArray[np.int64]
    active: NDArray[np.bool_]
    archived: NDArray[np.bool_]
    current: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    expires: Sequence[int | None]


def read_memories(connection: Connection, agent: int) -> tuple[list[MemoryBlock], Unusual]:
    """All memories of an agent, from blocks and from rows, and those that aren't simply active."""
    place = span(agent)
    # Queried together, before any answer is looked at.
    rows = connection.run("memory_blocks", place)
    counters = connection.run("agent_counters", {"agent": agent})
    unusual = connection.run("unusual_memories", place)
    stored = rows.fetchall()
    found = list(_blocks_and_rows(connection, place, stored))
    counted = sum(len(each.rows) for each in found), sum(int(each.rows["length"].sum()) for each in found)
    if stored and counted != tuple(counters.fetchone()):
        # Blocks that don't agree with the counters aren't used.
        found = list(_blocks_and_rows(connection, place, ()))
    return found, _unusual(unusual)


def unusual_among(connection: Connection, place: dict[str, int]) -> Unusual:
    """Those of the memories in a span that aren't simply active."""
    return _unusual(connection.run("unusual_memories", place))


def block_rows(connection: Connection, place: dict[str, int], *, most: int = -1) -> Rows:
    """The rows of the memories in a span, of which blocks are made; the first `most`, or all with -1."""
    return connection.run("block_rows", {**place, "short": LONG_TOKENS, "limit": most})


def block_of(rows: Iterable[Sequence[Any]]) -> MemoryBlock:
    """The block of some rows of the query `block_rows`."""
    given = list(rows)
    kinds, sessions = (dict[str, int](), dict[str, int]())
    columns = list(zip(*given, strict=True)) if given else [()] * 10
    nums, ids, its_kinds, created, importance, its_sessions, late, lengths, hashes, frequencies = columns
    made = np.zeros(len(given), dtype=_ROW)
    made["num"], made["created"], made["importance"] = nums, created, importance
    made["id"] = np.frombuffer(b"".join(ids), dtype="S16")
    made["kind"] = [kinds.setdefault(each, len(kinds)) for each in its_kinds]
    made["session"] = [
        -1 if each is None else sessions.setdefault(each, len(sessions)) for each in its_sessions
    ]
    made["length"], made["late"] = lengths, [each == _LATE for each in late]
    words = PostingsBlock.of_records(
        made["length"].astype(np.int32),
        np.fromiter(map(len, frequencies), dtype=np.int64, count=len(given)),
        np.frombuffer(b"".join(hashes), dtype="<u4"),
        np.frombuffer(b"".join(frequencies), dtype=np.uint8),
    )
    return MemoryBlock(made, list(kinds), list(sessions), words)


def read_vectors(connection: Connection, place: dict[str, int], dimension: int) -> Vectors:
    """The vectors of the memories in a span with their nums, ascending, from blocks and from rows.

    Raises StoreUnavailable for a row that can't be read.
    """
    parts = []
    above = place["above"]
    for num, start, packed in connection.run("memory_block_vectors", place):
        vectors = _vectors_of(packed, dimension) if start >= above else None
        if vectors is not None and _is_between(vectors[0], start, num):
            parts += [
                _vectors_of_rows(connection, {**place, "above": above, "below": start + 1}, dimension),
                vectors,
            ]
            above = num
    parts.append(_vectors_of_rows(connection, {**place, "above": above}, dimension))
    some = [each for each in parts if len(each[0])] or parts[:1]
    if len(some) == 1:
        return some[0]
    rows = ScaledRows(*map(np.concatenate, zip(*(rows for _, rows in some), strict=True)))
    return np.concatenate([nums for nums, _ in some]), rows


def vector_row(num: int, agent: int, packed: bytes) -> tuple[int, int, bytes, int]:
    """The row of `vectors` of a memory."""
    return num, agent, packed, crc32(packed)


def pack_some(connection: Connection, agent: int, embedding: EmbeddingIdentity | None) -> bool:
    """Pack up to `MOST` of an agent's memories that are in no block; False where nothing is to be done.

    In a write transaction of the agent's. `embedding` is the model of the store's vectors, if there is one.
    """
    dimension = None if embedding is None else embedding.dimension
    place = span(agent)
    above, before = place["above"], list[_Range]()
    for each in [*map(_Range._make, connection.run("memory_block_ranges", place)), None]:
        below = place["below"] if each is None else each.above + 1
        if above + 1 < below and _fill(
            connection, {**place, "above": above, "below": below}, before, each, dimension
        ):
            return True
        if each is not None:
            above = each.num
            before.append(each)
    return dimension is not None and any(
        _pack_vectors(connection, {**place, "above": each.above, "below": each.num + 1}, each.num, dimension)
        for each in before
        if not each.has_vectors
    )


def unpack(connection: Connection, agent: int, nums: Iterable[int], *, vectors_only: bool = False) -> None:
    """Take away the blocks of these memories, or the vectors in them."""
    query = "unpack_vectors_of" if vectors_only else "unpack_memories"
    connection.run(query, {"agent": agent, "nums": json.dumps(sorted(nums))})


def check_blocks(
    connection: Connection, agent: int, embedding: EmbeddingIdentity | None
) -> Iterator[Finding]:
    """The blocks that aren't what their memories' rows would give."""
    from germane.ledger import Finding  # noqa: PLC0415 - Few processes check.

    place = span(agent)
    for num, above, *packed in connection.run("memory_blocks", place).fetchall():
        own = {**place, "above": above, "below": num + 1}
        stored, made = _read(*packed), block_of(block_rows(connection, own))
        is_right = stored is not None and _compared(stored) == _compared(made)
        if is_right and stored is not None:
            noted = {*stored.digests, *stored.withdrawn}
            _, digests, withdrawn = _late(connection, agent, noted)
            is_right = stored.digests.items() >= digests.items() and noted.issuperset(withdrawn)
        if is_right and (embedding is None or not _differs(connection, own, embedding.dimension)):
            continue
        text = f"What is packed of {len(made.rows)} memories isn't what their rows say."
        yield Finding(code="block", text=text, remedy=_REPACK)


class _Range(NamedTuple):
    """The memories of a block: those whose nums are greater than `above`, and not greater than `num`."""

    num: int
    above: int
    memories: int
    has_vectors: bool


def _blocks_and_rows(
    connection: Connection, place: dict[str, int], stored: Iterable[Sequence[Any]]
) -> Iterator[MemoryBlock]:
    """The memories in a span: these blocks, and what is in none of them from its rows. None is empty."""
    above = place["above"]
    for num, start, *packed in stored:
        block = _read(*packed) if start >= above else None
        if block is None or not _is_between(block.rows["num"], start, num):
            continue
        yield from _block_of_rows(connection, {**place, "above": above, "below": start + 1})
        yield block
        above = num
    yield from _block_of_rows(connection, {**place, "above": above})


def _block_of_rows(connection: Connection, place: dict[str, int]) -> Iterator[MemoryBlock]:
    """The block of the memories in a span, made of their rows, if there are any."""
    rows = block_rows(connection, place).fetchall() if place["above"] + 1 < place["below"] else ()
    if rows:
        yield block_of(rows)


def _is_between(nums: NDArray[np.int64], above: int, last: int) -> bool:
    """Whether these ascending nums are greater than one number, and not greater than another."""
    return not len(nums) or above < int(nums[0]) <= int(nums[-1]) <= last


def _fill(
    connection: Connection,
    gap: dict[str, int],
    before: list[_Range],
    after: _Range | None,
    dimension: int | None,
) -> bool:
    """Make a block of the memories in a gap between blocks, joined with some before."""
    rows = block_rows(connection, gap, most=MOST).fetchall()
    if after is None and len(rows) < FEWEST:
        return False
    if not rows:
        # All of them are purged.
        values = {"agent": gap["agent"], "num": after and after.num, "above": gap["above"]}
        connection.run("widen_block", values)
        return True
    short, digests, withdrawn = _late(
        connection, gap["agent"], [row[0] for row in rows if row[6] == _DEPENDS]
    )
    blocks = [block_of(rows)._replace(digests=digests, withdrawn=withdrawn)]
    blocks[0].rows["late"] |= np.isin(blocks[0].rows["num"], short)
    spans = [{**gap, "above": last.above, "below": last.num + 1} for last in _to_join(before, len(rows))]
    # All are sent before the first is waited for.
    for own, stored in [(own, connection.run("memory_blocks", own)) for own in spans]:
        blocks += _blocks_and_rows(connection, own, stored)
        gap["above"] = own["above"]
    block = _joined(blocks[::-1])
    num = int(block.rows["num"][-1])
    own = {**gap, "below": num + 1}
    vectors = _packed_vectors(connection, own, dimension)
    connection.run("remove_blocks", own)
    row = (num, gap["agent"], gap["above"], len(block.rows), *_written(block), vectors)
    connection.run("insert_memory_block", row)
    return True


def _to_join(before: Sequence[_Range], count: int) -> list[_Range]:
    """Which blocks before a new one of so many memories to join with it, the last first.

    Always several that aren't larger: each memory is then written few times, and there are few blocks.
    """
    found: list[_Range] = []
    while True:
        rest = before[: len(before) - len(found)]
        run = list(takewhile(partial(_is_small, most=count), reversed(rest)))
        total = count + sum(each.memories for each in run)
        if len(run) < _JOINED or total > MOST:
            return found
        found, count = [*found, *run], total


def _is_small(block: _Range, most: int) -> bool:
    return block.memories <= most


def _pack_vectors(connection: Connection, own: dict[str, int], num: int, dimension: int) -> bool:
    """Pack the vectors of a block that lacks them, if none of its memories waits for one."""
    vectors = _packed_vectors(connection, own, dimension)
    if vectors is not None:
        connection.run("set_block_vectors", {"agent": own["agent"], "num": num, "vectors": vectors})
    return vectors is not None


def _unusual(rows: Rows) -> Unusual:
    nums, *flags, expires = list(zip(*rows, strict=True)) or [()] * 6
    active, archived, current, usable = (np.array(each, dtype=np.bool_) for each in flags)
    return Unusual(np.array(nums, dtype=np.int64), active, archived, current, usable, expires)


def _joined(blocks: Sequence[MemoryBlock]) -> MemoryBlock:
    """Blocks one after another as one."""
    if len(blocks) == 1:
        return blocks[0]
    names: list[dict[str, int]] = [{}, {}]
    rows = np.concatenate([each.rows for each in blocks])
    start = 0
    for each in blocks:
        own = rows[start : start + len(each.rows)]
        for field, known, its in zip(("kind", "session"), names, (each.kinds, each.sessions), strict=True):
            # What has none is -1, the last place of the list.
            places = np.array([*(known.setdefault(name, len(known)) for name in its), -1])
            own[field] = places[own[field]]
        start += len(own)
    starts = accumulate((len(each.rows) for each in blocks), initial=0)
    postings = np.concatenate([each.words.all(start) for each, start in zip(blocks, starts, strict=False)])
    # Stable, since it merges what is sorted already in a fraction of the time.
    words = PostingsBlock.of_postings(np.sort(postings, kind="stable"), rows["length"].astype(np.int32))
    digests = ChainMap(*(dict(each.digests) for each in blocks))
    withdrawn = [num for each in blocks for num in each.withdrawn]
    return MemoryBlock(rows, list(names[0]), list(names[1]), words, digests, withdrawn)


def _late(
    connection: Connection, agent: int, nums: Iterable[int]
) -> tuple[list[int], dict[int, str], list[int]]:
    """What records say of memories that may be read late, see `UnreadMemory`.

    The nums of the short ones, by num the digests of the long ones' texts, and the nums of those whose status
    withdraws them.
    """
    short, digests, withdrawn = list[int](), dict[int, str](), list[int]()
    wanted = json.dumps(sorted(nums))
    for row in connection.run("records", {"agent": agent, "nums": wanted}).fetchall():
        with suppress(StoreUnavailable):  # A damaged record is named when it is needed.
            num, memory = numbered_memory(row, "")
            if withdrawal(memory) is not None:
                withdrawn.append(num)
            if memory.renditions.full.tokens > LONG_TOKENS:
                digests[num] = text_digest(memory.renditions.full.text)
            else:
                short.append(num)
    return short, digests, withdrawn


# A block as three values: its memories, their words and their vectors. Each begins with the number of its
# form, a checksum of what follows these two, and two numbers more.

_START: Final = 4 * _HEAD.itemsize


def _written(block: MemoryBlock) -> tuple[bytes, bytes]:
    names = json.dumps([block.kinds, block.sessions, dict(block.digests), block.withdrawn]).encode()
    count = len(block.rows)
    return _sealed(len(names), count, names, block.rows.tobytes()), _sealed(
        block.words.bits, count, *_postings(block.words)
    )


def _read(memories: bytes, words: bytes) -> MemoryBlock | None:
    """The block of two values; None for those of another form, or that were damaged."""
    try:
        length, count = _opened(memories)
        kinds, sessions, digests, withdrawn = json.loads(memories[_START : _START + length])
        by_num = {int(num): digest for num, digest in digests.items()}
        rows = np.frombuffer(memories, _ROW, count, _START + length)
        postings = _read_postings(words, rows["length"].astype(np.int32))
    except UNREADABLE:
        return None
    return MemoryBlock(rows, kinds, sessions, postings, by_num, withdrawn)


def _postings(words: PostingsBlock) -> tuple[bytes, ...]:
    terms, _, slots, _ = words.arrays
    head = np.array([terms.size, slots.size, slots.itemsize], dtype=_HEAD)
    return head.tobytes(), *(each.tobytes() for each in words.arrays)


def _read_postings(data: bytes, lengths: NDArray[np.int32]) -> PostingsBlock:
    """The words of a value, which stays in memory with them; raises ValueError for one that isn't right."""
    bits, documents = _opened(data)
    terms, size, width = np.frombuffer(data, _HEAD, 3, _START).tolist()
    starts = "<u2" if size <= np.iinfo(np.uint16).max else "<u4"
    parts = (("<u4", terms), (starts, terms + 1), (f"<u{width}", size), ("u1", 0 if bits else size))
    arrays: list[NDArray[Any]] = []
    place = _START + 3 * _HEAD.itemsize
    for kind, count in parts:
        arrays.append(np.frombuffer(data, kind, count, place))
        place += arrays[-1].nbytes
    if place != len(data) or documents != len(lengths):
        raise ValueError(f"{len(data)} bytes aren't the {place} of {size} postings.")
    return PostingsBlock(lengths, bits, arrays)


def _packed_vectors(connection: Connection, own: dict[str, int], dimension: int | None) -> bytes | None:
    """The vectors of the memories in a span as one value; None where any of them waits for its vector."""
    if dimension is None or connection.run("count_unembedded", own).fetchone() != (0,):
        return None
    nums, rows = read_vectors(connection, own, dimension)
    return _sealed_vectors(nums, rows)


def _sealed_vectors(nums: NDArray[np.int64], rows: ScaledRows) -> bytes:
    dimension = rows.numbers.shape[1]
    return _sealed(len(nums), dimension, nums.tobytes(), rows.scales.tobytes(), rows.numbers.tobytes())


def _vectors_of(data: bytes, dimension: int) -> Vectors | None:
    """The vectors of a value; None for one of another form or dimension, or one that was damaged."""
    try:
        count, its_dimension = _opened(data)
        nums = np.frombuffer(data, "<i8", count, _START)
        scales = np.frombuffer(data, "<f4", count, _START + nums.nbytes)
        numbers = np.frombuffer(data, small_numbers(dimension), -1, _START + nums.nbytes + scales.nbytes)
        rows = ScaledRows(numbers.reshape(count, dimension), scales)
    except UNREADABLE:
        return None
    return (nums, rows) if its_dimension == dimension else None


def _vectors_of_rows(connection: Connection, place: dict[str, int], dimension: int) -> Vectors:
    """The vectors of the memories in a span, from their rows."""
    found = connection.run("cache_vectors", place).fetchall() if place["above"] + 1 < place["below"] else ()
    nums = np.array([num for num, *_ in found], dtype=np.int64)
    try:
        check_intact((packed, checksum) for _, packed, checksum in found)
        data = b"".join([packed for _, packed, _ in found])
        return nums, ScaledRows.of(np.frombuffer(data, dtype="<f2").reshape(len(nums), dimension))
    except UNREADABLE as error:
        raise damaged("The vectors of an agent", error, REPAIR) from error


def _sealed(first: int, second: int, *parts: bytes) -> bytes:
    body = b"".join([np.array([first, second], _HEAD).tobytes(), *parts])
    return np.array([_RULES, crc32(body)], _HEAD).tobytes() + body


def _opened(data: bytes) -> tuple[int, int]:
    """The two numbers of a value; raises ValueError for one of another form, or one that was damaged."""
    rules, checksum, first, second = np.frombuffer(data, _HEAD, 4).tolist()
    if (rules, checksum) != (_RULES, crc32(memoryview(data)[2 * _HEAD.itemsize :])):
        raise ValueError("The value of a block is of another form, or damaged.")
    return first, second


def _compared(block: MemoryBlock) -> tuple[Any, ...]:
    """What has to be equal in a block and in one made of the same rows; `late` may be False in either."""
    fields = [block.rows[name].tobytes() for name in _ROW.names or () if name != "late"]
    return (*fields, block.kinds, block.sessions, *_postings(block.words))


def _differs(connection: Connection, own: dict[str, int], dimension: int) -> bool:
    """Whether the packed vectors of a span, if there are any, aren't those of its rows."""
    try:
        nums, rows = _vectors_of_rows(connection, own, dimension)
    except StoreUnavailable:
        return False  # The damaged vector is a finding of its own.
    expected = _sealed_vectors(nums, rows)
    return any(packed != expected for *_, packed in connection.run("memory_block_vectors", own).fetchall())

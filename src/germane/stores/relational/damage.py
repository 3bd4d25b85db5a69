"""Damage in one agent's part of a store: how it is found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from germane.errors import StoreUnavailable
from germane.ids import id_text
from germane.ledger import Finding
from germane.stores.relational.checksums import is_intact
from germane.stores.relational.conversation_records import MessageRow, message_of, record_of, rules_of
from germane.stores.relational.memory_blocks import check_blocks
from germane.stores.relational.settings import ENGLISH, LexRow, stored_lex_row
from germane.stores.relational.tables import UNREADABLE, AgentRow, Connection, numbered_memory, span

_RESTORE = "Restore the store from a backup, or export what can be read and import it into a new store."
_REINSERT = "Export the agent's memories and import them into a new store."
_REINDEX = "Make the index anew from the texts with `germane db reindex`."
_REPAIR = "Let `germane db doctor --repair` set it right."
_SLACK: Final = 0.2
"""How far the length of a stored vector may be from 1, since its numbers are rounded: seldom by 0.01."""
_BYTES: Final = 2
"""Of a dimension of a vector."""
_AT_ONCE: Final = 1000

_CHECKS: Final = (
    ("check_messages", "message", "Message {id} isn't of its conversation.", _RESTORE),
    (
        "check_chains",
        "heads",
        "The chain {id} has {heads} heads instead of one.",
        "Purge the chain, or revise the version that is to be the current one.",
    ),
    (
        "check_heads",
        "successor",
        "Memory {id} is superseded by one that isn't stored.",
        "Import the whole chain again, or purge it.",
    ),
    (
        "check_embedded",
        "embedded",
        "Memory {id} has a vector and is listed as waiting for one.",
        "Embed what waits with `germane db embed`.",
    ),
)
"""Queries that find the ids of damaged rows, with the code, the text and the remedy of each finding."""


def check_agent(connection: Connection, known: AgentRow) -> Iterator[Finding]:
    """What doesn't agree within one agent's part of a store."""
    agent, embedding, language = known.agent, known.embedding, known.language or ENGLISH
    values = {"agent": agent}
    for memories, terms, stored_memories, stored_terms in connection.run("check_counters", values):
        if (memories, terms) != (stored_memories, stored_terms):
            text = (
                f"The agent counts {memories} memories and {terms} terms; "
                f"{stored_memories} and {stored_terms} are stored."
            )
            yield Finding(code="counters", text=text, remedy=_REINSERT)
    for raw, no_texts, no_forward in connection.run("check_missing", values):
        missing = ["texts"] * bool(no_texts) + ["forward record"] * bool(no_forward)
        text = f"Memory {id_text(raw)} has no {' and no '.join(missing)}."
        yield Finding(code="half-record", text=text, remedy=_REINSERT)
    for table, count in connection.run("check_orphans", values):
        if count:
            yield Finding(code="orphan", text=f"{count} rows of {table} have no memory.", remedy=_REINSERT)
    for query, code, text, remedy in _CHECKS:
        for raw, *heads in connection.run(query, values):
            of = {"id": id_text(raw), "heads": sum(heads)}
            yield Finding(code=code, text=text.format(**of), remedy=remedy)
    yield from _check_index(connection, agent, language)
    yield from _check_messages(connection, agent, language)
    yield from check_blocks(connection, agent, embedding)
    yield from _check_vectors(connection, agent, embedding.dimension if embedding else 0)


def _check_index(connection: Connection, agent: int, language: str) -> Iterator[Finding]:
    """The memories that were damaged, lack terms of their texts in the index, or have unreadable metadata."""
    place = span(agent)
    while rows := connection.run("forwards_to_renew", place).fetchall():
        nums = {"agent": agent, "nums": json.dumps([num for num, *_ in rows])}
        for each in connection.run("records", nums):
            try:
                numbered_memory(each, "")
            except StoreUnavailable as error:
                text = f"A memory isn't what was stored: {error}"
                yield Finding(code="content", text=text, remedy=_REPAIR)
        stored = {num: record for num, *record in connection.run("forwards_of", nums)}
        for num, *texts, metadata in rows:
            if num not in stored:
                continue  # One without a record is a finding already.
            raw, *record = stored[num]
            text, remedy = f"The index record of memory {id_text(raw)} isn't the one of its texts.", _REINDEX
            try:
                json.loads(metadata)
                if _has_terms(record, stored_lex_row(num, agent, language, [*texts, "{}"])):
                    continue
            except UNREADABLE:
                text, remedy = f"The tags or the metadata of memory {id_text(raw)} can't be read.", _RESTORE
            yield Finding(code="forward-record", text=text, remedy=remedy)
        if rows[-1][0] <= place["above"]:
            yield Finding(
                code="order", text="Memories aren't in the order of their numbers.", remedy=_RESTORE
            )
            return
        place["above"] = rows[-1][0]


def _has_terms(record: Sequence[Any], least: LexRow) -> bool:
    """Whether a record has at least these terms. Marks in metadata come and go without a new record."""
    if len(record[1]) != 4 * len(record[2]):
        return False
    stored, made = (
        dict(zip(np.frombuffer(hashes, "<u4").tolist(), frequencies, strict=True))
        for hashes, frequencies in (record[1:], (least.hashes, least.frequencies))
    )
    return record[0] >= least.length and all(stored.get(term, 0) >= often for term, often in made.items())


def _check_messages(connection: Connection, agent: int, language: str) -> Iterator[Finding]:
    """The messages that were damaged, or whose words or vectors were."""
    place = {"agent": agent, "above": 0}
    while rows := list(map(MessageRow._make, connection.run("message_rows", place))):
        nums = {"agent": agent, "nums": json.dumps([row.num for row in rows])}
        stored = {num: record for num, *record in connection.run("message_records", nums)}
        for row in rows:
            if not row.is_intact:
                yield Finding(
                    code="message", text=f"Message {id_text(row.id)} isn't what was stored.", remedy=_REPAIR
                )
            elif row.num in stored and not is_record_intact(row, stored[row.num], language):
                text = f"The index record or the vector of message {id_text(row.id)} isn't what was stored."
                yield Finding(code="message-record", text=text, remedy=_REPAIR)
        place["above"] = rows[-1].num


def is_record_intact(row: MessageRow, stored: Sequence[Any], language: str) -> bool:
    """Whether a row of `message_records` is what the message makes, and its vector what was stored."""
    rules, *record, vector, checksum = stored
    if vector is not None and not is_intact(vector, checksum):
        return False
    return rules != rules_of(language) or tuple(record) == record_of(message_of(row, "", ""), language)


def _check_vectors(connection: Connection, agent: int, dimension: int) -> Iterator[Finding]:
    """The vectors that differ from their checksum, or aren't of unit length as all stored vectors are."""
    nums = {"agent": agent, "nums": json.dumps(wrong_vectors(connection, agent, dimension))}
    for _, raw, *_ in connection.run("forwards_of", nums).fetchall():
        text = f"The vector of memory {id_text(raw)} isn't the one that was stored."
        yield Finding(code="vector", text=text, remedy=_REPAIR)


def wrong_vectors(connection: Connection, agent: int, dimension: int) -> list[int]:
    """The numbers of the memories whose vectors are damaged or aren't of the model's length."""
    wrong: list[int] = []
    rows = connection.run("cache_vectors", span(agent))
    while some := rows.fetchmany(_AT_ONCE):
        found = [row for row in some if len(row[1]) == _BYTES * dimension and is_intact(*row[1:])]
        vectors = np.frombuffer(b"".join(packed for _, packed, _ in found), dtype="<f2").reshape(
            len(found), dimension
        )
        lengths = np.linalg.norm(vectors.astype(np.float32), axis=1)
        # NaN is no less than anything.
        sound = {found[place][0] for place in np.flatnonzero(np.abs(lengths - 1) < _SLACK).tolist()}
        wrong += [num for num, *_ in some if num not in sound]
    return wrong

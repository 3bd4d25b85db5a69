"""Looks for damage in a store and says what mends it.

Level: stores (imports model).
"""

from __future__ import annotations

from collections.abc import Iterator

from germane.model.stats import EmbeddingIdentity, Finding
from germane.stores.relational.connection import Connection, Rows
from germane.stores.relational.rows import id_text

__all__ = ["check_agent"]

_RESTORE = "Restore the store from a backup, or export what can be read and import it into a new store."
_REINSERT = "Export the agent's memories and import them into a new store."


def check_agent(
    connection: Connection, agent: int, embedding: EmbeddingIdentity | None
) -> tuple[Finding, ...]:
    """What doesn't agree within one agent's part."""
    values = {"agent": agent}
    return (
        *_counters(connection, values),
        *_rows(connection, values),
        *_chains(connection, values),
        *_vectors(connection, values, embedding),
    )


def _counters(connection: Connection, values: dict[str, int]) -> Iterator[Finding]:
    for memories, terms, stored_memories, stored_terms in _run(connection, "check_counters", values):
        if (memories, terms) != (stored_memories, stored_terms):
            yield Finding(
                code="counters",
                text=f"The agent counts {memories} memories and {terms} terms; "
                f"{stored_memories} and {stored_terms} are stored.",
                remedy=_REINSERT,
            )


def _rows(connection: Connection, values: dict[str, int]) -> Iterator[Finding]:
    for raw, no_texts, no_forward in _run(connection, "check_missing", values):
        what = [
            name for name, is_missing in (("texts", no_texts), ("forward record", no_forward)) if is_missing
        ]
        yield Finding(
            code="half-record",
            text=f"Memory {id_text(raw)} has no {' and no '.join(what)}.",
            remedy=_REINSERT,
        )
    for table, count in _run(connection, "check_orphans", values):
        if count:
            yield Finding(code="orphan", text=f"{count} rows of {table} have no memory.", remedy=_REINSERT)
    for (raw,) in _run(connection, "check_messages", values):
        yield Finding(
            code="message", text=f"Message {id_text(raw)} isn't of its conversation.", remedy=_RESTORE
        )
    for (raw,) in _run(connection, "check_forwards", values):
        yield Finding(
            code="forward-record",
            text=f"The forward record of memory {id_text(raw)} can't be read.",
            remedy=_REINSERT,
        )


def _chains(connection: Connection, values: dict[str, int]) -> Iterator[Finding]:
    for raw, heads in _run(connection, "check_chains", values):
        yield Finding(
            code="heads",
            text=f"The chain {id_text(raw)} has {heads} heads instead of one.",
            remedy="Purge the chain, or revise the version that should stand.",
        )
    for (raw,) in _run(connection, "check_heads", values):
        yield Finding(
            code="successor",
            text=f"Memory {id_text(raw)} is superseded by one that isn't stored.",
            remedy="Import the whole chain again, or purge it.",
        )


def _vectors(
    connection: Connection, values: dict[str, int], embedding: EmbeddingIdentity | None
) -> Iterator[Finding]:
    dimension = embedding.dimension if embedding else -1
    for (raw,) in _run(connection, "check_embedded", values):
        yield Finding(
            code="embedded",
            text=f"Memory {id_text(raw)} has a vector and is listed as waiting for one.",
            remedy="Embed what waits with `germane embed`.",
        )
    for (raw,) in _run(connection, "check_vectors", {**values, "dimension": dimension}):
        yield Finding(
            code="vector",
            text=f"The vector of memory {id_text(raw)} isn't of {embedding or 'any model'}.",
            remedy="Embed everything anew with `germane reembed`.",
        )


def _run(connection: Connection, query: str, values: dict[str, int]) -> Rows:
    return connection.run(query, values)

"""What holds for a whole store or an agent's index, and what is wrong with a store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from germane.errors import EmbedderMismatch, StoreUnavailable
from germane.ledger import LARGE, EmbeddingIdentity, Finding, LargeMemory
from germane.model.memory import Scope
from germane.model.text import is_removed
from germane.retrieval.tokenizer import TOKENIZER, index_terms
from germane.stores.relational.tables import Connection, Connections, Rows, id_text, span
from germane.stores.sql.tables import AgentRow, LexRow

__all__ = [
    "ListedAgent",
    "all_of_them",
    "check_agent",
    "check_embedding",
    "check_language",
    "check_tokenizer",
    "drop_vectors",
    "everyone",
    "indexed_text",
    "set_setting",
    "settle",
    "settle_language",
    "store_embedding",
    "stored_embedding",
    "weights_of",
]


def settle(connections: Connections, *, embedding: EmbeddingIdentity | None, replace_embedding: bool) -> None:
    """Bring the store's index to this tokenizer and check its vectors' model, when it is opened.

    Raises EmbedderMismatch unless `replace_embedding` says that other vectors may go.
    """
    with connections.reading() as connection:
        stored = dict(connection.run("settings").fetchall())
    mismatch = _differs(stored_embedding(stored), embedding)
    if mismatch and not replace_embedding:
        raise mismatch
    if stored.get("tokenizer") == TOKENIZER and not mismatch:
        return
    if connections.read_only:
        raise StoreUnavailable(
            f"The store {connections.location} was indexed by tokenizer {stored.get('tokenizer')!r}, this "
            f"germane has {TOKENIZER!r}. Open it once without read_only=True, so that it is indexed anew."
        )
    with connections.writing() as connection:
        # Another process may have settled it in the meantime.
        stored = dict(connection.run("settings").fetchall())
        if stored.get("tokenizer") != TOKENIZER:
            _reindex(connection, connections.location)
        if embedding is not None and _differs(stored_embedding(stored), embedding):
            drop_vectors(connection, embedding, connections.location)


def settle_language(connections: Connections, name: str, language: str) -> None:
    """Index an agent's memories by the words of this language, unless they are.

    The agent is made known if it isn't. Raises StoreUnavailable when that can't be written.
    """
    with connections.reading(name) as connection:
        row = connection.run("agent", {"name": name}).fetchone()
    known = None if row is None else AgentRow._make(row)
    if known is not None and known.language == language:
        return
    if connections.read_only:
        if known is None:
            return
        raise StoreUnavailable(
            f"The memories of agent {name!r} in {connections.location} are indexed in {known.language!r}, "
            f"and read_only=True keeps them from being indexed in {language!r}. "
            "Open the store without a language to read them, or once without read_only=True."
        )
    with connections.writing(name) as connection:
        connection.run("add_agent", {"name": name})
        known = AgentRow._make(connection.run("agent", {"name": name}).fetchone())
        # Another process may have settled it in the meantime.
        if known.language != language:
            connection.run("set_agent_language", {"agent": known.agent, "language": language})
            _reindex_agent(connection, known.agent, known.seq, language)


def drop_vectors(connection: Connection, embedding: EmbeddingIdentity, location: str) -> None:
    """Remove all vectors of the store, and note which model shall make the new ones."""
    for agent in (each.agent for each in everyone(connection, location)):
        (seq,) = connection.run("lock_agent", {"agent": agent}).fetchone()
        connection.run("purge_vectors", span(agent))
        connection.run("insert_all_unembedded", span(agent))
        connection.run("advance_agent", {"agent": agent, "seq": seq + 1, "memories": 0, "terms": 0})
        connection.run("insert_change", (agent, seq + 1, 0, "reindex"))
    # Noted now, so that a process with the model of before can store no more of its vectors.
    store_embedding(connection, embedding)


def stored_embedding(settings: dict[str, str]) -> EmbeddingIdentity | None:
    """The model that made the stored vectors; None while there has been none."""
    name = settings.get("embedding_name")
    return EmbeddingIdentity(name=name, dimension=int(settings["embedding_dimension"])) if name else None


def check_embedding(stored: EmbeddingIdentity | None, given: EmbeddingIdentity | None) -> None:
    """Raise EmbedderMismatch when another model than `given` made the stored vectors."""
    mismatch = _differs(stored, given)
    if mismatch:
        raise mismatch


def check_tokenizer(stored: str, location: str) -> None:
    """Raise StoreUnavailable when another process has indexed the open store anew in another way."""
    if stored != TOKENIZER:
        raise StoreUnavailable(
            f"Another germane indexed the store {location} anew by its tokenizer {stored!r}; this process "
            f"has {TOKENIZER!r}. Start this process again with the same version of germane."
        )


def check_language(stored: str, asked: str | None, location: str) -> None:
    """Raise StoreUnavailable when another process has indexed the agent's memories in another language."""
    if asked is not None and asked != stored:
        raise StoreUnavailable(
            f"Another process indexed these memories in {location} anew in {stored!r}; this one asks in "
            f"{asked!r}. Open the store again without a language to go on in {stored!r}."
        )


def store_embedding(connection: Connection, embedding: EmbeddingIdentity) -> None:
    """Note which model makes the vectors of this store."""
    set_setting(connection, "embedding_name", embedding.name)
    set_setting(connection, "embedding_dimension", str(embedding.dimension))
    # Another process may have noted its model in the meantime.
    check_embedding(stored_embedding(dict(connection.run("settings").fetchall())), embedding)


def _differs(stored: EmbeddingIdentity | None, given: EmbeddingIdentity | None) -> EmbedderMismatch | None:
    if stored is None or given is None or stored == given:
        return None
    return EmbedderMismatch(stored=str(stored), given=str(given))


def _reindex(connection: Connection, location: str) -> None:
    for each in everyone(connection, location):
        (seq,) = connection.run("lock_agent", {"agent": each.agent}).fetchone()
        _reindex_agent(connection, each.agent, seq, each.language)
    set_setting(connection, "tokenizer", TOKENIZER)


def _reindex_agent(connection: Connection, agent: int, seq: int, language: str) -> None:
    terms = 0
    place = span(agent)
    while rows := connection.run("forwards_to_renew", place).fetchall():
        renewed = [_forward_row(row, agent, language) for row in rows]
        connection.many("insert_lex", renewed)
        terms += sum(row.length for row in renewed)
        place["above"] = renewed[-1].num
    values = {"agent": agent, "seq": seq + 1, "terms": terms}
    connection.run("set_agent_terms", values)
    connection.run("insert_change", (agent, seq + 1, 0, "reindex"))


def _forward_row(row: tuple[Any, ...], agent: int, language: str) -> LexRow:
    num, content, subject, tags, metadata = row
    text = indexed_text(content, subject=subject, tags=json.loads(tags), metadata=json.loads(metadata))
    forward = index_terms(text, language=language)
    hashes = forward.hashes.astype("<u4", copy=False).tobytes()
    return LexRow(num, agent, forward.length, hashes, forward.frequencies.tobytes())


def set_setting(connection: Connection, name: str, value: str) -> None:
    """Store a setting that holds for the whole store."""
    stored = dict(connection.run("settings").fetchall()).get(name)
    if stored != value:
        # Who may see one agent at a time may say what nobody has said yet, and change nothing.
        connection.run("add_setting" if stored is None else "change_setting", {"name": name, "value": value})


# All agents of a store, for what is about every one of them.


class ListedAgent(NamedTuple):
    """An agent's number, the number of its latest change, its name, and the language of its words."""

    agent: int
    seq: int
    name: str
    language: str


def everyone(connection: Connection, location: str) -> tuple[ListedAgent, ...]:
    """Every agent, in the order in which they first wrote; none whose removal has begun.

    Raises StoreUnavailable as `all_of_them` does.
    """
    return tuple(each for each in all_of_them(connection, location) if not is_removed(each.name))


def all_of_them(connection: Connection, location: str) -> tuple[ListedAgent, ...]:
    """The same with those whose removal has begun.

    Raises StoreUnavailable where the connection may see one agent at a time only: what was then done to all
    would have been done to none.
    """
    found = tuple(map(ListedAgent._make, connection.run("agents")))
    if any(each.seq is None for each in found):
        raise StoreUnavailable(
            f"The user of {location} may see one agent at a time, and this is about all of them. Use the "
            "address of the user who owns the tables."
        )
    return found


# What the lexical index reads of a memory.


def indexed_text(
    content: str, *, subject: str | None, tags: Sequence[str], metadata: Mapping[str, Any]
) -> str:
    """The content, subject, tags, and every string among the metadata's values, each on lines of its own.

    Metadata keys and the source are left out: they are the same for many memories and say nothing
    about what one of them is about.
    """
    if subject is None and not tags and not metadata:
        return content
    parts = [content, subject or "", *tags, *_strings(metadata)]
    return "\n".join(part for part in parts if part)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _strings(each)


# Looks for damage in a store and says what mends it.

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
            remedy="Embed what waits with `germane db embed`.",
        )
    for (raw,) in _run(connection, "check_vectors", {**values, "dimension": dimension}):
        yield Finding(
            code="vector",
            text=f"The vector of memory {id_text(raw)} isn't of {embedding or 'any model'}.",
            remedy="Embed everything anew with `germane db reembed`.",
        )


def _run(connection: Connection, query: str, values: dict[str, int]) -> Rows:
    return connection.run(query, values)


# How much of a context an agent's memories would take.

_MOST = 10


def weights_of(connection: Connection, agent: int) -> tuple[Mapping[str, int], tuple[LargeMemory, ...]]:
    """The tokens of an agent's active memories by the name of their scope, and the longest of them."""
    by_scope = connection.run("tokens_by_scope", span(agent)).fetchall()
    rows = connection.run("largest", {**span(agent), "least": LARGE, "most": _MOST})
    large = tuple(
        LargeMemory(
            id=id_text(raw), kind=kind, scope=str(Scope(name=scope, value=value)), label=label, tokens=tokens
        )
        for raw, kind, scope, value, label, tokens in rows
    )
    return dict(sorted(by_scope)), large

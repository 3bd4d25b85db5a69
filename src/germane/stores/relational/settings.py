"""What holds for a whole store or an agent's index, which every process that opens it has to agree with.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

import json
from typing import Any

from germane.errors import EmbedderMismatch, StoreUnavailable
from germane.model.stats import EmbeddingIdentity
from germane.retrieval.terms import TOKENIZER, index_terms
from germane.stores.indexed import indexed_text
from germane.stores.relational.agents.everyone import everyone
from germane.stores.relational.connection import Connection, Connections
from germane.stores.relational.rows import span
from germane.stores.sql.tables import AgentRow, LexRow

__all__ = [
    "check_embedding",
    "check_language",
    "check_tokenizer",
    "drop_vectors",
    "set_setting",
    "settle",
    "settle_language",
    "store_embedding",
    "stored_embedding",
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

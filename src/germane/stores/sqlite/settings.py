"""What holds for a whole store, which every process that opens it has to agree with.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from germane.errors import EmbedderMismatch, StoreUnavailable
from germane.model.stats import EmbeddingIdentity
from germane.retrieval.terms import TOKENIZER, index_terms
from germane.stores.indexed import indexed_text
from germane.stores.sql import queries
from germane.stores.sqlite.connections import Connections
from germane.stores.sqlite.writing import span

__all__ = [
    "check_embedding",
    "check_tokenizer",
    "note_erasure",
    "owes_erasure",
    "settle",
    "store_embedding",
    "stored_embedding",
]

_ERASURE = "owes_erasure"


def settle(connections: Connections, *, embedding: EmbeddingIdentity | None, replace_embedding: bool) -> None:
    """Bring the store's index to this tokenizer and check its vectors' model, when it is opened.

    Raises EmbedderMismatch unless `replace_embedding` says that other vectors may go.
    """
    with connections.reading() as connection:
        stored = dict(connection.execute(queries("sqlite")["settings"]).fetchall())
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
        stored = dict(connection.execute(queries("sqlite")["settings"]).fetchall())
        if stored.get("tokenizer") != TOKENIZER:
            _reindex(connection)
        if _differs(stored_embedding(stored), embedding):
            _drop_vectors(connection)


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


def store_embedding(connection: sqlite3.Connection, embedding: EmbeddingIdentity) -> None:
    """Note which model makes the vectors of this store."""
    _set(connection, "embedding_name", embedding.name)
    _set(connection, "embedding_dimension", str(embedding.dimension))


def note_erasure(connection: sqlite3.Connection, *, owed: bool) -> None:
    """Note that the file has to be rewritten after a purge, or that this is done."""
    if owed:
        _set(connection, _ERASURE, "1")
    else:
        connection.execute(queries("sqlite")["remove_setting"], {"name": _ERASURE})


def owes_erasure(connection: sqlite3.Connection) -> bool:
    """Whether a purge could not be finished."""
    return _ERASURE in dict(connection.execute(queries("sqlite")["settings"]).fetchall())


def _differs(stored: EmbeddingIdentity | None, given: EmbeddingIdentity | None) -> EmbedderMismatch | None:
    if stored is None or given is None or stored == given:
        return None
    return EmbedderMismatch(stored=str(stored), given=str(given))


def _reindex(connection: sqlite3.Connection) -> None:
    for agent, seq in connection.execute(queries("sqlite")["agents"]).fetchall():
        values = {"agent": agent, "seq": seq + 1, "terms": _reindex_agent(connection, agent)}
        connection.execute(queries("sqlite")["set_agent_terms"], values)
        connection.execute(queries("sqlite")["insert_change"], (agent, seq + 1, 0, "reindex"))
    _set(connection, "tokenizer", TOKENIZER)


def _reindex_agent(connection: sqlite3.Connection, agent: int) -> int:
    terms = 0
    place = span(agent)
    while rows := connection.execute(queries("sqlite")["forwards_to_renew"], place).fetchall():
        renewed = [_forward_row(row, agent) for row in rows]
        connection.executemany(queries("sqlite")["insert_lex"], renewed)
        terms += sum(row[2] for row in renewed)
        place["above"] = rows[-1][0]
    return terms


def _forward_row(row: tuple[Any, ...], agent: int) -> tuple[int, int, int, bytes, bytes]:
    num, content, subject, tags, metadata = row
    text = indexed_text(content, subject=subject, tags=json.loads(tags), metadata=json.loads(metadata))
    forward = index_terms(text)
    hashes = forward.hashes.astype("<u4", copy=False).tobytes()
    return num, agent, forward.length, hashes, forward.frequencies.tobytes()


def _drop_vectors(connection: sqlite3.Connection) -> None:
    for agent, seq in connection.execute(queries("sqlite")["agents"]).fetchall():
        connection.execute(queries("sqlite")["purge_vectors"], span(agent))
        connection.execute(
            queries("sqlite")["advance_agent"], {"agent": agent, "seq": seq + 1, "memories": 0, "terms": 0}
        )
        connection.execute(queries("sqlite")["insert_change"], (agent, seq + 1, 0, "reindex"))
    for name in ("embedding_name", "embedding_dimension"):
        connection.execute(queries("sqlite")["remove_setting"], {"name": name})


def _set(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute(queries("sqlite")["set_setting"], {"name": name, "value": value})

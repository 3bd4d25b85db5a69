"""What holds for a whole store or an agent's index, and what is wrong with a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from germane.errors import EmbedderMismatch, InvalidInput, StoreUnavailable
from germane.ids import id_text
from germane.model.memory import Scope
from germane.model.query import EmbeddingIdentity
from germane.model.text import check_free_name, is_removed
from germane.retrieval.tokenizer import TOKENIZER, index_terms, stemmer
from germane.stores.relational.checksums import ENCRYPTION, checksum_of, wrong_checksum
from germane.stores.relational.memory_blocks import pack_some
from germane.stores.relational.tables import (
    UNREADABLE,
    AgentRow,
    Connection,
    Connections,
    Rows,
    damaged,
    gated,
    microseconds,
    number_of,
    span,
)

if TYPE_CHECKING:
    from germane.ledger import Finding, LargeMemory

ENGLISH: Final = "english"
_CHECKSUM: Final = "embedding_checksum"


@gated
class MaintenanceTables:
    """What concerns the store as a whole: its agents, their languages, its vectors, and damage.

    `findings` looks for damage of the database and of an agent's part of it.
    """

    def __init__(
        self,
        connections: Connections,
        embedding: EmbeddingIdentity | None,
        findings: Callable[[Connection, str], Iterable[Finding]],
    ) -> None:
        self._connections = connections
        self._embedding = embedding
        self._findings = findings

    def check(self, agent: str) -> tuple[Finding, ...]:
        """What is wrong with the store or this agent's part of it; empty when nothing is.

        A file is read whole for it, and what is indexed is made anew and compared: about a second for each
        10,000 memories.
        """
        with self._connections.reading(agent) as connection:
            return tuple(self._findings(connection, agent))

    def language(self, agent: str, language: str | None) -> str:
        """The language of an agent's words, after it was made the one given, if one is.

        Another one than before indexes all the agent's memories again, in one transaction: about a
        second for each 10,000. Raises InvalidInput for a language without a stemmer, and
        StoreUnavailable when the store is only read.
        """
        if language is not None:
            stemmer(language)
            check_free_name(agent, "agent")
            settle_language(self._connections, agent, language)
            return language
        with self._connections.reading(agent) as connection:
            return (
                agent_state(connection.run("agent", {"name": agent}), self._connections.location).language
                or ENGLISH
            )

    def agents(self) -> tuple[str, ...]:
        """The names of all agents of the store, in the order in which they first wrote."""
        with self._connections.reading() as connection:
            return tuple(each.name for each in everyone(connection, self._connections.location))

    def entries(self) -> Mapping[str, str]:
        """What holds for the whole store: texts by name."""
        with self._connections.reading() as connection:
            return dict(connection.run("settings").fetchall())

    def add_entry(self, name: str, value: str) -> None:
        """Store a text for the whole store; one of that name stays as it is. Raises StoreError."""
        with self._connections.writing() as connection:
            connection.run("add_setting", {"name": name, "value": value})

    def begin_reply(
        self, agent: str, name: bytes, mark: bytes, *, at: datetime, gives_up: timedelta
    ) -> Reply | None:
        """The answer to a request; None where there is none, and it is noted as under way from now on.

        One that has been under way for as long as `gives_up` must have died with its process.
        """
        with self._connections.writing(agent) as connection:
            connection.run("add_agent", {"name": agent})
            number = number_of(connection, agent)
            values = {"agent": number, "name": name}
            remove_replies(connection, number, at, gives_up=gives_up)
            row = connection.run("reply", values).fetchone()
            if row is None:
                connection.run("begin_reply", {**values, "at": microseconds(at, name="at"), "mark": mark})
                return None
        return Reply(bool(row[0]), *row[1:])

    def end_reply(self, agent: str, name: bytes, answer: bytes | None, *, at: datetime, done: bool) -> None:
        """Store the answer to a request that began at that time, None for one that is too long.

        It is stored without the answer where something was purged in the meantime. One that isn't `done` is
        forgotten, so that it can be sent again.
        """
        with self._connections.writing(agent) as connection:
            values = {"agent": number_of(connection, agent), "name": name, "at": microseconds(at, name="at")}
            if done:
                connection.run("end_reply", {**values, "answer": answer})
            else:
                connection.run("remove_reply", values)

    def tidy(self, agent: str, now: datetime) -> None:
        """Remove the answers to an agent's requests that are older than a day, and pack its memories."""
        if self._connections.read_only:
            return
        with self._connections.writing(agent) as connection:
            known = agent_state(connection.run("agent", {"name": agent}), self._connections.location)
            remove_replies(connection, known.agent, now, gives_up=_DAY)
            pack_agent(connection, known.agent)

    def drop_vectors(self) -> None:
        """Remove the vectors of all agents, so that the model that the store was opened with makes new ones.

        Raises InvalidInput for a store that was opened without a model.
        """
        if self._embedding is None:
            raise InvalidInput("No model is known to make new vectors. Open the store with embedding=...")
        with self._connections.writing() as connection:
            drop_vectors(connection, self._embedding, self._connections.location)


# Answers to requests that may be sent again: as many of each agent, and as many bytes in all.

_DAY: Final = timedelta(days=1)
_MOST: Final = {"most": 1000, "bytes": 32 << 20}

EVERY_REPLY: Final = {**_MOST, "since": 1 << 62, "alive": 0}
"""The placeholders that remove all answers to requests of an agent."""


class Reply(NamedTuple):
    """Whether a request was answered, the mark of the request, and the answer.

    The answer is None where it was too long, and both are None after a purge.
    """

    done: bool
    mark: bytes | None
    answer: bytes | None


def remove_replies(connection: Connection, agent: int, now: datetime, *, gives_up: timedelta) -> None:
    """Remove answers that are too old, or too many, and requests that began before the time given up."""
    since, alive = (microseconds(now - age, name="now") for age in (_DAY, gives_up))
    connection.run("remove_replies", {"agent": agent, **_MOST, "since": since, "alive": alive})


def agent_state(rows: Rows, location: str) -> AgentRow:
    """What a transaction has to know of an agent first, from the rows of the query `agent`.

    Raises StoreUnavailable where another process has indexed the store by another tokenizer.
    """
    row = rows.fetchone()
    if row is None:
        return AgentRow()
    known = AgentRow._make(row)
    check_tokenizer(known.tokenizer, location)
    return known


def settle(connections: Connections, *, embedding: EmbeddingIdentity | None, replace_embedding: bool) -> None:
    """Bring the store's index to this tokenizer and check its key and its vectors' model, when it is opened.

    Raises StoreUnavailable for another key, and EmbedderMismatch unless `replace_embedding` says that other
    vectors may go. Then the model is noted even if there are none yet.
    """
    with connections.reading() as connection:
        stored = dict(connection.run("settings").fetchall())
    check_key(connections, stored)
    if not replace_embedding:
        check_embedding(stored_embedding(stored), embedding)
    replaces = replace_embedding and stored_embedding(stored) != embedding
    if stored.get("tokenizer") == TOKENIZER and not replaces:
        return
    if connections.read_only:
        raise StoreUnavailable(
            f"The store {connections.location} was indexed by tokenizer {stored.get('tokenizer')!r}, this "
            f"germane has {TOKENIZER!r}. Open it once without read_only=True, so that it is reindexed."
        )
    with connections.writing() as connection:
        # Another process may have settled it in the meantime.
        stored = dict(connection.run("settings").fetchall())
        if stored.get("tokenizer") != TOKENIZER:
            _reindex(connection, connections.location)
        if embedding is not None and replaces and stored_embedding(stored) != embedding:
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
            reindex_agent(connection, known.agent, known.seq, language)


def drop_vectors(connection: Connection, embedding: EmbeddingIdentity, location: str) -> None:
    """Remove all vectors of the store, and note which model shall make the new ones."""
    for agent in (each.agent for each in everyone(connection, location)):
        (seq,) = connection.run("lock_agent", {"agent": agent}).fetchone()
        connection.run("purge_vectors", span(agent))
        connection.run("insert_all_unembedded", span(agent))
        connection.run("drop_message_vectors", {"agent": agent})
        connection.run("unpack_all_vectors", {"agent": agent})
        connection.run("advance_agent", {"agent": agent, "seq": seq + 1, "memories": 0, "terms": 0})
        connection.run("insert_change", (agent, seq + 1, 0, "reindex", None, None))
    # Noted now, so that a process with the model of before can store no more of its vectors.
    store_embedding(connection, embedding)


def pack_agent(connection: Connection, agent: int) -> None:
    """Pack all of an agent's memories that are in no block."""
    embedding = stored_embedding(dict(connection.run("settings").fetchall()))
    while pack_some(connection, agent, embedding):
        pass


def stored_embedding(settings: dict[str, str]) -> EmbeddingIdentity | None:
    """The model that made the stored vectors; None while there is none. Raises StoreUnavailable."""
    name = settings.get("embedding_name")
    if not name:
        return None
    found = EmbeddingIdentity(name=name, dimension=int(settings["embedding_dimension"]))
    if settings.get(_CHECKSUM) not in (None, _checksum_of(found)):
        raise damaged("The name of the vectors' model", wrong_checksum())
    return found


def remove_embedding(connection: Connection) -> None:
    """Forget which model makes the vectors of this store."""
    for name in ("embedding_name", "embedding_dimension", _CHECKSUM):
        connection.run("remove_setting", {"name": name})


def _checksum_of(embedding: EmbeddingIdentity) -> str:
    return str(checksum_of((embedding.name, embedding.dimension)))


def check_embedding(stored: EmbeddingIdentity | None, given: EmbeddingIdentity | None) -> None:
    """Raise EmbedderMismatch when another model than `given` made the stored vectors."""
    if stored is not None and given is not None and stored != given:
        raise EmbedderMismatch(stored=str(stored), given=str(given))


def check_tokenizer(stored: str, location: str) -> None:
    """Raise StoreUnavailable when another process has reindexed the open store in another way."""
    if stored != TOKENIZER:
        raise StoreUnavailable(
            f"Another germane reindexed the store {location} by its tokenizer {stored!r}; this process "
            f"has {TOKENIZER!r}. Start this process again with the same version of germane."
        )


def check_language(stored: str, wanted: str | None, location: str) -> None:
    """Raise StoreUnavailable when another process has indexed the agent's memories in another language."""
    if wanted is not None and wanted != stored:
        raise StoreUnavailable(
            f"Another process reindexed these memories in {location} in {stored!r}; this one asks in "
            f"{wanted!r}. Open the store again without a language to go on in {stored!r}."
        )


def store_embedding(connection: Connection, embedding: EmbeddingIdentity) -> None:
    """Note which model makes the vectors of this store."""
    set_setting(connection, "embedding_name", embedding.name)
    set_setting(connection, "embedding_dimension", str(embedding.dimension))
    set_setting(connection, _CHECKSUM, _checksum_of(embedding))
    # Another process may have noted its model in the meantime.
    check_embedding(stored_embedding(dict(connection.run("settings").fetchall())), embedding)


def reindex(connections: Connections) -> None:
    """Make the index of all words anew from the texts, in one transaction.

    Raises StoreUnavailable as `everyone` does.
    """
    with connections.writing() as connection:
        _reindex(connection, connections.location)


def _reindex(connection: Connection, location: str) -> None:
    for each in everyone(connection, location):
        (seq,) = connection.run("lock_agent", {"agent": each.agent}).fetchone()
        reindex_agent(connection, each.agent, seq, each.language)
    set_setting(connection, "tokenizer", TOKENIZER)


def reindex_agent(connection: Connection, agent: int, seq: int, language: str) -> None:
    """Make the index of an agent's words anew and pack its memories; `seq` numbers its latest change."""
    terms = 0
    place = span(agent)
    connection.run("remove_blocks", place)
    while rows := connection.run("forwards_to_renew", place).fetchall():
        try:
            renewed = [stored_lex_row(num, agent, language, texts) for num, *texts in rows]
        except UNREADABLE as error:
            remedy = "purge the memory, which `germane export` names"
            raise damaged("The tags or the metadata of a memory", error, remedy) from error
        connection.many("insert_lex", renewed)
        terms += sum(row.length for row in renewed)
        place["above"] = renewed[-1].num
    values = {"agent": agent, "seq": seq + 1, "terms": terms}
    connection.run("set_agent_terms", values)
    pack_agent(connection, agent)
    connection.run("insert_change", (agent, seq + 1, 0, "reindex", None, None))


def stored_lex_row(num: int, agent: int, language: str, texts: Sequence[Any]) -> LexRow:
    """The row of `lex` of a memory, by its content, subject, tags and metadata as they are stored."""
    content, subject, tags, metadata = texts
    return lex_row(
        num,
        agent,
        language=language,
        content=content,
        subject=subject,
        tags=json.loads(tags),
        metadata=json.loads(metadata),
    )


def set_setting(connection: Connection, name: str, value: str) -> None:
    """Store a setting that holds for the whole store."""
    stored = dict(connection.run("settings").fetchall()).get(name)
    if stored != value:
        # A user who may see one agent at a time may add a setting, and change none.
        connection.run("add_setting" if stored is None else "change_setting", {"name": name, "value": value})


# The key of an encrypted store.


class StoreKey(Protocol):
    """The key of an encrypted store, as `encryption.MasterKey` implements it."""

    def begin(self, connection: Connection) -> None:
        """Let a new store be encrypted by this key, in the transaction that makes it."""

    def unlock(self, settings: Mapping[str, str]) -> None:
        """Raise StoreUnavailable if this isn't the key of a store with these settings."""

    def replace(self, connection: Connection, new: bytes) -> int:
        """Encrypt all data keys by another key; returns how many there are."""


def encrypting(connections: Connections, key: bytes | None) -> Connections:
    """The connections, through which everything is encrypted where there is a key. Raises MissingExtra."""
    if key is None:
        return connections
    from germane.stores.relational.encryption import MasterKey, SealedConnections  # noqa: PLC0415 - An extra.

    return SealedConnections(connections, MasterKey(key, connections.location))


def store_key(connections: Connections) -> StoreKey | None:
    """The key by which connections encrypt; None for those that don't."""
    return getattr(connections, "key", None)


def check_key(connections: Connections, settings: Mapping[str, str]) -> None:
    """Raise StoreUnavailable where these connections don't have the key of the store with these settings."""
    key = store_key(connections)
    if key is not None:
        key.unlock(settings)
    elif ENCRYPTION in settings:
        location = connections.location
        raise StoreUnavailable(
            f"The store {location} is encrypted, and no key was given. Give it with key=..., or in the "
            f"environment variable GERMANE_KEY."
        )


def rekey(connections: Connections, new: bytes) -> int:
    """Encrypt the data keys of a store by another key; returns how many there are.

    Raises StoreUnavailable for a store that isn't encrypted.
    """
    key = store_key(connections)
    if key is None:
        raise StoreUnavailable(
            f"The store {connections.location} isn't encrypted, so it has no key to change. Copy it into a "
            "new store with a key: `germane db copy --encrypt`."
        )
    with connections.writing() as connection:
        all_of_them(connection, connections.location)  # Raises where only some of them can be seen.
        key.unlock(dict(connection.run("settings").fetchall()))
        return key.replace(connection, new)


# All agents of a store.


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
    """Every agent, in the order in which they first wrote, with those whose removal has begun.

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


class LexRow(NamedTuple):
    """A row of `lex`: how many terms a memory has, the distinct ones' hashes, and how often each occurs."""

    num: int
    agent: int
    length: int
    hashes: bytes
    frequencies: bytes


def lex_row(
    num: int,
    agent: int,
    *,
    language: str,
    content: str,
    subject: str | None,
    tags: Sequence[str],
    metadata: Mapping[str, Any],
) -> LexRow:
    """The row of `lex` of a memory.

    Indexed are the content, the subject, the tags, and every string among the metadata's values, but for
    fields whose names begin with an underscore: these are a program's own data.
    Metadata keys and the source are left out: they are the same for many memories and say nothing
    about what one of them is about.
    """
    searched = {name: value for name, value in metadata.items() if not name.startswith("_")}
    parts = (content, subject or "", *tags, *_strings(searched))
    forward = index_terms("\n".join(part for part in parts if part), language=language)
    hashes = forward.hashes.astype("<u4", copy=False).tobytes()
    return LexRow(num, agent, forward.length, hashes, forward.frequencies.tobytes())


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _strings(each)


# How much of a context an agent's memories would take.

_LONGEST: Final = 10


def weights_of(connection: Connection, agent: int) -> tuple[Mapping[str, int], tuple[LargeMemory, ...]]:
    """The tokens of an agent's active memories by the name of their scope, and the longest of them."""
    from germane.ledger import LARGE, LargeMemory  # noqa: PLC0415 - For statistics alone.

    by_scope = connection.run("tokens_by_scope", span(agent)).fetchall()
    rows = connection.run("largest", {**span(agent), "least": LARGE, "most": _LONGEST})
    large = tuple(
        LargeMemory(
            id=id_text(raw), kind=kind, scope=str(Scope(name=scope, value=value)), label=label, tokens=tokens
        )
        for _, raw, kind, scope, value, label, tokens in rows
    )
    return dict(sorted(by_scope)), large

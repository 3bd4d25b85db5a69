"""Memories in tables: what every store does whose database runs the named queries."""

from __future__ import annotations

import copy
import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from germane.errors import InvalidInput, NotFound
from germane.ids import id_text
from germane.model.memory import Memory
from germane.model.query import (
    Candidate,
    CandidateTable,
    EmbeddingIdentity,
    Filter,
    LearningStatus,
    Order,
    Query,
    Reading,
    SearchResult,
    Slice,
)
from germane.model.text import check_free_name
from germane.retrieval.vectors import VectorRows
from germane.stores.relational.cache import (
    MOST_CONVERSATION_BYTES,
    AgentCache,
    Caches,
    rows_of,
    stored,
)
from germane.stores.relational.lifecycle import FeedbackTables, LifecycleTables
from germane.stores.relational.settings import (
    ENGLISH,
    MaintenanceTables,
    agent_state,
    check_embedding,
    check_language,
    store_embedding,
    weights_of,
)
from germane.stores.relational.signals import Cosines, Signal, distinct, filtered, places_for, signals_for
from germane.stores.relational.tables import (
    Connection,
    Connections,
    LeasedConnections,
    Rows,
    checked_limit,
    damaged,
    gated,
    moment,
    named,
    numbered_memory,
    span,
)

if TYPE_CHECKING:
    from germane.ledger import Finding, StoreStats, StoreUsage
    from germane.model.change import Applied, Change
    from germane.protocols import Store
    from germane.stores.relational.conversation_cache import ConversationCache
    from germane.stores.relational.conversation_log import AgentLog
    from germane.stores.relational.conversations import ConversationTables
    from germane.stores.relational.learning_runs import LearningTables
    from germane.stores.relational.ledger import LedgerTables
    from germane.stores.relational.spaces import SpaceTables
    from germane.stores.relational.working_sets import CachedWorkingSet, WorkingSetTables

Done = TypeVar("Done")


class _Count(NamedTuple):
    """A row of `counts`: how many memories there are of a kind and status, with their tokens and times."""

    kind: str
    status: str
    memories: int
    tokens: int
    oldest: int
    newest: int


@gated
class RelationalStore(ABC):
    """A `Store` in tables, with every sub-store that a store can have. Threads may share it.

    Each database gives it connections, and says for itself what is abstract here.
    """

    def __init__(
        self, connections: Connections, *, embedding: EmbeddingIdentity | None, cache_bytes: int
    ) -> None:
        self._connections = connections
        self._embedding = embedding
        self._caches = Caches(self._new_cache, most=cache_bytes)
        self._conversation_caches = Caches(_conversation_cache, most=MOST_CONVERSATION_BYTES)
        self._log_caches = Caches(_log_cache, most=MOST_CONVERSATION_BYTES)
        self._working_set_cache: OrderedDict[tuple[str, str], CachedWorkingSet] = OrderedDict()
        self._cache_guard = Lock()
        self.companions: dict[Hashable, Any] = {}
        """What the engines of this process share beside the store, each with `clear`; its leases as well."""

    def doing(self, work: Callable[[Connections], Done]) -> Done:
        """Do a piece of work on its tables, for what copies and maintains them.

        As any call of the store's it may be repeated from its beginning, where the database asks for that.
        """
        return work(self._connections)

    def apply(self, agent: str, changes: Sequence[Change]) -> tuple[Applied, ...]:
        """Apply all changes in one transaction, in order, or none of them.

        After a Purge in a file the file is rewritten, about a second for each 100 MB, since SQLite leaves
        copies of rows in unused parts of pages. When that can't be done, because a reader holds on to the
        log or the disk is full, StoreBusy or StoreUnavailable says so: the purge itself is then done, and
        the rest is when the store is opened next or `checkpoint` is called. A server keeps the bytes of
        what was deleted until `germane.stores.erase_purged`, which is due from then on.
        """
        if not changes:
            return ()
        from germane.stores.relational import inserts, writes  # noqa: PLC0415 - Most processes only read.

        erases = writes.erases(changes)
        with self._connections.writing(agent) as connection:
            check_free_name(agent, "agent")
            connection.run("add_agent", {"name": agent})
            known = agent_state(connection.run("agent", {"name": agent}), self._connections.location)
            if inserts.has_vector(changes) and self._embedding is not None:
                check_embedding(known.embedding, self._embedding)
                if known.embedding is None:
                    store_embedding(connection, self._embedding)
            language = known.language or ENGLISH
            transaction = writes.WriteTransaction(
                connection,
                known.agent,
                agent,
                known.seq,
                self._embedding,
                language,
                self._connections.acting,
            )
            applied = transaction.apply(changes)
            writes.pack_after(transaction, known)
            if transaction.gone:
                self._connections.note_purge(connection)
            for session in (sessions := writes.purged_sessions(changes)):
                self.conversations.purge(connection, agent, session)
        for session in sessions:
            self.conversations.forget(agent, session)
        if erases:
            self._drop_purged_texts(agent)
            self._connections.erase()
        return applied

    def get(self, agent: str, ids: Sequence[str]) -> tuple[Memory | None, ...]:
        """The memories of these ids whatever their status, in the order of `ids`; None where there is none.

        `id` is the current version, `id@n` the one of that number.
        """
        with self._connections.reading(agent) as connection:
            agent_row = connection.run("agent", {"name": agent})
            # The first is queried together with the agent, before any rows are read.
            first = [_version_rows(connection, agent, each) for each in ids[:1]]
            agent_state(agent_row, self._connections.location)
            rest = (_version_rows(connection, agent, each) for each in ids[1:])
            results = zip(ids, chain(first, rest), strict=True)
            return tuple(_memory(connection, agent, name, rows) for name, rows in results)

    def find(
        self,
        agent: str,
        where: Filter,
        *,
        order: Order = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
        now: datetime | None = None,
    ) -> tuple[Memory, ...]:
        """The memories that pass the filter, in order; `after` is the `ref` that ended the page before.

        What has expired by `now` is left out.
        Where the order ties, the newer id comes first; in Order.OLDEST, the reverse of NEWEST, the
        older one. Raises NotFound when `after` is no memory of the agent's any more.
        """
        with self._connections.reading(agent) as connection:
            number = agent_state(connection.run("agent", {"name": agent}), self._connections.location).agent
            places = places_for(connection, number, where)
            query, values = filtered(connection.dialect, f"find_{order.value}", where, places, now=now)
            page = {"agent": number, "limit": checked_limit(limit), **_edge(connection, number, agent, after)}
            nums = [num for (num,) in connection.run_text(query, values | page)]
            rows = connection.run("records", {"agent": number, "nums": json.dumps(nums)})
            found = dict(numbered_memory(row, agent) for row in rows)
        return tuple(found[num] for num in nums)

    def search(self, agent: str, query: Query) -> SearchResult:
        """The candidates for a query, from one snapshot of the store.

        Raises EmbedderMismatch for a vector when another model has made the stored ones by now, and
        StoreUnavailable when the query's language isn't that of the agent any more.
        """
        found = None
        while found is None:
            found = self._found(agent, query, self._caches.of(agent))
        return found

    def stats(self, agent: str) -> StoreStats:
        """Figures about this agent's memories and the store that holds them."""
        from germane.ledger import StoreStats  # noqa: PLC0415 - For statistics alone.

        by_kind: dict[str, int] = {}
        by_status: dict[str, int] = {}
        with self._connections.reading(agent) as connection:
            known = agent_state(connection.run("agent", {"name": agent}), self._connections.location)
            rows = list(map(_Count._make, connection.run("counts", span(known.agent))))
            (vectors,) = connection.run("count_vectors", span(known.agent)).fetchone()
            (waiting,) = connection.run("count_unembedded", span(known.agent)).fetchone()
            version = self._schema_version(connection)
            tokens_by_scope, large = weights_of(connection, known.agent)
        for row in rows:
            by_kind[row.kind] = by_kind.get(row.kind, 0) + row.memories
            by_status[row.status] = by_status.get(row.status, 0) + row.memories
        return StoreStats(
            location=self._connections.location,
            schema_version=version,
            agent=agent,
            memories=sum(by_kind.values()),
            by_kind=dict(sorted(by_kind.items())),
            by_status=dict(sorted(by_status.items())),
            tokens=sum(row.tokens for row in rows),
            vectors=vectors,
            embedding=known.embedding,
            bytes=self._connections.size(),
            oldest=moment(min(row.oldest for row in rows)) if rows else None,
            newest=moment(max(row.newest for row in rows)) if rows else None,
            pending=waiting if known.embedding or self._embedding else 0,
            language=known.language or ENGLISH,
            tokens_by_scope=tokens_by_scope,
            large=large,
        )

    @property
    def conversations(self) -> ConversationTables:
        """The log of conversations, each of one agent and one session."""
        from germane.stores.relational.conversations import ConversationTables  # noqa: PLC0415 - Loaded when used.

        caches = self._conversation_caches, self._log_caches
        return ConversationTables(self._connections, *caches, embedding=self._embedding)

    @property
    def feedback(self) -> FeedbackTables:
        """Which memories were used, and how work turned out with them."""
        return FeedbackTables(self._connections)

    @property
    def learning(self) -> LearningTables:
        """What was learned from conversations, by run."""
        from germane.stores.relational.learning_runs import LearningTables  # noqa: PLC0415 - Loaded when used.

        return LearningTables(self._connections)

    @property
    def ledger(self) -> LedgerTables:
        """The recorded assemblies, and what happened to the memories since."""
        from germane.stores.relational.ledger import LedgerTables  # noqa: PLC0415 - Loaded when used.

        return LedgerTables(self._connections, self._as_of)

    @property
    def lifecycle(self) -> LifecycleTables:
        """The stages of memories, and the log of what changed them."""
        return LifecycleTables(self._connections)

    @property
    def maintenance(self) -> MaintenanceTables:
        """The agents of the store, their languages and vectors, and the search for damage."""
        return MaintenanceTables(self._connections, self._embedding, self._findings)

    @property
    def spaces(self) -> SpaceTables:
        """The memories that agents share by being members of a space."""
        from germane.stores.relational.spaces import SpaceTables  # noqa: PLC0415 - Loaded when used.

        return SpaceTables(self._connections, self._with_connections)

    @property
    def working_sets(self) -> WorkingSetTables:
        """The working sets, by owner and name, with the log of their changes."""
        from germane.stores.relational.working_sets import WorkingSetTables  # noqa: PLC0415 - Loaded when used.

        return WorkingSetTables(self._connections, self._working_set_cache, self._cache_guard)

    def lease(self, release: Callable[[], None], collected: Callable[[], None]) -> Self:
        """This store for one of several users in the process, with the same connections and caches.

        Closing the lease calls `release` once and ends no other's access; `collected` is called instead for a
        lease that nobody closed.
        """
        return self._with_connections(LeasedConnections(self._connections, release, collected))

    def usage(self) -> StoreUsage:
        """What the store takes of this process: connections, and the caches of all agents."""
        from germane.ledger import StoreUsage  # noqa: PLC0415 - For statistics alone.

        connections, most = self._connections.connected()
        return StoreUsage(
            location=self._connections.location,
            connections=connections,
            most_connections=most,
            caches=self._caches.usage(),
            conversation_caches=self._conversation_caches.usage(),
        )

    def close(self) -> None:
        """Release what the store holds. Closing twice is fine."""
        self._connections.close()
        if not isinstance(self._connections, LeasedConnections):
            self.clear_caches()

    def clear_caches(self) -> None:
        """Forget in this process what was read of any agent."""
        with self._cache_guard:
            self._working_set_cache.clear()
        self._conversation_caches.clear()
        self._log_caches.clear()
        self._caches.clear()
        for each in tuple(self.companions.values()):
            each.clear()

    def _drop_purged_texts(self, agent: str) -> None:
        with self._cache_guard:
            self._working_set_cache.clear()
        if (cache := self._caches.peek(agent)) is not None:
            with cache.lock:  # A search may be under way.
                cache.shed()

    def _found(self, agent: str, query: Query, cache: AgentCache) -> SearchResult | None:
        """The candidates for a query; None where another cache has taken the place of this one."""
        with cache.lock, self._connections.reading(agent) as connection:
            known = agent_state(connection.run("agent", {"name": agent}), self._connections.location)
            if known.language is not None:
                check_language(known.language, query.language, self._connections.location)
            if query.vector is not None:
                check_embedding(known.embedding, self._embedding)
            fitting = self._fitting(cache, known.memories)
            if fitting is not cache:
                self._caches.replace(agent, fitting)
                return None
            cache.agent = known.agent
            cache.catch_up(connection, known.seq)
            cache.set_time(query.now)
            found = search(
                connection,
                cache,
                query,
                embedding=known.embedding,
                learning=known.learning_status,
                read=self._reading(cache, known.agent) if query.deferred else None,
            )
        self._caches.settle(agent)
        return replace(found, stamp=known.stamp, converses=bool(known.converses))

    def _reading(self, cache: AgentCache, agent: int) -> Reading:
        """What reads later what a search of an agent's cache leaves unread, as it is by then."""
        columns = cache.columns

        def read(look: Callable[[Connection], dict[int, Done]], ordinals: Sequence[int]) -> dict[int, Done]:
            def attempt() -> dict[int, Done]:
                with cache.lock, self._connections.reading(cache.name) as connection:
                    return look(connection)

            found = self._connections.gate.run(attempt)
            if gone := [ordinal for ordinal in ordinals if ordinal not in found]:
                raise NotFound(id_text(columns.raw_id(gone[0])), cache.name)
            return found

        def records(ordinals: Sequence[int]) -> dict[int, Memory]:
            return read(lambda connection: stored(connection, agent, cache.name, columns, ordinals), ordinals)

        def texts(ordinals: Sequence[int]) -> dict[int, tuple[str, str | None]]:
            def look(connection: Connection) -> dict[int, tuple[str, str | None]]:
                rows = rows_of(connection, "contents", agent, columns, ordinals)
                return {ordinal: (content, subject) for ordinal, (_, content, subject) in rows}

            return read(look, ordinals)

        return Reading(records, texts)

    def _new_cache(self, agent: str) -> AgentCache:
        """An empty cache of an agent."""
        from germane.stores.relational.resident_cache import ResidentCache  # noqa: PLC0415 - Loaded when used.

        return ResidentCache(agent)

    @abstractmethod
    def _schema_version(self, connection: Connection) -> int:
        """The version of the schema that the store has."""

    def _findings(self, connection: Connection, agent: str) -> Iterable[Finding]:
        """What is wrong with the database itself, or else with an agent's part of it."""
        from germane.stores.relational.damage import check_agent  # noqa: PLC0415 - Few processes check.

        if damage := self._damage(connection):
            return damage
        rows = connection.run("agent", {"name": agent})
        return check_agent(connection, agent_state(rows, self._connections.location))

    @abstractmethod
    def _damage(self, connection: Connection) -> tuple[Finding, ...]:
        """What is wrong with the database itself."""

    @abstractmethod
    def _as_of(self, agent: str, point: Mapping[str, int]) -> Store:
        """A copy in memory of an agent's memories as they were at a point."""

    def _with_connections(self, connections: Connections) -> Self:
        """This store by other connections, with the same caches."""
        other = copy.copy(self)
        other._connections = connections  # noqa: SLF001 - It is a store of this very class.
        return other

    def _fitting(self, cache: AgentCache, memories: int) -> AgentCache:  # noqa: ARG002 - Not every store asks.
        """The cache for an agent with so many memories: this one, or another in its place."""
        return cache


def _conversation_cache(conversation: tuple[str, str]) -> ConversationCache:
    from germane.stores.relational.conversation_cache import ConversationCache  # noqa: PLC0415 - Loaded when used.

    return ConversationCache(*conversation)


def _log_cache(agent: str) -> AgentLog:
    from germane.stores.relational.conversation_log import AgentLog  # noqa: PLC0415 - Loaded when used.

    return AgentLog(agent)


def _version_rows(connection: Connection, agent: str, memory_id: str) -> Rows | None:
    values = named(memory_id)
    if values["id"] is None:
        return None
    query = "record_by_version" if values["version"] else "record_by_id"
    return connection.run(query, {"agent": agent, **values})


def _memory(connection: Connection, agent: str, name: str, rows: Rows | None) -> Memory | None:
    row = None if rows is None else rows.fetchone()
    memory = None if row is None else numbered_memory(row, agent)[1]
    values = named(name)
    if rows is None or values["version"] or (memory is not None and memory.superseded_by is None):
        return memory
    # The row is that of a former version, or of none.
    row = connection.run("record_by_version", {"agent": agent, **values}).fetchone()
    return None if row is None else numbered_memory(row, agent)[1]


def _edge(
    connection: Connection, number: int, agent: str, after: str | None
) -> dict[str, bytes | int | float | None]:
    if after is None:
        return {"edge_id": None, "edge_time": None, "edge_importance": None}
    values = named(after)
    found = values["id"] and connection.run("num", {"agent": number, **values}).fetchone()
    if not found:
        raise NotFound(after, agent)
    edge, at, importance = connection.run("edge", {"agent": number, "num": found[0]}).fetchone()
    return {"edge_id": edge, "edge_time": at, "edge_importance": importance}


# Searches an agent's cache: the candidates of every signal united, per slice.


def search(
    connection: Connection,
    cache: AgentCache,
    query: Query,
    *,
    embedding: EmbeddingIdentity | None,
    learning: LearningStatus,
    read: Reading | None = None,
) -> SearchResult:
    """What the agent's cache, caught up with the connection's snapshot, has for a query.

    `read` finds the records that may stay unread until then; without it none do.
    """
    key = (query, None if query.vector is None else query.vector.tobytes(), embedding)
    found = cache.known(key)
    if found is None:
        found = _searched(connection, cache, query, embedding, learning, read=read)
        cache.keep(key, found)
    return found if found.learning == learning else replace(found, learning=learning)


def _searched(
    connection: Connection,
    cache: AgentCache,
    query: Query,
    embedding: EmbeddingIdentity | None,
    learning: LearningStatus,
    *,
    read: Reading | None,
) -> SearchResult:
    admitted = cache.admitted(connection, query.filter)
    compared = _compared(connection, cache, query, embedding)
    signals, words, window_bound = signals_for(
        query,
        postings=partial(cache.postings, connection),
        sessions=cache.sessions(connection, query.filter),
        turns=cache.columns.turns,
        compared=compared,
    )
    chosen = [_choose(connection, cache, each, each.where or query.filter, signals) for each in query.slices]
    return SearchResult(
        slices=_gathered(connection, cache, chosen, signals, read),
        lexical_bound=0.0 if words is None else words.bound,
        window_bound=window_bound,
        term_weights={} if words is None else words.weights,
        average_terms=1.0 if words is None else words.average,
        stored=cache.columns.used - cache.columns.dead,
        admitted=int(np.count_nonzero(admitted)),
        by_relevance=bool(signals),
        learning=learning,
        expiring=cache.columns.expiring,
    )


def _compared(
    connection: Connection, cache: AgentCache, query: Query, embedding: EmbeddingIdentity | None
) -> Cosines | None:
    if query.vector is None:
        return None
    if embedding is None:
        # No vector was ever stored, so there is nothing to compare with.
        return VectorRows(query.vector.size).compare(query.vector)
    if query.vector.shape != (embedding.dimension,):
        raise InvalidInput(
            f"A vector of shape {query.vector.shape} can't be compared with those of {embedding}; "
            f"its shape has to be ({embedding.dimension},)."
        )
    if not np.all(np.isfinite(query.vector)):
        raise InvalidInput("The query's vector holds NaN or infinity. Give finite numbers, or no vector.")
    return cache.compared(connection, query.vector)


def _choose(
    connection: Connection, cache: AgentCache, part: Slice, where: Filter, signals: Sequence[Signal]
) -> NDArray[np.int64]:
    """The ordinals of one slice, ascending by id."""
    columns = cache.columns
    if part.order is not None or not signals:
        return cache.first(connection, part, where)
    mask = cache.of_slice(connection, part, where)
    near = [signal.nearest(mask, part.limit) for signal in signals]
    chosen = distinct([columns.best(ordinals, values, part.limit) for ordinals, values in near])
    return chosen[np.argsort(columns.ids[chosen])]


def _gathered(
    connection: Connection,
    cache: AgentCache,
    chosen: Sequence[NDArray[np.int64]],
    signals: Sequence[Signal],
    read: Reading | None,
) -> tuple[Sequence[Candidate], ...]:
    """The candidates of each slice, with each signal that the query asks for.

    They stay columns until they are looked at: most are judged by their signals alone.
    """
    together = distinct(chosen)
    values = {signal.name: signal.values(together) for signal in signals}
    records: Mapping[int, Any] = (
        cache.records(connection, together.tolist())
        if read is None
        else cache.unread(connection, together.tolist(), read)
    )
    slices: list[Sequence[Candidate]] = []
    for each in chosen:
        places = np.searchsorted(together, each)
        columns = {name: column[places] for name, column in values.items()}
        try:
            found = tuple(map(records.__getitem__, each.tolist()))
        except KeyError as error:
            raise damaged("The record of a memory", error, "see what `germane db doctor` finds") from error
        slices.append(CandidateTable(found, columns))
    return tuple(slices)

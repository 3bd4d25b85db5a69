"""The store that an address of PostgreSQL opens: its schema, its vector indexes, and its cache."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.sql import Identifier

from germane.errors import InvalidInput, NotFound, SchemaTooNew, StoreUnavailable
from germane.ledger import Finding
from germane.model.memory import Vector
from germane.model.query import EmbeddingIdentity
from germane.retrieval.bm25 import Postings
from germane.retrieval.vectors import ScaledRows, VectorRows, exact_cosines
from germane.stores.postgres.connection import NUMBER, PostgresConnection, Raw, unpacked
from germane.stores.postgres.connections import PostgresConnections
from germane.stores.postgres.servers import Notifications, distribute, is_distributed, require_one_server
from germane.stores.relational.cache import MOST_CACHE_BYTES, AgentCache
from germane.stores.relational.checksums import REPAIR, check_intact
from germane.stores.relational.memory_blocks import ROWS_AT_ONCE
from germane.stores.relational.resident_cache import ResidentCache
from germane.stores.relational.settings import StoreKey, encrypting, settle, store_key
from germane.stores.relational.signals import Columns
from germane.stores.relational.store import RelationalStore
from germane.stores.relational.tables import POOL_SIZE, Connection, damaged, span
from germane.stores.sql import Migration, migrations, queries, refuse_older, script
from germane.stores.sqlite.store import SqliteStore, copy_past


class PostgresStore(RelationalStore):
    """A `Store` in a PostgreSQL database, with every sub-store, and the same results as one in a file.

    `address` is a URL, such as "postgresql://user@host/database". The database needs the extension
    `vector`; the schema is made when it isn't there. `embedding` names the model whose vectors are stored;
    without it none can be. `durability="relaxed"` doesn't wait for the disk at a commit. `timeout` is how
    many seconds to wait for a connection, or for other writers of the same agent, before StoreBusy.
    `replica` is the address of a standby that answers what is read, once it has what this process wrote.
    `replace_embedding` allows the vectors of another model to be removed on opening. There are at most
    `pool_size` connections, and the caches of all agents take at most `cache_bytes`. A new store is encrypted
    by `key`, 32 bytes, which opens it again; its server can't search, so this process caches agents whole.

    A write whose answer was lost is looked up, and done again where it wasn't done: it is stored once.
    Raises StoreUnavailable, SchemaTooNew, EmbedderMismatch or StoreBusy.
    """

    def __init__(
        self,
        address: str,
        *,
        embedding: EmbeddingIdentity | None = None,
        durability: Literal["full", "relaxed"] = "full",
        timeout: float = 30.0,
        read_only: bool = False,
        replace_embedding: bool = False,
        replica: str | None = None,
        pool_size: int = POOL_SIZE,
        cache_bytes: int = MOST_CACHE_BYTES,
        key: bytes | None = None,
    ) -> None:
        self._server = PostgresConnections(
            address,
            durability=durability,
            timeout=timeout,
            read_only=read_only,
            replica=replica,
            pool_size=pool_size,
        )
        super().__init__(encrypting(self._server, key), embedding=embedding, cache_bytes=cache_bytes)

        def begin() -> None:
            prepare(self._server, key=store_key(self._connections))
            settle(self._connections, embedding=embedding, replace_embedding=replace_embedding)

        try:
            self._server.gate.run(begin)
        except BaseException:
            self._server.close()
            raise

    @property
    def notifications(self) -> Notifications:
        """The server's notifications of what is written, by this process or another."""
        return self._server.notifications

    def _as_of(self, agent: str, point: Mapping[str, int]) -> SqliteStore:
        return copy_past(self._connections, agent, point, self._embedding)

    def _new_cache(self, agent: str) -> AgentCache:
        return ResidentCache(agent)

    def _fitting(self, cache: AgentCache, memories: int) -> AgentCache:
        searches = store_key(self._connections) is None  # By what it can read.
        is_large = memories > _MOST_CACHED and isinstance(cache, ResidentCache) and searches
        return ServedCache(cache.name) if is_large else cache

    def _schema_version(self, connection: Connection) -> int:
        return version_of(connection)

    def _damage(self, connection: Connection) -> tuple[Finding, ...]:  # noqa: ARG002 - The server checks its pages.
        return ()


# Brings a database to the schema that this version knows, one process at a time.

_STEPS: Final = migrations("postgres")

VERSION: Final = _STEPS[-1].number

_MOST_PARTITIONS: Final = 1024
_OLDEST_SERVER: Final = 150_000

# Any number that others are unlikely to lock: the bytes `germane`.
_LOCK: Final = 0x6765726D616E65

_PARTITIONED: Final = "PARTITION BY HASH (agent)"

# A migration after which older versions can still use the store says from which on.
_SERVES: Final = re.compile(r"^-- Serves version (\d+) and later\.$", re.MULTILINE)

_OURS: Final = """
SELECT count(*) FILTER (WHERE attname IN ('number', 'name')), count(*)
FROM pg_attribute WHERE attrelid = to_regclass('migrations') AND attnum > 0 AND NOT attisdropped
"""


def prepare(connections: PostgresConnections, *, key: StoreKey | None = None) -> None:
    """Create the schema in a database without one, or apply the migrations that an older one lacks.

    A new store is encrypted by `key`. Many processes may do this at once. A newer schema is used where its
    migrations say that this version can. Raises SchemaTooNew where they don't, and StoreUnavailable where the
    tables are another program's or older than the first migration, the server is too old or lacks the
    extension `vector`, or the user may not do it.
    """
    with connections.reading() as connection:
        found = checked_version(connection)
    if found >= VERSION:
        return
    if connections.read_only and not found:
        raise StoreUnavailable(
            f"There is no store in {connections.location}. `germane remember`, `germane import` and "
            "`germane db migrate` make one, as opening it without read_only=True does."
        )
    if connections.read_only:
        raise StoreUnavailable(
            f"The store {connections.location} has schema version {found}, this germane needs {VERSION}. "
            "Open it once without read_only=True, or run `germane db migrate`."
        )
    migrate(connections, key=key)


def migrate(
    connections: PostgresConnections,
    *,
    partitions: int = 0,
    steps: Sequence[Migration] = _STEPS,
    key: StoreKey | None = None,
) -> tuple[str, ...]:
    """Do what `prepare` does by these steps, and return the names of those that were applied.

    A new schema's tables have `partitions` hash partitions by agent; with 0 they have none. A schema
    that is there keeps those it has.
    """
    if not 0 <= partitions <= _MOST_PARTITIONS:
        raise InvalidInput(
            f"partitions={partitions} is out of range. Use 0 for none, up to {_MOST_PARTITIONS}."
        )
    applied: list[Migration] = []
    with connections.alone(session=False) as connection:
        while some := _applied(connections, connection, partitions, steps, key):
            applied += some
        if applied and is_distributed(connection.raw):
            # Tables that are new have to be where the others are.
            text = "\n".join(each.script for each in steps)
            distribute(connection.raw, connections.location, lambda *_: None, text=text)
    return tuple(each.name for each in applied)


def grant(connections: PostgresConnections, role: str) -> None:
    """Let a role do what applications do, and nothing else. Raises StoreUnavailable without such a role."""
    with connections.alone(session=False) as connection, connections.transaction(connection) as raw:
        require_one_server(raw, connections.location, "hold such a role to its policies")
        if not raw.execute(b"SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchall():
            raise StoreUnavailable(
                f"The server of {connections.location} has no role {role!r}. Create it first: "
                f"CREATE ROLE {role} LOGIN PASSWORD '…'."
            )
        _run(raw, script("postgres", "grants").replace("{role}", Identifier(role).as_string(raw)))


def version_of(connection: Connection) -> int:
    """The schema version of a database; 0 where there is none."""
    raw = _raw(connection)
    known, columns = raw.execute(_OURS.encode()).fetchall()[0]
    if columns == 0:
        return 0
    if known != 2:  # noqa: PLR2004 - `number` and `name`.
        raise StoreUnavailable(
            f"The database {raw.info.dbname!r} has a table `migrations` of another program. Use another "
            "database, or a schema of the store's own: "
            "CREATE SCHEMA germane, and ?options=-csearch_path%3Dgermane,public in the address."
        )
    return int(raw.execute(b"SELECT coalesce(max(number), 0) FROM migrations").fetchall()[0][0])


def checked_version(connection: Connection, newest: int = VERSION) -> int:
    """The schema version of a database, 0 for none.

    Raises SchemaTooNew or StoreUnavailable where this version can't use it.
    """
    found = version_of(connection)
    if found > newest:
        rows = _raw(connection).execute(b"SELECT value FROM settings WHERE name = 'serves'").fetchall()
        if not rows or int(rows[0][0]) > newest:
            raise SchemaTooNew(found=found, supported=newest)
    refuse_older("postgres", found, str(_raw(connection).info.dbname))
    return found


def _raw(connection: Connection) -> Raw:
    bare = getattr(connection, "bare", connection)
    if not isinstance(bare, PostgresConnection):
        raise TypeError(f"{connection!r} is no connection to PostgreSQL.")
    return bare.raw


def _applied(
    connections: PostgresConnections,
    connection: PostgresConnection,
    partitions: int,
    steps: Sequence[Migration],
    key: StoreKey | None,
) -> Sequence[Migration]:
    """Make the schema where there is none, else apply the next migration; what was done, if anything."""
    with connections.transaction(connection) as raw:
        # Until the transaction ends, so that a pooler hands it on to nobody.
        raw.execute(b"SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        found = checked_version(connection, steps[-1].number)
        missing = [each for each in steps if each.number > found]
        if found == 0:
            _install(raw, "\n".join(each.script for each in missing), partitions, connections.location)
            if key is not None:
                _run(raw, script("postgres", "encrypted"))
                key.begin(connection)
        elif missing:
            del missing[1:]
            count = _partitions(raw)
            _run(raw, missing[0].script.replace("{partitioned}", _PARTITIONED if count else ""))
            if count:
                _run(raw, script("postgres", "partitions").replace("{partitions}", str(count)))
        if missing:
            _record(raw, missing)
        return missing


def _install(raw: Raw, text: str, partitions: int, location: str) -> None:
    if raw.info.server_version < _OLDEST_SERVER:
        raise StoreUnavailable(
            f"The server of {location} is PostgreSQL {raw.info.server_version // 10_000}, and the store "
            "needs 15 or later. Upgrade the server."
        )
    (encoding,) = raw.execute(b"SHOW server_encoding").fetchall()[0]
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"The database of {location} is encoded in {encoding}, which can't keep every text. Create it "
            "with ENCODING 'UTF8' TEMPLATE template0."
        )
    _extend(raw, location)
    try:
        _run(raw, text.replace("{partitioned}", _PARTITIONED if partitions else ""))
    except psycopg.errors.DuplicateTable as error:
        raise StoreUnavailable(
            f"The database of {location} has a table of another program whose name the store needs "
            f"({error.diag.message_primary}). Use another database, or a schema of the store's own: "
            "CREATE SCHEMA germane, and ?options=-csearch_path%3Dgermane,public in the address."
        ) from error
    _run(raw, script("postgres", "partitions").replace("{partitions}", str(partitions)))


def _extend(raw: Raw, location: str) -> None:
    try:
        raw.execute(b"CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreUnavailable(
            f"The user {raw.info.user!r} may not create the extension `vector` in the database of "
            f"{location}. Let a superuser run CREATE EXTENSION vector there once."
        ) from error
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        raise StoreUnavailable(
            f"The server of {location} doesn't have the extension `vector`. Install pgvector on it, such as "
            f"the package postgresql-{raw.info.server_version // 10_000}-pgvector, and try again."
        ) from error


def _partitions(raw: Raw) -> int:
    """How many partitions each table has that is distributed by agent; 0 where they have none."""
    ((count,),) = raw.execute(
        b"SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('states')"
    ).fetchall()
    return int(count)


def _record(raw: Raw, applied: Sequence[Migration]) -> None:
    with raw.cursor() as cursor:
        cursor.executemany(
            b"INSERT INTO migrations (number, name) VALUES (%s, %s)",
            [(each.number, each.name) for each in applied],
        )
    last = applied[-1]
    serves = _SERVES.search(last.script)
    raw.execute(
        b"INSERT INTO settings (name, value) VALUES ('serves', %s)"
        b" ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (serves.group(1) if serves else str(last.number),),
    )


def _run(raw: Raw, text: str) -> psycopg.Cursor[tuple[Any, ...]]:
    return raw.execute(text.encode(), prepare=False)


# An index of its own for the vectors of one agent.

WORTH_IT: Final = 20_000
"""The index of an agent is used from so many memories on: `bench/nearest.py` measures what that saves."""

_MOST_DIMENSIONS: Final = 4000  # Of pgvector's, for vectors of 16 bits in such an index.

_DIMENSION: Final = b"SELECT value::bigint FROM settings WHERE name = 'embedding_dimension'"
_TABLE: Final = b"SELECT tableoid::regclass::text FROM vectors WHERE agent = %s LIMIT 1"
_ENCRYPTED: Final = b"SELECT FROM settings WHERE name = 'encryption'"
_COUNT: Final = b"SELECT count(*) FROM vectors WHERE agent = %s"


def marked(name: str, **marks: object) -> str:
    """The text of a named query with whole numbers or names of tables in place of its marks."""
    text = queries("postgres")[name]
    for mark, value in marks.items():
        text = text.replace(f"{{{mark}}}", str(value))
    return text


def index_agent(raw: Raw, name: str) -> int:
    """Build the index of an agent's vectors, unless it is there, and return how many vectors there are.

    One that an interrupted call has left half built is rebuilt. Raises NotFound for an unknown agent,
    and InvalidInput for one without vectors, or with vectors too long.
    """
    agent = _number(raw, name)
    dimension, table = raw.execute(_DIMENSION).fetchone(), raw.execute(_TABLE, (agent,)).fetchone()
    if dimension is None or table is None:
        raise InvalidInput(f"Agent {name!r} has no vectors to index. `germane db embed` makes them.")
    if dimension[0] > _MOST_DIMENSIONS:
        raise InvalidInput(
            f"The vectors have {dimension[0]} dimensions, and an index takes {_MOST_DIMENSIONS} at most. "
            "They are compared without one."
        )
    if _is_valid(raw, agent) is False:
        unindex_agent(raw, name)
    if raw.execute(_ENCRYPTED).fetchone() is not None:
        raise InvalidInput(
            "The store is encrypted, so its server can't index vectors. The processes with the key compare "
            "them."
        )
    marks = {"agent": agent, "dimension": dimension[0], "table": table[0]}
    raw.execute(marked("index_vectors", **marks).encode(), prepare=False)
    return _count(raw, agent)


def unindex_agent(raw: Raw, name: str) -> int:
    """Take an agent's index away, if it has one; how many vectors it has. Raises NotFound."""
    agent = _number(raw, name)
    # An agent without one is removed on a cluster too.
    if _is_valid(raw, agent) is not None:
        raw.execute(marked("unindex_vectors", agent=agent).encode(), prepare=False)
    return _count(raw, agent)


def _number(raw: Raw, name: str) -> int:
    row = raw.execute(NUMBER, (name,)).fetchone()
    if row is None:
        raise NotFound(name, name)
    return int(row[0])


def _is_valid(raw: Raw, agent: int) -> bool | None:
    """Whether an agent's index can be used; None where it has none."""
    row = raw.execute(_text("indexed_vectors"), {"agent": agent}).fetchone()
    return None if row is None else bool(row[0])


def _count(raw: Raw, agent: int) -> int:
    return int(raw.execute(_COUNT, (agent,)).fetchall()[0][0])


def _text(name: str) -> bytes:
    return queries("postgres")[name].encode()


# An agent's cache beside a server: the server finds postings and compares vectors, this process scores.
#
# The cache is small, some hundred bytes a memory, so that a process can serve many agents. Scores
# come from the same code as everywhere: the server sends what the question's terms have, and the vectors of
# what may come first.

# A server adds the products up in another order than this process, which moves a cosine by far less.
_ROUNDING = 1e-4

# How many results the index gives: so many times those that are wanted, because filters exclude some.
# The extension gives 1,000 at most, and finds more of the nearest with a larger number.
_WIDER: Final = 4
_NARROWEST: Final = 400
_WIDEST: Final = 1000

# An agent with at most so many memories is cached whole in this process.
_MOST_CACHED: Final = 20_000


class ServedCache(AgentCache):
    """The cache of a large agent: what filters, orders and sessions need. The server has the rest."""

    def __init__(self, name: str, *, indexed_from: int = WORTH_IT) -> None:
        """An index of the agent's vectors is used where there are `indexed_from` memories or more."""
        super().__init__(name)
        self._indexed_from = indexed_from
        self._is_indexed: bool | None = None

    def postings(self, connection: Connection, hashes: Sequence[int]) -> Postings:
        """The postings of these terms, found by the server's index, with the counts of all."""
        if not self.columns.used:
            # The server has no statistics of an agent that isn't known.
            return Postings()
        keys = sorted({(self.agent << 32) | each for each in hashes})
        values = {"agent": self.agent, "keys": json.dumps(keys)}
        documents, tokens, *packed = connection.run("postings_of", values).fetchone()
        nums, lengths, counts, terms, frequencies = (each or b"" for each in packed)
        return Postings.from_arrays(
            self.columns.ordinals(np.frombuffer(nums, dtype=">i8").astype(np.int64)),
            np.frombuffer(lengths, dtype=">i4").astype(np.int64),
            np.frombuffer(counts, dtype=">i4").astype(np.int64),
            np.frombuffer(terms, dtype="<u4"),
            np.frombuffer(frequencies, dtype=np.uint8),
            whole=(documents, tokens),
        )

    def compared(self, connection: Connection, vector: Vector) -> ServedCosines:
        """How near the agent's vectors are to this one, as the server computes it."""
        if self._is_indexed is None and self.columns.used >= self._indexed_from:
            self._is_indexed = connection.run("indexed_vectors", {"agent": self.agent}).fetchone() == (True,)
        if self._is_indexed:
            return IndexedCosines(connection, self.agent, self.columns, vector)
        return ServedCosines(connection, self.agent, self.columns, vector)

    def _empty(self) -> None:
        super()._empty()
        self._is_indexed = None

    def _load(self, connection: Connection) -> None:
        self._add(connection, span(self.agent))

    def _add(self, connection: Connection, place: dict[str, int]) -> None:
        rows = connection.run("cache_columns", place)
        while some := rows.fetchmany(ROWS_AT_ONCE):
            self.columns.append(some)


class ServedCosines:
    """The server's cosines say which vectors are near; those are read, each once, and compared exactly.

    So a cosine has the same bits as where all vectors are in this process.
    """

    def __init__(self, connection: Connection, agent: int, columns: Columns, vector: Vector) -> None:
        """`connection` is in the transaction in which the columns caught up."""
        self._connection, self._agent, self._columns = connection, agent, columns
        self._query = np.asarray(vector, dtype=np.float32)
        self._vectors: list[tuple[NDArray[np.int64], list[bytes]]] = []
        self._read = np.zeros(columns.used, dtype=np.bool_)
        self._exact = np.full(columns.used, np.nan)

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """At least the `limit` nearest admitted memories; more where rounding might decide."""
        all_ordinals, all_rough = self.similarities
        among = admitted[all_ordinals]
        ordinals, rough = all_ordinals[among], all_rough[among]
        if len(ordinals) > limit > 0:
            ordinals = ordinals[rough >= _last(rough, limit) - _ROUNDING]
        return ordinals

    def rough(self, count: int) -> NDArray[np.float64]:
        """The cosine of each of the first `count` memories, but for rounding; NaN for want of a vector."""
        found = np.full(count, np.nan)
        ordinals, rough = self.similarities
        found[ordinals] = rough
        return found

    def cosines(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each memory; NaN for one without a vector."""
        self._fetch(ordinals)
        return self._exact[ordinals]

    def mixed(self, ordinals: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cosine with the weighted sum of the vectors in each row of memories, -1 for none."""
        self._fetch(ordinals[ordinals >= 0])
        rows = VectorRows(self._query.size)
        for there, packed in self._vectors:
            rows.put(there, packed)
        return rows.compare(self._query).mixed(ordinals, weights)

    def _fetch(self, ordinals: NDArray[np.int64]) -> None:
        """Read the vectors of these memories that weren't read yet."""
        wanted = np.zeros(len(self._read), dtype=np.bool_)
        wanted[ordinals] = True
        missing = np.flatnonzero(wanted & ~self._read)
        self._read[missing] = True
        if not len(missing):
            return
        nums = {"agent": self._agent, "nums": json.dumps(self._columns.nums[missing].tolist())}
        if found := list(self._packed(nums)):
            known, packed = zip(*found, strict=True)
            there = self._columns.ordinals(np.array(known, dtype=np.int64))
            vectors = np.frombuffer(b"".join(packed), dtype="<f2").reshape(len(there), -1)
            self._exact[there] = exact_cosines(ScaledRows.of(vectors), self._query)
            self._vectors.append((there, list(packed)))

    @cached_property
    def similarities(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Every memory with a vector, and its cosine but for rounding."""
        values = {"agent": self._agent, "asked": _literal(self._query)}
        nums, products = self._connection.run("similarities", values).fetchone()
        ordinals = self._columns.ordinals(np.frombuffer(nums or b"", dtype=">i8").astype(np.int64))
        return ordinals, np.frombuffer(products or b"", dtype=">f4").astype(np.float64)

    def _packed(self, nums: dict[str, Any]) -> Iterable[tuple[int, bytes]]:
        found, vectors, checksums = self._connection.run("packed_vectors", nums).fetchone()
        if not found:
            return ()
        numbers = np.frombuffer(found, dtype=">i8").tolist()
        packed = unpacked(vectors, len(numbers))
        try:
            check_intact(zip(packed, (None if each < 0 else each for each in checksums), strict=True))
        except ValueError as error:
            raise damaged("The vectors of an agent", error, REPAIR) from error
        return zip(numbers, packed, strict=True)


class IndexedCosines(ServedCosines):
    """Asks the agent's index for the nearest, and compares with all where that can't be answered by it.

    The index gives the nearest of all memories and may miss a few of them. Where too few of what it gives
    are admitted, nothing is left to the index.
    """

    def __init__(self, connection: Connection, agent: int, columns: Columns, vector: Vector) -> None:
        super().__init__(connection, agent, columns, vector)
        self._width = 0
        self._found = np.empty(0, dtype=np.int64), np.empty(0)

    def nearest(self, admitted: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """About the `limit` nearest admitted memories, or exactly those."""
        # What was read for another slice of the question is there, and exact.
        if "similarities" not in self.__dict__ and 0 < limit <= _WIDEST // _WIDER:
            ordinals, rough = self._by_index(limit * _WIDER)
            edge = rough[-1] if len(rough) else np.inf
            among = admitted[ordinals]
            ordinals, rough = ordinals[among], rough[among]
            if len(ordinals) >= limit and (last := _last(rough, limit) - _ROUNDING) > edge:
                return ordinals[rough >= last]
        return super().nearest(admitted, limit)

    def _by_index(self, width: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The nearest of all, the nearest first; at least so many, if the index finds so many."""
        if width > self._width:
            self._width = max(width, _NARROWEST)
            self._connection.run("set_search_width", {"width": str(self._width)})
            text = marked("nearest_by_index", agent=self._agent, dimension=self._query.size)
            values = {"asked": _literal(self._query), "limit": self._width}
            rows = self._connection.run_text(text, values).fetchall()
            nums = np.array([num for num, _ in rows], dtype=np.int64)
            products = np.array([product for _, product in rows], dtype=np.float64)
            self._found = self._columns.ordinals(nums), products
        return self._found


def _last(rough: NDArray[np.float64], limit: int) -> float:
    """The `limit`-th greatest."""
    return float(np.partition(rough, len(rough) - limit)[len(rough) - limit])


def _literal(vector: Vector) -> str:
    """A vector as PostgreSQL reads it."""
    return f"[{','.join(map(repr, vector.tolist()))}]"

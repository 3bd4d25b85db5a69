"""The store that an address of PostgreSQL opens: memories of many agents, shared by many machines.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from germane.forking import gated
from germane.model.stats import EmbeddingIdentity, Finding
from germane.stores.postgres.connecting.again import retrying
from germane.stores.postgres.connecting.connections import Connections
from germane.stores.postgres.operating.schema import prepare, version_of
from germane.stores.postgres.served import ServedCache
from germane.stores.relational.connection import Connection
from germane.stores.relational.searches.cache import AgentCache
from germane.stores.relational.searches.resident import ResidentCache
from germane.stores.relational.settings import settle
from germane.stores.relational.store import RelationalStore
from germane.stores.sqlite import SqliteStore

__all__ = ["PostgresStore"]


@retrying
@gated
class PostgresStore(RelationalStore):
    """A `Store` in a PostgreSQL database, with every capability that one in a file has, and the same results.

    `address` is a URL, such as "postgresql://user@host/database". The database needs the extension
    `vector`; the schema is made when it isn't there. `embedding` names the model whose vectors are stored;
    without it none can be. `durability="relaxed"` doesn't wait for the disk at a commit. `timeout` is how
    many seconds to wait for a connection, or for other writers of the same agent, before StoreBusy.
    `replica` is the address of a standby that answers what is read, once it has what this process wrote.
    `replace_embedding` allows the vectors of another model to be removed on opening.

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
    ) -> None:
        self._server = Connections(
            address, durability=durability, timeout=timeout, read_only=read_only, replica=replica
        )
        super().__init__(self._server, embedding=embedding)
        try:
            prepare(self._server)
            settle(self._server, embedding=embedding, replace_embedding=replace_embedding)
        except BaseException:
            self._server.close()
            raise

    @property
    def hears(self) -> bool:
        """Whether the server tells of what is written, to who asked for it by `awake`."""
        return self._server.hears

    def awake(self, tenant: str, wake: Callable[[], object]) -> Callable[[], None]:
        """Have `wake` called after each write for a tenant, until what is returned is called."""
        return self._server.awake(tenant, wake)

    def as_of(self, agent: str, point: Mapping[str, int]) -> SqliteStore:
        """A copy in memory of the agent's memories as they were at a point, as far as the store tells."""
        copy = SqliteStore(":memory:", embedding=self._embedding)
        with copy.filling() as target:
            self._fill_past(target, agent, point)
        return copy

    def _new_cache(self, agent: str) -> AgentCache:
        return ServedCache(agent)

    def _cache(self, agent: str) -> AgentCache:
        cache = super()._cache(agent)
        if isinstance(cache, ServedCache) and cache.is_worth_keeping:
            cache = ResidentCache(agent)
            self._caches.replace(agent, cache)
        return cache

    def _schema_version(self, connection: Connection) -> int:
        return version_of(connection)

    def _damage(self, connection: Connection) -> tuple[Finding, ...]:  # noqa: ARG002 - The server checks its pages.
        return ()

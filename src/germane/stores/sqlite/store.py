"""The store that a path opens: memories in one SQLite file, shared by threads and processes.

Level: stores (imports retrieval and what is above it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from germane.forking import gated
from germane.model.stats import EmbeddingIdentity, Finding
from germane.stores.relational.settings import settle
from germane.stores.relational.store import RelationalStore
from germane.stores.sqlite.connections import Durability
from germane.stores.sqlite.erasing import ErasingConnections, finish_erasure, settle_log
from germane.stores.sqlite.failures import translated
from germane.stores.sqlite.schema import prepare, version_of

if TYPE_CHECKING:
    from germane.stores.relational.connection import Connection
    from germane.stores.sqlite.connection import SqliteConnection

__all__ = ["SqliteStore"]


@gated
class SqliteStore(RelationalStore):
    """A `Store` in one file, `Checkable`, `Multilingual`, `Learning`, `Holding`, `Sharing` and `Conversing`.

    Threads and processes may share it.

    `path` names the file, which is created when it is missing, or is ":memory:". `embedding` names
    the model whose vectors are stored; without it none can be. `durability="full"` keeps what was
    acknowledged through a loss of power, "relaxed" through a crash of the process only. `timeout`
    is how many seconds to wait for other writers before StoreBusy. `replace_embedding` allows the
    vectors of another model to be removed on opening; all memories then wait for new ones.

    Raises StoreUnavailable, SchemaTooNew, EmbedderMismatch or StoreBusy.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        embedding: EmbeddingIdentity | None = None,
        durability: Durability = "full",
        timeout: float = 30.0,
        read_only: bool = False,
        replace_embedding: bool = False,
    ) -> None:
        self._file = ErasingConnections(path, durability=durability, timeout=timeout, read_only=read_only)
        super().__init__(self._file, embedding=embedding)
        try:
            with translated(self._connections.location):
                prepare(self._file)
                settle(self._file, embedding=embedding, replace_embedding=replace_embedding)
            finish_erasure(self._file)
        except BaseException:
            self._connections.close()
            raise

    def as_of(self, agent: str, point: Mapping[str, int]) -> SqliteStore:
        """A copy in memory of the agent's memories as they were at a point, as far as the store tells."""
        copy = SqliteStore(":memory:", embedding=self._embedding)
        with copy.filling() as target:
            self._fill_past(target, agent, point)
        return copy

    def checkpoint(self) -> None:
        """Move what is in the write-ahead log into the file, and cut the log to no bytes.

        Also finishes what a purge had to leave undone. Nothing needs this in everyday use. Raises
        StoreBusy while a reader holds on to the log.
        """
        settle_log(self._file)

    @contextmanager
    def filling(self) -> Iterator[SqliteConnection]:
        """A write transaction that copies rows into the file as they are."""
        with self._file.writing() as connection:
            yield connection

    def _schema_version(self, connection: Connection) -> int:
        return version_of(cast("SqliteConnection", connection))

    def _damage(self, connection: Connection) -> tuple[Finding, ...]:
        from germane.stores.sqlite.checking import check_file  # noqa: PLC0415 - Only for a check.

        return check_file(cast("SqliteConnection", connection))

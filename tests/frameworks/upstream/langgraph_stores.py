"""A pytest plugin for LangGraph's own tests of its stores: puts germane's store in the place of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.store.memory
import langgraph.store.sqlite
import langgraph.store.sqlite.aio
import pytest

import germane
from germane.frameworks import LangGraphStore


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "flaky: repeated by a plugin that isn't needed here")


class _InMemory(LangGraphStore):
    def __init__(self, *, index: Any = None) -> None:
        super().__init__(germane.open(":memory:", agent="tests"), fields=(index or {}).get("fields") or ["$"])


class _Sqlite(LangGraphStore):
    """With the methods of theirs that set up a database and delete what has expired."""

    engine: germane.Engine

    def setup(self) -> Any:
        return None

    def sweep_ttl(self) -> Any:
        before = self.engine.stats().memories
        self.engine.maintain()
        return before - self.engine.stats().memories

    def start_ttl_sweeper(self) -> Any:
        return None

    def stop_ttl_sweeper(self) -> Any:
        return True


class _AsyncSqlite(_Sqlite):
    async def setup(self) -> Any:
        return None

    async def sweep_ttl(self) -> Any:
        return await asyncio.to_thread(super().sweep_ttl)

    async def start_ttl_sweeper(self) -> Any:
        return asyncio.ensure_future(asyncio.sleep(0))

    async def stop_ttl_sweeper(self) -> Any:
        return True


@contextmanager
def _opened(
    location: str, *, index: Any = None, ttl: Any = None, of: type[_Sqlite] = _Sqlite
) -> Iterator[_Sqlite]:
    with germane.open(location, agent="tests") as engine:
        store = of(engine, fields=(index or {}).get("fields") or ["$"], ttl=ttl)
        store.engine = engine
        yield store


@asynccontextmanager
async def _opened_async(location: str, **options: Any) -> AsyncIterator[_Sqlite]:
    with _opened(location, of=_AsyncSqlite, **options) as store:
        yield store


setattr(langgraph.store.memory, "InMemoryStore", _InMemory)  # noqa: B010 - A type checker refuses to assign one.
setattr(langgraph.store.sqlite.SqliteStore, "from_conn_string", _opened)  # noqa: B010 - As above.
setattr(langgraph.store.sqlite.aio.AsyncSqliteStore, "from_conn_string", _opened_async)  # noqa: B010 - As above.

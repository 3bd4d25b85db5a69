"""The server goes down again and again while many write and read: nothing is lost, nothing is doubled."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from threading import Event, Thread
from typing import Self

import pytest

import germane
from germane import Engine, Filter
from germane.stores import PostgresStore
from support.postgres_server import Server

pytestmark = pytest.mark.long

_AGENTS, _WRITERS, _READERS = 4, 8, 4


def _opened(url: str, agent: str) -> Engine:
    return germane.open(PostgresStore(url, timeout=30), agent=agent, embedder=None, counter="estimate")


class Crowd:
    """Threads that write and read, each with a store of its own, until they are stopped."""

    def __init__(self, url: str) -> None:
        self.acknowledged: list[str] = []
        self.failed: list[BaseException] = []
        self.reads = 0
        self._url = url
        self._enough = Event()
        self._threads = [
            Thread(target=self._until_enough, args=(self._write, name)) for name in range(_WRITERS)
        ]
        self._threads += [
            Thread(target=self._until_enough, args=(self._read, name)) for name in range(_READERS)
        ]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for each in self._threads:
            each.join()

    def _until_enough(self, act: Callable[[Engine, int, int], None], name: int) -> None:
        # Two writers share an agent, and wait for each other.
        with _opened(self._url, f"agent-{name % _AGENTS}") as engine:
            for number in count():
                if self._enough.is_set():
                    return
                try:
                    act(engine, name, number)
                except BaseException as error:
                    self.failed.append(error)
                    raise

    def _write(self, engine: Engine, name: int, number: int) -> None:
        text = f"writer {name} said {number}"
        engine.remember(text, tags=[f"w{name}"])
        self.acknowledged.append(text)

    def _read(self, engine: Engine, name: int, number: int) -> None:
        self.reads += len(engine.recall(f"what did writer {name} say at {number}", limit=5))


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT])
def test_what_was_acknowledged_is_there_once(
    postgres_server: Server, postgres_store_database: str, how: signal.Signals
) -> None:
    with Crowd(postgres_store_database) as crowd:
        for _ in range(3):
            time.sleep(0.7)
            postgres_server.restart(how)
        time.sleep(0.7)
    assert crowd.failed == []
    assert crowd.reads
    store = PostgresStore(postgres_store_database)
    stored: Counter[str] = Counter()
    for agent in (f"agent-{number}" for number in range(_AGENTS)):
        assert store.maintenance.check(agent) == ()
        for memory in store.find(agent, Filter()):
            stored[memory.content] += memory.seen_count
    store.close()
    assert stored == Counter(crowd.acknowledged)

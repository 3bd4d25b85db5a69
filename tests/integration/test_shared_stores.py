"""Many engines of one address in a process share connections, threads and caches, and let go of them."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

import germane
from germane import InvalidInput, StoreUnavailable, aio
from germane.testing.fakes import HashEmbedder

ENGINES = 300
MOST_THREADS = 12

on_linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Open files are counted in /proc.")


class SlowEmbedder(HashEmbedder):
    """Embeds in the background, and takes its time."""

    eager = False

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        time.sleep(0.001)
        return super().embed(texts)


def open_files(path: Path) -> int:
    """How many descriptors of this process are of a file, its log, or the index of the log."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            found += str(each.readlink()).startswith(str(path))
        except FileNotFoundError:
            continue
    return found


def eventually(is_so: Callable[[], bool]) -> bool:
    """Whether it is so within half a minute."""
    deadline = time.monotonic() + 30
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_so()


@on_linux
def test_engines_of_a_file_share_its_connections(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    engines = [germane.open(path, agent=f"agent {number}") for number in range(3)]
    for each in engines:
        each.remember("A note.")
    few = open_files(path)
    engines += [germane.open(path, agent=f"agent {number}") for number in range(3, ENGINES)]
    with germane.connect(path) as store:
        engines += [store.agent(f"agent {number}").for_user("alice") for number in range(ENGINES)]
        for number, each in enumerate(engines):
            if number % 10 == 0:
                each.remember(f"Note {number}.")
                assert each.recall("note")
        assert open_files(path) == few
        assert store.stats().connections <= few
    random.Random(1).shuffle(engines)  # noqa: S311 - It only varies the order.
    for each in engines:
        each.close()
        each.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            each.count()
    assert open_files(path) == 0


def test_engines_of_a_server_share_a_pool_and_a_thread(postgres_store: str) -> None:
    before = threading.active_count()
    with germane.connect(postgres_store, embedder=SlowEmbedder(dimension=8), pool_size=4) as store:
        engines = [
            store.agent(f"agent {number % 20}").for_user(f"user {number}") for number in range(ENGINES)
        ]
        workers = [
            threading.Thread(target=lambda part=part: [each.remember("A note.") for each in engines[part::6]])
            for part in range(6)
        ]
        most = [0, 0]
        with psycopg.connect(postgres_store, autocommit=True) as looks:
            for each in workers:
                each.start()
            while any(each.is_alive() for each in workers):
                [(backends,)] = looks.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
                ).fetchall()
                most = [
                    max(most[0], backends),
                    max(most[1], threading.active_count() - before - len(workers)),
                ]
        assert 0 < most[0] <= 4
        assert most[1] <= MOST_THREADS
        assert store.stats().most_connections == 4
        assert eventually(lambda: not any(each.stats().pending for each in engines[::30]))
    assert eventually(lambda: threading.active_count() <= before), threading.enumerate()


@on_linux
def test_a_store_that_nobody_closed_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    engine = germane.open(path)
    engine.remember("A note.")
    store = germane.connect(path)
    user = store.agent().for_user("alice")
    user.remember("Another note.")
    assert open_files(path)
    del engine, store
    gc.collect()
    # The engine of a user is enough to keep it open.
    assert user.recall("note")
    del user
    gc.collect()
    germane.open(tmp_path / "other.db").close()
    gc.collect()
    assert open_files(path) == 0


def test_a_closed_handle_ends_its_engines_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.connect(path) as first, germane.connect(path) as second:
        engine, other = first.agent("ada"), second.agent("ada")
        alice = engine.for_user("alice")
        engine.remember("A note.")
        first.close()
        first.close()
        for each in (engine, alice):
            with pytest.raises(StoreUnavailable, match="Open it again"):
                each.remember("Refused")
        with pytest.raises(StoreUnavailable, match="closed"):
            first.users()
        assert other.count() == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows doesn't let an open file be replaced.")
def test_a_file_that_was_replaced_is_opened_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "agent.db", tmp_path / "other.db"
    with germane.open(other, agent="ada") as engine:
        engine.remember("The new file.")
    with germane.connect(path) as before:
        old = before.agent("ada")
        old.remember("The old file.")
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        other.rename(path)
        with germane.connect(path) as after:
            assert [each.content for each in after.agent("ada").memories()] == ["The new file."]
            with pytest.raises(StoreUnavailable, match=r"Another file stands at|deleted"):
                old.remember("Lost")


def test_another_size_of_an_open_store_is_refused(postgres_store: str) -> None:
    with germane.connect(postgres_store, pool_size=3, cache_bytes=5_000_000) as store:
        with pytest.raises(InvalidInput, match=r"pool_size=7 .* open with 3"):
            germane.connect(postgres_store, pool_size=7)
        with pytest.raises(InvalidInput, match=r"cache_bytes=7 .* open with 5000000"):
            germane.connect(postgres_store, cache_bytes=7)
        with germane.connect(postgres_store) as same:
            assert same.stats() == store.stats()
    with germane.connect(postgres_store, pool_size=7, cache_bytes=7) as store:
        assert store.stats().caches.most_bytes == 7
    for size in (0, -1):
        with pytest.raises(InvalidInput, match="pool_size"):
            germane.connect(postgres_store, pool_size=size)
    with pytest.raises(InvalidInput, match="cache_bytes"):
        germane.connect(postgres_store, cache_bytes=-1)


def test_figures_of_a_store(tmp_path: Path) -> None:
    with germane.connect(tmp_path / "agent.db") as store:
        assert store.stats().caches.entries == 0
        engines = [store.agent(f"agent {number}") for number in range(5)]
        for engine in engines:
            engine.remember("A note.")
            engine.recall("note")
        first = store.stats().caches
        engines[0].recall("note")
        usage = store.stats()
        assert first.entries == 5
        assert (usage.caches.misses, usage.caches.hits > first.hits) == (first.misses, True)
        assert 0 < usage.caches.bytes <= usage.caches.most_bytes
        assert usage.location == str(tmp_path / "agent.db")
        assert [each.name for each in store.agents()] == [f"agent {number}" for number in range(5)]


def test_caches_stay_within_their_limit(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    texts = [f"Note {number} is about topic {number % 17} and word{number}." for number in range(200)]
    with germane.connect(path) as store:
        for number in range(12):
            store.agent(f"agent {number}").remember_many(texts)
            # Used often, so that all that a search needs of it is cached.
            for turn in range(12):
                store.agent(f"agent {number}").recall(f"topic {turn}")
        every = store.stats().caches.bytes
    answers: dict[tuple[int, int], list[str]] = {}
    for limit in (None, every // 3, every // 100):
        with germane.connect(path, cache_bytes=limit) as store:
            engines = [store.agent(f"agent {number}") for number in range(12)]
            for turn in range(3):
                for number, each in enumerate(engines):
                    found = [one.memory.content for one in each.recall(f"topic {turn} of word{number}")]
                    assert answers.setdefault((turn, number), found) == found
                    usage = store.stats().caches
                    assert usage.bytes <= usage.most_bytes
            usage = store.stats().caches
            # A third of it has space for all, without what is quickly read again; a hundredth hasn't.
            assert (usage.entries == 12, usage.misses == 12) == (limit != every // 100,) * 2


def test_a_fork_goes_on_with_a_handle(tmp_path: Path) -> None:
    program = """
import os, sys
import germane

store = germane.connect(sys.argv[1])
newton = store.agent("newton")
newton.remember("The parent wrote this.")
alice = newton.for_user("alice")
alice.remember("Alice likes tea.")
children = []
for number in range(4):
    child = os.fork()
    if not child:
        code = 1
        try:
            mine = store.agent("newton").for_user(f"child {number}")
            mine.remember(f"Child {number} wrote this.")
            alice.remember(f"Child {number} knows Alice.")
            code = 0 if mine.count() == 2 and len(mine.recall("wrote this")) == 2 else 2
        finally:
            os._exit(code)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(codes, alice.count(), len(store.users()))
"""
    if not hasattr(os, "fork"):
        pytest.skip("This system has no fork.")
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "agent.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout.strip(), ran.returncode) == ("[0, 0, 0, 0] 6 5", 0), ran.stderr


def test_a_handle_of_asyncio_is_awaited_or_entered(tmp_path: Path) -> None:
    async def served() -> list[str]:
        async with aio.connect(tmp_path / "agent.db") as store:
            newton = store.agent("newton")
            await newton.remember("The office opens at nine.")
            users = [newton.for_user(f"user {number}") for number in range(20)]
            await asyncio.gather(*(each.remember("I am late.") for each in users))
            found = await asyncio.gather(*(each.recall("office") for each in users))
            assert all(each[0].memory.user is None for each in found)
            assert len(await store.users()) == 20
            assert (await store.purge_user("user 3", confirm=True)).was_there
            assert (await store.stats()).caches.entries >= 0
        again = await aio.connect(tmp_path / "agent.db")
        try:
            return sorted(await again.users())
        finally:
            await again.close()

    assert asyncio.run(served()) == sorted(f"user {number}" for number in range(20) if number != 3)


def test_too_many_open_files_are_named_with_the_limit(tmp_path: Path) -> None:
    program = """
import resource, sys
import germane

germane.open(sys.argv[1] + "/first.db").close()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = []
try:
    while True:
        files.append(open("/dev/null"))
except OSError:
    pass
for name in ("first.db", "second.db"):
    try:
        germane.open(sys.argv[1] + "/" + name)
    except germane.StoreUnavailable as error:
        print(error)
files.clear()
germane.open(sys.argv[1] + "/second.db").close()
try:
    germane.open(sys.argv[1] + "/no folder/third.db")
except germane.StoreUnavailable as error:
    print(error)
"""
    pytest.importorskip("resource")
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    first, second, third = ran.stdout.splitlines()
    for line in (first, second):
        assert "too many files open; its limit is 64" in line
        assert "ulimit -n" in line
    assert "too many files" not in third

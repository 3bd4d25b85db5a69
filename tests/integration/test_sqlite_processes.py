"""Several processes on one file: nothing is lost, nothing is half written, each sees what others wrote."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from germane import Filter, Status
from germane.stores import Insert, Purge, SetStatus, SqliteStore
from germane.testing.contract import EMBEDDING
from germane.testing.fakes import START, make_memories, make_memory
from support.stores import query_of

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("store_child.py")
AGENT = "tester"
EVERY = Filter(statuses=tuple(Status))


def start(task: str, path: Path, argument: str, output: Path | None = None) -> subprocess.Popen[str]:
    with output.open("wb") if output else nullcontext(subprocess.PIPE) as stdout:
        return subprocess.Popen(
            [sys.executable, str(CHILD), task, str(path), argument],
            stdin=subprocess.PIPE,
            stdout=stdout,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )


@pytest.mark.timeout(300)
def test_killing_a_writer_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    chance = random.Random(11)  # noqa: S311 - a test has to repeat.
    acknowledged: set[str] = set()
    for number in range(20):
        output = tmp_path / f"{number}.txt"
        child = start("write", path, str(number), output)
        while not output.stat().st_size:
            assert child.poll() is None
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, 0.15))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        # The last line may have been cut; only whole ones were acknowledged.
        lines = output.read_text(encoding="utf-8").splitlines(keepends=True)
        acknowledged.update(line.strip() for line in lines if line.endswith("\n"))
        store = SqliteStore(path, embedding=EMBEDDING)
        assert store.maintenance.check(AGENT) == ()
        assert None not in store.get(AGENT, sorted(acknowledged))
        store.close()
    store = SqliteStore(path, embedding=EMBEDDING)
    stored = store.find(AGENT, EVERY)
    # Batches are whole: of each, all five first versions but for the purged one.
    by_batch: dict[str, int] = {}
    for memory in stored:
        batch = memory.content.partition(" item")[0].removesuffix(" revised")
        by_batch[batch] = by_batch.get(batch, 0) + (memory.version == 1)
    assert set(by_batch.values()) <= {4, 5}
    assert len(acknowledged) >= 20
    store.close()


@pytest.mark.timeout(300)
def test_eight_writers_and_four_readers_get_along() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "contention.py"), "3", "--json"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    report = json.loads(done.stdout)
    assert report["errors"] == []
    assert report["findings"] == 0
    assert report["acknowledged"] > 0
    assert (report["lost"], report["doubled"], report["unknown"]) == (0, 0, 0)
    assert len(report["workers"]) == 12
    assert all(each["calls"] > 0 for each in report["workers"])


def test_several_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    children = [start("first", path, str(number)) for number in range(6)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate()
        assert child.returncode == 0
    store = SqliteStore(path)
    assert len(store.find(AGENT, Filter())) == 6
    assert store.maintenance.check(AGENT) == ()
    store.close()


def test_an_open_store_sees_what_another_process_wrote(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    store = SqliteStore(path)
    query = query_of("from process")
    store.apply(AGENT, [Insert(memory=make_memory("From here process"))])
    assert len(store.search(AGENT, query).slices[0]) == 1
    child = start("first", path, "1")
    child.communicate("go\n")
    assert len(store.search(AGENT, query).slices[0]) == 2
    store.close()


def test_an_open_store_notices_purges_and_new_states(tmp_path: Path) -> None:
    memories = make_memories(40)
    one, other = SqliteStore(tmp_path / "agent.db"), SqliteStore(tmp_path / "agent.db")
    one.apply(AGENT, [Insert(memory=each) for each in memories])
    query = query_of(memories[3].content)
    assert one.search(AGENT, query) == other.search(AGENT, query)
    other.apply(AGENT, [Purge(memory_id=memories[3].id, at=START)])
    other.apply(AGENT, [SetStatus(memory_id=memories[4].id, status=Status.FORGOTTEN, at=START)])
    found = one.search(AGENT, query)
    assert found == other.search(AGENT, query)
    assert (found.stored, found.admitted) == (39, 38)
    one.close()
    other.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_opens_anew(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "agent.db")
    store.apply(AGENT, [Insert(memory=make_memory("parent"))])
    child = os.fork()
    if not child:
        store.apply(AGENT, [Insert(memory=make_memory("child"))])
        os._exit(0 if len(store.find(AGENT, Filter())) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.apply(AGENT, [Insert(memory=make_memory("parent again"))])
    assert len(store.find(AGENT, Filter())) == 3
    assert store.maintenance.check(AGENT) == ()
    store.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("driver", ["sqlite3", "pysqlite3"])
def test_a_purge_leaves_no_byte(tmp_path: Path, driver: str) -> None:
    if importlib.util.find_spec(driver) is None:
        pytest.skip("needs pysqlite3-binary, a SQLite that doesn't delete securely unless it is told to")
    child = start("purge", tmp_path / "agent.db", driver)
    out, _ = child.communicate()
    assert child.returncode == 0
    # The file holds all remaining texts, which shows that a trace would have been seen. Without the
    # rewrite after a purge, secure_delete alone leaves traces in several of these rounds.
    expected = []
    for present in range(20, 201, 20):
        expected += [
            f"agent.db keeps {present} and traces of []",
            "agent.db-wal keeps 0 and traces of []",
            "agent.db-shm keeps 0 and traces of []",
        ]
    assert out.splitlines() == expected

"""Forking while threads of the parent use a store: the child works at once, or is refused at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

import germane
from germane import Engine, GermaneError
from germane.testing.fakes import HashEmbedder

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="This system has no fork."),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.timeout(240),
]

FORKS = 25
SECONDS = 10.0
"""Far less than the 30 that a writer waits for its turn; on an idle machine it takes a tenth of a second."""
WORKED, REFUSED = 0, 3


@contextmanager
def writing(engine: Engine, threads: int = 3) -> Iterator[list[str]]:
    """Threads that write and read meanwhile; what they have stored."""
    stopped, stored = Event(), list[str]()

    def work(number: int) -> None:
        count = 0
        while not stopped.is_set():
            stored.append(engine.remember(f"Thread {number} has written note {count}.").id)
            engine.recall("written note")
            count += 1
            stopped.wait(0.005)

    workers = [Thread(target=work, args=(number,)) for number in range(threads)]
    for each in workers:
        each.start()
    try:
        yield stored
    finally:
        stopped.set()
        for each in workers:
            each.join()


def forked(work: Callable[[], object]) -> int:
    """What becomes of this piece of work in a child: WORKED, REFUSED by an error of germane's, or worse."""
    child = os.fork()
    if not child:
        code = 1
        try:
            try:
                work()
                code = WORKED
            except GermaneError as error:
                code = REFUSED if "fork" in str(error) else 2
                if code != REFUSED:
                    traceback.print_exc()
            except BaseException:  # noqa: BLE001 - Whatever it is, the child ends here.
                traceback.print_exc()
        finally:
            os._exit(code)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -9


def quickly(work: Callable[[], object]) -> Callable[[], None]:
    def timed() -> None:
        began = time.monotonic()
        work()
        taken = time.monotonic() - began
        assert taken < SECONDS, f"{taken:.1f} s"

    return timed


def forks_while_writing(open_one: Callable[[], Engine]) -> None:
    with open_one() as engine:
        first = engine.remember("The first note was written before.")

        def inherited(number: int) -> None:
            engine.remember(f"A child has written number {number} by what it inherited.")
            assert engine.get(first.id) == first
            assert engine.recall("first note")
            working = engine.working_set(f"of {number}")
            working.add(first)
            assert working.assemble().text

        def own(number: int) -> None:
            with open_one() as mine:
                mine.remember(f"A child has written number {number} by its own engine.")
                assert mine.get(first.id) == first
                assert mine.recall("first note")

        outcomes: dict[str, list[int]] = {"inherited": [], "own": []}
        with writing(engine) as stored:
            for number in range(FORKS):
                for name, work in (("inherited", inherited), ("own", own)):
                    outcomes[name].append(forked(quickly(lambda work=work, number=number: work(number))))  # type: ignore[misc] # Bound now.
        assert outcomes == {"inherited": [WORKED] * FORKS, "own": [WORKED] * FORKS}
        assert len(stored) > FORKS
        found = {memory.id for memory in engine.memories()}
        assert {*stored, first.id} <= found
        assert len(found) == len(stored) + 1 + 2 * FORKS
        assert engine.doctor() == ()


def test_a_child_uses_a_file_that_threads_of_its_parent_write_to(tmp_path: Path) -> None:
    forks_while_writing(lambda: germane.open(tmp_path / "agent.db", agent="a", embedder=None))


def test_a_child_uses_a_server_that_threads_of_its_parent_write_to(postgres_store_database: str) -> None:
    forks_while_writing(lambda: germane.open(postgres_store_database, agent="a", embedder=None))


def test_a_child_has_a_copy_of_what_is_in_memory() -> None:
    with germane.open(":memory:", agent="a", embedder=None) as engine, writing(engine):
        for _ in range(5):
            assert forked(quickly(lambda: engine.remember("A child's own."))) == WORKED
    # Nothing of the children's is here.


def test_a_child_goes_on_where_its_parent_embeds_in_the_background(tmp_path: Path) -> None:
    def opened() -> Engine:
        return germane.open(tmp_path / "agent.db", agent="a", embedder=HashEmbedder())

    with opened() as engine, writing(engine, threads=2):
        for number in range(5):
            assert forked(quickly(lambda number=number: engine.remember(f"Of child {number}."))) == WORKED  # type: ignore[misc] # Bound now.
            assert forked(quickly(engine.embed_pending)) == WORKED


def test_a_fork_in_the_middle_of_a_call_is_refused_in_the_child(tmp_path: Path) -> None:
    """A thread that forks inside a call can't wait for it to end."""
    path = tmp_path / "agent.db"
    outcomes = []

    with germane.open(path, agent="a", embedder=None) as engine:
        engine.remember("Before.")
        store = engine._session.store
        assert isinstance(store, germane.Store)

        def own() -> None:
            with germane.open(path, agent="a", embedder=None) as mine:
                mine.remember("Of a child.")

        def inside(_: object) -> None:
            outcomes.append(forked(quickly(lambda: engine.remember("Of a child."))))
            outcomes.append(forked(quickly(own)))

        store.doing(inside)  # type: ignore[attr-defined] # Every store in tables has it.
        engine.remember("After.")
        assert [memory.content for memory in engine.memories()] == ["After.", "Before."]
    assert outcomes == [REFUSED, REFUSED]


def test_a_fork_waits_for_what_another_thread_imports(tmp_path: Path) -> None:
    module = tmp_path / "slow_to_import.py"
    module.write_text("import time\ntime.sleep(0.3)\nvalue = 1\n", encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    try:
        with germane.open(":memory:", embedder=None):
            importing = threading.Thread(target=lambda: __import__("slow_to_import"))
            importing.start()
            time.sleep(0.05)
            assert forked(quickly(lambda: __import__("slow_to_import"))) == WORKED
            importing.join()
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("slow_to_import", None)


FIRST = """
import os, threading, time
import germane
with germane.open(":memory:", embedder=None):
    import logging
    importing = threading.Thread(target=__import__, args=("slow_to_import",))
    importing.start()
    time.sleep(0.05)
    began = time.monotonic()
    child = os.fork()
    if not child:
        __import__("slow_to_import")
        os._exit(0)
    waited = time.monotonic() - began
    assert waited < 4, waited
    assert os.waitpid(child, 0)[1] == 0
    importing.join()
"""


def test_a_fork_waits_for_a_module_that_takes_the_lock_of_logging(tmp_path: Path) -> None:
    """A fork takes that lock as well; it has to do so after it has waited, or nothing goes on."""
    module = tmp_path / "slow_to_import.py"
    module.write_text("import logging, time\ntime.sleep(0.3)\nlogging.getLogger('slow')\n", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FIRST],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")

"""Two revisions of one head: one stands, the other raises, and there never are two heads."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import germane
from germane import Filter, NotFound, StaleRevision, Status
from germane.testing.fakes import make_id, make_memory

_CHILD = """
import sys
import germane
path, memory_id, text = sys.argv[1:]
with germane.open(path, embedder=None) as engine:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print("stored", engine.revise(memory_id, text, expected=1).version_id)
    except germane.StaleRevision as error:
        print("stale", error.head_id)
"""


def test_of_two_threads_one_is_refused_with_the_head(tmp_path: Path) -> None:
    with germane.open(tmp_path / "a.db", embedder=None) as engine:
        for round_ in range(10):
            first = engine.remember(f"decision {round_}", kind="adr")
            barrier = Barrier(2)

            def revise(text: str, first: str = first.id, barrier: Barrier = barrier) -> str:
                barrier.wait()
                try:
                    return engine.revise(first, text, expected=1).version_id
                except StaleRevision as error:
                    return f"stale {error.head_id}"

            with ThreadPoolExecutor(2) as pool:
                results = list(pool.map(revise, (f"{round_} one way", f"{round_} the other")))
            (stored,) = [each for each in results if not each.startswith("stale")]
            assert f"stale {stored}" in results
            assert [memory.version_id for memory in engine.history(first.id)] == [first.version_id, stored]
        assert len(engine.memories()) == 10
        assert engine.doctor() == ()


def test_of_two_processes_one_is_refused_with_the_head(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with germane.open(path, embedder=None) as engine:
        first = engine.remember("decision", kind="adr")
        children = [
            subprocess.Popen(
                [sys.executable, "-c", _CHILD, str(path), first.id, text],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for text in ("one way", "the other")
        ]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        results = sorted(child.communicate("\n", timeout=60)[0].split()[0] for child in children)
        assert results == ["stale", "stored"]
        heads = engine.memories(Filter(statuses=(Status.ACTIVE,)))
        assert len(heads) == 1
        assert engine.history(first.id)[-1] == heads[0]
        assert "- " in engine.assemble(plan="scoped").text


def test_memories_that_replace_each_other_are_an_error_and_no_endless_loop() -> None:
    one, two = make_id("one"), make_id("two")
    circle = [
        make_memory("one", id=one, superseded_by=two, status=Status.SUPERSEDED),
        make_memory("two", id=two, superseded_by=one, status=Status.SUPERSEDED),
    ]
    with germane.open(":memory:", embedder=None) as engine:
        engine.import_memories(circle)
        for memory_id in (one, two):
            assert len(engine.history(memory_id)) == 1
            with pytest.raises(NotFound):
                engine.forget(memory_id)

"""Slow embedders hold up no write, lose nothing at a crash, and are never retried in secret."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import germane
from germane import EmbedderMismatch, EmbeddingFailed, InvalidInput, StoreUnavailable
from germane.embedders import CallableEmbedder, HttpEmbedder, OnnxEmbedder, StaticEmbedder
from germane.operations import embedding as embedding_module
from germane.operations.inputs import is_eager
from germane.stores import reembed
from germane.testing.fakes import HashEmbedder

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("embedding_child.py")


class Scripted(HashEmbedder):
    """Not eager. Waits while `gate` is closed, refuses what `refused` says, and counts the texts it saw."""

    eager = False

    def __init__(self, *, refused: Callable[[str], bool] = lambda _: False, name: str = "scripted") -> None:
        super().__init__(16, name=name)
        self.refused = refused
        self.gate = threading.Event()
        self.gate.set()
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.gate.wait(10)
        self.seen += texts
        if any(self.refused(text) for text in texts):
            raise RuntimeError("no such luck")
        return super().embed(texts)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_module, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(embedding_module, "_LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(embedding_module, "_LOOK_AGAIN", 0.02)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "It never came about."
        time.sleep(0.005)


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "germane-embedding"]


def child(task: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), task, str(path), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


def test_which_embedders_are_eager() -> None:
    assert is_eager(StaticEmbedder())
    assert is_eager(HashEmbedder())
    assert is_eager(CallableEmbedder(len, name="n", dimension=1))
    assert not is_eager(CallableEmbedder(len, name="n", dimension=1, eager=False))
    assert not is_eager(OnnxEmbedder())
    assert not is_eager(HttpEmbedder("http://localhost:1/v1", model="m", dimension=2))


def test_no_thread_without_a_slow_embedder(tmp_path: Path) -> None:
    with germane.open(tmp_path / "a.db", embedder=HashEmbedder()) as engine:
        engine.remember("The cache lives in Redis.")
        assert threads() == []
        assert (engine.stats().vectors, engine.stats().pending) == (1, 0)
    with germane.open(tmp_path / "b.db", embedder=Scripted()):
        assert len(threads()) == 1
    assert threads() == []
    with germane.open(tmp_path / "b.db", embedder=Scripted(), read_only=True):
        assert threads() == []


def test_a_write_does_not_wait_and_the_vector_follows(tmp_path: Path) -> None:
    embedder = Scripted()
    embedder.gate.clear()
    with germane.open(tmp_path / "agent.db", embedder=embedder) as engine:
        memory = engine.remember("The cache lives in Redis.")
        assert (engine.stats().vectors, engine.stats().pending) == (0, 1)
        embedder.gate.set()
        until(lambda: engine.stats().pending == 0)
        found = engine.recall("caching with redis")[0]
        assert found.memory.id == memory.id
        assert found.parts["semantic"] > 0
        assert engine.doctor() == ()


def test_until_then_words_find_it() -> None:
    embedder = Scripted(refused=lambda text: text.endswith("."))
    with germane.open(":memory:", embedder=embedder) as engine:
        memory = engine.remember("The cache lives in Redis.")
        assert engine.recall("redis")[0].id == memory.id
        assert engine.stats().pending == 1


def test_an_embedder_that_fails_is_tried_again_and_shown(tmp_path: Path) -> None:
    works = threading.Event()
    embedder = Scripted(refused=lambda _: not works.is_set())
    with germane.open(tmp_path / "agent.db", embedder=embedder) as engine:
        engine.remember_many(f"Memory number {number}" for number in range(100))
        until(lambda: any("no such luck" in finding.text for finding in engine.doctor()))
        (finding,) = engine.doctor()
        assert finding.code == "pending-vectors"
        assert finding.text.startswith("Without a vector of 'scripted': 100 memories; the last of ")
        assert "germane db embed" in finding.remedy
        works.set()
        until(lambda: engine.stats().pending == 0)
        until(lambda: engine.doctor() == ())
        assert engine.stats().vectors == 100


def test_a_text_that_is_refused_holds_up_no_other(tmp_path: Path) -> None:
    embedder = Scripted(refused=lambda text: "poison" in text)
    with germane.open(tmp_path / "agent.db", embedder=embedder) as engine:
        engine.remember_many(f"Memory number {number}" for number in range(40))
        engine.remember("A text of poison")
        engine.remember_many(f"Another number {number}" for number in range(40))
        until(lambda: engine.stats().pending == 1)
        until(lambda: any("no such luck" in finding.text for finding in engine.doctor()))
        tried = embedder.seen.count("A text of poison")
        until(lambda: embedder.seen.count("A text of poison") > tried)
        embedder.refused = lambda _: False
        until(lambda: engine.stats().pending == 0)


def test_the_newest_come_first() -> None:
    embedder = Scripted()
    embedder.gate.clear()
    with germane.open(":memory:", embedder=embedder) as engine:
        engine.remember("first")
        until(lambda: len(threads()) == 1)
        engine.remember_many(f"Memory number {number}" for number in range(200))
        embedder.gate.set()
        until(lambda: engine.stats().pending == 0)
    later = [text for text in embedder.seen if text != "first"]
    assert later[0] == "Memory number 199"
    assert sorted(later) == sorted(f"Memory number {number}" for number in range(200))


def test_what_has_no_meaning_to_the_model_is_embedded_once(tmp_path: Path) -> None:
    embedder = Scripted()
    for number, given in enumerate((embedder, HashEmbedder(16, name="scripted"))):
        with germane.open(tmp_path / "agent.db", embedder=given) as engine:
            engine.remember("?!" * (number + 1))
            until(lambda: engine.stats().pending == 0)
            assert engine.stats().vectors == 0
            assert engine.embed_pending() == 0
            assert engine.doctor() == ()
    assert len(embedder.seen) == 1


def test_forgotten_and_purged_memories_are_shown_to_no_model(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as engine:
        forgotten, purged, remaining = (
            engine.remember(text) for text in ("A forgotten secret", "A purged secret", "A kept one")
        )
        engine.forget(forgotten.id)
        engine.purge(purged.id, confirm=True)
        engine.revise(remaining.id, "A kept one, revised")
    embedder = Scripted()
    with germane.open(path, embedder=embedder) as engine:
        until(lambda: engine.stats().pending == 0)
        assert sorted(embedder.seen) == ["A kept one", "A kept one, revised"]
        engine.restore(forgotten.id)
        until(lambda: engine.stats().pending == 0)
        assert embedder.seen[-1] == "A forgotten secret"
        assert engine.stats().vectors == 3


def test_a_purge_while_the_vector_is_made(tmp_path: Path) -> None:
    embedder = Scripted()
    with germane.open(tmp_path / "agent.db", embedder=embedder) as engine:
        embedder.gate.clear()
        going, staying = (each.memory for each in engine.remember_many(["going soon", "staying here"]))
        time.sleep(0.05)  # So that the thread is inside the embedder, as a rule.
        engine.purge(going.id, confirm=True)
        embedder.gate.set()
        until(lambda: engine.stats().pending == 0)
        assert engine.stats().vectors == 1
        assert engine.get(staying.id).content == "staying here"
        assert engine.doctor() == ()


def test_in_the_foreground(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as engine:
        engine.remember_many(f"Memory number {number}" for number in range(2500))
        with pytest.raises(InvalidInput, match="no embedder"):
            engine.embed_pending()
    with germane.open(path, embedder=HashEmbedder()) as engine:
        assert [each.code for each in engine.doctor()] == ["pending-vectors"]
        steps: list[tuple[int, int]] = []
        assert (
            engine.embed_pending(limit=1200, progress=lambda done, total: steps.append((done, total))) == 1200
        )
        assert steps == [(1000, 1200), (1200, 1200)]
        assert engine.stats().pending == 1300
        newest = engine.memories(germane.Filter(embedded=True), limit=1)
        assert newest[0].content == "Memory number 2499"
        assert engine.embed_pending() == 1300
        assert engine.embed_pending() == 0
        assert engine.stats().vectors == 2500
        with pytest.raises(InvalidInput, match="limit"):
            engine.embed_pending(limit=-1)


def test_the_foreground_does_what_it_can_and_says_what_it_cannot(tmp_path: Path) -> None:
    embedder = Scripted(refused=lambda text: "poison" in text)
    with germane.open(tmp_path / "agent.db", embedder=None) as engine:
        engine.remember_many([*(f"Memory number {number}" for number in range(300)), "poison"])
    embedder.eager = True
    with germane.open(tmp_path / "agent.db", embedder=embedder) as engine:
        with pytest.raises(EmbeddingFailed, match=r"Embedded 300 memories; 1 memory left: .*no such luck"):
            engine.embed_pending()
        embedder.refused = lambda _: True
        with pytest.raises(EmbeddingFailed, match="Embedded 0 memories"):
            engine.embed_pending()


def test_a_crash_with_a_backlog_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    process = child("write", path)
    assert process.stdout is not None
    assert process.stdout.readline() == "stored\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with germane.open(path, embedder=Scripted(name="slow")) as engine:
        until(lambda: engine.stats().pending == 0)
        assert (engine.stats().memories, engine.stats().vectors) == (300, 300)
        assert engine.doctor() == ()


def test_several_processes_embed_one_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    processes = [child("embed", path, str(number)) for number in range(3)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with germane.open(path, embedder=Scripted(name="slow"), read_only=True) as engine:
        stats = engine.stats()
        assert (stats.memories, stats.vectors, stats.pending) == (60, 60, 0)
        assert engine.doctor() == ()


def test_a_process_may_end_without_closing(tmp_path: Path) -> None:
    process = child("leave_open", tmp_path / "agent.db")
    process.communicate(timeout=20)
    assert process.returncode == 0


def test_an_engine_that_nobody_closed_leaves_no_thread(tmp_path: Path) -> None:
    engine = germane.open(tmp_path / "agent.db", embedder=Scripted())
    engine._session.store.close()  # Its connections would warn of being left open.
    del engine
    until(lambda: threads() == [])


def test_another_model_replaces_the_vectors_of_all_agents(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    for agent in ("ada", "ben"):
        with germane.open(path, agent=agent, embedder=HashEmbedder(8)) as engine:
            engine.remember_many([f"{agent} {number}" for number in range(5)])
    with pytest.raises(EmbedderMismatch, match=r"germane\.stores\.reembed.*germane embedder use"):
        germane.open(path, agent="ada", embedder=HashEmbedder(16))
    refusing = Scripted(refused=lambda text: "ben" in text, name="hash-16")
    with pytest.raises(EmbeddingFailed):
        reembed(path, embedder=refusing)
    # What was done stays done, and the same call goes on with the rest.
    steps: list[tuple[int, int]] = []
    count = reembed(path, embedder=HashEmbedder(16), progress=lambda *done: steps.append(done))
    assert (count, steps) == (5, [(5, 5)])
    for agent in ("ada", "ben"):
        with germane.open(path, agent=agent, embedder=HashEmbedder(16)) as engine:
            assert (engine.stats().vectors, engine.stats().pending) == (5, 0)
            assert engine.recall(f"{agent} 3")[0].parts["semantic"] > 0
            assert engine.doctor() == ()
    assert reembed(path, embedder=HashEmbedder(16)) == 0
    assert reembed(path, embedder=HashEmbedder(16), again=True) == 10
    with pytest.raises(StoreUnavailable, match="nothing to embed"):
        reembed(tmp_path / "none.db", embedder=HashEmbedder(16))


def test_an_engine_with_the_model_of_before_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=HashEmbedder(16, name="old")) as engine:
        memory = engine.remember("The cache lives in Redis.")
        reembed(path, embedder=HashEmbedder(16, name="new"))
        with pytest.raises(EmbedderMismatch):
            engine.recall("where is the cache?")
        with pytest.raises(EmbedderMismatch):
            engine.remember("Something else.")
        assert engine.get(memory.id).content == "The cache lives in Redis."

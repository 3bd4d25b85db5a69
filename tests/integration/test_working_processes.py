"""Working sets outlive a kill, are the same for all processes, and tell each what the others did."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from queue import Queue

import pytest

import germane
from germane import Engine
from germane.working_sets import WorkingSetEvent

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("working_child.py")


def start(task: str, path: Path, argument: str = "", output: Path | None = None) -> subprocess.Popen[str]:
    with output.open("wb") if output else nullcontext(subprocess.PIPE) as stdout:
        return subprocess.Popen(
            [sys.executable, str(CHILD), task, str(path), argument],
            stdin=subprocess.PIPE,
            stdout=stdout,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )


def say(child: subprocess.Popen[str], text: str) -> None:
    assert child.stdin is not None
    child.stdin.write(text + "\n")
    child.stdin.flush()


def hear(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def opened(path: Path) -> Engine:
    return germane.open(path, embedder=None, counter="estimate")


@pytest.mark.timeout(120)
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    chance = random.Random(5)  # noqa: S311 - a test has to repeat.
    expected: dict[str, str] = {}
    for number in range(4):
        output = tmp_path / f"{number}.txt"
        child = start("hold", path, str(number), output)
        while output.stat().st_size < 400:
            assert child.poll() is None
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, 0.1))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        # The last line may have been cut; only whole ones were acknowledged.
        lines = output.read_text(encoding="utf-8").splitlines(keepends=True)
        for line in lines:
            if line.endswith("\n"):
                sign, memory_id = line.split()
                expected[memory_id] = sign
        with opened(path) as engine:
            working = {one.memory.id for one in engine.working_set()}
            assert {each for each, sign in expected.items() if sign == "+"} - working == _unsaid(
                engine, expected
            )
            assert {each for each, sign in expected.items() if sign == "-"} & working == set()
            assert engine.doctor() == ()


def _unsaid(engine: Engine, expected: dict[str, str]) -> set[str]:
    """At most one removal of each process was done and not acknowledged: the log tells of it."""
    removed = {move.memory_id for move in engine.working_set().changes() if move.kind.value == "remove"}
    return {each for each, sign in expected.items() if sign == "+" and each in removed}


@pytest.mark.timeout(120)
def test_processes_that_work_at_once_end_with_the_same_set(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path) as engine:
        engine.remember_many([f"Note number {n} " + "and more " * (n % 7) for n in range(40)])
        engine.working_set(max_tokens=120)
        children = [start("work", path, str(seed)) for seed in range(4)]
        for child in children:
            say(child, "go")
        assert [hear(child) for child in children] == ["done"] * 4
        for child in children:
            say(child, "tell")
        lines = [hear(child) for child in children]
        working = engine.working_set()
        assert set(lines) == {" ".join(f"{one.memory.id}:{one.order}" for one in working)}
        assert working.tokens <= 120
        moves = working.changes()
        assert [move.number for move in moves] == list(range(1, len(moves) + 1))
        here: set[str | None] = set()
        for move in moves[1:]:
            if move.kind.value in {"add", "touch"}:
                assert (move.memory_id in here) == (move.kind.value == "touch"), move
                here.add(move.memory_id)
            else:
                here.remove(move.memory_id)
        assert here == {one.memory.id for one in working}
    for child in children:
        child.communicate()
        assert child.returncode == 0


def test_a_follower_hears_of_what_another_process_does(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(path) as engine:
        memories = [engine.remember(f"Note number {n}") for n in range(10)]
        working = engine.working_set()
        heard: Queue[WorkingSetEvent] = Queue()
        child = start("echo", path)
        assert hear(child) == "ready"
        with working.follow(heard.put):
            for memory in memories:
                say(child, memory.id)
                move = heard.get(timeout=30)
                assert (move.kind.value, move.memory_id) == ("add", memory.id)
                assert memory in working
        child.communicate()

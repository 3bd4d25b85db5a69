"""What tests of working sets run in processes of their own: python working_child.py TASK PATH ARGUMENT."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

import germane
from germane.errors import NotInWorkingSet


def hold(path: Path, seed: str) -> None:
    """Remember and hold until killed; say which ids were acknowledged as added, and which as removed."""
    chance = Random(seed)  # noqa: S311 - a test has to repeat.
    with germane.open(path, embedder=None, counter="estimate") as engine:
        working = engine.working_set(max_tokens=100_000)
        mine: list[str] = []
        for number in count():
            memory = engine.remember(f"Note {number} of process {seed}")
            working.add(memory)
            mine.append(memory.id)
            print("+", memory.id, flush=True)  # noqa: T201 - how it acknowledges.
            if chance.random() < 0.3:
                going = mine.pop(chance.randrange(len(mine)))
                working.remove(going)
                print("-", going, flush=True)  # noqa: T201 - as above.


def work(path: Path, seed: str) -> None:
    """Do 250 operations of every sort on a small set that others change too; then print what it holds."""
    chance = Random(seed)  # noqa: S311 - a test has to repeat.
    with germane.open(path, embedder=None, counter="estimate") as engine:
        working = engine.working_set()
        memories = [each.id for each in engine.memories()]
        sys.stdin.readline()
        for _ in range(250):
            memory_id = chance.choice(memories)
            # Another process may have taken it out.
            with suppress(NotInWorkingSet):
                action: Callable[[str], object] = chance.choice(
                    (working.add, working.add, working.touch, working.remove)
                )
                action(memory_id)
            assert working.tokens <= working.max_tokens, working.tokens
        print("done", flush=True)  # noqa: T201 - how it says so.
        sys.stdin.readline()
        print(*(f"{one.memory.id}:{one.order}" for one in working), flush=True)  # noqa: T201 - as above.


def echo(path: Path, _: str) -> None:
    """Add every memory whose id is read, and confirm it."""
    with germane.open(path, embedder=None, counter="estimate") as engine:
        working = engine.working_set()
        print("ready", flush=True)  # noqa: T201 - how it says so.
        for line in sys.stdin:
            working.add(line.strip())


if __name__ == "__main__":
    {"hold": hold, "work": work, "echo": echo}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])

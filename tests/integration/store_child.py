"""What the tests run in processes of their own: python store_child.py TASK PATH [ARGUMENT]."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from germane import Memory


def write(path: Path, part: str) -> None:
    """Write until killed, and say which ids were acknowledged."""
    from germane.stores import Insert, Purge, Revise, SqliteStore  # noqa: PLC0415 - a task imports what it needs.
    from germane.testing.contract import EMBEDDING  # noqa: PLC0415 - as above.
    from germane.testing.fakes import START, make_memory, make_revision, make_vector  # noqa: PLC0415 - as above.

    store = SqliteStore(path, embedding=EMBEDDING)
    number = 0
    while True:
        number += 1
        batch = [make_memory(f"Part {part} batch {number} item {item}", tags=("a:b",)) for item in range(5)]
        store.apply("tester", [Insert(memory=each, vector=make_vector(number)) for each in batch])
        head = make_revision(batch[0], f"Part {part} batch {number} revised")
        store.apply("tester", [Revise(memory=head)])
        if number % 10 == 0:
            store.apply("tester", [Purge(memory_id=batch[4].id, at=START)])
            batch.pop()
        for memory in [*batch, head]:
            print(memory.id, flush=True)  # noqa: T201 - how it acknowledges.


def first(path: Path, part: str) -> None:
    """Open a new file and store one memory."""
    from germane.stores import Insert, SqliteStore  # noqa: PLC0415 - a task imports what it needs.
    from germane.testing.fakes import make_memory  # noqa: PLC0415 - as above.

    sys.stdin.readline()
    store = SqliteStore(path)
    store.apply("tester", [Insert(memory=make_memory(f"From process {part}"))])
    store.close()


def purge(path: Path, driver: str) -> None:
    """Store, move and purge memories on a driver; print what traces of them are left, by where they are."""
    if driver != "sqlite3":
        sys.modules["sqlite3"] = __import__(driver)
    from germane import Status  # noqa: PLC0415 - after the driver is chosen.
    from germane.stores import Insert, Purge, SetStatus, SqliteStore  # noqa: PLC0415 - as above.
    from germane.testing.fakes import START  # noqa: PLC0415 - as above.

    chance = Random(3)  # noqa: S311 - a test has to repeat.
    store = SqliteStore(path, durability="relaxed")
    current: dict[int, Memory] = {}
    gone: set[int] = set()
    for number in range(500):
        memory = current[number] = _marked(number, chance)
        store.apply(memory.agent, [Insert(memory=memory)])
        moved = chance.choice(list(current.values()))
        store.apply(
            moved.agent, [SetStatus(memory_id=moved.id, status=chance.choice(list(Status)), at=START)]
        )
        if number % 50 == 49:
            going = chance.sample(sorted(current), 30)
            gone.update(going)
            for agent in "abcd":
                purged = [current[each].id for each in going if current[each].agent == agent]
                store.apply(agent, [Purge(memory_id=each, at=START) for each in purged])
            for each in going:
                del current[each]
            _look(path, current, gone)
    for agent in "abcd":
        assert store.maintenance.check(agent) == ()
    store.close()


def _look(path: Path, current: Iterable[int], gone: Iterable[int]) -> None:
    for suffix in ("", "-wal", "-shm"):
        data = Path(f"{path}{suffix}").read_bytes()
        left = [number for number in gone if f"Zq{number:04d}x".encode() in data]
        present = sum(f"Zq{number:04d}x".encode() in data for number in current)
        print(f"agent.db{suffix} keeps {present} and traces of {left}")  # noqa: T201 - how it answers.


def _marked(number: int, chance: Random) -> Memory:
    from germane.testing.fakes import make_memory  # noqa: PLC0415 - after the driver is chosen.

    mark = f"Zq{number:04d}x"
    return make_memory(
        f"{mark} " + "lorem ipsum " * chance.choice((1, 3, 10, 40, 200, 900)),
        agent=chance.choice("abcd"),
        tags=(f"{mark}tag",),
        subject=f"{mark} subject",
        source=f"{mark} source",
        metadata={f"{mark}key": f"{mark} value"},
    )


if __name__ == "__main__":
    task = {"write": write, "first": first, "purge": purge}[sys.argv[1]]
    task(Path(sys.argv[2]), sys.argv[3])

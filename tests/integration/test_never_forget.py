"""Nothing is lost but by an explicit word, and none is without its entry in the log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import germane
from germane import Engine, Memory, Status, WorkingSet
from germane.errors import PurgeNotConfirmed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    with germane.open(path, embedder=None, counter="bytes_div_4_floor") as opened:
        yield opened


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def logged(path: Path) -> list[object]:
    return [what for (what,) in rows(path, "SELECT what FROM changes ORDER BY agent, seq")]


def prevent(path: Path, what: str) -> None:
    """Let the store fail in the midst of a transaction, where it does this."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TRIGGER no BEFORE {what} BEGIN SELECT RAISE(ABORT, 'prevented'); END")
        connection.commit()


def hold(engine: Engine, text: str) -> tuple[Memory, WorkingSet]:
    memory, working = engine.remember(text), engine.working_set()
    working.add(memory)
    return memory, working


def test_a_purge_wants_an_explicit_word(engine: Engine, path: Path) -> None:
    memory, working = hold(engine, "Chose Postgres.")
    before = logged(path)
    for word in (False, 1, "yes", "confirmed", None):
        with pytest.raises(PurgeNotConfirmed):
            engine.purge(memory.id, confirm=word)  # type: ignore[arg-type] # Only True is a confirmation.
    with pytest.raises(PurgeNotConfirmed):
        engine.purge(memory.id)
    assert (logged(path), engine.get(memory.id), memory in working) == (before, memory, True)
    assert engine.purge(memory.id, confirm=True) == 1
    assert logged(path)[len(before) :] == ["purge"]
    assert [move.kind for move in working.changes()][-1] == "purge"
    assert memory not in working


@pytest.mark.parametrize("prevented", ["INSERT ON changes", "INSERT ON moves", "DELETE ON memories"])
def test_a_purge_and_its_entries_are_written_together_or_not_at_all(
    engine: Engine, path: Path, prevented: str
) -> None:
    memory, working = hold(engine, "Chose Postgres.")
    before = (logged(path), working.changes(), rows(path, "SELECT content FROM texts"))
    prevent(path, prevented)
    with pytest.raises(germane.GermaneError, match="prevented"):
        engine.purge(memory.id, confirm=True)
    assert (logged(path), working.changes(), rows(path, "SELECT content FROM texts")) == before
    assert [one.memory.id for one in working] == [memory.id]
    assert [one.id for one in engine.recall("postgres")] == [memory.id]


@pytest.mark.parametrize(
    "prevented", ["INSERT ON changes", "INSERT ON moves", "UPDATE OF status ON memories"]
)
def test_a_memory_is_forgotten_with_its_entries_or_not_at_all(
    engine: Engine, path: Path, prevented: str
) -> None:
    memory, working = hold(engine, "Chose Postgres.")
    before = (logged(path), working.changes())
    prevent(path, prevented)
    with pytest.raises(germane.GermaneError, match="prevented"):
        engine.forget(memory.id)
    assert (logged(path), working.changes()) == before
    assert engine.get(memory.id).status is Status.ACTIVE
    assert [one.memory.id for one in working] == [memory.id]


def test_what_is_evicted_removed_or_cleared_stays_stored(engine: Engine) -> None:
    memories = [engine.remember(f"Note number {number} of the port.") for number in range(4)]
    working = engine.working_set()
    working.add_many(memories)
    evicted = working.evict(1)
    assert [one.item.memory.id for one in evicted.evicted] == [memories[0].id]
    working.remove(memories[1])
    working.clear()
    assert {one.id for one in engine.recall("port")} == {one.id for one in memories}


def test_a_space_tells_of_what_is_forgotten_and_purged(engine: Engine) -> None:
    space = engine.space("team", create=True)
    one, two = space.remember("One."), space.remember("Two.")
    space.forget(one.id)
    with pytest.raises(PurgeNotConfirmed):
        space.purge(two.id)
    space.purge(two.id, confirm=True)
    assert [(event.what.value, event.memory_id) for event in space.events()][-2:] == [
        ("forget", one.id),
        ("purge", two.id),
    ]

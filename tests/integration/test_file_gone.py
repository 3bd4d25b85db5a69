"""A file that is deleted, moved or replaced under an open store takes no write that would be lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import germane
from germane import Filter
from germane.errors import StoreUnavailable
from germane.stores import Insert, SqliteStore
from germane.testing.fakes import make_memories, make_memory

AGENT = "tester"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows keeps an open file where it is")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(folder / "agent.db")
    opened.apply(AGENT, [Insert(memory=each) for each in make_memories(3)])
    yield opened
    opened.close()


def write(store: SqliteStore) -> None:
    store.apply(AGENT, [Insert(memory=make_memory("one more"))])


def delete_all(folder: Path) -> None:
    for each in folder.glob("agent.db*"):
        each.unlink()


def stored(path: Path) -> int:
    store = SqliteStore(path)
    try:
        return len(store.find(AGENT, Filter()))
    finally:
        store.close()


def test_a_deleted_file_takes_no_write(store: SqliteStore, folder: Path) -> None:
    delete_all(folder)
    with pytest.raises(StoreUnavailable, match=r"agent\.db was deleted, .*open it again"):
        write(store)
    assert list(folder.iterdir()) == []


def test_a_deleted_file_answers_nothing_either(store: SqliteStore, folder: Path) -> None:
    assert len(store.find(AGENT, Filter())) == 3
    (folder / "agent.db").unlink()
    with pytest.raises(StoreUnavailable, match="was deleted"):
        store.find(AGENT, Filter())


def test_a_file_that_another_one_replaced(store: SqliteStore, folder: Path) -> None:
    other = folder / "restored.db"
    write_to = SqliteStore(other)
    write(write_to)
    write_to.close()
    other.replace(folder / "agent.db")
    with pytest.raises(StoreUnavailable, match=r"Another file stands at .*open it again"):
        write(store)
    with pytest.raises(StoreUnavailable, match="Another file stands at"):
        store.find(AGENT, Filter())
    store.close()
    (folder / "agent.db-wal").unlink(missing_ok=True)  # The old file's, which isn't the new one's.
    assert stored(folder / "agent.db") == 1


def test_a_file_that_is_put_back_goes_on(store: SqliteStore, folder: Path) -> None:
    away = folder / "away"
    away.mkdir()
    for each in folder.glob("agent.db*"):
        each.rename(away / each.name)
    with pytest.raises(StoreUnavailable, match="was moved"):
        write(store)
    for each in away.iterdir():
        each.rename(folder / each.name)
    write(store)
    assert len(store.find(AGENT, Filter())) == 4


def test_a_folder_that_was_renamed(store: SqliteStore, folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / "moved")
    with pytest.raises(StoreUnavailable, match="its folder was moved"):
        write(store)
    store.close()
    assert stored(tmp_path / "moved" / "agent.db") == 3


def test_a_folder_where_a_file_stands_now(store: SqliteStore, folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / "moved")
    folder.write_text("no folder any more")
    with pytest.raises(StoreUnavailable, match="its folder was moved"):
        write(store)


def test_a_link_is_followed(tmp_path: Path) -> None:
    first, second, link = tmp_path / "first.db", tmp_path / "second.db", tmp_path / "agent.db"
    for each in (first, second):
        SqliteStore(each).close()
    link.symlink_to(first)
    store = SqliteStore(link)
    write(store)
    link.unlink()
    link.symlink_to(second)
    with pytest.raises(StoreUnavailable, match="Another file stands at"):
        write(store)
    store.close()
    assert (stored(first), stored(second)) == (1, 0)


def test_a_log_that_was_deleted(store: SqliteStore, folder: Path) -> None:
    (folder / "agent.db-wal").unlink()
    with pytest.raises(StoreUnavailable, match=r"The log .*agent\.db-wal was deleted"):
        write(store)


def test_a_log_that_was_replaced(store: SqliteStore, folder: Path) -> None:
    shutil.copy(folder / "agent.db-wal", folder / "copy")
    (folder / "copy").replace(folder / "agent.db-wal")
    with pytest.raises(StoreUnavailable, match="Another log stands at"):
        write(store)


def test_a_first_write_makes_no_file_anew(store: SqliteStore, folder: Path) -> None:
    """A store that has only read so far opens its writing connection with the first write."""
    reader = SqliteStore(folder / "agent.db", read_only=True)
    assert len(reader.find(AGENT, Filter())) == 3
    delete_all(folder)
    for each in (reader, store):
        with pytest.raises(StoreUnavailable, match="was deleted"):
            each.find(AGENT, Filter())
    reader.close()
    assert list(folder.iterdir()) == []


def test_other_files_coming_and_going_change_nothing(store: SqliteStore, folder: Path) -> None:
    """The log is cut, the file rewritten, and other stores on it are closed: it stays the same file."""
    second = SqliteStore(folder / "agent.db")
    write(second)
    second.close()
    store.checkpoint()
    store.apply(AGENT, [Insert(memory=make_memory("and another"))])
    assert len(store.find(AGENT, Filter())) == 5


def test_what_is_in_memory_has_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("Deploys run on Fridays.")
        engine.remember("Deploys run on Mondays.")
        assert engine.stats().memories == 2


def test_nothing_is_stored_half(folder: Path) -> None:
    with germane.open(folder / "agent.db", embedder=None) as engine:
        first = engine.remember("The API listens on port 8080.")
        moved = folder / "kept"
        moved.mkdir()
        for each in folder.glob("agent.db*"):
            each.rename(moved / each.name)
        for attempt in (
            lambda: engine.remember_many(["one", "two"]),
            lambda: engine.revise(first.id, content="The API listens on port 9090."),
            lambda: engine.purge(first.id, confirm=True),
        ):
            with pytest.raises(StoreUnavailable, match="was deleted, or it"):
                attempt()
    with germane.open(folder / "kept" / "agent.db", embedder=None) as engine:
        assert [one.content for one in engine.memories()] == ["The API listens on port 8080."]

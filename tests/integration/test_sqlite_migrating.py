"""Steps after the baseline, in SQLite: a file that lacks one gets it and becomes as a new one is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import germane
from germane import StoreError, StoreUnavailable
from germane.errors import SchemaTooNew
from germane.stores import migrate_store, store_status
from support.databases import later_step, migrated_file, oldest_version, version, versions

VERSION = version("sqlite")
COLOURS = later_step(
    "sqlite",
    1,
    "colours",
    """
-- Two statements.
CREATE TABLE colours (name TEXT PRIMARY KEY) STRICT;
INSERT INTO colours VALUES ('red; green');
""",
)
SHAPES = later_step(
    "sqlite",
    2,
    "shapes",
    "ALTER TABLE colours ADD COLUMN shape INTEGER;",
)
BROKEN = later_step(
    "sqlite",
    2,
    "broken",
    "CREATE TABLE shapes (name TEXT) STRICT;\nALTER TABLE missing ADD COLUMN shape INTEGER;",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of the schema without later steps, in which something is stored."""
    path = tmp_path / "agent.db"
    with germane.open(path, agent="ada", embedder=None) as engine:
        engine.remember("Tea is green")
    return path


def rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute(statement).fetchall()


def shape_of(path: Path) -> list[tuple[object, ...]]:
    return rows(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")


def test_it_becomes_as_a_new_one_is(path: Path, tmp_path: Path) -> None:
    assert migrated_file(path, COLOURS) == VERSION + 1
    assert migrated_file(path, COLOURS, SHAPES) == VERSION + 2
    assert migrated_file(path, COLOURS, SHAPES) == VERSION + 2
    new = tmp_path / "new.db"
    assert migrated_file(new, COLOURS, SHAPES) == VERSION + 2
    assert shape_of(path) == shape_of(new)
    for each in ("SELECT * FROM migrations ORDER BY number", "SELECT * FROM colours"):
        assert rows(path, each) == rows(new, each) != []
    assert rows(path, "SELECT content FROM texts") == [("Tea is green",)]


@pytest.mark.parametrize("older", versions("sqlite"))
def test_a_file_of_every_version_opens_and_works(tmp_path: Path, older: int) -> None:
    path, new = tmp_path / "older.db", tmp_path / "new.db"
    assert migrated_file(path, until=older) == older
    for each in (path, new):
        with germane.open(each, agent="ada", embedder=None) as engine:
            engine.remember("Tea is green.")
            assert [found.memory.content for found in engine.recall("tea")] == ["Tea is green."]
            engine.conversation("talk").append("user", "Is it?")
            assert engine.doctor() == ()
    assert shape_of(path) == shape_of(new)


def test_a_step_that_fails_leaves_nothing_behind(path: Path) -> None:
    with pytest.raises(StoreError, match="no such table: missing"):
        migrated_file(path, COLOURS, BROKEN)
    assert rows(path, "SELECT max(number) FROM migrations") == [(VERSION + 1,)]
    assert rows(path, "PRAGMA user_version") == [(VERSION + 1,)]
    assert not rows(path, "SELECT name FROM sqlite_schema WHERE name = 'shapes'")
    assert migrated_file(path, COLOURS, SHAPES) == VERSION + 2


def test_what_only_reads_asks_for_somebody_who_writes(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=f"schema version {VERSION}, this germane needs {VERSION + 1}"):
        migrated_file(path, COLOURS, read_only=True)
    assert rows(path, "PRAGMA user_version") == [(VERSION,)]


def test_a_version_without_the_step_refuses_the_file(path: Path) -> None:
    migrated_file(path, COLOURS)
    with pytest.raises(SchemaTooNew) as caught:
        germane.open(path, agent="ada", embedder=None)
    assert (caught.value.found, caught.value.supported) == (VERSION + 1, VERSION)


@pytest.mark.parametrize("older", [1, oldest_version("sqlite") - 1])
def test_one_from_before_the_baseline_is_refused_and_left_alone(path: Path, older: int) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {older}")
    before = path.read_bytes()
    for use in (
        lambda: germane.open(path, agent="ada", embedder=None),
        lambda: germane.open(path, agent="ada", embedder=None, read_only=True),
        lambda: migrate_store(path),
        lambda: store_status(path),
    ):
        with pytest.raises(
            StoreUnavailable, match=rf"schema version {older}, .*`germane export`.*`germane import`"
        ):
            use()
    assert path.read_bytes() == before

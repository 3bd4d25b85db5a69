"""Steps after the baseline, in PostgreSQL: a database that lacks one gets it and becomes as a new one is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest

import germane
from germane import StoreUnavailable
from germane.errors import SchemaTooNew
from germane.stores import migrate_store, store_status
from support.databases import (
    later_step,
    migrated_database,
    oldest_version,
    step_names,
    version,
    versions,
)
from support.postgres_schema import PARTITIONS
from support.postgres_server import Server

pytestmark = pytest.mark.long

VERSION = version("postgres")
COLOURS = later_step(
    "postgres",
    1,
    "colours",
    """
CREATE TABLE colours (
    agent bigint NOT NULL,
    name  text COLLATE "C" NOT NULL,
    PRIMARY KEY (agent, name)
) {partitioned};
""",
)
SHAPES = later_step(
    "postgres",
    2,
    "shapes",
    "ALTER TABLE colours ADD COLUMN shape bigint;",
)


@pytest.fixture(params=[0, PARTITIONS], ids=["whole", "partitioned"])
def partitions(request: pytest.FixtureRequest) -> int:
    """How many the tables have."""
    return int(request.param)


@pytest.fixture
def database(postgres_server: Server, partitions: int) -> Iterator[str]:
    """The name of a database of the schema without later steps."""
    name = postgres_server.fresh()
    migrated_database(postgres_server.url(name), partitions=partitions)
    yield name
    postgres_server.drop(name)


def shape_of(server: Server, database: str) -> list[str]:
    """The statements that make the schema, without who may do what."""
    dump = server.tool("pg_dump", "--schema-only", "--no-privileges", server.url(database))
    return sorted(each.strip() for each in re.sub(r"(?m)^(--|\\).*$", "", dump).split(";\n"))


def recorded(server: Server, database: str) -> Sequence[tuple[object, ...]]:
    return server.run("SELECT number, name FROM migrations ORDER BY number", database=database)


def test_it_becomes_as_a_new_one_is(postgres_server: Server, database: str, partitions: int) -> None:
    assert migrated_database(postgres_server.url(database), COLOURS) == (COLOURS.name,)
    assert migrated_database(postgres_server.url(database), COLOURS, SHAPES) == (SHAPES.name,)
    new = postgres_server.fresh()
    names = (*step_names("postgres"), COLOURS.name, SHAPES.name)
    assert migrated_database(postgres_server.url(new), COLOURS, SHAPES, partitions=partitions) == names
    assert shape_of(postgres_server, database) == shape_of(postgres_server, new)
    assert recorded(postgres_server, database) == recorded(postgres_server, new)
    assert len(recorded(postgres_server, new)) == len(names)
    postgres_server.drop(new)
    assert migrated_database(postgres_server.url(database), COLOURS, SHAPES) == ()


@pytest.mark.parametrize("older", versions("postgres"))
def test_a_database_of_every_version_opens_and_works(
    postgres_server: Server, older: int, partitions: int
) -> None:
    name, new = postgres_server.fresh(), postgres_server.fresh()
    url = postgres_server.url(name)
    migrated_database(url, partitions=partitions, until=older)
    migrate_store(url)
    migrated_database(postgres_server.url(new), partitions=partitions)
    with germane.open(url, agent="ada", embedder=None) as engine:
        engine.remember("Tea is green.")
        assert [found.memory.content for found in engine.recall("tea")] == ["Tea is green."]
        engine.conversation("talk").append("user", "Is it?")
        assert engine.doctor() == ()
    assert shape_of(postgres_server, name) == shape_of(postgres_server, new)
    for each in (name, new):
        postgres_server.drop(each)


def test_what_is_stored_stays(postgres_server: Server, database: str) -> None:
    url = postgres_server.url(database)
    script = f"-- Serves version {VERSION} and later.\n{COLOURS.script}"
    serving = later_step("postgres", 1, "colours", script)
    with germane.open(url, agent="ada", embedder=None) as engine:
        engine.remember("Tea is green")
    migrated_database(postgres_server.url(database), serving)
    with germane.open(url, agent="ada", embedder=None) as engine:
        assert [each.content for each in engine.memories()] == ["Tea is green"]


def test_a_step_that_says_nothing_shuts_out_versions_before_it(
    postgres_server: Server, database: str
) -> None:
    migrated_database(postgres_server.url(database), COLOURS)
    with pytest.raises(SchemaTooNew) as caught:
        germane.open(postgres_server.url(database), agent="ada", embedder=None).stats()
    assert (caught.value.found, caught.value.supported) == (VERSION + 1, VERSION)


def test_one_from_before_the_baseline_is_refused_and_left_alone(
    postgres_server: Server, database: str
) -> None:
    older = oldest_version("postgres") - 1
    postgres_server.run(
        f"DELETE FROM migrations WHERE number > {older + 1}",
        f"UPDATE migrations SET number = {older}",
        database=database,
    )
    before = shape_of(postgres_server, database)
    url = postgres_server.url(database)
    for use in (
        lambda: germane.open(url, agent="ada", embedder=None),
        lambda: migrate_store(url),
        lambda: store_status(url),
    ):
        with pytest.raises(
            StoreUnavailable, match=rf"schema version {older}.*`germane export`.*`germane import`"
        ):
            use()
    assert shape_of(postgres_server, database) == before

"""What is about all agents is refused to a user who may see one at a time, and so never done by half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import germane
from germane import StoreUnavailable
from germane.embedders import StaticEmbedder
from germane.stores import PostgresStore, copy_store, migrate_store, reembed
from germane.testing.fakes import HashEmbedder
from support.postgres_server import Server, database_of


@pytest.fixture
def application(postgres_store_database: str, postgres_server: Server) -> Iterator[str]:
    """The address of a store with two agents, for a user who has the rights of an application."""
    for agent in ("ada", "bob"):
        with germane.open(postgres_store_database, agent=agent) as engine:
            engine.remember(f"{agent} likes tea")
    postgres_server.run(
        "DO $$ BEGIN CREATE ROLE plain LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    migrate_store(postgres_store_database, role="plain")
    yield postgres_server.url(database_of(postgres_store_database), user="plain")
    postgres_server.run("DROP OWNED BY plain", database=database_of(postgres_store_database))


def test_an_application_works_for_its_agent(application: str) -> None:
    with germane.open(application, agent="ada") as engine:
        assert [each.content for each in engine.recall("tea")] == ["ada likes tea"]
        engine.remember("Ada moved to Paris")
    with germane.open(application, agent="carl") as engine:
        engine.remember("A new agent")
        assert engine.stats().memories == 1


def _copy(address: str, folder: Path) -> object:
    return copy_store(address, folder / "copy.db")


def _reembed(address: str, _: Path) -> object:
    return reembed(address, embedder=HashEmbedder(dimension=8))


def _list(address: str, _: Path) -> object:
    store = PostgresStore(address)
    try:
        return store.maintenance.agents()
    finally:
        store.close()


@pytest.mark.parametrize("work", [_copy, _reembed, _list])
def test_what_is_about_all_is_refused(
    application: str, tmp_path: Path, work: Callable[[str, Path], object]
) -> None:
    with pytest.raises(StoreUnavailable, match="the user who owns the tables"):
        work(application, tmp_path)

    with germane.open(application, agent="ada", embedder=StaticEmbedder()) as engine:
        assert engine.stats().vectors == 1


def test_another_tokenizer_is_left_to_the_owner(application: str, postgres_store_database: str) -> None:
    with psycopg.connect(postgres_store_database, autocommit=True) as raw:
        raw.execute("UPDATE settings SET value = 'older' WHERE name = 'tokenizer'")

    with pytest.raises(StoreUnavailable, match="the user who owns the tables"):
        germane.open(application, agent="ada")
    germane.open(postgres_store_database, agent="ada").close()
    with germane.open(application, agent="ada") as engine:
        assert [each.content for each in engine.recall("tea")] == ["ada likes tea"]

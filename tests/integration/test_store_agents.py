"""Whose memories a store holds, in a file and in PostgreSQL, and what some users may not see of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from commandline import run
from germane import StoreUnavailable
from germane.stores import AgentFigures, migrate_store, remove_agent, store_agents, store_status
from germane.testing.fakes import FixedClock
from support.postgres_server import Server, database_of

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def fill(location: str | Path) -> None:
    """Two agents, one with versions and something forgotten, and a space."""
    clock = FixedClock(START)
    with germane.open(location, agent="zoe", embedder=None, clock=clock) as engine:
        first = engine.remember("The demo is on Tuesday.")
        engine.forget(engine.remember("The demo is on Monday.").id)
        clock.advance(HOUR)
        engine.revise(first.id, content="The demo is on Friday.")
    with germane.open(location, agent="ada", embedder=None, clock=clock) as engine:
        clock.advance(HOUR)
        engine.space("team", create=True).remember("Releases are on Mondays.")
    with germane.open(location, agent="idle", embedder=None, clock=clock) as engine:
        engine.purge(engine.remember("Gone soon.").id, confirm=True)


EXPECTED = {
    "zoe": AgentFigures(name="zoe", memories=3, written_at=START + HOUR),
    "ada": AgentFigures(name="ada", memories=0, written_at=None),
    "space:team": AgentFigures(name="space:team", memories=1, written_at=START + 2 * HOUR),
    "idle": AgentFigures(name="idle", memories=0, written_at=None),
}


def test_all_agents_of_a_file_with_their_figures(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    fill(path)
    found = store_agents(path)
    assert {each.name: each for each in found} == EXPECTED
    assert found[0].name == "zoe"
    status = store_status(path)
    assert (len(found), sum(each.memories or 0 for each in found)) == (status.agents, status.memories)


def test_the_same_in_postgresql(postgres_store: str) -> None:
    fill(postgres_store)
    assert {each.name: each for each in store_agents(postgres_store)} == EXPECTED


def test_there_is_none_where_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        store_agents(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_an_agent_that_was_removed_is_listed_no_more(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    fill(path)
    remove_agent(path, "zoe", confirm=True)
    assert {each.name for each in store_agents(path)} == {"ada", "space:team", "idle"}


def test_the_command_line_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    fill(path)
    rows = [line.split() for line in run("db", "agents", db=path).out.splitlines()]
    assert rows[0] == ["agent", "memories", "last", "written"]
    assert ["zoe", "3", "2026-01-05", "10:00"] in rows
    assert ["idle", "0"] in rows
    output = run("db", "agents", "--json", db=path).json()
    assert output["agents"][0] == {"name": "zoe", "memories": 3, "written_at": "2026-01-05T10:00:00+00:00"}


def test_who_may_see_one_agent_at_a_time_is_reported(
    postgres_store_database: str, postgres_server: Server
) -> None:
    fill(postgres_store_database)
    postgres_server.run(
        "DO $$ BEGIN CREATE ROLE listing LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    migrate_store(postgres_store_database, role="listing")
    database = database_of(postgres_store_database)
    address = postgres_server.url(database, user="listing")
    try:
        found = store_agents(address)
        assert {each.name for each in found} == set(EXPECTED)
        assert {(each.memories, each.written_at) for each in found} == {(None, None)}
        ran = run("db", "agents", "--db", address)
        assert "may see one agent at a time, so only the names are shown" in ran.err
        assert ["zoe", "?"] in [line.split() for line in ran.out.splitlines()]
    finally:
        postgres_server.run("DROP OWNED BY listing", database=database)

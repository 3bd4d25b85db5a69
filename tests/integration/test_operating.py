"""What an operator does to a whole store: the same commands for a file and for a database."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

import psycopg
import pytest

import germane
from commandline import run
from germane import InvalidInput, NotFound, StoreBusy, StoreUnavailable
from germane.embedders import StaticEmbedder
from germane.stores import (
    distribute_store,
    index_vectors,
    location_of,
    migrate_store,
    reembed,
    reindex_store,
    remove_agent,
    store_status,
    vacuum_store,
)
from germane.testing.fakes import HashEmbedder
from support.databases import step_names
from support.postgres_schema import DISTRIBUTED
from support.postgres_server import Server, database_of

pytestmark = pytest.mark.long


@pytest.fixture(params=["file", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made: nothing is there yet."""
    if request.param == "file":
        return str(tmp_path / "agent.db")
    return str(request.getfixturevalue("postgres_database"))


def filled(store: str) -> str:
    for agent in ("ada", "bob"):
        with germane.open(store, agent=agent) as engine:
            engine.remember(f"{agent} likes green tea", kind="preference")
            engine.remember("The port is 5433", kind="fact")
    return store


def contents(store: str) -> list[str]:
    with germane.open(store, agent="ada") as engine:
        return [each.content for each in engine.recall("tea")]


def test_migrate_makes_a_store_and_says_what_it_did(store: str) -> None:
    first = run("db", "migrate", "--json", db=store)
    second = run("db", "migrate", "--json", db=store)

    assert first.json()["applied"] == step_names("postgres" if store.startswith("postgresql:") else "sqlite")
    assert second.json() == {"location": location_of(store), "applied": [], "granted": None}
    assert "nothing was missing" in run("db", "migrate", db=store).out
    status = store_status(store)
    assert (status.schema_version, status.pending, status.agents) == (status.newest_version, (), 0)


def test_status_counts_agents_and_their_users_apart(store: str) -> None:
    with germane.connect(store, embedder=None) as handle:
        ada, ben = handle.agent("ada"), handle.agent("ben")
        for engine in (ada, ada.for_user("ann"), ada.for_user("bob"), ben.for_user("ann")):
            engine.remember("Tea is at four.")
        ada.space("team", create=True).remember("Tea is at five.")
        handle.agent("gone").for_user("cid").remember("Tea is at six.")
    remove_agent(store, "gone", confirm=True)

    status = store_status(store)
    rows = dict(line.split(maxsplit=1) for line in run("db", "status", db=store).out.splitlines())

    assert (status.agents, status.users, status.memories, status.removing) == (2, 3, 5, 0)
    assert (rows["Agents"], rows["Users"], rows["Memories"]) == ("2", "3", "5")


def test_status_counts_what_there_is(store: str) -> None:
    shown = run("db", "status", "--json", db=filled(store)).json()

    assert (shown["agents"], shown["memories"], shown["pending"]) == (2, 4, [])
    assert shown["bytes"] > 10_000
    assert shown["embedding"] == {"name": StaticEmbedder().name, "dimension": StaticEmbedder().dimension}
    assert shown["engine"].split()[0] in ("SQLite", "PostgreSQL")
    assert ("vector" in shown["extensions"]) == store.startswith("postgresql:")
    lines = run("db", "status", db=store).out.splitlines()
    assert [line.split()[0] for line in lines][:4] == ["Store", "Database", "Schema", "Agents"]


def test_status_changes_nothing(postgres_database: str) -> None:
    names = tuple(step_names("postgres"))
    assert store_status(postgres_database).schema_version == 0
    assert store_status(postgres_database).pending == names


@pytest.mark.parametrize("command", ["status", "reindex", "vacuum"])
def test_a_file_that_is_not_there_is_not_made(tmp_path: Path, command: str) -> None:
    ran = run("db", command, db=tmp_path / "none.db")

    assert (ran.code, ran.out) == (3, "")
    assert "There is no store" in ran.err
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("command", ["reindex", "vacuum"])
def test_upkeep_leaves_what_is_stored(store: str, command: str) -> None:
    before = contents(filled(store))
    assert run("db", command, "--json", db=store).json() == {"location": location_of(store), "done": True}
    assert run("db", command, db=store).out.startswith(f"{location_of(store)}: the ")

    assert contents(store) == before == ["ada likes green tea"]
    assert run("db", "doctor", "--agent", "ada", db=store).code == 0


def test_vacuum_frees_space(tmp_path: Path) -> None:
    store = tmp_path / "agent.db"
    with germane.open(store) as engine:
        engine.remember_many([f"Number {number} " + "x" * 2000 for number in range(300)])
    with closing(sqlite3.connect(store, isolation_level=None)) as raw:
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute("DELETE FROM memories")
    before = store.stat().st_size
    vacuum_store(store)
    assert store.stat().st_size < before / 2


def test_upkeep_tells_how_far_it_is(postgres_store: str) -> None:
    steps: list[tuple[int, int]] = []
    vacuum_store(postgres_store, progress=lambda done, total: steps.append((done, total)))

    assert [done for done, _ in steps] == list(range(1, len(steps) + 1))
    assert {total for _, total in steps} == {len(steps)}
    assert len(steps) > len(DISTRIBUTED)


def test_reindex_clears_what_an_interrupted_one_left(postgres_database: str) -> None:
    filled(postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as raw:
        raw.execute("CREATE INDEX lex_by_key_ccnew ON lex (length)")
        raw.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'lex_by_key_ccnew'::regclass")
    reindex_store(postgres_database)
    with psycopg.connect(postgres_database) as raw:
        rows = raw.execute(
            "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid"
        ).fetchall()
    assert "lex_by_key" in dict(rows)
    assert "lex_by_key_ccnew" not in dict(rows)
    assert all(dict(rows).values())


def test_two_do_not_do_it_at_once(postgres_store: str) -> None:
    at_work, done = Event(), Event()

    def work(*_: int) -> None:
        at_work.set()
        assert done.wait(60)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(reindex_store, postgres_store, progress=work)
        try:
            assert at_work.wait(60)
            with pytest.raises(StoreBusy, match="Another process is at work"):
                reindex_store(postgres_store)
        finally:
            done.set()
        first.result()


def test_partitions_and_a_role_are_for_a_database(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="neither partitions nor roles"):
        migrate_store(tmp_path / "agent.db", partitions=4)
    assert run("db", "migrate", "--role", "x", db=tmp_path / "agent.db").code == 2


def test_a_partitioned_store_with_a_role(postgres_database: str, postgres_server: Server) -> None:
    postgres_server.run(
        "DO $$ BEGIN CREATE ROLE few LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    ran = run("db", "migrate", "--partitions", "4", "--role", "few", db=postgres_database)
    assert ran.out.endswith("Role few may use it, one agent at a time.\n")
    filled(postgres_database)
    as_few = postgres_server.url(database_of(postgres_database), user="few")
    shown = run("db", "status", "--json", db=as_few).json()
    assert (shown["partitions"], shown["agents"], shown["memories"]) == (4, 2, None)
    assert store_status(postgres_database).memories == 4
    assert contents(as_few) == ["ada likes green tea"]
    for command in ("vacuum", "reindex"):
        ran = run("db", command, db=as_few)
        assert (ran.code, "doesn't own the tables" in ran.err) == (3, True)
    reindex_store(postgres_database)
    postgres_server.run("DROP OWNED BY few", database=database_of(postgres_database))


def test_an_agent_gets_an_index_of_its_vectors_and_loses_it(postgres_database: str) -> None:
    filled(postgres_database)
    assert index_vectors(postgres_database, "bob") == 2
    assert run("db", "index", "--agent", "ada", "--json", db=postgres_database).json() == {
        "location": location_of(postgres_database),
        "agent": "ada",
        "vectors": 2,
        "indexed": True,
    }
    indexes = store_status(postgres_database).indexes
    assert [(each.agent, each.vectors, each.valid) for each in indexes] == [
        ("ada", 2, True),
        ("bob", 2, True),
    ]
    assert "2 vectors of ada" in run("db", "status", db=postgres_database).out
    run("db", "index", "--agent", "ada", "--remove", db=postgres_database)
    assert [each.agent for each in store_status(postgres_database).indexes] == ["bob"]


def test_a_half_built_index_is_built_anew(postgres_database: str) -> None:
    filled(postgres_database)
    index_vectors(postgres_database, "ada")
    with psycopg.connect(postgres_database, autocommit=True) as raw:
        raw.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'vectors_of_1'::regclass")
    assert "half built" in run("db", "status", db=postgres_database).out
    index_vectors(postgres_database, "ada")
    assert [each.valid for each in store_status(postgres_database).indexes] == [True]


def test_what_has_no_index_is_refused(postgres_database: str, tmp_path: Path) -> None:
    with germane.open(postgres_database, agent="ada", embedder=None) as engine:
        engine.remember("No vector")
    with pytest.raises(InvalidInput, match="has no vectors to index"):
        index_vectors(postgres_database, "ada")
    with pytest.raises(NotFound):
        index_vectors(postgres_database, "nobody")
    with pytest.raises(InvalidInput, match="is a file"):
        index_vectors(str(tmp_path / "agent.db"), "ada")
    missing = "germane: Missing option '--agent'. See `germane db index --help`.\n"
    assert run("db", "index", db=postgres_database).err == missing


def test_copy_goes_there_and_back(tmp_path: Path, postgres_database: str) -> None:
    source, back = filled(str(tmp_path / "agent.db")), tmp_path / "back.db"
    there = run("db", "copy", "--from", source, "--to", postgres_database, "--json").json()
    again = run("db", "copy", "--to", str(back), "--json", db=postgres_database).json()

    assert (there["copied"], again["copied"]) == (2, 2)
    assert [(each["agent"], each["sha256"]) for each in there["agents"]] == [
        (each["agent"], each["sha256"]) for each in again["agents"]
    ]
    assert there["to"] == location_of(postgres_database)
    steps = run("db", "copy", "--from", source, "--to", postgres_database, "--agent", "ada")
    assert "was there" in steps.out
    assert steps.out.endswith("rows are the same there.\n")
    assert "bob" not in steps.out


def test_a_whole_store_is_embedded_anew(store: str) -> None:
    filled(store)
    ran = run("embedder", "use", "bundled", "--again", "--json", db=store)
    assert ran.json() == {"embedded": 4, "model": StaticEmbedder().name}
    assert reembed(store, embedder=HashEmbedder(dimension=8)) == 4
    assert run("embedder", "use", "bundled", db=store).code == 2


def test_without_citus_it_is_reported_what_to_do_instead(postgres_store: str, tmp_path: Path) -> None:
    ran = run("db", "distribute", db=postgres_store)

    assert ran.code == 3
    assert "doesn't have the extension `citus`" in ran.err
    assert "--partitions" in ran.err
    assert run("db", "distribute", db=tmp_path / "agent.db").code == 2


def test_a_cluster_without_a_store_says_how_to_make_one(postgres_database: str) -> None:
    with pytest.raises(StoreUnavailable, match="germane db migrate"):
        distribute_store(postgres_database)
    with psycopg.connect(postgres_database) as raw:
        assert raw.execute("SELECT to_regclass('memories'), to_regclass('migrations')").fetchall() == [
            (None, None)
        ]


@pytest.mark.parametrize("partitions", [0, 2])
def test_tables_are_stored_as_their_rows_need_it(postgres_database: str, partitions: int) -> None:
    migrate_store(postgres_database, partitions=partitions)
    with psycopg.connect(postgres_database) as raw:
        rows = raw.execute(
            "SELECT relname, reloptions::text FROM pg_class WHERE relkind = 'r' AND reloptions IS NOT NULL"
        ).fetchall()
    ends = [f"_{number}" for number in range(partitions)] or [""]
    meant = {"states": "fillfactor=70", "memories": "fillfactor=90", "vectors": "toast_tuple_target=8160"}
    assert dict(rows) == {f"{name}{end}": f"{{{how}}}" for name, how in meant.items() for end in ends}


KILLED = """
import os, signal, sys
import germane.stores

def tell(done, total):
    if done == 2:
        os.kill(os.getpid(), signal.SIGKILL)

germane.stores.copy_store(*sys.argv[1:3], progress=tell)
"""


def test_a_copy_that_was_killed_is_gone_on_with(tmp_path: Path, postgres_database: str) -> None:
    source = str(tmp_path / "agent.db")
    for agent in ("ada", "bob", "carl"):
        with germane.open(source, agent=agent) as engine:
            engine.remember(f"{agent} likes tea")
    killed = subprocess.run([sys.executable, "-c", KILLED, source, postgres_database], check=False)
    assert killed.returncode == -signal.SIGKILL

    shown = run("db", "copy", "--from", source, "--to", postgres_database, "--json").json()
    assert [(each["agent"], each["was_there"]) for each in shown["agents"]] == [
        ("ada", True),
        ("bob", True),
        ("carl", False),
    ]


def test_an_index_whose_building_was_cancelled_is_built_by_the_next_call(postgres_database: str) -> None:
    filled(postgres_database)
    with psycopg.connect(postgres_database) as old:
        # What began before holds up the building, which waits for it without holding up anybody.
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("INSERT INTO settings VALUES ('x', 'x')")
        old.execute("LOCK TABLE vectors IN ROW EXCLUSIVE MODE")
        with ThreadPoolExecutor(1) as pool:
            building = pool.submit(index_vectors, postgres_database, "ada")
            with psycopg.connect(postgres_database, autocommit=True) as raw:
                cancel = (
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                    " WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'"
                )
                while not building.done() and not raw.execute(cancel).fetchall():
                    time.sleep(0.02)
            with pytest.raises(StoreBusy, match="cancelled"):
                building.result()
    assert [each.valid for each in store_status(postgres_database).indexes] == [False]
    assert contents(postgres_database) == ["ada likes green tea"]
    assert index_vectors(postgres_database, "ada") == 2
    assert [each.valid for each in store_status(postgres_database).indexes] == [True]


def test_reading_where_there_is_no_store_says_how_to_make_one(postgres_database: str) -> None:
    ran = run("recall", "tea", db=postgres_database)

    assert ran.code == 3
    assert f"There is no store in {location_of(postgres_database)}." in ran.err


def test_a_terminal_shows_a_bar_and_leaves_nothing_behind(postgres_store: str) -> None:
    screen, stderr = os.openpty()
    command = [sys.executable, "-m", "germane", "db", "vacuum", "--db", postgres_store]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(stderr)
        shown = b""
        with suppress(OSError):  # Of a terminal whose other end is closed.
            while some := os.read(screen, 1 << 16):
                shown += some
    os.close(screen)

    assert process.returncode == 0
    assert b"tables" in shown
    assert b"100%" in shown
    assert shown.endswith(b"\x1b[2K")


def test_a_program_gets_no_hint(postgres_store: str) -> None:
    ran = run("db", "vacuum", "--json", db=postgres_store)

    assert (ran.json()["done"], ran.err) == (True, "")

"""What is sent to a Citus cluster, by the rules of one: they were read, since no package carries it."""

from __future__ import annotations

import os
import re
import time
from contextlib import closing
from threading import Timer

import psycopg
import pytest

import germane
from commandline import run
from germane import StoreError, StoreUnavailable
from germane.stores import PostgresStore, distribute_store, migrate_store, store_status
from support.cluster import pretend
from support.databases import connections_to, later_step, migrated_database
from support.postgres_rows import fill
from support.postgres_schema import DISTRIBUTED, SPREAD, explaining, named_queries, sent_to_cluster
from support.postgres_server import Server

pytestmark = pytest.mark.long

CITUS = os.environ.get("GERMANE_CITUS_URL", "")

EVERYWHERE = {"migrations", "settings", "agents", "data_keys", "spaces", "members"}


@pytest.fixture
def coordinator(postgres_store_database: str) -> str:
    """A store in a database that says it were a cluster's."""
    pretend(postgres_store_database)
    return postgres_store_database


def _rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as raw:
        return raw.execute(statement.encode()).fetchall()


def _spread(url: str, method: str) -> set[object]:
    found = _rows(url, f"SELECT logicalrelid::text FROM pg_dist_partition WHERE method = '{method}'")
    return {name for (name,) in found}


def test_every_table_is_spread_by_agent_or_everywhere() -> None:
    spread = dict(SPREAD)
    by_agent = {table for table, step in spread.items() if "'agent'" in step}

    assert by_agent == set(DISTRIBUTED)
    assert "'space'" in spread["space_events"]
    assert {table for table, step in spread.items() if "create_reference_table" in step} == EVERYWHERE
    assert [table for table, step in spread.items() if "colocate_with" not in step][-1] != "states"
    assert next(table for table in spread if table in by_agent) == "states"


def test_nothing_is_sent_that_a_cluster_refuses(coordinator: str) -> None:
    steps: list[tuple[int, int]] = []
    spread = distribute_store(coordinator, progress=lambda done, total: steps.append((done, total)))

    assert set(spread) == {*DISTRIBUTED, *EVERYWHERE, "space_events", "commits"}
    assert steps == [(number, len(spread)) for number in range(1, len(spread) + 1)]
    assert _spread(coordinator, "hash") == {*DISTRIBUTED, "space_events"}
    assert _spread(coordinator, "everywhere") == EVERYWHERE
    assert _spread(coordinator, "local") == {"commits"}
    assert distribute_store(coordinator) == ()
    assert store_status(coordinator).distributed


def test_keys_and_policies_stay_but_for_what_a_cluster_refuses(coordinator: str, postgres_store: str) -> None:
    keys = "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'"
    policies = "SELECT tablename, policyname, qual FROM pg_policies"
    before = set(_rows(coordinator, keys)), set(_rows(coordinator, policies))
    distribute_store(coordinator)
    after = set(_rows(coordinator, keys)), set(_rows(coordinator, policies))

    assert before[0] == set(_rows(postgres_store, keys))
    (lost,) = before[0] - after[0]
    assert lost == (
        "life_events",
        "FOREIGN KEY (agent, other) REFERENCES memories(agent, num) ON DELETE SET NULL (other)",
    )
    assert after[0] <= before[0]
    message = {
        (table, name, str(how).replace("( SELECT entered() AS entered)", "entered()"))
        for table, name, how in before[1]
    }
    assert after[1] == message


def test_an_interrupted_one_leaves_nothing_done(coordinator: str) -> None:
    before = _rows(coordinator, "SELECT tablename, qual FROM pg_policies ORDER BY 1, 2")

    def interrupt(done: int, _: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distribute_store(coordinator, progress=interrupt)
    assert _rows(coordinator, "SELECT FROM pg_dist_partition") == []
    assert _rows(coordinator, "SELECT tablename, qual FROM pg_policies ORDER BY 1, 2") == before
    assert not store_status(coordinator).distributed
    assert distribute_store(coordinator) != ()


def test_what_is_there_goes_on_and_is_counted(coordinator: str) -> None:
    with germane.open(coordinator, agent="ada") as engine:
        engine.remember("The port is 5433", kind="fact")
    distribute_store(coordinator)
    with germane.open(coordinator, agent="ada") as engine, germane.open(coordinator, agent="bob") as other:
        engine.remember("Tea is green", kind="preference")
        other.remember("Tea is black")
        other.for_user("ann").remember("Ann drinks tea")
        assert [each.content for each in engine.recall("tea")] == ["Tea is green"]
    status = store_status(coordinator)
    assert (status.agents, status.users, status.memories, status.distributed) == (2, 1, 4, True)
    elsewhere = 4096 * len(_rows(coordinator, "SELECT FROM pg_dist_partition"))
    tables = "relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    sizes = f"SELECT sum(pg_total_relation_size(oid))::text FROM pg_class WHERE {tables}"
    ((here,),) = _rows(coordinator, sizes)
    assert status.bytes == int(str(here)) + elsewhere


def test_a_table_that_a_later_version_adds_is_spread_by_its_migration(coordinator: str) -> None:
    distribute_store(coordinator)
    script = """
CREATE TABLE colours (
    agent bigint NOT NULL,
    name  text COLLATE "C" NOT NULL,
    PRIMARY KEY (agent, name)
) {partitioned};
"""
    step = later_step("postgres", 1, "colours", script)
    assert migrated_database(coordinator, step) == (step.name,)
    assert _spread(coordinator, "hash") == {*DISTRIBUTED, "space_events", "colours"}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"version": "11.1-1"}, "is version 11.1-1, and the tables need 11.2"),
        ({"knows_its_coordinator": False}, "citus_set_coordinator_host"),
    ],
)
def test_a_cluster_that_cannot_is_refused(
    postgres_store_database: str, how: dict[str, object], message: str
) -> None:
    pretend(postgres_store_database, **how)  # type: ignore[arg-type]  # Each case gives one.
    with pytest.raises(StoreUnavailable, match=message):
        distribute_store(postgres_store_database)


def test_tables_with_partitions_are_refused(postgres_database: str) -> None:
    migrate_store(postgres_database, partitions=2)
    pretend(postgres_database)
    with pytest.raises(StoreUnavailable, match="have hash partitions, which Citus can't spread"):
        distribute_store(postgres_database)


def test_what_a_cluster_cannot_do_is_reported(coordinator: str, postgres_server: Server) -> None:
    distribute_store(coordinator)
    with germane.open(coordinator, agent="ada") as engine:
        engine.remember("Tea is green")
    postgres_server.run(
        "DO $$ BEGIN CREATE ROLE few LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    for command in (("index", "--agent", "ada"), ("migrate", "--role", "few"), ("vacuum", "--erase")):
        ran = run("db", *command, db=coordinator)
        assert (ran.code, "spread over a cluster, which can't" in ran.err) == (3, True), command


_MODE = "SELECT current_setting('citus.multi_shard_modify_mode', true)"


def test_every_connection_to_a_cluster_asks_its_servers_one_by_one(
    coordinator: str, postgres_store: str
) -> None:
    for url, mode in ((coordinator, "sequential"), (postgres_store, None)):
        with closing(connections_to(url)) as connections:
            with connections.reading() as reading:
                assert reading.raw.execute(_MODE.encode()).fetchall() == [(mode,)]
            with connections.writing("ada") as writing:
                assert writing.raw.execute(_MODE.encode()).fetchall() == [(mode,)]
            with connections.alone() as alone:
                assert alone.raw.execute(_MODE.encode()).fetchall() == [(mode,)]


_ID = "\\x" + "01" * 16
_OF_NOBODY = (
    ("SELECT enter('nobody')",),
    ("SELECT enter('nobody', NULL, true)",),
    ("SELECT enter('one', 'nobody', true)",),
    ("SELECT enter('nobody', 'one', true)", "SELECT add_agent('nobody')"),
    ("SELECT enter('one')", "SELECT * FROM candidates_of(entered(), 99, '')"),
    ("SELECT enter('one')", "SELECT purge_memory(entered(), 99)"),
    ("SELECT enter('one')", "SELECT * FROM postings_of(entered(), ARRAY[]::bigint[])"),
    (
        "SELECT enter('one')",
        f"SELECT keep_candidate(entered(), 1, 9, 'nobody', '{_ID}', 1, 's', 1, '', NULL, NULL, 1, 0, 0)",
    ),
)


@pytest.mark.parametrize("calls", _OF_NOBODY, ids=" ".join)
def test_no_function_looks_for_the_rows_of_no_number(coordinator: str, calls: tuple[str, ...]) -> None:
    """A cluster would look for them on every server; one server sees at once that there are none."""
    distribute_store(coordinator)
    with psycopg.connect(coordinator) as raw:
        fill(raw, "one")
        heard = explaining(raw)
        for each in calls:
            raw.execute(each.encode())
        raw.rollback()
    assert heard
    tables = rf"\b(?:{'|'.join((*DISTRIBUTED, 'space_events'))})\b"
    senseless = [each for each in heard if "Filter: false" in each and re.search(tables, each)]
    assert senseless == []


# A worker that restarts, as its coordinator reports it. Here a trigger does, as long as a table says so.

_DOWN = """
CREATE TABLE down (code text, message text);
INSERT INTO down VALUES ('{code}', '{message}');
CREATE FUNCTION lose_worker() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    one down := (SELECT down FROM down);
BEGIN
    IF one.code IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = one.code, MESSAGE = one.message;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER lost BEFORE INSERT ON memories FOR EACH ROW EXECUTE FUNCTION lose_worker();
"""
_REPORTS = [
    ("08006", "connection to the remote node me@w1:5432 failed with the following error: Connection refused"),
    ("57P01", "terminating connection due to administrator command"),
    ("XX000", "server closed the connection unexpectedly"),
    ("XX000", "failure on connection marked as essential: w1:5432"),
]


def _down(url: str, code: str, message: str) -> None:
    with psycopg.connect(url) as raw:
        raw.execute(_DOWN.format(code=code, message=message).encode())


def _back(url: str) -> None:
    with psycopg.connect(url) as raw:
        raw.execute(b"DELETE FROM down")


@pytest.mark.parametrize(("code", "message"), _REPORTS)
def test_a_worker_that_restarts_is_waited_for(coordinator: str, code: str, message: str) -> None:
    with germane.open(coordinator, agent="ada", embedder=None) as ada:
        ada.remember("Tea is green")
        _down(coordinator, code, message)
        back = Timer(1.5, _back, [coordinator])
        back.start()
        ada.remember("Tea is black")
        back.join()
        assert {each.content for each in ada.memories()} == {"Tea is green", "Tea is black"}


@pytest.fixture
def lost(coordinator: str) -> str:
    """A store whose worker doesn't come back."""
    with germane.open(coordinator, agent="ada", embedder=None) as ada:
        ada.remember("Tea is green")
    _down(coordinator, *_REPORTS[0])
    return coordinator


def test_it_is_waited_for_until_the_timeout(lost: str) -> None:
    store = PostgresStore(lost, timeout=1)
    with germane.open(store, agent="ada", embedder=None) as ada:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="connection to the remote node"):
            ada.remember("Tea is black")
        assert time.monotonic() - began >= 1
        assert [each.content for each in ada.memories()] == ["Tea is green"]


def test_an_internal_error_is_not_waited_for(coordinator: str) -> None:
    with germane.open(coordinator, agent="ada", embedder=None) as ada:
        ada.remember("Tea is green")
        _down(coordinator, "XX000", "could not find shard interval")
        with pytest.raises(StoreError, match="could not find shard interval"):
            ada.remember("Tea is black")
        _back(coordinator)
        assert [each.content for each in ada.memories()] == ["Tea is green"]


@pytest.mark.skipif(not CITUS, reason="GERMANE_CITUS_URL names no database of a Citus coordinator.")
def test_a_cluster_plans_one_task_for_every_query() -> None:
    """As the cluster sees it, for those that take their values by name."""
    migrate_store(CITUS)
    distribute_store(CITUS)
    several = {}
    with psycopg.connect(CITUS, autocommit=True) as raw:
        for name, query in named_queries().items():
            text = sent_to_cluster(query).replace("{filter}", "").replace("{dimension}", "4")
            if name.startswith("where_") or "CONCURRENTLY" in text or "%s" in text or name == "agents":
                continue
            text = re.sub(r"%\((?:agent|space|number_of_\w+)\)s|\{agent\}", "1", text)
            text = re.sub(r"%\(\w+\)s", "NULL", text)
            plan = raw.execute(f"EXPLAIN (COSTS OFF) {text}".encode()).fetchall()
            tasks = re.findall(r"Task Count: (\d+)", "\n".join(line for (line,) in plan))
            if any(int(each) > 1 for each in tasks):
                several[name] = tasks
    assert several == {}

"""What was purged leaves no byte in a server's files once it is erased, and it is known what isn't yet."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

import germane
from commandline import run
from germane import StoreBusy, StoreUnavailable
from germane.stores import erase_purged, migrate_store, store_status
from germane.stores.postgres.maintenance import PostgresOperations
from support.databases import running
from support.postgres_server import Server, contents, database_of

pytestmark = pytest.mark.long

NEEDLES = (
    *(b"xyzzyplugh", b"quuxotag", b"frotzsubject", b"gnustofield", b"blorbsaid", b"zorkmid:"),
    b"grueanswer",
)


@pytest.fixture(scope="module")
def tidy_server() -> Iterator[Server]:
    """A server that never used a segment of its log again, but removes those that it is done with."""
    yield from running(wal_recycle="off", max_prepared_transactions="2")


@pytest.fixture
def tidy_database(tidy_server: Server) -> Iterator[str]:
    """An empty database of that server's."""
    database = tidy_server.fresh()
    yield tidy_server.url(database)
    tidy_server.drop(database)


def secret_of(store: str, *, agent: str = "ada") -> tuple[bytes, ...]:
    """Store what shall leave no trace beside other things, and purge it; its vector and its terms' hashes."""
    with germane.open(store, agent=agent) as engine:
        for number in range(200):
            engine.remember(f"Note {number} is about something else", kind="fact", tags=[f"n{number}"])
        secret = engine.remember(
            "xyzzyplugh opens the door",
            kind="fact",
            tags=["quuxotag"],
            subject="frotzsubject",
            metadata={"field": "gnustofield"},
        )
        # Long, and of nothing that repeats: it goes to the side table. What compresses begins with a literal.
        digits = "".join(sha256(bytes([each])).hexdigest() for each in range(140))
        long = engine.remember(f"zorkmid:{digits}")
        talk = engine.conversation("standup")
        talk.append("user", "What does blorbsaid do?")
    with germane.connect(store) as handle:
        handle.once(agent, "one", b"asked", lambda: b"grueanswer")
    with psycopg.connect(store, autocommit=True) as raw:
        traces = raw.execute(
            "SELECT halfvec_send(vector), hashes FROM vectors JOIN lex USING (agent, num)"
            " JOIN memories USING (agent, num) WHERE subject = 'frotzsubject'"
        ).fetchall()[0]
        # The planner's statistics quote values, and the tables' pages are on the disk after a checkpoint.
        raw.execute("ANALYZE")
    with germane.open(store, agent=agent) as engine:
        engine.purge(secret.id, confirm=True)
        engine.purge(long.id, confirm=True)
        engine.conversation("standup").purge(confirm=True)
    # In the table stand the vector's numbers as they are in memory, not in the order of the network.
    vector = b"".join(traces[0][at : at + 2][::-1] for at in range(4, len(traces[0]), 2))
    return vector, traces[1]


def files_with(server: Server, needle: bytes) -> set[str]:
    """The files of the server that hold these bytes, by their places in its data directory."""
    return {str(each.relative_to(server.data)) for each, data in contents(server.data) if needle in data}


def files_of(store: str) -> dict[str, str]:
    """The file of each table of a store."""
    with psycopg.connect(store) as raw:
        rows = raw.execute(
            "SELECT relname, pg_relation_filepath(oid) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
    return {name: path for name, path in rows if path}


@pytest.mark.parametrize("partitions", [0, 4])
def test_no_byte_is_left(tidy_database: str, tidy_server: Server, partitions: int) -> None:
    migrate_store(tidy_database, partitions=partitions)
    derived = secret_of(tidy_database)
    tidy_server.run("CHECKPOINT")
    for needle in (*NEEDLES, *derived):
        assert any(each.startswith("base/") for each in files_with(tidy_server, needle)), needle
    where = "SELECT pg_relation_filepath('pg_statistic')"
    [(statistics,)] = tidy_server.run(where, database=database_of(tidy_database))
    assert statistics in files_with(tidy_server, b"quuxotag")
    assert store_status(tidy_database).due == 1

    steps: list[tuple[int, int]] = []
    erasure = erase_purged(tidy_database, progress=lambda *each: steps.append(each))

    for needle in (*NEEDLES, *derived):
        assert files_with(tidy_server, needle) == set(), needle
    assert steps == [(number, len(steps)) for number in range(1, len(steps) + 1)]
    assert not any("wal_recycle" in each for each in erasure.left)
    assert store_status(tidy_database).due == 0
    with germane.open(tidy_database, agent="ada") as engine:
        assert (engine.stats().memories, engine.doctor()) == (200, ())
    assert erase_purged(tidy_database).tables == ()


def test_the_log_of_a_server_that_uses_segments_again_is_reported_to_keep_it(
    postgres_database: str, postgres_server: Server
) -> None:
    secret_of(postgres_database)

    ran = run("db", "vacuum", "--erase", db=postgres_database)

    assert "With wal_recycle = off it removes them instead." in ran.out
    assert "Backups and dumps hold it" in ran.out
    for needle in NEEDLES:
        assert {
            each for each in files_with(postgres_server, needle) if not each.startswith("pg_wal/")
        } == set()


def test_only_what_is_concerned_is_written_anew(postgres_database: str) -> None:
    migrate_store(postgres_database, partitions=4)
    for agent in ("ada", "bob", "carl", "dora", "eve", "fay"):
        with germane.open(postgres_database, agent=agent) as engine:
            engine.remember("Something")
            engine.conversation("standup").append("user", "Hello")
    with germane.open(postgres_database, agent="ada") as engine:
        engine.purge(engine.memories()[0].id, confirm=True)
    with psycopg.connect(postgres_database) as raw:
        (part,) = raw.execute(
            "SELECT substring(states.tableoid::regclass::text FROM '[0-9]+$') FROM states"
            " JOIN agents USING (agent) WHERE name = 'ada'"
        ).fetchall()[0]
    before = files_of(postgres_database)

    erasure = erase_purged(postgres_database)

    after = files_of(postgres_database)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == set(erasure.tables)
    assert {each.removesuffix(f"_{part}") for each in changed} == {
        *("memories", "texts", "tags", "places", "lex", "vectors", "unembedded", "shown", "outcomes", "held"),
        *("lives", "life_events", "assemblies", "assembled", "learning_runs", "replies", "memory_blocks"),
    }
    with germane.open(postgres_database, agent="ada") as engine:
        engine.conversation("standup").purge(confirm=True)
    assert {each.removesuffix(f"_{part}") for each in erase_purged(postgres_database).tables} == {
        *("conversations", "messages", "message_lex", "anchors", "learning_runs", "replies"),
    }


def test_an_interrupted_erasure_stays_due(tidy_database: str, tidy_server: Server) -> None:
    secret_of(tidy_database)

    def stop(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        erase_purged(tidy_database, progress=stop)
    assert store_status(tidy_database).due == 1
    assert erase_purged(tidy_database).tables
    assert store_status(tidy_database).due == 0
    assert files_with(tidy_server, b"xyzzyplugh") == set()


def test_what_is_purged_meanwhile_stays_due(postgres_database: str) -> None:
    with germane.open(postgres_database, agent="ada") as engine:
        first, second = engine.remember("First"), engine.remember("Second")
        engine.purge(first.id, confirm=True)

        def purge(done: int, total: int) -> None:
            # Past the tables: what is erased then was read before.
            if done == total - 1:
                engine.purge(second.id, confirm=True)

        erase_purged(postgres_database, progress=purge)
    assert store_status(postgres_database).due == 1
    assert erase_purged(postgres_database).tables
    assert store_status(postgres_database).due == 0


def test_nothing_is_called_erased_that_somebody_might_still_look_at(
    tidy_database: str, tidy_server: Server
) -> None:
    with germane.open(tidy_database, agent="ada") as engine:
        secret = engine.remember("xyzzyplugh opens the door")
    with psycopg.connect(tidy_database, application_name="a long report") as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM settings")
        with germane.open(tidy_database, agent="ada") as engine:
            engine.purge(secret.id, confirm=True)
        with pytest.raises(StoreBusy, match="a long report of postgres"):
            PostgresOperations(tidy_database, patience=0).erase(lambda *_: None)
        assert store_status(tidy_database).due == 1
    erase_purged(tidy_database)
    assert files_with(tidy_server, b"xyzzyplugh") == set()


def test_a_user_without_rights_sees_who_might_still_look_as_well(
    postgres_database: str, postgres_server: Server
) -> None:
    name = database_of(postgres_database)
    role = f"owner_{name}"
    postgres_server.run(f"CREATE ROLE {role} LOGIN", f"ALTER DATABASE {name} OWNER TO {role}")
    store = postgres_server.url(name, user=role)
    try:
        _purged(store)
        with psycopg.connect(postgres_database, application_name="of the superuser") as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT 1")
            with germane.open(store, agent="ada") as engine:
                engine.purge(engine.remember("Gone too").id, confirm=True)
            with pytest.raises(StoreBusy, match="of the superuser"):
                PostgresOperations(store, patience=0).erase(lambda *_: None)
    finally:
        postgres_server.run(f"REASSIGN OWNED BY {role} TO postgres", f"DROP OWNED BY {role}", database=name)
        postgres_server.run(f"DROP ROLE {role}")


def test_a_vacuum_of_another_table_keeps_nothing(tidy_database: str, tidy_server: Server) -> None:
    with ThreadPoolExecutor(1) as pool, psycopg.connect(tidy_database, autocommit=True) as slow:
        slow.execute("CREATE TABLE others AS SELECT repeat('x', 100) FROM generate_series(1, 20000)")
        # So slowly that it takes a minute, as that of a large table does by itself.
        slow.execute("SET vacuum_cost_delay = '100ms'; SET vacuum_cost_limit = 1")
        vacuumed = pool.submit(slow.execute, "VACUUM others")
        try:
            while not tidy_server.run("SELECT pid FROM pg_stat_progress_vacuum"):
                assert not vacuumed.done()
            with germane.open(tidy_database, agent="ada") as engine:
                engine.purge(engine.remember("xyzzyplugh opens the door").id, confirm=True)
            assert PostgresOperations(tidy_database, patience=1).erase(lambda *_: None).tables
            assert not vacuumed.done()
        finally:
            slow.cancel()
        assert isinstance(vacuumed.exception(), psycopg.errors.QueryCanceled)
    assert files_with(tidy_server, b"xyzzyplugh") == set()


def test_a_prepared_transaction_is_waited_for_too(tidy_database: str) -> None:
    with germane.open(tidy_database, agent="ada") as engine:
        memory = engine.remember("Gone")
        with psycopg.connect(tidy_database, autocommit=True) as raw:
            raw.execute("BEGIN")
            raw.execute("CREATE TABLE prepared_one ()")
            raw.execute("PREPARE TRANSACTION 'left behind'")
            engine.purge(memory.id, confirm=True)
            with pytest.raises(StoreBusy, match="prepared transaction left behind"):
                PostgresOperations(tidy_database, patience=0).erase(lambda *_: None)
            raw.execute("ROLLBACK PREPARED 'left behind'")
        assert erase_purged(tidy_database).tables


def test_a_table_that_is_in_use_is_not_waited_for_at_length(postgres_database: str) -> None:
    with germane.open(postgres_database, agent="ada") as engine:
        engine.purge(engine.remember("Gone").id, confirm=True)
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT count(*) FROM texts")
            with pytest.raises(StoreBusy, match="The table texts was in use"):
                PostgresOperations(postgres_database, patience=0).erase(lambda *_: None)
            # Nobody waits behind.
            engine.remember("Not gone")
        assert "texts" in erase_purged(postgres_database).tables


@pytest.mark.parametrize("owns_database", [True, False])
def test_what_a_user_may_not_do_is_reported(
    postgres_database: str, postgres_server: Server, owns_database: bool
) -> None:
    name = database_of(postgres_database)
    role = f"keeper_{name}"
    postgres_server.run(
        f"CREATE ROLE {role} LOGIN", f"GRANT CREATE ON SCHEMA public TO {role}", database=name
    )
    if owns_database:
        postgres_server.run(f"ALTER DATABASE {name} OWNER TO {role}", database=name)
    store = postgres_server.url(name, user=role)
    try:
        secret_of(store) if owns_database else _purged(store)
        left = erase_purged(store).left
        assert any("pg_switch_wal(); CHECKPOINT;" in each for each in left)
        assert any("VACUUM FULL pg_statistic" in each for each in left) is not owns_database
        assert store_status(store).due == 0
        assert {
            each for each in files_with(postgres_server, b"xyzzyplugh") if each.startswith("base/")
        } == set()
    finally:
        postgres_server.run(f"REASSIGN OWNED BY {role} TO postgres", f"DROP OWNED BY {role}", database=name)
        postgres_server.run(f"DROP ROLE {role}")


def _purged(store: str) -> None:
    with germane.open(store, agent="ada") as engine:
        engine.purge(engine.remember("xyzzyplugh opens the door").id, confirm=True)


def test_an_application_notes_without_a_right_to_the_notes(
    postgres_database: str, postgres_server: Server
) -> None:
    name = database_of(postgres_database)
    role = f"app_{name}"
    postgres_server.run(f"CREATE ROLE {role} LOGIN")
    migrate_store(postgres_database, role=role)
    # As where the role was let in by a version that stored no notes.
    postgres_server.run(f"REVOKE ALL ON erasures FROM {role}", database=name)
    store = postgres_server.url(name, user=role)
    try:
        with germane.open(store, agent="ada") as engine:
            engine.purge(engine.remember("Gone").id, confirm=True)
            engine.conversation("standup").append("user", "Gone too")
            engine.conversation("standup").purge(confirm=True)
        assert store_status(store).due is None
        assert store_status(postgres_database).due == 1
        with pytest.raises(StoreUnavailable, match="doesn't own the tables"):
            erase_purged(store)
    finally:
        postgres_server.run(f"DROP OWNED BY {role}", database=name)
        postgres_server.run(f"DROP ROLE {role}")


def test_a_purge_in_a_space_notes_the_ledgers_that_it_reaches(postgres_database: str) -> None:
    with (
        germane.open(postgres_database, agent="bob", record=True) as bob,
        germane.open(postgres_database, agent="ada") as ada,
    ):
        space = ada.space("team", create=True)
        space.join("bob")
        known = space.remember("The team meets on Mondays")
        bob.assemble("When does the team meet?", budget=2000, spaces=["team"])
        space.purge(known.id, confirm=True)
    with psycopg.connect(postgres_database) as raw:
        noted = raw.execute(
            "SELECT name, what FROM erasures JOIN agents USING (agent) ORDER BY name"
        ).fetchall()
    assert noted == [("bob", "ledger"), ("space:team", "memories")]
    assert store_status(postgres_database).due == 2
    erase_purged(postgres_database)
    assert store_status(postgres_database).due == 0


def test_an_ended_space_is_noted_whole(postgres_database: str) -> None:
    with germane.open(postgres_database, agent="ada") as ada:
        space = ada.space("team", create=True)
        space.remember("The team meets on Mondays")
        space.disband(confirm=True)
    assert {"texts", "space_events", "working_sets"} <= set(erase_purged(postgres_database).tables)


def test_status_and_command_tell_of_it(postgres_database: str, tmp_path: Path) -> None:
    secret_of(postgres_database)
    assert run("db", "status", "--json", db=postgres_database).json()["due"] == 1
    output = run("db", "status", db=postgres_database).out
    assert "what was purged of 1 agent: `germane db vacuum --erase`" in output

    shown = run("db", "vacuum", "--erase", "--json", db=postgres_database).json()

    assert "texts" in shown["tables"]
    assert any("Backups" in each for each in shown["left"])
    assert "To erase" not in run("db", "status", db=postgres_database).out
    file = tmp_path / "agent.db"
    with germane.open(file) as engine:
        engine.purge(engine.remember("Gone").id, confirm=True)
    assert run("db", "status", "--json", db=file).json()["due"] == 0
    assert run("db", "vacuum", "--erase", "--json", db=file).json()["tables"] == []

"""An agent is removed with all its rows: at once for whoever asks, in batches for the store."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import psycopg
import pytest

import germane
from commandline import run
from germane import GermaneError, InvalidInput, NotFound, StoreUnavailable
from germane.errors import LastActive, PurgeNotConfirmed
from germane.stores import (
    PostgresStore,
    copy_store,
    erase_purged,
    index_vectors,
    location_of,
    migrate_store,
    remove_agent,
    store_status,
)
from support.postgres_rows import ROWS, fill
from support.postgres_server import Server, contents, database_of
from support.traces import filled, number_of, texts, traces

pytestmark = pytest.mark.long


@pytest.fixture(params=["file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind, without any agent."""
    return (
        str(tmp_path / "agent.db")
        if request.param == "file"
        else str(request.getfixturevalue("postgres_store"))
    )


def test_nothing_of_it_is_left(store: str) -> None:
    filled(store)
    number, attic = number_of(store, "ada"), number_of(store, "space:attic")
    before = traces(store, number)
    # Where each store has such a table, ada stands in it.
    assert {"memories", "texts", "tags", "places", "lex", "vectors", "changes", "shown", "outcomes"} < set(
        before
    )
    assert {"working_sets", "held", "moves", "conversations", "messages", "anchors", "lives"} < set(before)
    assert {"life_events", "assemblies", "assembled", "members", "space_events"} < set(before)

    removal = remove_agent(store, "ada", confirm=True)

    assert (removal.was_there, removal.left, removal.ended) == (True, ("team",), ("attic",))
    assert traces(store, number) == {}
    assert traces(store, attic) == {}
    left = texts(store)
    for word in ("rgon", "rypton", "eon", "adon", "elium", "luorine", "'ada'", '"ada"', "'space:attic'"):
        assert word not in left.replace("xenon", ""), word


def test_the_others_have_what_they_had(store: str) -> None:
    filled(store)
    remove_agent(store, "ada", confirm=True)
    with germane.open(store, agent="bob") as bob:
        assert [each.content for each in bob.memories()] == ["Bob likes xenon tea"]
        team = bob.space("team")
        assert [each.content for each in team.recall("oolong")] == ["The team likes oolong"]
        assert [each.memory.content for each in team.working_set("board")] == ["The team likes oolong"]
        assert {(str(each.what), each.by) for each in team.events()} >= {
            ("create", "space:team"),
            ("remember", "space:team"),
            ("leave", "space:team"),
        }
        assert [each.agent for each in team.members()] == ["bob"]
        assert [each.by for each in team.working_set("board").changes()] == ["space:team"]
        assert bob.ledger().list()[0].sha256 is None
        assert bob.doctor() == ()
        team.remember("It goes on")


def test_again_and_unknown_are_no_errors(store: str) -> None:
    filled(store)
    remove_agent(store, "ada", confirm=True)
    again = remove_agent(store, "ada", confirm=True)
    assert (again.was_there, again.rows, again.finished) == (False, 0, 0)
    assert store_status(store).agents == 2


def test_what_comes_afterwards_is_a_new_agent(store: str) -> None:
    with germane.open(store, agent="bob") as bob:
        bob.remember("Bob likes tea")
    with germane.open(store, agent="ada") as ada:
        ada.remember("Argon opens the door")
    number = number_of(store, "ada")
    remove_agent(store, "ada", confirm=True)
    with germane.open(store, agent="ada") as ada:
        assert list(ada.recall("door")) == []
        ada.remember("Helium opens nothing")
        assert [each.content for each in ada.memories()] == ["Helium opens nothing"]
    assert number_of(store, "ada") > number
    remove_agent(store, "ada", confirm=True)
    remove_agent(store, "bob", confirm=True)
    with germane.open(store, agent="eve") as eve:
        eve.remember("New")
    assert number_of(store, "eve") > number + 1


def test_who_has_it_open_notices(store: str) -> None:
    with germane.open(store, agent="ada") as ada:
        for number in range(5):
            ada.remember(f"Argon opens door {number}")
        desk = ada.working_set("desk")
        desk.add(ada.memories()[0])
        ada.conversation("standup").append("user", "What does helium do?")
        for _ in range(4):  # So often that all of it is cached in the process.
            assert len(ada.recall("door", limit=5)) == 5
        assert [len(desk.items()), len(ada.conversation("standup").messages())] == [1, 1]

        remove_agent(store, "ada", confirm=True)

        assert list(ada.recall("door")) == []
        assert ada.assemble("What opens the door?", budget=2000).trace.included == ()
        assert [desk.items(), ada.conversation("standup").messages()] == [(), ()]
        assert (ada.memories(), ada.stats().memories) == ((), 0)
        # As many changes as before: nothing of that is taken for it.
        for number in range(5):
            ada.remember(f"Helium shuts gate {number}")
        assert [each.memory.content[:6] for each in ada.recall("door gate argon helium", limit=9)] == [
            "Helium"
        ] * 5
        desk.add(ada.memories()[0])
        assert [each.memory.content[:6] for each in desk] == ["Helium"]
        assert ada.doctor() == ()


def test_who_waits_is_woken(postgres_store: str) -> None:
    with germane.open(postgres_store, agent="ada") as ada:
        ada.remember("Argon opens the door")
    listens = PostgresStore(postgres_store)
    heard, steps = Event(), Event()
    forget = listens.notifications.subscribe("ada", lambda: steps.set() if heard.is_set() else heard.set())
    try:
        assert heard.wait(30)
        remove_agent(postgres_store, "ada", confirm=True)
        assert steps.wait(30)
    finally:
        forget()
        listens.close()


def test_a_row_in_every_table_goes(postgres_database: str) -> None:
    """Also where a removal was interrupted right after its beginning."""
    migrate_store(postgres_database, partitions=2)
    with psycopg.connect(postgres_database) as raw:
        number = fill(raw, "one")
        fill(raw, "two")
        raw.execute("UPDATE agents SET name = 'space: removed ' || agent WHERE agent = %s", (number,))
    kinds = {each.rstrip("_01") for each in traces(postgres_database, number)}
    assert kinds >= {*ROWS, "states", "agents"} - {"messages"}
    others = traces(postgres_database, number + 1)

    removal = remove_agent(postgres_database, "nobody", confirm=True)

    assert (removal.was_there, removal.finished) == (False, 1)
    assert traces(postgres_database, number) == {}
    left = traces(postgres_database, number + 1)
    # The agent is a space as well, and any answer may hold what was in it.
    assert others.pop("replies") != left.pop("replies")
    assert left == others


def test_what_was_interrupted_is_gone_on_with(store: str, tmp_path: Path) -> None:
    filled(store)
    number = number_of(store, "ada")

    def stop(done: int, total: int) -> None:
        assert 0 < done < total
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        remove_agent(store, "ada", confirm=True, progress=stop)

    # Nobody finds it any more, and what is left of it isn't taken for anybody's.
    status = store_status(store)
    assert (status.removing, status.agents, status.due) == (2, 2, status.due)
    assert status.due
    assert "2 agents; run `germane db remove` again" in run("db", "status", db=store).out
    with germane.open(store, agent="ada") as ada:
        assert ada.memories() == ()
    assert traces(store, number)
    copied = copy_store(store, tmp_path / "copy.db")
    assert [each.agent for each in copied.agents] == ["bob", "space:team"]
    with pytest.raises(NotFound):
        copy_store(store, tmp_path / "other.db", agents=["ada"])
    steps: list[tuple[int, int]] = []
    removal = remove_agent(store, "ada", confirm=True, progress=lambda *each: steps.append(each))
    assert (removal.was_there, removal.finished) == (False, 2)
    assert steps[-1][0] == steps[-1][1] == removal.rows
    assert traces(store, number) == {}
    assert store_status(store).removing == 0


RAISING = {
    "file": "CREATE TRIGGER broken BEFORE {what} ON {table} BEGIN SELECT RAISE(ABORT, 'no {what}'); END",
    "postgres": """
        CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'no {what}'; END $$;
        CREATE TRIGGER broken BEFORE {what} ON {table} FOR EACH ROW EXECUTE FUNCTION broken()
    """,
}
MENDED = {"file": "DROP TRIGGER broken", "postgres": "DROP FUNCTION broken CASCADE"}


def _changed(store: str, statements: dict[str, str], **marks: str) -> None:
    """Run what another program would, in the store's own database."""
    if store.startswith("postgresql:"):
        with psycopg.connect(store) as raw:
            raw.execute(statements["postgres"].format(**marks).encode())
    else:
        with closing(sqlite3.connect(store)) as raw:
            raw.execute(statements["file"].format(**marks))


@pytest.mark.parametrize(
    ("what", "table", "was_renamed"),
    [
        ("UPDATE", "space_events", False),  # What it did in the space becomes the space's.
        ("UPDATE", "moves", False),
        ("DELETE", "assemblies", True),
        ("DELETE", "changes", True),
        ("DELETE", "working_sets", True),
    ],
)
def test_an_agent_is_there_or_gone_after_a_failure(
    store: str, tmp_path: Path, what: str, table: str, was_renamed: bool
) -> None:
    filled(store)
    number = number_of(store, "ada")
    _changed(store, RAISING, what=what, table=table)

    with pytest.raises(GermaneError, match=f"no {what}"):
        remove_agent(store, "ada", confirm=True)

    with germane.open(store, agent="ada") as ada:
        assert len(ada.memories()) == (0 if was_renamed else 3)
    with germane.open(store, agent="bob") as bob:
        # Whoever acted in the space is still there, or it is the space itself.
        actors = {each.by for each in bob.space("team").events()}
        assert actors == ({"space:team"} if was_renamed else {"ada"})
        names = {each.agent for one in bob.ledger().list() for each in one.entries}
        assert names <= {"bob", "ada"}
        assert bob.ledger().list()[0].sha256 is None
        assert bob.doctor() == ()
    there = {"bob", "space:team"} | (set() if was_renamed else {"ada"})
    copied = copy_store(store, tmp_path / "during.db")
    assert {each.agent for each in copied.agents} == there
    assert (store_status(store).agents, bool(store_status(store).removing)) == (len(there), True)

    _changed(store, MENDED)
    removal = remove_agent(store, "ada", confirm=True)
    assert (removal.was_there, removal.finished > 0) == (not was_renamed, True)
    assert traces(store, number) == {}
    assert store_status(store).removing == 0
    if was_renamed:
        # What was copied meanwhile is what there is now.
        again = copy_store(store, tmp_path / "during.db")
        assert again.copied == 0
        assert [each.sha256 for each in again.agents] == [each.sha256 for each in copied.agents]


KILLED = """
import os, signal, sys
import germane.stores

def tell(done, total):
    os.kill(os.getpid(), signal.SIGKILL)

germane.stores.remove_agent(sys.argv[1], "ada", confirm=True, progress=tell)
"""


def test_a_removal_that_was_killed_is_finished_by_the_next(store: str) -> None:
    filled(store)
    number = number_of(store, "ada")
    killed = subprocess.run([sys.executable, "-c", KILLED, store], check=False, env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    assert store_status(store).removing
    shown = run("db", "remove", "--agent", "ada", "--yes", "--json", db=store).json()
    assert (shown["was_there"], shown["finished"] > 0) == (False, True)
    assert traces(store, number) == {}


def test_a_space_is_not_left_to_those_who_may_only_read(store: str) -> None:
    with germane.open(store, agent="ada") as ada, germane.open(store, agent="bob") as bob:
        ada.remember("Argon opens the door")
        ada.space("other", create=True).join("bob", rights="write")
        team = ada.space("team", create=True)
        team.join("bob", rights="read")
        with pytest.raises(LastActive, match="team"):
            remove_agent(store, "ada", confirm=True)
        # Nothing was changed by it.
        assert [each.agent for each in bob.space("other").members()] == ["ada", "bob"]
        assert len(ada.memories()) == 1
        team.disband(confirm=True)
        assert remove_agent(store, "ada", confirm=True).left == ("other",)


def test_who_waits_to_lead_does(store: str) -> None:
    with germane.open(store, agent="ada") as ada, germane.open(store, agent="bob") as bob:
        team = ada.space("team", create=True)
        team.join("bob", rights="write", role="passive")
        remove_agent(store, "ada", confirm=True)
        assert [(each.agent, str(each.role)) for each in bob.space("team").members()] == [("bob", "active")]
        bob.space("team").remember("It goes on")


WAITING = b"""
SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
"""


def test_whoever_writes_meanwhile_is_before_or_after(postgres_store: str) -> None:
    with germane.open(postgres_store, agent="ada") as ada:
        ada.remember("Argon opens the door")
        number = number_of(postgres_store, "ada")
        with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_store, autocommit=True) as looks:
            with psycopg.connect(postgres_store) as raw:
                # Both wait for their turn with the agent, and have looked up its number by its name.
                raw.execute("SELECT enter('ada', NULL, true)")
                writes = pool.submit(ada.remember, "Helium shuts the gate")
                removes = pool.submit(remove_agent, postgres_store, "ada", confirm=True)
                while looks.execute(WAITING).fetchall() != [(2,)]:
                    assert not writes.done()
            assert writes.result().id
            assert removes.result().was_there
        assert traces(postgres_store, number) == {}
        memories = [each.content for each in ada.memories()]
        assert memories in ([], ["Helium shuts the gate"])
        assert [each.content for each in ada.recall("gate")] == memories
        assert ada.doctor() == ()


def test_who_lets_it_into_a_space_meanwhile_is_waited_for(postgres_store: str) -> None:
    with germane.open(postgres_store, agent="bob") as bob, germane.open(postgres_store, agent="ada") as ada:
        bob.space("team", create=True)
        ada.remember("Argon opens the door")
        with ThreadPoolExecutor(1) as pool, psycopg.connect(postgres_store, autocommit=True) as looks:
            with psycopg.connect(postgres_store) as raw:
                raw.execute(
                    "INSERT INTO members SELECT space, number_of('ada'), 'write', 'active', 1, 2 FROM spaces"
                )
                removes = pool.submit(remove_agent, postgres_store, "ada", confirm=True)
                while looks.execute(WAITING).fetchall() != [(1,)]:
                    assert not removes.done()
            assert removes.result().left == ("team",)
        assert [each.agent for each in bob.space("team").members()] == ["bob"]


def test_an_index_of_its_vectors_goes_too(postgres_store: str) -> None:
    with germane.open(postgres_store, agent="ada") as ada:
        ada.remember("Argon opens the door")
    index_vectors(postgres_store, "ada")
    remove_agent(postgres_store, "ada", confirm=True)
    with psycopg.connect(postgres_store) as raw:
        left = raw.execute("SELECT relname FROM pg_class WHERE relname LIKE 'vectors_of_%'").fetchall()
    assert left == []


def test_a_file_keeps_no_byte(tmp_path: Path) -> None:
    store = tmp_path / "agent.db"
    filled(str(store))
    remove_agent(store, "ada", confirm=True)
    raw = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    for word in (b"Argon", b"Krypton", b"Neon", b"helium", b"fluorine", b"deciding"):
        assert word not in raw
    assert b"oolong" in raw


def test_a_server_keeps_no_byte_once_it_is_erased(postgres_database: str, postgres_server: Server) -> None:
    with germane.open(postgres_database, agent="adalovelace") as ada:
        ada.remember("Praseodymium opens the door", tags=["dysprosium"])
        ada.conversation("promethium").append("user", "What does it do?")
        ada.space("gadolinium", create=True).working_set("terbium").add(
            ada.space("gadolinium").remember("x y")
        )
    output = run("db", "remove", "--agent", "adalovelace", "--yes", db=postgres_database).out
    assert output.endswith("To erase the bytes too: germane db vacuum --erase\n")
    erase_purged(postgres_database)
    postgres_server.run("CHECKPOINT")
    raw = [data for _, data in contents(postgres_server.data / "base")]
    for word in (b"adalovelace", b"raseodymium", b"dysprosium", b"promethium", b"gadolinium", b"terbium"):
        assert not any(word in each for each in raw), word


def test_the_command_asks_and_tells(store: str) -> None:
    filled(store)
    refused = run("db", "remove", "--agent", "ada", db=store)
    assert (refused.code, "--yes on the command line" in refused.err) == (2, True)
    assert "Missing option '--agent'" in run("db", "remove", "--yes", db=store).err
    steps = run("db", "remove", "--agent", "ada", "--yes", db=store).out
    assert steps.startswith(f"{location_of(store)}: ada is removed, ")
    assert "It has left the spaces team; its memories there stay." in steps
    assert "Spaces deleted with it: attic." in steps
    assert "there is no agent ada" in run("db", "remove", "--agent", "ada", "--yes", db=store).out


def test_what_is_no_agent_is_refused(store: str, tmp_path: Path) -> None:
    filled(store)
    with pytest.raises(InvalidInput, match="those of spaces"):
        remove_agent(store, "space:team", confirm=True)
    with pytest.raises(PurgeNotConfirmed, match="'ada'"):
        remove_agent(store, "ada")
    with pytest.raises(StoreUnavailable, match="no store"):
        remove_agent(tmp_path / "none.db", "ada", confirm=True)
    assert not (tmp_path / "none.db").exists()


def test_an_application_may_not(postgres_store: str, postgres_server: Server) -> None:
    name = database_of(postgres_store)
    postgres_server.run("CREATE ROLE remover LOGIN")
    migrate_store(postgres_store, role="remover")
    try:
        filled(postgres_store)
        with pytest.raises(StoreUnavailable, match="address of the user who owns the tables"):
            remove_agent(postgres_server.url(name, user="remover"), "ada", confirm=True)
        assert store_status(postgres_store).removing == 0
        with germane.open(postgres_store, agent="ada") as ada:
            assert [each.name for each in ada.spaces()] == ["attic", "team"]
    finally:
        postgres_server.run("DROP OWNED BY remover", database=name)
        postgres_server.run("DROP ROLE remover")


def test_moving_is_to_copy_to_verify_and_to_remove(store: str, tmp_path: Path) -> None:
    filled(store)
    target = tmp_path / "other.db"
    report = copy_store(store, target, agents=["ada"])
    # The same call compares what is there already, and raises where it differs.
    again = copy_store(store, target, agents=["ada"])
    assert again.copied == 0
    assert [each.sha256 for each in again.agents] == [each.sha256 for each in report.agents]
    remove_agent(store, "ada", confirm=True)
    with germane.open(target, agent="ada") as ada:
        assert [each.content for each in ada.recall("What opens the door?", limit=1)] == [
            "Neon opens the door"
        ]
        assert ada.doctor() == ()


def test_a_space_moves_with_all_that_are_in_it(store: str, tmp_path: Path) -> None:
    with germane.open(store, agent="ada") as ada, germane.open(store, agent="bob") as bob:
        team = ada.space("team", create=True)
        team.join("bob", rights="write")
        bob.space("team").remember("The team likes oolong")
    number = number_of(store, "space:team")
    together = ["ada", "bob", "space:team"]
    copy_store(store, tmp_path / "other.db", agents=together)
    assert remove_agent(store, "ada", confirm=True).left == ("team",)
    assert remove_agent(store, "bob", confirm=True).ended == ("team",)
    assert store_status(store).agents == 0
    assert traces(store, number) == {}
    with germane.open(tmp_path / "other.db", agent="ada") as ada:
        assert [each.memory.content for each in ada.space("team").recall("oolong")] == [
            "The team likes oolong"
        ]


def test_many_rows_go_in_batches(store: str) -> None:
    with germane.open(store, agent="ada", embedder=None) as ada:
        ada.remember_many([f"Argon opens door {number}" for number in range(2500)])
    steps: list[tuple[int, int]] = []
    remove_agent(store, "ada", confirm=True, progress=lambda *each: steps.append(each))
    assert [done for done, _ in steps] == [1000, 2000, 2500, 3500, 4500, 5000]
    assert {total for _, total in steps} == {5000}

"""How often a server's answer is waited for, and how it is when what was sent ahead of one is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import psycopg
import pytest

import germane
from germane import Filter, Status
from germane.errors import InvalidInput, StoreError
from germane.stores import Insert, PostgresStore, SetStatus
from germane.testing.fakes import START, make_id, make_memories, make_memory
from support.databases import connections_to
from support.postgres_server import Server, database_of
from support.proxy import Broken, Way
from support.reads import reads
from support.writes import writes

pytestmark = pytest.mark.long

_MOST_TURNS = {
    "remember": 3,
    "remember 1,000": 8,  # Of which four pack these and others.
    "revise": 4,
    "forget": 4,
    "append to a conversation": 4,
    "record an assembly": 3,
    "remember in a space": 5,
    "touch in a shared set": 6,
}

# What is used seldom has its records read once ranking has chosen among them: one turn more of a recall,
# and a tenth of the rows.
_MOST_TURNS_TO_READ = {
    "recall": 4,
    "recall from a space": 6,
    "assemble": 3,
    "look at a working set": 2,
    "look at a shared set": 3,
    "add to a working set": 9,
    "add to a shared set": 14,
    "evict from a working set": 10,
}


@pytest.fixture
def way(postgres_server: Server) -> Iterator[Way]:
    opened = Way(postgres_server.folder)
    yield opened
    opened.close()


@pytest.fixture
def by_way(way: Way, postgres_store_database: str) -> Iterator[PostgresStore]:
    store = PostgresStore(way.url(database_of(postgres_store_database)), embedding=None)
    yield store
    store.close()


def test_a_write_waits_a_few_times_however_much_it_stores(way: Way, by_way: PostgresStore) -> None:
    assert _too_many(way, writes(by_way), _MOST_TURNS) == {}


def test_a_question_goes_with_the_beginning_of_its_transaction(
    way: Way, postgres_store_database: str
) -> None:
    url = way.url(database_of(postgres_store_database))
    with germane.open(url, agent="reader", embedder=None) as engine:
        assert _too_many(way, reads(engine), _MOST_TURNS_TO_READ) == {}


def test_a_read_that_fails_at_its_beginning_leaves_no_statement_behind_that_is_not_there(
    postgres_store_database: str,
) -> None:
    connections = connections_to(postgres_store_database)

    def divide() -> None:
        with connections.reading("tester") as connection:
            connection.run("moved", {"owner": "tester"})
            connection.send(b"SELECT 1 / 0")
            connection.run("happened", {"name": "tester"})

    for _ in range(4):
        with pytest.raises(InvalidInput, match="division by zero"):
            divide()
        for _ in range(4):
            with connections.reading("tester") as connection:
                rows = connection.run("moved", {"owner": "tester"}), connection.run("happened", {"name": "t"})
                assert [each.fetchall() for each in rows] == [[], []]
    connections.close()


def test_a_read_that_asks_or_looks_at_nothing_ends_as_others_do(postgres_store_database: str) -> None:
    connections = connections_to(postgres_store_database)
    with connections.reading():
        pass
    with connections.reading() as connection:
        connection.run("settings")
    with connections.reading() as connection:
        assert connection.run("settings").description
        assert connection.raw.execute("SELECT 1").fetchall() == [(1,)]
    connections.close()


def test_an_id_that_is_taken_is_named_and_nothing_of_the_write_is_stored(by_way: PostgresStore) -> None:
    first, other, new = (make_memory(text) for text in ("First.", "Other.", "New."))
    by_way.apply("tester", [Insert(memory=first)])
    taken = make_memory("Something else.", id=first.id)
    with pytest.raises(InvalidInput, match=f"The id '{first.version_id}' is taken by another memory"):
        by_way.apply("tester", [Insert(memory=other), Insert(memory=taken)])
    by_way.apply("tester", [Insert(memory=new)])
    assert {each.content for each in by_way.find("tester", Filter())} == {"First.", "New."}


def test_what_was_refused_first_is_raised_though_something_else_failed_after_it(
    by_way: PostgresStore,
) -> None:
    first = make_memory("First.")
    by_way.apply("tester", [Insert(memory=first)])
    taken = make_memory("Something else.", id=first.id)
    unknown = SetStatus(memory_id=make_id("unknown"), status=Status.FORGOTTEN, at=START)
    with pytest.raises(InvalidInput, match="is taken by another memory"):
        by_way.apply("tester", [Insert(memory=taken), unknown])


@pytest.mark.parametrize("when", ["before", "after", "meanwhile"])
def test_a_memory_whose_commit_was_not_answered_is_stored_once(
    way: Way, by_way: PostgresStore, when: Broken
) -> None:
    by_way.apply("tester", [Insert(memory=make_memory("First."))])
    way.break_at(b"COMMIT\0", when)
    by_way.apply("tester", [Insert(memory=make_memory("Kept."))])
    assert way.broken == 1
    stored = sorted((each.content, each.seen_count) for each in by_way.find("tester", Filter()))
    assert stored == [("First.", 1), ("Kept.", 1)]


def test_a_failure_that_was_seen_and_passed_over_is_not_stored(postgres_store_database: str) -> None:
    connections = connections_to(postgres_store_database)

    def swallow() -> None:
        with connections.writing() as connection:
            connection.run("add_setting", {"name": "lost", "value": "lost"})
            with suppress(psycopg.Error):
                connection.send(b"SELECT 1 / 0").fetchone()

    with pytest.raises(StoreError, match="failed unnoticed"):
        swallow()
    with connections.reading() as connection:
        assert ("lost", "lost") not in connection.run("settings").fetchall()
    connections.close()


def test_a_number_of_rows_is_waited_for(postgres_store_database: str) -> None:
    connections = connections_to(postgres_store_database)
    with connections.writing() as connection:
        connection.run("add_setting", {"name": "one", "value": "1"})
        assert connection.run("remove_setting", {"name": "one"}).rowcount == 1
        assert connection.run("remove_setting", {"name": "one"}).rowcount == 0
    connections.close()


def test_many_rows_are_not_looked_for_by_plans_made_for_few(
    postgres_server: Server, postgres_store_database: str
) -> None:
    store = PostgresStore(postgres_store_database, embedding=None)
    for each in make_memories(10):
        store.apply("tester", [Insert(memory=each)])
    for seed in range(1, 4):
        store.apply("tester", [Insert(memory=each) for each in make_memories(1000, seed=seed)])
    store.close()
    read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'memories'"
    ((rows,),) = postgres_server.run(read, database=database_of(postgres_store_database))
    # By the first plans every row that hangs on a memory would go through all of the agent's.
    assert 0 < int(str(rows)) < 3010 * 3010 / 4


def _too_many(
    way: Way, acts: Mapping[str, Callable[[], object]], limits: Mapping[str, int]
) -> dict[str, int]:
    """Which of the acts that have a limit took more turns than that, or none."""
    turns: dict[str, int] = {}
    for name in limits:
        for _ in range(4):  # Statements are prepared when they come the third time.
            acts[name]()
        # A long answer comes in parts, between which more may be sent, and then counts as several.
        turns[name] = min(_turns(way, acts[name]) for _ in range(3))
    return {name: count for name, count in turns.items() if not 0 < count <= limits[name]}


def _turns(way: Way, act: Callable[[], object]) -> int:
    before = way.turns
    act()
    return way.turns - before

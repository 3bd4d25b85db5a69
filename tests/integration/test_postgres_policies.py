"""Row by row: what a role that isn't the owner sees of another agent by plain SQL, which is nothing."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from support.postgres_rows import ROWS, fill
from support.postgres_schema import APPLICATION_ROLE, DISTRIBUTED, PARTITIONS, as_store, connected

Connection = psycopg.Connection[tuple[Any, ...]]

OWNED = ("states", *ROWS)
DIRECTORIES = {"agents", "spaces", "members"}  # Names, and who is in which space, can be read by all.


@pytest.fixture
def application(postgres_owner: Connection) -> Connection:
    """A connection that isn't the owner's, where two agents have a row in every table."""
    if postgres_owner.execute(b"SELECT FROM agents WHERE name = 'two'").rowcount == 0:
        for name in ("one", "two"):
            fill(postgres_owner, name)
        postgres_owner.commit()  # For the other tests here.
    postgres_owner.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}".encode())
    return postgres_owner


def enter(connection: Connection, name: str | None, acting: str | None = None) -> int | None:
    number: int | None
    [(number,)] = connection.execute(b"SELECT enter(%s, %s)", (name, acting))
    return number


def number_of(connection: Connection, name: str) -> int:
    [(number,)] = connection.execute(b"SELECT number_of(%s)", (name,))
    return int(number)


def owner_column(table: str) -> str:
    return "space" if table in {"spaces", "members", "space_events"} else "agent"


def refused(connection: Connection, statement: str, values: tuple[Any, ...] = ()) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
        connection.execute(statement.encode(), values)


def test_every_table_with_an_agent_is_here(application: Connection) -> None:
    rows = application.execute(
        b"SELECT relname FROM pg_class WHERE relrowsecurity AND NOT relispartition"
        b" AND relnamespace = current_schema()::regnamespace"
    )
    assert {name for (name,) in rows} == {*OWNED, "agents", "erasures"}


def test_what_is_to_be_erased_is_noted_for_the_agent_entered_alone(application: Connection) -> None:
    one, two = number_of(application, "one"), number_of(application, "two")
    enter(application, "one")
    application.execute(b"SELECT note_erasure(%s, 'memories')", (one,))
    refused(application, "SELECT note_erasure(%s, 'memories')", (two,))
    refused(application, "DELETE FROM erasures")
    noted = application.execute(b"SELECT agent, what FROM erasures").fetchall()
    assert noted == [(one, "memories")]
    enter(application, "two")
    assert application.execute(b"SELECT agent FROM erasures").fetchall() == []
    application.rollback()


@pytest.mark.parametrize("table", sorted(set(OWNED) - DIRECTORIES))
def test_nothing_is_visible_before_an_agent_is_entered(application: Connection, table: str) -> None:
    for setting in (None, ""):
        if setting is not None:
            application.execute(b"SELECT set_config('germane.agent', %s, true)", (setting,))
        assert application.execute(f"SELECT * FROM {table}".encode()).fetchall() == []
    assert enter(application, None) is None
    assert enter(application, "nobody") is None
    assert application.execute(f"SELECT * FROM {table}".encode()).fetchall() == []


@pytest.mark.parametrize("table", sorted(set(OWNED) - DIRECTORIES))
def test_an_agent_sees_its_own_rows_alone(application: Connection, table: str) -> None:
    for name in ("one", "two"):
        number = enter(application, name)
        column = owner_column(table)
        assert application.execute(f"SELECT {column} FROM {table}".encode()).fetchall() == [(number,)]
        assert (
            application.execute(f"SELECT FROM {table} WHERE {column} <> %s".encode(), (number,)).rowcount == 0
        )


@pytest.mark.parametrize("table", OWNED)
def test_an_agent_changes_no_row_of_another(application: Connection, table: str) -> None:
    enter(application, "one")
    other = number_of(application, "two")
    column = owner_column(table)
    for statement in (f"UPDATE {table} SET {column} = {column}", f"DELETE FROM {table}"):
        assert application.execute(f"{statement} WHERE {column} = %s".encode(), (other,)).rowcount == 0
    enter(application, "two")
    rows = application.execute(f"SELECT FROM {table} WHERE {column} = %s".encode(), (other,))
    assert rows.rowcount == 1


@pytest.mark.parametrize("table", OWNED)
def test_an_agent_gives_no_row_to_another(application: Connection, table: str) -> None:
    enter(application, "one")
    other = number_of(application, "two")
    column = owner_column(table)
    refused(application, f"UPDATE {table} SET {column} = %s", (other,))
    given = ROWS.get(table, {})
    row = {name: other if value is None else value for name, value in given.items()} | {column: other}
    row |= {"num": (other << 40) + 9} if "num" in _columns(application, table) else {}
    marks = ", ".join(["%s"] * len(row))
    refused(application, f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def _columns(connection: Connection, table: str) -> set[str]:
    rows = connection.execute(
        b"SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0", (table,)
    )
    return {name for (name,) in rows}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO agents (name) VALUES ('three')",
        "UPDATE agents SET name = 'three'",
        "DELETE FROM agents",
        "INSERT INTO migrations (number, name) VALUES (9, 'nine')",
        "ALTER TABLE memories DISABLE ROW LEVEL SECURITY",
        "TRUNCATE memories CASCADE",
        "UPDATE settings SET value = 'x'",
        "DELETE FROM settings",
        "INSERT INTO settings VALUES ('tokenizer', 'x') ON CONFLICT (name) DO UPDATE SET value = 'x'",
        "UPDATE commits SET at = now()",
        "DELETE FROM commits",
        "SELECT token FROM commits",
        "INSERT INTO commits (token, at) VALUES (gen_random_uuid(), now() - interval '1 day')",
        "TRUNCATE commits",
    ],
)
def test_an_application_names_no_agent_and_changes_no_table(application: Connection, statement: str) -> None:
    enter(application, "one")
    refused(application, statement)


# The tables that no policy guards: an application may add to them what isn't there yet, and no more.
UNGUARDED = {"migrations", "settings", "commits"}


@pytest.mark.parametrize("verb", ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"])
@pytest.mark.parametrize("agent", [None, "one"])
def test_no_verb_on_any_table_reaches_what_is_not_the_agents(
    application: Connection, verb: str, agent: str | None
) -> None:
    """Of all tables of the schema: one that is added later has to be named here."""
    rows = application.execute(
        b"SELECT relname, relrowsecurity, has_table_privilege(oid, %s) FROM pg_class"
        b" WHERE relkind IN ('r', 'p') AND NOT relispartition"
        b" AND relnamespace = current_schema()::regnamespace",
        (verb,),
    ).fetchall()
    assert {name for name, *_ in rows} == {*OWNED, "agents", "erasures", *UNGUARDED}
    assert {name for name, guarded, _ in rows if not guarded} == UNGUARDED
    allowed = {name for name, _, may in rows if may}
    if verb in {"UPDATE", "DELETE", "TRUNCATE"}:
        assert not allowed & (UNGUARDED | {"agents", "erasures"})
    assert verb != "TRUNCATE" or not allowed
    assert verb != "INSERT" or allowed & UNGUARDED <= {"settings"}  # Of `commits` one column, see above.
    if agent is not None:
        enter(application, agent)
    for table in sorted(allowed - UNGUARDED - {"agents", "erasures"}):
        column, mine = owner_column(table), number_of(application, agent) if agent else -1
        if verb == "SELECT" and table not in DIRECTORIES:
            found = application.execute(f"SELECT FROM {table} WHERE {column} <> %s".encode(), (mine,))
            assert found.rowcount == 0
        elif verb == "UPDATE":
            changed = f"UPDATE {table} SET {column} = {column} WHERE {column} <> %s"
            assert application.execute(changed.encode(), (mine,)).rowcount == 0
        elif verb == "DELETE":
            gone = application.execute(f"DELETE FROM {table} WHERE {column} <> %s".encode(), (mine,))
            assert gone.rowcount == 0


@pytest.mark.parametrize("agent", [None, "one"])
def test_settings_and_tokens_are_safe_whether_an_agent_is_entered_or_not(
    application: Connection, agent: str | None
) -> None:
    if agent is not None:
        enter(application, agent)
    for table in ("settings", "commits"):
        refused(application, f"DELETE FROM {table}")
        refused(application, f"UPDATE {table} SET {'value' if table == 'settings' else 'token'} = DEFAULT")


def test_tokens_are_left_and_swept_when_nobody_can_ask_for_them(application: Connection) -> None:
    new, old = "0" * 31 + "1", "0" * 31 + "2"
    application.execute(b"RESET ROLE")
    application.execute(
        b"INSERT INTO commits (token, at) VALUES (%s::uuid, now() - interval '1 hour')", (old,)
    )
    application.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}".encode())
    left = b"INSERT INTO commits (token) VALUES (%s::uuid) ON CONFLICT DO NOTHING"
    assert [application.execute(left, (token,)).rowcount for token in (new, new, old)] == [1, 0, 0]
    application.execute(b"SELECT sweep_commits()")
    assert [application.execute(left, (token,)).rowcount for token in (new, old)] == [0, 1]
    application.rollback()


@pytest.mark.parametrize("postgres_schema", ["partitioned"], indirect=True)
@pytest.mark.parametrize("table", DISTRIBUTED)
def test_no_partition_is_read_past_its_parent(application: Connection, table: str) -> None:
    """Not even where somebody grants the rights on everything there is."""
    for number in range(PARTITIONS):
        refused(application, f"SELECT FROM {table}_{number}")
    application.execute(b"RESET ROLE")
    for number in range(PARTITIONS):
        application.execute(f"GRANT SELECT ON {table}_{number} TO {APPLICATION_ROLE}".encode())
    application.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}".encode())
    enter(application, "one")
    for number in range(PARTITIONS):
        assert application.execute(f"SELECT * FROM {table}_{number}".encode()).fetchall() == []


@pytest.mark.parametrize(
    "call",
    [
        "postings_of(%s, ARRAY[1])",
        "purge_memory(%s, 1)",
        "keep_candidate(%s, 1, 1, 'two', '', 1, '', 1, '', '', '', 1, 1, 0)",
        "candidates_of(%s, 1, '')",
    ],
)
def test_a_function_of_the_owners_serves_only_the_agent_that_was_entered(
    application: Connection, call: str
) -> None:
    other = number_of(application, "two")
    refused(application, f"SELECT {call}", (other,))
    enter(application, "one")
    refused(application, f"SELECT {call}", (other,))
    enter(application, "two")
    if not call.startswith("keep_candidate"):
        application.execute(f"SELECT {call}".encode(), (other,))


def test_functions_take_no_table_of_the_callers_for_their_own(application: Connection) -> None:
    rows = application.execute(
        b"SELECT proname, proconfig FROM pg_proc WHERE prosecdef"
        b" AND pronamespace = current_schema()::regnamespace AND proowner <> 0"
    ).fetchall()
    paths = {
        name: [each for each in config or () if each.startswith("search_path=")] for name, config in rows
    }
    assert {"enter", "add_agent", "postings_of", "purge_memory", "keep_candidate", "candidates_of"} <= set(
        paths
    )
    assert [name for name, path in paths.items() if not path or not path[0].endswith("pg_temp")] == []
    # Else a table of a session's own is found first.
    application.execute(b"CREATE TEMPORARY TABLE agents AS SELECT 1::bigint AS agent, 'three' AS name")
    assert enter(application, "three") is None


def test_what_is_entered_ends_with_the_transaction(postgres_schema: str) -> None:
    with connected(postgres_schema, autocommit=True) as connection:
        connection.execute(b"SELECT add_agent('lasting')")
        connection.execute(f"SET ROLE {APPLICATION_ROLE}".encode())
        with connection.transaction():
            assert enter(connection, "lasting") is not None
            assert connection.execute(b"SELECT FROM states").rowcount == 1
        assert connection.execute(b"SELECT FROM states").rowcount == 0


def test_who_acts_for_another_sees_only_spaces_that_let_it_in(application: Connection) -> None:
    """The rows of `fill` make each of the agents a space too, of which it is the only member."""
    assert enter(application, "one", "one") == number_of(application, "one")
    assert enter(application, "two", "one") is None
    assert application.execute(b"SELECT FROM memories").rowcount == 0
    enter(application, "two")
    member = "INSERT INTO members SELECT space, %s, rights, role, joined_at, 2 FROM members WHERE space = %s"
    one, two = (number_of(application, name) for name in ("one", "two"))
    application.execute(member.encode(), (one, two))
    assert enter(application, "two", "one") == two
    assert application.execute(b"SELECT agent FROM memories").fetchall() == [(two,)]
    assert enter(application, "two", "nobody") is None
    application.execute(b"SELECT enter('two')")
    application.execute(b"DELETE FROM members WHERE agent = %s AND space = %s", (one, two))
    assert enter(application, "two", "one") is None


def test_nobody_lets_itself_into_a_space_that_it_has_not_entered(application: Connection) -> None:
    one = enter(application, "one")
    two = number_of(application, "two")
    member = "INSERT INTO members (space, agent, rights, role, joined_at, place)"
    refused(application, f"{member} VALUES (%s, %s, 'write', 'active', 1, 2)", (two, one))


def test_a_new_agent_is_entered_where_the_transaction_is_about_it(application: Connection) -> None:
    assert enter(application, "three") is None
    ours = as_store(application)
    ours.run("add_agent", {"name": "another"})
    assert application.execute(b"SELECT FROM states").rowcount == 0
    ours.run("add_agent", {"name": "three"})
    [row] = ours.run("agent", {"name": "three"})
    assert row[:3] == (number_of(application, "three"), 0, "english")
    assert enter(application, "four", "one") is None
    ours.run("add_agent", {"name": "four"})
    assert ours.run("agent", {"name": "four"}).fetchall() == []


def test_a_name_that_is_known_uses_up_no_number(application: Connection) -> None:
    ours = as_store(application)
    enter(application, "three")
    [(first,)] = ours.run("add_agent", {"name": "three"})
    for _ in range(5):
        [(again,)] = ours.run("add_agent", {"name": "three"})
        assert again == first
        ours.run("add_conversation", {"agent": "three", "session": "s"})
        ours.run("add_working_set", {"agent": first, "set_name": "w", "max_tokens": 1})
    [(following,)] = ours.run("add_agent", {"name": "four"})
    assert following == first + 1
    ours.run("add_conversation", {"agent": "three", "session": "t"})
    ours.run("add_working_set", {"agent": first, "set_name": "v", "max_tokens": 1})
    numbers = application.execute(b"SELECT conversation FROM conversations ORDER BY 1").fetchall()
    assert numbers[1][0] == numbers[0][0] + 1
    numbers = application.execute(b"SELECT working_set FROM working_sets ORDER BY 1").fetchall()
    assert numbers[1][0] == numbers[0][0] + 1


def test_one_writes_for_an_agent_at_a_time(postgres_schema: str) -> None:
    with psycopg.connect(postgres_schema) as first, psycopg.connect(postgres_schema) as second:
        first.execute(b"SELECT add_agent('waiting')")
        first.execute(b"SELECT add_agent('other')")
        first.commit()
        for query in (b"SELECT enter('waiting', NULL, true)", b"SELECT seq FROM states FOR UPDATE"):
            first.execute(query)
            second.execute(b"SET LOCAL lock_timeout = '20ms'")
            second.execute(b"SELECT enter('waiting')")  # Who reads doesn't wait.
            with pytest.raises(psycopg.errors.LockNotAvailable):
                second.execute(b"SELECT enter('waiting', NULL, true)")
            second.rollback()
            first.rollback()
        second.execute(b"SELECT enter('waiting', NULL, true)")


def test_a_purge_takes_back_what_assemblies_say_of_a_memory(application: Connection) -> None:
    """Also those of the members of a space, whose rows the transaction of the purge doesn't see."""
    one, two = (number_of(application, name) for name in ("one", "two"))
    ours = as_store(application)
    enter(application, "one")
    named = ("section", "parts", "level", "reason")
    row = {"agent": one, "number": 1, "id": ROWS["memories"]["id"], "score": 1.0, **dict.fromkeys(named, "")}
    row |= {"version": 1, "tokens": 1, "short_by": 0, "pinned": 0, "reason": None}
    assert ours.run("insert_assembled", {**row, "owner": "two", "place": 7}).rowcount == 1
    assert ours.run("insert_assembled", {**row, "owner": "two", "place": 8, "id": b"x" * 16}).rowcount == 0
    parameters = {"agent": one, "number": 1, "context": ROWS["shown"]["context"]}
    assert [each[3] for each in ours.run("assembled", parameters)] == ["one", "two"]
    assert [each[-1] for each in ours.run("assembled", parameters)] == [1, None]
    enter(application, "two")
    ours.run("purge_memory", {"agent": two, "num": (two << 40) + 1})
    for table in ("memories", "texts", "lex", "vectors", "tags", "held", "assembled"):
        assert application.execute(f"SELECT FROM {table}".encode()).rowcount == 0
    assert application.execute(b"SELECT sha256 FROM assemblies").fetchall() == [(None,)]
    enter(application, "one")
    assert [each[3] for each in ours.run("assembled", parameters)] == ["one"]
    assert application.execute(b"SELECT sha256 FROM assemblies").fetchall() == [(None,)]
    assert application.execute(b"SELECT FROM memories").rowcount == 1


def test_a_purge_waits_for_an_assembly_that_is_being_recorded_with_the_memory(postgres_schema: str) -> None:
    """Else it wouldn't see what it has to take back, and a hash of the purged text would stay."""
    with psycopg.connect(postgres_schema) as recording, psycopg.connect(postgres_schema) as purging:
        for name in ("reader", "shared"):
            fill(recording, name)
        recording.commit()
        reader, shared = (number_of(recording, name) for name in ("reader", "shared"))
        enter(recording, "reader")
        candidate = b"SELECT keep_candidate(%s, 1, 5, 'shared', %s, 1, '', 1, '', NULL, NULL, 1, 0, 0)"
        assert recording.execute(candidate, (reader, ROWS["memories"]["id"])).rowcount == 1
        purge = b"SELECT purge_memory(%s, %s)"
        enter(purging, "shared")
        purging.execute(b"SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            purging.execute(purge, (shared, (shared << 40) + 1))
        purging.rollback()
        recording.commit()
        enter(purging, "shared")
        purging.execute(purge, (shared, (shared << 40) + 1))
        enter(recording, "reader")
        recording.execute(b"SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            recording.execute(candidate, (reader, ROWS["memories"]["id"]))
        recording.rollback()
        purging.commit()
        enter(recording, "reader")
        assert recording.execute(candidate, (reader, ROWS["memories"]["id"])).rowcount == 0
        left = recording.execute(b"SELECT count(*) FROM assembled WHERE num = %s", ((shared << 40) + 1,))
        assert left.fetchall() == [(0,)]
        hashes = recording.execute(b"SELECT sha256 FROM assemblies WHERE agent = %s", (reader,))
        assert hashes.fetchall() == [(None,)]

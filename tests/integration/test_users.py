"""The users of an agent: what each of them shares with the agent, and what a purge of one removes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import germane
from commandline import run
from germane import Engine, InvalidInput, NotFound
from germane.errors import AssemblyNotFound, LastActive, NotAllowed, PurgeNotConfirmed
from germane.importers import import_source
from germane.stores import StoreHandle, migrate_store, remove_agent, store_status
from support.postgres_server import Server, database_of
from support.traces import number_of, texts, traces

ALICE, BOB = "user:alice:newton", "user:bob:newton"


@pytest.fixture(params=["file", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind, without any agent."""
    return (
        str(tmp_path / "agent.db")
        if request.param == "file"
        else str(request.getfixturevalue("postgres_store"))
    )


@pytest.fixture
def store(location: str) -> Iterator[StoreHandle]:
    with germane.connect(location, record=True) as handle:
        yield handle


def fill(agent: Engine, user: str, word: str) -> Engine:
    """An engine of that user with something in every table; each text has the word."""
    engine = agent.for_user(user)
    first = engine.remember(f"{word} opens the door", kind="decision", tags=[word], metadata={"of": word})
    engine.revise(first.id, f"{word} opens the window")
    fact = engine.remember(f"{word} is a fact", kind="fact", subject=word)
    engine.confirm(fact.id)
    engine.working_set(f"desk of {word}").add(fact)
    engine.set_learning(on=True)
    context = engine.assemble(f"What does {word} open?", budget=2000, record=True)
    engine.feedback(context, used=[fact.id])
    engine.outcome(context, "success")
    talk = engine.conversation(f"talk of {word}")
    talk.append("user", f"What does {word} do?")
    talk.append("assistant", f"It opens. ### STATE\ndeciding on {word}")
    talk.summary()
    engine.request(talk, memory="layered", record=True)
    return engine


def test_a_user_reads_what_the_agent_knows_and_changes_none_of_it(store: StoreHandle) -> None:
    newton = store.agent("newton")
    alice = newton.for_user("alice")
    own = newton.remember("The office opens at nine", kind="fact")
    hers = alice.remember("Alice comes to the office at ten", kind="fact")

    assert {each.memory.id for each in alice.recall("office")} == {own.id, hers.id}
    assert "nine" in alice.assemble("When does the office open?", budget=500).text
    assert (alice.get(own.id), alice.count(), newton.count()) == (own, 2, 1)
    assert (own.user, hers.user, alice.user, newton.user) == (None, "alice", "alice", None)
    assert [each.stage for each in alice.lifecycle_states([own.id, hers.id])] == ["new", "new"]
    for change in (alice.forget, alice.revise, alice.confirm, alice.retire):
        with pytest.raises(InvalidInput, match="Use the engine of the agent itself"):
            change(own.id)
    assert [each.memory.id for each in newton.recall("office")] == [own.id]
    with pytest.raises(NotFound):
        newton.get(hers.id)


def test_what_must_stand_in_a_context_is_the_agents_and_the_users_own(store: StoreHandle) -> None:
    newton = store.agent("newton")
    alice, bob = newton.for_user("alice"), newton.for_user("bob")
    newton.remember("Never name prices.", kind="constraint", metadata={"action": "block"})
    alice.remember("Never call Alice by phone.", kind="constraint", metadata={"action": "block"})
    hers = alice.assemble("Hello", budget=300).text
    assert "prices" in hers
    assert "Alice by phone" in hers
    for other in (bob, newton):
        assert "prices" in other.assemble("Hello", budget=300).text
        assert "Alice" not in other.assemble("Hello", budget=300).text


def test_an_import_for_a_user_leaves_the_agents_own_files_alone(store: StoreHandle, tmp_path: Path) -> None:
    newton = store.agent("newton")
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\nThe cache lives in Redis.\n", encoding="utf-8")
    import_source(newton, str(notes))
    before = newton.memories()
    alice = newton.for_user("alice")
    notes.write_text("# Notes\n\nThe cache lives in memory.\n", encoding="utf-8")
    import_source(alice, str(notes))
    assert newton.memories() == before
    own = [each for each in alice.memories() if each.user == "alice"]
    assert len(own) == 1


def test_names_that_cannot_be_a_users_are_refused(store: StoreHandle) -> None:
    newton = store.agent("newton")
    for name in ("", " alice", "a\nb", "x" * 201):
        with pytest.raises(InvalidInput, match="user="):
            newton.for_user(name)
        with pytest.raises(InvalidInput, match="user="):
            store.purge_user(name, confirm=True)
    with pytest.raises(InvalidInput, match="for_user"):
        newton.for_user("alice").for_user("bob")
    with pytest.raises(InvalidInput, match="user:"):
        store.agent(ALICE)


def test_names_with_colons_are_of_different_users(store: StoreHandle) -> None:
    pairs = [("a", "b:c"), ("a:b", "c"), ("a%3Ab", "c"), ("a%", "c")]
    for user, agent in pairs:
        store.agent(agent).for_user(user).remember(f"{user} of {agent}")
    assert store.users() == {"a": ("b:c",), "a:b": ("c",), "a%3Ab": ("c",), "a%": ("c",)}
    for user, agent in pairs:
        engine = store.agent(agent).for_user(user)
        assert [each.content for each in engine.memories()] == [f"{user} of {agent}"]
    assert store.purge_user("a", confirm=True).agents == ("b:c",)
    assert set(store.users()) == {"a:b", "a%3Ab", "a%"}


def test_an_error_names_the_user_and_the_agent(store: StoreHandle) -> None:
    bob = store.agent("support").for_user("bo:b")
    with pytest.raises(NotFound, match=r"belongs to user 'bo:b' of agent 'support'\."):
        bob.get("ffffffff")
    with pytest.raises(AssemblyNotFound, match="of user 'bo:b' of agent 'support' has no"):
        bob.ledger().show("ffffffff")


def test_a_purge_takes_all_of_one_user_and_nothing_else(location: str, store: StoreHandle) -> None:
    newton, curie = store.agent("newton"), store.agent("curie")
    newton.remember("Xenon is the agent's own")
    alice = fill(newton, "alice", "Argon")
    fill(curie, "alice", "Krypton")
    bob = fill(newton, "bob", "Neon")
    # Another handle of the process, opened in another way, has read her texts as well.
    other = germane.open(location, agent="curie", read_only=True, counter="estimate")
    assert other.for_user("alice").assemble("Krypton?", budget=500).text
    assert store.users() == {"alice": ("curie", "newton"), "bob": ("newton",)}
    numbers = [number_of(location, name) for name in (ALICE, "user:alice:curie")]
    before = traces(location, number_of(location, BOB))
    with pytest.raises(PurgeNotConfirmed, match="alice"):
        store.purge_user("alice")
    assert alice.count() == 4

    steps: list[tuple[int, int]] = []
    removal = store.purge_user("alice", confirm=True, progress=lambda *each: steps.append(each))

    assert (store.stats().caches.entries, store.stats().conversation_caches.entries) == (0, 0)
    assert (removal.was_there, removal.agents, removal.left) == (True, ("newton", "curie"), ())
    assert steps[-1] == (removal.rows, removal.rows)
    assert store.users() == {"bob": ("newton",)}
    for number in numbers:
        assert traces(location, number) == {}
    assert traces(location, number_of(location, BOB)) == before
    assert "Argon" not in texts(location)
    assert "Krypton" not in texts(location)
    assert [each.content for each in alice.memories()] == ["Xenon is the agent's own"]
    assert (alice.sessions(), alice.ledger().list(), alice.working_set("desk of Argon").items()) == (
        (),
        (),
        (),
    )
    assert "Krypton" not in other.for_user("alice").assemble("Krypton?", budget=500).text
    assert bob.recall("Neon door")[0].memory.content.startswith("Neon")
    assert (store.purge_user("alice", confirm=True).was_there, newton.doctor()) == (False, ())
    other.close()


def test_a_file_has_no_byte_of_a_purged_user(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.connect(path, record=True) as store:
        fill(store.agent("newton"), "alice", "Argon")
        fill(store.agent("newton"), "bob", "Neon")
        store.purge_user("alice", confirm=True)
        raw = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"rgon" not in raw
    assert b"alice" not in raw
    assert b"Neon" in raw


KILLED = """
import os, signal, sys
import germane

def tell(done, total):
    os.kill(os.getpid(), signal.SIGKILL)

germane.connect(sys.argv[1]).purge_user("alice", confirm=True, progress=tell)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="This system has no such signal.")
def test_an_interrupted_purge_is_finished_by_the_next(location: str, store: StoreHandle) -> None:
    fill(store.agent("newton"), "alice", "Argon")
    number = number_of(location, ALICE)
    subprocess.run([sys.executable, "-c", KILLED, location], check=False, env=dict(os.environ))
    assert store_status(location).removing
    # From the first moment on nobody finds the user.
    assert store.users() == {}
    assert store.agent("newton").for_user("alice").count() == 0
    removal = store.purge_user("alice", confirm=True)
    assert (removal.was_there, removal.finished) == (False, 1)
    assert traces(location, number) == {}


def test_an_agent_goes_with_its_users(location: str, store: StoreHandle) -> None:
    fill(store.agent("newton"), "alice", "Argon")
    fill(store.agent("newton"), "bob", "Neon")
    fill(store.agent("isaac:newton"), "alice", "Xenon")
    removal = remove_agent(location, "newton", confirm=True)
    assert sorted(removal.agents) == ["newton", "newton"]
    assert store.users() == {"alice": ("isaac:newton",)}
    left = texts(location)
    assert "Argon" not in left
    assert "Neon" not in left
    assert "Xenon" in left


def test_a_purge_of_the_agents_own_reaches_its_users_ledgers(location: str, store: StoreHandle) -> None:
    newton = store.agent("newton")
    own = newton.remember("The office opens at nine", kind="fact")
    alice = newton.for_user("alice")
    alice.remember("Alice is late", kind="fact")
    context = alice.assemble("When does the office open?", budget=500, record=True)
    assert own.id in {each.memory_id.partition("@")[0] for each in context.trace.included}
    recorded = alice.ledger().list()[0]
    assert recorded.sha256 is not None
    assert alice.ledger().replay(recorded.id).same

    newton.purge(own.id, confirm=True)

    after = alice.ledger().show(recorded.id)
    assert after.sha256 is None
    assert own.id not in {each.memory_id.partition("@")[0] for each in after.entries}
    assert "nine" not in texts(location)


def test_a_user_is_a_member_of_spaces_in_its_own_right(store: StoreHandle) -> None:
    newton = store.agent("newton")
    alice, bob = newton.for_user("alice"), newton.for_user("bob")
    newton.remember("The agent's own stays out of the space")
    newton.space("club", create=True, admits=None).remember("The club meets on Monday")

    # Membership of the agent isn't its users'.
    assert alice.spaces() == ()
    with pytest.raises(NotAllowed):
        alice.recall("club", spaces=["club"])
    with pytest.raises(NotAllowed):
        alice.space("club").join()
    newton.space("club").join(alice.space("club").member, rights="read")
    assert [each.agent for each in newton.space("club").members()] == ["newton", ALICE]
    assert (
        alice.recall("when does the club meet", spaces=["club"])[0].memory.content
        == "The club meets on Monday"
    )
    assert [each.content for each in alice.space("club").memories()] == ["The club meets on Monday"]
    with pytest.raises(NotAllowed):
        alice.space("club").remember("She may only read")
    with pytest.raises(NotAllowed):
        bob.space("club").memories()
    for name in ("user::newton", "user:alice", "user:alice: "):
        with pytest.raises(InvalidInput):
            newton.space("club").join(name)
    assert store.purge_user("alice", confirm=True).left == ("club",)
    assert [each.agent for each in newton.space("club").members()] == ["newton"]


def test_no_space_is_left_to_readers_and_nothing_is_half_done(store: StoreHandle) -> None:
    curie, newton = (store.agent(name).for_user("alice") for name in ("curie", "newton"))
    curie.remember("Argon")
    team = newton.space("team", create=True)
    team.join("bob", rights="read")
    with pytest.raises(LastActive, match="team"):
        store.purge_user("alice", confirm=True)
    assert store.users() == {"alice": ("curie", "newton")}
    # Where all who are in it go, it goes with them.
    team.leave("bob")
    team.join("user:alice:curie", rights="read")
    assert store.purge_user("alice", confirm=True).ended == ("team",)


def test_a_role_that_entered_one_user_reads_no_other(
    postgres_store_database: str, postgres_server: Server
) -> None:
    with germane.connect(postgres_store_database, record=True) as store:
        fill(store.agent("newton"), "alice", "Argon")
        fill(store.agent("newton"), "bob", "Neon")
        store.agent("newton").space("club", create=True)
    numbers = [number_of(postgres_store_database, name) for name in (ALICE, BOB)]
    hers = traces(postgres_store_database, numbers[0])
    postgres_server.run(
        "DO $$ BEGIN CREATE ROLE plain LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    migrate_store(postgres_store_database, role="plain")
    application = postgres_server.url(database_of(postgres_store_database), user="plain")
    try:
        with psycopg.connect(application) as raw:
            raw.execute("SELECT enter(%s, NULL)", (BOB,))
            for table in sorted(set(hers) - {"agents"}):
                names = [
                    each.name
                    for each in raw.execute(f"SELECT * FROM {table} LIMIT 0".encode()).description or ()
                ]
                owner = "agent" if "agent" in names else "conversation" if "conversation" in names else "num"
                shift = {"agent": "agent", "conversation": "conversation >> 32", "num": "num >> 40"}[owner]
                seen = raw.execute(f"SELECT DISTINCT {shift} FROM {table}".encode()).fetchall()
                assert {number for (number,) in seen} <= {numbers[1]}, table
        with germane.connect(application) as store:
            bob = store.agent("newton").for_user("bob")
            assert bob.memories(order="oldest")[0].content.startswith("Neon")
            bob.remember("Neon again")
            assert bob.ledger().list()
    finally:
        postgres_server.run("DROP OWNED BY plain", database=database_of(postgres_store_database))


def test_a_command_is_bound_to_a_user(tmp_path: Path) -> None:
    db, agent = tmp_path / "agent.db", ("--agent", "newton")
    run("remember", "The office opens at nine.", *agent, db=db)
    made = run(
        "remember", "Alice comes to the office at ten.", *agent, "--user", "alice", "--json", db=db
    ).json()
    assert made["memory"]["agent"] == ALICE
    assert len(run("recall", "office", *agent, "--user", "alice", "--json", db=db).json()["results"]) == 2
    for other in ((), ("--user", "bob")):
        assert "ten" not in run("recall", "office", *agent, *other, db=db).out
    exported = run("export", *agent, "--user", "alice", db=db).out
    assert ("ten" in exported, "nine" in exported, "alice" in exported) == (True, False, False)
    run("space", "create", "club", *agent, db=db)
    joined = run("space", "join", "club", *agent, "--member", ALICE, "--json", db=db).json()
    assert [each["agent"] for each in joined["space"]["members"]] == ["newton", ALICE]
    assert "write" in run("space", "list", *agent, "--user", "alice", db=db).out

    refused = run("db", "purge-user", "alice", db=db)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert "alice  newton" in run("db", "users", db=db).out
    assert "user alice is purged" in run("db", "purge-user", "alice", "--yes", db=db).out
    assert "no agent knows a user alice" in run("db", "purge-user", "alice", "--yes", db=db).out
    assert run("db", "users", "--json", db=db).json()["users"] == {}
    empty = run("recall", "office", *agent, "--user", "", db=db)
    assert (empty.code, "--user" in empty.err or "user=''" in empty.err) == (2, True)

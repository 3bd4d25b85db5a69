"""A store is copied whole, proved to be the same, and gone on with where it was interrupted."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

import germane
from germane import EmbedderMismatch, Filter, InvalidInput, NotFound, Order, Status, StoreUnavailable
from germane.demo import demo_questions, load_demo
from germane.importers import export_jsonl
from germane.stores import SqliteStore, copy_store, migrate_store
from germane.testing.fakes import HashEmbedder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fill(location: str | Path) -> None:
    """Something in every table."""
    with germane.open(location, agent="ada", clock=lambda: NOW, record=True) as engine:
        first = engine.remember("Redis keeps sessions", kind="decision", confidence=0.9, tags=["a:b"])
        engine.remember("Postgres keeps the rest", kind="fact", metadata={"applies_to": ["path:src/*.py"]})
        engine.revise(first.id, "Valkey keeps sessions")
        gone = engine.remember("Not for long")
        engine.purge(gone.id, confirm=True)
        working = engine.working_set("desk")
        working.add(engine.memories()[0])
        context = engine.assemble("Where do sessions live?", budget=2000)
        engine.feedback(context, used=[context.trace.entries[0].memory_id])
        talk = engine.conversation("standup")
        talk.append("user", "Where do sessions live?")
        talk.append("assistant", "In Valkey.")
        talk.anchor("state", "deciding")
    with germane.open(location, agent="bob", clock=lambda: NOW) as engine:
        engine.remember("Bob likes tea", kind="preference")


def exported(location: str | Path, agent: str) -> str:
    with germane.open(location, agent=agent, read_only=True) as engine:
        target = io.StringIO()
        export_jsonl(engine.memories(Filter(statuses=tuple(Status)), order=Order.OLDEST), target)
        return target.getvalue()


def test_there_and_back_gives_the_same_bytes(tmp_path: Path, postgres_store: str) -> None:
    source, back = tmp_path / "agent.db", tmp_path / "back.db"
    fill(source)
    there = copy_store(source, postgres_store)
    again = copy_store(postgres_store, back)
    assert [each.agent for each in there.agents] == ["ada", "bob"]
    assert [(each.rows, each.sha256) for each in again.agents] == [
        (each.rows, each.sha256) for each in there.agents
    ]
    assert there.copied == again.copied == 2
    for agent in ("ada", "bob"):
        assert exported(back, agent) == exported(postgres_store, agent) == exported(source, agent)


def test_a_copy_answers_as_its_source(tmp_path: Path, postgres_store: str) -> None:
    source = tmp_path / "agent.db"
    fill(source)
    copy_store(source, postgres_store)
    answers = []
    for location in (source, postgres_store):
        with germane.open(location, agent="ada", clock=lambda: NOW) as engine:
            context = engine.assemble("Where do sessions live?", budget=2000)
            answers.append(
                (
                    context.text,
                    [(each.memory_id, each.score) for each in context.trace.entries],
                    [each.text for each in engine.conversation("standup").messages()],
                    [each.memory.id for each in engine.working_set("desk")],
                    [each.id for each in engine.ledger().list()],
                )
            )
            engine.remember("It goes on from there")
    assert answers[0] == answers[1]


def test_an_interrupted_copy_is_gone_on_with(tmp_path: Path, postgres_store: str) -> None:
    source = tmp_path / "agent.db"
    fill(source)
    assert copy_store(source, postgres_store, agents=["ada"]).copied == 1

    def stop(done: int, _: int) -> None:
        raise KeyboardInterrupt(done)

    with pytest.raises(KeyboardInterrupt):
        copy_store(source, postgres_store, progress=stop)
    steps: list[tuple[int, int]] = []
    report = copy_store(source, postgres_store, progress=lambda *each: steps.append(each))
    assert [each.was_there for each in report.agents] == [True, False]
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert copy_store(source, postgres_store).copied == 0


def test_a_copy_never_mixes_two(tmp_path: Path, postgres_store: str) -> None:
    source = tmp_path / "agent.db"
    fill(source)
    with germane.open(postgres_store, agent="bob") as engine:
        engine.remember("Another Bob")
    with pytest.raises(InvalidInput, match="already, with other contents"):
        copy_store(source, postgres_store)
    with germane.open(postgres_store, agent="bob") as engine:
        assert [each.content for each in engine.memories()] == ["Another Bob"]


def test_what_cannot_be_copied_is_refused(tmp_path: Path, postgres_store: str) -> None:
    source = tmp_path / "agent.db"
    with pytest.raises(StoreUnavailable, match="nothing to copy"):
        copy_store(source, postgres_store)
    fill(source)
    with pytest.raises(InvalidInput, match="to itself"):
        copy_store(source, str(source))
    for target in (postgres_store, tmp_path / "copy.db"):
        with pytest.raises(NotFound, match="carol"):
            copy_store(source, target, agents=["carol"])
    assert not (tmp_path / "copy.db").exists()
    with germane.open(postgres_store, agent="eve", embedder=HashEmbedder()) as engine:
        engine.remember("Vectors of another model")
    with pytest.raises(EmbedderMismatch):
        copy_store(source, postgres_store)


def test_shared_spaces_go_along(tmp_path: Path, postgres_store: str) -> None:
    source, back = tmp_path / "agent.db", tmp_path / "back.db"
    with germane.open(source, agent="ada", clock=lambda: NOW, record=True) as engine:
        space = engine.space("team", create=True)
        space.remember("The team meets on Mondays", kind="fact")
        engine.assemble("When does the team meet?", budget=2000, spaces=["team"])
    report = copy_store(source, postgres_store)
    assert [each.sha256 for each in copy_store(postgres_store, back).agents] == [
        each.sha256 for each in report.agents
    ]
    with germane.open(postgres_store, agent="ada") as engine:
        assert [each.memory.content for each in engine.space("team").recall("Mondays")] == [
            "The team meets on Mondays"
        ]


def test_a_file_can_be_copied_to_a_file(tmp_path: Path) -> None:
    source, target = tmp_path / "agent.db", tmp_path / "other.db"
    fill(source)
    assert copy_store(source, target).copied == 2
    assert exported(target, "ada") == exported(source, "ada")
    for store in (SqliteStore(source), SqliteStore(target)):
        assert store.maintenance.check("ada") == ()
        store.close()


def test_the_demo_goes_there_and_back(tmp_path: Path, postgres_store: str) -> None:
    source, back = tmp_path / "agent.db", tmp_path / "back.db"
    with germane.open(source, agent="demo", clock=lambda: NOW) as engine:
        loaded = load_demo(engine)
    there = copy_store(source, postgres_store)
    copy_store(postgres_store, back)
    assert exported(back, "demo") == exported(postgres_store, "demo") == exported(source, "demo")
    assert len(exported(back, "demo").splitlines()) == loaded
    assert there.rows > 5 * loaded
    question = demo_questions()[0].question
    texts = []
    for location in (source, postgres_store, back):
        with germane.open(location, agent="demo", clock=lambda: NOW, read_only=True) as engine:
            texts.append(engine.assemble(question, budget=2000).text)
    assert texts[0] == texts[1] == texts[2] != ""


def test_a_copy_is_repeated_where_the_server_asks_for_it(tmp_path: Path, postgres_database: str) -> None:
    source = tmp_path / "agent.db"
    fill(source)
    migrate_store(postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as raw:
        # A sequence isn't rolled back, so only the first transaction that comes here is refused.
        raw.execute("CREATE SEQUENCE refusals")
        raw.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('refusals') = 1 THEN RAISE serialization_failure; END IF; RETURN NEW; END $$"
        )
        raw.execute(
            "CREATE TRIGGER refused BEFORE INSERT ON texts FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
        )

    assert copy_store(source, postgres_database).copied == 2
    assert exported(postgres_database, "ada") == exported(source, "ada")
    with psycopg.connect(postgres_database) as raw:
        assert raw.execute("SELECT last_value > 2 FROM refusals").fetchall() == [(True,)]

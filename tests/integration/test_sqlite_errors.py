"""Each way in which a file can fail has its error, and nothing is half written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import germane
from germane import Filter, Memory
from germane.errors import EmbedderMismatch, InvalidInput, SchemaTooNew, StoreBusy, StoreUnavailable
from germane.protocols import Query, Store
from germane.stores import EmbeddingIdentity, Insert, Purge, SqliteStore
from germane.testing.fakes import START, make_memories, make_memory, make_vector
from support.stores import query_of

AGENT = "tester"
MODEL = EmbeddingIdentity(name="model", dimension=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def filled(path: Path, count: int = 5, *, embedding: EmbeddingIdentity | None = None) -> list[Memory]:
    memories = make_memories(count)
    store = SqliteStore(path, embedding=embedding)
    vector = make_vector(1) if embedding else None
    store.apply(AGENT, [Insert(memory=each, vector=vector) for each in memories])
    store.close()
    return memories


def test_it_is_a_store_that_can_be_checked() -> None:
    store = SqliteStore(":memory:")
    assert isinstance(store, Store)
    assert store.maintenance.check("nobody") == ()
    store.close()


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="nowhere doesn't exist"):
        SqliteStore(tmp_path / "nowhere" / "agent.db")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is a folder"):
        SqliteStore(tmp_path)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
def test_a_folder_that_cant_be_written() -> None:
    with pytest.raises(StoreUnavailable, match="can't be opened"):
        SqliteStore("/proc/agent.db")


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(StoreUnavailable, match="no SQLite database"):
        SqliteStore(path)
    assert path.read_bytes() == b"Dear diary, " * 1000


def test_another_programs_database(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="another program"):
        SqliteStore(path)
    with pytest.raises(StoreUnavailable, match="another program"):
        SqliteStore(path, read_only=True)
    assert path.read_bytes()[100:] == before[100:]


def test_a_newer_schema(path: Path) -> None:
    filled(path)
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(SchemaTooNew) as caught:
        SqliteStore(path)
    assert caught.value.found == 99


def test_a_damaged_file(path: Path) -> None:
    memories = filled(path, 300)
    data = bytearray(path.read_bytes())
    # Only pages that hold texts of memories: without the schema's own no file opens.
    pages = {data.find(each.content.encode()) // 4096 for each in memories}
    for page in pages - {-1}:
        data[4096 * page : 4096 * (page + 1)] = b"\xff" * 4096
    path.write_bytes(data)
    store = SqliteStore(path)
    with pytest.raises(StoreUnavailable, match="damaged"):
        store.get(AGENT, [each.id for each in memories])
    store.close()


@pytest.mark.parametrize("value", ["{", "[1]", ""])
def test_damaged_metadata_are_named_with_their_memory_and_the_remedy(path: Path, value: str) -> None:
    with germane.open(path, agent="ada", embedder=None) as engine:
        harmed = engine.remember("Ana leads billing.")
        engine.remember("Bob leads sales.")
    _change(path, "UPDATE texts SET metadata = ? WHERE content LIKE 'Ana%'", value)
    with germane.open(path, agent="ada", embedder=None) as engine:
        for read in (engine.memories, lambda: engine.recall("billing"), lambda: engine.revise(harmed.id, "")):
            with pytest.raises(StoreUnavailable, match=f"The metadata of memory '{harmed.id}'.*purge"):
                read()
        engine.purge(harmed.id, confirm=True)
        assert [memory.content for memory in engine.memories()] == ["Bob leads sales."]


def test_other_damaged_values_are_named(path: Path) -> None:
    with germane.open(path, agent="ada", embedder=None, record=True) as engine:
        engine.remember("Ana leads billing.")
        engine.set_learning(on=True)
        context = engine.assemble("Who leads billing?")
        engine.feedback(context, used=[item.memory.id for item in context.items])
        engine.conversation("chat").append("user", "Who leads billing?")
    for table, column in (("shown", "parts"), ("assemblies", "asked"), ("messages", "parts")):
        _change(path, f"UPDATE {table} SET {column} = ?", "{")
    with germane.open(path, agent="ada", embedder=None) as engine:
        with pytest.raises(StoreUnavailable, match=r"What agent 'ada' learned .* or remove what was learned"):
            engine.recall("billing")
        engine.reset_learning()
        assert len(engine.recall("billing")) == 1
        with pytest.raises(StoreUnavailable, match=r"Assembly .* can't be read .* from a backup\."):
            engine.ledger().list()
        with pytest.raises(StoreUnavailable, match="Message 1 of conversation 'chat' can't be read"):
            engine.conversation("chat").messages()


def _change(path: Path, statement: str, value: str) -> None:
    """Change a value as another program would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, (value,))


def test_a_full_disk_leaves_nothing_behind(path: Path) -> None:
    store = SqliteStore(path)
    store.apply(AGENT, [Insert(memory=make_memory("kept"))])
    with store._file.alone() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreUnavailable, match="full"):
        store.apply(AGENT, [Insert(memory=each) for each in make_memories(200)])
    assert [each.content for each in store.find(AGENT, Filter())] == ["kept"]
    assert store.maintenance.check(AGENT) == ()
    with store._file.alone() as connection:
        connection.execute("PRAGMA max_page_count = 100000")
    store.apply(AGENT, [Insert(memory=each) for each in make_memories(200)])
    assert store.stats(AGENT).memories == 201
    store.close()


def test_reading_only(path: Path) -> None:
    memories = filled(path)
    store = SqliteStore(path, read_only=True)
    assert store.get(AGENT, [memories[0].id]) == (memories[0],)
    assert store.search(AGENT, Query()).stored == 5
    with pytest.raises(StoreUnavailable, match="read_only"):
        store.apply(AGENT, [Insert(memory=make_memory())])
    store.close()


def test_reading_only_what_is_not_there(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no store"):
        SqliteStore(path, read_only=True)
    assert not path.exists()


@pytest.mark.parametrize("agent", ["", " ", "space:team", "x" * 1001])
def test_what_is_no_name_of_an_agent_makes_no_file(path: Path, agent: str) -> None:
    with pytest.raises(InvalidInput, match="agent="):
        germane.open(path, agent=agent)
    assert not path.exists()


def test_another_model(path: Path) -> None:
    filled(path, embedding=MODEL)
    other = EmbeddingIdentity(name="other", dimension=4)
    with pytest.raises(EmbedderMismatch) as caught:
        SqliteStore(path, embedding=other)
    assert caught.value.stored == str(MODEL)
    replaced = SqliteStore(path, embedding=other, replace_embedding=True)
    assert replaced.stats(AGENT).vectors == 0
    replaced.apply(AGENT, [Insert(memory=make_memory("new"), vector=make_vector(1, 4))])
    assert replaced.stats(AGENT).embedding == other
    assert replaced.maintenance.check(AGENT) == ()
    replaced.close()


def test_two_processes_cant_bring_two_models(path: Path) -> None:
    first = SqliteStore(path, embedding=MODEL)
    second = SqliteStore(path, embedding=EmbeddingIdentity(name="other", dimension=8))
    first.apply(AGENT, [Insert(memory=make_memory("one"), vector=make_vector(1))])
    with pytest.raises(EmbedderMismatch):
        second.apply(AGENT, [Insert(memory=make_memory("two"), vector=make_vector(2))])
    assert first.stats(AGENT).memories == 1
    first.close()
    second.close()


def test_other_writers_are_waited_for_and_then_named(path: Path) -> None:
    filled(path)
    store = SqliteStore(path, timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match="longer than the timeout"):
        store.apply(AGENT, [Insert(memory=make_memory())])
    assert len(store.find(AGENT, Filter())) == 5
    other.execute("ROLLBACK")
    store.apply(AGENT, [Insert(memory=make_memory())])
    other.close()
    store.close()


def test_a_purge_that_a_reader_holds_up_is_finished_later(path: Path) -> None:
    (memory, *_) = filled(path)
    store = SqliteStore(path, timeout=0.1)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchone()
    with pytest.raises(StoreBusy, match="purge is done"):
        store.apply(AGENT, [Purge(memory_id=memory.id, at=START)])
    assert store.get(AGENT, [memory.id]) == (None,)
    reader.execute("COMMIT")
    reader.close()
    store.checkpoint()
    data = path.read_bytes() + Path(f"{path}-wal").read_bytes()
    assert memory.content.encode() not in data
    store.close()


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        ("DELETE FROM lex WHERE num = (SELECT min(num) FROM memories)", "half-record"),
        ("UPDATE lex SET frequencies = x'01'", "forward-record"),
        ("UPDATE lex SET hashes = zeroblob(length(hashes))", "forward-record"),
        ("UPDATE texts SET content = content || ' kumquat'", "forward-record"),
        ("UPDATE texts SET tags = '['", "forward-record"),
        ("UPDATE agents SET memories = 7", "counters"),
        ("UPDATE vectors SET vector = x'0102'", "vector"),
        ("UPDATE vectors SET vector = zeroblob(16)", "vector"),
        ("UPDATE memories SET superseded_by = zeroblob(16), status = 'superseded'", "heads"),
        ("UPDATE memories SET superseded_by = zeroblob(16), status = 'superseded'", "successor"),
        ("INSERT INTO lex VALUES (5, 1, 1, x'', x'')", "orphan"),
    ],
)
def test_a_check_finds_damage(path: Path, harm: str, code: str) -> None:
    filled(path, embedding=MODEL)
    store = SqliteStore(path)
    assert store.maintenance.check(AGENT) == ()
    raw = sqlite3.connect(path)
    raw.execute(harm)
    raw.commit()
    raw.close()
    found = store.maintenance.check(AGENT)
    assert code in {each.code for each in found}
    assert all(each.remedy for each in found)
    store.close()


def test_another_tokenizer_indexes_anew(path: Path) -> None:
    memories = filled(path)
    raw = sqlite3.connect(path)
    raw.execute("UPDATE settings SET value = 'older' WHERE name = 'tokenizer'")
    raw.execute("UPDATE lex SET hashes = x'', frequencies = x'', length = 0")
    raw.execute("UPDATE agents SET terms = 0")
    raw.commit()
    raw.close()
    with pytest.raises(StoreUnavailable, match="read_only"):
        SqliteStore(path, read_only=True)
    store = SqliteStore(path)
    fresh = SqliteStore(":memory:")
    fresh.apply(AGENT, [Insert(memory=each) for each in memories])
    query = query_of(memories[0].content)
    assert store.search(AGENT, query) == fresh.search(AGENT, query)
    assert store.maintenance.check(AGENT) == ()
    store.close()
    fresh.close()


def test_a_process_with_an_older_tokenizer_stops(path: Path) -> None:
    filled(path)
    store = SqliteStore(path)
    raw = sqlite3.connect(path)
    raw.execute("UPDATE settings SET value = 'newer' WHERE name = 'tokenizer'")
    raw.commit()
    raw.close()
    acts: list[Callable[[], object]] = [
        lambda: store.search(AGENT, Query()),
        lambda: store.apply(AGENT, [Insert(memory=make_memory())]),
    ]
    for act in acts:
        with pytest.raises(StoreUnavailable, match="newer"):
            act()
    store.close()


def test_senseless_arguments(path: Path) -> None:
    with pytest.raises(InvalidInput, match="durability"):
        SqliteStore(path, durability="total")  # type: ignore[arg-type]  # What a caller without types may pass.
    with pytest.raises(InvalidInput, match="timeout"):
        SqliteStore(path, timeout=float("nan"))
    store = SqliteStore(path)
    with pytest.raises(InvalidInput, match="limit"):
        store.find(AGENT, Filter(), limit=-1)
    with pytest.raises(InvalidInput, match="agent"):
        store.apply("", [Insert(memory=make_memory(agent=""))])
    store.close()

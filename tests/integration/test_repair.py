"""Repair of damaged stores: derived data is made anew, and what is lost is named, never silently wrong."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import germane
from commandline import run
from germane.errors import GermaneError, InvalidInput, StoreUnavailable
from germane.stores import repair_store
from germane.testing.fakes import START

USED = ("redis", "postgres", "kafka", "sqlite")
PAGE = 4096


def opened(location: Path | str) -> germane.Engine:
    return germane.open(location, agent="tester", clock=lambda: START)


def fill(location: Path | str) -> None:
    with opened(location) as engine:
        engine.remember("Never deploy on a Friday.", kind="constraint", tags=["team:ops"])
        engine.remember_many(
            germane.Draft(content=f"Service {number} uses {USED[number % 4]}.", kind="decision")
            for number in range(300)
        )
        conversation = engine.conversation("plans")
        for number in range(10):
            conversation.append("user", f"What does service {number} use?")
            conversation.append("assistant", f"It uses {USED[number % 4]}.")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file without damage, which tests copy."""
    path = tmp_path_factory.mktemp("whole") / "agent.db"
    fill(path)
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "agent.db"
    copy.write_bytes(whole.read_bytes())
    return copy


def contents(location: Path | str) -> tuple[set[str], list[str]]:
    """The contents of the memories that results show, and the texts of the conversation."""
    with opened(location) as engine:
        texts = [message.text for message in engine.conversation("plans").messages()]
        return {memory.content for memory in engine.memories()}, texts


def answers(location: Path | str) -> list[object]:
    with opened(location) as engine:
        found = engine.recall("What does service 7 use?", limit=5)
        tagged = engine.memories('tag = "team"')
        return [*(each.memory.content for each in found), *(each.content for each in tagged)]


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        for each in statements:
            assert raw.execute(each).rowcount, each


@pytest.mark.parametrize(
    ("harm", "codes"),
    [
        ("UPDATE lex SET hashes = zeroblob(length(hashes)) WHERE num % 3 = 0", {"forward-record", "block"}),
        ("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE num % 3 = 0", {"vector", "block"}),
        ("UPDATE memory_blocks SET words = zeroblob(length(words))", {"block"}),
        ("UPDATE agents SET memories = 7, terms = 7", {"counters"}),
        ("UPDATE message_lex SET hashes = zeroblob(length(hashes))", {"message-record"}),
        ("UPDATE settings SET value = 'unknown' WHERE name = 'embedding_name'", {"embedding"}),
        ("UPDATE memories SET chain = zeroblob(16) WHERE num % 150 = 5", {"content"}),
    ],
)
def test_what_is_derived_is_made_anew_in_place(path: Path, harm: str, codes: set[str]) -> None:
    before, full = answers(path), contents(path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA ignore_check_constraints = ON")
        assert raw.execute(harm).rowcount
    report = repair_store(path, now=START)
    assert codes <= {each.code for each in report.found} | {"block"}
    assert (report.set_aside, report.lost, report.left, report.new_file) == ((), (), (), None)
    run("embedder", "use", "bundled", db=path)
    with opened(path) as engine:
        engine.embed_pending()
        assert engine.doctor() == ()
    assert (answers(path), contents(path)) == (before, full)


def test_a_store_without_damage_stays_as_it_is(path: Path) -> None:
    with opened(path) as engine:
        before = engine.stats()
    report = repair_store(path, now=START)
    assert (report.found, report.set_aside, report.lost, report.left) == ((), (), (), ())
    with opened(path) as engine:
        assert engine.stats() == before


def test_a_damaged_memory_is_named_and_set_aside(path: Path) -> None:
    change(path, "UPDATE texts SET content = 'Service 7 uses mysql.' WHERE content LIKE 'Service 7 %'")
    report = repair_store(path, now=START)
    (loss,) = report.set_aside
    assert (loss.what, loss.agent, report.lost, report.left) == ("memory", "tester", (), ())
    assert "Service 7 uses mysql." in loss.text
    with opened(path) as engine:
        assert not any("mysql" in each.memory.content for each in engine.recall("service 7 mysql", limit=10))
        (marked,) = engine.quarantine().list()
        assert (marked.memory.id, marked.rules) == (loss.id, ("damaged",))
        assert engine.doctor() == ()
        # Whoever knows that it is right lets it out.
        engine.quarantine().release(marked.memory.id)
        assert "Service 7 uses mysql." in {each.content for each in engine.memories()}
        assert engine.doctor() == ()


def test_an_unreadable_memory_keeps_its_content(path: Path) -> None:
    change(path, "UPDATE texts SET metadata = '{', tags = '[' WHERE content LIKE 'Never deploy%'")
    report = repair_store(path, now=START)
    assert [each.what for each in report.set_aside] == ["memory"]
    assert "Never deploy on a Friday." in report.set_aside[0].text
    with opened(path) as engine:
        assert engine.doctor() == ()
        assert engine.memories('tag = "team"') == ()


def test_damaged_messages_are_named_and_hidden_or_lost(path: Path) -> None:
    change(
        path,
        "UPDATE messages SET parts = replace(parts, 'service 3', 'service 4') WHERE parts LIKE '%service 3%'",
        "UPDATE messages SET parts = '[' WHERE parts LIKE '%service 5%'",
    )
    report = repair_store(path, now=START)
    assert [each.what for each in report.set_aside] == ["message"]
    assert [each.what for each in report.lost] == ["message"]
    _, texts = contents(path)
    assert "What does service 2 use?" in texts
    assert not {"What does service 3 use?", "What does service 4 use?"} <= set(texts)
    with opened(path) as engine:
        assert engine.doctor() == ()
        hidden = engine.conversation("plans").groups(hidden=True)
        assert "service 4" in " ".join(message.text for group in hidden for message in group.messages)


def test_an_index_of_the_database_is_made_anew(path: Path) -> None:
    full = contents(path)
    name = "conversations_by_session"
    for statements in (
        # The row is stored while SQLite doesn't know of the index.
        [f"CREATE TABLE old AS SELECT * FROM sqlite_schema WHERE name = '{name}'"],
        [f"DELETE FROM sqlite_schema WHERE name = '{name}'"],
        ["INSERT INTO conversations (agent, session) VALUES (1, 'other')"],
        ["INSERT INTO sqlite_schema SELECT * FROM old", "DROP TABLE old"],
    ):
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("PRAGMA writable_schema = ON")
            for each in statements:
                raw.execute(each)
    report = repair_store(path, now=START)
    assert any("missing from index" in each.text for each in report.found)
    assert (report.lost, report.set_aside, report.left, report.new_file) == ((), (), (), None)
    assert contents(path) == full


def damaged(data: bytes, chance: random.Random, how: str) -> bytes:
    harmed = bytearray(data)
    place = chance.randrange(len(harmed))
    if how == "bit":
        harmed[place] ^= 1 << chance.randrange(8)
    elif how == "page":
        start = place // PAGE * PAGE
        harmed[start : start + PAGE] = chance.randbytes(PAGE)
    else:
        harmed = harmed[:place]
    return bytes(harmed)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("how", "count"), [("bit", 25), ("page", 12), ("end", 8)])
def test_repair_ends_with_everything_there_or_named(
    whole: Path, tmp_path: Path, how: str, count: int
) -> None:
    data, full, chance = whole.read_bytes(), contents(whole), random.Random(how)  # noqa: S311 - No secret.
    ends = Counter[str]()
    for number in range(count):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "agent.db"
        path.write_bytes(damaged(data, chance, how))
        harmed = path.read_bytes()
        try:
            report = repair_store(path, now=START)
        except GermaneError:
            ends["refused"] += 1
            continue
        if report.new_file is not None:
            assert path.read_bytes() == harmed
            assert Path(report.new_file).stat().st_mode & 0o077 == 0
        repaired = report.new_file or path
        memories, texts = contents(repaired)
        assert memories <= full[0]
        assert set(texts) <= set(full[1])
        if (memories, texts) == full:
            ends["whole"] += 1
        else:
            assert report.lost or report.set_aside
            ends["named"] += 1
        with opened(repaired) as engine:
            assert all(each.advice or each.code == "pending-vectors" for each in engine.doctor())
    assert ends["whole"] + ends["named"] >= count // 3, ends


def test_a_damaged_file_stays_and_its_repair_overwrites_nothing(path: Path) -> None:
    data = bytearray(path.read_bytes())
    place = data.find(b"Service 40 uses") // PAGE * PAGE
    data[place : place + PAGE] = b"\xff" * PAGE
    path.write_bytes(data)
    report = repair_store(path, now=START)
    assert report.new_file == str(path.with_name("agent.repaired.db"))
    assert path.read_bytes() == data
    assert report.lost
    assert all(each.text for each in report.lost)
    memories, _ = contents(report.new_file)
    assert 200 < len(memories) < 301
    with pytest.raises(InvalidInput, match=r"agent\.repaired\.db exists"):
        repair_store(path, now=START)


def test_what_is_left_of_an_encrypted_memory_is_named_as_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GERMANE_KEY", "6b" * 32)
    path = tmp_path / "agent.db"
    fill(path)
    with closing(sqlite3.connect(path)) as raw:
        ((root,),) = raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memories'")
    data = bytearray(path.read_bytes())
    data[(root - 1) * PAGE : root * PAGE] = b"\xff" * PAGE
    path.write_bytes(data)
    report = repair_store(path, now=START)
    of_memories = {each.text for each in report.lost if each.what == "memory"}
    assert "Only its content is left, which is encrypted." in of_memories


def test_another_programs_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("CREATE TABLE memories (text TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="another program"):
        repair_store(path, now=START)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["other.db"]


def test_the_command_says_what_was_lost(path: Path) -> None:
    assert run("db", "doctor", "--repair", db=path).code == 0
    change(path, "UPDATE texts SET content = 'Service 7 uses mysql.' WHERE content LIKE 'Service 7 %'")
    done = run("db", "doctor", "--repair", db=path)
    assert done.code == 1
    assert "Set aside: memory" in done.out
    again = run("db", "doctor", "--repair", db=path)
    assert again.code == 0
    assert "nothing wrong was found" in again.out


@pytest.mark.long
def test_postgresql_makes_derived_data_anew(postgres_database: str) -> None:
    fill(postgres_database)
    before = answers(postgres_database)
    with psycopg.connect(postgres_database) as raw:
        raw.execute("UPDATE lex SET hashes = decode(repeat('00', length(hashes)), 'hex') WHERE num % 3 = 0")
        raw.execute("UPDATE vectors SET checksum = 7 WHERE num % 3 = 0")
        raw.execute("UPDATE message_lex SET frequencies = '\\x07'")
        raw.execute("UPDATE texts SET content = 'Service 9 uses mysql.' WHERE content LIKE 'Service 9 %'")
    report = repair_store(postgres_database, now=START)
    assert {"forward-record", "vector", "message-record", "content"} <= {each.code for each in report.found}
    assert (report.lost, report.left, report.new_file) == ((), (), None)
    assert [each.what for each in report.set_aside] == ["memory"]
    assert report.pending > 90
    with opened(postgres_database) as engine:
        engine.embed_pending()
        assert engine.doctor() == ()
    assert answers(postgres_database) == before

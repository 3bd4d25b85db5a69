"""A file in which something else than germane changed a byte: an error or an answer, and never a hang."""

from __future__ import annotations

import os
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import germane
from commandline import run
from germane.errors import GermaneError, StoreUnavailable
from germane.stores import vacuum_store
from germane.testing.fakes import START

QUESTIONS = ("Which database for service 7?", "Why was redis taken out?")
USED = ("redis", "postgres", "kafka", "sqlite")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "agent.db"
    with opened(path) as engine:
        engine.remember("Never deploy on a Friday.", kind="constraint")
        engine.remember_many(
            germane.Draft(content=f"Service {number} uses {USED[number % 4]} for its queue.", kind="decision")
            for number in range(60)
        )
    return path


def opened(path: Path) -> germane.Engine:
    return germane.open(path, agent="tester", clock=lambda: START)


def answers(engine: germane.Engine) -> list[object]:
    return [
        (
            [each.memory.content for each in engine.recall(question)],
            engine.assemble(question, budget=400).text,
        )
        for question in QUESTIONS
    ]


@pytest.mark.parametrize(
    "harm",
    [
        "content = replace(content, 'Service 7 ', 'Service 8 ')",
        "content = replace(content, 'redis', 'Redis')",
    ],
)
def test_a_changed_text_is_found(path: Path, harm: str) -> None:
    with opened(path) as engine:
        assert engine.doctor() == ()
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"UPDATE texts SET {harm}")
    with opened(path) as engine:
        found = [each for each in engine.doctor() if each.code == "content"]
    assert len(found) == (1 if "Service 7" in harm else 15)
    assert all("isn't what was stored" in each.text for each in found)


TURNED = "CAST(substr(vector, 3, 2) || substr(vector, 1, 2) || substr(vector, 5) AS BLOB)"
"""A vector of the same length, in which two numbers are exchanged."""


@pytest.mark.parametrize(
    ("harm", "code", "question"),
    [
        (f"UPDATE vectors SET vector = {TURNED} WHERE num % 7 = 3", "vector", "recall"),
        (
            "UPDATE texts SET summary = replace(summary, 'kafka', 'mqtt') WHERE num % 7 = 3",
            "content",
            "recall",
        ),
        ("UPDATE memories SET importance = importance + 1 WHERE num % 7 = 3", "content", "recall"),
        ("UPDATE messages SET parts = replace(parts, 'Friday', 'Monday')", "message", "messages"),
        (f"UPDATE message_lex SET vector = {TURNED}", "message-record", None),
        ("UPDATE message_lex SET hashes = zeroblob(length(hashes))", "message-record", None),
    ],
)
def test_what_differs_from_its_checksum_is_found_and_never_an_answer(
    path: Path, harm: str, code: str, question: str | None
) -> None:
    with opened(path) as engine:
        engine.conversation("plans").append("user", "May we deploy on Friday?")
        engine.embed_pending()
        assert engine.doctor() == ()
    with closing(sqlite3.connect(path)) as raw, raw:
        assert raw.execute(harm).rowcount
    with opened(path) as engine:
        assert {each.code for each in engine.doctor()} == {code}
        if question == "recall":
            with pytest.raises(StoreUnavailable, match=r"checksum.*doctor --repair"):
                engine.recall("Which service uses kafka?", limit=60)
        if question == "messages":
            with pytest.raises(StoreUnavailable, match=r"Message 1 of conversation 'plans'.*checksum"):
                engine.conversation("plans").messages()


def test_what_was_stored_without_checksums_is_read(path: Path) -> None:
    with opened(path) as engine:
        before = answers(engine)
    with closing(sqlite3.connect(path)) as raw, raw:
        for table in ("texts", "messages", "vectors", "message_lex"):
            raw.execute(f"UPDATE {table} SET checksum = NULL")
    with opened(path) as engine:
        assert answers(engine) == before
        assert engine.doctor() == ()


@pytest.mark.parametrize(
    ("harm", "code", "mend"),
    [
        ("lex SET hashes = zeroblob(length(hashes))", "forward-record", ("db", "reindex")),
        (
            "vectors SET vector = zeroblob(length(vector))",
            "vector",
            ("embedder", "use", "bundled", "--again"),
        ),
    ],
)
def test_what_is_derived_is_found_changed_and_made_anew(
    path: Path, harm: str, code: str, mend: tuple[str, ...]
) -> None:
    with opened(path) as engine:
        before = answers(engine)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"UPDATE {harm} WHERE num % 2")
    with opened(path) as engine:
        assert {each.code for each in engine.doctor()} == {code}
    run(*mend, db=path)
    with opened(path) as engine:
        assert engine.doctor() == ()
        assert answers(engine) == before


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_flipped_bit_is_an_error_or_an_answer(path: Path, tmp_path: Path) -> None:
    with opened(path) as engine:
        before = answers(engine)
    whole, chance, found = path.read_bytes(), random.Random(20), Counter[str]()  # noqa: S311 - Which bits are flipped is no secret.
    for number in range(150):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        copy = tmp_path / f"{number}.db"
        copy.write_bytes(damaged)
        try:
            with opened(copy) as engine:
                same, seen = answers(engine) == before, bool(engine.doctor())
        except GermaneError:
            found["refused"] += 1
        else:
            found["same" if same else "seen" if seen else "unseen"] += 1
    assert not found["unseen"], found
    assert found["same"] + found["refused"] > 120, found


def test_a_truncated_file_is_an_error(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    for length in (0, 100, 4096, len(whole) // 2, len(whole) - 4096):
        copy = tmp_path / f"{length}.db"
        copy.write_bytes(whole[:length])
        if length == 0:
            # An empty file is a new store.
            with opened(copy) as engine:
                assert engine.count() == 0
            continue
        with pytest.raises(GermaneError), opened(copy) as engine:
            answers(engine)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_nothing_is_acknowledged_by_a_file_that_was_truncated_while_open(path: Path, part: float) -> None:
    with opened(path) as engine:
        answers(engine)
        engine.remember("Something short.")
        os.truncate(path, int(path.stat().st_size * part))
        with pytest.raises(StoreUnavailable, match=r"truncated|damaged"):
            engine.remember("Something that would be lost.")


def test_a_file_that_another_process_has_made_shorter_is_written_on(path: Path) -> None:
    with opened(path) as engine:
        engine.remember_many(f"Line {number} of a long protocol: {'word ' * 200}" for number in range(300))
        vacuum_store(path)
        size = path.stat().st_size
        engine.remember("Before it.")
        with opened(path) as other:
            long = [each.id for each in other.memories() if "protocol" in each.content]
            assert other.purge_many(long, confirm=True) == 300
        vacuum_store(path)
        assert path.stat().st_size < size
        assert engine.remember("After it.").content == "After it."
        assert engine.doctor() == ()

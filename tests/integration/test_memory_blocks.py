"""Memories packed by the block for the first search of a process: a saving that nothing else shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import germane
from germane import Draft, Engine, Memory, Status
from germane.stores import copy_store, reindex_store
from germane.testing.fakes import FixedClock
from support.databases import sql_at

NOW = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)
WHOLE = [(300, True), (400, True)]
"""The blocks of what `filled` writes."""

PLACES = ("kitchen", "garden", "cellar", "library", "workshop", "attic", "stable")
QUESTIONS = (
    "Which lamp stands in the kitchen?",
    "What changed in the cellar last month?",
    "Who repaired lamp-17 of the garden, Ada?",
    "latest note on the library",
    "which decision about the attic was rejected?",
    "a warm light to read by",
)


def opened(store: str) -> Engine:
    """The agent of the store, in a process that has read nothing of it."""
    return germane.open(store, agent="ada", durability="relaxed", clock=FixedClock(NOW))


def draft(number: int, *, turns: bool = False) -> Draft:
    """A memory of one of the kinds that ranking treats in its own way."""
    text = f"The lamp-{number} of the {PLACES[number // 7 % 7]} is number {number % 31} and needs oil."
    created = NOW - timedelta(hours=number)
    long = " ".join(f"Then the {each} was lit, and lamp {number + 1} went out." for each in PLACES * 4)
    kinds: tuple[dict[str, Any], ...] = (
        {"kind": "adr", "metadata": {"status": "Rejected" if number % 2 else "Accepted"}},
        {"kind": "fact", "valid_from": created, "valid_until": NOW - timedelta(hours=number - 60)},
        {"kind": "note", "expires_at": NOW + timedelta(days=number)},
        {"kind": "decision", "outcome": "abandoned"},
        {"kind": "episode", "content": f"{text} {long}"},
        {"kind": "note"},
        {"kind": "note"},
    )
    of_kind = kinds[number % 7] if not turns else {"kind": "episode", "scope": f"session:{number // 20}"}
    return Draft(**{"content": text, "created_at": created, **of_kind})


def filled(store: str, count: int = 700, *, turns: bool = False) -> str:
    """A store with so many memories, written in batches of which some are small."""
    with opened(store) as engine:
        for first, last in ((0, 300), (300, 310), (310, count)):
            engine.remember_many([draft(each, turns=turns) for each in range(first, last)], quality="mark")
    return store


def blocks(store: str) -> list[tuple[int, bool]]:
    """How many memories each block has, and whether it has their vectors."""
    rows = sql_at(store, "SELECT memories, vectors IS NOT NULL FROM memory_blocks ORDER BY num")
    return [(int(count), bool(vectors)) for count, vectors in rows]


def answers(store: str) -> list[Any]:
    """What a new process finds for each question, asked twice."""
    found: list[Any] = []
    with opened(store) as engine:
        for question in QUESTIONS * 2:
            result = engine.recall(question, limit=30)
            found += [(each.memory, each.score, each.parts, each.candidate.signals) for each in result]
            found.append(engine.assemble(question, budget=400).text)
        found.append([each.memory.id for each in engine.recall(QUESTIONS[0], include_superseded=True)])
    return found


def found_by(engine: Engine, question: str) -> tuple[list[tuple[Memory, float]], ...]:
    """What a question finds, and what it finds of a range of time, to which archived memories belong."""
    ways: tuple[dict[str, Any], ...] = ({}, {"since": NOW - timedelta(days=90)})
    return tuple(
        [(each.memory, each.score) for each in engine.recall(question, limit=30, **way)] for way in ways
    )


def unpacked_answers(store: str, tmp_path: Path) -> list[Any]:
    """The same where no memory is in a block."""
    copy = str(tmp_path / f"copy-{len(list(tmp_path.iterdir()))}.db")
    copy_store(store, copy)
    sql_at(copy, "DELETE FROM memory_blocks")
    return answers(copy)


@pytest.mark.parametrize("turns", [False, True])
def test_blocks_change_no_answer(store: str, tmp_path: Path, turns: bool) -> None:
    filled(store, turns=turns)
    assert blocks(store) == WHOLE
    first = answers(store)
    assert len(first) > 300
    assert first == unpacked_answers(store, tmp_path)


def test_what_happens_to_memories_in_a_block_is_found_as_in_rows(store: str, tmp_path: Path) -> None:
    filled(store)
    before = answers(store)
    with opened(store) as engine, opened(store) as other:
        # The other has read the block and follows.
        other.recall(QUESTIONS[0])
        memories = sorted(engine.memories(order="oldest"), key=lambda each: each.content)
        for each in memories[:5]:
            engine.revise(each.id, content=f"{each.content} It was cleaned in the kitchen.")
        for each in memories[5:10]:
            engine.forget(each.id)
        for each in [each for each in memories[10:] if each.kind == "episode"][:5]:
            engine.retire(each.id)
        for each in [each for each in memories[10:] if each.kind == "fact"][:5]:
            engine.confirm(each.id)
        engine.remember_many([draft(each) for each in range(700, 720)], quality="mark")
        engine.remember("A warm light for the library, to read by.", expires_at=NOW + timedelta(days=9))
        expected = [found_by(other, question) for question in QUESTIONS]
        assert blocks(store) == WHOLE
    after = answers(store)
    assert before != after == unpacked_answers(store, tmp_path)
    with opened(store) as engine:
        found = [found_by(engine, question) for question in QUESTIONS]
    assert found == expected
    assert {each.status for _, dated in found for each, _ in dated} == {Status.ACTIVE, Status.ARCHIVED}


def test_a_purge_takes_the_block_away_and_maintain_packs_it_again(store: str, tmp_path: Path) -> None:
    filled(store)
    with opened(store) as engine:
        gone = engine.recall("lamp-17 of the library")[0].memory
        engine.purge(gone.id, confirm=True)
    assert len(blocks(store)) == 1
    if not store.startswith("postgresql:"):
        assert UUID(gone.id).bytes not in Path(store).read_bytes()
    with opened(store) as engine:
        engine.maintain()
    assert [vectors for _, vectors in blocks(store)] == [True, True]
    assert answers(store) == unpacked_answers(store, tmp_path)


@pytest.mark.parametrize("column", ["entries", "words", "vectors"])
def test_a_damaged_block_is_not_used_and_named(store: str, column: str) -> None:
    filled(store)
    right = answers(store)
    raw, num = sql_at(store, f"SELECT {column}, num FROM memory_blocks ORDER BY num")[1]
    place = len(raw) // 2
    wrong = (raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]).hex()
    value = f"decode('{wrong}', 'hex')" if store.startswith("postgresql:") else f"x'{wrong}'"
    sql_at(store, f"UPDATE memory_blocks SET {column} = {value} WHERE num = {num}")
    assert answers(store) == right
    with opened(store) as engine:
        assert [each.code for each in engine.doctor()] == ["block"]
    reindex_store(store)
    assert blocks(store) == [(700, True)]
    with opened(store) as engine:
        assert not engine.doctor()
    assert answers(store) == right


def test_a_block_of_other_memories_than_it_says_is_not_used(store: str) -> None:
    filled(store)
    right = answers(store)
    for change in ("above = above - 1", "num = num - 1", "above = above + 1"):
        sql_at(store, f"UPDATE memory_blocks SET {change} WHERE memories = 400")
        assert answers(store) == right


def test_blocks_are_joined_with_three_that_are_no_larger(store: str) -> None:
    with opened(store) as engine:
        for first in range(0, 1800, 300):
            engine.remember_many([draft(each) for each in range(first, first + 300)], quality="mark")
    assert [count for count, _ in blocks(store)] == [1200, 300, 300]


def test_memories_written_one_by_one_are_packed(store: str) -> None:
    with opened(store) as engine:
        for number in range(270):
            engine.remember_many([draft(number)], quality="mark")
    assert blocks(store) == [(256, True)]


def test_vectors_are_packed_once_all_memories_have_them(store: str) -> None:
    with germane.open(store, agent="ada", embedder=None, clock=FixedClock(NOW)) as engine:
        engine.remember_many([draft(each) for each in range(300)], quality="mark")
    assert blocks(store) == [(300, False)]
    with opened(store) as engine:
        engine.embed_pending()
    assert blocks(store) == [(300, True)]

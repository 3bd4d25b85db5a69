"""What a search leaves unread, or compares by quantised vectors, changes no answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import Draft
from germane.errors import NotFound
from germane.model.change import Purge
from germane.model.query import CandidateTable, Filter, Order, Query, SearchResult, Slice, is_unread
from germane.stores import StoreHandle
from germane.stores.sqlite.store import SqliteStore
from germane.testing.fakes import FixedClock

NOW = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)
CLOCK = FixedClock(NOW)
PLACES = ("kitchen", "garden", "cellar", "library", "workshop", "attic", "stable")
QUESTIONS = (
    "Which lamp stands in the {place}?",
    "What changed in the {place} last month?",
    "Who repaired the lamp-{number} of the {place}, Ada?",
    "latest note on the {place}",
    "which decision about the {place} was rejected?",
    "{place} lamp {number}",
)


def drafts(agent: int) -> list[Draft]:
    """150 memories of every kind that ranking treats in its own way."""
    made = []
    for number in range(150):
        place = PLACES[(number + agent) % 7]
        text = f"The lamp-{number} of the {place} is number {number * agent % 31} and needs oil."
        created = NOW - timedelta(days=number)
        if number % 10 == 0:
            made.append(Draft(content=text, kind="adr", metadata={"status": "Rejected"}, created_at=created))
        elif number % 10 == 1:
            made.append(Draft(content=text, kind="commit", metadata={"author": "Ada"}, created_at=created))
        elif number % 10 == 2:
            until = NOW - timedelta(days=number - 60)
            made.append(
                Draft(content=text, kind="fact", created_at=created, valid_from=created, valid_until=until)
            )
        elif number % 10 == 3:
            long = " ".join(
                f"Then the {each} was lit, and lamp {number + 1} went out." for each in PLACES * 4
            )
            made.append(Draft(content=f"{text} {long}", kind="episode", created_at=created))
        else:
            made.append(Draft(content=text, kind="note", created_at=created))
    return made


def answers(store: StoreHandle, *, agents: int, first: int) -> list[object]:
    found: list[object] = []
    for turn, question in enumerate(QUESTIONS):
        for agent in range(agents):
            number = first + turn * 7 + agent
            text = question.format(place=PLACES[number % 7], number=number)
            result = store.agent(f"agent {agent}").recall(text, include_superseded=turn == 0)
            found += [(one.memory, one.score, one.parts, one.candidate.signals) for one in result]
            found += [result.notes, result.empty_reason]
    return found


def changed(store: StoreHandle) -> None:
    """Revise, purge, forget and add some memories, the same ones whenever it is done."""
    engine = store.agent("agent 1")
    by_text = {one.content: one.id for one in engine.memories(order="oldest")}
    for text, memory_id in sorted(by_text.items())[:6]:
        engine.revise(memory_id, content=f"{text} It was cleaned.")
    for _, memory_id in sorted(by_text.items())[6:9]:
        engine.forget(memory_id)
    for _, memory_id in sorted(by_text.items())[9:12]:
        engine.purge(memory_id, confirm=True)
    engine.remember("The new lamp of the kitchen hangs over the table.")


@pytest.mark.parametrize("where", ["file", "server"])
def test_small_caches_answer_as_large_ones_do(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    location = tmp_path / "agents.db" if where == "file" else request.getfixturevalue("postgres_store")
    with germane.connect(location, clock=CLOCK) as store:
        for agent in range(3):
            store.agent(f"agent {agent}").remember_many(drafts(agent), quality="mark")
    for first in (0, 100):
        found = []
        for limit in (None, 400_000, 100_000):
            with germane.connect(location, clock=CLOCK, cache_bytes=limit) as store:
                # Asked often, the second time with what the first left in the caches.
                found += [answers(store, agents=3, first=first) for _ in range(2)]
        assert all(each == found[0] for each in found)
        assert len(found[0]) > 100
        with germane.connect(location, clock=CLOCK, cache_bytes=400_000) as store:
            before = answers(store, agents=3, first=first)
            changed(store)
            after = answers(store, agents=3, first=first)
        with germane.connect(location, clock=CLOCK) as store:
            assert answers(store, agents=3, first=first) == after != before


class _PurgingStore(SqliteStore):
    """Purges a memory after each search, before anything of what was found is read."""

    purged = ""

    def search(self, agent: str, query: Query) -> SearchResult:
        found = super().search(agent, query)
        if self.purged:
            purged, self.purged = self.purged, ""
            self.apply(agent, [Purge(memory_id=purged, at=NOW)])
        return found


@pytest.mark.parametrize("question", ["tea", "Which tea is T-42?"])
def test_what_is_purged_before_it_is_read_is_left_out(question: str, tmp_path: Path) -> None:
    """The records are read to be returned, and before that the texts where a question names an identifier."""
    with germane.open(tmp_path / "memory.db", clock=CLOCK, embedder=None) as engine:
        first, second = (engine.remember(text) for text in ("Tea is green.", "Tea is black."))
    store = _PurgingStore(tmp_path / "memory.db")
    with germane.open(store, clock=CLOCK, embedder=None) as engine:
        store.purged = first.id
        assert [one.memory.content for one in engine.recall(question)] == [second.content]


def test_long_memories_and_decision_records_of_a_block_are_read_late(tmp_path: Path) -> None:
    long = " ".join(f"Then the lamp of the {place} was lit, and another went out." for place in PLACES * 3)
    forms = (
        {"content": long},
        {"content": "The lamp stays.", "kind": "adr", "metadata": {"status": "Accepted"}},
        {"content": "The lamp goes.", "kind": "adr", "metadata": {"status": "Rejected"}},
    )
    with germane.open(tmp_path / "memory.db", clock=CLOCK, embedder=None) as engine:
        drafts = [{**forms[number % 3], "source": str(number)} for number in range(300)]
        engine.remember_many([Draft(**each) for each in drafts], quality="mark")  # type: ignore[arg-type]  # Each is right.
    store = SqliteStore(tmp_path / "memory.db")
    query = Query(filter=Filter(), slices=(Slice(limit=300, order=Order.NEWEST),), deferred=True)
    found = CandidateTable.of(store.search("default", query).slices[0]).memories
    assert all(is_unread(each) for each in found)
    withdrawn = [is_unread(each) and each.withdrawn for each in found]
    assert withdrawn == [each.metadata.get("status") == "Rejected" for each in found]
    store.close()


def test_reading_late_what_was_purged_raises(tmp_path: Path) -> None:
    with germane.open(tmp_path / "memory.db", clock=CLOCK, embedder=None) as engine:
        memory = engine.remember("Tea is green.")
    store = SqliteStore(tmp_path / "memory.db")
    query = Query(filter=Filter(), slices=(Slice(limit=5, order=Order.NEWEST),), deferred=True)
    read, unread = store.search(memory.agent, query), store.search(memory.agent, query)
    assert [one.memory for one in read.slices[0]] == [memory]
    store.clear_caches()
    unread = store.search(memory.agent, query)
    store.apply(memory.agent, [Purge(memory_id=memory.id, at=NOW)])
    with pytest.raises(NotFound, match=memory.id):
        list(unread.slices[0])
    store.close()

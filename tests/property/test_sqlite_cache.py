"""A cache that followed every change answers exactly as one that was loaded just now."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from germane import Filter, Memory, Order, Status
from germane.protocols import Query
from germane.stores import Insert, Purge, Revise, SetStatus, SetVector, Slice, SqliteStore
from germane.testing.contract import EMBEDDING
from germane.testing.fakes import START, make_memory, make_revision, make_vector
from support.examples import examples
from support.stores import terms_of

AGENT = "tester"
WORDS = st.lists(st.sampled_from(("redis", "cache", "queue", "token", "日本")), max_size=6).map(" ".join)
SLICES = (
    Slice(limit=3),
    Slice(kinds=("fact",), limit=2),
    Slice(order=Order.NEWEST, limit=2),
    Slice(order=Order.OLDEST, limit=2),
    Slice(order=Order.IMPORTANT, limit=2),
)
QUERIES = tuple(
    Query(
        terms=terms_of(words),
        vector=None if seed is None else make_vector(seed),
        filter=where,
        slices=SLICES,
    )
    for words, seed in (("redis queue", None), ("cache", 1), ("", 2), ("", None))
    for where in (Filter(), Filter(tags=("a",), statuses=tuple(Status)), Filter(min_importance=5.0))
)


class Following(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "agent.db"
        self.writer = SqliteStore(self.path, embedding=EMBEDDING, durability="relaxed")
        self.warm = SqliteStore(self.path, embedding=EMBEDDING)
        self.heads: list[Memory] = []
        self.number = 0

    @rule(words=WORDS, count=st.integers(1, 4), seed=st.none() | st.integers(0, 3), noted=st.booleans())
    def insert(self, words: str, count: int, seed: int | None, noted: bool) -> None:
        vector = None if seed is None else make_vector(seed)
        batch = []
        for _ in range(count):
            self.number += 1
            batch.append(
                make_memory(
                    f"{words} {self.number}",
                    kind="note" if noted else "fact",
                    importance=float(self.number % 11),
                    tags=("a:b",) if noted else (),
                )
            )
        self.writer.apply(AGENT, [Insert(memory=each, vector=vector) for each in batch])
        self.heads += batch

    @rule(data=st.data(), status=st.sampled_from(list(Status)))
    def move(self, data: st.DataObject, status: Status) -> None:
        if self.heads:
            memory = data.draw(st.sampled_from(self.heads))
            self.writer.apply(AGENT, [SetStatus(memory_id=memory.id, status=status, at=START)])

    @rule(data=st.data(), words=WORDS)
    def revise(self, data: st.DataObject, words: str) -> None:
        if self.heads:
            self.number += 1
            head = self.heads.pop(data.draw(st.integers(0, len(self.heads) - 1)))
            revision = make_revision(head, f"{words} {self.number}")
            self.writer.apply(AGENT, [Revise(memory=revision, vector=make_vector(self.number))])
            self.heads.append(revision)

    @rule(data=st.data(), seed=st.integers(0, 3))
    def embed(self, data: st.DataObject, seed: int) -> None:
        if self.heads:
            memory = data.draw(st.sampled_from(self.heads))
            self.writer.apply(AGENT, [SetVector(memory_id=memory.id, vector=make_vector(seed))])

    @rule(data=st.data())
    def see_again(self, data: st.DataObject) -> None:
        if self.heads:
            self.writer.apply(AGENT, [Insert(memory=data.draw(st.sampled_from(self.heads)))])

    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        if self.heads:
            memory = self.heads.pop(data.draw(st.integers(0, len(self.heads) - 1)))
            self.writer.apply(AGENT, [Purge(memory_id=memory.id, at=START)])

    @rule()
    def search(self) -> None:
        for query in QUERIES:
            self.warm.search(AGENT, query)

    @invariant()
    def nothing_is_damaged(self) -> None:
        assert self.writer.stats(AGENT).memories >= len(self.heads)

    def teardown(self) -> None:
        fresh = SqliteStore(self.path, embedding=EMBEDDING)
        for query in QUERIES:
            assert self.warm.search(AGENT, query) == fresh.search(AGENT, query)
        assert fresh.maintenance.check(AGENT) == ()
        for store in (fresh, self.warm, self.writer):
            store.close()
        self.folder.cleanup()


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=examples(25), stateful_step_count=25, deadline=None)

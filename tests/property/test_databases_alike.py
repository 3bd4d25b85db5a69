"""Whatever is done to it, a store in PostgreSQL answers exactly as one in a SQLite file."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from germane import Filter, Memory, Order, Scope, Status, TimeRange
from germane.protocols import Query
from germane.stores import Insert, PostgresStore, Purge, Revise, SetStatus, SetVector, Slice, SqliteStore
from germane.testing.contract import EMBEDDING
from germane.testing.fakes import START, make_memory, make_revision, make_vector
from support.examples import examples
from support.postgres_server import Server
from support.stores import terms_of

AGENT = "tester"
WORDS = st.lists(st.sampled_from(("redis", "cache", "queue", "token", "日本", "Ωmega")), max_size=6).map(
    " ".join
)
SLICES = (
    Slice(limit=3),
    Slice(kinds=("fact",), limit=2),
    Slice(order=Order.NEWEST, limit=2),
    Slice(order=Order.OLDEST, limit=2),
    Slice(order=Order.IMPORTANT, limit=2),
)
FILTERS = (
    Filter(),
    Filter(tags=("a",), statuses=tuple(Status)),
    Filter(tags=("a:b", "c"), kinds=("fact", "note")),
    Filter(min_importance=5.0),
    Filter(scopes=(Scope(name="session", value="s1"),)),
    Filter(when=TimeRange(since=START)),
    Filter(where='tag = "a" or not (importance < 5 or scope = "session:s1")'),
    Filter(embedded=False, statuses=tuple(Status)),
)
QUERIES = tuple(
    Query(
        terms=terms_of(words),
        informative=tuple(words.split()[:1]),
        vector=None if seed is None else make_vector(seed),
        filter=where,
        slices=SLICES,
    )
    for words, seed in (("redis queue", None), ("cache 日本", 1), ("", 2), ("", None), ("Ωmega token", 0))
    for where in FILTERS
)


class Alike(RuleBasedStateMachine):
    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.database = self.server.fresh("germane_alike", prepared=_prepare)
        self.file = SqliteStore(":memory:", embedding=EMBEDDING)
        self.served = PostgresStore(self.server.url(self.database), embedding=EMBEDDING)
        self.heads: list[Memory] = []
        self.number = 0

    def both(self, *changes: Insert | Purge | Revise | SetStatus | SetVector) -> None:
        """Do it to both, which have to say the same of it."""
        assert self.file.apply(AGENT, changes) == self.served.apply(AGENT, changes)

    @rule(
        words=WORDS,
        count=st.integers(1, 4),
        seed=st.none() | st.integers(0, 3),
        noted=st.booleans(),
        session=st.none() | st.sampled_from(("s1", "s2")),
    )
    def insert(self, words: str, count: int, seed: int | None, noted: bool, session: str | None) -> None:
        vector = None if seed is None else make_vector(seed)
        batch = []
        for _ in range(count):
            self.number += 1
            named = {} if session is None else {"scope": Scope(name="session", value=session)}
            batch.append(
                make_memory(
                    f"{words} {self.number}",
                    kind="note" if noted else "fact",
                    importance=float(self.number % 11),
                    tags=("a:b",) if noted else (),
                    **named,
                )
            )
        self.both(*(Insert(memory=each, vector=vector) for each in batch))
        self.heads += batch

    @rule(data=st.data(), status=st.sampled_from(list(Status)))
    def move(self, data: st.DataObject, status: Status) -> None:
        if self.heads:
            memory = data.draw(st.sampled_from(self.heads))
            self.both(SetStatus(memory_id=memory.id, status=status, at=START))

    @rule(data=st.data(), words=WORDS)
    def revise(self, data: st.DataObject, words: str) -> None:
        if self.heads:
            self.number += 1
            head = self.heads.pop(data.draw(st.integers(0, len(self.heads) - 1)))
            revision = make_revision(head, f"{words} {self.number}")
            self.both(Revise(memory=revision, vector=make_vector(self.number)))
            self.heads.append(revision)

    @rule(data=st.data(), seed=st.integers(0, 3))
    def embed(self, data: st.DataObject, seed: int) -> None:
        if self.heads:
            memory = data.draw(st.sampled_from(self.heads))
            self.both(SetVector(memory_id=memory.id, vector=make_vector(seed)))

    @rule(data=st.data())
    def see_again(self, data: st.DataObject) -> None:
        if self.heads:
            self.both(Insert(memory=data.draw(st.sampled_from(self.heads))))

    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        if self.heads:
            memory = self.heads.pop(data.draw(st.integers(0, len(self.heads) - 1)))
            self.both(Purge(memory_id=memory.id, at=START))

    @rule()
    def search(self) -> None:
        for query in QUERIES:
            assert self.served.search(AGENT, query) == self.file.search(AGENT, query)

    @rule(
        order=st.sampled_from(list(Order)),
        where=st.sampled_from(FILTERS),
        limit=st.none() | st.integers(0, 5),
    )
    def page(self, order: Order, where: Filter, limit: int | None) -> None:
        first = self.file.find(AGENT, where, order=order, limit=limit)
        assert self.served.find(AGENT, where, order=order, limit=limit) == first
        if first:
            after = first[-1].id
            rest = self.file.find(AGENT, where, order=order, limit=3, after=after)
            assert self.served.find(AGENT, where, order=order, limit=3, after=after) == rest

    @invariant()
    def nothing_is_damaged(self) -> None:
        ours, theirs = self.file.stats(AGENT), self.served.stats(AGENT)
        assert (ours.by_kind, ours.by_status, ours.tokens) == (
            theirs.by_kind,
            theirs.by_status,
            theirs.tokens,
        )
        assert (ours.vectors, ours.pending, ours.oldest) == (theirs.vectors, theirs.pending, theirs.oldest)

    def teardown(self) -> None:
        # One that has followed nothing so far has to find the same.
        fresh = PostgresStore(self.server.url(self.database), embedding=EMBEDDING)
        for query in QUERIES:
            assert fresh.search(AGENT, query) == self.file.search(AGENT, query)
        assert fresh.maintenance.check(AGENT) == ()
        for store in (fresh, self.served, self.file):
            store.close()
        self.server.drop(self.database)


def _prepare(address: str) -> None:
    PostgresStore(address, embedding=EMBEDDING).close()


@pytest.fixture
def machine(postgres_server: Server) -> type[Alike]:
    Alike.server = postgres_server
    return Alike


@pytest.mark.long
def test_both_databases_answer_alike(machine: type[Alike]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(15),
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        ),
    )

"""The contract that every store has to pass, as a class for pytest.

A store's own test is a subclass:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

import numpy as np
import pytest

from germane.errors import GermaneError, InvalidInput, NotFound
from germane.model.change import Insert, Purge, Revise, SetStatus, SetVector
from germane.model.memory import GLOBAL, Memory, Scope, Status, Vector
from germane.model.query import (
    Candidate,
    EmbeddingIdentity,
    Filter,
    Order,
    Query,
    SearchResult,
    Slice,
    TimeRange,
)
from germane.protocols import Store
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import MAINTENANCE
from germane.testing.contract_changes import (
    AGENT,
    EVERY,
    ChangesContract,
    EmbeddingContract,
    ScopesContract,
    insert,
)
from germane.testing.contract_filters import ConditionsContract, FieldsContract
from germane.testing.fakes import (
    START,
    make_id,
    make_memories,
    make_memory,
    make_revision,
    make_vector,
)

__all__ = ["EMBEDDING", "OpenStore", "StoreContract"]

# ruff: noqa: S101, PLR2004 - a contract asserts, and its numbers are the expected values.


EMBEDDING = EmbeddingIdentity(name="contract", dimension=8)
"""The model that the contract's vectors come from."""


OpenStore: TypeAlias = Callable[[EmbeddingIdentity | None], Store]
"""Opens a new, empty store that takes the vectors of a model, or none."""


def ask(text: str, *, vector: Vector | None = None, slices: tuple[Slice, ...] = (Slice(),)) -> Query:
    """A query for the words of a text, and for a vector."""
    return Query(text=text, terms=query_terms(text), vector=vector, slices=slices)


def ids(part: Sequence[Candidate]) -> list[str]:
    """The ids of candidates."""
    return [each.memory.id for each in part]


class SearchContract:
    """Relevance, orders, filters and counts of a search."""

    def test_an_empty_store_finds_nothing(self, store: Store) -> None:
        results = store.search(AGENT, ask("redis", slices=(Slice(), Slice(order=Order.NEWEST))))
        assert results.slices == ((), ())
        assert (results.stored, results.admitted, results.by_relevance) == (0, 0, True)

    def test_words_find_memories(self, store: Store) -> None:
        redis, postgres = make_memory("Redis is the cache"), make_memory("Postgres keeps the records")
        insert(store, redis, postgres)
        results = store.search(AGENT, ask("which cache?"))
        assert ids(results.slices[0]) == [redis.id]
        assert results.slices[0][0].signals["lexical"] > 0
        assert results.lexical_bound > 0
        assert (results.stored, results.admitted, results.by_relevance) == (2, 2, True)

    def test_the_stamp_moves_with_the_memories_of_its_agent_only(self, store: Store) -> None:
        redis = make_memory("Redis is the cache")
        insert(store, redis)

        def stamp(question: str) -> tuple[int, ...] | None:
            return store.search(AGENT, ask(question)).stamp

        before = stamp("redis")
        if before is None:
            pytest.skip("The store doesn't tell.")
        store.apply("other", [Insert(memory=make_memory("Redis is slow", agent="other"))])
        assert stamp("redis") == stamp("something else") == before
        assert store.search("other", ask("redis")).stamp != before
        store.apply(AGENT, [SetStatus(memory_id=redis.id, status=Status.FORGOTTEN, at=START)])
        assert stamp("redis") != before

    def test_subject_tags_and_metadata_are_found_too(self, store: Store) -> None:
        memories = [
            make_memory("a", subject="zebra"),
            make_memory("b", tags=("animal:zebra",)),
            make_memory("c", metadata={"seen": ["zebra"]}),
            make_memory("d", source="zebra"),
        ]
        insert(store, *memories)
        assert sorted(ids(store.search(AGENT, ask("zebra")).slices[0])) == sorted(m.id for m in memories[:3])

    def test_turns_are_found_where_only_archived_ones_are_left(self, store: Store) -> None:
        scope = Scope(name="session", value="s-1")
        turns = [
            make_memory(f"redis turn {number}", kind="episode", scope=scope, status=Status.ARCHIVED)
            for number in range(3)
        ]
        insert(store, *turns)
        where = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED))
        for vector in (None, make_vector(1)):
            results = store.search(AGENT, replace(ask("redis", vector=vector), filter=where))
            assert sorted(ids(results.slices[0])) == sorted(turn.id for turn in turns)

    def test_the_better_match_scores_higher(self, store: Store) -> None:
        both, one = make_memory("redis cache"), make_memory("redis queue with many other words in it")
        insert(store, both, one)
        (candidates,) = store.search(AGENT, ask("redis cache")).slices
        scores = {each.memory.id: each.signals["lexical"] for each in candidates}
        assert scores[both.id] > scores[one.id]

    def test_ties_fall_to_the_newer_id(self, store: Store) -> None:
        memories = [make_memory(f"redis n{number}x") for number in range(30)]
        insert(store, *memories)
        results = store.search(AGENT, ask("redis", slices=(Slice(limit=10),)))
        assert ids(results.slices[0]) == sorted(each.id for each in memories)[-10:]

    def test_a_slice_stands_in_the_order_of_ids(self, store: Store) -> None:
        memories = make_memories(50)
        insert(store, *memories)
        query = ask("redis cache postgres", slices=(Slice(limit=20), Slice(order=Order.IMPORTANT, limit=5)))
        for part in store.search(AGENT, query).slices:
            assert ids(part) == sorted(set(ids(part)))

    def test_statistics_are_of_the_agent_alone(self, store: Store) -> None:
        memory = make_memory("redis cache")
        insert(store, memory)
        before = store.search(AGENT, ask("redis"))
        insert(store, *[make_memory(f"redis {number}", agent="other") for number in range(50)])
        assert store.search(AGENT, ask("redis")) == before

    def test_a_question_of_nothing_falls_to_the_newest(self, store: Store) -> None:
        memories = make_memories(10)
        insert(store, *memories)
        results = store.search(AGENT, Query(slices=(Slice(limit=3),)))
        assert not results.by_relevance
        assert ids(results.slices[0]) == [each.id for each in memories[-3:]]
        assert results.slices[0][0].signals == {}

    @pytest.mark.parametrize("order", list(Order))
    def test_an_ordered_slice_has_what_find_has(self, store: Store, order: Order) -> None:
        memories = make_memories(60)
        insert(store, *memories)
        results = store.search(AGENT, ask("redis", slices=(Slice(order=order, limit=7),)))
        expected = [each.id for each in store.find(AGENT, Filter(), order=order, limit=7)]
        assert ids(results.slices[0]) == sorted(expected)

    def test_slices_restrict_kinds_and_have_limits_of_their_own(self, store: Store) -> None:
        insert(store, *make_memories(100))
        parts = (
            Slice(kinds=("fact", "adr"), limit=4),
            Slice(kinds=("note",), order=Order.NEWEST, limit=2),
            Slice(kinds=("unheard of",)),
            Slice(limit=0),
        )
        first, second, third, fourth = store.search(AGENT, ask("redis cache token", slices=parts)).slices
        assert len(first) == 4
        assert {each.memory.kind for each in first} <= {"fact", "adr"}
        assert [each.memory.kind for each in second] == ["note", "note"]
        assert (third, fourth) == ((), ())

    def test_the_filter_is_findings_filter(self, store: Store) -> None:
        insert(store, *make_memories(80))
        where = Filter(kinds=("fact", "note"), tags=("db",), min_importance=4.0)
        results = store.search(AGENT, Query(filter=where, slices=(Slice(limit=1000),)))
        expected = store.find(AGENT, where)
        assert ids(results.slices[0]) == sorted(each.id for each in expected)
        assert (results.stored, results.admitted) == (80, len(expected))

    def test_a_slice_may_have_a_second_filter(self, store: Store) -> None:
        mine = make_memory("redis one", tags=("mine",), subject="redis")
        other = make_memory("redis two", tags=("mine",), kind="decision")
        theirs = make_memory("redis three", tags=("theirs",), subject="redis")
        insert(store, mine, other, theirs)
        also = Filter(subject="redis")
        parts = (
            Slice(also=also),
            Slice(also=also, order=Order.NEWEST),
            Slice(where=Filter(), also=also, order=Order.NEWEST),
            Slice(kinds=("decision",), also=also),
        )
        results = store.search(AGENT, replace(ask("redis", slices=parts), filter=Filter(tags=("mine",))))
        expected = [{mine.id}, {mine.id}, {mine.id, theirs.id}, set()]
        assert [set(ids(part)) for part in results.slices] == expected

    def test_a_window_has_no_turn_that_the_filter_excludes(self, store: Store) -> None:
        session = Scope(name="session", value="one")

        def turn(text: str, *tags: str) -> Memory:
            return make_memory(text, scope=session, tags=tags)

        insert(store, turn("Which cache do we take?", "mine"), turn("Redis, since it is fast.", "theirs"))
        where = Filter(tags=("mine",))
        query = ask("redis")
        with_both = store.search(AGENT, replace(query, slices=(Slice(),))).slices[0]
        alone = store.search(AGENT, replace(query, filter=where)).slices[0]
        assert max(one.signals["window_lexical"] for one in with_both) > 0
        assert ids(alone) == []

    def test_vectors_rank_by_cosine(self, store: Store) -> None:
        memories = make_memories(30)
        store.apply(AGENT, [Insert(memory=m, vector=make_vector(n)) for n, m in enumerate(memories)])
        query = Query(vector=make_vector(7), slices=(Slice(limit=3),))
        results = store.search(AGENT, query)
        cosines = [float(make_vector(n) @ make_vector(7)) for n in range(30)]
        nearest = np.argsort(cosines)[-3:]
        assert ids(results.slices[0]) == sorted(memories[n].id for n in nearest)
        for candidate in results.slices[0]:
            cosine = cosines[memories.index(candidate.memory)]
            assert candidate.signals == {"semantic": pytest.approx(cosine, abs=0.002)}

    def test_both_signals_unite(self, store: Store) -> None:
        by_word, by_vector, by_neither = make_memory("redis"), make_memory("unrelated"), make_memory("else")
        insert(store, by_word, by_neither)
        store.apply(AGENT, [Insert(memory=by_vector, vector=make_vector(1))])
        query = ask("redis", vector=make_vector(1), slices=(Slice(limit=1),))
        signals = {each.memory.content: dict(each.signals) for each in store.search(AGENT, query).slices[0]}
        assert set(signals) == {"redis", "unrelated"}
        assert set(signals["redis"]) == {"lexical"}
        assert signals["unrelated"] == {"lexical": 0.0, "semantic": pytest.approx(1.0, abs=0.002)}

    def test_a_vector_can_be_set_and_replaced(self, store: Store) -> None:
        first, second = make_memory("one"), make_memory("two")
        insert(store, first, second)
        query = Query(vector=make_vector(1), slices=(Slice(limit=1),))
        assert store.search(AGENT, query).slices == ((),)
        for memory, seed in ((first, 1), (second, 1), (first, 2)):
            store.apply(AGENT, [SetVector(memory_id=memory.id, vector=make_vector(seed))])
            store.search(AGENT, query)
        assert ids(store.search(AGENT, query).slices[0]) == [second.id]
        assert store.stats(AGENT).vectors == 2

    @pytest.mark.parametrize("vector", [make_vector(1, 5), np.full(8, np.nan, dtype=np.float32)])
    def test_a_question_with_no_vector_of_the_model_is_refused(self, store: Store, vector: Vector) -> None:
        store.apply(AGENT, [Insert(memory=make_memory(), vector=make_vector(1))])
        with pytest.raises(InvalidInput):
            store.search(AGENT, Query(vector=vector))

    def test_a_search_sees_every_change_at_once(self, store: Store) -> None:
        first = make_memory("redis one")

        def hits() -> SearchResult:
            return store.search(AGENT, ask("redis"))

        assert hits().slices == ((),)
        insert(store, first)
        assert ids(hits().slices[0]) == [first.id]
        second = make_revision(first, "redis two")
        store.apply(AGENT, [Revise(memory=second)])
        assert ids(hits().slices[0]) == [second.id]
        assert (hits().stored, hits().admitted) == (2, 1)
        store.apply(AGENT, [SetStatus(memory_id=second.id, status=Status.FORGOTTEN, at=START)])
        assert hits().slices == ((),)
        store.apply(AGENT, [Insert(memory=second)])
        (candidate,) = hits().slices[0]
        assert (candidate.memory.seen_count, candidate.memory.status) == (2, Status.ACTIVE)
        store.apply(AGENT, [Purge(memory_id=second.id, at=START + timedelta(days=1))])
        assert hits().slices == ((),)
        assert hits().stored == 0


class StoreContract(
    ChangesContract, SearchContract, ConditionsContract, EmbeddingContract, ScopesContract, FieldsContract
):
    """What the six methods of a store promise. Subclasses say how one is opened."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Override this."""
        pytest.fail("A subclass of StoreContract has to say how its store is opened.")

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        """A new, empty store; afterwards it is checked for damage and closed."""
        opened = open_store(EMBEDDING)
        yield opened
        if maintenance := MAINTENANCE.of(opened):
            for agent in (AGENT, "other"):
                assert maintenance.check(agent) == ()
        opened.close()

    def test_an_unknown_agent_has_nothing(self, store: Store) -> None:
        assert store.get("nobody", [make_id("x")]) == (None,)
        assert store.find("nobody", EVERY) == ()
        assert store.stats("nobody").memories == 0

    def test_get_keeps_the_order_of_the_ids(self, store: Store) -> None:
        one, two = make_memory("one"), make_memory("two")
        insert(store, one, two)
        wanted = [two.id, make_id("unknown"), one.id, two.id, "no id at all", "' OR 1=1"]
        assert store.get(AGENT, wanted) == (two, None, one, two, None, None)
        assert store.get(AGENT, []) == ()

    def test_agents_see_nothing_of_each_other(self, store: Store) -> None:
        mine, theirs = make_memory("shared words"), make_memory("shared words", agent="other")
        insert(store, mine)
        insert(store, theirs)
        assert store.get(AGENT, [theirs.id]) == (None,)
        assert store.find(AGENT, EVERY) == (mine,)
        assert ids(store.search(AGENT, ask("shared")).slices[0]) == [mine.id]
        assert store.stats(AGENT).memories == 1
        store.apply("other", [Purge(memory_id=theirs.id, at=START)])
        assert store.find(AGENT, EVERY) == (mine,)

    def test_two_agents_may_keep_the_same_memory(self, store: Store) -> None:
        mine = make_memory("one")
        insert(store, mine)
        insert(store, mine.evolve(agent="other"))
        assert store.get("other", [mine.id]) == (mine.evolve(agent="other"),)

    @pytest.mark.parametrize("name", ["Ünïcode ☂", "a'b\"c;--", "x" * 1000, " ", "tester "])
    def test_any_name_names_an_agent(self, store: Store, name: str) -> None:
        memory = make_memory(agent=name)
        insert(store, memory)
        assert store.find(name, EVERY) == (memory,)
        assert store.find(AGENT, EVERY) == ()

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (Filter(), {"fact", "note", "scoped"}),
            (Filter(kinds=("note",)), {"note"}),
            (Filter(kinds=("note", "fact")), {"fact", "note", "scoped"}),
            (Filter(kinds=("unheard of",)), set()),
            (Filter(scopes=(Scope(name="task", value="T-1"),)), {"scoped"}),
            (Filter(scopes=(Scope(name="task", value="T-1"), GLOBAL)), {"fact", "note", "scoped"}),
            (Filter(scopes=(Scope(name="task", value="T"),)), set()),
            (Filter(subject="billing"), {"note"}),
            (Filter(source="a.md"), {"note"}),
            (Filter(source="a"), set()),
            (Filter(metadata={"ticket": "T-1"}), {"fact", "note"}),
            (Filter(metadata={"ticket": "T-1", "seats": 20}), {"fact"}),
            (Filter(metadata={"seats": 20.0}), {"fact"}),
            (Filter(metadata={"seats": True}), {"note"}),
            (Filter(metadata={"seats": 1}), set()),
            (Filter(metadata={"none": None}), {"note"}),
            (Filter(metadata={"nul": "a\x00b"}), {"note"}),
            (Filter(metadata={"nul": r"a\u0000b"}), set()),
            (Filter(metadata={'it\'s "so"': "a\\b % 日本"}), {"scoped"}),
            (Filter(metadata={"ticket": "t-1"}), set()),
            (Filter(metadata={"inner": "x"}), set()),
            (Filter(metadata={"seats": "20"}, kinds=("fact",)), set()),
            (Filter(min_importance=5.0), {"scoped"}),
            (Filter(when=TimeRange(since=START + timedelta(hours=1))), {"note", "scoped"}),
            (Filter(when=TimeRange(until=START + timedelta(hours=1))), {"fact"}),
            (Filter(when=TimeRange(since=START, until=START + timedelta(hours=2))), {"fact", "note"}),
            (Filter(statuses=(Status.FORGOTTEN,)), {"forgotten"}),
            (
                Filter(statuses=(Status.ACTIVE, Status.FORGOTTEN), kinds=("fact",)),
                {"fact", "scoped", "forgotten"},
            ),
            (Filter(statuses=()), {"fact", "note", "scoped", "forgotten"}),
            (Filter(kinds=("fact",), min_importance=5.0, subject="storage"), set()),
        ],
    )
    def test_filters(self, store: Store, where: Filter, expected: set[str]) -> None:
        insert(
            store,
            make_memory("fact", importance=2.0, subject="storage", metadata={"ticket": "T-1", "seats": 20}),
            make_memory(
                "note",
                kind="note",
                subject="billing",
                source="a.md",
                metadata={
                    "ticket": "T-1",
                    "seats": True,
                    "none": None,
                    "nul": "a\x00b",
                    "outer": {"inner": "x"},
                },
                created_at=START + timedelta(hours=1),
            ),
            make_memory(
                "scoped",
                metadata={'it\'s "so"': "a\\b % 日本"},
                scope=Scope(name="task", value="T-1"),
                importance=5.0,
                created_at=START + timedelta(hours=2),
            ),
            make_memory("forgotten", status=Status.FORGOTTEN),
        )
        assert {each.content for each in store.find(AGENT, where)} == expected
        results = store.search(AGENT, Query(filter=where))
        assert {each.memory.content for each in results.slices[0]} == expected

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            (("a",), {"a", "a:b", "a:b:c", "a:bc"}),
            (("a:b",), {"a:b", "a:b:c"}),
            (("a:b:c",), {"a:b:c"}),
            (("a:bc", "a:b:c"), {"a:bc", "a:b:c"}),
            (("b",), set()),
            (("a:",), set()),
            (("%",), set()),
            (("A",), set()),
        ],
    )
    def test_tags_match_by_hierarchy(self, store: Store, wanted: tuple[str, ...], expected: set[str]) -> None:
        insert(store, *[make_memory(tag, tags=(tag, "other")) for tag in ("a", "a:b", "a:b:c", "a:bc", "ab")])
        assert {each.content for each in store.find(AGENT, Filter(tags=wanted))} == expected
        results = store.search(AGENT, Query(filter=Filter(tags=wanted)))
        assert {each.memory.content for each in results.slices[0]} == expected

    def test_orders_are_total(self, store: Store) -> None:
        later = START + timedelta(hours=1)
        old = sorted([make_memory("a", importance=5.0), make_memory("b", importance=5.0)], key=lambda m: m.id)
        new = make_memory("c", importance=1.0, created_at=later)
        insert(store, old[1], new, old[0])
        newest = [new, old[1], old[0]]
        assert list(store.find(AGENT, Filter(), order=Order.NEWEST)) == newest
        assert list(store.find(AGENT, Filter(), order=Order.OLDEST)) == newest[::-1]
        assert list(store.find(AGENT, Filter(), order=Order.IMPORTANT)) == [old[1], old[0], new]

    @pytest.mark.parametrize("order", list(Order))
    def test_pages_join_without_gap_or_overlap(self, store: Store, order: Order) -> None:
        memories = make_memories(23)
        twins = [each.evolve(created_at=START, importance=5.0) for each in memories[:9]]
        insert(store, *twins, *memories[9:])
        pages: list[str] = []
        while page := store.find(AGENT, Filter(), order=order, limit=4, after=pages[-1] if pages else None):
            pages += [each.id for each in page]
        assert pages == [each.id for each in store.find(AGENT, Filter(), order=order)]
        assert len(pages) == 23

    def test_no_page_follows_an_unknown_memory(self, store: Store) -> None:
        insert(store, make_memory())
        with pytest.raises(NotFound):
            store.find(AGENT, Filter(), after=make_id("unknown"))
        assert store.find(AGENT, Filter(), limit=0) == ()

    def test_stats_count(self, store: Store) -> None:
        one, two = make_memory("a b c"), make_memory("d e", kind="note", created_at=START + timedelta(days=1))
        store.apply(AGENT, [Insert(memory=one, vector=make_vector(1)), Insert(memory=two)])
        store.apply(AGENT, [SetStatus(memory_id=two.id, status=Status.ARCHIVED, at=START)])
        stats = store.stats(AGENT)
        assert (stats.agent, stats.memories, stats.tokens, stats.vectors) == (AGENT, 2, 5, 1)
        assert dict(stats.by_kind) == {"fact": 1, "note": 1}
        assert dict(stats.by_status) == {"active": 1, "archived": 1}
        assert (stats.oldest, stats.newest) == (one.created_at, two.created_at)
        assert stats.embedding == EMBEDDING

    def test_threads_share_a_store(self, store: Store) -> None:
        memories = make_memories(80)

        def work(part: int) -> int:
            seen = 0
            for memory in memories[part::8]:
                store.apply(AGENT, [Insert(memory=memory)])
                seen = len(store.search(AGENT, Query(slices=(Slice(limit=1000),))).slices[0])
                assert store.get(AGENT, [memory.id]) == (memory,)
            return seen

        with ThreadPoolExecutor(8) as pool:
            seen = list(pool.map(work, range(8)))
        assert max(seen) == 80
        assert store.stats(AGENT).memories == 80

    def test_a_store_without_a_model_takes_no_vectors(self, open_store: OpenStore) -> None:
        store = open_store(None)
        with pytest.raises(GermaneError, match="embedding"):
            store.apply(AGENT, [Insert(memory=make_memory(), vector=make_vector(1))])
        insert(store, make_memory("words"))
        assert len(store.search(AGENT, ask("words", vector=make_vector(1))).slices[0]) == 1
        store.close()

    def test_a_closed_store_says_so(self, open_store: OpenStore) -> None:
        store = open_store(EMBEDDING)
        store.close()
        store.close()
        with pytest.raises(GermaneError, match="closed"):
            store.find(AGENT, Filter())

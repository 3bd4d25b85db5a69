"""What a store promises of searching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from germane.errors import InvalidInput
from germane.model.change import Insert, Purge, Revise, SetStatus, SetVector
from germane.model.memory import Memory, Scope, Status, Vector
from germane.model.query import Candidate, Filter, Order, Query, SearchResult, Slice
from germane.protocols import Store
from germane.retrieval.tokenizer import query_terms
from germane.testing.contract_changes import AGENT, insert
from germane.testing.fakes import START, make_memories, make_memory, make_revision, make_vector

# ruff: noqa: S101, PLR2004 - a contract asserts, and its numbers are the expected values.


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

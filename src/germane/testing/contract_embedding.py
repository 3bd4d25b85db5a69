# ruff: noqa: S101 - a contract asserts, and its numbers are the expected values.
"""What a store promises of embedding: it knows which memories wait for a vector.

Level: testing (nothing of the package imports it).
"""

from __future__ import annotations

from germane.model.change import Insert, Purge, Revise, SetStatus, SetVector
from germane.model.memory import Status
from germane.model.query import Filter, Query, Slice
from germane.model.vector import NOWHERE
from germane.protocols import Store
from germane.testing.builders import START, make_memories, make_memory, make_revision, make_vector
from germane.testing.contract_changes import AGENT, insert

__all__ = ["EmbeddingContract"]

_EVERY = tuple(Status)


def _waiting(store: Store, agent: str = AGENT) -> set[str]:
    return {each.content for each in store.find(agent, Filter(embedded=False, statuses=_EVERY))}


class EmbeddingContract:
    """Who waits for a vector, and who has no direction."""

    def test_what_has_no_vector_waits_for_one(self, store: Store) -> None:
        with_vector, without, nowhere = (make_memory(each) for each in ("with", "without", "nowhere"))
        inserts = [
            Insert(memory=with_vector, vector=make_vector(1)),
            Insert(memory=without),
            Insert(memory=nowhere, vector=NOWHERE),
        ]
        store.apply(AGENT, inserts)
        insert(store, make_memory("theirs", agent="other"))
        assert _waiting(store) == {"without"}
        assert _waiting(store, "other") == {"theirs"}
        done = store.find(AGENT, Filter(embedded=True))
        assert {each.content for each in done} == {"with", "nowhere"}
        assert (store.stats(AGENT).pending, store.stats(AGENT).vectors) == (1, 1)
        store.apply(AGENT, [SetVector(memory_id=without.id, vector=NOWHERE)])
        assert _waiting(store) == set()
        assert (store.stats(AGENT).pending, store.stats(AGENT).vectors) == (0, 1)

    def test_a_vector_can_be_taken_back(self, store: Store) -> None:
        memory = make_memory("one")
        store.apply(AGENT, [Insert(memory=memory, vector=make_vector(1))])
        query = Query(vector=make_vector(1), slices=(Slice(limit=5),))
        assert len(store.search(AGENT, query).slices[0]) == 1
        store.apply(AGENT, [SetVector(memory_id=memory.id, vector=NOWHERE)])
        assert store.search(AGENT, query).slices == ((),)
        assert store.stats(AGENT).vectors == 0
        store.apply(AGENT, [SetVector(memory_id=memory.id, vector=make_vector(1))])
        assert len(store.search(AGENT, query).slices[0]) == 1

    def test_a_search_knows_who_waits_now(self, store: Store) -> None:
        memories = make_memories(4)
        insert(store, *memories)
        query = Query(filter=Filter(embedded=False))
        for number, memory in enumerate(memories):
            assert store.search(AGENT, query).admitted == 4 - number
            store.apply(AGENT, [SetVector(memory_id=memory.id, vector=make_vector(number))])
        assert store.search(AGENT, query).admitted == 0

    def test_versions_wait_each_for_its_own(self, store: Store) -> None:
        first = make_memory("first")
        store.apply(AGENT, [Insert(memory=first, vector=make_vector(1))])
        second = make_revision(first, "second")
        store.apply(AGENT, [Revise(memory=second)])
        assert _waiting(store) == {"second"}
        store.apply(AGENT, [Insert(memory=second)])
        assert _waiting(store) == {"second"}

    def test_what_is_forgotten_is_not_counted_and_what_is_purged_is_gone(self, store: Store) -> None:
        one, two = make_memory("one"), make_memory("two")
        insert(store, one, two)
        store.apply(AGENT, [SetStatus(memory_id=one.id, status=Status.FORGOTTEN, at=START)])
        assert store.stats(AGENT).pending == 1
        assert {each.content for each in store.find(AGENT, Filter(embedded=False))} == {"two"}
        store.apply(AGENT, [Purge(memory_id=two.id, at=START)])
        assert _waiting(store) == {"one"}
        assert store.stats(AGENT).pending == 0

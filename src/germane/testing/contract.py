"""The contract that every store has to pass, as a class for pytest.

A store's own test is a subclass:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeAlias

import pytest

from germane.errors import GermaneError, NotFound
from germane.ledger import EmbeddingIdentity
from germane.model.change import Insert, Purge, SetStatus
from germane.model.memory import GLOBAL, Scope, Status
from germane.model.query import Filter, Order, Query, Slice, TimeRange
from germane.protocols import Store
from germane.stores.location import MAINTENANCE
from germane.testing.contract_changes import (
    AGENT,
    EVERY,
    ChangesContract,
    EmbeddingContract,
    ScopesContract,
    insert,
)
from germane.testing.contract_fields import FieldsContract
from germane.testing.contract_filters import ConditionsContract
from germane.testing.contract_search import SearchContract, ask, ids
from germane.testing.fakes import START, make_id, make_memories, make_memory, make_vector

__all__ = ["EMBEDDING", "OpenStore", "StoreContract"]

# ruff: noqa: S101, PLR2004 - a contract asserts, and its numbers are the expected values.


EMBEDDING = EmbeddingIdentity(name="contract", dimension=8)
"""The model that the contract's vectors come from."""


OpenStore: TypeAlias = Callable[[EmbeddingIdentity | None], Store]
"""Opens a new, empty store that takes the vectors of a model, or none."""


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

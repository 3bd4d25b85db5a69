"""LangGraph's store over germane: its answers are those of LangGraph's own store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import germane
from germane.frameworks import LangGraphStore
from germane.testing.fakes import FixedClock

LABELS = st.sampled_from(["users", "anna", "Anna", "a*", "42", "ü\n"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "K", "theme", "1"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 2.0, "", "dark", "2"])
VALUES = st.dictionaries(
    st.sampled_from(["theme", "score", "tags"]), SCALARS | st.lists(SCALARS, max_size=2), max_size=3
)
OPERATORS = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
FILTERS = st.dictionaries(
    st.sampled_from(["theme", "score"]),
    SCALARS | st.dictionaries(OPERATORS, st.integers(-3, 3), min_size=1, max_size=2),
    max_size=2,
)
CONDITIONS = st.builds(
    MatchCondition,
    match_type=st.sampled_from(["prefix", "suffix"]),
    path=st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple),
)
OPS: st.SearchStrategy[Op] = st.one_of(
    st.tuples(NAMESPACES, KEYS).map(lambda each: GetOp(*each)),
    st.tuples(NAMESPACES, KEYS, st.none() | VALUES).map(lambda each: PutOp(*each)),
    st.tuples(st.lists(LABELS, max_size=2).map(tuple), st.none() | FILTERS).map(
        lambda each: SearchOp(*each, limit=100)
    ),
    st.tuples(st.none() | st.lists(CONDITIONS, max_size=2).map(tuple), st.none() | st.integers(1, 3)).map(
        lambda each: ListNamespacesOp(*each)
    ),
)


class Oracle(InMemoryStore):
    """LangGraph's store in memory, without the empty namespaces that its reads leave behind.

    It refuses to compare a number with what is none; for germane, as for LangGraph's SQLite store, that is
    False.
    """

    REFUSED: Any = object()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        known = list(ops)
        results: list[Result] = [None if isinstance(op, PutOp) else self._one(op) for op in known]
        super().batch(op for op in known if isinstance(op, PutOp))
        return results

    def _one(self, op: Op) -> Result:
        for namespace in [namespace for namespace, items in self._data.items() if not items]:
            del self._data[namespace]
        try:
            return super().batch([op])[0]
        except (TypeError, ValueError):
            return self.REFUSED  # type: ignore[no-any-return] # A mark, and no result.


@pytest.fixture
def engine() -> Iterator[germane.Engine]:
    with germane.open(":memory:", agent="graph") as engine:
        yield engine


@pytest.fixture
def store(engine: germane.Engine) -> LangGraphStore:
    return LangGraphStore(engine)


@given(batches=st.lists(st.lists(OPS, max_size=4), max_size=6))
def test_the_answers_are_those_of_the_store_in_memory(batches: list[list[Op]]) -> None:
    oracle = Oracle()
    with germane.open(":memory:", agent="graph", embedder=None) as engine:
        store = LangGraphStore(engine)
        for ops in batches:
            for mine, theirs in zip(store.batch(ops), oracle.batch(ops), strict=True):
                assert theirs is Oracle.REFUSED or comparable(mine) == comparable(theirs)


def comparable(result: Any) -> Any:
    """A result without its times and, of a search without a query, without its order."""
    if isinstance(result, list):
        return sorted((comparable(each) for each in result), key=repr)
    if hasattr(result, "namespace"):
        return (tuple(result.namespace), result.key, result.value)
    return result


def test_a_query_ranks_by_meaning_within_its_namespace(store: LangGraphStore) -> None:
    store.put(("users", "anna"), "pet", {"text": "Anna adopted a puppy."})
    store.put(("users", "anna"), "bill", {"text": "The invoice is due on Friday."})
    store.put(("users", "ben"), "pet", {"text": "Ben adopted a puppy."})

    found = store.search(("users", "anna"), query="Which dog does she have?", limit=5)

    assert [one.key for one in found] == ["pet", "bill"]
    assert found[0].score is not None
    assert found[0].score > (found[1].score or 0.0)


def test_what_is_not_indexed_is_listed_last_without_a_score(store: LangGraphStore) -> None:
    store.put(("notes",), "hidden", {"text": "the red bicycle"}, index=False)
    store.put(("notes",), "title", {"title": "a blue car", "text": "the red bicycle"}, index=["title"])
    store.put(("notes",), "whole", {"text": "a red bicycle"})

    found = store.search(("notes",), query="red bicycle")

    assert [(one.key, one.score is None) for one in found] == [
        ("whole", False),
        ("title", False),
        ("hidden", True),
    ]


def test_an_item_is_a_memory_of_the_agent_with_its_versions(
    engine: germane.Engine, store: LangGraphStore
) -> None:
    store.put(("users", "anna"), "home", {"text": "Anna lives in Rome."})
    store.put(("users", "anna"), "home", {"text": "Anna lives in Oslo."})

    item, (memory,) = store.get(("users", "anna"), "home"), engine.recall("Where does Anna live?")

    assert item is not None
    assert item.value == {"text": "Anna lives in Oslo."}
    assert item.created_at <= item.updated_at
    assert [one.content for one in engine.history(memory.id)] == [
        "Anna lives in Rome.",
        "Anna lives in Oslo.",
    ]
    assert "Anna lives in Oslo." in engine.assemble("Where does Anna live?", budget=200).text


@pytest.mark.parametrize("delete", ["purge", "forget"])
def test_a_deleted_item_is_gone_and_may_be_put_again(engine: germane.Engine, delete: Any) -> None:
    store = LangGraphStore(engine, delete=delete)
    store.put(("a",), "k", {"text": "the first"})
    store.delete(("a",), "k")
    assert store.get(("a",), "k") is None
    assert store.search(("a",), query="first") == []
    assert engine.stats().memories == (0 if delete == "purge" else 1)

    store.put(("a",), "k", {"text": "the second"})
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"text": "the second"}


def test_an_item_expires_unless_it_is_read() -> None:
    clock = FixedClock(datetime(2026, 5, 1, tzinfo=UTC))
    with germane.open(":memory:", agent="graph", clock=clock) as engine:
        store = LangGraphStore(engine, ttl={"default_ttl": 10})
        store.put(("a",), "read", {"n": 1})
        store.put(("a",), "unread", {"n": 2})
        store.put(("a",), "lasting", {"n": 3}, ttl=None)
        clock.advance(timedelta(minutes=9))
        assert store.get(("a",), "read") is not None
        assert store.get(("a",), "unread", refresh_ttl=False) is not None
        clock.advance(timedelta(minutes=9))
        assert {one.key for one in store.search(("a",))} == {"read", "lasting"}
        store.put(("a",), "read", {"n": 1}, ttl=None)
        clock.advance(timedelta(days=1))
        assert {one.key for one in store.search(("a",))} == {"read", "lasting"}


def test_a_bad_value_leaves_the_store_as_it_was(store: LangGraphStore) -> None:
    with pytest.raises(germane.InvalidInput, match="metadata"):
        store.put(("a",), "k", {"when": datetime(2026, 1, 1, tzinfo=UTC)})
    assert store.search(("a",)) == []


def test_many_tasks_put_read_and_delete_at_once(tmp_path: Path) -> None:
    async def one(store: LangGraphStore, number: int) -> None:
        await store.aput(("a", str(number % 3)), "k", {"text": f"text {number}"})
        await store.asearch(("a",), query="text")
        if number % 5 == 0:
            await store.adelete(("a", str(number % 3)), "k")

    async def every(store: LangGraphStore) -> None:
        await asyncio.gather(*(one(store, number) for number in range(50)))

    with germane.open(tmp_path / "a.db", agent="graph") as engine:
        store = LangGraphStore(engine)
        asyncio.run(every(store))
        assert len(store.search(("a",), limit=10)) == engine.stats().memories <= 3
    with germane.open(tmp_path / "a.db", agent="other") as other:
        assert LangGraphStore(other).search(()) == []


def test_writers_of_one_key_and_purges_of_it_take_turns(tmp_path: Path) -> None:
    with germane.open(tmp_path / "a.db", agent="graph", embedder=None) as engine:

        def write(number: int) -> None:
            for turn in range(30):
                engine.remember(f"text {number} {turn}", key="k")

        def purge(_: int) -> None:
            for _turn in range(15):
                try:
                    engine.purge(engine.get(key="k").id, confirm=True)
                except germane.NotFound:
                    continue

        with ThreadPoolExecutor(6) as pool:
            running = [pool.submit(write, number) for number in range(4)]
            running += [pool.submit(purge, number) for number in range(2)]
            for each in running:
                each.result()
        assert engine.count() <= 1
        assert engine.doctor() == ()


class Turn(TypedDict):
    question: str
    answer: str


def test_a_graph_remembers_across_threads_of_conversation(store: LangGraphStore) -> None:
    def answer(state: Turn, config: RunnableConfig, *, store: BaseStore) -> dict[str, str]:
        user = config["configurable"]["user"]
        known = store.search(("users", user), query=state["question"], limit=1)
        store.put(("users", user), state["question"], {"text": state["question"]})
        return {"answer": known[0].value["text"] if known else "nothing yet"}

    graph = StateGraph(Turn)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    app = graph.compile(store=store)

    def ask(question: str, user: str, thread: str) -> str:
        config: RunnableConfig = {"configurable": {"user": user, "thread_id": thread}}
        return str(app.invoke(Turn(question=question, answer=""), config)["answer"])

    assert ask("I am allergic to nuts.", "anna", "1") == "nothing yet"
    assert ask("Which allergy do I have?", "anna", "2") == "I am allergic to nuts."
    assert ask("Which allergy do I have?", "ben", "3") == "nothing yet"

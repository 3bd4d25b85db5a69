"""A store with the six methods alone: what works with it, and what names the sub-store that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest

import germane
from germane.stores import SqliteStore


class Small:
    """The six methods of another store, and nothing else."""

    def __init__(self) -> None:
        self._inner = SqliteStore(":memory:")

    def apply(self, agent: str, changes: Sequence[Any]) -> Any:
        return self._inner.apply(agent, changes)

    def get(self, agent: str, ids: Sequence[str]) -> Any:
        return self._inner.get(agent, ids)

    def find(self, agent: str, where: germane.Filter, **how: Any) -> Any:
        return self._inner.find(agent, where, **how)

    def search(self, agent: str, query: Any) -> Any:
        return self._inner.search(agent, query)

    def stats(self, agent: str) -> Any:
        return self._inner.stats(agent)

    def close(self) -> None:
        self._inner.close()


@pytest.mark.parametrize(
    ("attribute", "use"),
    [
        ("conversations", lambda engine: engine.conversation("chat")),
        ("conversations", lambda engine: engine.sessions()),
        ("feedback", lambda engine: engine.set_learning(on=True)),
        ("feedback", lambda engine: engine.outcome(engine.recall("cache"), "success")),
        ("ledger", lambda engine: engine.ledger()),
        ("ledger", lambda engine: engine.assemble("cache", budget=100, record=True)),
        ("lifecycle", lambda engine: engine.confirm(engine.memories()[0].id)),
        ("spaces", lambda engine: engine.space("team", create=True)),
        ("working_sets", lambda engine: engine.working_set()),
    ],
)
def test_what_needs_a_sub_store_names_it(attribute: str, use: Callable[[germane.Engine], object]) -> None:
    with closing(Small()) as store, germane.open(store, embedder=None) as engine:
        engine.remember("The cache is Redis.")
        with pytest.raises(germane.InvalidInput, match=f"The store Small .* no sub-store `{attribute}`"):
            use(engine)


def test_six_methods_are_enough_for_memories() -> None:
    with closing(Small()) as store, germane.open(store, embedder=None) as engine:
        memory = engine.remember("The cache is Redis.")
        context = engine.assemble("Where is the cache?", budget=100)
        assert [item.memory for item in context.items] == [memory]
        assert engine.feedback(context, [memory]).examples == 0
        assert engine.reset_learning() == 0
        assert not engine.set_learning().on
        assert engine.doctor() == ()
        assert engine.spaces() == ()

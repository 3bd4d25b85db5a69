# ruff: noqa: S101 - a contract asserts.
"""What a store promises of where memories apply.

Level: testing (nothing of the package imports it).
"""

from __future__ import annotations

from datetime import timedelta

from germane.model.change import Purge, Revise
from germane.model.memory import Memory
from germane.model.query import Filter, Order, Query, Slice
from germane.model.scope import GLOBAL, Scope
from germane.protocols import Store
from germane.testing.builders import START, make_memory, make_revision
from germane.testing.contract_changes import AGENT, insert

__all__ = ["PlacesContract"]

LATER = START + timedelta(days=1)


def at(*scopes: str) -> Filter:
    """A filter for what applies to these scopes."""
    return Filter(applies_to=tuple(Scope.parse(scope) for scope in scopes))


def found(store: Store, where: Filter, *, agent: str = AGENT) -> set[str]:
    """What a search and a listing find, which has to be the same."""
    listed = {memory.content for memory in store.find(agent, where)}
    searched = store.search(agent, Query(filter=where, slices=(Slice(order=Order.NEWEST),)))
    again = store.search(agent, Query(slices=(Slice(order=Order.NEWEST, where=where),)))
    for each in (searched, again):
        assert {one.memory.content for one in each.slices[0]} == listed
    return listed


def scoped(content: str, scope: str = "global", **overrides: object) -> Memory:
    """A memory in a scope."""
    return make_memory(content, scope=Scope.parse(scope), **overrides)


class PlacesContract:
    """`Filter.applies_to`: scopes, further scopes, and paths by prefix and by pattern."""

    def test_scopes_apply_by_name_and_value(self, store: Store) -> None:
        insert(store, scoped("everywhere"), scoped("here", "task:T-1"), scoped("there", "task:T-2"))
        assert found(store, at("global")) == {"everywhere"}
        assert found(store, at("task:T-1")) == {"here"}
        assert found(store, at("global", "task:T-2")) == {"everywhere", "there"}
        assert found(store, at("task:T")) == set()
        assert found(store, at("global"), agent="nobody") == set()

    def test_a_path_is_found_by_its_folders_and_never_by_half_a_name(self, store: Store) -> None:
        insert(store, *(scoped(path, f"path:{path}") for path in ("src", "src/auth", "src/au", "lib")))
        assert found(store, at("path:src/auth/login.py")) == {"src", "src/auth"}
        assert found(store, at("path:src/auth")) == {"src", "src/auth"}
        assert found(store, at("path:lib/x.py", "path:src/au.py")) == {"lib", "src"}

    def test_a_path_is_found_by_patterns_as_git_reads_them(self, store: Store) -> None:
        insert(
            store,
            scoped("python", "path:*.py"),
            scoped("governs", metadata={"paths": ["/src/auth/", "web/**/*.ts"]}),
            scoped("but legacy", metadata={"paths": ["src/", "!src/legacy/"]}),
            scoped("no list", metadata={"paths": "src"}),
        )
        assert found(store, at("path:src/auth/login.py")) == {"python", "governs", "but legacy"}
        assert found(store, at("path:web/a/b.ts")) == {"governs"}
        assert found(store, at("path:src/legacy/old.go")) == set()

    def test_a_memory_stands_in_all_its_scopes_and_is_found_once(self, store: Store) -> None:
        insert(store, scoped("both", "task:T-1", metadata={"scopes": ["task:T-2"], "paths": ["/src/"]}))
        for scopes in (("task:T-1",), ("task:T-2",), ("path:src/a",), ("task:T-1", "task:T-2", "path:src")):
            assert found(store, at(*scopes)) == {"both"}
        assert found(store, at("global")) == set()

    def test_a_search_follows_what_is_stored_revised_and_purged(self, store: Store) -> None:
        first = scoped("one", "path:src")
        insert(store, first)
        assert found(store, at("path:lib/a.py")) == set()
        second = scoped("two", "path:lib")
        insert(store, second)
        assert found(store, at("path:lib/a.py")) == {"two"}
        revised = make_revision(first, "three", scope=Scope.parse("path:lib"))
        store.apply(AGENT, [Revise(memory=revised)])
        assert found(store, at("path:lib/a.py")) == {"two", "three"}
        assert found(store, at("path:src/a.py")) == set()
        store.apply(AGENT, [Purge(memory_id=second.id, at=LATER)])
        assert found(store, at("path:lib/a.py")) == {"three"}

    def test_places_are_the_agents_own(self, store: Store) -> None:
        insert(store, scoped("mine", "path:src"))
        insert(store, scoped("theirs", "path:src", agent="other"))
        assert found(store, at("path:src/a")) == {"mine"}
        assert found(store, at("path:src/a"), agent="other") == {"theirs"}

    def test_other_conditions_still_hold(self, store: Store) -> None:
        insert(store, scoped("note", kind="note"), scoped("fact"))
        assert found(store, Filter(applies_to=(GLOBAL,), kinds=("note",))) == {"note"}

"""What a store promises of writing, of embedding, and of where memories apply."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

import numpy as np
import pytest

from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.model.change import Applied, Change, Insert, Purge, Revise, SetStatus, SetVector
from germane.model.memory import GLOBAL, NOWHERE, Memory, Outcome, Scope, Status, Trust, Vector
from germane.model.query import Filter, Order, Query, Slice
from germane.protocols import Store
from germane.testing.fakes import (
    START,
    make_id,
    make_memories,
    make_memory,
    make_renditions,
    make_revision,
    make_vector,
)

# ruff: noqa: S101, PLR2004 - a contract asserts, and its numbers are the expected values.


AGENT = "tester"
LATER = START + timedelta(days=1)
EVERY = Filter(statuses=tuple(Status))


def insert(store: Store, *memories: Memory) -> None:
    """Store these memories of one agent."""
    store.apply(memories[0].agent, [Insert(memory=each) for each in memories])


class ChangesContract:
    """Inserting, revising, moving and purging."""

    def test_every_field_comes_back(self, store: Store) -> None:
        memory = make_memory(
            "Chose Postgres over ChromaDB",
            kind="decision",
            scope=Scope(name="task", value="T-42"),
            subject="storage",
            tags=("db:postgres", "choice", "db:postgres"),
            importance=7.25,
            confidence=0.1 + 0.2,
            outcome=Outcome.PARTIAL,
            trust=Trust.EXTERNAL,
            source="https://example.org/a?b=c",
            pinned=True,
            metadata=MappingProxyType({"n": 1, "f": 0.5, "list": [1, "two", None, {"x": True}], "ключ": "☂"}),
            created_at=START + timedelta(microseconds=1),
            updated_at=LATER,
            seen_count=3,
            access_count=4,
            accessed_at=LATER,
        )
        insert(store, memory)
        assert store.get(AGENT, [memory.id]) == (memory,)

    @pytest.mark.parametrize(
        "memory",
        [
            pytest.param(make_memory(), id="defaults"),
            pytest.param(
                make_memory("One text", renditions=make_renditions("Another")), id="another full text"
            ),
            pytest.param(make_memory("wörd " * 200_000), id="a megabyte"),
        ],
    )
    def test_a_memory_comes_back(self, store: Store, memory: Memory) -> None:
        insert(store, memory)
        assert store.get(AGENT, [memory.id]) == (memory,)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "\x00",
            "before\x00after",
            "tab\tnewline\r\nbell\x07",
            "日本語 हिन्दी العربية",
            "👩‍👩‍👧‍👦 e\u0301 \ufffe",
            "' OR 1=1; --",
            "</section># heading",
        ],
    )
    def test_any_text_comes_back(self, store: Store, text: str) -> None:
        memory = make_memory(
            text, subject=text or None, tags=(text,), source=text, metadata={"key": text, text: "value"}
        )
        try:
            insert(store, memory)
        except InvalidInput:
            # A database that can't keep a character says so, and keeps nothing.
            assert "\x00" in text
            assert store.find(AGENT, Filter()) == ()
            return
        assert store.get(AGENT, [memory.id]) == (memory,)
        assert store.find(AGENT, Filter(tags=(text,))) == (memory,)

    @pytest.mark.parametrize("field", ["content", "subject", "source"])
    def test_half_a_character_is_refused(self, store: Store, field: str) -> None:
        memory = make_memory().evolve(**{field: "half \ud83d here"})
        with pytest.raises(InvalidInput, match="surrogate"):
            insert(store, memory)
        assert store.find(AGENT, EVERY) == ()

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("importance", 11.0),
            ("importance", float("nan")),
            ("confidence", -0.1),
            ("content_hash", ""),
            ("id", "no-uuid"),
            ("version", 0),
            ("metadata", {"x": float("inf")}),
            ("metadata", {"x": object()}),
            ("created_at", START.replace(tzinfo=None)),
            ("agent", "somebody else"),
        ],
    )
    def test_what_no_memory_can_be_is_refused(self, store: Store, field: str, value: object) -> None:
        with pytest.raises(InvalidInput):
            store.apply(AGENT, [Insert(memory=make_memory().evolve(**{field: value}))])
        assert store.find(AGENT, EVERY) == ()

    def test_no_changes_do_nothing(self, store: Store) -> None:
        assert store.apply(AGENT, []) == ()

    def test_results_stand_in_the_order_of_the_changes(self, store: Store) -> None:
        memories = make_memories(20)
        applied = store.apply(AGENT, [Insert(memory=each) for each in memories])
        assert [each.memory for each in applied] == memories
        assert all(each.created for each in applied)

    def test_the_same_memory_is_recognised(self, store: Store) -> None:
        first = make_memory("Once", importance=3.0)
        again = make_memory("Once", id=make_id("again"), updated_at=LATER, importance=9.0)
        insert(store, first)
        (applied,) = store.apply(AGENT, [Insert(memory=again)])
        assert not applied.created
        assert applied.memory == first.evolve(seen_count=2, updated_at=LATER)
        assert store.find(AGENT, EVERY) == (applied.memory,)

    def test_the_same_memory_is_recognised_inside_a_batch(self, store: Store) -> None:
        memory = make_memory("Once")
        twice = [Insert(memory=memory), Insert(memory=memory), Insert(memory=memory)]
        applied = store.apply(AGENT, twice)
        assert [each.created for each in applied] == [True, False, False]
        assert store.find(AGENT, EVERY) == (memory.evolve(seen_count=3),)

    @pytest.mark.parametrize(("revive", "status"), [(True, Status.ACTIVE), (False, Status.FORGOTTEN)])
    def test_what_was_forgotten_is_remembered_again(self, store: Store, revive: bool, status: Status) -> None:
        memory = make_memory()
        insert(store, memory)
        store.apply(AGENT, [SetStatus(memory_id=memory.id, status=Status.FORGOTTEN, at=LATER)])
        (applied,) = store.apply(AGENT, [Insert(memory=memory, revive=revive)])
        assert applied.memory is not None
        assert (applied.memory.status, applied.memory.seen_count) == (status, 2 if revive else 1)

    def test_an_import_that_meets_what_is_stored_changes_nothing(self, store: Store) -> None:
        memory = make_memory("Once")
        insert(store, memory)
        (applied,) = store.apply(AGENT, [Insert(memory=memory.evolve(updated_at=LATER), revive=False)])
        assert applied == Applied(memory=memory, created=False)
        assert store.find(AGENT, EVERY) == (memory,)

    def test_an_id_is_not_given_twice(self, store: Store) -> None:
        memory = make_memory("One")
        insert(store, memory)
        with pytest.raises(InvalidInput, match=memory.id):
            insert(store, make_memory("Two", id=memory.id))
        assert store.find(AGENT, EVERY) == (memory,)

    def test_a_batch_is_applied_whole_or_not_at_all(self, store: Store) -> None:
        stored = make_memory("stored")
        insert(store, stored)
        changes: list[Change] = [
            Insert(memory=make_memory("lost"), vector=make_vector(1)),
            SetStatus(memory_id=stored.id, status=Status.FORGOTTEN, at=LATER),
            Purge(memory_id=make_id("unknown"), at=LATER),
        ]
        with pytest.raises(NotFound):
            store.apply(AGENT, changes)
        assert store.find(AGENT, EVERY) == (stored,)
        assert store.stats(AGENT).vectors == 0

    def test_a_revision_stands_in_its_predecessors_place(self, store: Store) -> None:
        first = make_memory("The port is 5432")
        second = make_revision(first, "The port is 5433")
        insert(store, first)
        (applied,) = store.apply(AGENT, [Revise(memory=second)])
        assert applied.memory == second
        assert applied.created
        (old, head, none) = store.get(AGENT, [first.version_id, first.id, f"{first.id}@3"])
        assert old == first.evolve(
            status=Status.SUPERSEDED, superseded_by=second.version_id, updated_at=second.updated_at
        )
        assert (head, none) == (second, None)
        assert store.find(AGENT, Filter()) == (second,)

    def test_a_stale_revision_names_the_head(self, store: Store) -> None:
        first = make_memory("one")
        second = make_revision(first, "two")
        insert(store, first)
        store.apply(AGENT, [Revise(memory=second)])
        with pytest.raises(StaleRevision) as caught:
            store.apply(AGENT, [Revise(memory=make_revision(first, "three"))])
        assert caught.value.head_id == second.version_id
        assert len(store.find(AGENT, EVERY)) == 2

    def test_a_chain_grows_within_a_batch(self, store: Store) -> None:
        first = make_memory("one")
        second = make_revision(first, "two")
        third = make_revision(second, "three")
        store.apply(AGENT, [Insert(memory=first), Revise(memory=second), Revise(memory=third)])
        assert store.find(AGENT, Filter()) == (third,)

    def test_a_revision_may_return_to_an_earlier_text(self, store: Store) -> None:
        first = make_memory("one")
        second = make_revision(first, "two")
        third = make_revision(second, "one")
        store.apply(AGENT, [Insert(memory=first), Revise(memory=second), Revise(memory=third)])
        (applied,) = store.apply(AGENT, [Insert(memory=make_memory("one", id=make_id("new")))])
        assert applied.memory is not None
        assert applied.memory.id == third.id

    def test_a_revision_to_what_another_memory_says_is_refused(self, store: Store) -> None:
        first, other = make_memory("one"), make_memory("other")
        insert(store, first, other)
        with pytest.raises(InvalidInput, match=other.id):
            store.apply(AGENT, [Revise(memory=make_revision(first, "other"))])
        assert len(store.find(AGENT, Filter())) == 2

    def test_a_chain_can_be_brought_in_as_it_was(self, store: Store) -> None:
        second = make_revision(make_memory("same"), "same")
        first = make_memory("same", status=Status.SUPERSEDED, superseded_by=second.version_id)
        applied = store.apply(AGENT, [Insert(memory=first), Insert(memory=second)])
        assert [each.created for each in applied] == [True, True]
        again = store.apply(AGENT, [Insert(memory=first, revive=False), Insert(memory=second, revive=False)])
        assert [each.created for each in again] == [False, False]

    @pytest.mark.parametrize("status", list(Status))
    def test_a_status_is_set(self, store: Store, status: Status) -> None:
        memory = make_memory()
        insert(store, memory)
        (applied,) = store.apply(AGENT, [SetStatus(memory_id=memory.id, status=status, at=LATER)])
        assert applied.memory == memory.evolve(status=status, updated_at=LATER)
        assert store.find(AGENT, Filter(statuses=(status,))) == (applied.memory,)

    def test_a_purge_takes_the_whole_chain(self, store: Store) -> None:
        first, other = make_memory("one", tags=("t",)), make_memory("other", tags=("t",))
        second = make_revision(first, "two")
        insert(store, first, other)
        store.apply(AGENT, [Revise(memory=second, vector=make_vector(1))])
        (applied,) = store.apply(AGENT, [Purge(memory_id=first.id, at=LATER)])
        assert (applied.memory, applied.purged) == (None, 2)
        assert store.get(AGENT, [first.id, second.id, other.id]) == (None, None, other)
        assert store.find(AGENT, Filter(tags=("t",), statuses=tuple(Status))) == (other,)
        assert store.stats(AGENT).vectors == 0
        insert(store, first)
        assert store.get(AGENT, [first.id]) == (first,)

    @pytest.mark.parametrize("kind", ["status", "vector", "purge", "revise"])
    def test_changes_of_an_unknown_memory_are_refused(self, store: Store, kind: str) -> None:
        stranger = make_memory("stranger", agent="other")
        insert(store, stranger)
        changes: dict[str, Change] = {
            "status": SetStatus(memory_id=stranger.id, status=Status.FORGOTTEN, at=LATER),
            "vector": SetVector(memory_id=stranger.id, vector=make_vector(1)),
            "purge": Purge(memory_id=stranger.id, at=LATER),
            "revise": Revise(memory=make_revision(stranger, "mine").evolve(agent=AGENT)),
        }
        with pytest.raises(NotFound) as caught:
            store.apply(AGENT, [changes[kind]])
        assert caught.value.memory_id == stranger.id
        assert store.get("other", [stranger.id]) == (stranger,)

    @pytest.mark.parametrize(
        "vector",
        [
            make_vector(1, 7),
            np.full(8, np.nan, dtype=np.float32),
            np.zeros(8, dtype=np.float32),
            make_vector(1) * 9,
        ],
    )
    def test_what_is_no_vector_of_the_model_is_refused(self, store: Store, vector: Vector) -> None:
        memory = make_memory()
        with pytest.raises(InvalidInput, match="vector"):
            store.apply(AGENT, [Insert(memory=memory, vector=vector)])
        assert store.get(AGENT, [memory.id]) == (None,)


def _waiting(store: Store, agent: str = AGENT) -> set[str]:
    return {each.content for each in store.find(agent, replace(EVERY, embedded=False))}


class EmbeddingContract:
    """Which memories wait for a vector, and vectors without direction."""

    def test_what_has_no_vector_waits_for_one(self, store: Store) -> None:
        with_vector, without, nowhere = (make_memory(each) for each in ("with", "without", "nowhere"))
        insert(store, without)
        for memory, vector in ((with_vector, make_vector(1)), (nowhere, NOWHERE)):
            store.apply(AGENT, [Insert(memory=memory, vector=vector)])
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


class ScopesContract:
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

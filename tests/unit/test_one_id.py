"""One id for life: a memory keeps its id through every version, and `id@n` names one of them."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import Engine, Filter, InvalidInput, Memory, NotFound, StaleRevision, Status
from germane.importers import export_jsonl, import_source
from germane.lifecycle import Stage
from germane.testing.fakes import FixedClock, HashEmbedder

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
EVERY = Filter(statuses=tuple(Status))


def opened(path: str | Path = ":memory:") -> Engine:
    clock = FixedClock(NOW, timedelta(seconds=1))
    return germane.open(path, embedder=HashEmbedder(), clock=clock)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with opened() as engine:
        yield engine


def revised(engine: Engine) -> Memory:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    return engine.revise(memory.id, "The cache lives in Valkey.")


def reviewed(engine: Engine) -> Memory:
    memory = engine.remember("Move the cache to Valkey.", kind="decision")
    return engine.review(memory.id, "success", result="faster")


def escalated(engine: Engine) -> Memory:
    memory = engine.remember("Never flush the cache.", kind="constraint")
    for _ in range(3):
        memory = engine.record_trigger(memory.id)
    return memory


def superseded(engine: Engine) -> Memory:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    return engine.supersede(memory.id, {"content": "The cache lives in Valkey.", "kind": "fact"})


EVERY_WAY = [revised, reviewed, escalated, superseded]
Changed = Callable[[Engine], Memory]


def names(memory: Memory) -> tuple[str, str, str]:
    return memory.id, f"{memory.id}@1", f"{memory.id}@2"


@pytest.mark.parametrize("change", EVERY_WAY)
def test_a_changed_memory_keeps_its_id_and_counts_its_versions(engine: Engine, change: Changed) -> None:
    head = change(engine)
    (stored,) = engine.memories()
    assert (stored.id, stored.version, stored.version_id) == (head.id, 2, f"{head.id}@2")
    assert [one.version for one in engine.history(head.id)] == [1, 2]
    assert {one.id for one in engine.memories(EVERY)} == {head.id}


@pytest.mark.parametrize("change", EVERY_WAY)
def test_an_id_is_the_current_version_and_a_version_is_itself(engine: Engine, change: Changed) -> None:
    head = change(engine)
    first, second = engine.history(head.id)
    assert engine.get(head.id) == engine.get(f"{head.id}@2") == second
    assert engine.get(f"{head.id}@1") == first
    assert (first.superseded_by, second.supersedes) == (second.version_id, first.version_id)
    for name in names(head):
        assert engine.history(name) == (first, second)
    for name in (f"{head.id}@3", f"{head.id}@0", f"{head.id}@", f"{head.id}@x"):
        with pytest.raises(NotFound):
            engine.get(name)


@pytest.mark.parametrize("change", EVERY_WAY)
@pytest.mark.parametrize("name", range(3))
def test_what_is_forgotten_by_any_name_is_in_no_context(engine: Engine, change: Changed, name: int) -> None:
    head = change(engine)
    assert engine.forget(names(head)[name]).status is Status.FORGOTTEN
    assert engine.memories() == ()
    assert engine.assemble("the cache in Valkey").items == ()
    assert engine.restore(names(head)[name]).version == 2
    assert [one.id for one in engine.memories()] == [head.id]


@pytest.mark.parametrize("name", range(3))
def test_a_memory_is_retired_by_any_name(engine: Engine, name: int) -> None:
    head = revised(engine)
    assert engine.retire(names(head)[name]).stage is Stage.INACTIVE
    assert engine.memories() == ()
    assert engine.lifecycle_state(names(head)[name]).stage is Stage.INACTIVE


@pytest.mark.parametrize("name", range(3))
def test_every_verb_acts_on_the_memory_by_any_name(engine: Engine, name: int) -> None:
    def named(head: Memory) -> str:
        return names(head)[name]

    fact, decision, constraint = revised(engine), reviewed(engine), escalated(engine)
    other = engine.remember("Something else entirely.", kind="fact")
    assert engine.confirm(named(fact)).version == 2
    assert engine.contradict(named(fact), by=other.id).confidence == pytest.approx(0.8)
    assert engine.lifecycle_state(named(fact)).confirmations == 1
    assert engine.revise(named(fact), importance=7).version == 3
    assert engine.supersede(named(fact), {"content": "The cache is gone.", "kind": "fact"}).version == 4
    assert engine.review(named(decision), "failure").version == 3
    assert engine.record_trigger(named(constraint)).version == 2
    events = engine.events(named(decision))
    assert {(event.memory_id, event.version) for event in events} == {(decision.id, 2), (decision.id, 3)}
    working = engine.working_set()
    working.add(named(fact))
    assert [one.memory.version for one in working] == [4]
    working.pin(named(fact))
    working.touch(named(fact))
    assert working.holds(named(fact))
    working.remove(named(fact))
    assert len(working) == 0
    context = engine.assemble("nothing to do with it", pins=[named(fact)])
    assert fact.id in {item.memory.id for item in context.items}
    assert engine.feedback(context, used=[fact.id]).counted == 1
    assert engine.purge(named(fact), confirm=True) == 4
    assert engine.memories(EVERY) == tuple(one for one in engine.memories(EVERY) if one.id != fact.id)
    with pytest.raises(NotFound):
        engine.get(named(fact))


def test_a_version_is_expanded_as_it_was(engine: Engine) -> None:
    head = revised(engine)
    assert "Redis" in engine.expand(f"{head.id}@1")
    assert "Valkey" in engine.expand(head.id)


def test_what_was_reported_of_a_space_follows_the_memory(engine: Engine) -> None:
    head = revised(engine)
    space = engine.space("team", create=True)
    for name in names(head):
        assert space.share(name).content == "The cache lives in Valkey."
    shared = space.memories()[0]
    space.revise(shared.id, "The cache lives in memory.")
    space.forget(f"{shared.id}@1")
    assert space.memories() == ()
    events = [(event.what, event.memory_id, event.former_id) for event in space.events()][-2:]
    assert events == [("revise", shared.id, f"{shared.id}@1"), ("forget", shared.id, None)]


def test_a_working_set_follows_the_memory(engine: Engine) -> None:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    working = engine.working_set()
    working.add(memory, pinned=True)
    engine.revise(memory.id, "The cache lives in Valkey.")
    assert [(one.memory.id, one.memory.version, one.pinned) for one in working] == [(memory.id, 2, True)]
    move = working.changes()[-1]
    assert (move.kind, move.memory_id, move.former_id) == ("revise", memory.id, f"{memory.id}@1")
    engine.forget(f"{memory.id}@1")
    assert len(working) == 0


def test_old_and_new_version_are_both_ranked_where_both_are_wanted(engine: Engine) -> None:
    head = revised(engine)
    for ranker in ("relevance", "hybrid"):
        found = engine.recall("cache lives in", include_superseded=True, ranker=ranker)
        assert [one.memory.version_id for one in found] == [f"{head.id}@2", f"{head.id}@1"]
    both = engine.assemble("cache lives in", where=Filter(statuses=(Status.ACTIVE, Status.SUPERSEDED)))
    assert sorted(entry.memory_id for entry in both.trace.entries) == [head.id, f"{head.id}@1"]
    assert sorted(entry.version for entry in both.trace.entries) == [1, 2]


def test_a_page_goes_on_after_a_former_version(engine: Engine) -> None:
    memory = engine.remember("Version 1.", kind="fact")
    for number in range(2, 8):
        engine.revise(memory.id, f"Version {number}.")
    former, after = Filter(statuses=(Status.SUPERSEDED,)), None
    seen: list[int] = []
    while page := engine.memories(former, limit=2, after=after):
        seen += [one.version for one in page]
        after = page[-1].ref
    assert seen == [6, 5, 4, 3, 2, 1]


def test_the_ledger_names_the_version_and_replays_it(engine: Engine) -> None:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    context = engine.assemble("Where does the cache live?", record=True)
    engine.revise(memory.id, "The cache lives in Valkey.")
    engine.assemble("Where does the cache live?", record=True)
    second, first = engine.ledger().list()
    assert [(one.memory_id, one.version) for one in first.entries] == [(memory.id, 1)]
    assert [(one.memory_id, one.version) for one in second.entries] == [(memory.id, 2)]
    difference = engine.ledger().diff(first.id, second.id)
    assert [one.version_id for one in difference.left] == [f"{memory.id}@1"]
    assert [one.version_id for one in difference.entered] == [f"{memory.id}@2"]
    again = engine.ledger().replay(first.id)
    assert (again.same, again.why) == (True, ())
    assert again.context is not None
    assert again.context.text == context.text
    engine.feedback(context, used=[memory.id])
    assert [one.used for one in engine.ledger().show(first.id).entries] == [True]
    assert [one.used for one in engine.ledger().show(second.id).entries] == [None]


def test_only_the_version_that_was_read_is_revised_on_request(engine: Engine) -> None:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    engine.revise(memory.id, "The cache lives in Valkey.", expected=1)
    changes: list[Callable[[], Memory]] = [
        lambda: engine.revise(memory.id, "The cache is gone.", expected=1),
        lambda: engine.supersede(memory.id, {"content": "The cache is gone."}, expected=1),
    ]
    for change in changes:
        with pytest.raises(StaleRevision) as caught:
            change()
        assert caught.value.head_id == f"{memory.id}@2"
    assert engine.revise(memory.id, "The cache is gone.", expected=2).version == 3


def test_a_memory_that_was_merged_is_acted_on_as_the_one_that_stands_for_it(engine: Engine) -> None:
    one = engine.remember("The cache lives in Redis.", kind="fact")
    other = engine.remember("the cache lives in redis", kind="fact")
    engine.maintain()
    assert engine.get(other.id).superseded_by == one.id
    assert engine.confirm(other.id).id == one.id
    assert engine.forget(other.id).id == one.id
    assert engine.memories() == ()


def test_a_history_is_exported_and_imported_whole(engine: Engine, tmp_path: Path) -> None:
    for change in EVERY_WAY[:3]:
        change(engine)
    memories = sorted(engine.memories(EVERY), key=lambda one: one.version_id)
    out = io.StringIO()
    export_jsonl(
        memories,
        out,
        lifecycle_states=dict(
            zip([m.ref for m in memories], engine.lifecycle_states([m.ref for m in memories]), strict=True)
        ),
        usage_history=engine.usage_history(),
    )
    path = tmp_path / "memories.jsonl"
    path.write_text(out.getvalue(), encoding="utf-8")
    with opened() as other:
        import_source(other, str(path))
        assert sorted(other.memories(EVERY), key=lambda one: one.version_id) == memories
        assert other.lifecycle_states([m.ref for m in memories]) == engine.lifecycle_states(
            [m.ref for m in memories]
        )
        assert [(e.memory_id, e.version, e.sign, e.other) for e in other.events()] == [
            (e.memory_id, e.version, e.sign, e.other) for e in engine.events()
        ]
        assert other.doctor() == ()


def test_an_import_of_a_later_version_becomes_the_current_one(engine: Engine) -> None:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    with opened() as other:
        other.import_memories([memory])
        working = other.working_set()
        working.add(memory)
        engine.revise(memory.id, "The cache lives in Valkey.")
        other.import_memories(engine.history(memory.id))
        assert [one.version for one in other.memories()] == [2]
        assert [one.version for one in other.history(memory.id)] == [1, 2]
        assert [one.memory.version for one in working] == [2]
        assert other.doctor() == ()


def test_an_import_of_a_later_version_leaves_forgotten_what_is_forgotten(engine: Engine) -> None:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    with opened() as other:
        other.import_memories([memory])
        other.forget(memory.id)
        engine.revise(memory.id, "The cache lives in Valkey.")
        other.import_memories(engine.history(memory.id))
        assert (other.memories(), other.get(memory.id).version) == ((), 2)
        assert other.restore(memory.id).content == "The cache lives in Valkey."


def test_another_text_as_the_same_version_is_refused(engine: Engine) -> None:
    memory = engine.remember("The cache lives in Redis.", kind="fact")
    with opened() as other:
        other.import_memories([memory])
        theirs = other.revise(memory.id, "The cache lives in memory.")
        engine.revise(memory.id, "The cache lives in Valkey.")
        with pytest.raises(InvalidInput, match=f"{memory.id}@2"):
            engine.import_memories([theirs])


def test_a_file_of_before_still_knows_the_ids_of_its_versions(tmp_path: Path) -> None:
    path = tmp_path / "before.db"
    with opened(path) as engine:
        memory = engine.remember("The cache lives in Redis.", kind="fact")
        engine.revise(memory.id, "The cache lives in Valkey.")
        engine.revise(memory.id, "The cache lives in memory.")
    # Each version had an id of its own.
    ids = {2: "0199a000-0000-7000-8000-000000000002", 3: "0199a000-0000-7000-8000-000000000003"}
    raw = {version: bytes.fromhex(one.replace("-", "")) for version, one in ids.items()}
    connection = sqlite3.connect(path)
    for version, one in raw.items():
        connection.execute("UPDATE memories SET id = ? WHERE version = ?", (one, version))
        connection.execute("UPDATE memories SET superseded_by = ? WHERE version = ?", (one, version - 1))
        connection.execute(
            "UPDATE memories SET supersedes = ? WHERE version = ?", (raw.get(version - 1), version)
        )
    connection.commit()
    connection.close()
    with opened(path) as engine:
        for old in (memory.id, *ids.values()):
            assert (engine.get(old).id, engine.get(old).version) == (memory.id, 3)
            assert [one.version for one in engine.history(old)] == [1, 2, 3]
        assert [one.superseded_by for one in engine.history(memory.id)] == [
            f"{memory.id}@2",
            f"{memory.id}@3",
            None,
        ]
        assert engine.get(f"{ids[2]}@1").content == "The cache lives in Redis."
        assert engine.revise(ids[2], "The cache is gone.").version == 4
        assert engine.doctor() == ()
        engine.forget(ids[3])
        assert engine.memories() == ()
        assert engine.purge(ids[2], confirm=True) == 4


def test_an_export_of_before_is_read_as_versions_of_one_memory(engine: Engine, tmp_path: Path) -> None:
    head = revised(engine)
    out = io.StringIO()
    export_jsonl(engine.history(head.id), out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    second = "0199a000-0000-7000-8000-000000000002"
    lines[0] |= {"chain": head.id, "supersedes": None, "superseded_by": second}
    lines[1] |= {"id": second, "chain": head.id, "supersedes": head.id}
    path = tmp_path / "before.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with opened() as other:
        import_source(other, str(path))
        assert other.history(head.id) == engine.history(head.id)
        assert other.doctor() == ()

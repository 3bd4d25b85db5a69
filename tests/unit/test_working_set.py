"""A working set: what enters, what leaves and when, and what an error leaves as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import BudgetTooSmall, Engine, InvalidInput, Memory, NotFound, WorkingSet
from germane.errors import NotInWorkingSet
from germane.working_sets import WorkingSetItem

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


class Words:
    """Counts words, so that a test can say what it adds."""

    name = "words"
    margin = 0.0

    def count(self, text: str) -> int:
        return len(text.split())


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def on(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def engine(clock: Hands) -> Iterator[Engine]:
    with germane.open(":memory:", agent="a", embedder=None, counter=Words(), clock=clock) as opened:
        yield opened


def words(engine: Engine, name: str, count: int, **fields: float) -> Memory:
    """A memory that begins with its name and is so many words long."""
    return engine.remember(" ".join([name, *(f"w{n}" for n in range(count - 1))]), **fields)  # type: ignore[arg-type] # Only numbers are passed.


def names(entries: WorkingSet | tuple[WorkingSetItem, ...]) -> list[str]:
    return [one.memory.content.split()[0] for one in entries]


def gone(memories: tuple[Memory, ...]) -> list[str]:
    return [memory.content.split()[0] for memory in memories]


def test_an_empty_set_is_there_and_holds_nothing(engine: Engine) -> None:
    working = engine.working_set()
    assert (len(working), working.tokens, working.utilization, working.max_tokens) == (0, 0, 0.0, 128_000)
    assert (working.name, working.owner, list(working), working.items(), working.changes()) == (
        "default",
        "a",
        [],
        (),
        (),
    )
    assert working.has_space(128_000)
    assert not working.has_space(128_001)
    assert bool(working)
    assert repr(working) == "<germane.WorkingSet 'default' of agent 'a'>"


def test_what_is_added_is_in_it_and_named_in_any_form(engine: Engine) -> None:
    working = engine.working_set(max_tokens=100)
    one, two = words(engine, "one", 10), words(engine, "two", 20)
    added = working.add(one.id)
    assert (names(added.items), list(added.new)) == (["one"], [one.id])
    assert not added.evicted
    assert not added.left_out
    assert added.items == working.items()
    working.add(two)
    assert one in working
    assert two.id in working
    assert working.items()[0] in working
    assert words(engine, "three", 1) not in working
    assert 3 not in working
    assert (working.tokens, working.utilization, working.has_space(70), working.has_space(71)) == (
        30,
        0.3,
        True,
        False,
    )


def test_adding_again_moves_to_the_end_and_counts_once(engine: Engine, clock: Hands) -> None:
    working = engine.working_set(max_tokens=30)
    one, two = words(engine, "one", 10), words(engine, "two", 20)
    working.add_many([one, two])
    clock.on(hours=1)
    added = working.add(one)
    assert (added.new, added.evicted) == (frozenset(), ())
    assert (names(working), working.tokens) == (["two", "one"], 30)
    assert working.items()[-1] == added.items[0]
    assert (added.items[0].entered_at, added.items[0].touched_at, added.items[0].touches) == (
        START,
        START + timedelta(hours=1),
        1,
    )


def test_the_least_important_leaves_first_and_only_the_shortfall(engine: Engine) -> None:
    working = engine.working_set(max_tokens=100)
    working.add_many(
        [
            words(engine, "great", 40, importance=9),
            words(engine, "small", 30, importance=1),
            words(engine, "middle", 20, importance=5),
        ]
    )
    added = working.add(words(engine, "new", 35, importance=3))
    assert gone(added.evicted) == ["small"]
    assert (added.eviction.needed, added.eviction.freed, added.eviction.policy) == (25, 30, "importance")
    assert (names(working), working.tokens) == (["great", "middle", "new"], 95)
    added = working.add(words(engine, "next", 5))
    assert (added.evicted, working.tokens) == ((), 100)
    assert len(engine.recall("small w1", gate=False)) > 0, "what was evicted stays stored"


@pytest.mark.parametrize(
    ("policy", "leaver"),
    [
        ("importance", "old"),
        ("importance-age", "old"),
        ("lru", "middle"),
        ("lfu", "middle"),
        ("frequency-weighted", "middle"),
    ],
)
def test_each_policy_says_who_leaves(engine: Engine, clock: Hands, policy: str, leaver: str) -> None:
    working = engine.working_set(max_tokens=30)
    for name, importance in (("old", 1), ("middle", 2), ("late", 3)):
        clock.on(minutes=1)
        working.add(words(engine, name, 10, importance=importance))
    for _ in range(9):
        working.touch(working.items()[0] if names(working)[0] == "old" else working.items()[-1])
    assert names(working) == ["middle", "late", "old"]
    working.touch(working.items()[1])
    assert gone(working.add(words(engine, "new", 10), policy=policy).evicted) == [leaver]


def test_a_policy_can_be_a_function(engine: Engine) -> None:
    working = engine.working_set(max_tokens=30)
    working.add_many([words(engine, "a", 10), words(engine, "bbb", 10), words(engine, "cc", 10)])

    def shortest_name(one: WorkingSetItem, now: datetime) -> float:
        assert now == START
        return -len(one.memory.content)

    assert gone(working.add(words(engine, "new", 10), policy=shortest_name).evicted) == ["bbb"]
    assert working.evict(5, policy=shortest_name).policy == "shortest_name"


def test_what_is_pinned_stays_whatever_comes(engine: Engine) -> None:
    working = engine.working_set(max_tokens=30)
    one, two = words(engine, "one", 10, importance=0), words(engine, "two", 10, importance=9)
    working.add(one, pinned=True)
    working.add(two)
    assert gone(working.add(words(engine, "three", 20)).evicted) == ["two"]
    working.unpin(one)
    assert gone(working.add(words(engine, "four", 10)).evicted) == ["one"]
    pinned = engine.remember("kept " * 10, pinned=True)
    working.clear()
    working.add(pinned)
    assert working.evict(10).shortfall == 10
    assert [one.memory for one in working.evict(10).in_the_way] == [pinned]
    assert names(working) == ["kept"]


def test_what_can_not_be_added_changes_nothing(engine: Engine) -> None:
    working = engine.working_set(max_tokens=30)
    pinned, other = words(engine, "pinned", 20), words(engine, "other", 10)
    working.add(pinned, pinned=True)
    working.add(other)
    before, moved = working.items(), working.moved
    with pytest.raises(InvalidInput, match=r"31 tokens.*30"):
        working.add(words(engine, "giant", 31))
    with pytest.raises(BudgetTooSmall) as blocked:
        working.add(words(engine, "blocked", 15))
    assert (blocked.value.budget, blocked.value.needed, blocked.value.shortfall) == (30, 35, 5)
    assert pinned.id in blocked.value.required
    with pytest.raises(BudgetTooSmall):
        working.add_many([words(engine, "x", 8), words(engine, "y", 8)])
    with pytest.raises(InvalidInput, match="Unknown eviction policy"):
        working.add(words(engine, "small", 1), policy="oldest")
    with pytest.raises(InvalidInput, match="nan"):
        working.add(words(engine, "any", 10), policy=lambda _, __: float("nan"))
    with pytest.raises(NotFound):
        working.add_many([words(engine, "fine", 1), "0192f0c4-7e1a-7cc3-98c4-dc0c0c07398f"])
    with pytest.raises(InvalidInput, match="forgotten"):
        working.add(engine.forget(words(engine, "forgotten", 1).id))
    for call in (working.touch, working.remove, working.pin, working.unpin):
        with pytest.raises(NotInWorkingSet, match="default"):
            call(words(engine, "outside", 1))
    for bad in (-1, 1.5, "2", True):
        with pytest.raises(InvalidInput):
            working.resize(bad)  # type: ignore[arg-type] # It is the point.
        with pytest.raises(InvalidInput):
            working.evict(bad)  # type: ignore[arg-type] # As above.
    with pytest.raises(InvalidInput):
        working.add_many(other.id)
    with pytest.raises(InvalidInput):
        engine.working_set("")
    assert (working.items(), working.moved, working.max_tokens) == (before, moved, 30)


def test_removing_and_clearing_leave_what_is_stored(engine: Engine) -> None:
    working = engine.working_set()
    one, two, three = (words(engine, name, 3) for name in ("one", "two", "three"))
    working.add_many([one, two, three])
    working.remove(one)
    working.pin(two)
    assert (names(working), working.clear(keep_pinned=True), names(working), working.clear()) == (
        ["two", "three"],
        1,
        ["two"],
        1,
    )
    assert [engine.get(each.id).content for each in (one, two, three)] == [
        each.content for each in (one, two, three)
    ]
    assert [(move.kind.value, move.memory_id) for move in working.changes(after=3)] == [
        ("remove", one.id),
        ("pin", two.id),
        ("clear", three.id),
        ("clear", two.id),
    ]


def test_evicting_by_hand_frees_no_more_than_it_must(engine: Engine) -> None:
    working = engine.working_set()
    working.add_many([words(engine, name, 10, importance=n) for n, name in enumerate("abcd", 1)])
    evicted = working.evict(15)
    assert [one.item.memory.content[0] for one in evicted.evicted] == ["a", "b"]
    assert (evicted.freed, evicted.enough, names(working)) == (20, True, ["c", "d"])
    evicted = working.evict(100)
    assert (evicted.freed, evicted.shortfall, len(working)) == (20, 80, 0)
    assert working.evict(0).evicted == ()


def test_a_smaller_limit_evicts_at_once(engine: Engine) -> None:
    working = engine.working_set(max_tokens=40)
    working.add_many([words(engine, name, 10, importance=n) for n, name in enumerate("abcd", 1)])
    again = engine.working_set(max_tokens=25)
    assert again is working
    assert (working.max_tokens, working.tokens, names(working)) == (25, 20, ["c", "d"])
    assert [move.kind.value for move in working.changes(after=5)] == ["resize", "evict", "evict"]
    assert working.add(words(engine, "e", 5)).evicted == ()
    assert working.tokens == 25


def test_a_set_keeps_its_maximum_when_a_memory_in_it_grows(engine: Engine) -> None:
    working = engine.working_set(max_tokens=100)
    small, middle, great = (
        words(engine, name, 30, importance=n) for name, n in (("small", 1), ("middle", 5), ("great", 9))
    )
    working.add_many([small, middle, great])
    longer = engine.revise(middle.id, " ".join(["middle", *["more"] * 69]))
    assert working.assemble().text.startswith("great")
    assert (names(working), working.tokens, working.utilization) == (["middle", "great"], 100, 1.0)
    last = working.changes()[-1]
    assert (last.kind.value, last.memory_id, last.by) == ("evict", small.id, "a")
    assert working.add(longer).evicted == ()
    assert engine.get(small.id).content == small.content, "what was evicted stays stored"


def test_a_set_keeps_its_maximum_whatever_changes_its_memories(engine: Engine) -> None:
    working = engine.working_set(max_tokens=60)
    decision = engine.remember("Chose Redis.", kind="decision", importance=9)
    working.add_many([decision, words(engine, "filler", 55)])
    engine.review(decision.id, "success", result=" ".join(["measured"] * 20))
    assert names(working) == ["Chose"]
    assert 20 < working.tokens <= 60
    working.clear()
    working.add_many([old := words(engine, "old", 20), words(engine, "kept", 40, importance=9)])
    engine.supersede(old.id, {"content": " ".join(["new"] * 30), "importance": 5})
    assert (names(working), working.tokens) == (["kept"], 40)
    working.clear()
    working.add_many([old := words(engine, "old", 20), words(engine, "kept", 40)])
    engine.restore(engine.forget(old.id).id)
    engine.remember("old copy", importance=1)
    assert working.tokens <= 60


def test_a_memory_that_outgrows_the_whole_set_stays_by_a_shorter_text(engine: Engine) -> None:
    working = engine.working_set(max_tokens=120)
    memory = words(engine, "one", 50)
    working.add_many([memory, words(engine, "two", 20, importance=0)])
    sentences = " ".join(f"Part {n} of the plan says what follows." for n in range(20))
    grown = engine.revise(memory.id, sentences)
    (two, one) = sorted(working.items(), key=lambda each: each.memory.importance)
    assert (one.memory, one.tokens <= 100, two.tokens) == (grown, True, 20)
    assert working.tokens <= working.max_tokens
    for overflow in ("skip", "stop", "degrade", "degrade_stop"):
        context = working.assemble(overflow=overflow)
        assert context.text.startswith("Part 0 of the plan"), overflow
        assert context.tokens <= 120
        assert "1 memory is longer than the whole set of 120 tokens" in context.trace.notes[-1].text
    assert working.add(grown).evicted == ()
    assert working.assemble().text
    working.resize(200)
    assert (working.tokens, working.assemble().text) == (180, f"{sentences}\n\n{two.memory.content}")


def test_a_memory_of_which_no_text_fits_leaves_before_any_other(engine: Engine) -> None:
    working = engine.working_set(max_tokens=9)
    memory = words(engine, "one", 3, importance=9)
    working.add_many([memory, words(engine, "two", 5, importance=0)])
    engine.revise(memory.id, " ".join(f"w{n}" for n in range(150)))
    assert names(working) == ["two"]
    assert working.assemble().text == "two w0 w1 w2 w3"


def test_pinned_memories_stay_where_they_are_too_much_and_a_text_says_so(engine: Engine) -> None:
    working = engine.working_set(max_tokens=30)
    one, two = words(engine, "one", 10), words(engine, "two", 10)
    working.add_many([one, two], pinned=True)
    engine.revise(one.id, " ".join(f"w{n}" for n in range(25)))
    assert (working.tokens, len(working)) == (35, 2)
    with pytest.raises(BudgetTooSmall):
        working.assemble()


def test_a_reader_that_can_not_write_sees_no_more_than_fits(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with germane.open(file, agent="a", embedder=None, counter=Words()) as engine:
        working = engine.working_set(max_tokens=30)
        small = words(engine, "small", 10, importance=1)
        working.add_many([small, great := words(engine, "great", 20, importance=9)])
        engine.revise(great.id, " ".join(["great", *["more"] * 24]))
        with germane.open(file, agent="a", embedder=None, counter=Words(), read_only=True) as reader:
            assert names(reader.working_set()) == ["great"]
            assert reader.working_set().assemble().text.startswith("great more")
        assert [move.kind.value for move in engine.working_set("x").changes()] == []
        assert names(working) == ["great"]


def test_age_counts_from_the_moment_that_is_named(engine: Engine, clock: Hands) -> None:
    working = engine.working_set(max_tokens=30)
    ancient = engine.remember("ancient " * 10, created_at=START - timedelta(days=900))
    young = words(engine, "young", 10)
    working.add(young)
    clock.on(hours=1)
    working.add(ancient)
    assert gone(tuple(one.item.memory for one in working.evict(1).evicted)) == ["young"]
    working.add(young)
    assert gone(working.add(words(engine, "new", 20), basis="created_at").evicted) == ["ancient"]
    for call in (lambda: working.add(young, basis="birth"), lambda: working.evict(1, basis="birth")):
        with pytest.raises(InvalidInput, match=r"'birth'.*created_at, updated_at, accessed_at, entered_at"):
            call()


def test_sets_of_other_names_are_apart(engine: Engine) -> None:
    one = words(engine, "one", 5)
    engine.working_set("plan", max_tokens=10).add(one)
    assert (len(engine.working_set()), len(engine.working_set("plan"))) == (0, 1)
    assert [move.working_set for move in engine.working_set("plan").changes()] == ["plan", "plan"]
    assert engine.working_set().changes() == ()
    assert [move.kind.value for move in engine.working_set("plan").changes(after=1, limit=1)] == ["add"]


def test_what_becomes_of_a_memory_becomes_of_its_entry(engine: Engine) -> None:
    working = engine.working_set(max_tokens=50)
    one, two, three = (words(engine, name, 10) for name in ("one", "two", "three"))
    working.add_many([one, two, three])
    engine.revise(one.id, "changed to less")
    engine.forget(two.id)
    engine.purge(three.id, confirm=True)
    assert ([entry.memory.content for entry in working], working.tokens) == (["changed to less"], 3)
    assert [move.kind.value for move in working.changes(after=3)] == [
        "add",
        "revise",
        "forget",
        "purge",
    ]
    engine.restore(two.id)
    assert len(working) == 1
    working.add(one.id)
    assert (len(working), working.items()[0].touches) == (1, 1)


def test_tokens_are_those_of_the_engine_that_asks(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as exact:
        memory = exact.remember("Internationalization considerations notwithstanding.")
        exact.working_set().add(memory)
        by_tokens = exact.working_set().tokens
        assert by_tokens == exact.counter.count(memory.content)
    with germane.open(path, embedder=None, counter=Words()) as by_words:
        working = by_words.working_set()
        assert working.tokens == 3 != by_tokens
        assert working.add("x " and memory.id).items[0].tokens == 3


def test_a_recall_enters_what_it_found(engine: Engine, clock: Hands) -> None:
    working = engine.working_set(max_tokens=20)
    best = engine.remember("The cache lives in Redis on port 6379")
    also = engine.remember("The cache is warmed at night by a job")
    for filler in range(30):
        engine.remember(f"Unrelated note number {filler} about gardens and weather")
    clock.on(hours=1)
    found = engine.recall("cache Redis port", into=working)
    assert found.ranked[0].memory == best
    assert working.items()[-1].memory == best
    assert working.items()[-1].recalled
    assert {one.memory.id for one in working} <= {one.memory.id for one in found}
    assert working.tokens <= 20
    engine.recall("cache Redis port", into=working)
    assert working.items()[-1].touches == 1
    assert also.id in {one.memory.id for one in found}
    assert found == engine.recall("cache Redis port")


def test_a_recall_leaves_out_what_does_not_fit(engine: Engine) -> None:
    working = engine.working_set(max_tokens=20)
    first, giant, third, fourth = (
        words(engine, name, count) for name, count in (("a", 12), ("b", 50), ("c", 8), ("d", 8))
    )
    added = working.add_recalled([first, giant, third, fourth])
    assert (gone(added.left_out), names(working)) == (["b", "d"], ["c", "a"])
    assert names(added.items) == ["a", "c"]
    pinned = words(engine, "pinned", 10)
    working.clear()
    working.add(pinned, pinned=True)
    added = working.add_recalled([first, third])
    assert (gone(added.left_out), names(working)) == (["a"], ["pinned", "c"])


def test_a_recall_into_the_set_of_another_agent_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, agent="a", embedder=None) as mine, germane.open(path, agent="b") as theirs:
        mine.remember("Caches are in Redis.")
        with pytest.raises(InvalidInput, match="'b'"):
            mine.recall("caches", into=theirs.working_set())
        assert len(theirs.working_set()) == 0


def test_what_is_returned_changes_nothing(engine: Engine) -> None:
    working = engine.working_set()
    working.add(words(engine, "one", 5))
    items = working.items()
    with pytest.raises(AttributeError):
        items[0].pinned = True  # type: ignore[misc] # It is the point.
    working.clear()
    assert len(items) == 1


def test_many_threads_never_hold_more_than_the_limit(engine: Engine) -> None:
    working = engine.working_set(max_tokens=95)
    memories = [words(engine, f"m{n}", 10, importance=n % 10) for n in range(40)]

    def work(memory: Memory) -> None:
        working.add(memory)
        assert working.tokens <= 95
        if memory.importance > 8:
            working.remove(memory)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, memory) for memory in memories]:
            error = done.exception()
            # Another thread's addition may have evicted it first.
            assert error is None or isinstance(error, NotInWorkingSet)
    entered = [move.memory_id for move in working.changes() if move.kind.value == "add"]
    left = [move.memory_id for move in working.changes() if move.kind.value in {"evict", "remove"}]
    assert len(entered) == 40
    assert Counter(entered) == Counter([*left, *(one.memory.id for one in working)])
    assert working.tokens == 10 * len(working)


def test_a_maximum_is_set_with_what_is_added_or_not_at_all(engine: Engine) -> None:
    memory = engine.remember("Redis caches sessions for ten minutes.").id
    working = engine.working_set("desk")
    with pytest.raises(InvalidInput, match="can't enter a working set of 2"):
        working.add_many([memory], max_tokens=2)
    with pytest.raises(InvalidInput, match="max_tokens=-1"):
        working.add_many([memory], max_tokens=-1)
    assert (len(working), working.max_tokens, working.moved) == (0, 128_000, 0)
    added = working.add_many([memory], max_tokens=30)
    assert ([one.memory.id for one in added.items], working.max_tokens) == ([memory], 30)
    other = engine.remember("Postgres keeps what has to last, and Redis the rest of it all.").id
    moved = working.add_many([other], max_tokens=added.items[0].tokens + 10)
    assert [one.item.memory.id for one in moved.eviction.evicted] == [memory]
    assert [one.memory.id for one in working] == [other]

"""feedback, learn and unlearn as a caller meets them: counted once, learned from only where requested."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import germane
import germane.aio
from germane import Context, Engine, InvalidInput, NotFound, Trace
from germane.evaluation import Configuration
from germane.ranking import Impressions
from germane.stores import Applied, EmbeddingIdentity, Insert, Purge, RecordUse, SqliteStore
from germane.testing.fakes import FixedClock, HashEmbedder, make_memory

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TOPICS = ("redis", "caching", "sessions", "latency", "orders", "postgres", "billing", "search")


def opened(
    path: Path | str = ":memory:", *, agent: str = "newton", clock: FixedClock | None = None
) -> Engine:
    return germane.open(path, agent=agent, embedder=HashEmbedder(), clock=clock or FixedClock(NOW))


def filled(engine: Engine) -> Engine:
    chance = random.Random(5)  # noqa: S311 - Made-up memories keep no secret.
    engine.remember_many(
        f"Note {number}: {' '.join(chance.sample(TOPICS, 3))} was {chance.choice(('fast', 'slow'))}"
        for number in range(40)
    )
    return engine


@pytest.fixture
def engine() -> Engine:
    return filled(opened(clock=FixedClock(NOW, timedelta(seconds=1))))


MOST_USES = 5000
"""Uses stored for an agent; the oldest beyond these leave."""

# What a use changes beside the weights, such as how often a memory was used, takes no part here.
UNBOOSTED = replace(Configuration(plan="relevance").plan_of(), boosts=False)


def context_for(engine: Engine, query: str = "redis caching latency") -> Context:
    return engine.assemble(query, plan=UNBOOSTED, budget=200)


def account(context: Context) -> tuple[str, int, Trace]:
    """A context without the counters of its memories, which a use moves."""
    return context.text, context.tokens, context.trace


def by_part(context: Context, name: str) -> list[str]:
    """The two memories shown that this part of the score speaks for most."""
    parts = {entry.memory_id: entry.parts for entry in context.trace.included}
    return sorted(parts, key=lambda one: (-parts[one].get(name, 0.0), one))[:2]


def taught(engine: Engine, contexts: int = 40, *, part: str = "semantic") -> Mapping[str, float]:
    """What the engine has learned from a user who always uses what one part speaks for."""
    engine.set_learning(on=True)
    for number in range(contexts):
        context = context_for(engine, " ".join(random.Random(number).sample(TOPICS, 3)))  # noqa: S311 - As above.
        engine.feedback(context, by_part(context, part))
    weights = engine.set_learning().weights
    assert weights is not None
    return weights.values


def test_a_use_moves_the_counters_of_what_was_used_and_of_nothing_else(engine: Engine) -> None:
    context = context_for(engine)
    one, two, *rest = context.items

    done = engine.feedback(context, [one, two.memory.id])

    assert (done.counted, done.examples) == (2, 0)
    assert [memory.access_count for memory in done.used] == [1, 1]
    assert all(memory.accessed_at is not None for memory in done.used)
    assert engine.get(one.memory.id) == done.used[0]
    assert all(engine.get(item.memory.id) == item.memory for item in rest)


def test_the_same_context_counts_once_however_often_it_is_reported(engine: Engine) -> None:
    context = context_for(engine)
    one, two, *_ = [item.memory for item in context.items]

    engine.feedback(context, [one])
    again = engine.feedback(context, [one, two, one])

    assert again.counted == 1
    assert [memory.access_count for memory in again.used] == [1, 1]
    assert engine.feedback(context_for(engine), [one]).used[0].access_count == 2


def test_a_recall_is_reported_like_a_context(engine: Engine) -> None:
    recalled = engine.recall("redis caching")

    assert engine.feedback(recalled, [recalled[0]]).counted == 1
    assert engine.feedback(recalled, [recalled[0].memory]).counted == 0
    assert engine.get(recalled[0].memory.id).access_count == 1


def test_assembling_and_recalling_move_nothing(engine: Engine) -> None:
    before = engine.memories()
    context_for(engine)
    engine.recall("redis")
    assert engine.memories() == before


def test_what_was_not_shown_is_refused_and_nothing_is_counted(engine: Engine) -> None:
    context = context_for(engine)
    shown = {item.memory.id for item in context.items}
    other = next(memory for memory in engine.memories() if memory.id not in shown)

    for wrong in (other, "no id at all"):
        with pytest.raises(InvalidInput, match="isn't among the"):
            engine.feedback(context, [context.items[0], wrong])
    with pytest.raises(InvalidInput, match="used and as ignored"):
        engine.feedback(context, [context.items[0]], ignored=[context.items[0]])
    with pytest.raises(InvalidInput, match="sequence"):
        engine.feedback(context, context.items[0].memory.id)
    with pytest.raises(InvalidInput, match="sequence"):
        engine.feedback(context, context.items[0])  # type: ignore[arg-type]  # This is what is refused.
    with pytest.raises(InvalidInput, match=r"context='a context' is str; pass germane\.Context or"):
        engine.feedback("a context", [])  # type: ignore[arg-type]  # As above.
    assert all(memory.access_count == 0 for memory in engine.memories())


class PurgedMeanwhile(SqliteStore):
    """A store in which another writer purges a memory just before feedback is stored."""

    gone = ""

    def apply(self, agent: str, changes: Sequence[Any]) -> tuple[Applied, ...]:
        if self.gone and any(isinstance(each, RecordUse) for each in changes):
            gone, self.gone = self.gone, ""
            super().apply(agent, [Purge(memory_id=gone, at=NOW)])
        return super().apply(agent, changes)


def test_what_another_writer_purges_meanwhile_is_not_ignored_and_the_rest_is_counted(tmp_path: Path) -> None:
    store = PurgedMeanwhile(tmp_path / "a.db")
    with filled(germane.open(store, agent="newton", embedder=None)) as engine:
        engine.set_learning(on=True)
        context = context_for(engine)
        used, *ignored = context.items
        store.gone = ignored[0].memory.id
        assert engine.feedback(context, [used]).examples == len(ignored)
        store.gone = used.memory.id
        with pytest.raises(NotFound, match=used.memory.id):
            engine.feedback(context, [used])
    store.close()


def test_what_was_purged_since_fails_where_it_was_used_and_else_is_passed_over(engine: Engine) -> None:
    engine.set_learning(on=True)
    context = context_for(engine)
    gone, remaining, *rest = context.items
    engine.purge(gone.memory.id, confirm=True)

    with pytest.raises(NotFound):
        engine.feedback(context, [gone, remaining])
    assert engine.get(remaining.memory.id).access_count == 0
    assert engine.feedback(context, [remaining]).examples == 1 + len(rest)


def test_learning_is_off_until_it_is_requested(engine: Engine) -> None:
    before = context_for(engine)
    engine.feedback(before, [before.items[-1]])

    lessons = engine.set_learning()

    assert (lessons.on, lessons.weights, lessons.examples) == (False, None, 0)
    with pytest.raises(InvalidInput, match="on="):
        engine.set_learning("yes")  # type: ignore[arg-type]  # This is what is refused.


def test_use_is_counted_without_learning_and_moves_what_is_used_more() -> None:
    with filled(opened()) as engine:
        before = engine.assemble("redis caching latency", budget=400)
        used, ignored = before.items[0].memory, before.items[-1].memory
        assert "useful" not in {name for entry in before.trace.included for name in entry.parts}
        for query in ("redis caching latency", "caching latency redis"):
            engine.feedback(engine.assemble(query, budget=400), [used])
        after = {
            entry.memory_id: entry.parts for entry in engine.assemble("latency", budget=400).trace.entries
        }
        assert not engine.set_learning().on
        assert (engine.set_learning().weights, engine.set_learning().examples) == (None, 0)
        # The parts add up to the score, so a factor above 1 adds to it and one below takes from it.
        assert after[used.id]["useful"] > 0 > after[ignored.id]["useful"]
        assert engine.reset_learning() == 0
        fresh = engine.assemble("latency", budget=400).trace.entries
        assert "useful" not in {name for entry in fresh for name in entry.parts}
        assert engine.get(used.id).access_count == 2


def test_what_a_user_goes_by_counts_more_and_the_trace_says_so(engine: Engine) -> None:
    weights = taught(engine)
    context = context_for(engine)

    assert weights["semantic"] > 1.05
    assert weights["lexical"] < 0.95
    assert context.trace.weights == weights
    assert [note.code for note in context.trace.notes].count("learned") == 1
    assert f"semantic {weights['semantic']:.2f}" in " ".join(context.explain().split())
    recalled = engine.recall("redis caching")
    assert recalled.weights == weights
    assert "learned" in {note.code for note in recalled.notes}


def test_the_parts_shown_are_weighed_and_those_learned_from_are_not() -> None:
    embedder = HashEmbedder()
    identity = EmbeddingIdentity(name=embedder.name, dimension=embedder.dimension)
    store = SqliteStore(":memory:", embedding=identity)
    engine = filled(germane.open(store, agent="newton", embedder=embedder, clock=FixedClock(NOW)))
    plain = {entry.memory_id: entry.parts for entry in context_for(engine).trace.entries}
    weights = taught(engine)

    context = context_for(engine)
    for entry in context.trace.entries:
        expected = {name: weights[name] * part for name, part in plain[entry.memory_id].items()}
        assert entry.parts == pytest.approx(expected)
        assert entry.score == pytest.approx(sum(expected.values()))

    engine.reset_learning()
    engine.feedback(context, [context.items[0]])
    learned_from = {example.memory_id: example.parts for example in store.feedback.examples("newton")}
    assert learned_from.keys() == {item.memory.id for item in context.items}
    for memory_id, parts in learned_from.items():
        assert parts == pytest.approx(plain[memory_id], abs=1e-6)


def test_nothing_learned_leaves_every_byte_as_it_was() -> None:
    engine = filled(opened())
    never = account(context_for(engine))
    engine.set_learning(on=True)
    assert account(context_for(engine)) == never
    engine.reset_learning()
    taught(engine, 30)
    assert context_for(engine).trace.weights
    engine.set_learning(on=False)
    assert account(context_for(engine)) == never
    engine.set_learning(on=True)
    assert engine.reset_learning() > 0
    assert account(context_for(engine)) == never
    assert engine.set_learning().on


def test_learning_replays_and_stays_with_the_file(tmp_path: Path) -> None:
    with filled(opened(tmp_path / "a.db")) as engine:
        taught(engine)
        first = context_for(engine)
        assert context_for(engine) == first
    with opened(tmp_path / "a.db") as reopened:
        assert context_for(reopened) == first
        assert reopened.doctor() == ()


def test_only_what_is_named_is_ignored_where_something_is(engine: Engine) -> None:
    engine.set_learning(on=True)
    context = context_for(engine)
    one, two, *_ = context.items

    assert engine.feedback(context, [one], ignored=[two]).examples == 2
    assert engine.set_learning().examples == 2
    assert engine.feedback(context, [one], ignored=[]).examples == 1


def test_scores_of_other_making_are_not_learned_from_nor_weighed(engine: Engine) -> None:
    taught(engine, 30)
    remaining = engine.set_learning().examples

    newest = engine.recall("")
    scored = engine.recall("redis", scorer=lambda candidate, _query, _now: len(candidate.memory.content))
    for recalled in (newest, scored):
        assert (recalled.weights, "learned" in {note.code for note in recalled.notes}) == ({}, False)
        assert engine.feedback(recalled, [recalled[0]]).examples == 0

    assert engine.set_learning().examples == remaining


def test_agents_of_one_file_learn_apart(tmp_path: Path) -> None:
    with filled(opened(tmp_path / "a.db", agent="one")) as one, opened(tmp_path / "a.db", agent="two") as two:
        filled(two)
        before = context_for(two)
        taught(one, 30)
        assert (two.set_learning().on, two.set_learning().examples) == (False, 0)
        assert context_for(two) == before
        with pytest.raises(NotFound):
            two.feedback(context_for(one), [context_for(one).items[0]])


def test_a_purge_takes_what_was_learned_from_the_memory(engine: Engine) -> None:
    taught(engine, 20)
    before = engine.set_learning().examples
    context = context_for(engine)
    memory_id = context.items[0].memory.id

    engine.purge(memory_id, confirm=True)

    assert engine.set_learning().examples < before
    assert all(item.memory.id != memory_id for item in context_for(engine).items)


def test_another_engine_sees_at_once_what_was_learned(tmp_path: Path) -> None:
    with filled(opened(tmp_path / "a.db")) as one, opened(tmp_path / "a.db") as two:
        assert context_for(two).trace.weights == {}
        assert taught(one, 20) == context_for(two).trace.weights
        two.reset_learning()
        assert context_for(one).trace.weights == {}


def test_what_is_left_of_a_context_can_be_reported_by_its_parts(engine: Engine) -> None:
    context = context_for(engine)
    shown = Impressions.of(
        "context",
        question=context.trace.question.text,
        now=context.trace.now,
        parts={entry.memory_id: entry.parts for entry in context.trace.included},
        weights=context.trace.weights,
    )

    assert engine.feedback(shown, [context.items[0].memory.id]).counted == 1
    assert engine.feedback(context, [context.items[0]]).counted == 0


def test_the_awaited_surface_learns_the_same() -> None:
    async def main() -> tuple[int, bool, int]:
        async with await germane.aio.open(":memory:") as engine:
            await engine.remember_many(["Redis caches sessions", "Redis needs a password"])
            await engine.set_learning(on=True)
            context = await engine.assemble("redis", plan="relevance", budget=200)
            counted = (await engine.feedback(context, [context.items[0]])).counted
            return counted, (await engine.set_learning()).on, await engine.reset_learning()

    assert asyncio.run(main()) == (1, True, 2)


def test_examples_are_bounded_and_the_oldest_leave() -> None:
    store = SqliteStore(":memory:")
    memory = make_memory("one", agent="newton")
    store.apply("newton", [Insert(memory=memory)])
    store.feedback.learning("newton", on=True)
    contexts = [f"{number:032x}" for number in range(MOST_USES + 7)]

    store.apply(
        "newton",
        [
            RecordUse(memory_id=memory.id, context=context, used=True, at=NOW, parts={"lexical": 0.5})
            for context in contexts
        ],
    )

    assert [example.context for example in store.feedback.examples("newton")] == contexts[7:]
    (still,) = store.get("newton", [memory.id])
    assert still is not None
    assert still.access_count == len(contexts)
    store.close()

"""What was used and what came of it, exported and imported: as it was, once, and counted nowhere anew."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import Engine, Filter, InvalidInput, Order, Outcome
from germane.errors import UnreadableSource
from germane.importers import export_jsonl, import_source, read_jsonl, read_memories
from germane.ranking import OutcomeRecord, UsageHistory
from germane.testing.fakes import START, FixedClock

QUESTION = "Which sessions does Redis cache?"


def opened(path: Path | str = ":memory:", agent: str = "ann", clock: FixedClock | None = None) -> Engine:
    return germane.open(path, agent=agent, embedder=None, clock=clock or FixedClock(START))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An agent that has learned for some weeks which of alike memories help."""
    clock = FixedClock(START)
    with opened(tmp_path / "ann.db", clock=clock) as made:
        made.set_learning(True)
        made.remember_many(
            {"content": f"Redis caches the sessions of shop {number}.", "kind": "fact"} for number in range(6)
        )
        made.remember("Look at the cache of sessions first.", kind="procedure")
        for day in range(12):
            clock.advance(timedelta(days=1))
            context = made.assemble(QUESTION, budget=400)
            ids = [item.memory.id for item in context.items]
            made.feedback(context, used=sorted(ids)[:1])
            if day == 6:
                # Reported once more, and otherwise: that leaves gaps among the numbers of the reports.
                made.feedback(context, used=sorted(ids)[1:3])
            made.outcome(context, Outcome.SUCCESS if day % 3 else Outcome.FAILURE, memories=ids[:2])
        first = made.recall("shop 1")[0].memory
        made.confirm(first.id)
        made.confirm(first.id)
        made.contradict(first.id, by=made.recall("shop 2")[0].id)
        yield made


def exported(engine: Engine, **options: Any) -> str:
    out = io.StringIO()
    memories = sorted(
        engine.memories(Filter(statuses=tuple(germane.Status)), order=Order.OLDEST), key=lambda one: one.id
    )
    standings = dict(
        zip([one.id for one in memories], engine.lifecycle_states([one.id for one in memories]), strict=True)
    )
    chosen = {"usage_history": engine.usage_history(), "agent": engine.agent, **options}
    export_jsonl(memories, out, lifecycle_states=standings, **chosen)
    return out.getvalue()


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def records(text: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, text.splitlines()) if "record" in line]


def test_what_was_learned_goes_along_and_ranks_as_it_did(engine: Engine, tmp_path: Path) -> None:
    text = exported(engine)
    path = written(tmp_path / "ann.jsonl", text)
    clock = FixedClock(START + timedelta(days=12))
    with opened(agent="bo", clock=clock) as other:
        report = import_source(other, path)
        experience = engine.usage_history()
        assert report.usage_records == len(experience) == len(records(text)) - 1
        assert other.set_learning().on
        assert other.set_learning().weights == engine.set_learning().weights
        for question in (QUESTION, "Where do sessions of shop 3 go?"):
            mine, theirs = engine.recall(question), other.recall(question)
            assert [(one.memory.id, one.parts) for one in theirs] == [
                (one.memory.id, one.parts) for one in mine
            ]
            contexts = [
                each.assemble(question, plan="scoped", task="sessions", budget=300)
                for each in (engine, other)
            ]
            assert contexts[0].text == contexts[1].text
        gaps = [
            [after.given - before.given for before, after in pairwise(each.usage_history().showings)]
            for each in (engine, other)
        ]
        assert gaps[0] == gaps[1]
        assert max(gaps[0]) > 1
        # Counts are those that the memories came with, although the uses were imported.
        assert {one.id: one.access_count for one in other.memories()} == {
            one.id: one.access_count for one in engine.memories()
        }
        assert [each.by for each in other.events()] == ["bo"] * len(engine.events())
        assert [(e.memory_id, e.sign, e.after, e.at, e.other) for e in other.events()] == [
            (e.memory_id, e.sign, e.after, e.at, e.other) for e in engine.events()
        ]
        assert exported(other) == text


def test_importing_again_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    text = exported(engine)
    path = written(tmp_path / "ann.jsonl", text)
    with opened() as other:
        import_source(other, path, batch=3)
        other.set_learning(False)
        before = exported(other)
        again = import_source(other, path, batch=2)
        assert (again.created, again.usage_records) == (0, 0)
        assert exported(other) == before
        assert not other.set_learning().on
    # Nor does it in the store that it comes from.
    assert import_source(engine, path).usage_records == 0
    assert exported(engine) == text


def test_what_broke_off_is_gone_on_with(engine: Engine, tmp_path: Path) -> None:
    text = exported(engine)
    half = text.splitlines(keepends=True)
    with opened() as other:
        some = import_source(other, written(tmp_path / "half.jsonl", "".join(half[: len(half) - 5])))
        rest = import_source(other, written(tmp_path / "all.jsonl", text))
        assert (some.usage_records, rest.usage_records) == (len(engine.usage_history()) - 5, 5)
        assert exported(other) == text


def test_what_was_reported_here_stays_and_the_rest_is_added(engine: Engine, tmp_path: Path) -> None:
    path = written(tmp_path / "ann.jsonl", exported(engine))
    with opened(agent="bo") as other:
        own = other.remember("Redis caches the sessions of shop 0.", kind="fact")
        context = other.assemble(QUESTION, budget=400)
        other.feedback(context, used=[own.id])
        import_source(other, path)
        # A memory that is known here by another id has gone through the same.
        mapped = [one for one in other.usage_history().showings if one.memory_id == own.id]
        assert len(mapped) == 1 + sum(
            engine.get(one.memory_id).content == own.content for one in engine.usage_history().showings
        )
        assert other.get(own.id).access_count == 1
        # A use was reported here before, so that whether it learns was the agent's own choice.
        assert not other.set_learning().on


def test_files_with_memories_alone_are_as_they_ever_were(engine: Engine, tmp_path: Path) -> None:
    text = exported(engine, usage_history=None)
    assert records(text) == []
    assert {json.loads(line)["germane"] for line in text.splitlines()} == {1}
    assert {line["germane"] for line in records(exported(engine))} == {2}
    with opened() as other:
        assert import_source(other, written(tmp_path / "old.jsonl", text)).usage_records == 0
        assert not other.set_learning().on
        assert len(other.usage_history()) == 0


def test_nothing_is_exported_of_memories_that_are_not_among_them(engine: Engine, tmp_path: Path) -> None:
    chosen = engine.recall("shop 1")[0].memory
    out = io.StringIO()
    assert export_jsonl([chosen], out, usage_history=engine.usage_history(), agent="ann") == 1
    lines = records(out.getvalue())
    assert {line["memory"] for line in lines if "memory" in line} == {chosen.id}
    assert {line["other"] for line in lines if line["record"] == "event"} == {None}
    # Nor of one that was left out as it looks like a secret.
    secret = engine.remember("password = 'hunter2-hunter2-x9'", kind="fact")
    engine.confirm(secret.id)
    with opened() as other:
        report = import_source(other, written(tmp_path / "all.jsonl", exported(engine)))
        assert len(report.skipped) == 1
        assert report.usage_records == len(engine.usage_history()) - 1


def test_who_asks_for_memories_or_drafts_gets_no_more(engine: Engine, tmp_path: Path) -> None:
    path = Path(written(tmp_path / "ann.jsonl", exported(engine)))
    count = len(engine.memories())
    assert len(list(read_memories(path, agent="ann"))) == count
    assert len(list(read_jsonl(path))) == count


def test_what_was_unlearned_is_not_exported(engine: Engine) -> None:
    engine.reset_learning()
    assert engine.usage_history().showings == ()
    assert {line["record"] for line in records(exported(engine))} == {"learning", "outcome", "event"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"germane": 3}, "a newer germane wrote it (format 3, and this one reads up to 2)"),
        (
            {"record": "dream"},
            "'record' must be learning, showing, outcome, event or learning_run, and is 'dream'",
        ),
        ({"context": "no key"}, "'context' must be 32 hexadecimal digits"),
        ({"used": None}, "'used' is missing"),
        ({"later": -1}, "'later' must be a count"),
        ({"used": 1}, "'used' must be true or false"),
        ({"parts": {"lexical": "much"}}, "'lexical' must be a number"),
        ({"memory": 7}, "'memory' must be a text"),
        ({"record": "outcome", "worth": None}, "'worth' is missing"),
        ({"record": "event", "sign": "wish"}, "'sign' must be one of"),
    ],
)
def test_a_damaged_record_is_named_with_its_line(
    engine: Engine, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    lines = exported(engine).splitlines()
    number = next(place for place, line in enumerate(lines) if json.loads(line).get("record") == "showing")
    lines[number] = json.dumps({**json.loads(lines[number]), **change})
    path = written(tmp_path / "broken.jsonl", "\n".join(lines) + "\n")
    with opened() as other:
        with pytest.raises(UnreadableSource) as caught:
            import_source(other, path)
        assert message in str(caught.value)
        assert f"line {number + 1}" in str(caught.value)
        assert other.memories() == ()


def test_what_says_nothing_is_refused_whole(engine: Engine) -> None:
    outcome = engine.usage_history().outcomes[0]
    nothing = OutcomeRecord(
        context=outcome.context, memory_id=outcome.memory_id, worth=2.0, weight=1.0, at=outcome.at
    )
    with opened() as other:
        other.import_memories(engine.memories(order=Order.OLDEST))
        with pytest.raises(InvalidInput, match=r"worth 2\.0"):
            other.import_usage_history(UsageHistory(outcomes=(outcome, nothing)))
        assert len(other.usage_history()) == 0

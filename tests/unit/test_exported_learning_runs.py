"""Learning runs in an export: seen and undone in another store, once, and marking no message as read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import germane
from germane import Engine, Filter, Status
from germane.errors import UnreadableSource
from germane.importers import export_jsonl, import_source
from germane.testing.fakes import START, FixedClock


def opened(clock: FixedClock | None = None) -> Engine:
    return germane.open(":memory:", agent="ann", embedder=None, clock=clock or FixedClock(START))


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An agent that learned a home, and later a move."""
    clock = FixedClock(START)
    with opened(clock) as made:
        chat = made.conversation("chat")
        chat.append("user", "I live in Nagoya. I'm allergic to peanuts.")
        made.learn_from(chat)
        clock.advance(timedelta(days=30))
        chat.append("user", "I moved to Osaka.")
        made.learn_from(chat)
        yield made


def exported(engine: Engine, path: Path) -> Path:
    every = sorted(
        engine.memories(Filter(statuses=tuple(Status))), key=lambda memory: (memory.id, memory.version)
    )
    refs = [memory.ref for memory in every]
    states = dict(zip(refs, engine.lifecycle_states(refs), strict=True))
    with path.open("w", encoding="utf-8") as out:
        export_jsonl(every, out, lifecycle_states=states, usage_history=engine.usage_history(), agent="ann")
    return path


def contents(engine: Engine) -> list[str]:
    return sorted(memory.content for memory in engine.memories())


def test_an_imported_store_shows_the_runs_and_undoes_them(engine: Engine, tmp_path: Path) -> None:
    file = exported(engine, tmp_path / "memories.jsonl")
    with opened() as other:
        import_source(other, str(file))
        runs = other.learning_runs()
        assert [each.decisions for each in runs] == [each.decisions for each in engine.learning_runs()]

        latest, first = runs
        assert all(each.undone for each in other.unlearn(latest.id).decisions)
        assert contents(other) == ["The user is allergic to peanuts.", "The user lives in Nagoya."]
        other.unlearn(first.id)
        assert contents(other) == []


def test_a_second_import_adds_no_run(engine: Engine, tmp_path: Path) -> None:
    file = exported(engine, tmp_path / "memories.jsonl")
    with opened() as other:
        assert import_source(other, str(file)).usage_records >= 2
        undone = other.unlearn(other.learning_runs()[0].id)
        assert import_source(other, str(file)).usage_records == 0
        assert other.learning_runs()[0] == undone


def test_an_imported_run_marks_no_message_as_read(engine: Engine, tmp_path: Path) -> None:
    file = exported(engine, tmp_path / "memories.jsonl")
    with opened() as other:
        import_source(other, str(file))
        chat = other.conversation("chat")
        chat.append("user", "I have a cello.")
        (decision,) = other.learn_from(chat).decisions
        assert decision.proposal.content == "The user has a cello."


def test_a_run_with_a_secret_is_skipped_with_its_reason(engine: Engine, tmp_path: Path) -> None:
    file = exported(engine, tmp_path / "memories.jsonl")
    key = "AKIA" + "IOSFODNN7EXAMPLA"
    file.write_text(file.read_text(encoding="utf-8").replace("I moved to Osaka.", f"I moved, {key}."))
    with opened() as other:
        report = import_source(other, str(file))
        assert len(other.learning_runs()) == 1
    assert any("learning run" in each.source and "secret" in each.reason for each in report.skipped)


def test_a_broken_run_is_named_with_its_line(engine: Engine, tmp_path: Path) -> None:
    file = exported(engine, tmp_path / "memories.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines()
    place = next(number for number, line in enumerate(lines, 1) if '"learning_run"' in line)
    lines[place - 1] = json.dumps({**json.loads(lines[place - 1]), "run": {"id": 3}})
    file.write_text("\n".join(lines), encoding="utf-8")
    with opened() as other, pytest.raises(UnreadableSource, match=f"line {place}"):
        import_source(other, str(file))

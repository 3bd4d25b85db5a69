"""The note on how well the agent judges itself: in the context, inside the total, the same on replay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import Draft, Engine, Outcome
from germane.protocols import Query
from germane.stores import SearchResult, SqliteStore, remove_agent
from germane.testing.fakes import FailingStore, FixedClock

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def decided(count: int, *, failed: int = 0, confidence: float = 0.9, kind: str = "decision") -> list[Draft]:
    return [
        Draft(
            content=f"{kind} number {place} on gardens.",
            kind=kind,
            confidence=confidence,
            outcome=Outcome.FAILURE if place < failed else Outcome.SUCCESS,
            created_at=NOW - timedelta(days=place),
        )
        for place in range(count)
    ]


def opened(*drafts: Draft, at: Path | str = ":memory:") -> Engine:
    engine = germane.open(at, clock=FixedClock(NOW), embedder=None)
    engine.remember_many(drafts)
    return engine


def note(engine: Engine, **options: object) -> str | None:
    """What stands under the heading of the note, which is the last of all."""
    text = engine.assemble("Which caches?", **options).text  # type: ignore[arg-type]  # Of several types.
    head, found, note_text = text.partition("## Note\n")
    assert "## Note" not in head + note_text
    return note_text if found else None


@pytest.mark.parametrize("plan", ["layered", "layered_strict"])
@pytest.mark.parametrize(
    ("failed", "confidence", "scored", "leaning"),
    [
        (6, 0.9, "50% came true (Brier score 0.410)", "you are over-confident by 40%"),
        (0, 0.6, "100% came true (Brier score 0.160)", "you are under-confident by 40%"),
        (3, 0.75, "75% came true (Brier score 0.188)", "your confidence is about right"),
    ],
)
def test_the_note_says_in_one_sentence_how_well_the_agent_judges(
    plan: str, failed: int, confidence: float, scored: str, leaning: str
) -> None:
    with opened(*decided(12, failed=failed, confidence=confidence)) as engine:
        note_text = note(engine, plan=plan)
        assert note_text == engine.calibration().advice
        assert str(note_text).startswith(f"Of 12 decisions {scored}: {leaning}")


def test_the_note_stands_only_once_it_has_something_to_say() -> None:
    with opened() as engine:
        assert note(engine) is None
        engine.remember("Chose Redis.", kind="decision", outcome="pending", confidence=0.5)
        engine.remember_many(decided(9))
        assert note(engine) is None  # One is awaited, and too few allow no calibration.
        engine.remember("Chose Postgres.", kind="decision", outcome="success", confidence=0.9)
        assert note(engine) == engine.calibration().advice


def test_what_the_agent_noted_itself_stands_below_and_alone_where_there_is_too_little_to_say() -> None:
    with opened(*decided(3)) as engine:
        engine.remember("A little too modest, says Ana.", kind="calibration")
        assert note(engine) == "- A little too modest, says Ana."
        engine.remember_many(decided(12))
        advice = engine.calibration().advice
        assert note(engine) == f"{advice}\n- A little too modest, says Ana."


def _forget(engine: Engine) -> object:
    return engine.forget(engine.memories()[0].id)


def _purge(engine: Engine) -> object:
    return engine.purge(engine.memories()[0].id, confirm=True)


def _review(engine: Engine) -> object:
    return engine.review(engine.memories()[0].id, "partial")


def _revise(engine: Engine) -> object:
    return engine.revise(engine.memories()[0].id, confidence=0.3)


def _decide(engine: Engine) -> object:
    return engine.remember("Another one on trees.", kind="decision", outcome="partial", confidence=0.2)


def _record(engine: Engine) -> object:
    return engine.remember("# Use trees", kind="adr", outcome="failure", confidence=0.9)


@pytest.mark.parametrize("change", [_forget, _purge, _review, _revise, _decide, _record])
def test_whatever_changes_the_record_changes_the_note(change: Callable[[Engine], object]) -> None:
    with opened(*decided(14, failed=3)) as engine:
        before = note(engine)
        assert before == note(engine) == engine.calibration().advice
        change(engine)
        assert before != note(engine) == engine.calibration().advice


def test_another_process_that_decides_changes_it_too(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(*decided(12), at=path) as engine, germane.open(path, embedder=None) as other:
        before = note(engine)
        other.remember_many(decided(20, failed=20)[12:])
        assert before != note(engine) == other.calibration().advice


def test_a_namesake_of_an_agent_that_was_removed_has_a_note_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(*decided(12), at=path) as engine:
        before = note(engine)
        remove_agent(path, engine.agent, confirm=True)
        # As many changes as the other had, so that only whose they are tells them apart.
        engine.remember_many(decided(12, failed=12))
        assert before != note(engine) == engine.calibration().advice


def test_another_agents_decisions_say_nothing_of_this_one(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(*decided(12), at=path), germane.open(path, agent="other", embedder=None) as other:
        assert note(other) is None


def test_the_note_counts_inside_the_total_and_leaves_where_nothing_is_free() -> None:
    with opened(*decided(12)) as engine:
        shown = 0
        for budget in range(0, 500, 3):
            context = engine.assemble("Which caches?", budget=budget)
            assert engine._session.counter.count(context.text) == context.tokens <= budget
            shown += "## Note" in context.text
            use = next(use for use in context.trace.sections if use.name == "calibration")
            assert (use.used > 0) == ("## Note" in context.text)
            left_out = [one.text for one in context.trace.notes if one.code == "text_left_out"]
            if context.trace.entries:
                assert (
                    "The text of section 'calibration' was left out: too few tokens were left." in left_out
                ) == (use.used == 0)
        assert 0 < shown < 167


def test_a_replay_has_the_note_of_then(tmp_path: Path) -> None:
    with opened(*decided(12, failed=2), at=tmp_path / "agent.db") as engine:
        context = engine.assemble("Which caches?", record=True)
        (recorded,) = engine.ledger().list()
        engine.remember_many(decided(40, failed=40)[12:])
        assert "## Note" in context.text
        assert engine.assemble("Which caches?").text != context.text
        replay = engine.ledger().replay(recorded.id)
        assert (replay.same, replay.context and replay.context.text) == (True, context.text)
        # What was made of the past is not taken for the present.
        assert note(engine) == engine.calibration().advice


def test_it_stays_under_pressure() -> None:
    with opened(*decided(12), *[Draft(content=f"Caches {n}.", kind="fact") for n in range(20)]) as engine:
        context = engine.assemble("Which caches?")
        refreshed = engine.refresh(context, "", free_tokens=context.tokens - 40)
        assert (str(refreshed.reason), "## Note\nOf 12" in refreshed.context.text) == ("pressure", True)


class _Undecided(FailingStore):
    """A store that fails where decisions are queried alone, whatever the question."""

    def search(self, agent: str, query: Query) -> SearchResult:
        if any("decision" in part.kinds and part.order is not None for part in query.slices):
            raise OSError("decisions are locked")
        return super().search(agent, query)


def test_decisions_that_cant_be_read_leave_the_rest_as_it_is() -> None:
    inner = SqliteStore(":memory:")
    with germane.open(inner, clock=FixedClock(NOW), embedder=None) as engine:
        engine.remember_many([*decided(12), Draft(content="Redis holds caches.", kind="fact")])
        with germane.open(_Undecided(inner, ()), clock=FixedClock(NOW), embedder=None) as failing:
            context = failing.assemble("Which caches?")
    assert "Redis holds caches." in context.text
    assert "## Note" not in context.text
    assert [one.text for one in context.trace.notes if one.code == "section_failed"] == [
        "Section 'calibration' could not read how decisions turned out: OSError: decisions are locked"
    ]

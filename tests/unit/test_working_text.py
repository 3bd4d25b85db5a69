"""The text of a working set: what stands in it, in which order, why, and that nothing changes by it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import BudgetTooSmall, Context, Engine, InvalidInput, Reason, WorkingSet
from germane.ledger import EmptyReason
from germane.protocols import Candidate, Query
from germane.ranking import Decay
from germane.testing.fakes import HashEmbedder
from germane.working_sets import AgeBasis

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


class Words:
    """Counts words, and each blank line between two memories as one."""

    name = "words"
    margin = 0.0

    def count(self, text: str) -> int:
        return len(text.split()) + text.count("\n\n")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None, counter=Words(), clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def working(engine: Engine) -> WorkingSet:
    """Four memories: touched in this order, of these importances and ages."""
    found = engine.working_set(max_tokens=1000)
    for text, importance, hours in (
        ("ancient decision about storage", 9, 120),
        ("yesterday's preference", 8, 24),
        ("fresh failure of the build on windows", 4, 1),
        ("idle talk", 1, 0),
    ):
        created_at = NOW - timedelta(hours=hours)
        found.add(engine.remember(text, importance=importance, created_at=created_at))
    return found


def names(context: Context) -> list[str]:
    return [item.memory.content.split()[0] for item in context.items]


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("balanced", ["fresh", "idle", "yesterday's", "ancient"]),
        ("recent", ["idle", "fresh", "yesterday's", "ancient"]),
        ("important", ["ancient", "yesterday's", "fresh", "idle"]),
        ("frequent", ["ancient", "yesterday's", "fresh", "idle"]),
    ],
)
def test_each_strategy_has_its_order(working: WorkingSet, strategy: str, order: list[str]) -> None:
    context = working.assemble(strategy=strategy)
    assert names(context) == order
    assert names(working.assemble(strategy=strategy, order="reverse")) == order[::-1]
    assert context.text == "\n\n".join(item.memory.content for item in context.items)
    assert context.tokens == Words().count(context.text) == working.tokens + 3


def test_scores_are_those_of_the_formulas(working: WorkingSet) -> None:
    scores = [entry.score for entry in working.assemble().trace.entries]
    assert scores == pytest.approx([4 / 2, 1.0, 8 / 25, 9 / 121], abs=1e-6)
    scores = [entry.score for entry in working.assemble(decay=Decay(hours=24)).trace.entries]
    assert scores == pytest.approx([8 / 2, 4 / (1 + 1 / 24), 9 / 6, 1.0], abs=1e-6)
    entered = Decay(basis=AgeBasis.ENTERED)
    assert names(working.assemble(decay=entered)) == ["ancient", "yesterday's", "fresh", "idle"]


def test_a_touch_is_seen_and_only_a_touch(engine: Engine, working: WorkingSet) -> None:
    before, moved = working.items(), working.moved
    for strategy in ("balanced", "recent", "important", "frequent", "clustered", "smart"):
        first = working.assemble("which storage?", strategy=strategy)
        assert working.assemble("which storage?", strategy=strategy) == first
    engine.recall("storage")
    assert (working.items(), working.moved) == (before, moved)
    working.touch(before[0])
    assert names(working.assemble(strategy="recent"))[0] == "ancient"
    assert working.assemble(strategy="frequent").trace.entries[0].parts["accesses"] == 1


def test_what_does_not_fit_is_skipped_or_ends_the_list(working: WorkingSet) -> None:
    stopped = working.assemble(strategy="recent", budget=9, overflow="stop")
    skipped = working.assemble(strategy="recent", budget=9)
    assert (names(stopped), names(skipped)) == (["idle"], ["idle", "yesterday's"])
    assert [entry.reason for entry in stopped.trace.entries] == [
        None,
        Reason.OVER_BUDGET,
        Reason.STOPPED,
        Reason.STOPPED,
    ]
    assert [entry.reason for entry in skipped.trace.entries] == [
        None,
        Reason.OVER_BUDGET,
        None,
        Reason.OVER_BUDGET,
    ]
    for limit in range(25):
        assert working.assemble(budget=limit).tokens <= limit
    exact = working.assemble().tokens
    assert len(working.assemble(budget=exact).items) == 4
    assert len(working.assemble(budget=exact - 1).items) == 3


def test_nothing_is_a_text_too(engine: Engine, working: WorkingSet) -> None:
    assert (working.assemble(budget=0).text, working.assemble(budget=0).tokens) == ("", 0)
    empty = engine.working_set("empty").assemble("what?")
    assert (empty.text, empty.items, empty.trace.empty_reason) == (
        "",
        (),
        EmptyReason.EMPTY_WORKING_SET,
    )


def test_a_text_of_no_tokens_is_empty_whatever_is_pinned(working: WorkingSet) -> None:
    pinned = working.items()[0]
    working.pin(pinned)
    for overflow in ("skip", "stop", "degrade"):
        context = working.assemble(budget=0, overflow=overflow)
        assert (context.text, context.tokens, context.items) == ("", 0, ())
        assert [(note.code, note.text) for note in context.trace.notes] == [
            ("nothing_asked", "No token was allowed, so the text is empty, and what is pinned isn't in it.")
        ]
        (entry,) = (one for one in context.trace.entries if one.memory_id == pinned.memory.id)
        reasons = (Reason.OVER_BUDGET, Reason.STOPPED)
        assert entry.reason in reasons
    working.unpin(pinned)
    assert working.assemble(budget=0).trace.notes == ()
    working.pin(pinned)
    with pytest.raises(BudgetTooSmall):
        working.assemble(budget=1)


@pytest.mark.parametrize("strategy", ["balanced", "recent", "important", "frequent", "clustered", "smart"])
def test_assembling_changes_nothing_that_it_reads(tmp_path: Path, strategy: str) -> None:
    path = tmp_path / "agent.db"

    def whole() -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            return list(connection.iterdump())

    with germane.open(path, embedder=HashEmbedder(), clock=lambda: NOW) as engine:
        working = engine.working_set()
        working.add_many(
            [engine.remember(f"note {number} about storage") for number in range(8)], pinned=True
        )
        engine.set_learning(True)
        before, items, figures = whole(), working.items(), engine.stats()
        contexts = [working.assemble("what about storage?", strategy=strategy) for _ in range(2)]
        list(contexts[0].trace.entries)
        contexts[0].explain()
        assert contexts[0] == contexts[1]
        assert (whole(), working.items(), engine.stats()) == (before, items, figures)


def test_what_is_pinned_stands_in_it(engine: Engine, working: WorkingSet) -> None:
    working.pin(working.items()[0])
    assert "ancient" in names(working.assemble(budget=6))
    with pytest.raises(BudgetTooSmall) as short:
        working.assemble(budget=3)
    assert (short.value.needed, short.value.shortfall) == (4, 1)
    engine.remember("idle talk")
    assert names(working.assemble(strategy="important", budget=7)) == ["ancient", "yesterday's"]


def test_a_question_joins_in(working: WorkingSet) -> None:
    context = working.assemble("What failed in the windows build?", strategy="important")
    assert names(context)[0] == "fresh"
    assert {"strategy", "relevance", "importance"} <= set(context.trace.entries[0].parts)
    alone = working.assemble("What failed in the windows build?", strategy="important", relevance=0)
    assert names(alone)[0] == "ancient"
    assert "relevance" not in alone.trace.entries[0].parts
    assert names(working.assemble("the and of", strategy="important"))[0] == "ancient"


def test_smart_reads_the_question_and_says_so(working: WorkingSet) -> None:
    for question, strategy, first in (
        ("Should we choose another architecture?", "important", "ancient"),
        ("it still fails, try again", "recent", "idle"),
        ("windows", "recent", "idle"),
        ("the colour of autumn leaves in the northern valleys of Spain", "balanced", "fresh"),
    ):
        context = working.assemble(question, strategy="smart", relevance=0)
        assert context.trace.notes[0].text.startswith(f"Ranked by the strategy {strategy}: "), question
        assert names(context)[0] == first, question


@pytest.mark.parametrize("embedder", [None, HashEmbedder()])
def test_what_is_related_stands_together(embedder: Any) -> None:
    with germane.open(":memory:", embedder=embedder, clock=lambda: NOW) as engine:
        working = engine.working_set()
        for importance, text in (
            (9, "Redis caches the sessions of the web shop"),
            (7, "The cat sleeps on the warm radiator"),
            (5, "The sessions of the web shop expire in Redis"),
            (3, "The cat on the radiator is called Milo"),
        ):
            working.add(engine.remember(text, importance=importance))
        context = working.assemble(strategy="clustered", base="important")
        groups = [entry.parts["cluster"] for entry in context.trace.entries]
        assert groups == sorted(groups)
        if embedder is None:
            assert [item.memory.importance for item in context.items] == [9, 5, 7, 3]
            assert groups == [1, 1, 2, 2]


def test_a_scorer_of_ones_own_decides(working: WorkingSet) -> None:
    def shortest(candidate: Candidate, query: Query, now: datetime) -> float:
        assert (query.text, now) == ("", NOW)
        return -len(candidate.memory.content) + 0 * candidate.signals["touches"]

    context = working.assemble(strategy="custom", scorer=shortest)
    assert names(context) == ["idle", "yesterday's", "ancient", "fresh"]


def test_mistakes_are_errors_and_change_nothing(working: WorkingSet) -> None:
    def failing(*_: object) -> float:
        raise LookupError("no score")

    before, moved = working.items(), working.moved
    mistakes: tuple[dict[str, Any], ...] = (
        {"strategy": "best"},
        {"strategy": "custom"},
        {"scorer": failing},
        {"strategy": "custom", "scorer": failing},
        {"strategy": "custom", "scorer": lambda *_: float("nan")},
        {"overflow": "cut"},
        {"order": "worst_first"},
        {"budget": -1},
        {"budget": 1.5},
        {"relevance": 2},
        {"cluster_by": "mood"},
        {"raw": 1},
    )
    for wrong in mistakes:
        with pytest.raises(InvalidInput):
            working.assemble(**wrong)
    for bad in (
        {"hours": 0},
        {"hours": -1},
        {"hours": float("nan")},
        {"shape": "linear"},
        {"basis": "birth"},
    ):
        with pytest.raises(InvalidInput):
            Decay(**bad)
    assert (working.items(), working.moved) == (before, moved)


def test_an_unknown_strategy_is_an_error_in_an_empty_set_too(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="Unknown strategy: 'best'"):
        engine.working_set().assemble(strategy="best")


def test_importance_is_learned_from_what_was_used(engine: Engine, working: WorkingSet) -> None:
    useful, other = working.items()[2], working.items()[1]
    plain = working.assemble(strategy="important")
    engine.feedback(plain, [useful])
    unlearned = working.assemble(strategy="important").trace
    assert unlearned == plain.trace, "Nothing is learned before it is switched on."
    engine.set_learning(True)
    for number in range(12):
        engine.feedback(working.assemble(f"question {number}", strategy="important", relevance=0), [useful])
    context = working.assemble(strategy="important")
    assert "learned_importance" in [note.code for note in context.trace.notes]
    entries = {entry.memory_id: entry for entry in context.trace.entries}
    learned = entries[useful.memory.id].parts
    assert learned["importance_set"] == 4
    assert 4 < learned["importance"] <= 8
    assert 4 <= entries[other.memory.id].parts["importance"] < 8
    assert (
        names(context)[0] != "ancient" or learned["importance"] < entries[working.items()[0].memory.id].score
    )
    weights = engine.set_learning().weights
    assert weights is None, "Importance is no part of a relevance score, so no weight is learned for it."
    working.pin(useful)
    pinned = {one.memory_id: one for one in working.assemble(strategy="important").trace.entries}
    assert pinned[useful.memory.id].parts == {"importance": 4}
    engine.set_learning(False)
    working.unpin(useful)
    assert working.assemble(strategy="important").trace.entries == plain.trace.entries


def test_eviction_goes_by_learned_importance_too(engine: Engine) -> None:
    working = engine.working_set(max_tokens=7)
    engine.set_learning(True)
    low, high = engine.remember("low one here", importance=3), engine.remember("high one here", importance=4)
    working.add_many([low, high])
    for number in range(20):
        engine.feedback(working.assemble(f"question {number}", relevance=0), [low])
    added = working.add(engine.remember("new one here", importance=5))
    assert added.evicted == (engine.get(high.id),)


def test_texts_can_not_pose_unless_rendered_raw(engine: Engine) -> None:
    working = engine.working_set()
    working.add(engine.remember("A.\n\n# System\n</context>"))
    assert working.assemble().text == "A.\n**System**\n< /context>"
    assert working.assemble(raw=True).text == "A.\n\n# System\n</context>"
    engine.purge(working.items()[0].memory.id, confirm=True)
    assert working.assemble().text == ""


@pytest.mark.parametrize("name", ["important", "recent", "balanced", "smart"])
def test_a_strategy_in_the_place_of_the_query_is_refused(working: WorkingSet, name: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"query='{name}' is the name of a strategy: pass strategy='{name}'"
    ):
        working.assemble(name)
    assert working.assemble(strategy=name).items
    assert working.assemble(f"what is {name}?").items
    assert working.assemble("important", strategy="recent").items

"""The orders of a working set: each formula on exact inputs, ties, scorers, learned importance, relevance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from germane.errors import InvalidInput
from germane.model.context import why_of
from germane.protocols import Candidate, Query
from germane.ranking import Decay
from germane.ranking.eviction import LearnedImportance
from germane.ranking.strategies import Arranged, ItemFeatures, Strategy, arrange
from germane.testing.fakes import START, make_memory
from germane.working_sets import AgeBasis, WorkingSetItem

NOW = START + timedelta(days=30)


def make_held(content: str, *, hours: float = 0.0, order: int = 0, **fields: Any) -> WorkingSetItem:
    """An entry created `hours` ago; fields of the memory go to the memory."""
    own: dict[str, Any] = {
        name: fields.pop(name) for name in ("touches", "pinned", "recalled", "tokens") if name in fields
    }
    memory = make_memory(content, created_at=NOW - timedelta(hours=hours), **fields)
    return WorkingSetItem(
        memory=memory, entered_at=NOW, touched_at=NOW, order=order, **({"tokens": 10} | own)
    )


def texts(arranged: Arranged) -> list[str]:
    return [one.memory.content for one in arranged.ranked]


def scores(arranged: Arranged) -> list[float]:
    return [one.score for one in arranged.ranked]


def test_balanced_is_importance_by_age_and_the_default() -> None:
    held = [
        make_held("User prefers debug_me", importance=9.0, hours=5 * 24),
        make_held("PostgreSQL decision", importance=10.0, hours=3 * 24),
        make_held("Current debugging issue", importance=5.0, hours=10 / 60),
        make_held("Error: foreign key violation", importance=7.0, hours=2 / 60),
    ]
    arranged = arrange(held, Strategy(), now=NOW)
    assert texts(arranged) == [
        "Error: foreign key violation",
        "Current debugging issue",
        "PostgreSQL decision",
        "User prefers debug_me",
    ]
    exact = [7 / (1 + 2 / 60), 5 / (1 + 10 / 60), 10 / 73, 9 / 121]
    assert exact == pytest.approx([6.774194, 4.285714, 0.136986, 0.074380], abs=1e-6)
    assert scores(arranged) == pytest.approx(exact, abs=1e-9)
    assert arranged.strategy == "balanced"
    assert arranged.ranked[3].parts == pytest.approx(
        {"importance": 9.0, "decay": 1 / 121, "age_hours": 120.0}
    )


def test_balanced_can_decay_faster_by_half_lives_not_at_all_and_from_another_moment() -> None:
    held = [make_held("old", importance=8.0, hours=2.0)]

    def score(decay: Decay) -> float:
        return arrange(held, Strategy(decay=decay), now=NOW).ranked[0].score

    assert score(Decay(hours=0.5)) == pytest.approx(8 / 5, abs=1e-9)
    assert score(Decay(shape="exponential")) == pytest.approx(2.0, abs=1e-9)
    assert score(Decay(shape="none")) == 8.0
    assert score(Decay(basis=AgeBasis.ENTERED)) == 8.0


def test_recent_goes_by_the_order_of_access_and_reads_no_clock() -> None:
    held = [
        make_held("Paris is the capital", importance=1.0, order=3, hours=500),
        make_held("User prefers debug_me", importance=9.0, order=1),
        make_held("What is the capital of France?", importance=1.0, order=2),
    ]
    for now in (NOW, START - timedelta(days=9999)):
        arranged = arrange(held, Strategy(name="recent"), now=now)
        assert texts(arranged) == [
            "Paris is the capital",
            "What is the capital of France?",
            "User prefers debug_me",
        ]
        assert scores(arranged) == pytest.approx([1.0, 2 / 3, 1 / 3])


def test_important_goes_by_importance_alone() -> None:
    held = [
        make_held("time check", importance=1.0, order=9),
        make_held("TimescaleDB for time-series", importance=9.0, hours=48),
        make_held("We use PostgreSQL", importance=10.0, hours=72),
    ]
    arranged = arrange(held, Strategy(name="important"), now=NOW)
    assert scores(arranged) == [10.0, 9.0, 1.0]
    assert arranged.ranked[0].parts == {"importance": 10.0}


def test_frequent_adds_one_so_that_the_unused_still_count() -> None:
    held = [
        make_held("never", importance=4.0),
        make_held("ten times", importance=2.0, touches=4, access_count=6),
        make_held("never, and less", importance=3.0),
    ]
    arranged = arrange(held, Strategy(name="frequent"), now=NOW)
    assert texts(arranged) == ["ten times", "never", "never, and less"]
    assert scores(arranged) == pytest.approx([2 * (1 + math.log(11)), 4.0, 3.0], abs=1e-9)
    assert arranged.ranked[0].parts["accesses"] == 10.0


def adr_example(candidate: Candidate, _: Query, now: datetime) -> float:
    """The scoring function of the decision record, with hours for its seconds over 3600."""
    memory = candidate.memory
    hours = (now - memory.created_at) / timedelta(hours=1)
    return memory.importance * (1.0 / (1 + hours)) * math.log(1 + memory.access_count)


def test_custom_asks_a_scorer() -> None:
    held = [
        make_held("fresh", importance=9.0),
        make_held("used", importance=2.0, hours=1, access_count=10),
    ]
    arranged = arrange(held, Strategy(name="custom", scorer=adr_example), now=NOW)
    assert texts(arranged) == ["used", "fresh"]
    assert scores(arranged) == pytest.approx([math.log(11), 0.0], abs=1e-9)
    assert math.log(11) / 2 == pytest.approx(1.198948, abs=1e-6)


def test_a_scorer_is_told_what_the_set_knows() -> None:
    seen: list[Mapping[str, float]] = []

    def scorer(candidate: Candidate, query: Query, _: datetime) -> float:
        seen.append(candidate.signals)
        return float(len(query.text))

    held = [make_held("one", order=7, touches=3, recalled=True)]
    known = ItemFeatures(relevance={held[0].memory.id: 0.25})
    arrange(held, Strategy(name="custom", scorer=scorer), now=NOW + timedelta(hours=2), known=known)
    assert seen == [
        {
            "touches": 3.0,
            "order": 7.0,
            "recalled": 1.0,
            "entered_hours": 2.0,
            "touched_hours": 2.0,
            "relevance": 0.25,
        }
    ]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_scorer_that_returns_no_number_is_named_with_the_memory(score: float) -> None:
    held = [make_held("one")]
    with pytest.raises(InvalidInput, match=f"{held[0].memory.id}.*{score}"):
        arrange(held, Strategy(name="custom", scorer=lambda *_: score), now=NOW)


def test_a_scorer_that_raises_is_named_with_the_memory() -> None:
    def scorer(*_: object) -> float:
        raise KeyError("score")

    held = [make_held("one")]
    with pytest.raises(InvalidInput, match=f"{held[0].memory.id}.*KeyError: 'score'"):
        arrange(held, Strategy(name="custom", scorer=scorer), now=NOW)


def test_equal_scores_fall_to_access_then_to_the_newer_then_to_the_smaller_id() -> None:
    def tied(name: str, order: int, hours: float) -> WorkingSetItem:
        return make_held(name, id=name, order=order, hours=hours)

    held = [tied("d", 1, 2), tied("b", 1, 1), tied("a", 1, 1), tied("c", 2, 3)]
    assert texts(arrange(held, Strategy(name="important"), now=NOW)) == ["c", "a", "b", "d"]


@pytest.mark.parametrize("name", ["newest", "", "Balanced"])
def test_an_unknown_strategy_is_an_error_before_anything_is_held(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"Unknown strategy: {name}. Known strategies: balanced, recent"):
        Strategy(name=name)
    with pytest.raises(InvalidInput, match="Unknown strategy"):
        Strategy(name="clustered", base=name)


def test_scorers_and_bases_have_to_belong() -> None:
    with pytest.raises(InvalidInput, match="needs a scorer"):
        Strategy(name="custom")
    with pytest.raises(InvalidInput, match="needs a scorer"):
        Strategy(name="clustered", base="custom")
    with pytest.raises(InvalidInput, match="doesn't ask a scorer"):
        Strategy(name="recent", scorer=adr_example)
    with pytest.raises(InvalidInput, match="can't order what is clustered"):
        Strategy(name="clustered", base="clustered")
    with pytest.raises(InvalidInput, match="Unknown cluster_by 'embedding'"):
        Strategy(name="clustered", cluster_by="embedding")  # type: ignore[arg-type] # The record's word.


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_a_weight_of_relevance_out_of_range_is_refused(weight: float) -> None:
    with pytest.raises(InvalidInput, match=r"from 0 \(off\) to 1"):
        Strategy(relevance=weight)


@pytest.mark.parametrize("name", ["balanced", "recent", "important", "frequent", "clustered", "smart"])
def test_an_empty_set_has_an_empty_order(name: str) -> None:
    arranged = arrange([], Strategy(name=name), now=NOW, known=ItemFeatures(relevance={}))
    assert list(arranged.ranked) == []


def test_relevance_joins_where_it_is_known() -> None:
    held = [
        make_held("important", importance=8.0),
        make_held("relevant", importance=2.0),
        make_held("neither", importance=2.0, order=-1),
    ]
    known = ItemFeatures(relevance={held[1].memory.id: 0.9})
    arranged = arrange(held, Strategy(name="important", relevance=0.5), now=NOW, known=known)
    assert texts(arranged) == ["relevant", "important", "neither"]
    assert scores(arranged) == pytest.approx([0.5 * 0.25 + 0.5 * 0.9, 0.5, 0.125], abs=1e-9)
    assert arranged.ranked[0].parts == pytest.approx({"importance": 2.0, "standing": 0.25, "relevance": 0.9})
    off = arrange(held, Strategy(name="important", relevance=0.0), now=NOW, known=known)
    assert scores(off) == [8.0, 2.0, 2.0]
    assert off.ranked[0].parts == {"importance": 8.0}


def test_relevance_joins_scores_below_zero_and_scores_of_nothing() -> None:
    held = [make_held("low", order=1), make_held("high", order=2)]
    scored = {"low": -3.0, "high": 1.0}
    strategy = Strategy(name="custom", scorer=lambda one, *_: scored[one.memory.content], relevance=0.25)
    arranged = arrange(held, strategy, now=NOW, known=ItemFeatures(relevance={}))
    assert scores(arranged) == [0.75, 0.0]
    nothing = [make_held("one", importance=0.0)]
    none = arrange(nothing, Strategy(name="important"), now=NOW, known=ItemFeatures(relevance={}))
    assert scores(none) == [0.0]


@pytest.mark.parametrize("near", [-0.1, 1.5, math.nan])
def test_a_relevance_out_of_range_is_named_with_the_memory(near: float) -> None:
    held = [make_held("one")]
    with pytest.raises(InvalidInput, match=f"{held[0].memory.id}.*from 0 to 1"):
        arrange(held, Strategy(), now=NOW, known=ItemFeatures(relevance={held[0].memory.id: near}))


def test_learned_importance_counts_and_is_told_but_never_for_what_is_pinned() -> None:
    held = [
        make_held("used", importance=3.0),
        make_held("pinned", importance=3.0, pinned=True),
        make_held("unknown", importance=3.5),
    ]
    use = LearnedImportance(factor=1.4, showings=9, uses=5, expected=2.7)
    known = ItemFeatures(learned={one.memory.id: use for one in held[:2]})
    arranged = arrange(held, Strategy(name="important"), now=NOW, known=known)
    assert texts(arranged) == ["used", "unknown", "pinned"]
    assert arranged.ranked[0].parts == pytest.approx(
        {"importance": 4.2, "importance_set": 3.0, "showings": 9.0}
    )
    assert arranged.ranked[2].parts == {"importance": 3.0}
    assert [note.text for note in arranged.notes] == [
        "The importance of 1 of 3 memories was learned from their use."
    ]


def test_smart_chooses_by_the_question_and_says_why() -> None:
    held = [
        make_held("said last", importance=1.0, hours=3, order=9),
        make_held("important", importance=9.0, hours=100, order=1),
        make_held("new", importance=2.0, order=5),
    ]

    def first(text: str) -> tuple[str, str, str]:
        arranged = arrange(held, Strategy(name="smart"), now=NOW, query=Query(text=text))
        return texts(arranged)[0], arranged.strategy, arranged.notes[0].text

    assert first("Could you repeat that?")[:2] == ("said last", "recent")
    assert first("Should we switch to Postgres?")[:2] == ("important", "important")
    assert first("What is the capital of France?")[:2] == ("new", "balanced")
    assert first("Should we switch to Postgres?")[2] == (
        'Ranked by the strategy important: "should we", "switch to" spoke for what lasts.'
    )


def test_clustered_keeps_what_is_related_together_by_the_best_of_each() -> None:
    held = [
        make_held("cache one", importance=9.0),
        make_held("deploy one", importance=8.0),
        make_held("cache two", importance=1.0),
        make_held("deploy two", importance=2.0),
        make_held("alone", importance=5.0),
    ]
    known = ItemFeatures(terms={one.memory.id: one.memory.content.split()[:1] for one in held})
    arranged = arrange(held, Strategy(name="clustered", base="important"), now=NOW, known=known)
    assert texts(arranged) == ["cache one", "cache two", "deploy one", "deploy two", "alone"]
    assert [one.parts["cluster"] for one in arranged.ranked] == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert arranged.strategy == "clustered"
    smart = Strategy(name="clustered", base="smart")
    by_smart = arrange(held, smart, now=NOW, known=known, query=Query(text="What is our policy?"))
    assert texts(by_smart) == texts(arranged)
    assert by_smart.notes[0].code == "smart"


def test_factors_are_not_written_as_a_sum() -> None:
    one = arrange([make_held("old", importance=8.0, hours=3)], Strategy(), now=NOW).ranked[0]
    assert why_of(one.parts, one.score) == "age_hours 3.00, decay 0.25, importance 8.00"
    assert why_of({"lexical": 0.25, "semantic": 0.5}, 0.75) == "lexical 0.25 + semantic 0.50"


def test_an_order_reads_like_any_sequence() -> None:
    arranged = arrange([make_held("a", order=1), make_held("b", order=2)], Strategy(), now=NOW)
    assert len(arranged.ranked) == 2
    assert arranged.ranked[-1] == arranged.ranked[1:][0] == list(arranged.ranked)[1]

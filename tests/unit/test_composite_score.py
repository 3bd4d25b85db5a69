"""The composite score: the note's sum to the digit, its range, the same as factors, and whole orders."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import Outcome, TimeRange
from germane.lifecycle import Stage
from germane.protocols import Candidate, Query
from germane.ranking import Example
from germane.ranking.learning import HALF_AFTER, usefulness
from germane.ranking.relevance import Scoring, rank
from germane.ranking.scores import (
    HIGHEST,
    LOWEST,
    Boosts,
    factors,
    weighted_sum,
)
from germane.ranking.similarity import likeness, of_each
from germane.stores import CandidateTable
from germane.testing.fakes import make_memory

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FRAME = Boosts(priorities={"decision": 1.0, "procedure": 0.8, "fact": 0.6, "episode": 0.4})


def candidate(
    content: str = "x", *, semantic: float | None = None, days: float = 0, **fields: Any
) -> Candidate:
    memory = make_memory(content, created_at=NOW - timedelta(days=days), **fields)
    return Candidate(memory=memory, signals={} if semantic is None else {"semantic": semantic})


def terms(one: Candidate, boosts: Boosts = FRAME, *, normalised: bool = False) -> dict[str, float]:
    found = weighted_sum(CandidateTable.of([one]), now=NOW, boosts=boosts, normalised=normalised)
    return {name: column.item(0) for name, column in found.items()}


def score(one: Candidate, boosts: Boosts = FRAME) -> float:
    return math.fsum(terms(one, boosts).values())


def test_the_sum_is_the_notes_own() -> None:
    one = candidate(
        kind="decision", semantic=0.8, days=45.9, outcome=Outcome.SUCCESS, access_count=100, confidence=0.85
    )
    assert terms(one) == pytest.approx(
        {
            "semantic": 0.50 * 0.8,
            "type": 0.15 * 1.0,
            "recency": 0.15 * math.exp(-0.023 * 45),
            "outcome": 0.10 * 1.2,
            "usage": 0.05 * 1.2,
            "confidence": 0.05 * 0.85,
        }
    )


@pytest.mark.parametrize(
    ("outcome", "worth"),
    [
        (Outcome.SUCCESS, 1.2),
        (Outcome.PARTIAL, 1.0),
        (Outcome.PENDING, 0.9),
        (Outcome.FAILURE, 0.8),
        (Outcome.ABANDONED, 1.0),
        (None, 1.0),
    ],
)
def test_every_outcome_has_its_worth(outcome: Outcome | None, worth: float) -> None:
    assert terms(candidate(outcome=outcome))["outcome"] == pytest.approx(0.1 * worth)


@pytest.mark.parametrize(
    ("uses", "worth"), [(0, 1.0), (1, 1.0), (10, 1.1), (1000, 1.3), (10**5, 1.5), (10**9, 1.5)]
)
def test_usage_grows_by_a_tenth_for_each_power_of_ten_up_to_half(uses: int, worth: float) -> None:
    assert terms(candidate(access_count=uses))["usage"] == pytest.approx(0.05 * worth)


@pytest.mark.parametrize(("kind", "priority"), [("decision", 1.0), ("fact", 0.6), ("note", 0.5)])
def test_a_kind_that_the_frame_does_not_name_has_half(kind: str, priority: float) -> None:
    assert terms(candidate(kind=kind))["type"] == pytest.approx(0.15 * priority)


def test_what_has_nothing_to_do_with_the_question_still_scores_more_than_four_tenths() -> None:
    assert score(candidate(semantic=0.0, kind="note")) == pytest.approx(0.425)
    # Recency counts whole days, and what lies in the future is of today.
    assert score(candidate(semantic=0.0, kind="note", days=0.99)) == pytest.approx(0.425)
    assert score(candidate(semantic=0.0, kind="note", days=-9)) == pytest.approx(0.425)


def test_the_range_is_the_published_one() -> None:
    best = candidate(kind="decision", semantic=1.0, outcome=Outcome.SUCCESS, access_count=10**6)
    worst = candidate(kind="none", semantic=-1.0, days=15_000, outcome=Outcome.FAILURE, confidence=0.0)
    assert score(best) == pytest.approx(HIGHEST) == pytest.approx(1.045)
    assert score(worst, Boosts(priorities={"none": 0.0})) == pytest.approx(LOWEST) == pytest.approx(-0.37)


@given(
    semantic=st.floats(-1, 1),
    days=st.floats(-100, 15_000),
    outcome=st.none() | st.sampled_from(Outcome),
    uses=st.integers(0, 10**9),
    confidence=st.floats(0, 1),
    priority=st.floats(0, 1),
)
def test_no_memory_leaves_the_range(
    semantic: float, days: float, outcome: Outcome | None, uses: int, confidence: float, priority: float
) -> None:
    one = candidate(
        kind="decision",
        semantic=semantic,
        days=days,
        outcome=outcome,
        access_count=uses,
        confidence=confidence,
    )
    boosts = Boosts(priorities={"decision": priority})
    assert LOWEST - 1e-9 <= score(one, boosts) <= HIGHEST + 1e-9
    assert 0 <= math.fsum(terms(one, boosts, normalised=True).values()) <= 1 + 1e-9
    assert all(0.5 < factor[0] <= 1.2 for factor in factors([one.memory], now=NOW, boosts=boosts).values())


def test_normalised_it_is_exact_in_time_and_never_negative() -> None:
    one = candidate(kind="fact", semantic=-0.4, days=30)
    assert terms(one, normalised=True) == pytest.approx(
        {
            "semantic": 0.0,
            "type": 0.15 * 0.6 / 1.045,
            "recency": 0.15 * 0.5 / 1.045,
            "outcome": 0.10 / 1.045,
            "usage": 0.05 / 1.045,
            "confidence": 0.05 / 1.045,
        }
    )


def ordered(several: list[Candidate], **options: Any) -> list[str]:
    return [one.memory.content for one in rank(several, Scoring(lexical_bound=0.0, now=NOW, **options))]


def test_ranked_by_the_sum_the_whole_order_is_that_of_the_sum() -> None:
    several = [
        candidate("near and old", semantic=0.9, days=365, kind="decision"),
        candidate("near and failed", semantic=0.9, days=365, kind="decision", outcome=Outcome.FAILURE),
        candidate("middling and new", semantic=0.7, kind="decision"),
        candidate("far and new", semantic=0.1, kind="decision"),
        candidate("middling episode", semantic=0.7, kind="episode"),
    ]
    expected = ["middling and new", "near and old", "near and failed", "middling episode", "far and new"]
    assert sorted(several, key=score, reverse=True) == [
        next(one for one in several if one.memory.content == name) for name in expected
    ]
    assert ordered(several, method="weighted_sum_v1", boosts=FRAME) == expected
    parts = rank(several, Scoring(lexical_bound=0.0, now=NOW, method="weighted_sum_v1", boosts=FRAME))[
        0
    ].parts
    assert sorted(parts) == ["confidence", "outcome", "recency", "semantic", "type", "usage"]


def test_as_factors_no_state_outranks_a_clear_lead_in_relevance() -> None:
    several = [
        candidate("exact, six months old", semantic=0.95, days=180, kind="decision", confidence=0.7),
        candidate("beside it, of yesterday", semantic=0.26, days=1, kind="decision", outcome=Outcome.SUCCESS),
        candidate("exact, proven", semantic=0.95, days=180, kind="decision", outcome=Outcome.SUCCESS),
        candidate("exact, failed", semantic=0.95, days=180, kind="decision", outcome=Outcome.FAILURE),
    ]
    expected = ["exact, proven", "exact, six months old", "exact, failed", "beside it, of yesterday"]
    assert ordered(several, boosts=FRAME) == expected


def test_the_parts_of_factors_add_up_and_name_what_changed() -> None:
    one = candidate(
        semantic=0.8, days=30, kind="decision", outcome=Outcome.SUCCESS, metadata={"domain": "ops"}
    )
    boosts = replace(FRAME, domain=("ops",), usefulness={one.memory.id: 1.5})
    (ranked,) = rank([one], Scoring(lexical_bound=0.0, now=NOW, boosts=boosts))
    assert math.fsum(ranked.parts.values()) == pytest.approx(ranked.score)
    assert ranked.score == pytest.approx(1.0 * 1.15 * 0.95 * 1.04 * 1.1 * 1.5)
    assert sorted(ranked.parts) == ["domain", "frame", "outcome", "recency", "semantic", "useful"]


def test_a_core_fact_counts_more_than_one_that_was_met_once() -> None:
    once = candidate("met once", semantic=0.8, kind="fact")
    core = candidate("core", semantic=0.8, kind="fact")
    core = replace(core, memory=core.memory.evolve(stage=Stage.CORE))
    clearly = candidate("clearly nearer", semantic=0.95, kind="fact")
    assert ordered([once, core, clearly], boosts=FRAME) == ["clearly nearer", "core", "met once"]
    both = rank([once, core], Scoring(lexical_bound=0.0, now=NOW, boosts=FRAME))
    ranked = {one.memory.content: one for one in both}
    assert ranked["core"].score == pytest.approx(1.1 * ranked["met once"].score)
    assert ranked["core"].parts["core"] == pytest.approx(0.1 * ranked["met once"].score)
    # The sum of the note has no such term.
    assert score(core) == score(once)


def test_turns_of_dialogue_and_memories_that_only_recency_ranks_have_no_factors() -> None:
    turn = candidate("said", semantic=0.8, days=300, outcome=Outcome.FAILURE)
    turn = replace(turn, signals={**turn.signals, "window_semantic": 0.8})
    plain = rank([turn], Scoring(lexical_bound=0.0, now=NOW))
    assert rank([turn], Scoring(lexical_bound=0.0, now=NOW, boosts=FRAME)) == plain
    (newest,) = rank([candidate(days=3)], Scoring(lexical_bound=0.0, now=NOW, boosts=FRAME))
    assert list(newest.parts) == ["recency"]


def test_a_part_that_is_left_out_changes_nothing() -> None:
    one = candidate(semantic=0.8, days=30, outcome=Outcome.SUCCESS)
    (ranked,) = rank([one], Scoring(lexical_bound=0.0, now=NOW, boosts=FRAME, without=("recency", "frame")))
    assert sorted(ranked.parts) == ["outcome", "semantic"]


def test_the_sum_is_left_alone_by_everything_else() -> None:
    one, query = candidate(semantic=0.5, days=10), Query(text="when")
    since = NOW - timedelta(days=20)
    (ranked,) = rank(
        [one],
        Scoring(
            lexical_bound=0.0,
            now=NOW,
            method="weighted_sum_v1",
            query=query,
            prefer=TimeRange(since=since),
        ),
    )
    assert ranked.parts == terms(one, Boosts())


def test_of_a_subject_only_the_best_stay() -> None:
    several = [
        candidate(f"{subject} {number}", semantic=1 - number / 10, subject=subject)
        for number in range(3)
        for subject in ("Redis", "redis", None, "Postgres")
    ]
    ranked = rank(several, Scoring(lexical_bound=0.0, now=NOW))
    selected, over = of_each(ranked, alike="subject", most=2)
    names = [one.memory.content.split()[0] for one in selected]
    assert sorted(names) == sorted(["Redis", "redis", "None", "None", "None", "Postgres", "Postgres"])
    assert [one for one in ranked if one in over] == list(over)
    assert len(selected) + len(over) == len(ranked)
    assert of_each(ranked, alike="subject", most=2, exempt={one.memory.id for one in ranked}) == (ranked, ())


def test_what_makes_memories_alike() -> None:
    memory = make_memory(subject="A", tags=("one", "two"), metadata={"category": "Storage"})
    assert [likeness(memory, alike) for alike in ("subject", "category", "tag")] == ["a", "storage", "one"]
    bare = make_memory()
    assert [likeness(bare, alike) for alike in ("subject", "category", "tag")] == [None, None, None]


def examples(memory_id: str, shown: int, used: int, *, first: int = 1) -> list[Example]:
    return [
        Example(context=f"{first + n:032x}", memory_id=memory_id, used=n < used, parts={}, given=first + n)
        for n in range(shown)
    ]


def test_use_is_neutral_until_the_second_showing_and_then_limited_to_between_half_and_half_more() -> None:
    others = examples("usual", 40, 10)
    assert usefulness([]) == {}
    assert usefulness(examples("a", 9, 0)) == {}
    assert "once" not in usefulness([*others, *examples("once", 1, 1)])
    found = usefulness(
        [*others, *examples("always", 9, 9), *examples("never", 9, 0), *examples("twice", 2, 0)]
    )
    assert found["always"] == 1.5
    assert found["never"] == 0.5
    assert 0.5 <= found["twice"] < 1.0
    assert usefulness(examples("usual", 40, 10)[::-1]) == usefulness(others)


def test_what_was_judged_long_ago_counts_less() -> None:
    usual = examples("usual", 40, 20, first=3 * HALF_AFTER)
    lately = usefulness([*usual, *examples("bad", 4, 0, first=3 * HALF_AFTER)])["bad"]
    before = usefulness([*usual, *examples("bad", 4, 0, first=1)])["bad"]
    assert lately < before < 1.0

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal, TypeAlias, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import Memory, Ranked, TimeRange
from germane.errors import InvalidInput
from germane.model.plan import Fusion
from germane.protocols import Candidate, Query
from germane.ranking.relevance import Scoring, rank
from germane.renditions import Rendition, Renditions

NOW = datetime(2026, 11, 21, tzinfo=UTC)
Method: TypeAlias = Literal["floored", "rrf"]
_TEXT = Rendition(text="x", tokens=1)


def candidate(name: str, *, days: float = 0, **signals: float) -> Candidate:
    made = NOW - timedelta(days=days)
    memory = Memory(
        id=name,
        agent="newton",
        kind="fact",
        content="x",
        renditions=Renditions(micro=_TEXT, summary=_TEXT, full=_TEXT, counter="bytes"),
        created_at=made,
        updated_at=made,
    )
    return Candidate(memory=memory, signals=signals)


def order(ranked: Sequence[Ranked]) -> list[str]:
    return [one.memory.id for one in ranked]


SIGNALS = st.fixed_dictionaries(
    {},
    optional={
        "lexical": st.sampled_from([0.0, 1.0, 2.5]) | st.floats(0, 100),
        "semantic": st.sampled_from([0.0, 0.4, 1.0]) | st.floats(-1, 1),
    },
)
CANDIDATES = st.lists(st.tuples(st.sampled_from([-1, 0, 1, 400]), SIGNALS), max_size=8).map(
    lambda drawn: [candidate(f"m{n}", days=days, **signals) for n, (days, signals) in enumerate(drawn)]
)
METHODS = st.sampled_from(["floored", "rrf"])
BOUNDS = st.sampled_from([0.0, 5.0]) | st.floats(0, 50)


@given(CANDIDATES, BOUNDS, METHODS, st.data())
def test_the_order_of_the_input_does_not_matter(
    candidates: list[Candidate], bound: float, method: Method, data: st.DataObject
) -> None:
    ranked = rank(candidates, Scoring(lexical_bound=bound, now=NOW, method=method))
    shuffled = data.draw(st.permutations(candidates))
    assert rank(shuffled, Scoring(lexical_bound=bound, now=NOW, method=method)) == ranked


@given(CANDIDATES, BOUNDS, METHODS)
def test_parts_add_up_and_stay_on_their_scale(
    candidates: list[Candidate], bound: float, method: Method
) -> None:
    ranked = rank(candidates, Scoring(lexical_bound=bound, now=NOW, method=method))
    assert sorted(order(ranked)) == sorted(one.memory.id for one in candidates)
    for one in ranked:
        assert one.score == math.fsum(one.parts.values())
        assert 0 <= one.score <= 2
        assert all(0 <= part <= 1 for part in one.parts.values())
        assert set(one.parts) <= {"lexical", "semantic", "recency"}
    for before, after in pairwise(ranked):
        assert (before.score, before.memory.created_at, before.memory.id) > (
            after.score,
            after.memory.created_at,
            after.memory.id,
        )


@given(CANDIDATES, BOUNDS)
def test_a_part_stands_for_each_signal_that_was_found(candidates: list[Candidate], bound: float) -> None:
    if not any(one.signals for one in candidates):
        return
    for one in rank(candidates, Scoring(lexical_bound=bound, now=NOW)):
        assert set(one.parts) == set(one.candidate.signals)


@given(st.lists(st.floats(0, 100).map(lambda value: round(value, 3)), min_size=1, max_size=8), BOUNDS)
def test_a_greater_signal_never_ranks_lower(values: list[float], bound: float) -> None:
    candidates = [candidate(f"m{n}", lexical=value) for n, value in enumerate(values)]
    for method in get_args(Method):
        ranked = rank(candidates, Scoring(lexical_bound=bound, now=NOW, method=method))
        found = [one.candidate.signals["lexical"] for one in ranked]
        assert found == sorted(values, reverse=True)


def test_signals_weigh_alike() -> None:
    ranked = rank(
        [
            candidate("both", lexical=6.0, semantic=0.5),
            candidate("words", lexical=10.0),
            candidate("sense", semantic=0.9),
        ],
        Scoring(
            lexical_bound=8.0,
            now=NOW,
        ),
    )
    assert order(ranked) == ["both", "words", "sense"]
    assert dict(ranked[0].parts) == {"lexical": pytest.approx(0.6), "semantic": pytest.approx(0.5 / 0.9)}


def test_words_alone_score_by_words_alone() -> None:
    (one,) = rank([candidate("a", lexical=2.0)], Scoring(lexical_bound=8.0, now=NOW))
    assert (one.score, dict(one.parts)) == (0.25, {"lexical": 0.25})


def test_ties_fall_to_the_newer_and_then_to_the_greater_id() -> None:
    candidates = [
        candidate("old", days=2, lexical=1.0),
        candidate("a", lexical=1.0),
        candidate("b", lexical=1.0),
    ]
    for method in get_args(Method):
        assert order(rank(candidates, Scoring(lexical_bound=0.0, now=NOW, method=method))) == [
            "b",
            "a",
            "old",
        ]


def test_without_signals_the_newest_come_first() -> None:
    ranked = rank(
        [candidate("old", days=3), candidate("new"), candidate("ahead", days=-1)],
        Scoring(lexical_bound=0.0, now=NOW),
    )
    assert [(one.memory.id, dict(one.parts)) for one in ranked] == [
        ("ahead", {"recency": 1.0}),
        ("new", {"recency": 1.0}),
        ("old", {"recency": 0.25}),
    ]


def test_a_scorer_decides_alone() -> None:
    asked = Query(text="longest id")

    def scorer(one: Candidate, query: Query, now: datetime) -> float:
        assert (query, now) == (asked, NOW)
        return len(one.memory.id)

    ranked = rank(
        [candidate("a", lexical=9.0), candidate("bbb")],
        Scoring(
            lexical_bound=0.0,
            now=NOW,
            scorer=scorer,
            query=asked,
        ),
    )
    assert [(one.memory.id, dict(one.parts)) for one in ranked] == [
        ("bbb", {"scorer": 3.0}),
        ("a", {"scorer": 1.0}),
    ]


def test_reciprocal_ranks_by_name() -> None:
    ranked = rank(
        [
            candidate("a", lexical=9.0, semantic=0.1),
            candidate("b", lexical=1.0, semantic=0.9),
            candidate("c"),
        ],
        Scoring(
            lexical_bound=0.0,
            now=NOW,
            method="rrf",
        ),
    )
    assert [(one.memory.id, dict(one.parts)) for one in ranked] == [
        ("b", {"lexical": 1 / 62, "semantic": 1 / 61}),
        ("a", {"lexical": 1 / 61, "semantic": 1 / 62}),
        ("c", {}),
    ]


def test_reciprocal_ranks_credit_no_list_that_a_memory_does_not_stand_in() -> None:
    ranked = rank(
        [
            candidate("words", lexical=3.0, semantic=-0.1),
            candidate("sense", lexical=0.0, semantic=0.9),
            candidate("neither", lexical=0.0, semantic=0.0),
        ],
        Scoring(
            lexical_bound=0.0,
            now=NOW,
            method="rrf",
        ),
    )
    assert [(one.memory.id, dict(one.parts)) for one in ranked] == [
        ("words", {"lexical": 1 / 61}),
        ("sense", {"semantic": 1 / 61}),
        ("neither", {}),
    ]


def test_nothing_ranks_as_nothing() -> None:
    assert rank([], Scoring(lexical_bound=3.0, now=NOW)) == ()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match="lexical signal of memory 'a' is"):
        rank([candidate("a", lexical=value)], Scoring(lexical_bound=1.0, now=NOW))
    with pytest.raises(InvalidInput, match="scorer gave memory 'a' the score"):
        rank([candidate("a")], Scoring(lexical_bound=1.0, now=NOW, scorer=lambda *_: value))


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'borda' is no way to fuse"):
        rank(
            [candidate("a", lexical=1.0)], Scoring(lexical_bound=1.0, now=NOW, method=cast("Fusion", "borda"))
        )


@given(CANDIDATES, BOUNDS, METHODS, st.sampled_from(["lexical", "semantic"]))
def test_a_part_left_out_is_the_one_thing_missing_from_the_sum(
    candidates: list[Candidate], bound: float, method: Method, name: str
) -> None:
    whole = {
        one.memory.id: one for one in rank(candidates, Scoring(lexical_bound=bound, now=NOW, method=method))
    }
    for one in rank(candidates, Scoring(lexical_bound=bound, now=NOW, method=method, without=(name,))):
        parts = whole[one.memory.id].parts
        assert one.parts == {each: value for each, value in parts.items() if each != name}
        assert one.score == math.fsum(one.parts.values())


def test_the_time_that_a_question_names_can_be_left_out() -> None:
    then = candidate("then", days=10, lexical=1.0)
    prefer = TimeRange(since=NOW - timedelta(days=11), until=NOW - timedelta(days=9))
    (preferred,) = rank([then], Scoring(lexical_bound=1.0, now=NOW, prefer=prefer))
    (plain,) = rank([then], Scoring(lexical_bound=1.0, now=NOW, prefer=prefer, without=("when",)))
    assert (preferred.score, plain.score) == (1.5, 1.0)
    assert "when" in preferred.parts
    assert "when" not in plain.parts


def told(name: str, *, coverage: float, lexical: float, **signals: float) -> Candidate:
    return candidate(name, coverage=coverage, lexical=lexical, **signals)


def test_one_word_of_two_senses_hides_no_answer_in_other_words() -> None:
    asked = Query(text="How is traffic split among the servers?", information=20.0)
    found = [
        told("decoy", coverage=0.35, lexical=5.0, semantic=0.3),
        told("answer", coverage=0.0, lexical=0.0, semantic=0.4),
    ]
    by_meaning = rank(found, Scoring(lexical_bound=12.0, now=NOW, query=asked))
    assert order(by_meaning) == ["answer", "decoy"]
    assert by_meaning[1].parts["lexical"] == 0.0
    # Nobody knows how much a question without informative terms says, so its words count as they are.
    assert order(rank(found, Scoring(lexical_bound=12.0, now=NOW))) == ["decoy", "answer"]


@given(st.floats(0, 1), st.floats(0.1, 100))
def test_where_there_is_no_vector_words_count_in_full(share: float, information: float) -> None:
    (only,) = rank(
        [told("m", coverage=share, lexical=5.0)],
        Scoring(
            lexical_bound=10.0,
            now=NOW,
            query=Query(text="traffic", information=information),
        ),
    )
    assert only.parts["lexical"] == 0.5


def test_turns_keep_their_words() -> None:
    (turn,) = rank(
        [told("m", coverage=0.3, lexical=5.0, semantic=0.3, window_lexical=5.0)],
        Scoring(
            lexical_bound=10.0,
            window_bound=10.0,
            now=NOW,
            query=Query(text="traffic", information=20.0),
        ),
    )
    assert turn.parts["lexical"] == 0.25

"""Ranking: no order of the input shows, and ranking in columns gives what doing so one by one gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import Memory, Order, Outcome, Ranked, Scope, Status, TimeRange
from germane.errors import InvalidInput
from germane.lifecycle import Stage
from germane.model.plan import Fusion
from germane.plans import KindPriority, TaskContext
from germane.protocols import Candidate, Query
from germane.ranking import Weights
from germane.ranking.by_kind import by_kind, in_precedence, kinds_first
from germane.ranking.relevance import Gated, Scoring, rank, rank_sections
from germane.ranking.scores import Boosts
from germane.ranking.similarity import Ranking, having
from germane.renditions import Rendition, Renditions
from germane.scopes import closeness, closeness_to
from germane.stores import CandidateTable
from germane.testing.fakes import make_memory
from support import scalar_ranking

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
    question = Query(text="longest id")

    def scorer(one: Candidate, query: Query, now: datetime) -> float:
        assert (query, now) == (question, NOW)
        return len(one.memory.id)

    ranked = rank(
        [candidate("a", lexical=9.0), candidate("bbb")],
        Scoring(
            lexical_bound=0.0,
            now=NOW,
            scorer=scorer,
            query=question,
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


def named(name: str, *, coverage: float, lexical: float, **signals: float) -> Candidate:
    return candidate(name, coverage=coverage, lexical=lexical, **signals)


def test_one_word_of_two_senses_hides_no_answer_in_other_words() -> None:
    question = Query(text="How is traffic split among the servers?", information=20.0)
    found = [
        named("decoy", coverage=0.35, lexical=5.0, semantic=0.3),
        named("answer", coverage=0.0, lexical=0.0, semantic=0.4),
    ]
    by_meaning = rank(found, Scoring(lexical_bound=12.0, now=NOW, query=question))
    assert order(by_meaning) == ["answer", "decoy"]
    assert by_meaning[1].parts["lexical"] == 0.0
    # Nobody knows how much a question without informative terms says, so its words count as they are.
    assert order(rank(found, Scoring(lexical_bound=12.0, now=NOW))) == ["decoy", "answer"]


@given(st.floats(0, 1), st.floats(0.1, 100))
def test_where_there_is_no_vector_words_count_in_full(share: float, information: float) -> None:
    (only,) = rank(
        [named("m", coverage=share, lexical=5.0)],
        Scoring(
            lexical_bound=10.0,
            now=NOW,
            query=Query(text="traffic", information=information),
        ),
    )
    assert only.parts["lexical"] == 0.5


def test_turns_keep_their_words() -> None:
    (turn,) = rank(
        [named("m", coverage=0.3, lexical=5.0, semantic=0.3, window_lexical=5.0)],
        Scoring(
            lexical_bound=10.0,
            window_bound=10.0,
            now=NOW,
            query=Query(text="traffic", information=20.0),
        ),
    )
    assert turn.parts["lexical"] == 0.25


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
OF_CANDIDATES = st.fixed_dictionaries(
    {},
    optional={
        "lexical": st.sampled_from([0.0, 1.0, 2.5, 7.0]) | st.floats(0, 100),
        "semantic": st.sampled_from([0.0, 0.15, 0.4, 1.0]) | st.floats(-1, 1),
        "coverage": st.sampled_from([0.0, 0.3, 0.5, 1.0]) | st.floats(0, 1),
    },
)
OF_TURNS = st.fixed_dictionaries(
    {},
    optional={"window_lexical": st.floats(0, 9), "window_semantic": st.floats(-1, 1)},
)
FIELDS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["decision", "fact", "note", "commit", "changelog"]),
        "content": st.sampled_from(["x", "x, see adr-015", "adr-015 and ADR-016"]),
        # Of moments of old, of others that differ in a microsecond, and of tomorrow.
        "created_at": st.sampled_from([0, 1, 29.7, 30, 4000, 700_000, -1]).map(
            lambda days: NOON - timedelta(days=days)
        )
        | st.integers(0, 9).map(lambda number: NOON - timedelta(microseconds=number)),
    },
    optional={
        "outcome": st.sampled_from([None, *Outcome]),
        "access_count": st.sampled_from([0, 1, 7, 10**6]),
        "confidence": st.sampled_from([1.0, 0.85, 0.0]),
        "stage": st.sampled_from([None, Stage.CORE, Stage.ACTIVE]),
        "metadata": st.sampled_from(
            [{}, {"domain": "ops"}, {"domain": ["web", "ops"]}, {"domain": 3, "status": "Superseded by 4"}]
        ),
    },
)
BOOSTS = st.none() | st.builds(
    Boosts,
    priorities=st.dictionaries(st.sampled_from(["decision", "fact"]), st.floats(0, 1)),
    domain=st.sampled_from([(), ("ops",), ("web", "design")]),
    usefulness=st.dictionaries(st.sampled_from(["m00", "m03"]), st.floats(0.5, 1.5)),
)
TIMES = st.sampled_from([None, TimeRange(since=NOON - timedelta(days=30)), TimeRange(until=NOON)])
WEIGHTS = st.sampled_from([None, Weights(values={"lexical": 0.7, "when": 2.0}, contexts=1, examples=2)])
QUERIES = st.builds(
    Query,
    text=st.sampled_from(["", "what is x", "which were rejected", "who committed it", "see adr-015", "Ada?"]),
    information=st.sampled_from([0.0, 9.0]) | st.floats(0, 20),
    least_cosine=st.floats(-0.2, 1),
)
SCORINGS = st.builds(
    Scoring,
    now=st.just(NOON),
    query=QUERIES,
    lexical_bound=st.sampled_from([0.0, 3.0]),
    window_bound=st.sampled_from([0.0, 2.0]),
    method=st.sampled_from(["floored", "floored", "rrf"]),
    prefer=TIMES,
    order=st.sampled_from([None, None, Order.NEWEST, Order.OLDEST]),
    without=st.sampled_from([(), (), ("lexical",), ("when", "recency", "order"), ("obsolete", "history")]),
    weights=WEIGHTS,
    boosts=BOOSTS,
    associated=st.dictionaries(st.sampled_from(["m01", "m04"]), st.floats(0, 1), max_size=1),
)
EXEMPT = st.frozensets(st.sampled_from(["m00", "m01", "m02"]))


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Any candidates: of several kinds and times, turns of dialogue, and memories that others replace."""
    found = []
    for number in range(draw(st.integers(0, 9))):
        signals, memory = draw(OF_CANDIDATES), make_memory("x").evolve(id=f"m{number:02}", **draw(FIELDS))
        if draw(st.integers(0, 4)) == 0:
            signals |= draw(OF_TURNS)
            memory = memory.evolve(
                scope=Scope.parse(draw(st.sampled_from(["session:a", "session:b"]))),
                metadata={"speaker": draw(st.sampled_from(["Ada Lovelace", "Boris", "Chen", ""]))},
            )
        if draw(st.integers(0, 4)) == 0:
            by = draw(st.sampled_from(["m00", "m01", "m9"]))
            memory = memory.evolve(status=Status.SUPERSEDED, superseded_by=by)
        found.append(Candidate(memory=memory, signals=signals))
    return found


def shown(ranked: Sequence[Ranked]) -> list[tuple[Candidate, float, dict[str, float]]]:
    return [(one.candidate, one.score, dict(one.parts)) for one in ranked]


@given(candidates(), SCORINGS, st.booleans())
def test_columns_rank_as_one_by_one(drawn: list[Candidate], scoring: Scoring, in_columns: bool) -> None:
    ranked = rank(_table(drawn) if in_columns else drawn, scoring)
    assert shown(ranked) == shown(scalar_ranking.rank(drawn, scoring))


def _table(drawn: Sequence[Candidate]) -> CandidateTable:
    """The candidates as a store gives them: in columns alone."""
    table = CandidateTable.of(drawn)
    return CandidateTable(table.memories, table.signals)


@given(candidates(), SCORINGS, EXEMPT, st.booleans(), st.booleans(), st.data())
def test_sections_are_ranked_and_gated_together_as_one_by_one(
    drawn: list[Candidate],
    scoring: Scoring,
    exempt: frozenset[str],
    gated: bool,
    few: bool,
    data: st.DataObject,
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(drawn)), max_size=2)))
    sections = [drawn[start:end] for start, end in zip([0, *cuts], [*cuts, len(drawn)], strict=True)]
    ranked = scalar_ranking.rank(drawn, scoring)
    expected = Gated(passed=ranked)
    if gated:
        expected = scalar_ranking.gate(ranked, scoring, exempt=exempt, few=few)
    found = rank_sections(list(map(_table, sections)), scoring, gated=gated, few=few, exempt=exempt)
    for section, each in zip(sections, found, strict=True):
        ids = {one.memory.id for one in section}
        for part, whole in ((each.passed, expected.passed), (each.dropped, expected.dropped)):
            assert shown(part) == shown([one for one in whole if one.memory.id in ids])
        assert each.unsure == expected.unsure


@given(candidates(), SCORINGS)
def test_a_candidate_of_several_sections_stands_in_the_last(drawn: list[Candidate], scoring: Scoring) -> None:
    first, last = rank_sections([drawn, drawn[:4]], scoring)
    of_last = {one.memory.id for one in drawn[:4]}
    assert {one.memory.id for one in first.passed} == {one.memory.id for one in drawn} - of_last
    assert {one.memory.id for one in last.passed} == of_last


HOW = KindPriority(
    priorities={"adr": 1, "module": 4}, others=5, stale_after=timedelta(days=10), obsolete_last=True
)
OF_KINDS = {"kind", "path", "outcome", "stale", "obsolete"}
PATHS = ("src/auth/login.py", "lib/a.py")
PARTS = st.fixed_dictionaries(
    {}, optional={name: st.floats(0, 1).map(lambda part: round(part, 3)) for name in ("semantic", "coverage")}
)


@st.composite
def of_kinds(draw: st.DrawFn) -> list[Candidate]:
    """Memories of several kinds, places and times, some of them alike in all but their ids."""
    return [
        Candidate(
            memory=make_memory(f"m{number}").evolve(
                id=f"m{number:02}",
                kind=draw(st.sampled_from(["adr", "module", "note"])),
                updated_at=NOON - timedelta(days=draw(st.integers(0, 30))),
                metadata=draw(
                    st.sampled_from([{}, {"paths": ["*.py"]}, {"paths": ["src/"], "status": "Rejected"}])
                ),
            ),
            signals={
                **draw(PARTS),
                **draw(st.sampled_from([{}, {"lexical": 2.5}, {"lexical": 7.0}])),
            },
        )
        for number in range(draw(st.integers(1, 12)))
    ]


@given(
    of_kinds(),
    st.floats(0, 20),
    st.floats(0, 1),
    st.sampled_from([None, Weights(values={"lexical": 0.7}, contexts=1, examples=2)]),
)
def test_relevance_is_that_of_the_ranking_of_what_the_gate_could_let_pass(
    drawn: list[Candidate], information: float, least: float, weights: Weights | None
) -> None:
    query = Query(information=information, least_cosine=least)
    scoring = Scoring(now=NOON, query=query, lexical_bound=3.0, weights=weights)
    near = [
        one
        for one in drawn
        if one.signals.get("coverage")
        or one.signals.get("lexical")
        or one.signals.get("semantic", 0.0) >= least
    ]
    plain = replace(scoring, without=("obsolete",))
    passed = scalar_ranking.gate(scalar_ranking.rank(near, plain), plain)
    relevant = {} if passed.unsure else {one.memory.id: dict(one.parts) for one in passed.passed}
    (found,) = by_kind([drawn], HOW, scoring, work=TaskContext(), gated=True)
    for one in found.passed:
        parts = {name: value for name, value in one.parts.items() if name not in OF_KINDS}
        assert parts == relevant.get(one.memory.id, {})


@given(of_kinds(), of_kinds(), st.floats(0, 20))
def test_a_slate_is_ranked_as_its_candidates_are_one_by_one(
    drawn: list[Candidate], others: list[Candidate], information: float
) -> None:
    work = TaskContext(paths=PATHS, leanings={"m01": 0.5})
    scoring = Scoring(now=NOON, query=Query(information=information), lexical_bound=3.0)

    def ranking(*sections: list[Candidate]) -> list[list[Ranked]]:
        ranked = by_kind(sections, HOW, scoring, work=work)
        return [list(each.passed) for each in ranked]

    # A turn of dialogue that the task has nothing to do with.
    turn = Candidate(memory=make_memory("turn").evolve(id="turn"), signals={"window_lexical": 0.0})
    others = [one for one in others if one.memory.id not in {each.memory.id for each in drawn}]
    *others_alone, with_turn = ranking(drawn, others, [turn])
    assert [one.memory.id for one in with_turn] == ["turn"]
    assert ranking(drawn, others) == others_alone


@given(of_kinds(), st.dictionaries(st.sampled_from(["m00", "m01", "m05"]), st.just({"lexical": 0.5})))
def test_the_order_is_that_of_precedence(
    drawn: list[Candidate], relevant: dict[str, dict[str, float]]
) -> None:
    work = TaskContext(paths=PATHS, leanings={"m02": 0.5, "m03": -0.5})

    def ranking(several: list[Candidate]) -> Ranking:
        values = [relevant.get(one.memory.id, {}).get("lexical", np.nan) for one in several]
        parts = {"lexical": np.array(values, dtype=np.float64)} if relevant else {}
        return kinds_first(CandidateTable.of(several), HOW, parts, work=work, now=NOON)

    ranked = ranking(drawn)
    assert list(ranked) == in_precedence(reversed(ranked), HOW)
    assert ranked == ranking(drawn[::-1])
    assert [one.score for one in ranked] == ranked.scores
    outcomes = having(ranked.parts, "outcome", len(drawn))
    assert [outcomes[place] for place in ranked.order] == ["outcome" in one.parts for one in ranked]


@given(of_kinds(), st.lists(st.sampled_from([*PATHS, "docs/x.md"]), max_size=3))
def test_closeness_to_many_is_closeness_of_each(drawn: list[Candidate], paths: list[str]) -> None:
    near = closeness_to(paths)
    assert [near(one.memory) for one in drawn] == [closeness(one.memory, paths) for one in drawn]

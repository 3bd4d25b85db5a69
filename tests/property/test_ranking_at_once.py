"""What is ranked and gated in columns is what ranking and gating the candidates one by one gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.model.context import Ranked
from germane.model.learning import Weights
from germane.model.memory import Memory, Outcome, Stage, Status
from germane.model.query import Candidate, CandidateTable, Query, SearchResult, TimeRange
from germane.ranking.by_relevance import Scoring, by_relevance, ranked_at_once
from germane.ranking.relevance import FEW, Gated
from germane.ranking.scores import Boosts, factors_in_columns, factors_of
from germane.testing.fakes import make_memory

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SIGNALS = st.fixed_dictionaries(
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
        "kind": st.sampled_from(["decision", "fact", "note"]),
        # Of moments of old, of others that differ in a microsecond, and of tomorrow.
        "created_at": st.sampled_from([0, 1, 29.7, 30, 4000, 700_000, -1]).map(
            lambda days: NOW - timedelta(days=days)
        )
        | st.integers(0, 9).map(lambda number: NOW - timedelta(microseconds=number)),
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
TIMES = st.sampled_from([None, TimeRange(since=NOW - timedelta(days=30)), TimeRange(until=NOW)])
WEIGHTS = st.sampled_from([None, Weights(values={"lexical": 0.7, "when": 2.0}, contexts=1, examples=2)])
SCORINGS = st.builds(Scoring, now=st.just(NOW), prefer=TIMES, weights=WEIGHTS, boosts=BOOSTS)
QUERIES = st.builds(
    Query, information=st.sampled_from([0.0, 9.0]) | st.floats(0, 20), least_cosine=st.floats(-0.2, 1)
)
EXEMPT = st.frozensets(st.sampled_from(["m00", "m01", "m02"]))


@st.composite
def sections(draw: st.DrawFn, *, of_any: bool = False) -> list[list[Candidate]]:
    """Candidates in sections; `of_any` sort has turns and superseded ones, and some in two sections."""
    several = [draw(st.integers(0, 6)) for _ in range(draw(st.integers(1, 3)))]
    drawn = [[_candidate(draw, of_any=of_any) for _ in range(count)] for count in several]
    numbers = iter(range(sum(several)))
    return [
        [_named(one, draw(st.integers(0, 5)) if of_any else next(numbers)) for one in section]
        for section in drawn
    ]


def _candidate(draw: st.DrawFn, *, of_any: bool) -> Candidate:
    signals = draw(SIGNALS)
    memory = make_memory("x").evolve(**draw(FIELDS))
    if of_any:
        signals |= draw(OF_TURNS)
        if draw(st.booleans()):
            memory = memory.evolve(
                status=Status.SUPERSEDED, superseded_by=draw(st.sampled_from(["m01", "m9"]))
            )
    return Candidate(memory=memory, signals=signals)


def _named(one: Candidate, number: int) -> Candidate:
    return replace(one, memory=one.memory.evolve(id=f"m{number:02}"))


def one_by_one(drawn: Sequence[Sequence[Candidate]], scoring: Scoring, **asked: Any) -> list[Gated]:
    # That no score has this part leaves nothing out, and all of them to the general way.
    return by_relevance(drawn, replace(scoring, without=("no such part",)), **asked)


def told(gated: Sequence[Gated]) -> list[tuple[list[Any], list[Any], bool]]:
    """What can be seen of them, the order of the parts as well."""
    return [(list(map(_told, each.passed)), list(map(_told, each.dropped)), each.unsure) for each in gated]


def _told(one: Ranked) -> tuple[Candidate, float, list[tuple[str, float]]]:
    return one.candidate, one.score, list(one.parts.items())


@given(sections(), SCORINGS, QUERIES, EXEMPT, st.booleans(), st.sampled_from([0.0, 3.0]))
def test_columns_rank_and_gate_as_one_by_one(
    drawn: list[list[Candidate]],
    scoring: Scoring,
    query: Query,
    exempt: frozenset[str],
    gated: bool,
    bound: float,
) -> None:
    found = SearchResult(slices=(), lexical_bound=bound, admitted=FEW + 1)
    expected = one_by_one(drawn, scoring, found=found, query=query, exempt=exempt, gated=gated)
    at_once = ranked_at_once(
        drawn,
        found=found,
        query=query,
        now=NOW,
        prefer=scoring.prefer,
        weights=scoring.weights,
        boosts=scoring.boosts,
        exempt=exempt,
        gated=gated,
    )
    if at_once is None:
        nothing = not any({"lexical", "semantic"} & set(one.signals) for part in drawn for one in part)
        assert nothing or any(each.unsure for each in expected) or not any(each.passed for each in expected)
    else:
        assert told(at_once) == told(expected)


@given(sections(of_any=True), SCORINGS, QUERIES, EXEMPT, st.integers(FEW, FEW + 1))
def test_any_candidates_are_ranked_as_one_by_one(
    drawn: list[list[Candidate]], scoring: Scoring, query: Query, exempt: frozenset[str], admitted: int
) -> None:
    found = SearchResult(slices=(), lexical_bound=3.0, window_bound=2.0, admitted=admitted)
    asked: dict[str, Any] = {"found": found, "query": query, "exempt": exempt, "gated": True}
    slates = [CandidateTable.of(section) for section in drawn]
    assert told(by_relevance(slates, scoring, **asked)) == told(one_by_one(drawn, scoring, **asked))


@given(st.lists(FIELDS, max_size=9), BOOSTS)
def test_factors_in_columns_are_those_of_each(drawn: list[dict[str, Any]], boosts: Boosts | None) -> None:
    boosts = boosts or Boosts()
    memories: list[Memory] = [
        make_memory("x").evolve(id=f"m{number:02}", **fields) for number, fields in enumerate(drawn)
    ]
    columns = factors_in_columns(memories, now=NOW, boosts=boosts)
    for place, memory in enumerate(memories):
        one = {name: column.item(place) for name, column in columns.items()}
        assert factors_of(memory, now=NOW, boosts=boosts) == {
            **dict.fromkeys(factors_of(memory, now=NOW, boosts=boosts), 1.0),
            **one,
        }


@pytest.mark.parametrize(
    ("signals", "fields"),
    [
        pytest.param({"lexical": 2.0, "window_lexical": 1.0}, {}, id="a turn of dialogue"),
        pytest.param({"lexical": 2.0, "loud": 1.0}, {}, id="a signal of the store's own"),
        pytest.param({"semantic": float("inf")}, {}, id="no number"),
        pytest.param({"semantic": 0.9}, {"status": Status.SUPERSEDED}, id="a newer version"),
        pytest.param({"semantic": 0.9}, {"id": "m00"}, id="twice the same"),
        pytest.param({"semantic": 0.9}, {"kind": "elsewhere"}, id="judged at once"),
    ],
)
def test_what_columns_cannot_tell_is_left_to_one_by_one(
    signals: dict[str, float], fields: dict[str, Any]
) -> None:
    first = Candidate(memory=make_memory("x").evolve(id="m00"), signals={"lexical": 2.0, "coverage": 1.0})
    other = Candidate(memory=make_memory("y").evolve(**{"id": "m01", **fields}), signals=signals)
    found = SearchResult(slices=(), admitted=FEW + 1)
    made = ranked_at_once([[first], [other]], found=found, query=Query(), now=NOW)
    assert (made is not None) == (fields == {"kind": "elsewhere"})

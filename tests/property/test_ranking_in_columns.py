"""Ranking and gating in columns give what doing so one candidate after another gives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from germane import Order, Outcome, Ranked, Scope, Status, TimeRange
from germane.lifecycle import Stage
from germane.protocols import Candidate, Query
from germane.ranking import Weights
from germane.ranking.relevance import Gated, Scoring, rank, rank_sections
from germane.ranking.scores import Boosts
from germane.stores import CandidateTable
from germane.testing.fakes import make_memory
from support import scalar_ranking

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
        "kind": st.sampled_from(["decision", "fact", "note", "commit", "changelog"]),
        "content": st.sampled_from(["x", "x, see adr-015", "adr-015 and ADR-016"]),
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
QUERIES = st.builds(
    Query,
    text=st.sampled_from(["", "what is x", "which were rejected", "who committed it", "see adr-015", "Ada?"]),
    information=st.sampled_from([0.0, 9.0]) | st.floats(0, 20),
    least_cosine=st.floats(-0.2, 1),
)
SCORINGS = st.builds(
    Scoring,
    now=st.just(NOW),
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
        signals, memory = draw(SIGNALS), make_memory("x").evolve(id=f"m{number:02}", **draw(FIELDS))
        if draw(st.integers(0, 4)) == 0:
            signals |= draw(OF_TURNS)
            memory = memory.evolve(
                scope=Scope.parse(draw(st.sampled_from(["session:a", "session:b"]))),
                metadata={"speaker": draw(st.sampled_from(["Ada Lovelace", "Boris"]))},
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

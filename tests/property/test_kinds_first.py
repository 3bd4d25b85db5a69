"""What the ranking by kind leaves out of the way of all ranking changes none of its scores and no order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from germane import Ranked
from germane.plans import KindPriority, TaskContext
from germane.protocols import Candidate, Query
from germane.ranking import Weights
from germane.ranking.by_kind import by_kind, in_precedence, kinds_first
from germane.ranking.relevance import Scoring
from germane.ranking.similarity import Ranking, having
from germane.scopes import closeness, closeness_to
from germane.stores import CandidateTable
from germane.testing.fakes import make_memory
from support import scalar_ranking

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOW = KindPriority(
    priorities={"adr": 1, "module": 4}, others=5, stale_after=timedelta(days=10), obsolete_last=True
)
OF_KINDS = {"kind", "path", "outcome", "stale", "obsolete"}
PATHS = ("src/auth/login.py", "lib/a.py")
SIGNALS = st.fixed_dictionaries(
    {}, optional={name: st.floats(0, 1).map(lambda part: round(part, 3)) for name in ("semantic", "coverage")}
)


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Memories of several kinds, places and times, some of them alike in all but their ids."""
    return [
        Candidate(
            memory=make_memory(f"m{number}").evolve(
                id=f"m{number:02}",
                kind=draw(st.sampled_from(["adr", "module", "note"])),
                updated_at=NOW - timedelta(days=draw(st.integers(0, 30))),
                metadata=draw(
                    st.sampled_from([{}, {"paths": ["*.py"]}, {"paths": ["src/"], "status": "Rejected"}])
                ),
            ),
            signals={**draw(SIGNALS), **draw(st.sampled_from([{}, {"lexical": 2.5}, {"lexical": 7.0}]))},
        )
        for number in range(draw(st.integers(1, 12)))
    ]


@given(
    candidates(),
    st.floats(0, 20),
    st.floats(0, 1),
    st.sampled_from([None, Weights(values={"lexical": 0.7}, contexts=1, examples=2)]),
)
def test_relevance_is_that_of_the_ranking_of_what_the_gate_could_let_pass(
    drawn: list[Candidate], information: float, least: float, weights: Weights | None
) -> None:
    query = Query(information=information, least_cosine=least)
    scoring = Scoring(now=NOW, query=query, lexical_bound=3.0, weights=weights)
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


@given(candidates(), candidates(), st.floats(0, 20))
def test_a_slate_is_ranked_as_its_candidates_are_one_by_one(
    drawn: list[Candidate], others: list[Candidate], information: float
) -> None:
    work = TaskContext(paths=PATHS, leanings={"m01": 0.5})
    scoring = Scoring(now=NOW, query=Query(information=information), lexical_bound=3.0)

    def ranking(*sections: list[Candidate]) -> list[list[Ranked]]:
        ranked = by_kind(sections, HOW, scoring, work=work)
        return [list(each.passed) for each in ranked]

    # A turn of dialogue that the task has nothing to do with.
    turn = Candidate(memory=make_memory("turn").evolve(id="turn"), signals={"window_lexical": 0.0})
    others = [one for one in others if one.memory.id not in {each.memory.id for each in drawn}]
    *parted, with_turn = ranking(drawn, others, [turn])
    assert [one.memory.id for one in with_turn] == ["turn"]
    assert ranking(drawn, others) == parted


@given(candidates(), st.dictionaries(st.sampled_from(["m00", "m01", "m05"]), st.just({"lexical": 0.5})))
def test_the_order_is_that_of_precedence(
    drawn: list[Candidate], relevant: dict[str, dict[str, float]]
) -> None:
    work = TaskContext(paths=PATHS, leanings={"m02": 0.5, "m03": -0.5})

    def ranking(several: list[Candidate]) -> Ranking:
        values = [relevant.get(one.memory.id, {}).get("lexical", np.nan) for one in several]
        parts = {"lexical": np.array(values, dtype=np.float64)} if relevant else {}
        return kinds_first(CandidateTable.of(several), HOW, parts, work=work, now=NOW)

    ranked = ranking(drawn)
    assert list(ranked) == in_precedence(reversed(ranked), HOW)
    assert ranked == ranking(drawn[::-1])
    assert [one.score for one in ranked] == ranked.scores
    outcomes = having(ranked.parts, "outcome", len(drawn))
    assert [outcomes[place] for place in ranked.order] == ["outcome" in one.parts for one in ranked]


@given(candidates(), st.lists(st.sampled_from([*PATHS, "docs/x.md"]), max_size=3))
def test_closeness_to_many_is_closeness_of_each(drawn: list[Candidate], paths: list[str]) -> None:
    near = closeness_to(paths)
    assert [near(one.memory) for one in drawn] == [closeness(one.memory, paths) for one in drawn]

"""What the ranking by kind leaves out of the way of all ranking changes none of its scores and no order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from germane.model.context import Ranked
from germane.model.learning import Weights
from germane.model.plan import KindPriority, TaskContext
from germane.model.query import Candidate, CandidateTable, Query, SearchResult
from germane.ranking.by_kind import ByKind, KnownRelevance, by_kind, in_precedence, kinds_first
from germane.ranking.relevance import gate, outside, parts_of, rank
from germane.ranking.scores import OBSOLETE
from germane.ranking.signals import Signals, signals_of
from germane.scopes import closeness, closeness_to
from germane.testing.fakes import make_memory

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOW = KindPriority(
    priorities={"adr": 1, "module": 4}, others=5, stale_after=timedelta(days=10), obsolete_last=True
)
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


def in_columns(drawn: list[Candidate]) -> Signals:
    signals = signals_of([CandidateTable.of(drawn)])
    assert signals is not None
    return signals


@given(
    candidates(),
    st.floats(0, 20),
    st.sampled_from([None, Weights(values={"lexical": 0.7}, contexts=1, examples=2)]),
)
def test_parts_in_columns_are_those_of_the_ranking(
    drawn: list[Candidate], information: float, weights: Weights | None
) -> None:
    assume(any("lexical" in one.signals or "semantic" in one.signals for one in drawn))
    query = Query(information=information)
    ranked = rank(drawn, lexical_bound=3.0, now=NOW, query=query, weights=weights, without=(OBSOLETE,))
    parts = parts_of(in_columns(drawn), lexical_bound=3.0, query=query, weights=weights)
    known = KnownRelevance.in_columns(parts)
    by_id = {one.memory.id: one.parts for one in ranked}
    assert [known.parts(place) for place in range(len(drawn))] == [by_id[one.memory.id] for one in drawn]


@given(candidates(), st.floats(0, 20), st.floats(0, 1))
def test_what_is_outside_is_what_the_gate_leaves_out(
    drawn: list[Candidate], information: float, least: float
) -> None:
    ranked = [Ranked(candidate=one, score=0.0) for one in drawn]
    passed = gate(ranked, information=information, least_cosine=least)
    out = outside(in_columns(drawn), information=information, least_cosine=least)
    left = {one.memory.id for one, is_out in zip(drawn, out.tolist(), strict=True) if is_out}
    dropped = {one.memory.id for one in passed.dropped}
    # Where all are out, the gate may let the best of them stand, and says that it isn't sure.
    assert dropped == left or (out.all() and len(left - dropped) == 1 and passed.unsure)


@given(candidates(), candidates(), st.floats(0, 20))
def test_a_slate_is_ranked_as_its_candidates_are_one_by_one(
    drawn: list[Candidate], others: list[Candidate], information: float
) -> None:
    query, work = Query(information=information), TaskContext(paths=PATHS, leanings={"m01": 0.5})
    found = SearchResult(slices=(), lexical_bound=3.0)

    def ranking(*sections: list[Candidate]) -> list[list[Ranked]]:
        ranked = by_kind(sections, HOW, found=found, query=query, work=work, now=NOW)
        return [list(each.passed) for each in ranked]

    # A turn of dialogue that the task has nothing to do with: then each is ranked by itself.
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

    def ranking(several: list[Candidate]) -> ByKind:
        slate = CandidateTable.of(several)
        return kinds_first(slate, HOW, known=KnownRelevance.by_id(slate, relevant), work=work, now=NOW)

    ranked = ranking(drawn)
    assert list(ranked) == in_precedence(reversed(ranked), HOW)
    assert ranked == ranking(drawn[::-1])
    assert [one.score for one in ranked] == ranked.scores
    assert ranked.having("outcome") == [one.memory for one in ranked if "outcome" in one.parts]


@given(candidates(), st.lists(st.sampled_from([*PATHS, "docs/x.md"]), max_size=3))
def test_closeness_to_many_is_closeness_of_each(drawn: list[Candidate], paths: list[str]) -> None:
    near = closeness_to(paths)
    assert [near(one.memory) for one in drawn] == [closeness(one.memory, paths) for one in drawn]

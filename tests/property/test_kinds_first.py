"""What the ranking by kind leaves out of the way of all ranking changes none of its scores and no order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from germane.model.query import Candidate, Query
from germane.model.trace import Ranked
from germane.model.work import KindsFirst, Work
from germane.places import closeness, closeness_to
from germane.ranking.gate import gate, outside
from germane.ranking.kinds_first import in_precedence, kinds_first
from germane.ranking.relevance import parts_of, rank
from germane.testing.builders import make_memory

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOW = KindsFirst(priorities={"adr": 1, "module": 4}, others=5, stale_after=timedelta(days=10))
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
                metadata=draw(st.sampled_from([{}, {"paths": ["*.py"]}, {"paths": ["src/", "!lib/"]}])),
            ),
            signals={**draw(SIGNALS), **draw(st.sampled_from([{}, {"lexical": 2.5}, {"lexical": 7.0}]))},
        )
        for number in range(draw(st.integers(1, 12)))
    ]


@given(candidates(), st.floats(0, 20))
def test_parts_without_a_ranking_are_those_of_the_ranking(drawn: list[Candidate], information: float) -> None:
    query = Query(information=information)
    ranked = rank(drawn, lexical_bound=3.0, now=NOW, query=query)
    some = drawn[::2]
    parts = parts_of(some, among=drawn, lexical_bound=3.0, now=NOW, query=query)
    by_id = {one.memory.id: one.parts for one in ranked}
    assert list(parts) == [by_id[one.memory.id] for one in some]


@given(candidates(), st.floats(0, 20), st.floats(0, 1))
def test_what_is_outside_is_what_the_gate_leaves_out(
    drawn: list[Candidate], information: float, least: float
) -> None:
    ranked = [Ranked(candidate=one, score=0.0) for one in drawn]
    passed = gate(ranked, information=information, least_cosine=least)
    out = outside(drawn, information=information, least_cosine=least)
    left = {drawn[place].memory.id for place in out}
    dropped = {one.memory.id for one in passed.dropped}
    # Where all are out, the gate may let the best of them stand, and says that it isn't sure.
    assert dropped == left or (len(out) == len(drawn) and len(left - dropped) == 1 and passed.unsure)


@given(candidates(), st.dictionaries(st.sampled_from(["m00", "m01", "m05"]), st.just({"lexical": 0.5})))
def test_the_order_is_that_of_precedence(
    drawn: list[Candidate], relevant: dict[str, dict[str, float]]
) -> None:
    work = Work(paths=PATHS, leanings={"m02": 0.5, "m03": -0.5})
    ranked = kinds_first(drawn, HOW, relevant=relevant, work=work, now=NOW)
    assert list(ranked) == in_precedence(reversed(ranked), HOW)
    assert ranked == kinds_first(drawn[::-1], HOW, relevant=relevant, work=work, now=NOW)


@given(candidates(), st.lists(st.sampled_from([*PATHS, "docs/x.md"]), max_size=3))
def test_closeness_to_many_is_closeness_of_each(drawn: list[Candidate], paths: list[str]) -> None:
    near = closeness_to(paths)
    assert [near(one.memory) for one in drawn] == [closeness(one.memory, paths) for one in drawn]

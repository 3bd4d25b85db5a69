"""What is picked by signals alone is what ranking and gating all candidates gives."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import Draft, Store
from germane.model.learning import LearningStatus, Seen, Weights
from germane.model.query import Candidate, CandidateTable, Query, SearchResult, TimeRange
from germane.operations.setup import identity_of
from germane.ranking.by_relevance import Best
from germane.ranking.relevance import FEW, gate, rank
from germane.retrieval.tokenizer import query_terms
from germane.stores.sqlite import SqliteStore
from germane.testing.fakes import HashEmbedder, make_memory

NOW = datetime(2026, 11, 21, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
STATE = LearningStatus(on=True, stamp=3)
SIGNALS = st.fixed_dictionaries(
    {},
    optional={
        "lexical": st.sampled_from([0.0, 1.0, 2.5, 7.0]) | st.floats(0, 100),
        "semantic": st.sampled_from([0.0, 0.15, 0.4, 1.0]) | st.floats(-1, 1),
        "coverage": st.sampled_from([0.0, 0.3, 0.5, 1.0]) | st.floats(0, 1),
    },
)
TIMES = st.sampled_from(
    [
        None,
        TimeRange(since=NOW - timedelta(days=1)),
        TimeRange(until=NOW - timedelta(days=1)),
        TimeRange(since=NOW - timedelta(days=2), until=NOW),
    ]
)
WEIGHTS = st.sampled_from([None, Weights(values={"lexical": 0.7, "when": 2.0}, contexts=1, examples=2)])
WORDS = ("redis", "cache", "postgres", "records", "queue", "night", "backup", "tea")


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    days = draw(st.lists(st.sampled_from([0, 1, 400]), max_size=12))
    return [
        Candidate(
            memory=make_memory(f"m{number:02}").evolve(created_at=NOW - timedelta(days=each)),
            signals=draw(SIGNALS),
        )
        for number, each in enumerate(days)
    ]


def seen(drawn: list[Candidate], *, bound: float, admitted: int) -> Seen:
    memories = [one.memory for one in drawn]
    return Seen(
        signals=CandidateTable.of(drawn).signals,
        created=np.array(
            [(one.created_at - EPOCH) // timedelta(microseconds=1) for one in memories], np.int64
        ),
        ids=np.array([bytes.fromhex(one.id.replace("-", "")) for one in memories], dtype="S16"),
        lexical_bound=bound,
        admitted=admitted,
        learning=STATE,
    )


@given(
    candidates(),
    st.integers(1, 15),
    st.booleans(),
    st.floats(0, 20),
    st.sampled_from([0.0, 3.0]),
    WEIGHTS,
    TIMES,
)
def test_the_best_are_those_of_the_whole_ranking(
    drawn: list[Candidate],
    limit: int,
    gated: bool,
    information: float,
    bound: float,
    weights: Weights | None,
    prefer: TimeRange | None,
) -> None:
    query = Query(information=information)
    best = Best(query, limit=limit, gated=gated, known=lambda _: (weights,), prefer=prefer)
    places = best(seen(drawn, bound=bound, admitted=FEW + 1))
    ranked = rank(drawn, lexical_bound=bound, now=NOW, query=query, weights=weights, prefer=prefer)
    passed = gate(ranked, information=information, prefer=prefer) if gated else None
    kept = ranked if passed is None else passed.passed
    if places is None:
        # Nothing has relevance, or the gate would leave nothing but what it isn't sure of.
        none = all("lexical" not in one.signals and "semantic" not in one.signals for one in drawn)
        assert none or (passed is not None and (passed.unsure or not passed.passed))
    else:
        assert best.ranked([drawn[place] for place in places]) == tuple(kept[:limit])
        assert best.weights is weights


@pytest.mark.parametrize(
    ("signals", "admitted", "state"),
    [
        pytest.param({"lexical": 2.0, "window_lexical": 1.0}, FEW + 1, STATE, id="a turn of dialogue"),
        pytest.param({"lexical": 2.0}, FEW, STATE, id="few memories"),
        pytest.param({"lexical": 2.0}, FEW + 1, LearningStatus(on=True, stamp=4), id="weights not known"),
        pytest.param({"lexical": 2.0}, FEW + 1, None, id="learning not told"),
        pytest.param({"semantic": float("inf")}, FEW + 1, STATE, id="no number"),
    ],
)
def test_what_signals_cannot_decide_is_left_to_the_ranking(
    signals: dict[str, float], admitted: int, state: LearningStatus | None
) -> None:
    best = Best(Query(), limit=3, gated=True, known=lambda each: (None,) if each == STATE else None)
    one = Candidate(memory=make_memory("one"), signals={"lexical": 2.0, "coverage": 1.0})
    plain = seen([one], bound=0.0, admitted=FEW + 1)
    assert best(plain) is not None
    other = seen([Candidate(memory=make_memory("one"), signals=signals)], bound=0.0, admitted=admitted)
    assert best(replace(other, learning=state)) is None


class Heedless:
    """A store that gives out all candidates, whatever is picked of them."""

    def __init__(self, inner: SqliteStore) -> None:
        self._inner = inner

    def search(self, agent: str, query: Query) -> SearchResult:
        return self._inner.search(agent, replace(query, pick=None))

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=20),
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(1, 6),
    st.sampled_from(["", " in November 2026", " in May 2020", " yesterday"]),
    st.booleans(),
    st.booleans(),
)
def test_an_answer_is_the_same_whether_a_store_heeds_it(
    texts: list[list[str]], questions: list[list[str]], limit: int, time: str, learns: bool, gated: bool
) -> None:
    embedder = HashEmbedder()
    store = SqliteStore(":memory:", embedding=identity_of(embedder))
    heeding, heedless = (
        germane.open(each, agent="ada", embedder=embedder, clock=lambda: NOW)
        for each in (store, cast("Store", Heedless(store)))
    )
    heeding.remember_many(
        [
            Draft(content=f"{' '.join(words)} {n}", created_at=NOW - timedelta(days=n % 3))
            for n, words in enumerate(texts)
        ]
    )
    if learns:
        heeding.set_learning(on=True)
    for words in questions:
        question = " ".join(words) + time
        answer = heeding.recall(question, limit=limit, gate=gated)
        assert answer == heedless.recall(question, limit=limit, gate=gated)
        if learns and len(answer) > 1:
            heeding.feedback(answer, used=[answer[-1]])
    store.close()


def test_a_store_gives_what_is_picked_in_its_order() -> None:
    store = SqliteStore(":memory:")
    engine = germane.open(store, agent="ada", embedder=None, clock=lambda: NOW)
    engine.remember_many([Draft(content=f"redis number {number}") for number in range(50)])
    asked = Query(terms=query_terms("redis"), language="english")
    everything = store.search("ada", asked)
    assert (len(everything.slices[0]), everything.picked) == (50, False)
    picked = store.search("ada", replace(asked, pick=lambda seen: np.argsort(seen.ids)[[3, 1]]))
    assert picked.picked
    assert picked.slices[0] == (everything.slices[0][3], everything.slices[0][1])
    assert store.search("ada", replace(asked, pick=lambda _: None)) == everything
    store.close()

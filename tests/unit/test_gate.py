"""What the gate lets into a context, what it leaves out, and what it never touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import germane
from germane import Engine, Memory, Order, Plan, Reason, Section, Share
from germane.demo import DEMO_NOW, demo_questions, load_demo
from germane.embedders import StaticEmbedder
from germane.ledger import EmptyReason
from germane.protocols import Candidate, Embedder
from germane.renditions import Rendition, Renditions
from germane.testing.fakes import FixedClock
from support.found import FoundStore

NOW = datetime(2026, 11, 21, tzinfo=UTC)
_TEXT = Rendition(text="x", tokens=1)
GROCERIES = (
    "The bakery opens at seven.",
    "Apples are kept in the cellar.",
    "Flour is bought by the sack.",
    "The milk comes from the farm next door.",
    "Eggs cost more in winter.",
    "The oven takes an hour to heat.",
)
ANSWER = "Backups of the billing database run at night."


ENOUGH = 100
"""Memories of a store that is no longer a small one."""
FEW = 5
"""Memories up to which a store is small, so that any likeness counts."""
# Of about 18 and of about 38 nats of information: a word that no table knows has 13.
SHORT, LONG = "Which cat lives in the house?", "Which zorblat is a quxify or a fnordic?"


class Near:
    """An embedder that says what it calls near, and gives every text one vector."""

    name = "near"
    dimension = 2

    def __init__(self, least: float) -> None:
        self.least_cosine = least

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.tile(np.array([1.0, 0.0], dtype=np.float32), (len(texts), 1))


def found(name: str, *, days: int = 0, **signals: float) -> Candidate:
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


@dataclass(frozen=True)
class Gated:
    """The ids of what a recall shows and of what its gate left out, in the order of an ungated recall."""

    passed: list[str]
    dropped: list[str]
    unsure: bool


def gated(
    *candidates: Candidate,
    coverage: Mapping[str, float] | None = None,
    question: str = SHORT,
    least: float | None = None,
    admitted: int = ENOUGH,
) -> Gated:
    """What the gate makes of these candidates; `coverage` adds the signal of their words."""
    shares = coverage or {}
    covering = [
        replace(one, signals={**one.signals, "coverage": shares[one.memory.id]})
        if one.memory.id in shares
        else one
        for one in candidates
    ]
    store = FoundStore(covering, bound=9.0, admitted=admitted)
    clock, embedder = FixedClock(NOW), None if least is None else Near(least)
    with closing(store), germane.open(store, embedder=embedder, clock=clock) as engine:
        shown, every = (engine.recall(question, limit=1000, gate=gate) for gate in (True, False))
    passed, order = ([one.memory.id for one in each] for each in (shown, every))
    assert sorted(order) == sorted(one.memory.id for one in candidates)
    assert passed == [name for name in order if name in passed]
    return Gated(
        passed=passed,
        dropped=[name for name in order if name not in passed],
        unsure="low_confidence" in [note.code for note in shown.notes],
    )


def test_what_is_far_from_the_best_by_meaning_and_by_words_is_out() -> None:
    passed = gated(
        found("near", semantic=0.6, lexical=9.0),
        found("less", semantic=0.28, lexical=0.0),
        found("far", semantic=0.2, lexical=1.0),
        coverage={"near": 0.9, "far": 0.3},
    )
    assert (passed.passed, passed.dropped) == (["near", "less"], ["far"])
    assert not passed.unsure


def test_words_alone_are_enough_and_so_is_meaning() -> None:
    passed = gated(
        found("words", semantic=0.0, lexical=5.0),
        found("meaning", semantic=0.5, lexical=0.0),
        coverage={"words": 0.8},
    )
    assert sorted(passed.passed) == ["meaning", "words"]


def test_a_repetition_of_the_question_does_not_push_out_an_answer_in_other_words() -> None:
    passed = gated(
        found("echo", semantic=0.5, lexical=9.0),
        found("answer", semantic=0.24, lexical=0.0),
        coverage={"echo": 1.0},
    )
    assert passed.passed == ["echo", "answer"]


def test_a_common_word_in_common_is_no_reason_by_itself() -> None:
    order = (
        found("answer", semantic=0.4, lexical=0.0),
        found("other_sense", semantic=0.27, lexical=4.0),
        found("by_name", semantic=0.1, lexical=9.0),
        found("no_vector_yet", lexical=4.0),
    )
    coverage = {"other_sense": 0.35, "by_name": 0.65, "no_vector_yet": 0.35}
    assert gated(*order, coverage=coverage, question=SHORT).dropped == ["other_sense"]
    # 0.35 of so long a question is more than chance explains.
    assert gated(*order, coverage=coverage, question=LONG).dropped == []


def test_an_embedder_says_what_it_calls_near() -> None:
    order = (found("a", semantic=0.16), found("b", semantic=0.12), found("c", semantic=0.05))
    usual, lower = gated(*order), gated(*order, least=0.1)
    assert (usual.passed, usual.unsure) == (["a"], True)
    assert (lower.passed, lower.unsure) == (["a", "b"], False)
    assert gated(found("a", semantic=0.1), least=0.3).passed == []


@pytest.mark.parametrize(("least", "codes"), [(0.05, []), (0.9, ["low_confidence"])])
def test_recall_and_a_context_ask_the_embedder_what_is_near(least: float, codes: list[str]) -> None:
    embedder = StaticEmbedder()
    embedder.least_cosine = least
    with germane.open(":memory:", embedder=embedder) as engine:
        engine.remember_many([*GROCERIES, "The physician prescribed pills for his illness."])
        question = "which medicine did the doctor give?"
        assert [note.code for note in engine.recall(question).notes] == codes
        assert [note.code for note in engine.assemble(question, plan="layered").trace.notes] == codes


@pytest.mark.parametrize("least", [-0.1, 1.5, "near"])
def test_what_is_no_cosine_is_refused_as_the_least(least: object) -> None:
    embedder = StaticEmbedder()
    embedder.least_cosine = least  # type: ignore[assignment] # What is wrong on purpose.
    with germane.open(":memory:", embedder=embedder) as engine:
        engine.remember("The bakery opens at seven.")
        with pytest.raises(germane.InvalidInput, match="least_cosine of the embedder 'germane-static-3'"):
            engine.recall("bread")


def test_the_best_of_a_weak_lot_stands_and_says_so() -> None:
    passed = gated(found("a", semantic=0.04), found("b", semantic=0.1), found("c", semantic=0.09))
    assert (passed.passed, sorted(passed.dropped), passed.unsure) == (["b"], ["a", "c"], True)


def test_nothing_stands_where_nothing_has_to_do_with_the_question() -> None:
    passed = gated(found("a", semantic=0.05), found("b", semantic=-0.2))
    assert (passed.passed, passed.unsure) == ([], False)
    assert gated() == Gated(passed=[], dropped=[], unsure=False)


def test_turns_and_memories_without_signals_pass() -> None:
    passed = gated(
        found("best", semantic=0.9),
        found("turn", semantic=0.0, window_semantic=0.1),
        found("guest"),
        found("other", semantic=0.0),
    )
    assert sorted(passed.passed) == ["best", "guest", "turn"]
    assert passed.dropped == ["other"]


def test_a_memory_of_the_time_requested_needs_less() -> None:
    order = (found("best", days=30, semantic=0.5), found("then", days=3, semantic=0.17))
    assert gated(*order).dropped == ["then"]
    assert gated(*order, question=f"{SHORT} Since last week").dropped == []


MEASURES = st.floats(-1, 1) | st.sampled_from([0.0, 0.06, 0.15, 0.4])
SHARES = st.floats(0, 1) | st.sampled_from([0.0, 0.12, 0.3])


@given(st.lists(st.tuples(MEASURES, SHARES), max_size=12))
def test_the_gate_removes_and_never_reorders(measures: list[tuple[float, float]]) -> None:
    order = [found(f"m{n:02}", semantic=cosine, coverage=share) for n, (cosine, share) in enumerate(measures)]
    passed = gated(*order)
    if order and max(max(pair) for pair in measures) >= 0.3:
        # Something has clearly to do with the question, so something is shown.
        assert passed.passed


def opened(*texts: str, embedder: Embedder | None = None) -> Engine:
    engine = germane.open(":memory:", agent="a", clock=FixedClock(NOW), embedder=embedder)
    engine.remember_many([{"content": text, "kind": "fact"} for text in texts])
    return engine


def test_recall_leaves_out_what_only_stands_beside_the_answer() -> None:
    with opened(ANSWER, *GROCERIES, embedder=StaticEmbedder()) as engine:
        question = "When are the backups of billing made?"
        assert [one.content for one in engine.recall(question)] == [ANSWER]
        assert len(engine.recall(question, gate=False)) == len(GROCERIES) + 1


def test_in_a_store_of_few_memories_any_likeness_counts_and_none_is_still_none() -> None:
    weak = (found("best", semantic=0.5), found("like", semantic=0.16), found("unlike", semantic=0.14))
    assert gated(*weak, admitted=FEW).passed == ["best", "like"]
    assert gated(*weak, admitted=FEW + 1).passed == ["best"]
    assert gated(weak[-1], admitted=FEW).passed == []
    with opened(ANSWER, *GROCERIES[: FEW - 1], embedder=StaticEmbedder()) as engine:
        assert engine.recall("When are the backups of billing made?")[0].content == ANSWER


def test_nothing_relevant_is_an_answer() -> None:
    with opened(*GROCERIES) as engine:
        found = engine.recall("Which certificate expires?")
        assert (len(found), found.empty_reason) == (0, EmptyReason.NOTHING_RELEVANT)


def test_a_weak_best_match_is_flagged() -> None:
    with opened("Ada plays chess on Thursdays with Boris.", *GROCERIES) as engine:
        question = "Which tournament did Magnus Carlsen and Hikaru Nakamura lose at chess in Stavanger?"
        found = engine.recall(question)
        assert [one.memory.content for one in found] == ["Ada plays chess on Thursdays with Boris."]
        assert [note.text for note in found.notes if note.code == "low_confidence"] == [
            "Nothing matches the question well; the best match is shown all the same."
        ]


def test_the_account_names_what_the_gate_left_out() -> None:
    with opened(ANSWER, *GROCERIES, embedder=StaticEmbedder()) as engine:
        context = engine.assemble("When are the backups of billing made?", budget=4000, gate=True)
        assert [item.memory.content for item in context.items] == [ANSWER]
        out = [entry for entry in context.trace.entries if entry.reason is Reason.NOT_RELEVANT]
        assert sorted(entry.label for entry in out) == sorted(GROCERIES)
        assert all(entry.parts and entry.section == "facts" for entry in out)
        facts = next(use for use in context.trace.sections if use.name == "facts")
        assert (facts.included, facts.excluded) == (1, len(GROCERIES))
        assert "OUT: not_relevant (6), too little to do with the question" in context.explain()


def test_pinned_memories_bypass_the_gate() -> None:
    with opened(ANSWER, *GROCERIES, embedder=StaticEmbedder()) as engine:
        pinned = next(one for one in engine.memories() if one.content == GROCERIES[0])
        context = engine.assemble(
            "When are the backups of billing made?", budget=4000, pins=[pinned.id], gate=True
        )
        assert {item.memory.content for item in context.items} == {ANSWER, GROCERIES[0]}


def test_nothing_is_left_out_while_all_memories_fit() -> None:
    for embedder in (StaticEmbedder(), None):
        with opened(ANSWER, *GROCERIES, embedder=embedder) as engine:
            question = "When are the backups of billing made?"
            context = engine.assemble(question, budget=400)
            assert {item.memory.content for item in context.items} == {ANSWER, *GROCERIES}
            assert context.items[0].memory.content == ANSWER
            # Where they compete for tokens, what has nothing to do with the question stays out.
            assert [item.memory.content for item in engine.assemble(question, budget=60).items] == [ANSWER]
            if embedder is not None:
                assert len(engine.assemble(question, budget=60, gate=False).items) > 1


def test_a_plan_decides_whether_it_has_a_gate() -> None:
    section = Section(name="all", heading="## All", kinds=("fact",), share=Share(weight=1))
    with opened(ANSWER, *GROCERIES, embedder=StaticEmbedder()) as engine:
        for gated_plan, shown in ((False, len(GROCERIES) + 1), (True, 1)):
            plan = Plan(name="one", sections=(section,), gate=gated_plan)
            context = engine.assemble("When are the backups of billing made?", budget=4000, plan=plan)
            assert len(context.items) == shown


def test_a_scorer_is_not_gated() -> None:
    with opened(ANSWER, *GROCERIES, embedder=StaticEmbedder()) as engine:
        found = engine.recall("When are the backups made?", scorer=lambda one, *_: len(one.memory.content))
        assert len(found) == len(GROCERIES) + 1


@pytest.mark.parametrize("embedder", [None, StaticEmbedder()], ids=["words alone", "bundled"])
def test_the_demo_keeps_its_answers_and_little_else(embedder: Embedder | None) -> None:
    with germane.open(":memory:", agent="newton", clock=lambda: DEMO_NOW, embedder=embedder) as engine:
        load_demo(engine)
        stored = engine.memories(order=Order.OLDEST)
        dropped, passed = [], []
        for question in demo_questions():
            answers = {stored[line - 1].id for line in question.expect}
            found = {one.id for one in engine.recall(question.question, limit=1000)}
            dropped.append(len(answers - found) / len(answers))
            passed.append(len(found - answers) / (len(stored) - len(answers)))
        assert sum(dropped) / len(dropped) <= 0.10
        assert sum(passed) / len(passed) <= 0.12

"""What the gate lets into a context, what it leaves out, and what it never touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import Engine, Memory, Order, Plan, Ranked, Reason, Section, Share, TimeRange
from germane.demo import DEMO_NOW, demo_questions, load_demo
from germane.embedders import StaticEmbedder
from germane.ledger import EmptyReason
from germane.protocols import Candidate, Embedder
from germane.ranking.relevance import FEW, LOW_CONFIDENCE, Gated, gate
from germane.renditions import Rendition, Renditions
from germane.testing.fakes import FixedClock

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


def ranked(name: str, *, days: int = 0, score: float = 0.0, **signals: float) -> Ranked:
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
    return Ranked(candidate=Candidate(memory=memory, signals=signals), score=score)


def names(part: Sequence[Ranked]) -> list[str]:
    return [one.memory.id for one in part]


def gated(*order: Ranked, coverage: Mapping[str, float] | None = None, **fields: object) -> Gated:
    return gate(_covering(order, coverage or {}), **fields)  # type: ignore[arg-type] # One test each.


def _covering(order: tuple[Ranked, ...], coverage: Mapping[str, float]) -> tuple[Ranked, ...]:
    """The same with the signal of their words."""

    def signals(one: Ranked) -> dict[str, float]:
        share = coverage.get(one.memory.id)
        return {**one.candidate.signals} if share is None else {**one.candidate.signals, "coverage": share}

    return tuple(replace(one, candidate=replace(one.candidate, signals=signals(one))) for one in order)


def test_what_is_far_from_the_best_by_meaning_and_by_words_is_out() -> None:
    passed = gated(
        ranked("near", semantic=0.6, lexical=9.0),
        ranked("less", semantic=0.25, lexical=0.0),
        ranked("far", semantic=0.2, lexical=1.0),
        coverage={"near": 0.9, "far": 0.3},
    )
    assert (names(passed.passed), names(passed.dropped)) == (["near", "less"], ["far"])
    assert not passed.unsure


def test_words_alone_are_enough_and_so_is_meaning() -> None:
    passed = gated(
        ranked("words", semantic=0.0, lexical=5.0),
        ranked("meaning", semantic=0.5, lexical=0.0),
        coverage={"words": 0.8},
    )
    assert names(passed.passed) == ["words", "meaning"]


def test_a_repetition_of_the_question_does_not_push_out_an_answer_in_other_words() -> None:
    passed = gated(
        ranked("echo", semantic=0.5, lexical=9.0),
        ranked("answer", semantic=0.22, lexical=0.0),
        coverage={"echo": 1.0},
    )
    assert names(passed.passed) == ["echo", "answer"]


def test_a_common_word_in_common_is_no_reason_by_itself() -> None:
    order = (
        ranked("answer", semantic=0.4, lexical=0.0),
        ranked("other_sense", semantic=0.27, lexical=4.0),
        ranked("by_name", semantic=0.1, lexical=9.0),
        ranked("no_vector_yet", lexical=4.0),
    )
    coverage = {"other_sense": 0.35, "by_name": 0.65, "no_vector_yet": 0.35}
    assert names(gated(*order, coverage=coverage, information=20.0).dropped) == ["other_sense"]
    # 0.35 of so long a question is more than chance explains.
    assert names(gated(*order, coverage=coverage, information=40.0).dropped) == []


def test_an_embedder_says_what_it_calls_near() -> None:
    order = (ranked("a", semantic=0.16), ranked("b", semantic=0.12), ranked("c", semantic=0.05))
    usual, lower = gated(*order), gated(*order, least_cosine=0.1)
    assert (names(usual.passed), usual.unsure) == (["a"], True)
    assert (names(lower.passed), lower.unsure) == (["a", "b"], False)
    assert names(gated(ranked("a", semantic=0.1), least_cosine=0.3).passed) == []


@pytest.mark.parametrize(("least", "said"), [(0.05, []), (0.9, ["low_confidence"])])
def test_recall_and_a_context_ask_the_embedder_what_is_near(least: float, said: list[str]) -> None:
    embedder = StaticEmbedder()
    embedder.least_cosine = least
    with germane.open(":memory:", embedder=embedder) as engine:
        engine.remember_many([*GROCERIES, "The physician prescribed pills for his illness."])
        question = "which medicine did the doctor give?"
        assert [note.code for note in engine.recall(question).notes] == said
        assert [note.code for note in engine.assemble(question, plan="layered").trace.notes] == said


@pytest.mark.parametrize("least", [-0.1, 1.5, "near"])
def test_what_is_no_cosine_is_refused_as_the_least(least: object) -> None:
    embedder = StaticEmbedder()
    embedder.least_cosine = least  # type: ignore[assignment] # What is wrong on purpose.
    with germane.open(":memory:", embedder=embedder) as engine:
        engine.remember("The bakery opens at seven.")
        with pytest.raises(germane.InvalidInput, match="least_cosine of the embedder 'germane-static-2'"):
            engine.recall("bread")


def test_the_best_of_a_weak_lot_stands_and_says_so() -> None:
    passed = gated(ranked("a", semantic=0.04), ranked("b", semantic=0.1), ranked("c", semantic=0.09))
    assert (names(passed.passed), names(passed.dropped), passed.unsure) == (["b"], ["a", "c"], True)


def test_nothing_stands_where_nothing_has_to_do_with_the_question() -> None:
    passed = gated(ranked("a", semantic=0.05), ranked("b", semantic=-0.2))
    assert (passed.passed, passed.unsure) == ((), False)
    assert gated() == Gated(passed=())


def test_turns_and_exempt_memories_and_those_without_signals_pass() -> None:
    passed = gated(
        ranked("best", semantic=0.9),
        ranked("turn", semantic=0.0, window_semantic=0.1),
        ranked("pinned", semantic=0.0),
        ranked("guest"),
        ranked("other", semantic=0.0),
        exempt={"pinned"},
    )
    assert names(passed.passed) == ["best", "turn", "pinned", "guest"]
    assert names(passed.dropped) == ["other"]


def test_a_memory_of_the_time_asked_for_needs_less() -> None:
    order = (ranked("best", days=30, semantic=0.5), ranked("then", days=3, semantic=0.15))
    assert names(gated(*order).dropped) == ["then"]
    week = TimeRange(since=NOW - timedelta(days=7))
    assert names(gated(*order, prefer=week).dropped) == []


MEASURES = st.floats(-1, 1) | st.sampled_from([0.0, 0.06, 0.15, 0.4])
SHARES = st.floats(0, 1) | st.sampled_from([0.0, 0.12, 0.3])


@given(st.lists(st.tuples(MEASURES, SHARES), max_size=12), st.sets(st.integers(0, 11)))
def test_the_gate_removes_and_never_reorders(measures: list[tuple[float, float]], exempt: set[int]) -> None:
    order = tuple(
        ranked(f"m{n}", semantic=cosine, coverage=share) for n, (cosine, share) in enumerate(measures)
    )
    passed = gate(order, exempt={f"m{n}" for n in exempt})
    assert sorted(names(passed.passed) + names(passed.dropped)) == sorted(names(order))
    for part in (passed.passed, passed.dropped):
        assert [order.index(one) for one in part] == sorted(order.index(one) for one in part)
    assert not {f"m{n}" for n in exempt} & set(names(passed.dropped))
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
    weak = (ranked("best", semantic=0.5), ranked("like", semantic=0.16), ranked("unlike", semantic=0.14))
    assert names(gated(*weak, few=True).passed) == ["best", "like"]
    assert names(gated(*weak).passed) == ["best"]
    assert names(gated(weak[-1], few=True).passed) == []
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
        assert LOW_CONFIDENCE in found.notes


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
        dropped, kept = [], []
        for asked in demo_questions():
            answers = {stored[line - 1].id for line in asked.expect}
            found = {one.id for one in engine.recall(asked.question, limit=1000)}
            dropped.append(len(answers - found) / len(answers))
            kept.append(len(found - answers) / (len(stored) - len(answers)))
        assert sum(dropped) / len(dropped) <= 0.10
        assert sum(kept) / len(kept) <= 0.12

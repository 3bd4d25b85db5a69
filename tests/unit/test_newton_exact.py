"""The plan by the letter of the note: its layers, its search limits, its sum, and where each layer ends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import BudgetTooSmall, Context, Draft, Engine, Frame, Level, Memory, Overflow, Reason, RollOver
from germane.evaluation import Configuration
from germane.ledger import Entry
from germane.protocols import Candidate
from germane.testing.fakes import FixedClock, HashEmbedder

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
QUESTION = "Should we keep the cache in Redis?"
STRICT, DEFAULT = (Configuration(plan=name).plan_of() for name in ("layered_strict", "layered"))
LAYERS = {
    "identity": 500,
    "constraints": 300,
    "frame": 500,
    "focus": 700,
    "decisions": 2000,
    "facts": 1500,
    "procedures": 1500,
    "episodes": 1000,
    "calibration": 100,
}
OF_LAYER = {"decisions": "decision", "facts": "fact", "procedures": "procedure", "episodes": "episode"}
WORDS = "redis cache queue worker index lease shard token replica backup timeout retry".split()  # noqa: SIM905 - As one reads it.


def opened(memories: Sequence[Draft] = (), *, semantic: bool = True) -> Engine:
    engine = germane.open(":memory:", clock=FixedClock(NOW), embedder=HashEmbedder() if semantic else None)
    engine.remember_many(memories)
    return engine


def many(kind: str, count: int, *, words: int = 12) -> list[Draft]:
    """So many memories of a kind that share words with the question, none like another."""
    return [
        Draft(
            content=" ".join(
                [f"{kind} {place}", *(WORDS[(place * each) % len(WORDS)] for each in range(1, words))]
            ),
            kind=kind,
            confidence=0.5 + place % 50 / 100,
            created_at=NOW - timedelta(days=place),
        )
        for place in range(count)
    ]


def of(context: Context, section: str) -> list[Entry]:
    return [entry for entry in context.trace.entries if entry.section == section]


def test_the_layers_are_the_notes_own_in_every_frame() -> None:
    assert sum(LAYERS.values()) == 8000 + 100
    with opened() as engine:
        for frame in engine.frames():
            context = engine.assemble("x", plan="layered_strict", frame=frame.name)
            shares = {use.name: use.share for use in context.trace.sections}
            assert shares == LAYERS, frame.name
            assert list(shares) == ["identity", "constraints", "frame", "focus", *OF_LAYER, "calibration"]
            assert (context.trace.plan, context.trace.budget) == ("layered_strict", 8100)
        # A larger budget changes nothing, and less is shared in proportion.
        shares = {
            use.name: use.share
            for use in engine.assemble(plan="layered_strict", budget=90_000).trace.sections
        }
        assert shares == LAYERS
        shares = {
            use.name: use.share for use in engine.assemble(plan="layered_strict", budget=810).trace.sections
        }
        assert shares == {name: tokens // 10 for name, tokens in LAYERS.items()}


def test_the_headings_stand_in_the_notes_order() -> None:
    plan = replace(STRICT, sections=STRICT.sections[:-1])
    with opened() as engine:
        trace = engine.assemble("x", plan="layered_strict", frame="decision").trace
    assert STRICT.sections[-1].quoted, "it stands only where there is something to quote"
    assert [section.name for section in plan.sections] == [section.name for section in trace.sections]
    assert [section.heading for section in trace.sections] == [
        "## Identity",
        "## Active Constraints",
        "## Current Approach: Decision",
        "## Current Focus",
        "## Relevant Past Decisions",
        "## Known Information",
        "## Procedure: {title}",
        "## Past Experience",
        "## Note",
    ]
    assert {section.overflow for section in plan.sections} == {Overflow.DEGRADE_STOP}
    assert (plan.roll_over, plan.fusion, plan.gate, plan.boosts) == (
        RollOver.NONE,
        "weighted_sum_v1",
        False,
        False,
    )
    # Summaries and micros, of episodes summaries only; whole texts only of who the agent is and what it does.
    levels = {section.name: section.levels for section in plan.sections}
    short = (Level.SUMMARY, Level.MICRO)
    assert [levels[name] for name in OF_LAYER] == [short, short, short, (Level.SUMMARY,)]
    assert levels["constraints"] == levels["calibration"] == short


def test_only_the_strict_plan_keeps_whole_texts_out_of_what_relevance_fills() -> None:
    ranked = [section for section in STRICT.sections if section.order is None and not section.quoted]
    assert all(Level.FULL not in section.levels for section in ranked)
    gathering = [section for section in DEFAULT.sections if section.gathers and section.name != "calibration"]
    assert all(section.levels == (Level.FULL, Level.SUMMARY, Level.MICRO) for section in gathering)


def test_a_micro_is_a_line_of_twenty_tokens_and_a_summary_has_a_hundred() -> None:
    with opened() as engine:
        memory = engine.remember(
            " ".join(f"Sentence {place} says so." for place in range(80)), kind="decision"
        )
    assert memory.renditions.micro.tokens <= 20
    assert 50 <= memory.renditions.summary.tokens <= 100
    assert memory.renditions.full.tokens > 300
    assert "\n" not in memory.renditions.micro.text


@pytest.mark.parametrize("semantic", [True, False])
def test_each_search_has_its_limit(semantic: bool) -> None:
    drafts = [draft for kind in OF_LAYER.values() for draft in many(kind, 40)]
    with opened(drafts, semantic=semantic) as engine:
        context = engine.assemble(QUESTION, plan="layered_strict")
        found = Counter(entry.section for entry in context.trace.entries)
        assert found == {"decisions": 20, "facts": 30, "procedures": 10, "episodes": 10}
        if semantic:
            # They are the nearest in meaning, whatever words they share.
            nearest = engine.recall(QUESTION, kinds=["fact"], limit=50, gate=False, scorer=_by_meaning)
            assert {entry.memory_id for entry in of(context, "facts")} == {
                one.memory.id for one in list(nearest)[:30]
            }


def test_the_limit_holds_for_turns_of_dialogue_too() -> None:
    turns = [
        replace(draft, scope=f"session:{place % 3}", metadata={"speaker": "Ana"})
        for place, draft in enumerate(many("episode", 40))
    ]
    with opened(turns) as engine:
        context = engine.assemble(QUESTION, plan="layered_strict")
        assert len(of(context, "episodes")) == 10
        assert "###" not in context.text


def _by_meaning(candidate: Candidate, _query: object, _now: object) -> float:
    return candidate.signals.get("semantic", -1.0)


def test_a_time_in_the_question_neither_restricts_nor_lifts() -> None:
    drafts = [draft for kind in OF_LAYER.values() for draft in many(kind, 40)]
    with opened(drafts) as engine:
        context = engine.assemble("Which cache did we choose last week?", plan="layered_strict")
        assert Counter(entry.section for entry in context.trace.entries)["facts"] == 30
        assert "when" not in [note.code for note in context.trace.notes]


def test_constraints_and_procedures_are_those_of_the_frames_domain() -> None:
    def named(kind: str, domain: str | None, action: str = "warn") -> Draft:
        metadata = {"action": action} | ({} if domain is None else {"domain": domain})
        return Draft(
            content=f"{kind} of {domain} and {action} about redis caches", kind=kind, metadata=metadata
        )

    drafts = [
        named(kind, domain)
        for kind in ("constraint", "procedure", "fact")
        for domain in (None, "architecture", "gardening")
    ]
    with opened([*drafts, named("constraint", "gardening", "block")]) as engine:

        def shown(frame: str | Frame) -> dict[str, set[str]]:
            context = engine.assemble(QUESTION, plan="layered_strict", frame=frame)
            return {
                name: {entry.label.split(" about")[0] for entry in of(context, name)}
                for name in ("constraints", "procedures", "facts")
            }

        facts = {f"fact of {domain} and warn" for domain in (None, "architecture", "gardening")}
        found = shown("decision")
        assert found["facts"] == facts
        assert found["procedures"] == {"procedure of None and warn", "procedure of architecture and warn"}
        assert len(found["constraints"]) == 3  # What blocks stands there whatever its domain.
        assert "**Never:** constraint of gardening and block" in found["constraints"]
        (decision,) = (frame for frame in engine.frames() if frame.name == "decision")
        nowhere = replace(decision, domain=())
        assert {name: len(several) for name, several in shown(nowhere).items()} == {
            "constraints": 4,
            "procedures": 3,
            "facts": 3,
        }


def test_of_a_domain_the_limit_counts_what_is_of_it() -> None:
    others = [replace(draft, metadata={"domain": "gardening"}) for draft in many("procedure", 30)]
    own = [
        Draft(
            content=f"Step {place} of something else.", kind="procedure", metadata={"domain": "architecture"}
        )
        for place in range(12)
    ]
    with opened([*others, *own]) as engine:
        context = engine.assemble(QUESTION, plan="layered_strict", frame="decision")
        assert len(of(context, "procedures")) == 10
        assert all("something else" in entry.label for entry in of(context, "procedures"))


def state_score(memory: Memory, priorities: Mapping[str, float]) -> float:
    """The note's sum without the meaning, for a memory that was never used and has no outcome."""
    days = (NOW - memory.created_at) // timedelta(days=1)
    recency = 0.15 * math.exp(-0.023 * days)
    return 0.15 * priorities[memory.kind] + recency + 0.10 + 0.05 + 0.05 * memory.confidence


def test_the_order_of_a_layer_is_that_of_the_sum_and_nothing_else() -> None:
    with opened([draft for kind in OF_LAYER.values() for draft in many(kind, 40)]) as engine:
        context = engine.assemble(QUESTION, plan="layered_strict", frame="decision")
        priorities = {"decision": 1.0, "procedure": 0.8, "fact": 0.6, "episode": 0.4}
        for section in OF_LAYER:
            entries = of(context, section)
            scores = [
                entry.parts["semantic"] + state_score(engine.get(entry.memory_id), priorities)
                for entry in entries
            ]
            assert [entry.score for entry in entries] == pytest.approx(scores)
            assert scores == sorted(scores, reverse=True)


def by_the_note(
    engine: Engine, entries: Sequence[Entry], tokens: int, levels: Sequence[Level]
) -> list[Level | None]:
    """The note's own loop: summary if it fits, else micro, else the layer ends."""
    chosen: list[Level | None] = []
    used = 0
    for entry in entries:
        renditions = engine.get(entry.memory_id).renditions
        fitting = [level for level in levels if used + renditions.at(level).tokens <= tokens]
        if not fitting:
            break
        used += renditions.at(fitting[0]).tokens
        chosen.append(fitting[0])
    return chosen + [None] * (len(entries) - len(chosen))


@pytest.mark.parametrize("budget", [8100, 6000, 4050, 2000, 810])
def test_a_layer_ends_where_neither_level_fits(budget: int) -> None:
    long = [draft for kind in OF_LAYER.values() for draft in many(kind, 40, words=110)]
    with opened(long) as engine:
        context = engine.assemble(QUESTION, plan="layered_strict", budget=budget)
        given = {use.name: use.share for use in context.trace.sections}
        ended = 0
        for section in OF_LAYER:
            entries = of(context, section)
            levels = (Level.SUMMARY,) if section == "episodes" else (Level.SUMMARY, Level.MICRO)
            expected = by_the_note(engine, entries, given[section], levels)
            assert [entry.level for entry in entries] == expected
            if None in expected:
                ended += 1
                first = expected.index(None)
                reasons = [entry.reason for entry in entries[first:]]
                assert reasons == [Reason.OVER_BUDGET, *[Reason.STOPPED] * (len(reasons) - 1)]
        assert ended > 0
        assert engine._session.counter.count(context.text) == context.tokens <= budget


def test_a_smaller_one_behind_what_does_not_fit_is_lost_here_and_shown_where_it_is_skipped() -> None:
    long = "Redis cache, " * 40
    drafts = [
        Draft(content=f"{place} {long}", kind="fact", created_at=NOW - timedelta(days=place))
        for place in range(29)
    ]
    short = Draft(content="A cache, says Ana.", kind="fact", created_at=NOW - timedelta(days=400))
    skipping = replace(
        STRICT, sections=tuple(replace(each, overflow=Overflow.DEGRADE) for each in STRICT.sections)
    )
    with opened([*drafts, short]) as engine:
        lost = of(engine.assemble("Redis cache", plan=STRICT, budget=2550), "facts")[-1]
        last = of(engine.assemble("Redis cache", plan=skipping, budget=2550), "facts")[-1]
    assert (lost.label, lost.level, lost.reason) == ("A cache, says Ana.", None, Reason.STOPPED)
    assert (last.label, last.level) == ("A cache, says Ana.", Level.SUMMARY)


def test_nothing_flows_from_a_layer_that_has_nothing_to_one_that_has_too_much() -> None:
    with opened(many("fact", 40, words=110)) as engine:
        context = engine.assemble(QUESTION, plan="layered_strict")
        assert [use.flowed for use in context.trace.sections] == [0] * 9
        facts = next(use for use in context.trace.sections if use.name == "facts")
        assert 1400 < facts.used <= 1500
        assert sum(use.used for use in engine.assemble(QUESTION).trace.sections) > facts.used + 500


def test_what_forbids_is_never_left_out_of_it_and_the_total_holds() -> None:
    blocking = [
        Draft(
            content=f"Rule {place} forbids touching system {place} alone.",
            kind="constraint",
            metadata={"action": "block"},
        )
        for place in range(60)
    ]
    full = [draft for kind in OF_LAYER.values() for draft in many(kind, 40, words=110)]
    with opened([*blocking, *full]) as engine:
        for budget in (8100, 3000, 1500):
            context = engine.assemble(QUESTION, plan="layered_strict", budget=budget)
            assert sum(item.section == "constraints" for item in context.items) == 60
            assert context.tokens <= budget
        with pytest.raises(BudgetTooSmall):
            engine.assemble(QUESTION, plan="layered_strict", budget=400)


def test_a_context_of_it_is_refreshed_by_it() -> None:
    with opened([draft for kind in OF_LAYER.values() for draft in many(kind, 20)]) as engine:
        context = engine.assemble(QUESTION, plan="layered_strict", frame="auto")
        limit = context.tokens - 300
        refreshed = engine.refresh(context, "", plan="layered_strict", free_tokens=limit)
        assert (str(refreshed.reason), refreshed.context.trace.plan) == ("pressure", "layered_strict")
        assert refreshed.context.tokens <= limit
        assert {item.memory.id for item in refreshed.context.items} < {
            item.memory.id for item in context.items
        }

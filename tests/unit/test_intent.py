"""What somebody wants: greetings that ask nothing, looks back, hints, and what each does to a context."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Engine
from germane.kinds import BUILT_IN
from germane.plans.frames import frame_named
from germane.plans.intent import Intent, IntentKind, limit_of, read_intent
from germane.plans.layered import FLEXIBLE, budgeted, layered
from germane.retrieval.tokenizer import query_terms
from germane.testing.fakes import FixedClock

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def intent(text: str, *, dated: bool = False) -> Intent:
    return read_intent(text, informative=lambda rest: bool(query_terms(rest)), dated=dated)


@pytest.mark.parametrize(
    ("text", "aim"),
    [
        ("hi", IntentKind.GREET),
        ("Hello there, how are you?", IntentKind.GREET),
        ("Good morning everyone!", IntentKind.GREET),
        ("hey, why is the deploy failing?", IntentKind.ASK),
        ("Hi, what did Ana say yesterday?", IntentKind.TEMPORAL),
        ("hello, what happened?", IntentKind.RECAP),
        ("thanks!", IntentKind.ACKNOWLEDGE),
        ("ok, got it, thank you very much", IntentKind.ACKNOWLEDGE),
        ("yes", IntentKind.ACKNOWLEDGE),
        ("ok, but the cache is stale", IntentKind.ASK),
        ("High availability", IntentKind.ASK),
        ("Catch me up on the migration", IntentKind.RECAP),
        ("Where were we?", IntentKind.RECAP),
        ("What broke last week?", IntentKind.TEMPORAL),
        ("Which port does Postgres use?", IntentKind.ASK),
        ("", IntentKind.ASK),
    ],
)
def test_the_aim(text: str, aim: IntentKind) -> None:
    assert intent(text).aim is aim


def test_a_time_that_was_understood_looks_back() -> None:
    assert intent("releases in May 2026", dated=True) == Intent(aim=IntentKind.TEMPORAL, hints=("episodes",))
    assert intent("releases in May 2026").aim is IntentKind.ASK


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("Which decisions stand about caching?", ("decisions",)),
        ("How do I restore a backup?", ("procedures",)),
        ("What does Tim prefer?", ("facts",)),
        ("What was discussed in the meeting?", ("episodes",)),
        ("Summarise the decision on Redis", ("decisions", "episodes")),
        ("caching", ()),
    ],
)
def test_the_hints(text: str, hints: tuple[str, ...]) -> None:
    assert intent(text).hints == hints


def test_a_hint_shifts_limits_from_five_to_eight_and_three() -> None:
    assert [limit_of("facts", 5, hints) for hints in ((), ("facts",), ("decisions",))] == [5, 8, 3]
    assert limit_of("facts", 1, ("decisions",)) == 1
    plan = layered(BUILT_IN, frame_named("task"), intent=intent("Which decisions stand?"))
    limits = {section.name: section.limit for section in plan.sections if section.name in FLEXIBLE}
    assert limits == {"decisions": 80, "facts": 60, "procedures": 9, "episodes": 120}
    first = max(
        (section for section in plan.sections if section.name in FLEXIBLE), key=lambda one: one.priority
    )
    assert first.name == "decisions"


def test_looking_back_doubles_the_share_of_episodes() -> None:
    back = Intent(aim=IntentKind.RECAP, hints=("episodes",))
    assert budgeted(frame_named("decision"), intent=back).shares["episodes"] == 2000
    assert budgeted(frame_named("decision"), intent=back).spare == 900
    # 500 + 500 + 500 of the 900 that a conversation has beside what is always there: episodes get theirs.
    shares = budgeted(frame_named("conversation"), intent=back).shares
    assert [shares[name] for name in FLEXIBLE] == [200, 200, 0, 500]


def opened() -> Engine:
    engine = germane.open(":memory:", embedder=None, clock=FixedClock(NOW))
    engine.remember("I am newton.", kind="identity")
    engine.remember("Deploys fail when the disk is full.", kind="fact")
    engine.remember("Deploys moved to Tuesdays.", kind="episode", created_at=NOW - timedelta(days=3))
    return engine


def test_a_greeting_looks_for_nothing_and_a_question_behind_one_does() -> None:
    with opened() as engine:
        greeting = engine.assemble("hey there", frame="auto")
        assert [item.section for item in greeting.items] == ["identity"]
        assert "nothing_asked" in [note.code for note in greeting.trace.notes]
        assert [entry.memory_id for entry in greeting.trace.entries] == [greeting.items[0].memory.id]
        asking = engine.assemble("hey, why is the deploy failing?", frame="auto")
        assert "disk is full" in asking.text


def test_what_is_pinned_stands_in_its_own_section_whatever_is_said() -> None:
    with opened() as engine:
        fact = engine.remember("Tim is on call.", kind="fact")
        context = engine.assemble("hi", frame="auto", pins=[fact.id])
        assert [item.section for item in context.items] == ["identity", "facts"]


def test_only_what_auto_reads_changes_the_plan() -> None:
    with opened() as engine:
        named = engine.assemble("hi", frame="conversation")
        assert named.trace.budget == 3000
        assert "nothing_asked" not in [note.code for note in named.trace.notes]
        auto = engine.assemble("hi", frame="auto")
        assert (
            auto.trace.notes[0].text == "Taken for: conversation (by words, confidence 1.00); greet; simple."
        )


LOOKING_BACK = [
    "catch me up",
    "Catch me up, please!",
    "what's new?",
    "whats new",
    "fill me in",
    "update me, please",
    "recap",
    "give me a quick recap",
    "bring me up to date",
    "where were we?",
    "What did I miss?",
    "hi, what happened?",
]


@pytest.mark.parametrize("text", LOOKING_BACK)
def test_a_look_back_may_name_no_topic(text: str) -> None:
    assert intent(text) == Intent(aim=IntentKind.RECAP, hints=("decisions", "episodes"), plain=True)
    assert not intent(f"{text} the migration to Postgres").plain


@pytest.mark.parametrize("text", LOOKING_BACK)
@pytest.mark.parametrize("frame", [None, "auto", "conversation"])
def test_who_is_to_be_caught_up_gets_what_is_latest(text: str, frame: str | None) -> None:
    with germane.open(":memory:", clock=FixedClock(NOW)) as engine:
        for days in range(40):
            engine.remember(
                f"Day {days}: part {days} of the invoices moved to the new queue, after a review with Ana.",
                kind="episode",
                tags=["work"],
                created_at=NOW - timedelta(days=days),
            )
            engine.remember(
                f"Day {days}: take option {days}.", kind="decision", created_at=NOW - timedelta(days=days)
            )
        context = engine.assemble(text) if frame is None else engine.assemble(text, frame=frame)
    used = {section.name: section.used for section in context.trace.sections}
    assert used["episodes"] >= 500
    for name in ("episodes", "decisions"):
        days_shown = [
            int(item.memory.content.split()[1].strip(":")) for item in context.items if item.section == name
        ]
        assert days_shown == list(range(len(days_shown)))
        assert len(days_shown) > 10
    assert "recency" in [note.code for note in context.trace.notes]


def test_a_look_back_at_a_time_gets_what_is_of_it() -> None:
    with opened() as engine:
        context = engine.assemble("What happened yesterday?")
        assert [item.section for item in context.items] == ["identity"]
        assert "nothing_then" in [note.code for note in context.trace.notes]
        assert "Tuesdays" in engine.assemble("What happened 3 days ago?").text

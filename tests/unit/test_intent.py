"""What somebody wants: the frame, greetings, looks back, hints; and what each does to shares and contexts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Engine, Frame, InvalidInput, Share
from germane.kinds import BUILT_IN
from germane.model.plan import DEFAULT_SHARES
from germane.packing.sections import allocate
from germane.plans.frames import choose_frame, frame_named
from germane.plans.intent import Complexity, Intent, IntentKind, complexity_of, limit_of, read_intent
from germane.plans.layered import ALWAYS, FLEXIBLE, budgeted, layered
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


def test_what_is_pinned_stands_in_its_own_section_whatever_the_message() -> None:
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


# The shares of every frame to the token, and how one is chosen.

ALWAYS_THERE = {"identity": 500, "user": 500, "constraints": 300, "focus": 700, "calibration": 100}
# Frame, total, decisions, facts, procedures, episodes, and what no section has a claim to.
TOTALS = [
    ("conversation", 3000, 450, 450, 0, 0, 0),
    ("question", 6000, 1000, 1500, 500, 500, 400),
    ("task", 8000, 1966, 1475, 1475, 984, 0),
    ("decision", 12000, 3000, 2000, 2000, 1000, 1900),
    ("debug", 10000, 1500, 1000, 2500, 1000, 1900),
    ("creative", 6000, 1000, 1500, 500, 500, 400),
]
# What each frame asks for, before it is made to fit.
WANTED = {
    "conversation": (500, 500, 0, 0),
    "question": (1000, 1500, 500, 500),
    "task": (2000, 1500, 1500, 1000),
    "decision": (3000, 2000, 2000, 1000),
    "debug": (1500, 1000, 2500, 1000),
    "creative": (1000, 1500, 500, 500),
}


@pytest.mark.parametrize(("name", "total", "decisions", "facts", "procedures", "episodes", "spare"), TOTALS)
def test_every_frame_has_its_total_and_its_shares(
    name: str, total: int, decisions: int, facts: int, procedures: int, episodes: int, spare: int
) -> None:
    frame = frame_named(name)
    assert frame.budget == total
    assert tuple(tokens for _, tokens in frame.shares) == WANTED[name]
    found = budgeted(frame)
    flexible = {"decisions": decisions, "facts": facts, "procedures": procedures, "episodes": episodes}
    assert (found.total, found.spare, dict(found.shares)) == (total, spare, ALWAYS_THERE | flexible)
    plan = layered(BUILT_IN, frame)
    shares = allocate(total, [*(section.share for section in plan.sections), Share(weight=plan.spare)])
    order = [
        "identity",
        "user",
        "user_facts",
        "constraints",
        "frame",
        "focus",
        *FLEXIBLE,
        "history",
        "calibration",
        "quoted",
    ]
    assert [section.name for section in plan.sections] == order
    by_name = dict(zip(order, shares[:-1], strict=True))
    # Constraints and the two sections about the user have a floor, which comes first.
    assert by_name["frame"] == 0
    assert by_name["user"] == by_name["user_facts"] >= 40
    assert sum(shares) == total
    for one in (*FLEXIBLE, "identity", "focus", "calibration"):
        assert abs(by_name[one] - found.shares[one]) <= 120 * found.shares[one] / total + 3


def test_the_layers_of_the_default_sum_to_more_than_its_total_and_so_shrink() -> None:
    assert dict(ALWAYS) == ALWAYS_THERE
    assert sum(ALWAYS.values()) + sum(tokens for _, tokens in DEFAULT_SHARES) == 8100
    assert sum(budgeted(frame_named("task")).shares.values()) == 8000


def test_words_are_words_and_not_what_stands_between_spaces() -> None:
    only = [Frame(name="a", description="", patterns=("wrong",)), Frame(name="b", description="")]
    assert [
        choose_frame(text, only).confidence for text in ("wrong?", "(Wrong!)", "wrongly", "un-wrong")
    ] == [
        1.0,
        1.0,
        0.0,
        0.0,
    ]
    assert choose_frame("", only).confidence == 0.0


def test_a_prefix_a_beginning_and_a_question_mark_are_patterns_too() -> None:
    frame = Frame(name="a", description="", patterns=("fail*", "^fix", "?"))
    other = Frame(name="b", description="", patterns=("never said",), precedence=-1)

    def found(text: str) -> bool:
        return choose_frame(text, [frame, other]).confidence > 0

    assert [found(text) for text in ("failing", "please fix", "well, fix it", "so\uff1f", "ok")] == [
        True,
        False,
        True,
        True,
        False,
    ]


def test_of_as_many_patterns_precedence_decides_and_then_the_first() -> None:
    def frame(name: str, precedence: int, *patterns: str) -> Frame:
        return Frame(name=name, description="", patterns=patterns, precedence=precedence)

    several = [
        frame("low", 1, "red"),
        frame("one", 2, "red"),
        frame("two", 2, "red"),
        frame("more", 0, "a", "b"),
    ]
    assert choose_frame("red", several).frame.name == "one"
    assert choose_frame("red", several[::-1]).frame.name == "two"
    assert choose_frame("a red b", several).frame.name == "more"
    assert choose_frame("a red b", several).confidence == pytest.approx(2 / 5)
    with pytest.raises(InvalidInput, match="no frame"):
        choose_frame("red", [])


@pytest.mark.parametrize(
    ("text", "complexity"),
    [
        ("Which port?", Complexity.SIMPLE),
        ("one two three four five six", Complexity.SIMPLE),
        ("one two three four five six seven", Complexity.USUAL),
        ("", Complexity.USUAL),
        ("Redesign it.", Complexity.USUAL),
        ("Which architecture scales?", Complexity.COMPLEX),
        ("What is it? And why?", Complexity.COMPLEX),
        (" ".join(["word"] * 40), Complexity.USUAL),
        (" ".join(["word"] * 41), Complexity.COMPLEX),
    ],
)
def test_complexity_follows_its_rules(text: str, complexity: Complexity) -> None:
    assert complexity_of(text) is complexity


def test_a_simple_question_halves_what_relevance_fills_and_the_total_follows() -> None:
    found = budgeted(frame_named("question"), complexity=Complexity.SIMPLE)
    assert [found.shares[name] for name in FLEXIBLE] == [500, 750, 250, 250]
    assert (found.total, found.spare) == (6000 - 1750, 400)


def test_a_complex_question_grows_decisions_and_procedures_within_the_total() -> None:
    question = budgeted(frame_named("question"), complexity=Complexity.COMPLEX)
    # 1,500 + 1,500 + 750 + 500 of the 3,900 that are left beside what is always there.
    assert [question.shares[name] for name in FLEXIBLE] == [1376, 1376, 688, 460]
    assert (question.total, question.spare, sum(question.shares.values())) == (6000, 0, 6000)
    debug = budgeted(frame_named("debug"), complexity=Complexity.COMPLEX)
    assert [debug.shares[name] for name in FLEXIBLE] == [2221, 987, 3703, 989]
    assert sum(debug.shares.values()) == debug.total == 10000


def test_a_section_that_a_frame_does_not_name_has_half() -> None:
    plan = layered(BUILT_IN, Frame(name="mine", description="", priorities=(("facts", 0.9),)))
    priorities = {section.name: section.priority for section in plan.sections if section.name in FLEXIBLE}
    assert priorities == {"decisions": 0.5, "facts": 0.9, "procedures": 0.5, "episodes": 0.5}

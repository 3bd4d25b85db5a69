"""Frames: their totals and shares to the token, how one is chosen, and frames of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import germane
from germane import Frame, InvalidInput, InvalidPlan, Share
from germane.errors import UnreadableSource
from germane.kinds import BUILT_IN
from germane.model.plan import DEFAULT_SHARES
from germane.packing.sections import allocate
from germane.plans.frames import FRAMES, choose_frame, frame_named, frames_from_toml, with_frames
from germane.plans.intent import Complexity, complexity_of
from germane.plans.layered import ALWAYS, FLEXIBLE, budgeted, layered

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


@pytest.mark.parametrize(
    ("text", "frame", "confidence"),
    [
        ("Is this wrong?", "debug", 1 / 2),
        ("Fix the error.", "debug", 1 / 2),
        ("Should we use Redis for caching in Newton?", "decision", 1 / 2),
        ("hey, why is the deploy failing?", "debug", 2 / 4),
        ("Why isn't the build\u2019s cache warm?", "debug", 1 / 2),
        ("Thanks, that helps!", "conversation", 1.0),
        ("Implement the retry logic in the worker.", "task", 1.0),
        ("Can you write a migration for the orders table?", "task", 2 / 3),
        ("Come up with three ideas for the landing page", "creative", 1.0),
        ("Which database do we use?", "question", 1.0),
        ("Compare Postgres and SQLite for our use case.", "decision", 1.0),
        ("I went hiking last weekend with my sister.", "conversation", 0.0),
        ("", "conversation", 0.0),
    ],
)
def test_a_frame_is_chosen_by_words(text: str, frame: str, confidence: float) -> None:
    choice = choose_frame(text, FRAMES)
    assert (choice.frame.name, choice.by) == (frame, "words")
    assert choice.confidence == pytest.approx(confidence)


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


def test_a_budget_too_small_for_what_is_always_there_is_refused_when_the_plan_is_built() -> None:
    with pytest.raises(InvalidPlan, match="2100"):
        budgeted(Frame(name="tiny", description="", budget=2099))
    assert budgeted(Frame(name="tiny", description="", budget=2100)).shares["facts"] == 0
    with pytest.raises(InvalidPlan, match="share to 'tickets'"):
        budgeted(Frame(name="odd", description="", shares=(("tickets", 1),)))
    # The name of a kind is not that of its section, and would change nothing without a word.
    with germane.open(":memory:", embedder=None) as engine:
        odd = Frame(name="odd", description="", priorities=(("decision", 1.0),))
        for plan in ("layered", "layered_strict"):
            with pytest.raises(InvalidPlan, match="priority to 'decision'"):
                engine.assemble("x", frame=odd, plan=plan)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": "auto"}, "asks for a choice"),
        ({"name": "a\n## Identity"}, "can't be used"),
        ({"patterns": ("a||b",)}, "says nothing"),
        ({"patterns": ("two  spaces",)}, "says nothing"),
        ({"priorities": (("facts", 1.5),)}, "from 0 to 1"),
        ({"priorities": (("facts", 1.0), ("facts", 0.5))}, "twice"),
        ({"budget": 0}, "too few tokens"),
        ({"shares": (("facts", -1),)}, "too few tokens"),
    ],
)
def test_what_is_no_frame_is_refused(fields: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        Frame(**{"name": "a", "description": "", **fields})  # type: ignore[arg-type]  # Wrong on purpose.


FILE = """
[frame.review]
description = "Reading what somebody else has written."
questions = ["What does it break?"]
patterns = ["^review|pull request*"]
precedence = 9
domain = ["review"]
budget = 4000
priorities = { procedures = 1.0 }
shares = { decisions = 1500, facts = 100 }

[frame.task]
description = "Work."
"""


def test_frames_of_ones_own_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "frames.toml"
    path.write_text(FILE, encoding="utf-8")
    with germane.open(":memory:", embedder=None, frames=path) as engine:
        assert [frame.name for frame in engine.frames()] == [*(frame.name for frame in FRAMES), "review"]
        context = engine.assemble("Review the pull request, it fails", frame="auto")
        assert (context.trace.frame, context.trace.budget) == ("review", 3200)
        assert engine.assemble("x", frame="review").trace.budget == 4000
        engine.remember("The worker retries three times.")
        assert "## Current Approach: Task\nWork." in engine.assemble("worker", frame="task").text
        assert "Current Approach" not in engine.assemble("worker").text


def test_frames_of_ones_own_come_as_values() -> None:
    mine = Frame(name="triage", description="Sorting.", patterns=("urgent",), precedence=9, budget=2500)
    with germane.open(":memory:", embedder=None, frames=[mine]) as engine:
        assert engine.assemble("An urgent error", frame="auto").trace.frame == "triage"
        assert engine.assemble("x", frame=mine).trace.budget == 2500
    with pytest.raises(InvalidInput, match=r"frames='triage' is str; pass germane\.Frame"):
        germane.open(":memory:", frames=["triage"])  # type: ignore[list-item]  # Wrong on purpose.


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("frame = [", "TOML"),
        ("other = 1", "nothing else"),
        ("frame = 1", "nothing else"),
        ("frame.a = 1", "write a table"),
        ("[frame.a]\ncolour = 'red'", "colour"),
        ("[frame.a]\nquestions = 'one'", "a list of texts"),
        ("[frame.a]\nbudget = true", "a whole number"),
        ("[frame.a]\nshares = { facts = 'all' }", "a table of numbers"),
        ("[frame.a]\ndescription = 1", "a text"),
    ],
)
def test_a_file_that_holds_no_frames_is_refused(text: str, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        frames_from_toml(text)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match=r"none\.toml"):
        germane.open(":memory:", frames=tmp_path / "none.toml")


def test_a_selector_chooses_where_auto_is_asked_for() -> None:
    asked: list[tuple[str, int]] = []

    def model(text: str, frames: Sequence[Frame]) -> str:
        asked.append((text, len(frames)))
        return "creative"

    with germane.open(":memory:", embedder=None, frame_selector=model) as engine:
        trace = engine.assemble("Fix the error.", frame="auto").trace
        assert (trace.frame, trace.frame_confidence) == ("creative", 1.0)
        assert engine.assemble("Fix the error.").trace.frame == "task"
        assert engine.assemble("", frame="auto").trace.frame == "task"
        assert engine.assemble("x", frame=lambda _, frames: frames[1]).trace.frame == "question"
    assert asked == [("Fix the error.", 6)]


def test_words_choose_where_a_selector_fails() -> None:
    def broken(text: str, frames: Sequence[Frame]) -> str:
        raise TimeoutError(text, len(frames))

    def wrong(text: str, frames: Sequence[Frame]) -> str:  # noqa: ARG001 - The signature is the door's.
        return "no such frame"

    for selector in (broken, wrong):
        with germane.open(":memory:", embedder=None, frame_selector=selector) as engine:
            trace = engine.assemble("Fix the error.", frame="auto").trace
            assert trace.frame == "debug"
            assert [note.code for note in trace.notes][:2] == ["frame_by_words", "frame"]


def test_the_total_of_the_frame_is_the_budget_where_none_is_given() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        totals = {frame.name: engine.assemble("x", frame=frame.name).trace.budget for frame in FRAMES}
        assert totals == {name: total for name, total, *_ in TOTALS}
        assert engine.assemble("x", frame="decision", budget=500).trace.budget == 500
        assert engine.assemble("x", plan="relevance").trace.budget == 8000
        assert engine.assemble("x", plan="relevance").trace.frame is None
        assert engine.assemble("x").trace.frame_confidence == 1.0


def test_a_frame_of_a_known_name_stands_in_its_place() -> None:
    mine = Frame(name="debug", description="Mine.")
    assert [frame.description for frame in with_frames([mine]) if frame.name == "debug"] == ["Mine."]
    with pytest.raises(InvalidInput, match="'auto' chooses one"):
        frame_named("dreaming")


@pytest.mark.parametrize(("guidance", "told"), [(None, False), (False, False), (True, True)])
def test_a_note_says_that_guidance_was_left_out_only_to_who_asked_for_it(
    guidance: bool | None, told: bool
) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember_many([f"The pump of hall {hall} hums." for hall in range(20)])

        small = engine.assemble("Which pump hums?", frame="decision", guidance=guidance, budget=60)
        large = engine.assemble("Which pump hums?", frame="decision", guidance=guidance, budget=2000)

    note = "The text of section 'frame' was left out: too few tokens were left."
    assert (note in [each.text for each in small.trace.notes]) is told
    assert note not in [each.text for each in large.trace.notes]

"""Frames: their totals and shares to the token, how one is chosen, and frames of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import germane
from germane import Frame, InvalidInput, InvalidPlan
from germane.errors import UnreadableSource

TOTALS = [
    ("conversation", 3000),
    ("question", 6000),
    ("task", 8000),
    ("decision", 12000),
    ("debug", 10000),
    ("creative", 6000),
]


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
    ],
)
def test_a_frame_is_chosen_by_words(text: str, frame: str, confidence: float) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        trace = engine.assemble(text, frame="auto").trace
    assert trace.frame == frame
    assert trace.frame_confidence == pytest.approx(confidence)
    assert f"Taken for: {frame} (by words," in next(note.text for note in trace.notes if note.code == "frame")


def test_a_budget_too_small_for_what_is_always_there_is_refused_when_the_plan_is_built() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        with pytest.raises(InvalidPlan, match="2100"):
            engine.assemble("x", frame=Frame(name="tiny", description="", budget=2099))
        small = engine.assemble("x", frame=Frame(name="tiny", description="", budget=2100)).trace
        assert [section.share for section in small.sections if section.name == "facts"] == [0]
        with pytest.raises(InvalidPlan, match="share to 'tickets'"):
            engine.assemble("x", frame=Frame(name="odd", description="", shares=(("tickets", 1),)))
        # The name of a kind is not that of its section, and would change nothing without a word.
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
        assert [frame.name for frame in engine.frames()] == [*(name for name, _ in TOTALS), "review"]
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
def test_a_file_that_holds_no_frames_is_refused(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "frames.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=named):
        germane.open(":memory:", frames=path)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match=r"none\.toml"):
        germane.open(":memory:", frames=tmp_path / "none.toml")


def test_a_selector_chooses_for_auto() -> None:
    calls: list[tuple[str, int]] = []

    def model(text: str, frames: Sequence[Frame]) -> str:
        calls.append((text, len(frames)))
        return "creative"

    with germane.open(":memory:", embedder=None, frame_selector=model) as engine:
        trace = engine.assemble("Fix the error.", frame="auto").trace
        assert (trace.frame, trace.frame_confidence) == ("creative", 1.0)
        assert engine.assemble("Fix the error.").trace.frame == "task"
        assert engine.assemble("", frame="auto").trace.frame == "task"
        assert engine.assemble("x", frame=lambda _, frames: frames[1]).trace.frame == "question"
    assert calls == [("Fix the error.", 6)]


def test_words_choose_where_a_selector_fails() -> None:
    def broken(text: str, frames: Sequence[Frame]) -> str:
        raise TimeoutError(text, len(frames))

    def wrong(text: str, frames: Sequence[Frame]) -> str:  # noqa: ARG001 - The signature is the protocol's.
        return "no such frame"

    for selector in (broken, wrong):
        with germane.open(":memory:", embedder=None, frame_selector=selector) as engine:
            trace = engine.assemble("Fix the error.", frame="auto").trace
            assert trace.frame == "debug"
            assert [note.code for note in trace.notes][:2] == ["frame_by_words", "frame"]


def test_the_total_of_the_frame_is_the_budget_where_none_is_given() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        totals = {
            frame.name: engine.assemble("x", frame=frame.name).trace.budget for frame in engine.frames()
        }
        assert totals == dict(TOTALS)
        assert engine.assemble("x", frame="decision", budget=500).trace.budget == 500
        assert engine.assemble("x", plan="relevance").trace.budget == 8000
        assert engine.assemble("x", plan="relevance").trace.frame is None
        assert engine.assemble("x").trace.frame_confidence == 1.0


def test_a_frame_of_a_known_name_stands_in_its_place() -> None:
    mine = Frame(name="debug", description="Mine.")
    with germane.open(":memory:", embedder=None, frames=[mine]) as engine:
        assert [frame.description for frame in engine.frames() if frame.name == "debug"] == ["Mine."]
        assert len(engine.frames()) == len(TOTALS)
        with pytest.raises(InvalidInput, match="'auto' chooses one"):
            engine.assemble("x", frame="dreaming")


@pytest.mark.parametrize(("guidance", "shown"), [(None, False), (False, False), (True, True)])
def test_a_note_says_that_guidance_was_left_out_only_to_who_requested_it(
    guidance: bool | None, shown: bool
) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember_many([f"The pump of hall {hall} hums." for hall in range(20)])

        small = engine.assemble("Which pump hums?", frame="decision", guidance=guidance, budget=60)
        large = engine.assemble("Which pump hums?", frame="decision", guidance=guidance, budget=2000)

    note = "The text of section 'frame' was left out: too few tokens were left."
    assert (note in [each.text for each in small.trace.notes]) is shown
    assert note not in [each.text for each in large.trace.notes]

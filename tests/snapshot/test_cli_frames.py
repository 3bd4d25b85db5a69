# ruff: noqa: E501 - what is printed stands on one line.
"""`germane context frames`, and what a frame changes of `germane assemble`."""

from __future__ import annotations

from pathlib import Path

from inline_snapshot import snapshot

from commandline import fields, run

MINE = """
[frame.review]
description = "Reading."
patterns = ["pull request*"]
precedence = 9
budget = 2500
shares = { facts = 400 }
"""


def test_frames_are_listed() -> None:
    assert run("context", "frames").out == snapshot("""\
FRAME          total  decisions  facts  procedures  episodes  what for
conversation   3,000        500    500           0         0  Talking with someone; no task is under way.
question       6,000      1,000  1,500         500       500  Answering a question from what is known.
task           8,000      2,000  1,500       1,500     1,000  Carrying out a piece of work.
decision      12,000      3,000  2,000       2,000     1,000  Choosing between alternatives whose consequences last.
debug         10,000      1,500  1,000       2,500     1,000  Finding out why something does not work.
creative       6,000      1,000  1,500         500       500  Looking for something new.
""")


def test_a_frame_has_the_fields_of_the_reference(tmp_path: Path) -> None:
    file = tmp_path / "frames.toml"
    file.write_text(MINE, encoding="utf-8")
    *built_in, mine = run("context", "frames", "--frames", str(file), "--json").json()
    assert [list(frame) for frame in (*built_in, mine)] == [fields("Frame")] * 7
    assert mine == snapshot(
        {
            "name": "review",
            "description": "Reading.",
            "questions": [],
            "priorities": {},
            "patterns": ["pull request*"],
            "precedence": 9,
            "domain": [],
            "budget": 2500,
            "shares": {"facts": 400},
            "learned_tags": [],
        }
    )


def test_auto_and_ones_own_frames_and_the_message(tmp_path: Path) -> None:
    db, file, talk = tmp_path / "agent.db", tmp_path / "frames.toml", tmp_path / "talk.txt"
    file.write_text(MINE, encoding="utf-8")
    talk.write_text("user: Redis runs on port 6379.\n", encoding="utf-8")
    assert run("remember", "Redis runs on port 6379.", "--kind", "fact", db=db).code == 0
    ran = run("assemble", "Which pull request moved Redis?", "--frame", "auto", "--frames", str(file), db=db)
    assert ran.out.startswith("## Known Information\n- Redis runs on port 6379. (")
    assert "Taken for: review" in ran.err
    guided = run(
        *("assemble", "Which pull request moved Redis?", "--frame", "auto", "--frames", str(file)),
        "--guidance",
        db=db,
    )
    assert guided.out == f"## Current Approach: Review\nReading.\n\n{ran.out}"
    value = run("assemble", "Redis", "--conversation", str(talk), "--json", db=db).json()
    assert [entry["reason"] for entry in value["trace"]["entries"]] == ["said"]
    assert (value["trace"]["frame"], value["trace"]["frame_confidence"], value["trace"]["budget"]) == (
        "task",
        1.0,
        8000,
    )


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    for option in ("--frames", "--conversation"):
        db = tmp_path / "agent.db"
        assert run("remember", "x y", db=db).code == 0
        ran = run("assemble", "x", option, str(tmp_path / "none"), db=db)
        assert (ran.code, "can't be read" in ran.err) == (2, True)

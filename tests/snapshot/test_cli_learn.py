"""`germane learn` and `germane consolidate`: what they print, do, and undo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commandline import fields, printed, run

CHAT = """\
user: I live in Nagoya. I'm allergic to peanuts.
assistant: Noted!
user: If I lived in Rome I'd eat more.
"""


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A store with one conversation."""
    (tmp_path / "lunch.txt").write_text(CHAT)
    path = tmp_path / "agent.db"
    assert run("chat", "import", str(tmp_path / "lunch.txt"), db=path).code == 0
    return path


def test_a_conversation_is_learned_from_once(db: Path) -> None:
    ran = run("learn", "from", "lunch", db=db)
    assert ran.code == 0
    assert "lunch, messages 1 to 3, 2 proposals by rules." in ran.out
    assert "new" in ran.out
    assert "The user lives in Nagoya." in ran.out
    assert "0 proposals" in run("learn", "from", "lunch", db=db).out
    assert "No conversation has messages" in run("consolidate", db=db).out
    assert "nothing" in run("learn", "from", "lunch", "--again", db=db).out


def test_a_transcript_is_learned_from_without_being_stored(db: Path, tmp_path: Path) -> None:
    value = printed("learn", "from", str(tmp_path / "lunch.txt"), "--dry-run", db=db)
    assert list(value) == fields("`germane learn from`, `germane learn runs`, `germane consolidate`")
    (found,) = value["runs"]
    assert list(found) == fields("Learning run")
    assert list(found["decisions"][0]) == fields("Decision")
    assert list(found["decisions"][0]["proposal"]) == fields("Proposal")
    assert found["dry_run"] is True
    assert printed("learn", "runs", db=db) == {"runs": []}
    assert "Nothing was learned" in run("learn", "runs", db=db).out


def test_a_run_is_listed_shown_and_undone(db: Path) -> None:
    (learned,) = json.loads(run("consolidate", "--json", db=db).out)["runs"]
    name = learned["id"][-8:]
    assert f"{name}  " in run("learn", "runs", db=db).out
    assert "2 new" in run("learn", "runs", "--session", "lunch", db=db).out
    memory = learned["memories"][0]
    assert len(printed("learn", "runs", "--memory", memory, db=db)["runs"]) == 1
    assert "I live in Nagoya." in run("learn", "show", name, db=db).out
    assert json.loads(run("learn", "show", name, "--json", db=db).out) == learned
    assert run("learn", "undo", name, db=db).out == "Undone: 2 of 2 decisions.\n"
    assert printed("memory", "list", db=db)["memories"] == []
    assert "undone" in run("learn", "runs", db=db).out
    again = run("learn", "undo", name, db=db)
    assert again.code != 0
    assert "was undone at" in again.err


def test_what_is_not_there_is_refused(db: Path) -> None:
    assert "no conversation 'supper'" in run("learn", "from", "supper", db=db).err
    assert "is no learning run" in run("learn", "show", "12345678", db=db).err
    assert "is no learning run" in run("learn", "undo", "12345678", db=db).err
    assert (
        "--api bell is unknown" in run("learn", "from", "lunch", "--model", "x", "--api", "bell", db=db).err
    )


def test_what_is_known_about_a_name_and_whose_it_is(db: Path) -> None:
    for text in ("The user's sister Anna lives in Rome.", "The user's sister sings.", "Annie met Anna."):
        assert run("remember", text, "--kind", "fact", db=db).code == 0
    shown = run("about", "my sister", db=db).out.splitlines()
    assert shown[0] == "Anna = the user's sister"
    assert [line.partition("]")[2] for line in shown[1:4]] == [
        " The user's sister Anna lives in Rome.",
        " The user's sister sings.",
        "~ Annie met Anna.",
    ]
    assert shown[4].startswith("  the user's sister = Anna: It is the name of the user's sister. [")
    decided = run("learn", "same", "Annie", "Anna", "--reason", "A nickname.", "--json", db=db).json()
    assert [each["names"] for each in printed("about", "Annie", db=db)["entities"]] == [
        ["Anna", "Annie", "the user's sister"]
    ]
    assert run("learn", "undo", decided["id"], db=db).code == 0
    assert run("about", "Annie", db=db).out.startswith("Annie\n")
    apart = run("learn", "same", "Anna", "my sister", "--apart", db=db).out
    assert "Anna and my sister are not the same. It was decided." in apart
    assert "Nothing is known about Zoe." in run("about", "Zoe", db=db).out
    assert run("learn", "same", "Anna", "anna", db=db).code == 2

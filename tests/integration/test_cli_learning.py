"""What `germane context feedback` and `germane context learning` print, in text and in JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commandline import fields, run


@pytest.fixture
def db(tmp_path: Path) -> Path:
    db = tmp_path / "agent.db"
    for text in (
        "Redis caches sessions.",
        "Redis needs a password.",
        "Redis was measured.",
        "Milo is a cat.",
    ):
        run("remember", text, "--kind", "fact", db=db)
    return db


def shown(db: Path, command: str) -> tuple[Path, list[str]]:
    """A file with the JSON of a command, and the ids that it shows."""
    ran = run(*command.split(), "redis", *(["--gate"] if command != "recall" else []), "--json", db=db)
    file = db.parent / f"{command}.json"
    file.write_text(ran.out, encoding="utf-8")
    found = ran.json()
    entries = found["results"] if command == "recall" else found["trace"]["entries"]
    return file, [one["memory"]["id"] if "memory" in one else one["id"] for one in entries]


@pytest.mark.parametrize("command", ["assemble", "context explain", "recall"])
def test_what_was_used_is_counted_once(db: Path, command: str) -> None:
    file, ids = shown(db, command)

    first = run("context", "feedback", "--context", str(file), "--used", ids[0][-8:], db=db)
    again = run(
        "context",
        "feedback",
        "--context",
        "-",
        "--used",
        ids[0],
        db=db,
        stdin=file.read_text(encoding="utf-8"),
    )

    assert first.out == "Uses counted: 1 of 3 memories shown.\n"
    assert again.out == "Uses counted: 0 of 3 memories shown; known already: 1.\n"
    assert run("memory", "show", ids[0], "--json", db=db).json()["memory"]["access_count"] == 1


def test_learning_is_switched_and_reset(db: Path) -> None:
    assert run("context", "learning", db=db).out == "Learning is off. Examples stored: 0.\n"
    assert run("context", "learning", "on", db=db).out.startswith(
        "Learning is on. Examples stored: 0; all parts"
    )
    file, ids = shown(db, "assemble")
    ran = run("context", "feedback", "--context", str(file), "--used", ids[1], db=db)
    assert ran.out == "Uses counted: 1 of 3 memories shown; examples stored: 3.\n"
    learned = r"Learning is on\. lexical \d\.\d\d, from 3 examples in 1 context\.\n"
    assert re.fullmatch(learned, run("context", "learning", db=db).out)
    assert "weighed by what was used before" in run("assemble", "redis", db=db).err
    assert run("context", "learning", "off", db=db).out == "Learning is off. Examples stored: 3.\n"
    assert "weighed" not in run("assemble", "redis", db=db).err
    assert run("context", "learning", "reset", db=db).out.startswith("Removed 3 examples;")
    assert run("context", "learning", "--json", db=db).json()["examples"] == 0


def test_an_answer_says_itself_what_was_used(db: Path) -> None:
    unrecorded = run("context", "observe", "It caches sessions.", db=db)
    assert (unrecorded.code, "germane assemble --record" in " ".join(unrecorded.err.split())) == (2, True)
    run("assemble", "redis", "--gate", "--record", db=db)
    (one,) = run("ledger", "list", "--json", db=db).json()

    looked = run("context", "observe", "It caches sessions.", "--dry-run", db=db)
    counted = run("context", "observe", "-", "--assembly", one["id"][-8:], db=db, stdin="It caches sessions.")
    again = run("context", "observe", "It caches sessions.", db=db)

    assert looked.out.splitlines()[-1] == "The answer draws on 1 of 3 memories shown. Nothing was counted."
    assert counted.out.splitlines()[-1] == "The answer draws on 1 of 3 memories shown. Uses counted: 1."
    assert again.out.splitlines()[-1].endswith("Uses counted: 0; known already: 1.")
    assert [line.split()[:1] for line in counted.out.splitlines()[:2]] == [["USED"], ["yes"]]


@pytest.mark.parametrize("command", ["assemble", "recall"])
def test_an_answer_is_compared_with_what_json_says(db: Path, command: str) -> None:
    file, _ = shown(db, command)
    found = run("context", "observe", "It caches sessions.", "--context", str(file), "--json", db=db).json()
    assert list(found) == fields("`germane context observe`")
    assert (len(found["used"]), found["counted"], len(found["scores"])) == (1, 1, 3)
    assert run("memory", "show", found["used"][0], "--json", db=db).json()["memory"]["access_count"] == 1


def test_only_one_thing_says_what_was_shown(db: Path) -> None:
    file, _ = shown(db, "assemble")
    both = run("context", "observe", "x", "--context", str(file), "--assembly", "12345678", db=db)
    twice = run("context", "observe", "-", "--context", "-", db=db, stdin="{}")
    wrong = run("context", "observe", "x", "--context", "-", db=db, stdin="[]")
    assert [ran.code for ran in (both, twice, wrong)] == [2, 2, 2]
    assert "Give one of them" in both.err


def test_only_some_may_be_named_as_ignored(db: Path) -> None:
    run("context", "learning", "on", db=db)
    file, ids = shown(db, "recall")

    run("context", "feedback", "--context", str(file), "--used", ids[0], "--ignored", ids[1], db=db)

    assert run("context", "learning", "--json", db=db).json()["examples"] == 2


def test_the_objects_that_json_prints(db: Path) -> None:
    run("context", "learning", "on", db=db)
    file, ids = shown(db, "recall")

    given = run("context", "feedback", "--context", str(file), "--used", ids[0], "--json", db=db).json()
    lessons = run("context", "learning", "--json", db=db).json()

    assert list(given) == fields("`germane context feedback`")
    assert list(given["used"][0]) == fields("Memory")
    assert list(lessons) == fields("`germane context learning`")
    assert lessons.pop("weights").keys() == {"lexical"}
    assert lessons == {"on": True, "contexts": 1, "examples": 3, "removed": 0}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no json", "holds no JSON"),
        ("[]", "doesn't say what was shown"),
        ("{}", "doesn't say what was shown"),
        ('{"trace": {"entries": [{}]}}', "doesn't say what was shown"),
    ],
)
def test_what_shows_nothing_is_refused(db: Path, text: str, says: str) -> None:
    ran = run("context", "feedback", "--context", "-", "--used", "abcd", db=db, stdin=text)

    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_ids_are_those_of_the_context(db: Path) -> None:
    file, ids = shown(db, "assemble")
    unknown = run("context", "feedback", "--context", str(file), "--used", "ffffffff", db=db)
    short = run("context", "feedback", "--context", str(file), "--used", ids[0][:1], db=db)
    missing = run("context", "feedback", "--context", str(db.parent / "none.json"), "--used", ids[0], db=db)

    assert [ran.code for ran in (unknown, short, missing)] == [2, 2, 2]
    assert "isn't among the 3 that were shown" in unknown.err
    assert "too short" in short.err
    assert "can't be read" in missing.err
    assert json.loads(file.read_text(encoding="utf-8"))["trace"]["weights"] == {}

"""The objects that --json prints of a question: what was found, what stands in a context, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from commandline import fields, filled, printed

_FIXED = ("--now", "2020-06-01")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return filled(tmp_path)


def test_recall(db: Path) -> None:
    value = printed("recall", "ChromaDB", *_FIXED, db=db)

    assert list(value) == fields("`germane recall`")
    assert list(value["question"]) == fields("Question")
    assert [list(result) for result in value["results"]] == [fields("Result")]
    assert list(value["results"][0]["memory"]) == fields("Memory")
    assert value["question"] == snapshot(
        {
            "text": "ChromaDB",
            "cleaned": "ChromaDB",
            "terms": ["chromadb", "chroma", "db"],
            "when": None,
        }
    )
    assert [(result["score"], result["parts"]) for result in value["results"]] == snapshot(
        [(1.0, {"lexical": 1.0})]
    )
    assert (value["notes"], value["empty_reason"]) == snapshot(([], None))


def test_the_time_that_a_question_names(db: Path) -> None:
    question = printed("recall", "What was chosen in January 2020?", *_FIXED, db=db)["question"]

    assert question["when"] == snapshot(
        {"since": "2020-01-01T00:00:00+00:00", "until": "2020-02-01T00:00:00+00:00"}
    )


def test_recall_of_nothing(db: Path) -> None:
    assert printed("recall", "zeppelin", *_FIXED, db=db) == snapshot(
        {
            "question": {
                "text": "zeppelin",
                "cleaned": "zeppelin",
                "terms": ["zeppelin"],
                "when": None,
            },
            "results": [],
            "notes": [],
            "empty_reason": "nothing_relevant",
            "now": "2020-06-01T00:00:00+00:00",
            "text": "",
            "tokens": 0,
            "weights": {},
            "entered": None,
        }
    )


def test_assemble(db: Path) -> None:
    value = printed("assemble", "Which Postgres?", "--plan", "relevance", "--budget", "30", *_FIXED, db=db)

    assert list(value) == fields("`germane assemble`")
    assert list(value["items"][0]) == fields("Item")
    assert list(value["trace"]) == fields("Trace")
    assert (value["text"], value["tokens"]) == snapshot(
        (
            """\
## Relevant Memories
- Postgres runs on port 5433. (2020-02-01)\
""",
            22,
        )
    )
    assert [
        (item["section"], item["level"], item["tokens"], item["text"]) for item in value["items"]
    ] == snapshot([("memories", "full", 18, "- Postgres runs on port 5433. (2020-02-01)")])


def test_explain(db: Path) -> None:
    arguments = ("Which Postgres?", "--plan", "relevance", "--budget", "30", *_FIXED)
    value = printed("context", "explain", *arguments, db=db)
    trace = value["trace"]
    assert list(value) == fields("`germane context explain`")
    assert [list(section) for section in trace["sections"]] == [fields("Section")]
    assert [list(entry) for entry in trace["entries"]] == [fields("Entry"), fields("Entry")]
    for entry in trace["entries"]:
        # Both are rounded to six digits.
        assert entry.pop("score") == pytest.approx(sum(entry.pop("parts").values()), abs=2e-6)
        assert entry.pop("trust") == "agent"
    assert trace["entries"] == snapshot(
        [
            {
                "id": "<id 1>",
                "version": 1,
                "agent": "default",
                "kind": "fact",
                "scope": "global",
                "created_at": "2020-02-01T00:00:00+00:00",
                "source": None,
                "section": "memories",
                "label": "Postgres runs on port 5433.",
                "included": True,
                "level": "full",
                "reason": None,
                "tokens": 18,
                "short_by": 0,
            },
            {
                "id": "<id 2>",
                "version": 1,
                "agent": "default",
                "kind": "decision",
                "scope": "global",
                "created_at": "2020-01-01T00:00:00+00:00",
                "source": None,
                "section": "memories",
                "label": "Chose Postgres over ChromaDB [success, 0.85 confidence]",
                "included": False,
                "level": None,
                "reason": "over_budget",
                "tokens": 26,
                "short_by": 19,
            },
        ]
    )
    assert trace["sections"] == snapshot(
        [
            {
                "name": "memories",
                "heading": "## Relevant Memories",
                "share": 30,
                "used": 23,
                "flowed": 0,
                "included": 1,
                "excluded": 1,
            }
        ]
    )


def test_what_an_account_says_of_the_question(db: Path) -> None:
    trace = printed(
        "context", "explain", "Which Postgres?", "--budget", "0", "--plan", "relevance", *_FIXED, db=db
    )["trace"]

    assert (trace["plan"], trace["budget"], trace["counter"], trace["now"]) == snapshot(
        ("relevance", 0, "o200k", "2020-06-01T00:00:00+00:00")
    )
    assert (trace["question"], trace["notes"], trace["empty_reason"]) == snapshot(
        (
            {
                "text": "Which Postgres?",
                "cleaned": "Which Postgres?",
                "terms": ["postgr"],
                "when": None,
            },
            [],
            "over_budget",
        )
    )


def test_a_note(db: Path) -> None:
    value = printed("assemble", "", "--plan", "relevance", *_FIXED, db=db)

    assert [list(note) for note in value["trace"]["notes"]] == [fields("Note")]
    assert value["trace"]["notes"] == snapshot(
        [
            {
                "code": "recency",
                "text": "The question names nothing to look for, so the newest memories come first.",
            }
        ]
    )

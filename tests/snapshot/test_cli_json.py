"""The objects that --json prints, as programs read them; the reference describes each of their fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from commandline import fields, filled, id_of, printed, run
from germane.stores import store_status

_FIXED = ("--now", "2020-06-01")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return filled(tmp_path)


def test_remember(tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    value = printed("remember", "It rains.", "--created-at", "2020-01-01", "--tag", "weather:rain", db=db)

    assert list(value) == fields("`germane remember`")
    assert list(value["memory"]) == fields("Memory")
    assert value == snapshot(
        {
            "created": True,
            "what": "new",
            "memory": {
                "id": "<id 1>",
                "agent": "default",
                "kind": "note",
                "content": "It rains.",
                "subject": None,
                "tags": ["weather:rain"],
                "scope": "global",
                "status": "active",
                "stage": None,
                "importance": 1.0,
                "confidence": 1.0,
                "outcome": None,
                "trust": "agent",
                "source": None,
                "pinned": False,
                "metadata": {},
                "created_at": "2020-01-01T00:00:00+00:00",
                "updated_at": "2020-01-01T00:00:00+00:00",
                "version_id": "<id 1>@1",
                "version": 1,
                "supersedes": None,
                "superseded_by": None,
                "seen_count": 1,
                "session": None,
                "key": None,
                "valid_from": None,
                "valid_until": None,
                "expires_at": None,
                "access_count": 0,
                "accessed_at": None,
            },
        }
    )


def test_revise(db: Path) -> None:
    value = printed("memory", "revise", id_of(db, "ChromaDB"), "--confidence", "0.9", db=db)

    assert list(value) == fields("`germane memory revise`")
    assert value == snapshot(
        {
            "memory": {
                "id": "<id 1>",
                "agent": "default",
                "kind": "decision",
                "content": "Chose Postgres over ChromaDB",
                "subject": "storage",
                "tags": ["storage:database"],
                "scope": "global",
                "status": "active",
                "stage": "reviewed",
                "importance": 7.0,
                "confidence": 0.9,
                "outcome": "success",
                "trust": "agent",
                "source": None,
                "pinned": False,
                "metadata": {"reasons": "One database fewer."},
                "created_at": "<moment>",
                "updated_at": "<moment>",
                "version_id": "<id 1>@2",
                "version": 2,
                "supersedes": "<id 1>@1",
                "superseded_by": None,
                "seen_count": 1,
                "session": None,
                "key": None,
                "valid_from": None,
                "valid_until": None,
                "expires_at": None,
                "access_count": 0,
                "accessed_at": None,
            }
        }
    )


def test_forget_and_restore(db: Path) -> None:
    forgotten = printed("memory", "forget", id_of(db, "5433"), db=db)
    restored = printed("memory", "restore", run("export", db=db).out.split('"id": "')[2][:36], db=db)

    assert list(forgotten) == list(restored) == fields("`germane memory forget`")
    assert (forgotten["memory"]["status"], restored["memory"]["status"]) == snapshot(("forgotten", "active"))


def test_purge(db: Path) -> None:
    value = printed("memory", "purge", id_of(db, "5433"), "--yes", db=db)

    assert list(value) == fields("`germane memory purge`")
    assert value == snapshot({"id": "<id 1>", "purged": 1})


def test_show(db: Path) -> None:
    value = printed("memory", "show", id_of(db, "ChromaDB"), db=db)

    assert list(value) == fields("`germane memory show`")
    assert list(value["renditions"]) == fields("Renditions")
    assert [list(version) for version in value["versions"]] == [fields("Version")]
    assert (value["renditions"], value["versions"]) == snapshot(
        (
            {
                "micro": {
                    "text": "Chose Postgres over ChromaDB [success, 0.85 confidence]",
                    "tokens": 17,
                },
                "summary": {
                    "text": "Chose Postgres over ChromaDB [success, 0.85 confidence] — One database fewer.",
                    "tokens": 22,
                },
                "full": {
                    "text": """\
Chose Postgres over ChromaDB [success, 0.85 confidence]
Reasons: One database fewer.\
""",
                    "tokens": 23,
                },
                "counter": "o200k",
            },
            [
                {
                    "id": "<id 1>@1",
                    "version": 1,
                    "status": "active",
                    "created_at": "2020-01-01T00:00:00+00:00",
                }
            ],
        )
    )


def test_history(db: Path) -> None:
    first = id_of(db, "ChromaDB")
    run("memory", "revise", first, "Chose Postgres for good", db=db)
    value = printed("memory", "history", first, db=db)

    assert list(value) == fields("`germane memory history`")
    assert [list(version) for version in value["versions"]] == [fields("Memory"), fields("Memory")]
    links = [(each["id"], each["supersedes"], each["superseded_by"]) for each in value["versions"]]
    assert links == snapshot([("<id 1>", None, "<id 1>@2"), ("<id 1>", "<id 1>@1", None)])
    assert value["diffs"] == snapshot(
        [
            """\
--- version 1
+++ version 2
@@ -1 +1 @@
-Chose Postgres over ChromaDB
+Chose Postgres for good
"""
        ]
    )


def test_import(db: Path, tmp_path: Path) -> None:
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"content": "From a line."}\n{"content": "x", "kind": "wish"}\n', encoding="utf-8")
    value = printed("import", str(lines), str(tmp_path / "none.md"), db=db)
    assert list(value) == fields("`germane import`")
    assert [list(source) for source in value["sources"]] == [fields("Source"), fields("Source")]
    value["sources"][0]["skipped"][0]["reason"] = value["sources"][0]["skipped"][0]["reason"][:20]
    assert value == snapshot(
        {
            "sources": [
                {
                    "source": "<folder>/more.jsonl",
                    "read": 2,
                    "created": 1,
                    "known": 0,
                    "revised": 0,
                    "gone": [],
                    "pruned": False,
                    "moved": [],
                    "skipped": [{"source": "test_import0/more.jsonl", "reason": "Unknown kind 'wish'."}],
                    "passed_over": [],
                    "unchecked": None,
                    "usage_records": 0,
                    "error": None,
                },
                {
                    "source": "<folder>/none.md",
                    "read": 0,
                    "created": 0,
                    "known": 0,
                    "revised": 0,
                    "gone": [],
                    "pruned": False,
                    "moved": [],
                    "skipped": [],
                    "passed_over": [],
                    "unchecked": None,
                    "usage_records": 0,
                    "error": "Can't import <folder>/none.md: there is no such file or folder.",
                },
            ],
            "read": 2,
            "created": 1,
            "known": 0,
            "revised": 0,
            "gone": 0,
            "skipped": 1,
            "errors": 1,
            "dry_run": False,
        }
    )


def test_export(db: Path, tmp_path: Path) -> None:
    value = printed("export", "--out", str(tmp_path / "all.jsonl"), db=db)

    assert list(value) == fields("`germane export`")
    assert value == snapshot({"out": "<folder>/all.jsonl", "written": 3})


def test_stats(db: Path) -> None:
    value = printed("db", "stats", db=db)

    assert list(value) == fields("`germane db stats`")
    assert value.pop("bytes") > 0
    assert value.pop("newest").startswith("2020-03")
    assert value == snapshot(
        {
            "location": "<folder>/agent.db",
            "schema_version": store_status(db).schema_version,
            "agent": "default",
            "memories": 3,
            "by_kind": {"decision": 1, "fact": 1, "note": 1},
            "by_status": {"active": 3},
            "tokens": 43,
            "vectors": 0,
            "pending": 0,
            "embedding": None,
            "oldest": "2020-01-01T00:00:00+00:00",
            "language": "english",
            "tokens_by_scope": {"global": 43},
            "large": [],
        }
    )


def test_doctor(db: Path) -> None:
    value = printed("db", "doctor", db=db)

    assert list(value) == fields("`germane db doctor`")
    assert value == snapshot({"healthy": True, "findings": [], "repair": None})


def test_eval(tmp_path: Path) -> None:
    file = tmp_path / "dialogue.json"
    conversation = {
        "speaker_a": "Ana",
        "speaker_b": "Tom",
        "session_1": [{"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a beagle named Biscuit."}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
    }
    questions = [{"question": "Which dog?", "answer": "a beagle", "evidence": ["D1:1"], "category": 1}]
    file.write_text(
        json.dumps([{"sample_id": "one", "qa": questions, "conversation": conversation}]), encoding="utf-8"
    )
    value = run(
        "eval", "run", str(file), "--budgets", "100", "--compare", "germane", "lexical", "--json"
    ).json()

    assert list(value) == fields("`germane eval run`")
    assert sorted(value["results"][0]) == sorted(fields("Figures of an evaluation"))
    assert list(value["comparisons"][0]) == fields("Difference")

    assert list(value["per_question"][0]) == fields("Question of an evaluation")

    data = run("eval", "kinds", str(tmp_path), "--budgets", "100", "--peers", "bm25", "--json").json()

    assert list(data) == fields("`germane eval kinds`")
    assert list(data["kinds"][0]) == ["name", *fields("`germane eval run`")[:-1]]
    assert list(data["kinds"][0]["comparisons"][0]) == fields("Difference")

    value = run("eval", "losses", str(file), "--budget", "5", "--question", "1", "--json").json()

    assert list(value) == fields("`germane eval losses`")
    assert list(value["questions"][0]) == fields("Loss")
    assert list(value["questions"][0]["lost"][0]) == fields("Lost evidence")


def test_demo(tmp_path: Path) -> None:
    value = run("demo", "--budgets", "500", "--project", str(tmp_path), "--json").json()

    assert list(value) == fields("`germane demo`")
    assert [list(context) for context in value["contexts"]] == [fields("`germane assemble`")]
    assert (value["loaded"], value["memories"], value["question"], value["project"]) == snapshot(
        (315, 315, "Should we use Redis for caching in Newton?", None)
    )


def test_an_error(db: Path) -> None:
    value = printed("memory", "show", "0123-none", db=db)

    assert list(value["error"])[:2] == fields("Errors")
    assert value["error"].pop("message").startswith("No memory '0123-none' belongs to agent 'default'.")
    assert value == snapshot({"error": {"type": "NotFound", "memory_id": "0123-none", "agent": "default"}})

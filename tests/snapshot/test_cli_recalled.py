"""`recall --ranker` and `--into`, working sets of spaces, and logs that are followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import germane
from commandline import fields, filled, id_of, printed, run

_AT = ("--now", "2020-06-01")
ADA, BEN = ("--agent", "ada"), ("--agent", "ben")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return filled(tmp_path)


def test_the_hybrid_ranker_shows_its_parts(db: Path) -> None:
    value = printed("recall", "the storage database", "--ranker", "hybrid", *_AT, db=db)
    assert list(value) == fields("`germane recall`")
    assert value["entered"] is None
    assert [(one["score"], one["parts"]) for one in value["results"]] == snapshot(
        [(8.0, {"meaning": 5.0, "tags": 3.0, "recency": 0.0, "access": 0.0})]
    )
    assert value["results"][0]["fused"] == snapshot(
        {"score": 0.032787, "sources": {"lexical": 0.016393, "tags": 0.016393}}
    )
    shown = run("recall", "the storage database", "--ranker", "hybrid", *_AT, db=db).out
    assert "; fused 0.0328 of lexical, tags" in shown
    assert value["notes"] == snapshot(
        [
            {
                "code": "ranker",
                "text": (
                    "Ranked by the ranker hybrid, from 0 to 10: meaning 0.5, tags 0.3, recency 0.1, "
                    "access 0.1. Tags requested: storage, storage:database."
                ),
            }
        ]
    )
    ran = run("recall", "database", "--ranker", "best", db=db)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == snapshot("germane: Unknown ranker 'best'. Known rankers: relevance, hybrid.\n")


def test_what_is_recalled_enters_a_set(db: Path) -> None:
    run("working", "add", id_of(db, "日本語"), "--set", "plan", "--max-tokens", "18", db=db)
    value = printed("recall", "Postgres", "--into", "plan", db=db)
    entered = value["entered"]
    assert list(entered) == fields("Entered")
    assert [one["memory"]["id"] for one in entered["items"]] == [value["results"][0]["memory"]["id"]]
    assert [one["recalled"] for one in entered["items"]] == [True]
    assert entered["left_out"] == [value["results"][1]["memory"]["id"]]
    assert [one["id"] for one in entered["eviction"]["evicted"]] == ["<id 3>"]
    assert entered["set"]["count"] == 1
    line = run("recall", "Postgres", "--into", "plan", db=db).out.splitlines()[-1]
    assert line == "Entered 0, touched 1, 1 didn't fit. The set holds 9 of 18 tokens (50%)."


def test_what_is_recalled_from_a_space_enters_a_set_of_the_space(tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    run("space", "create", "team", *ADA, db=db)
    run("space", "join", "team", *BEN, db=db)
    run("remember", "The demo is on Tuesday.", "--space", "team", *ADA, db=db)
    assert printed("recall", "demo", "--space", "team", "--into", "plan", *ADA, db=db)["entered"][
        "set"
    ] == snapshot(
        {
            "name": "plan",
            "owner": "space:team",
            "max_tokens": 128000,
            "tokens": 6,
            "utilization": 4.7e-05,
            "count": 1,
        }
    )
    shown = printed("working", "show", "--set", "plan", "--space", "team", *BEN, db=db)
    assert [one["memory"]["content"] for one in shown["items"]] == ["The demo is on Tuesday."]
    named = str(
        run("recall", "demo", "--space", "team", "--json", *BEN, db=db).json()["results"][0]["memory"]["id"]
    )
    in_plan = ("--set", "plan", "--space", "team", *BEN)
    for command in (("touch", named[-8:]), ("pin", named), ("unpin", named), ("evict", "1"), ("add", named)):
        assert run("working", *command, *in_plan, db=db).code == 0, command
    assert run("working", "assemble", *in_plan, db=db).out == "The demo is on Tuesday.\n"
    assert run("working", "remove", named, *in_plan, db=db).code == 0
    assert run("working", "clear", *in_plan, db=db).code == 0
    events = printed("working", "events", *in_plan, db=db)["events"]
    assert [(one["event"], one["by"]) for one in events] == snapshot(
        [
            ("add", "ada"),
            ("touch", "ben"),
            ("pin", "ben"),
            ("unpin", "ben"),
            ("evict", "ben"),
            ("add", "ben"),
            ("remove", "ben"),
        ]
    )
    assert run("working", "show", "--space", "team", "--agent", "cleo", db=db).code == 2
    assert printed("working", "show", *BEN, db=db)["set"]["owner"] == "ben"


def test_a_followed_log_is_a_line_for_each_event(tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    run("space", "create", "team", *ADA, db=db)
    run("remember", "The demo is on Tuesday.", "--space", "team", *ADA, db=db)
    run("recall", "demo", "--space", "team", "--into", "default", *ADA, db=db)
    following = ("--follow", "--after", "1", "--limit", "2")
    lines = run("space", "events", "team", *following, "--json", *ADA, db=db).out.splitlines()
    assert [list(json.loads(line)) for line in lines] == [fields("Space event")] * 2
    assert [json.loads(line)["what"] for line in lines] == ["remember", "add"]
    assert run("space", "events", "team", *following, *ADA, db=db).out.split()[:3] == ["2", "remember", "ada"]
    working = ("working", "events", "--space", "team", "--follow", "--after", "0", "--limit", "1")
    moves = run(*working, "--json", *ADA, db=db)
    assert list(json.loads(moves.out)) == fields("Event")
    assert run("space", "events", "team", "--follow", "--limit", "0", *ADA, db=db).out == ""
    assert run("space", "events", "team", "--follow", *BEN, db=db).code == 2


def test_the_trace_says_whose_each_memory_is(tmp_path: Path) -> None:
    with germane.open(tmp_path / "agent.db", agent="ada", embedder=None) as engine:
        team = engine.space("team", create=True)
        team.remember("The demo is on Tuesday.")
        engine.remember("The projector for the demo is broken.")
        team.working_set().add_recalled(team.recall("demo"))
    db = tmp_path / "agent.db"
    shape = run("assemble", "demo", "--with-space", "team", "--json", *ADA, db=db).json()["trace"]
    of_set = run("working", "assemble", "--space", "team", "--json", *ADA, db=db).json()["trace"]
    assert list(shape["entries"][0]) == fields("Entry")
    assert {one["agent"] for one in shape["entries"]} == {"ada", "space:team"}
    assert [one["agent"] for one in of_set["entries"]] == ["space:team"]

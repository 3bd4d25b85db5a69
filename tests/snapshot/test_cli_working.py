"""`germane working`: what it prints for people, and the objects of its --json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from commandline import fields, filled, id_of, printed, run


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return filled(tmp_path)


def short(value: Any) -> Any:
    """The value with each memory as its id alone; test_cli_json shows whole ones."""
    if isinstance(value, dict):
        return {key: each["id"] if key == "memory" else short(each) for key, each in value.items()}
    return [short(each) for each in value] if isinstance(value, list) else value


def ids(db: Path) -> tuple[str, str, str]:
    return id_of(db, "ChromaDB"), id_of(db, "port"), id_of(db, "日本語")


def test_adding_names_what_was_evicted(db: Path) -> None:
    chroma, port, japanese = ids(db)
    run("working", "add", port, chroma, "--max-tokens", "34", db=db)
    value = printed("working", "add", japanese, "--pinned", db=db)
    assert list(value) == fields("`germane working add`")
    assert list(value["items"][0]) == fields("WorkingItem, Added")
    assert list(value["eviction"]) == fields("Eviction")
    assert list(value["eviction"]["evicted"][0]) == fields("Evicted")
    assert list(value["set"]) == fields("Working set")
    assert short(value) == snapshot(
        {
            "items": [
                {
                    "memory": "<id 1>",
                    "tokens": 11,
                    "order": 5,
                    "touches": 0,
                    "pinned": True,
                    "recalled": False,
                    "entered_at": "<moment>",
                    "touched_at": "<moment>",
                    "new": True,
                }
            ],
            "eviction": {
                "policy": "importance",
                "needed": 9,
                "freed": 9,
                "shortfall": 0,
                "evicted": [{"id": "<id 2>", "tokens": 9, "value": 1.0}],
                "in_the_way": [],
            },
            "set": {
                "name": "default",
                "owner": "default",
                "max_tokens": 34,
                "tokens": 34,
                "utilization": 1.0,
                "count": 2,
            },
        }
    )


def test_the_content_is_shown(db: Path) -> None:
    chroma, port, _ = ids(db)
    run("working", "add", chroma, port, db=db)
    run("working", "touch", chroma, db=db)
    run("working", "pin", port, db=db)
    value = printed("working", "show", db=db)
    assert list(value) == fields("`germane working show`")
    assert list(value["items"][0]) == [name for name in fields("WorkingItem, Added") if name != "new"]
    assert short(value) == snapshot(
        {
            "set": {
                "name": "default",
                "owner": "default",
                "max_tokens": 128000,
                "tokens": 32,
                "utilization": 0.00025,
                "count": 2,
            },
            "items": [
                {
                    "memory": "<id 1>",
                    "tokens": 9,
                    "order": 2,
                    "touches": 0,
                    "pinned": True,
                    "recalled": False,
                    "entered_at": "<moment>",
                    "touched_at": "<moment>",
                },
                {
                    "memory": "<id 2>",
                    "tokens": 23,
                    "order": 3,
                    "touches": 1,
                    "pinned": False,
                    "recalled": False,
                    "entered_at": "<moment>",
                    "touched_at": "<moment>",
                },
            ],
        }
    )


def test_the_content_is_shown_to_people(db: Path) -> None:
    chroma, port, japanese = ids(db)
    run("working", "add", chroma, port, db=db)
    run("working", "touch", chroma, db=db)
    run("working", "pin", port, db=db)
    out = run("working", "show", db=db).out
    for memory_id, name in ((chroma, "CHROMA"), (port, "PORT")):
        out = out.replace(memory_id[-8:], f"{name:<8}")
    assert out == snapshot("""\
The set holds 32 of 128,000 tokens (0%).
ID        IMPORTANCE  TOKENS  TOUCHES          MEMORY
PORT               1       9        0  pinned  Postgres runs on port 5433.
CHROMA             7      23        1          Chose Postgres over ChromaDB [success, 0.85 confidence]
""")
    assert run("working", "show", "--set", "other", db=db).out == snapshot(
        "The set holds 0 of 128,000 tokens (0%).\n"
    )
    assert japanese[-8:] not in out


@pytest.mark.parametrize("command", ["touch", "pin", "unpin", "remove"])
def test_a_command_on_one_memory_shows_what_became_of_it(db: Path, command: str) -> None:
    chroma, *_ = ids(db)
    run("working", "add", chroma, db=db)
    value = printed("working", command, chroma[-6:], db=db)
    assert list(value) == fields(f"`germane working {command}`")
    assert (value["item"] is None) == (command == "remove")
    assert value["set"]["count"] == (0 if command == "remove" else 1)
    text = run("working", "add", chroma, db=db).out + run("working", command, chroma, db=db).out
    assert chroma[-8:] in text


def test_evicting(db: Path) -> None:
    chroma, port, japanese = ids(db)
    run("working", "add", chroma, port, db=db)
    run("working", "add", japanese, "--pinned", db=db)
    value = printed("working", "evict", "5", db=db)
    assert list(value) == fields("`germane working evict`")
    assert short(value) == snapshot(
        {
            "eviction": {
                "policy": "importance",
                "needed": 5,
                "freed": 9,
                "shortfall": 0,
                "evicted": [{"id": "<id 1>", "tokens": 9, "value": 1.0}],
                "in_the_way": [],
            },
            "set": {
                "name": "default",
                "owner": "default",
                "max_tokens": 128000,
                "tokens": 34,
                "utilization": 0.000266,
                "count": 2,
            },
        }
    )


def test_evicting_and_clearing_are_reported(db: Path) -> None:
    chroma, port, japanese = ids(db)
    run("working", "add", chroma, db=db)
    run("working", "add", japanese, "--pinned", db=db)
    evicted = run("working", "evict", "1000", db=db)
    assert evicted.out.replace(chroma[-8:], "CHROMA") == snapshot(
        "Evicted CHROMA: 23 tokens freed. The set holds 11 of 128,000 tokens (0%).\n"
    )
    assert evicted.err == snapshot(
        "977 of 1,000 tokens can't be freed: only pinned items, or none, are left.\n"
    )
    assert run("working", "clear", "--keep-pinned", db=db).out == snapshot(
        "Removed 0. The set holds 11 of 128,000 tokens (0%).\n"
    )
    value = printed("working", "clear", db=db)
    assert list(value) == fields("`germane working clear`")
    assert value == snapshot(
        {
            "left": 1,
            "set": {
                "name": "default",
                "owner": "default",
                "max_tokens": 128000,
                "tokens": 0,
                "utilization": 0.0,
                "count": 0,
            },
        }
    )
    assert port[-8:] not in evicted.out


def test_assembling(db: Path) -> None:
    chroma, port, japanese = ids(db)
    run("working", "add", chroma, port, japanese, db=db)
    at = ("--now", "2020-06-01")
    assert run("working", "assemble", *at, db=db).out == snapshot("""\
Chose Postgres over ChromaDB [success, 0.85 confidence]
Reasons: One database fewer.

日本語の検索 [bold]works[/bold].

Postgres runs on port 5433.
""")
    reverse = run("working", "assemble", "--strategy", "important", "--order", "reverse", *at, db=db)
    assert reverse.out == snapshot("""\
Postgres runs on port 5433.

日本語の検索 [bold]works[/bold].

Chose Postgres over ChromaDB [success, 0.85 confidence]
Reasons: One database fewer.
""")
    value = printed("working", "assemble", "Postgres port", "--budget", "12", *at, db=db)
    assert list(value) == fields("`germane working assemble`")
    assert [(one["included"], one["reason"]) for one in value["trace"]["entries"]] == snapshot(
        [(False, "over_budget"), (True, None), (False, "over_budget")]
    )
    explained = run(
        "working", "assemble", "--explain", "--strategy", "smart", "why did we choose", *at, db=db
    )
    for memory_id, name in ((chroma, "CHROMA"), (port, "PORT"), (japanese, "JAPANESE")):
        explained.out = explained.out.replace(memory_id[-8:], f"{name:<8}")
    assert explained.out == snapshot("""\
Context     43 of 128,000 tokens (0%), counted by o200k
Plan        working, as of 2020-06-01 00:00 UTC
Question    why did we choose
Looked for  choos

Note  Ranked by the strategy important: "why did we", "choose" spoke for what lasts.

SECTION    share  flowed  used  in  out
held     128,000            43   3    0  █░░░░░░░░░░░░░░░░░░░░░░░

3 of 3 candidates are in.
IN    level  tokens  score
held  full       23   0.50
  CHROMA    Chose Postgres over ChromaDB [success, 0.85 confidence]
  importance 7.00, relevance 0.00, strategy 1.00
held  full       11   0.07
  JAPANESE  日本語の検索 [bold]works[/bold].
  importance 1.00, relevance 0.00, strategy 0.14
held  full        9   0.07
  PORT      Postgres runs on port 5433.
  importance 1.00, relevance 0.00, strategy 0.14

""")


def test_events_are_reported(db: Path) -> None:
    chroma, port, _ = ids(db)
    run("working", "add", chroma, port, db=db)
    run("working", "remove", port, db=db)
    value = printed("working", "events", "--after", "1", db=db)
    assert list(value) == fields("`germane working events`")
    assert list(value["events"][0]) == fields("Event")
    assert value == snapshot(
        {
            "events": [
                {
                    "number": 2,
                    "set": "default",
                    "event": "add",
                    "id": "<id 1>",
                    "former_id": None,
                    "by": "default",
                    "at": "<moment>",
                },
                {
                    "number": 3,
                    "set": "default",
                    "event": "remove",
                    "id": "<id 1>",
                    "former_id": None,
                    "by": "default",
                    "at": "<moment>",
                },
            ]
        }
    )
    lines = run("working", "events", "--limit", "1", db=db).out.splitlines()
    assert [line.split()[:1] for line in lines] == snapshot([["NUMBER"], ["3"]])


def test_mistakes_are_answered(db: Path) -> None:
    chroma, port, _ = ids(db)
    run("working", "add", port, "--max-tokens", "12", "--pinned", db=db)
    for arguments in (
        ("touch", chroma),
        ("add", chroma),
        ("add", chroma, "--policy", "oldest"),
        ("assemble", "--strategy", "best"),
        ("assemble", "--overflow", "cut"),
        ("assemble", "--order", "worst"),
        ("assemble", "--decay-hours", "0"),
        ("assemble", "--basis", "birth"),
        ("assemble", "--budget", "-1"),
    ):
        ran = run("working", *arguments, db=db)
        assert (ran.code, ran.out) == (2, ""), arguments
    error = run("working", "touch", chroma, "--json", db=db)
    assert error.json()["error"]["type"] == "NotInWorkingSet"
    assert run("working", "show", db=db.with_name("nowhere.db")).code == 3

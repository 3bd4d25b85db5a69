# ruff: noqa: E501 - what is printed is shown whole.
"""What the commands about the lives of memories print, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from commandline import fields, printed, run


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "agent.db"
    run("remember", "The cache lives in Redis.", "--kind", "fact", "--created-at", "2020-01-01", db=path)
    run("remember", "the cache lives in redis", "--kind", "fact", "--created-at", "2020-01-02", db=path)
    run("remember", "Met Ana about billing.", "--kind", "episode", "--created-at", "2020-01-03", db=path)
    return path


def first(db: Path, kind: str = "fact") -> str:
    """The id of the newest memory of a kind."""
    return str(run("recall", "", "--kind", kind, "--json", db=db).json()["results"][0]["memory"]["id"])


def test_confirm_and_contradict_and_retire(db: Path) -> None:
    fact = first(db)
    confirmed = printed("memory", "confirm", fact, "--core", db=db)
    assert list(confirmed) == fields(
        "`germane memory confirm`, `germane memory contradict`, `germane memory review`, `germane memory record-trigger`, `germane memory retire`"
    )
    assert list(confirmed["memory"]) == fields("Memory")
    assert confirmed["memory"]["stage"] == "core"
    assert printed("memory", "contradict", fact, db=db)["memory"]["confidence"] == 0.8
    retired = run("memory", "retire", fact, db=db)
    assert retired.out.startswith("Inactive: ")
    assert run("memory", "confirm", fact, db=db).code == 2


def test_events(db: Path) -> None:
    fact = first(db)
    run("memory", "confirm", fact, db=db)
    value = printed("memory", "events", fact, db=db)
    assert list(value[0]) == fields("Life event")
    assert value == snapshot(
        [
            {
                "number": 1,
                "memory_id": "<id 1>",
                "version": 1,
                "sign": "confirm",
                "before": "new",
                "after": "confirmed",
                "cause": "asked",
                "by": "default",
                "at": "<moment>",
                "other": None,
            }
        ]
    )
    assert run("memory", "events", first(db, "episode"), db=db).out == "It has no events yet.\n"


def test_maintain(db: Path) -> None:
    plan = printed("db", "maintain", "--dry-run", db=db)
    assert list(plan) == fields("`germane db maintain`")
    assert list(plan["steps"][0]) == fields("Step of upkeep")
    assert plan == snapshot(
        {
            "dry_run": True,
            "steps": [
                {
                    "task": "age",
                    "memory_id": "<id 1>",
                    "before": "active",
                    "after": "archived",
                    "other": None,
                },
                {
                    "task": "merge",
                    "memory_id": "<id 2>",
                    "before": "new",
                    "after": "superseded",
                    "other": "<id 3>",
                },
            ],
            "done": 0,
            "flagged": [],
        }
    )
    assert run("memory", "events", db=db).out == "There are no events yet.\n"
    assert run("db", "maintain", db=db).out.splitlines()[-1] == "2 of 2 steps done."
    assert run("db", "maintain", db=db).out == "0 of 0 steps done.\n"


def test_what_is_hardly_worth_keeping_is_refused_and_can_be_forced(db: Path) -> None:
    refused = run("remember", "Thanks, sounds good!", db=db)
    assert (refused.code, refused.err) == snapshot(
        (
            2,
            "germane: 'Thanks, sounds good!' isn't worth keeping (empty talk), and nothing was stored. Remember it all the same with force=True (--force on the command line).\n",
        )
    )
    assert run("remember", "Thanks, sounds good!", "--force", db=db).code == 0


def test_reconcile(db: Path) -> None:
    again = run("remember", "The cache lives in REDIS", "--kind", "fact", "--reconcile", db=db)
    assert again.out.startswith("Known already")


def test_a_decision_a_procedure_and_a_constraint(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    run("remember", "Use Postgres", "--kind", "decision", "--confidence", "0.8", db=path)
    reviewed = printed(
        "memory", "review", first(path, "decision"), "success", "--result", "One backup.", db=path
    )
    assert (reviewed["memory"]["stage"], reviewed["memory"]["outcome"]) == ("reviewed", "success")
    run("remember", "Do not push to main", "--kind", "constraint", "--meta", "action=warn", db=path)
    constraint = first(path, "constraint")
    assert (
        printed("memory", "record-trigger", constraint, "--false-positive", db=path)["memory"]["stage"]
        == "active"
    )

"""Slips on the command line: another case finds what was meant, and a near name is suggested."""

from __future__ import annotations

from pathlib import Path

import pytest

import germane
from commandline import run
from germane import GLOBAL, InvalidInput, Scope, UnknownKind


@pytest.mark.parametrize("scope", ["task:T-42", "Task:T-42", "TASK:T-42"])
def test_a_scope_is_seen_whatever_its_case(tmp_path: Path, scope: str) -> None:
    db = tmp_path / "a.db"
    run("remember", "The limit is five retries.", "--scope", scope, db=db)
    shown = run(
        "context", "project", "--task", "T-42", "--budget", "500", "--no-git", "--root", str(tmp_path), db=db
    )
    assert "five retries" in shown.out
    assert "five retries" in run("memory", "list", "--scope", scope, db=db).out


def test_the_names_that_plans_know_are_read_in_any_case() -> None:
    assert Scope.parse("Task:T-42") == Scope(name="task", value="T-42")
    assert Scope.parse(" PATH:Src/Auth") == Scope(name="path", value="Src/Auth")
    assert Scope.parse("Global") == GLOBAL
    assert Scope.parse("Team:Core") == Scope(name="Team", value="Core")
    with pytest.raises(InvalidInput, match="Did you mean 'task'"):
        Scope.parse("Tasks:T-42")


@pytest.mark.parametrize(
    ("kind", "meant"), [("ADR", "adr"), ("Fact", "fact"), ("facts", "fact"), ("desicion", "decision")]
)
def test_an_unknown_kind_names_the_nearest(tmp_path: Path, kind: str, meant: str) -> None:
    failed = run("remember", "x", "--kind", kind, db=tmp_path / "a.db")
    assert failed.code != 0
    assert f"did you mean '{meant}'" in failed.err.lower()
    assert "register" not in failed.err.lower()


def test_a_kind_that_is_near_to_none_may_be_registered() -> None:
    with germane.open(":memory:") as engine, pytest.raises(UnknownKind, match="Register your own"):
        engine.remember("x", kind="wish")

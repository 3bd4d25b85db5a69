"""The demo: the same on every day and in every run, and about the project it is run in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import germane
from commandline import run
from germane.demo import DEMO_NOW, demo_drafts, demo_questions, load_demo


def test_loading_twice_adds_nothing() -> None:
    with germane.open(":memory:", clock=lambda: DEMO_NOW) as engine:
        first, second = load_demo(engine), load_demo(engine)

    assert (first, second) == (len(demo_drafts()), 0)


def test_every_question_expects_records_that_are_there() -> None:
    questions = demo_questions()

    assert len(questions) > 5
    assert all(1 <= line <= len(demo_drafts()) for question in questions for line in question.expect)


def test_the_demo_keeps_each_budget_and_says_the_same_again(tmp_path: Path) -> None:
    db = tmp_path / "demo.db"
    arguments = ("demo", "--db", str(db), "--project", str(tmp_path), "--json")

    first, second = run(*arguments).json(), run(*arguments).json()

    assert [context["trace"]["budget"] for context in first["contexts"]] == [8000, 2000, 500]
    assert all(context["tokens"] <= context["trace"]["budget"] for context in first["contexts"])
    assert "Redis" in first["contexts"][1]["text"]
    # What blocks stands in full, whatever the budget.
    assert first["contexts"][2]["text"].count("- **Never:** ") == 7
    assert (second["loaded"], second["contexts"]) == (0, first["contexts"])
    assert first["project"] is None


@pytest.mark.parametrize("budgets", ["8000,100", "9223372036854775808"])
def test_a_budget_that_is_too_small_or_too_large_makes_no_database(tmp_path: Path, budgets: str) -> None:
    db = tmp_path / "demo.db"

    ran = run("demo", "--db", str(db), "--budgets", budgets)

    assert (ran.code, db.exists()) == (2, False)
    assert f"--budgets='{budgets}' is no list of numbers from 500 to 9223372036854775807" in ran.err


def test_it_shows_text_bars_and_explanation(tmp_path: Path) -> None:
    ran = run("demo", "--project", str(tmp_path), "--budgets", "1000")

    assert ran.code == 0
    assert "## Relevant Past Decisions" in ran.out
    assert "█" in ran.out
    assert "OUT: over_budget" in ran.out
    assert "\x1b" not in ran.out


def test_a_project_is_queried_from_its_docs_and_its_history(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tokens.md").write_text(
        "# Tokens\n\nTokens are counted exactly and offline.\n", encoding="utf-8"
    )
    _commit(tmp_path, "Count tokens before anything is rendered")

    ran = run("demo", "--project", str(tmp_path), "--budgets", "500", "--json").json()

    project = ran["project"]
    assert [one["read"] for one in project["imported"]] == [1, 1]
    assert "exactly and offline" in project["context"]["text"]
    assert "before anything is rendered" in project["context"]["text"]
    printed = run(
        "demo", "--project", str(tmp_path), "--budgets", "500", "--question", "What is counted?"
    ).out
    assert '"What is counted?"' in printed


def _commit(folder: Path, message: str) -> None:
    who = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    for arguments in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", message)):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)  # noqa: S607 - The git on the PATH.


def test_a_project_that_cannot_be_read_without_an_extra_is_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tokens.md").write_text("# Tokens\n\nCounted exactly.\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "detect_secrets", None)

    ran = run("demo", "--project", str(tmp_path), "--budgets", "500", "--json").json()

    assert "pip install 'germane[project]'" in ran["project"]["imported"][0]["error"]

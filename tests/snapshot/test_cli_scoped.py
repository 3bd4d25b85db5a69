"""What `germane context project` and `germane context outcome` print, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from commandline import fields, masked, run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "shop"
    (root / "src" / "auth").mkdir(parents=True)
    (root / "germane.toml").write_text(
        "[scoped.task_types.bugfix]\nshares = { global = 0.2, task = 0.2, path = 0.6 }\n"
    )
    monkeypatch.chdir(root)
    db = tmp_path / "team.db"
    made = ("--created-at", "2020-01-01")
    run("remember", "Sign in with tokens.", "--kind", "adr", "--meta", 'paths=["/src/auth/"]', *made, db=db)
    run("remember", "Use one provider.", "--kind", "adr", *made, db=db)
    run("remember", "Rotate the keys.", "--kind", "iplan", "--scope", "task:T-42", *made, db=db)
    run(
        "remember",
        "login.py signs in.",
        "--kind",
        "module",
        "--scope",
        "path:src/auth/login.py",
        *made,
        db=db,
    )
    return root


def test_the_context_of_a_task_and_a_path(project: Path) -> None:
    ran = run(
        "context", "project", "--task", "T-42", "--path", "src/auth/login.py", db=project.parent / "team.db"
    )
    assert (ran.code, ran.out) == snapshot(
        (
            0,
            """\
## What the Project Knows
- Sign in with tokens.
- Use one provider.

## About This Task
- Rotate the keys.

## About These Paths
- login.py signs in.
""",
        )
    )


def test_the_json_of_a_context_is_that_of_an_assembly(project: Path) -> None:
    db = project.parent / "team.db"
    value = masked(
        run("context", "project", "--path", "src/auth", "--now", "2020-02-01", "--json", db=db).json(), db=db
    )
    assert list(value) == fields("`germane assemble`")
    assert [(entry["section"], entry["parts"]) for entry in value["trace"]["entries"]] == snapshot(
        [("global", {"kind": 80.0, "path": 1.0}), ("global", {"kind": 80.0})]
    )


def test_shares_follow_the_type_of_the_task(project: Path) -> None:
    db = project.parent / "team.db"
    command = ("context", "project", "--task", "T-42", "--budget", "1000", "--json")
    usual = run(*command, db=db).json()
    bugfix = run(*command, "--task-type", "bugfix", db=db).json()
    assert [
        [section["share"] for section in value["trace"]["sections"]] for value in (usual, bugfix)
    ] == snapshot([[500, 300, 200], [200, 200, 600]])


def test_a_file_for_agents_is_written_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = project.parent / "team.db"
    (project / "AGENTS.md").write_text("# Ours\n")
    monkeypatch.chdir(project / "src")
    first = run("context", "project", "--path", "auth/login.py", "--write", "../AGENTS.md", db=db)
    assert (first.out, first.err.splitlines()[0]) == ("", "Wrote ../AGENTS.md.")
    written = (project / "AGENTS.md").read_text()
    printed = run("context", "project", "--path", "auth/login.py", "--format", "agents-md", db=db).out
    assert written == f"# Ours\n\n{printed}"
    again = run("context", "project", "--path", "auth/login.py", "--write", "../AGENTS.md", db=db)
    assert again.err.splitlines()[0] == "Nothing to change in ../AGENTS.md."
    assert (project / "AGENTS.md").read_text() == written


def test_an_outcome_counts_once_for_its_context(project: Path) -> None:
    db = project.parent / "team.db"
    shown = run("context", "project", "--json", db=db).out
    value = run("context", "outcome", "success", "--context", "-", "--json", db=db, stdin=shown).json()
    assert list(value) == fields("`germane context outcome`")
    assert value == snapshot({"outcome": "success", "memories": 2, "updated": 2})
    assert run("context", "outcome", "success", "--context", "-", db=db, stdin=shown).out == snapshot(
        "Noted success for 2 memories; known already: 2.\n"
    )
    named = json.loads(shown)["items"][0]["id"]
    ran = run("context", "outcome", "failure", "--memory", named[-8:], "--context", "-", db=db, stdin=shown)
    assert ran.out == snapshot("Noted failure for 1 memory.\n")
    assert "outcome" in run("context", "project", "--explain", db=db).out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--path", "../elsewhere/a.py"),
        ("--task-type", "feature"),
        ("--budget", "-1"),
        ("--estimate", "--column", "review"),
        ("--config", "missing.toml"),
        ("--scope", "team:core"),
    ],
)
def test_what_can_not_be_is_refused_in_one_line(project: Path, arguments: tuple[str, ...]) -> None:
    ran = run("context", "project", *arguments, db=project.parent / "team.db")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_the_record_to_the_letter_says_so(project: Path) -> None:
    ran = run(
        "context", "project", "--estimate", "--path", "src/auth/login.py", db=project.parent / "team.db"
    )
    assert "bytes_div_4_floor" in ran.err
    assert "Only the content of memories was counted" in ran.err

"""import and watch at the command line: what people read of them, and how a watch ends."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from commandline import fields, masked, run

DEADLINE = 60
"""Seconds after which a line that doesn't come fails the test."""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "README.md").write_text("# App\n\nIt runs.\n", encoding="utf-8")
    return tmp_path / "app"


def test_an_edit_is_counted_and_what_is_gone_is_named(tmp_path: Path, app: Path) -> None:
    db = tmp_path / "a.db"
    (app / "old.md").write_text("Old.\n", encoding="utf-8")
    assert run("import", str(app), db=db).out == f"{app}: 2 memories read, 2 new, 0 known, 0 left out.\n"
    (app / "README.md").write_text("# App\n\nIt runs well.\n", encoding="utf-8")
    (app / "old.md").unlink()
    (app / "large.md").write_text("x" * 1_000_001, encoding="utf-8")

    ran = run("import", str(app), db=db)
    assert (ran.code, ran.out) == (0, f"{app}: 1 memory read, 0 new, 1 changed, 0 known, 0 left out.\n")
    assert "gone, still stored (--prune forgets it): app/old.md" in ran.err
    assert "not taken over by rule: 1; --json says what and why" in ran.err

    assert "gone, and forgotten: app/old.md" in run("import", str(app), "--prune", db=db).err
    assert "gone" not in run("import", str(app), "--prune", db=db).err


def test_a_dry_run_reports_what_an_import_would_do_and_stores_nothing(tmp_path: Path, app: Path) -> None:
    db, files = tmp_path / "a.db", Path(__file__).parents[1] / "imports"
    run("import", str(app), str(files / "mem0" / "qdrant"), db=db)
    (app / "README.md").write_text("# App\n\nIt runs well.\n", encoding="utf-8")
    several = (str(app), str(files / "mem0" / "get_all.json"), str(files / "mcp_memory.jsonl"))
    before = {path: path.read_bytes() for path in tmp_path.glob("a.db*")}

    ran = run("import", *several, "--dry-run", db=db)

    assert {path: path.read_bytes() for path in tmp_path.glob("a.db*")} == before
    assert ran.out.splitlines() == [
        f"{app}: 1 memory read, 0 new, 1 changed, 0 known, 0 left out.",
        f"{several[1]}: 3 memories read, 0 new, 3 known, 0 left out.",
        f"{several[2]}: 4 memories read, 4 new, 0 known, 0 left out.",
    ]
    assert "Nothing was stored." in ran.err
    assert run("import", *several, db=db).out == ran.out


def test_a_dry_run_makes_no_store(tmp_path: Path, app: Path) -> None:
    ran = run("import", str(app), "--dry-run", "--json", db=tmp_path / "new.db")
    assert (ran.code, json.loads(ran.out)["created"], json.loads(ran.out)["dry_run"]) == (0, 1, True)
    assert not list(tmp_path.glob("new.db*"))


def test_what_is_not_taken_over_is_named(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "imports" / "waiter.af"
    ran = run("import", str(source), db=tmp_path / "a.db")
    assert ran.code == 0
    assert f"{source}: not taken over: system messages (1)" in ran.err


def test_a_secret_is_refused_with_its_rule_and_place(tmp_path: Path, app: Path) -> None:
    db, secret = tmp_path / "a.db", "gh" + "p_" + "aB3dE5gH7j" * 3 + "kL9mN1"
    (app / "deploy.md").write_text(f"# Deploy\n\nWith {secret}.\n", encoding="utf-8")

    ran = run("import", str(app), db=db)

    assert ran.code == 1
    assert f"left out: {app / 'deploy.md'}:3: it looks like a secret (GitHub Token)" in ran.err
    assert secret not in ran.out + ran.err
    assert secret not in run("export", db=db).out
    assert run("import", str(app), "--allow-secrets", db=db).err.endswith(
        "\nnot checked for secrets: secrets were allowed\n"
    )
    assert secret in run("export", db=db).out


def test_only_a_project_can_be_pruned(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "x"}\n', encoding="utf-8")
    ran = run("import", str(path), "--prune", db=tmp_path / "a.db")
    assert ran.code == 2
    assert "prune=True goes with a project's files" in ran.err


def test_an_option_that_one_source_refuses_stores_none_of_them(tmp_path: Path) -> None:
    page, export = tmp_path / "page.md", tmp_path / "export.jsonl"
    page.write_text("# Tea\n\nGreen tea is in the tin.\n", encoding="utf-8")
    export.write_text("{}\n", encoding="utf-8")
    db = tmp_path / "agent.db"

    ran = run("import", str(page), str(export), "--project", "tea", db=db)

    assert (ran.code, db.exists()) == (2, False)
    assert "project='tea' goes with a project's files" in ran.err
    assert "Leave it out." in ran.err


def test_a_folder_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    ran = run("watch", str(tmp_path / "gone"), db=tmp_path / "a.db")
    assert ran.code == 2
    assert "only a folder can be watched" in ran.err


class Watching:
    """The command in a process of its own, and its lines as they come."""

    def __init__(self, app: Path, db: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "germane", "watch", str(app), "--db", str(db), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "GERMANE_EMBEDDER": "none"},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def line(self) -> str:
        return self._lines.get(timeout=DEADLINE)

    def end(self, how: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(how)
        assert self.process.stderr is not None
        errors = self.process.stderr.read()
        self._reader.join(DEADLINE)
        return self.process.wait(DEADLINE), errors

    def kill(self) -> None:
        self.process.kill()
        self._reader.join(DEADLINE)
        self.process.communicate()


@contextmanager
def watched(app: Path, db: Path, *options: str) -> Iterator[Watching]:
    watching = Watching(app, db, *options)
    try:
        yield watching
    finally:
        watching.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="there a process can't be interrupted alone")
def test_a_watch_prints_a_line_of_json_for_each_step_and_ends_when_interrupted(
    tmp_path: Path, app: Path
) -> None:
    db = tmp_path / "a.db"
    with watched(app, db, "--json") as watching:
        first: dict[str, Any] = json.loads(watching.line())
        assert list(first) == fields("`germane watch`")
        assert list(first["written"][0]) == fields("Written")
        assert masked(first, db=db) == {
            "folder": "<folder>/app",
            "read": 1,
            "created": 1,
            "known": 0,
            "revised": 0,
            "usage_records": 0,
            "gone": [],
            "pruned": True,
            "moved": [],
            "skipped": [],
            "passed_over": [],
            "unchecked": None,
            "written": [{"id": "<id 1>", "source": "app/README.md", "revised": False}],
        }
        (app / "README.md").unlink()
        assert [gone["source"] for gone in json.loads(watching.line())["gone"]] == ["app/README.md"]
        assert watching.end(signal.SIGINT) == (0, f"Made the database {db}.\n")
    assert run("db", "stats", "--json", db=db).json()["by_status"]["forgotten"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there a process can't be interrupted alone")
def test_a_watch_tells_people_what_it_did(tmp_path: Path, app: Path) -> None:
    with watched(app, tmp_path / "a.db") as watching:
        assert watching.line() == f"{app}: 1 memory read, 1 new, 0 known, 0 left out.\n"
        (app / "new.md").write_text("New.\n", encoding="utf-8")
        assert watching.line() == "new: app/new.md\n"
        (app / "new.md").write_text("Newer.\n", encoding="utf-8")
        assert watching.line() == "changed: app/new.md\n"
        (app / "new.md").unlink()
        assert watching.line() == "gone: app/new.md\n"
        code, errors = watching.end(signal.SIGTERM)
    assert code == 0
    assert f"{app}: watched; Ctrl-C ends it." in errors
    assert errors.endswith(f"{app}: no longer watched.\n")


def test_what_is_counted_of_a_life_moves_along(tmp_path: Path) -> None:
    one, other, file = tmp_path / "one.db", tmp_path / "other.db", tmp_path / "export.jsonl"
    for _ in range(4):
        run("remember", "Ana leads billing.", "--kind", "fact", db=one)
    constraint = run("remember", "No pushing to main", "--kind", "constraint", "--json", db=one).json()[
        "memory"
    ]["id"]
    for _ in range(2):
        run("memory", "record-trigger", constraint, db=one)
    run("export", "--out", str(file), db=one)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lives = [line["life"] for line in lines if "content" in line]
    assert [(life["confirmations"], life["triggers"]) for life in lives] == [(3, 0), (0, 2)]

    run("import", str(file), db=other)
    run("export", "--out", str(tmp_path / "again.jsonl"), db=other)

    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()
    # The third trigger counts as the third, wherever the first two were counted.
    assert (
        run("memory", "record-trigger", constraint, "--json", db=other).json()["memory"]["stage"]
        == "escalated"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there a process can't be interrupted alone")
def test_an_import_of_many_files_tells_how_far_it_is_and_may_be_interrupted(
    tmp_path: Path, app: Path
) -> None:
    db = tmp_path / "a.db"
    run("remember", "The store is there.", db=db)
    for number in range(2000):
        (app / f"note{number:04}.md").write_text(f"# Note {number}\n\nRoom {number}.\n", encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "germane", "import", str(app), "--db", str(db)],
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "GERMANE_EMBEDDER": "none"},
    ) as process:
        assert process.stderr is not None
        # While another process writes, the import can't end before the signal arrives.
        with closing(sqlite3.connect(db, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            so_far = "0 of 2,001 files or lines examined, 0 memories read, 0 new …"
            assert process.stderr.readline() == f"{app}: {so_far}\n"
            process.send_signal(signal.SIGINT)
            errors = process.stderr.read()
            assert process.wait(DEADLINE) == 130, errors
    found = re.search(r"interrupted; ([\d,]+) new or changed were stored\. Run it again to go on", errors)
    assert found is not None
    stored = int(found[1].replace(",", ""))
    assert run("db", "stats", "--json", db=db).json()["memories"] == 1 + stored
    ran = run("import", str(app), db=db)
    assert ran.out == f"{app}: 2,001 memories read, {2001 - stored:,} new, {stored:,} known, 0 left out.\n"


def test_a_new_database_is_named_once_and_with_its_repository(tmp_path: Path) -> None:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "note.md").write_text("Ann prefers tea.\n")
    alone, inside = tmp_path / "alone.db", tmp_path / "repository" / "germane.db"
    assert "Made the database" not in run("import", str(tmp_path / "note.md"), "--dry-run", db=alone).err
    assert f"Made the database {alone}." in run("import", str(tmp_path / "note.md"), db=alone).err
    assert "Made the database" not in run("import", str(tmp_path / "note.md"), db=alone).err
    message = run("remember", "Ann prefers tea.", db=inside).err
    assert f"{inside}, which lies in the git repository {tmp_path / 'repository'}." in message
    assert "germane.db* to .gitignore" in message

"""Settings of the scoped plan from a file, blocks in a file for agents, and what git says of changes."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import InvalidInput, InvalidPlan, diff
from germane.errors import UnreadableSource
from germane.importers import changed_paths, read_scoped, write_block
from germane.plans import Profile, ScopedPlan
from germane.testing.fakes import make_memory, make_revision

BEGIN = "<!-- germane:begin -->"
END = "<!-- germane:end -->"
_SETTINGS = """
[scoped]
shares = { global = 0.4, task = 0.4, path = 0.2 }
priorities = { decision = 1 }
backfill = false
stale_after_days = 30

[scoped.task_types.bugfix]
shares = { path = 1 }

[scoped.columns."in review"]
roll_over = false

[scoped.boards.core]
priorities = { adr = 9 }
"""


def test_a_file_says_what_the_plan_does(tmp_path: Path) -> None:
    file = tmp_path / "germane.toml"
    file.write_text(_SETTINGS)
    assert read_scoped(file) == ScopedPlan(
        shares={"global": 0.4, "task": 0.4, "path": 0.2},
        priorities={"decision": 1},
        backfill=False,
        stale_after_days=30,
        task_types={"bugfix": Profile(shares={"path": 1})},
        columns={"in review": Profile(roll_over=False)},
        boards={"core": Profile(priorities={"adr": 9})},
    )
    file.write_text("[other]\nx = 1\n")
    assert read_scoped(file) == ScopedPlan()


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("[scoped", UnreadableSource, "no TOML"),
        ("scoped = 1", InvalidInput, r"Write \[scoped\]"),
        ("[scoped]\nshare = 1", InvalidInput, "no setting 'share'"),
        ("[scoped]\nroll_over = 1", InvalidInput, "true or false"),
        ("[scoped]\npriorities = { adr = 1.5 }", InvalidInput, "whole numbers"),
        ("[scoped]\nstale_after_days = -1", InvalidInput, "0 for never"),
        ("[scoped]\ntask_types = 1", InvalidInput, "table of tables"),
        ("[scoped.task_types.x]\ndegrade = true", InvalidInput, r"scoped\.task_types\.x"),
        ("[scoped.task_types.x]\nshares = { global = 0.9 }", InvalidPlan, "sum to 0.9"),
        ("[scoped]\nshares = { global = 0.7, task = 0.7 }", InvalidPlan, "sum to 1.4"),
    ],
)
def test_what_is_no_setting_is_named(tmp_path: Path, text: str, error: type[Exception], says: str) -> None:
    file = tmp_path / "germane.toml"
    file.write_text(text)
    with pytest.raises(error, match=says):
        read_scoped(file)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="no such file"):
        read_scoped(tmp_path / "germane.toml")


def test_a_block_replaces_its_own_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    assert write_block(file, "one")
    file.write_bytes(b"# Ours\r\n\r\n" + file.read_bytes().replace(b"\n", b"\r\n") + b"\r\nbelow \xff\r\n")
    assert write_block(file, "two\n\nlines")
    assert not write_block(file, "two\n\nlines")
    text = file.read_bytes()
    assert text.startswith(b"# Ours\r\n\r\n<!-- germane:begin")
    assert text.endswith(b"two\r\n\r\nlines\r\n<!-- germane:end -->\r\n\r\nbelow \xff\r\n")
    assert [each.name for each in tmp_path.iterdir()] == ["AGENTS.md"]


lines = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")).map("- {}".format)).map(
    "\n".join
)


def written(file: Path, before: str, *texts: str) -> str:
    """What stands in a file after the texts were written into it, one after another."""
    file.write_bytes(before.encode())
    for text in texts:
        write_block(file, text)
    return file.read_bytes().decode()


@given(before=lines, other=lines, text=lines)
def test_writing_again_is_writing_once(
    tmp_path_factory: pytest.TempPathFactory, before: str, other: str, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "AGENTS.md"
    once = written(file, before, text)
    assert text.rstrip() in once  # Blanks at the end go.
    assert written(file, before, text, text) == once
    assert written(file, before, other, text) == once


@pytest.mark.parametrize("whole", [BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}\n{END}\n{BEGIN}\n{END}"])
def test_marks_that_do_not_pair_are_left_alone(tmp_path: Path, whole: str) -> None:
    file = tmp_path / "AGENTS.md"
    with pytest.raises(InvalidInput, match="marks"):
        written(file, whole, "x")
    assert file.read_text() == whole


def test_no_memory_can_end_the_block_early(tmp_path: Path) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember(f"Ignore this: {END} {BEGIN}", kind="adr")
        text = engine.assemble(plan="scoped").text
    assert END not in text
    assert END.removeprefix("<") in text
    file = tmp_path / "AGENTS.md"
    assert written(file, "", text, text) == written(file, "", text)


def git(folder: Path, *arguments: str, at: datetime | None = None) -> None:
    stamp = {} if at is None else {"GIT_COMMITTER_DATE": at.isoformat(), "GIT_AUTHOR_DATE": at.isoformat()}
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@y.z", *arguments],  # noqa: S607 - Found on the path.
        cwd=folder,
        check=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(folder), **stamp},
    )


def test_git_says_when_a_path_was_changed_last(tmp_path: Path) -> None:
    first, second = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 2, 5, tzinfo=UTC)
    (tmp_path / "src").mkdir()
    git(tmp_path, "init", "-q")
    for name, at in (("a.py", first), ("b.py", second)):
        (tmp_path / "src" / name).write_text("x")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", name, at=at)
    paths = ["src/a.py", "src/b.py", "src", "nowhere"]
    assert changed_paths(tmp_path, paths) == {"src/a.py": first, "src/b.py": second, "src": second}
    (tmp_path / "src" / "a.py").write_text("edited")
    edited = changed_paths(tmp_path, ["src/a.py"])["src/a.py"]
    assert datetime.now(UTC) - edited < timedelta(minutes=5)
    assert changed_paths(tmp_path / "src" / "none", paths) == {}


def test_a_diff_names_fields_and_lines_that_differ() -> None:
    first = make_memory("Sign in\nwith tokens.", tags=("auth",))
    second = make_revision(first, "Sign in\nwith keys.", tags=("auth", "keys"), metadata={"by": "Bea"})
    assert diff(first, second) == (
        "--- version 1\n+++ version 2\n@@ -1,3 +1,4 @@\n-tags: auth\n+tags: auth, keys\n+by: Bea\n"
        " Sign in\n-with tokens.\n+with keys.\n"
    )
    assert diff(first, first) == ""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"priorities": {"adr": "first"}}, r"priorities=\{'adr': 'first'\} .* whole numbers"),
        ({"priorities": "adr"}, "priorities='adr' .* whole numbers"),
        ({"stale_after_days": -3}, "stale_after_days=-3 .* 0 for never"),
        ({"stale_after_days": float("nan")}, "stale_after_days=nan"),
        ({"stale_after_days": 10**400}, "stale_after_days=1000"),
        ({"shares": {"global": "half"}}, "shares=.* numbers that sum to 1"),
        ({"shares": {"global": 10**400}}, "shares=.* numbers that sum to 1"),
        ({"roll_over": "no"}, "roll_over='no' .* true or false"),
        ({"boards": {"core": {"backfill": False}}}, r"boards=.* map names to germane\.plans\.Profile"),
        ({"columns": None}, "columns=None"),
    ],
)
def test_a_setting_of_another_sort_is_refused_where_it_is_given(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        ScopedPlan(**given)


def test_a_profile_checks_its_settings_as_well() -> None:
    with pytest.raises(InvalidInput, match="stale_after_days=-1"):
        Profile(stale_after_days=-1)
    assert Profile() == Profile(shares=None, roll_over=None)


def test_days_before_any_calendar_make_nothing_stale() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("Use tabs.", kind="pattern", scope="task:T-1")
        plan = ScopedPlan(stale_after_days=999_999_999)
        assert len(engine.assemble("tabs", plan=plan, task="T-1").items) == 1

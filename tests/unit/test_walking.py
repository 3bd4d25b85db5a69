"""Which files of a project are read, and what is reported of those that aren't."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import germane
from germane.errors import MissingExtra
from germane.importers import import_source


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_others_work_and_large_files_are_passed_over_with_a_reason(tmp_path: Path) -> None:
    app = tmp_path / "app"
    write(app / "README.md", "# App\n")
    large = write(app / "large.md", "x" * 1_000_001)
    write(app / "web" / "node_modules" / "a" / "README.md", "# A\n")
    write(app / "env" / "pyvenv.cfg", "")
    write(app / "env" / "README.md", "# Env\n")
    write(app / "app.egg-info" / "README.md", "# Built\n")
    write(app / "__pycache__" / "README.md", "# Cache\n")
    write(app / ".github" / "README.md", "# Hidden\n")
    write(tmp_path / "other.md", "# Other\n")
    (app / "linked.md").symlink_to(tmp_path / "other.md")
    (app / "alias.md").symlink_to(app / "README.md")
    broken = write(app / "bad.py", "def (:\n")
    with germane.open(":memory:", embedder=None) as engine:
        report = import_source(engine, str(app))
        assert [memory.content for memory in engine.memories()] == ["# App"]
    reasons = {each.source: each.reason for each in report.passed_over}
    assert set(reasons) == {
        str(large),
        str(app / "web" / "node_modules"),
        str(app / "env"),
        str(app / "app.egg-info"),
        str(app / "linked.md"),
        str(broken),
    }
    assert "at most 1,000,000 are read" in reasons[str(large)]
    assert "leads out of the project" in reasons[str(app / "linked.md")]
    assert "it is no Python" in reasons[str(broken)]
    assert report.skipped == ()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read anything")
def test_what_the_system_refuses_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "README.md", "# App\n")
    locked = write(tmp_path / "locked.md", "# Locked\n")
    locked.chmod(0)
    with germane.open(":memory:", embedder=None) as engine:
        report = import_source(engine, str(tmp_path))
    assert [each.source for each in report.skipped] == [str(locked)]


def test_without_pathspec_a_folder_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "README.md", "# App\n")
    monkeypatch.setitem(sys.modules, "pathspec", None)
    with germane.open(":memory:", embedder=None) as engine:
        with pytest.raises(MissingExtra, match=r"pip install 'germane\[project\]'"):
            import_source(engine, str(tmp_path))
        assert import_source(engine, str(tmp_path / "README.md")).created == 1

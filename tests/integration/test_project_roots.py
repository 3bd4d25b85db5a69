"""From whichever folder of a project a command runs, its paths are relative to one root."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import germane
from commandline import run
from germane import Filter, InvalidInput
from germane.importers import import_source


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "src" / "auth").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1.0"\n')
    (root / "src" / "auth" / "login.py").write_text('"""Signs users in with a token."""\n')
    return root


def sources(db: Path) -> list[tuple[str, str | None]]:
    with germane.open(db) as engine:
        return sorted((str(memory.scope), memory.source) for memory in engine.memories())


def project_root(start: Path) -> Path:
    """The folder from which an import of a folder or file tells the path of its one module."""
    with germane.open(":memory:", embedder=None) as engine:
        import_source(engine, str(start))
        (path,) = {
            str(memory.scope).removeprefix("path:") for memory in engine.memories(Filter(kinds=("module",)))
        }
    (file,) = start.rglob("login.py") if start.is_dir() else [start]
    assert str(file).endswith(f"/{path}")
    return Path(str(file).removesuffix(f"/{path}"))


def module_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "login.py").write_text('"""Signs users in with a token."""\n')
    return folder


@pytest.mark.parametrize("mark", ["germane.toml", ".git", "pyproject.toml", "package.json"])
def test_the_root_is_the_nearest_folder_that_is_marked(tmp_path: Path, mark: str) -> None:
    inner = module_in(tmp_path / "shop" / "src" / "auth")
    assert project_root(inner) == inner
    (tmp_path / "shop" / mark).write_text("{}" if mark == "package.json" else "")
    assert project_root(inner) == tmp_path / "shop"
    assert project_root(inner / "login.py") == tmp_path / "shop"


def test_a_repository_comes_before_a_nearer_manifest(tmp_path: Path) -> None:
    inner = module_in(tmp_path / "packages" / "web")
    (inner / "package.json").write_text("{}")
    assert project_root(inner) == inner
    (tmp_path / ".git").mkdir()
    assert project_root(inner) == tmp_path


def test_a_manifest_at_home_marks_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / "package.json").write_text("{}")
    module_in(tmp_path / "notes")
    assert project_root(tmp_path / "notes") == tmp_path / "notes"
    assert project_root(tmp_path) == tmp_path


def test_an_import_of_a_folder_inside_tells_paths_from_the_root(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "a.db"
    monkeypatch.chdir(project / "src" / "auth")
    assert run("import", ".", db=db).code == 0
    assert sources(db) == [("path:src/auth/login.py", "shop/src/auth/login.py")]
    shown = run("context", "project", "--path", "login.py", "--no-git", db=db)
    assert "Signs users in with a token." in shown.out
    monkeypatch.chdir(project)
    again = json.loads(run("import", ".", "--json", db=db).out)
    # The manifest is new; the module is known, and not there a second time under another path.
    assert (again["created"], again["known"]) == (1, 1)


def test_a_root_that_is_named_decides(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = tmp_path / "a.db"
    monkeypatch.chdir(project)
    assert run("import", "src/auth", "--root", "src", db=db).code == 0
    assert sources(db) == [("path:auth/login.py", "src/auth/login.py")]
    assert (
        "Signs users in"
        in run("context", "project", "--path", "src/auth/login.py", "--root", "src", db=db).out
    )
    assert "Signs users in" not in run("context", "project", "--path", "src/auth/login.py", db=db).out


def test_a_source_outside_its_root_is_refused(project: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with germane.open(tmp_path / "a.db") as engine:
        with pytest.raises(InvalidInput, match="lies outside the project at"):
            import_source(engine, str(project), root=tmp_path / "other")
        with pytest.raises(InvalidInput, match="is no folder"):
            import_source(engine, str(project), root=project / "pyproject.toml")
        (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "Hello there."}\n')
        with pytest.raises(InvalidInput, match="goes with a project's files"):
            import_source(engine, str(tmp_path / "chat.jsonl"), root=tmp_path)
        assert engine.memories() == ()

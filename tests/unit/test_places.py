"""Where a memory applies: scopes, folders, patterns, and which of them is nearest to a path."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import germane
from germane import Filter, InvalidInput, MissingExtra, Scope


def near(path: str, *patterns: str, scope: str = "global") -> float:
    """How closely what a memory governs fits a path: 1 for the very path, 0 for none."""
    metadata: dict[str, Any] = {"paths": list(patterns)} if patterns else {}
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("A rule.", kind="adr", scope=scope, metadata=metadata)
        entries = engine.assemble(plan="scoped", paths=[path]).trace.entries
        return sum(entry.parts.get("path", 0.0) for entry in entries)


def applying(metadata: dict[str, Any], *scopes: str) -> int:
    """How many memories with this metadata apply to these scopes besides their own, of one."""
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("A rule.", kind="adr", scope="task:elsewhere", metadata=metadata)
        return engine.count(Filter(applies_to=tuple(Scope.parse(scope) for scope in scopes)))


def test_the_nearest_place_is_the_most_specific() -> None:
    path = "src/auth/login.py"
    closer = [
        near(path, "/src/auth/login.py"),
        near(path, "/src/auth/"),
        near(path, "/src/auth/*.py"),
        near(path, "/src/"),
        near(path, "*.py"),
        near(path, "/lib/"),
    ]
    assert closer == sorted(closer, reverse=True)
    assert len(set(closer)) == len(closer)
    assert (closer[0], closer[-1]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("scope", "path", "applies"),
    [
        ("path:src/auth", "src/auth/login.py", True),
        ("path:src/auth/", "src/auth/login.py", True),
        ("path:/src/auth", "src/auth", True),
        ("path:src/auth", "src/authority.py", False),
        ("path:src", "lib/src/a.py", False),
        ("path:src/**/*.py", "src/a/b/c.py", True),
        ("path:.", "anything", True),
        ("task:src", "src/a.py", False),
    ],
)
def test_a_path_scope_without_a_wildcard_is_one_place_from_the_root(
    scope: str, path: str, *, applies: bool
) -> None:
    assert (near(path, scope=scope) > 0) is applies


def test_patterns_are_those_of_git_and_the_last_decides() -> None:
    assert near("src/legacy/a.py", "src/", "!src/legacy/") == 0
    assert near("src/legacy/a.py", "!src/legacy/", "src/") > 0
    assert near("tests/auth/x.py", "auth") > 0
    assert near("tests/auth/x.py", "/auth") == 0
    assert near("a b/c.py", r"/a\ b/") > 0
    assert near("x.py", "[z-", "x.py") > 0


def test_metadata_of_other_tools_is_no_place() -> None:
    metadatas: list[dict[str, Any]] = [
        {"paths": "src"},
        {"paths": [1]},
        {"paths": []},
        {"scopes": "x"},
        {"scopes": ["no scope"]},
    ]
    for metadata in metadatas:
        assert applying(metadata, "path:src/a.py", "path:1", "task:x", "task:no scope") == 0
    assert applying({"paths": ["src"]}, "path:src/a.py") == 1


def test_a_further_scope_is_met_by_its_name_alone() -> None:
    metadata = {"scopes": ["task:T-2"]}
    assert applying(metadata, "task:T-2") == 1
    assert applying(metadata, "task:T-22", "path:task") == 0


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../b", "C:/x", "C:\\x", "~/x", "", " ", "..\\x"]
)
def test_a_path_outside_the_project_is_refused(path: str) -> None:
    with (
        germane.open(":memory:", embedder=None) as engine,
        pytest.raises(InvalidInput, match="project's root"),
    ):
        engine.assemble(plan="scoped", paths=[path])


def test_a_path_is_written_in_one_way() -> None:
    for path in ("./src/a.py", "src\\a.py", "src//a.py", "src/a.py/"):
        assert near(path, "/src/a.py") == 1


def test_folders_need_no_library_and_patterns_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pathspec", None)
    assert near("src/a-file-of-its-own.py", "/src/") > 0
    with pytest.raises(MissingExtra, match=r"germane\[project\]"):
        near("src/a-file-of-its-own.py", "src/**/a-file*.py")

"""A project's folder as drafts: manifests, modules, READMEs, and the paths that records govern."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import germane
from germane import Draft
from germane.errors import UnreadableSource
from germane.importers import Skipped, import_source, read_project

PYPROJECT = """
[build-system]
requires = ["hatchling>=1.27"]

[project]
name = "shop"
version = "1.2.0"
requires-python = ">=3.11"
dependencies = ["httpx>=0.27", "rich"]

[project.optional-dependencies]
pg = ["psycopg>=3"]

[dependency-groups]
test = ["pytest>=8"]
dev = [{ include-group = "test" }, "ruff"]
"""
POETRY = """
[tool.poetry]
name = "old-shop"
version = "0.3"

[tool.poetry.dependencies]
python = "^3.11"
requests = "^2.31"
boto3 = { version = "^1.34", extras = ["s3"], optional = true }
inner = { git = "https://example.org/inner.git" }
numpy = [{ version = "1.26", python = "<3.12" }, { version = "2.0", python = ">=3.12" }]

[tool.poetry.group.docs.dependencies]
mkdocs = "*"
"""
PACKAGE = {
    "name": "web",
    "version": "2.0.0",
    "engines": {"node": ">=20"},
    "dependencies": {"react": "^18.2.0"},
    "devDependencies": {"vite": "^5"},
    "peerDependencies": {"react-dom": "^18"},
}
CARGO = """
[package]
name = "core"
version = "0.1.0"
rust-version = "1.75"

[dependencies]
serde = { version = "1", features = ["derive"] }
tokio = { workspace = true }
local = { path = "../local" }

[dev-dependencies]
proptest = "1"

[target.'cfg(unix)'.dependencies]
libc = "0.2"
"""
GO = """module example.org/shop

go 1.22

require github.com/pkg/errors v0.9.1 // used everywhere

require (
\t// a comment
\tgolang.org/x/sync v0.6.0
\tgolang.org/x/sys v0.17.0 // indirect
)

replace golang.org/x/sync => ../sync
"""


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def drafts(root: Path) -> dict[str, Draft]:
    return {str(draft.source).partition("/")[2]: draft for draft in read_project(root)}


@pytest.mark.parametrize(
    ("name", "text", "content"),
    [
        (
            "pyproject.toml",
            PYPROJECT,
            """Dependencies of shop 1.2.0 (pyproject.toml)
Requires Python >=3.11
Runtime: httpx>=0.27, rich
Extra pg: psycopg>=3
Group test: pytest>=8
Group dev: all of group test, ruff
Build: hatchling>=1.27""",
        ),
        (
            "pyproject.toml",
            POETRY,
            """Dependencies of old-shop 0.3 (pyproject.toml)
Requires Python ^3.11
Runtime: requests ^2.31, boto3 ^1.34 with s3 (optional), inner from https://example.org/inner.git, \
numpy 1.26 or numpy 2.0
Group docs: mkdocs *""",
        ),
        (
            "pyproject.toml",
            '[project]\nname = "late"\ndynamic = ["version", "dependencies"]\n',
            "Dependencies of late (pyproject.toml)\nThe dependencies are computed when it is built.",
        ),
        (
            "package.json",
            json.dumps(PACKAGE),
            """Dependencies of web 2.0.0 (package.json)
Requires node >=20
Runtime: react ^18.2.0
Peer: react-dom ^18
Development: vite ^5""",
        ),
        (
            "Cargo.toml",
            CARGO,
            """Dependencies of core 0.1.0 (Cargo.toml)
Requires Rust 1.75
Runtime: serde 1 with derive, tokio of the workspace, local from ../local
Development: proptest 1
cfg(unix): Runtime: libc 0.2""",
        ),
        (
            "go.mod",
            GO,
            """Dependencies of example.org/shop (go.mod)
Requires Go 1.22
Runtime: github.com/pkg/errors v0.9.1, golang.org/x/sync v0.6.0
Indirect: golang.org/x/sys v0.17.0
Replaced: golang.org/x/sync => ../sync""",
        ),
    ],
)
def test_a_manifest_is_one_dependency_memory(tmp_path: Path, name: str, text: str, content: str) -> None:
    write(tmp_path / name, text)
    (draft,) = read_project(tmp_path)
    assert (draft.kind, draft.content, str(draft.scope)) == ("dependency", content, "global")
    assert draft.metadata["manifest"] == name


def test_a_manifest_below_the_root_stands_in_the_scope_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "web" / "package.json", json.dumps(PACKAGE))
    (draft,) = read_project(tmp_path)
    assert (str(draft.scope), draft.metadata["paths"]) == ("path:web", ["/web/"])
    assert "(web/package.json)" in draft.content


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("pyproject.toml", "[project", "it is no TOML"),
        ("pyproject.toml", "[project]\ndependencies = 3\n", "'dependencies' must be a list of texts"),
        ("pyproject.toml", "project = 3\n", "'project' must be a table"),
        ("package.json", "{", "it is no JSON"),
        ("package.json", "[]", "one JSON object was expected"),
        ("Cargo.toml", "[dependencies]\nx = 3\n", "the dependency 'x' must be a text or a table"),
        ("go.mod", "go 1.22\n", "it has no line `module NAME`"),
        ("go.mod", b"\xff\xfe", "UTF-16"),
    ],
)
def test_a_broken_manifest_is_reported_and_does_not_stop_the_rest(
    tmp_path: Path, name: str, text: str | bytes, reason: str
) -> None:
    path = write(tmp_path / name, text)
    write(tmp_path / "README.md", "# Shop\n")
    skipped: list[Skipped] = []
    found = list(read_project(tmp_path, on_skip=skipped.append))
    assert [draft.content for draft in found] == ["# Shop"]
    assert [each.source for each in skipped] == [str(path)]
    assert reason in skipped[0].reason
    assert str(path) in skipped[0].reason


def test_a_manifest_that_only_sets_up_tools_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool.ruff]\nline-length = 100\n")
    assert list(read_project(tmp_path)) == []


JS_LICENCE = "/**\n * Copyright 2020 Ann.\n */\n"


@pytest.mark.parametrize(
    ("name", "text", "doc"),
    [
        (
            "a.py",
            '#!/usr/bin/env python\n"""Signs users in.\n\n    With care.\n"""\nx = 1\n',
            "Signs users in.\n\nWith care.",
        ),
        ("a.py", "x = '''no docstring'''\n", ""),
        ("a.py", "r'''\\d is a digit.'''\n", "\\d is a digit."),
        ("a.py", "'''\\d is badly escaped.'''\n", "\\d is badly escaped."),
        (
            "a.js",
            "'use strict';\n/**\n * Draws the cart.\n * @module cart\n */\nimport x from 'x';\n",
            "Draws the cart.\n@module cart",
        ),
        ("a.ts", f"#!/usr/bin/env node\n// eslint-disable\n{JS_LICENCE}\n/** Draws it. */\n", "Draws it."),
        ("a.ts", f"{JS_LICENCE}import x from 'x';\n/** Of a function. */\n", ""),
        ("a.js", "import x from 'x';\n/** Of a function. */\nfunction f() {}\n", ""),
        ("a.tsx", "/* no doc */\nexport {};\n", ""),
        (
            "a.go",
            "// Copyright 2020 Ann.\n\n// Package auth signs users in.\n//\n// With care.\npackage auth\n",
            "Package auth signs users in.\n\nWith care.",
        ),
        ("a.go", "//go:build linux\n\npackage auth\n", ""),
        (
            "a.go",
            '/*\nPackage auth signs users in.\n*/\npackage auth // import "x"\n',
            "Package auth signs users in.",
        ),
        ("a.go", "// Detached.\n\npackage auth\n", ""),
        (
            "a.rs",
            "// Copyright Ann\n#![no_std]\n\n//! Signs users in.\n//!\n//!   - With care.\nuse x;\n",
            "Signs users in.\n\n  - With care.",
        ),
        ("a.rs", "/*! Signs users in. */\n", "Signs users in."),
        ("a.rs", "/// Of an item.\nfn f() {}\n", ""),
    ],
)
def test_the_leading_documentation_of_a_source_is_found(
    tmp_path: Path, name: str, text: str, doc: str
) -> None:
    drafts = list(read_project(write(tmp_path / name, text)))
    assert [draft.content for draft in drafts] == ([f"{name}: {doc}"] if doc else [])


def test_modules_stand_in_the_scope_of_their_path(tmp_path: Path) -> None:
    write(tmp_path / "src/auth/__init__.py", '"""Who may do what."""\n')
    write(tmp_path / "src/auth/login.py", '"""Signs users in."""\n')
    write(tmp_path / "src/auth/empty.py", "")
    write(tmp_path / "web/[id]/index.ts", "/** A page. */\n")
    write(tmp_path / "src/auth/README.md", "# Auth\n\nRead this first.\n")
    write(tmp_path / "README.md", "# Shop\n")
    found = drafts(tmp_path)
    assert {
        name: (draft.kind, str(draft.scope), draft.metadata.get("paths")) for name, draft in found.items()
    } == {
        "README.md": ("note", "global", None),
        "src/auth/README.md": ("module", "path:src/auth", ["/src/auth/"]),
        "src/auth/__init__.py": ("module", "path:src/auth", ["/src/auth/"]),
        "src/auth/login.py": ("module", "path:src/auth/login.py", ["/src/auth/login.py"]),
        "web/[id]/index.ts": ("module", "path:web/[id]", ["/web/\\[id\\]/"]),
    }
    assert found["src/auth/login.py"].content == "src/auth/login.py: Signs users in."


def test_sources_that_cannot_be_parsed_are_no_fault_of_a_project(tmp_path: Path) -> None:
    write(tmp_path / "README.md", "# Shop\n")
    write(tmp_path / "bad.py", "def (:\n")
    write(tmp_path / "old.py", b'"""\xff"""\n')
    skipped: list[Skipped] = []
    assert len(list(read_project(tmp_path, on_skip=skipped.append))) == 1
    assert skipped == []
    with pytest.raises(UnreadableSource, match=r"bad\.py, line 1: it is no Python"):
        list(read_project(tmp_path / "bad.py"))


RECORD = "# 1. Sign in with tokens\n\nStatus: accepted\n\n## Context\n\n{context}\n\n## Decision\n\nTokens.\n"


def test_a_record_governs_the_paths_that_it_names_and_that_are_there(tmp_path: Path) -> None:
    write(tmp_path / "src/auth/login.py", "")
    write(tmp_path / "setup.cfg", "")
    context = (
        "`src/auth/login.py:12` and `./src/auth` sign in, `setup.cfg` and `src/auth/*.py` too; "
        "not `src/gone.py`, `../other`, `/etc/passwd`, `src`, `login()`, ``src/auth/login.py``."
    )
    write(tmp_path / "adr/0001-tokens.md", RECORD.format(context=context))
    (record,) = (draft for draft in read_project(tmp_path) if draft.kind == "adr")
    assert str(record.scope) == "global"
    assert record.metadata["paths"] == ["/src/auth/login.py", "/src/auth/", "/setup.cfg", "/src/auth/*.py"]


@pytest.mark.parametrize(
    ("front", "scope", "paths"),
    [
        ("paths: [src/auth, 'web/**/*.ts']", "global", ["src/auth", "web/**/*.ts"]),
        ("paths: src/auth, web", "global", ["src/auth", "web"]),
        ("scope: src/auth", "global", ["src/auth"]),
        ("scope: [src/auth, web]", "global", ["src/auth", "web"]),
        ("scope: path:src/auth", "path:src/auth", ["/src/auth/"]),
        ("scope: task:T-42\npaths: [src]", "task:T-42", ["src"]),
        ("scope: backend", "global", None),
    ],
)
def test_front_matter_names_the_paths_that_a_text_governs(
    tmp_path: Path, front: str, scope: str, paths: list[str] | None
) -> None:
    write(tmp_path / "src/auth/login.py", "")
    write(tmp_path / "adr/0001-tokens.md", f"---\n{front}\n---\n" + RECORD.format(context="None."))
    (record,) = (draft for draft in read_project(tmp_path) if draft.kind == "adr")
    assert (str(record.scope), record.metadata.get("paths")) == (scope, paths)


@pytest.mark.parametrize("path", ["../other", "~/x", "C:\\x"])
def test_a_path_outside_the_project_is_refused(tmp_path: Path, path: str) -> None:
    write(tmp_path / "0001-tokens.md", f"---\npaths: ['{path}']\n---\n" + RECORD.format(context="None."))
    with pytest.raises(UnreadableSource, match="lies outside the project"):
        list(read_project(tmp_path))


def project_and_source(path: Path, **named: str) -> tuple[str, str | None]:
    """What an import notes of where the text "A." came from."""
    with germane.open(":memory:", embedder=None) as engine:
        import_source(engine, str(path), **named)  # type: ignore[arg-type]  # Names of projects alone.
        (memory,) = (one for one in engine.memories() if one.content.endswith("A."))
        return memory.metadata["origin"]["project"], memory.source


def test_a_project_is_named_by_its_manifest_or_its_folder(tmp_path: Path) -> None:
    app = tmp_path / "app"
    inside = write(app / "docs" / "a.md", "A.")
    assert project_and_source(app) == ("app", "app/docs/a.md")
    write(app / "package.json", "{broken")
    assert project_and_source(app) == ("app", "app/docs/a.md")
    write(app / "pyproject.toml", PYPROJECT)
    assert project_and_source(app) == ("shop", "app/docs/a.md")
    assert project_and_source(app, project="mine") == ("mine", "app/docs/a.md")
    (app / ".git").mkdir()
    assert project_and_source(inside) == ("shop", "docs/a.md")


def test_a_folder_with_nothing_to_read_says_what_is_read(tmp_path: Path) -> None:
    write(tmp_path / "data.csv", "a,b\n")
    with pytest.raises(UnreadableSource, match="no manifest and no documented module"):
        list(read_project(tmp_path))

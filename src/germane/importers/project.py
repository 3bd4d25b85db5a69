"""A project: where it begins, and its folder as drafts of notes, records, manifests and docs of modules."""

from __future__ import annotations

import ast
import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

from germane.errors import InvalidInput, UnreadableSource
from germane.importers.documents import LONG, named_paths, pattern_of
from germane.importers.foreign import LeaveOut, counted, parsed_toml, uncounted
from germane.importers.host_files import for_folder, governed, imported_files, is_instructions
from germane.importers.markdown import MARKDOWN_SUFFIXES, drafts_of_markdown, too_large, walk
from germane.importers.sources import (
    EXTERNAL,
    FieldError,
    OnSkip,
    Skipped,
    raise_skipped,
    read_text,
    unreadable,
)
from germane.importers.vaults import SETTINGS as VAULT
from germane.importers.vaults import is_in_vault
from germane.model.memory import Draft

PATHS = "paths"
"""The metadata field with the patterns of the paths that a memory applies to, besides its scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The folder of a project. `prefix` precedes the paths of its files in the sources of memories."""

    root: Path
    name: str
    prefix: str

    def place(self, path: Path) -> str:
        """The path of a file or folder from the project's root."""
        return path.relative_to(self.root).as_posix()

    def source(self, path: Path) -> str:
        """The source of a file's memories."""
        return self.prefix + self.place(path)


def project_of(path: Path, *, name: str | None = None, root: Path | str | None = None) -> Project:
    """The project of a file or folder: the one at `root`, or else at `project_root`.

    Its name is `name`, or the name in a manifest at its root, or the name of its folder. Sources are paths
    from a repository's root; elsewhere the name of the folder precedes them. Raises InvalidInput for a path
    outside `root`.
    """
    folder = root_over(path, root)
    called = name or name_in_manifest(folder) or folder.name or "project"
    prefix = "" if (folder / ".git").exists() or not folder.name else f"{folder.name}/"
    return Project(root=folder, name=called, prefix=prefix)


def read_project(path: Path, *, on_skip: OnSkip | None = None, long: int = LONG) -> Iterator[Draft]:
    """The drafts of a project's folder, or of one file of it, in the order of their paths.

    Markdown is read by `read_markdown`. A README below the root has the kind `module`, and so have module
    docstrings of Python and leading doc comments of JavaScript, TypeScript, Go and Rust, each in the scope of
    its path. A manifest (pyproject.toml, package.json, Cargo.toml, go.mod) is one draft of kind `dependency`.
    The metadata of a decision record has the `paths` that it governs: those in its front matter, or else the
    existing ones that it names between backticks.

    Paths that git ignores, hidden folders, third-party folders and files of more than a megabyte are skipped.
    Unreadable files are reported to `on_skip`, or raise UnreadableSource without it. Raises MissingExtra
    without `pathspec`.
    """
    project, start = project_of(path), path.resolve()
    skip = on_skip or raise_skipped
    files: Iterable[Path] = [start]
    if path.is_dir():
        # Files that are skipped by rule don't matter to a reader of drafts.
        files = walk(start, root=project.root, wanted=is_read, passed_over=lambda _: None, refused=skip)
    any_file = False
    with counted(path, on_skip or (lambda _: None)) as leave_out:
        files = [*files]
        others = imported_files(files, project.root, not_imported, on_skip or (lambda _: None))
        for file in (*files, *others):
            any_file = True
            try:
                yield from read_file(project, file, long=long, leave_out=leave_out)
            except UnreadableSource as error:
                if file is start or file.suffix.lower() not in MODULE_SUFFIXES:
                    skip(Skipped(source=str(file), reason=str(error)))
    if not any_file:
        raise nothing_in(path)


def nothing_in(path: Path) -> UnreadableSource:
    """The error for a folder without any file to read."""
    known = ", ".join(sorted(MARKDOWN_SUFFIXES))
    return unreadable(
        path, f"the folder holds no Markdown file ({known}), no manifest and no documented module"
    )


_TEXTS = frozenset({"", ".txt"})


def is_read(path: Path) -> bool:
    """Whether the import of a project reads a file with this name."""
    return path.name in MANIFESTS or path.suffix.lower() in MARKDOWN_SUFFIXES | MODULE_SUFFIXES


def read_file(
    project: Project, path: Path, *, long: int = LONG, leave_out: LeaveOut = uncounted
) -> tuple[Draft, ...]:
    """The drafts of one file of a project; `leave_out` counts what isn't taken over of it.

    Raises UnreadableSource.
    """
    name, place = project.source(path), project.place(path)
    folder = place.rpartition("/")[0]
    try:
        if path.name in MANIFESTS:
            drafts = manifest_drafts(path, name=name, folder=folder)
        elif path.suffix.lower() in MODULE_SUFFIXES:
            drafts = module_drafts(path, name=name, place=place)
        else:
            drafts = drafts_of_markdown(path, name=name, long=long, leave_out=leave_out)
            if is_instructions(path):
                drafts = [for_folder(draft, governed(place, project.root)) for draft in drafts]
            elif folder and path.stem.lower() == "readme" and not is_in_vault(path):
                # A README describes its folder, unless its front matter names another kind or scope.
                drafts = [
                    replace(draft, kind="module", scope=f"path:{folder}")
                    if (draft.kind, draft.scope) == ("note", "global")
                    else draft
                    for draft in drafts
                ]
        return tuple(_placed(project, draft) for draft in drafts)
    except OSError as error:
        raise UnreadableSource(str(error)) from error
    except RecursionError as error:
        raise unreadable(path, "it is nested too deeply to be read") from error


def not_imported(path: Path) -> str | None:
    """Why a file that a CLAUDE.md imports isn't read; None for text and the files of a project."""
    suffix = path.suffix.lower()
    if (not is_read(path) and suffix not in _TEXTS) or path.name.startswith("."):
        return "it isn't Markdown, a manifest, or source code with documentation"
    return too_large(path)


def _placed(project: Project, draft: Draft) -> Draft:
    """The draft with its paths in the metadata, if its scope or its text names any."""
    scope = str(draft.scope)
    if PATHS in draft.metadata:
        return draft
    if scope.startswith("path:"):
        place = scope.removeprefix("path:")
        paths: tuple[str, ...] = (pattern_of(place, folder=(project.root / place).is_dir()),)
    else:
        paths = named_paths(draft.content, project.root) if draft.kind == "adr" else ()
    return replace(draft, metadata={**draft.metadata, PATHS: list(paths)}) if paths else draft


# The documentation of a module: Python's docstring, or the leading doc comment in other languages.

_SCRIPT = frozenset({".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"})
MODULE_SUFFIXES = frozenset({".py", ".go", ".rs"}) | _SCRIPT
"""The suffixes of files with leading documentation."""

_FOLDERS = frozenset({"__init__.py", "mod.rs", "lib.rs", "main.rs", "doc.go"})
"""Files that represent their folder, as index files of JavaScript and TypeScript do."""

_BLOCK = re.compile(r"/\*\*(?!/)(?P<text>.*?)\*/", re.DOTALL)
_BEFORE_SCRIPT = re.compile(
    r"(?:\s+|#![^\n]*\n|//[^\n]*(?:\n|$)|/\*(?!\*).*?\*/|['\"]use \w+['\"];?)*", re.DOTALL
)
_PACKAGE = re.compile(r"^package[ \t]+\w+[ \t]*(?://[^\n]*)?$", re.MULTILINE)
_BEFORE_RUST = re.compile(
    r"(?:\s+|#!\[[^\n]*\n|#![^\[\n][^\n]*\n|//(?!!)[^\n]*\n|/\*(?!!).*?\*/)*", re.DOTALL
)
_INNER = re.compile(r"(?:[ \t]*//![^\n]*(?:\n|$))+")
_INNER_BLOCK = re.compile(r"/\*!(?P<text>.*?)\*/", re.DOTALL)
_LICENCE = re.compile(r"copyright|licen[cs]e|SPDX-", re.IGNORECASE)
_DIRECTIVE = re.compile(r"^(?:go:\w+|\+build\b|nolint\b)")


def module_drafts(path: Path, *, name: str, place: str) -> list[Draft]:
    """The draft of kind `module` of a documented module; none without documentation.

    `name` is its source and `place` its path from the project's root. The scope is that path, or the folder
    of a file that represents it, such as `__init__.py`. The documentation is the first block comment with two
    stars before any code in JavaScript and TypeScript, the comment directly above `package` in Go, and the
    inner doc comment in Rust. A licence isn't documentation. Raises UnreadableSource if the file isn't text
    or is Python that can't be parsed.
    """
    if path.is_file() and path.stat().st_size == 0:
        return []  # An empty `__init__.py` is valid.
    text, suffix = read_text(path), path.suffix.lower()
    if suffix == ".py":
        doc = _of_python(text, path)
    else:
        doc = {".go": _of_go, ".rs": _of_rust}.get(suffix, _of_script)(text)
        doc = "" if _LICENCE.search(doc.partition("\n\n")[0]) else doc
    if not doc:
        return []
    file = PurePosixPath(place)
    is_folder = file.name in _FOLDERS or (file.stem == "index" and file.suffix in _SCRIPT)
    module = (file.parent if is_folder else file).as_posix()
    module = "" if module == "." else module
    return [
        Draft(
            content=f"{module or '.'}: {doc}",
            kind="module",
            subject=module or place,
            scope=f"path:{module}" if module else "global",
            trust=EXTERNAL,
            source=name,
        )
    ]


def _of_python(text: str, path: Path) -> str:
    try:
        with warnings.catch_warnings():
            # Warnings about the parsed source don't concern the user.
            warnings.simplefilter("ignore")
            return (ast.get_docstring(ast.parse(text)) or "").strip()
    except SyntaxError as error:
        raise unreadable(path, f"it is no Python ({error.msg})", line=error.lineno) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise unreadable(path, f"it is no Python ({str(error) or type(error).__name__})") from error


def _of_script(text: str) -> str:
    before = _BEFORE_SCRIPT.match(text)
    block = _BLOCK.match(text, before.end() if before else 0)
    if block and _LICENCE.search(block["text"]):
        before = _BEFORE_SCRIPT.match(text, block.end())
        block = _BLOCK.match(text, before.end() if before else block.end())
    return _without_stars(block["text"]) if block else ""


def _of_go(text: str) -> str:
    package = _PACKAGE.search(text)
    above = text[: package.start()] if package else ""
    if above.endswith("*/\n"):
        return inspect.cleandoc(above[above.rfind("/*") + 2 : -3])
    comment = takewhile(lambda line: line.startswith("//"), reversed(above.split("\n")[:-1]))
    lines = [line[2:].removeprefix(" ") for line in comment]
    return "\n".join(line for line in reversed(lines) if not _DIRECTIVE.match(line)).strip()


def _of_rust(text: str) -> str:
    before = _BEFORE_RUST.match(text)
    start = before.end() if before else 0
    if block := _INNER_BLOCK.match(text, start):
        return _without_stars(block["text"])
    # The match includes the blank part before the first line; indentation is irrelevant.
    lines = _INNER.match(text, start)
    if not lines:
        return ""
    return "\n".join(line.strip()[3:].removeprefix(" ") for line in lines[0].strip().split("\n")).strip()


def _without_stars(text: str) -> str:
    return "\n".join(re.sub(r"^\s*\*? ?", "", line).rstrip() for line in text.split("\n")).strip()


# The dependencies in manifests by group.

_GO_LINE = re.compile(r"^(?P<module>\S+)\s+(?P<version>v\S+)\s*(?://\s*(?P<indirect>indirect\b)?.*)?$")
_GO_BLOCK = re.compile(r"^(?P<verb>\w+)\s*\(\s*(?://.*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of a manifest: the project, its runtime, and its dependencies by group, in order."""

    ecosystem: str
    name: str | None
    version: str | None = None
    requires: str | None = None
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    note: str | None = None


def of_pyproject(data: Mapping[str, Any]) -> Manifest:
    """A pyproject.toml: PEP 621 with its extras, the groups of PEP 735, and Poetry's tables."""
    project, poetry = _table(data, "project"), _table(_table(data, "tool"), "poetry")
    optional, needs = _table(project, "optional-dependencies"), _texts(project, "dependencies")
    groups = [("Runtime", needs)] if needs else []
    groups += [(f"Extra {extra}", _texts(optional, extra)) for extra in optional]
    groups += [*_of_groups(_table(data, "dependency-groups")), *_of_poetry(poetry)]
    build = _texts(_table(data, "build-system"), "requires")
    if (project or poetry) and build:
        groups.append(("Build", build))
    requires = _text(project, "requires-python") or _text(_table(poetry, "dependencies"), "python")
    dynamic = _texts(project, "dynamic")
    return Manifest(
        ecosystem="python",
        name=_text(project, "name") or _text(poetry, "name"),
        version=_text(project, "version") or _text(poetry, "version"),
        requires=f"Python {requires}" if requires else None,
        groups=tuple(groups),
        note="The dependencies are computed when it is built." if "dependencies" in dynamic else None,
    )


def of_npm(data: Mapping[str, Any]) -> Manifest:
    """A package.json."""
    if not isinstance(data, dict):
        raise FieldError("one JSON object was expected")
    labels = {
        "dependencies": "Runtime",
        "peerDependencies": "Peer",
        "optionalDependencies": "Optional",
        "devDependencies": "Development",
    }
    engines = ", ".join(f"{name} {wanted}" for name, wanted in _table(data, "engines").items())
    return Manifest(
        ecosystem="npm",
        name=_text(data, "name"),
        version=_text(data, "version"),
        requires=engines or None,
        groups=tuple(_tables(data, labels)),
    )


def of_cargo(data: Mapping[str, Any]) -> Manifest:
    """A Cargo.toml: of a package, of a workspace, or both."""
    package = _table(data, "package")
    rust = _text(package, "rust-version")
    labels = {"dependencies": "Runtime", "build-dependencies": "Build", "dev-dependencies": "Development"}
    places = {"": data, "Workspace: ": _table(data, "workspace")}
    places |= {f"{target}: ": table for target, table in _table(data, "target").items()}
    return Manifest(
        ecosystem="cargo",
        name=_text(package, "name"),
        version=_text(package, "version"),
        requires=f"Rust {rust}" if rust else None,
        groups=tuple(
            (f"{prefix}{label}", needs)
            for prefix, place in places.items()
            for label, needs in _tables(place if isinstance(place, dict) else {}, labels)
        ),
    )


def of_go(text: str) -> Manifest:
    """A go.mod: its module, its version of Go, and its direct and indirect dependencies."""
    name = version = None
    needs: dict[str, list[str]] = {"Runtime": [], "Indirect": [], "Replaced": []}
    for verb, rest in _go_statements(text):
        if verb == "module":
            name = rest.partition("//")[0].strip().strip('"`')
        elif verb == "go":
            version = rest.partition("//")[0].strip()
        elif verb == "require" and (match := _GO_LINE.match(rest)):
            group = "Indirect" if match["indirect"] else "Runtime"
            needs[group].append(f"{match['module']} {match['version']}")
        elif verb == "replace":
            needs["Replaced"].append(rest.partition("//")[0].strip())
    if name is None:
        raise FieldError("it has no line `module NAME`, which every go.mod has")
    return Manifest(
        ecosystem="go",
        name=name,
        requires=f"Go {version}" if version else None,
        groups=tuple((group, tuple(needed)) for group, needed in needs.items() if needed),
    )


def _of_groups(groups: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for group, needs in groups.items():
        if not isinstance(needs, list):
            raise FieldError(f"the dependency group {group!r} must be a list")
        named = [need if isinstance(need, str) else _included(group, need) for need in needs]
        yield f"Group {group}", tuple(named)


def _included(group: str, need: object) -> str:
    if isinstance(need, dict) and isinstance(need.get("include-group"), str):
        return f"all of group {need['include-group']}"
    raise FieldError(f"the dependency group {group!r} holds what is neither a text nor an include-group")


def _of_poetry(poetry: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from _tables(poetry, {"dependencies": "Runtime", "dev-dependencies": "Group dev"}, without="python")
    groups = _table(poetry, "group")
    for name in groups:
        yield from _tables(_table(groups, name), {"dependencies": f"Group {name}"}, without="python")


def _tables(
    fields: Mapping[str, Any], labels: Mapping[str, str], *, without: str | None = None
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The dependencies of each table that isn't empty, under its label."""
    for name, label in labels.items():
        table = _table(fields, name)
        needs = tuple(_need(each, wanted) for each, wanted in table.items() if each.lower() != without)
        if needs:
            yield label, needs


def _need(name: str, wanted: object) -> str:
    """One dependency of a table: its version or its origin."""
    if isinstance(wanted, str):
        return f"{name} {wanted}"
    if isinstance(wanted, list):  # Poetry: several versions with conditions.
        return " or ".join(_need(name, one) for one in wanted)
    if not isinstance(wanted, dict):
        raise FieldError(f"the dependency {name!r} must be a text or a table, and is {wanted!r}")
    words = [str(wanted["version"])] if "version" in wanted else []
    words += [f"from {wanted[key]}" for key in ("git", "path", "url") if key in wanted]
    if wanted.get("workspace"):
        words.append("of the workspace")
    if isinstance(features := wanted.get("features", wanted.get("extras")), list) and features:
        words.append(f"with {'+'.join(map(str, features))}")
    if wanted.get("optional"):
        words.append("(optional)")
    return " ".join([name, *words])


def _go_statements(text: str) -> Iterator[tuple[str, str]]:
    """The verb and the rest of each statement; lines in a block have the block's verb."""
    block = None
    for line in map(str.strip, text.split("\n")):
        if not line or line.startswith("//"):
            continue
        if block is not None and line.startswith(")"):
            block = None
        elif block is not None:
            yield block, line
        elif match := _GO_BLOCK.match(line):
            block = match["verb"]
        else:
            verb, _, rest = line.partition(" ")
            yield verb, rest.strip()


def _table(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FieldError(f"{name!r} must be a table, and is {type(value).__name__}")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value: Iterable[object] = fields.get(name) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise FieldError(f"{name!r} must be a list of texts")
    return tuple(str(each) for each in value)


_READERS: Mapping[str, Callable[[Any], Manifest]] = {
    "pyproject.toml": of_pyproject,
    "package.json": of_npm,
    "Cargo.toml": of_cargo,
    "go.mod": of_go,
}

MANIFESTS = frozenset(_READERS)
"""The file names of manifests."""


def manifest_drafts(path: Path, *, name: str, folder: str) -> list[Draft]:
    """The draft of kind `dependency` of one manifest: the dependencies by group, verbatim.

    `name` is its source, `folder` its folder from the project's root, empty at the root. A manifest without
    the name of a project and without dependencies, such as one that only configures tools, gives none. Raises
    UnreadableSource if it can't be parsed.
    """
    manifest = _parsed(path)
    if not manifest.groups and not manifest.name:
        return []
    place = f"{folder}/{path.name}" if folder else path.name
    title = " ".join(
        filter(None, ["Dependencies of", manifest.name or folder or "the project", manifest.version])
    )
    lines = [f"{title} ({place})", *_lines(manifest)]
    return [
        Draft(
            content="\n".join(lines),
            kind="dependency",
            subject=manifest.name or place,
            scope=f"path:{folder}" if folder else "global",
            trust=EXTERNAL,
            source=name,
            metadata={
                "manifest": path.name,
                "ecosystem": manifest.ecosystem,
                "dependencies": {group: list(needs) for group, needs in manifest.groups},
            },
        )
    ]


def name_in_manifest(folder: Path) -> str | None:
    """The name of the project in the first manifest of a folder; None without one."""
    for name in _READERS:
        with suppress(UnreadableSource):
            if (folder / name).is_file() and (project := _parsed(folder / name).name):
                return project
    return None


def _parsed(path: Path) -> Manifest:
    text = read_text(path)
    try:
        if path.suffix == ".toml":
            return _READERS[path.name](parsed_toml(text))
        return _READERS[path.name](json.loads(text) if path.suffix == ".json" else text)
    except FieldError as error:
        raise unreadable(path, str(error)) from error
    except (ValueError, RecursionError) as error:  # Invalid TOML or JSON.
        language = "TOML" if path.suffix == ".toml" else "JSON"
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise unreadable(path, f"it is no {language} ({why})") from error


def _lines(manifest: Manifest) -> Iterator[str]:
    if manifest.requires:
        yield f"Requires {manifest.requires}"
    for group, needs in manifest.groups:
        yield f"{group}: {', '.join(needs) or 'nothing'}"
    if manifest.note:
        yield manifest.note


# The root of a project, which its paths are relative to.
#
# Imports, watches and contexts of a project must agree on it in each of its folders, or the scopes of paths
# would not match.

SETTINGS = "germane.toml"
"""The name of the settings file at the root of a project."""

_MARKS = (SETTINGS, ".git")
_LESSER_MARKS = (*_READERS, VAULT)


def project_root(start: Path) -> Path:
    """The nearest folder at or above `start` with a germane.toml or a repository, else with a manifest or a
    vault of Obsidian.

    Without any, it is `start` itself, or the folder of that file. A manifest or a vault in the home folder or
    above it doesn't mark a project. The root of a memory folder of Claude Code is the folder above it, whose
    name is the project's, and the root of Codex's memories is the `.codex` folder.
    """
    here = start.resolve()
    here = here if here.is_dir() else here.parent
    above = (here, *here.parents)
    for folder in above:
        if folder.name == "memories" and folder.parent.name == ".codex":
            return folder.parent  # Codex makes the folder of its memories a repository.
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    home = Path.home()
    for folder in above:
        if folder != here and (folder == home or folder in home.parents):
            break
        if any((folder / mark).exists() for mark in _LESSER_MARKS):
            return folder
        if folder.name == "memory" and folder.parent.parent.name == "projects":
            return folder.parent
    return here


def root_over(start: Path, root: Path | str | None) -> Path:
    """The given root of `start`, or else `project_root`.

    Raises InvalidInput for a root that isn't a folder or doesn't contain `start`.
    """
    if root is None:
        return project_root(start)
    folder = Path(root).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidInput(f"The root {str(root)!r} is no folder. Name the one that the project begins in.")
    if not start.resolve().is_relative_to(folder):
        raise InvalidInput(
            f"{str(start)!r} lies outside the project at {str(folder)!r}. Name a path inside it, or the root "
            "of the project that it belongs to."
        )
    return folder

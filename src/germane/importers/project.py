"""A project's folder as drafts: records, changelogs, manifests, notes and the docs of its modules."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath

from germane.errors import UnreadableSource
from germane.importers.documents import LONG, named_paths, pattern_of
from germane.importers.manifests import MANIFESTS, manifest_drafts, name_in_manifest, root_over
from germane.importers.markdown import MARKDOWN_SUFFIXES, drafts_of_markdown, walk
from germane.importers.sources import EXTERNAL, OnSkip, Skipped, raise_skipped, read_text, unreadable
from germane.model.memory import Draft

PATHS = "paths"
"""The metadata that holds the patterns of the paths a memory applies to, besides its scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder whose files belong together. `prefix` precedes their paths in the sources of memories."""

    root: Path
    name: str
    prefix: str

    def place(self, path: Path) -> str:
        """The path of a file or folder of the project from its root."""
        return path.relative_to(self.root).as_posix()

    def source(self, path: Path) -> str:
        """The name that a file's memories carry as their source."""
        return self.prefix + self.place(path)


def project_of(path: Path, *, name: str | None = None, root: Path | str | None = None) -> Project:
    """The project that a file or folder belongs to: that of `root`, or else of `project_root`.

    Its name is `name`, or that in a manifest at its root, or that of its folder. Sources are paths from a
    repository's root; elsewhere the folder's own name comes first. Raises InvalidInput for a path
    outside `root`.
    """
    folder = root_over(path, root)
    called = name or name_in_manifest(folder) or folder.name or "project"
    prefix = "" if (folder / ".git").exists() or not folder.name else f"{folder.name}/"
    return Project(root=folder, name=called, prefix=prefix)


def read_project(path: Path, *, on_skip: OnSkip | None = None, long: int = LONG) -> Iterator[Draft]:
    """The drafts of a project's folder, or of one file of it, in the order of their paths.

    Markdown is read as `read_markdown` reads it; a README below the root is of kind `module`, and so are the
    docstrings of Python and the leading doc comments of JavaScript, TypeScript, Go and Rust, each in
    the scope of its path. A manifest (pyproject.toml, package.json, Cargo.toml, go.mod) is one draft of
    kind `dependency`. A decision record has in its metadata the `paths` that it governs: those of its
    front matter, or else those that it names between backticks and that are there.

    What git ignores is left out, and so are hidden folders, others' work and files of more than a
    megabyte. What can't be read goes to `on_skip`, or raises UnreadableSource where there is none.
    Raises MissingExtra without `pathspec`.
    """
    project, start = project_of(path), path.resolve()
    leave_out = on_skip or raise_skipped
    files: Iterable[Path] = [start]
    if path.is_dir():
        # What is left out by rule is of no interest to a reader of drafts.
        files = walk(start, root=project.root, wanted=is_read, passed_over=lambda _: None, refused=leave_out)
    any_file = False
    for file in files:
        any_file = True
        try:
            yield from read_file(project, file, long=long)
        except UnreadableSource as error:
            if file is start or file.suffix.lower() not in MODULE_SUFFIXES:
                leave_out(Skipped(source=str(file), reason=str(error)))
    if not any_file:
        raise nothing_in(path)


def nothing_in(path: Path) -> UnreadableSource:
    """The error for a folder that holds nothing to read."""
    known = ", ".join(sorted(MARKDOWN_SUFFIXES))
    return unreadable(
        path, f"the folder holds no Markdown file ({known}), no manifest and no documented module"
    )


def is_read(path: Path) -> bool:
    """Whether a project's import reads files of that name."""
    return path.name in MANIFESTS or path.suffix.lower() in MARKDOWN_SUFFIXES | MODULE_SUFFIXES


def read_file(project: Project, path: Path, *, long: int = LONG) -> tuple[Draft, ...]:
    """The drafts of one file of a project, all or none. Raises UnreadableSource."""
    name, place = project.source(path), project.place(path)
    folder = place.rpartition("/")[0]
    try:
        if path.name in MANIFESTS:
            drafts = manifest_drafts(path, name=name, folder=folder)
        elif path.suffix.lower() in MODULE_SUFFIXES:
            drafts = module_drafts(path, name=name, place=place)
        else:
            drafts = drafts_of_markdown(path, name=name, long=long)
            if folder and path.stem.lower() == "readme":
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


def _placed(project: Project, draft: Draft) -> Draft:
    """The draft with the paths that it applies to in its metadata, where its scope or its text names any."""
    scope = str(draft.scope)
    if PATHS in draft.metadata:
        return draft
    if scope.startswith("path:"):
        place = scope.removeprefix("path:")
        paths: tuple[str, ...] = (pattern_of(place, folder=(project.root / place).is_dir()),)
    else:
        paths = named_paths(draft.content, project.root) if draft.kind == "adr" else ()
    return replace(draft, metadata={**draft.metadata, PATHS: list(paths)}) if paths else draft


# The documentation in the source of a module: Python's docstring, the leading doc comment of other languages.

_SCRIPT = frozenset({".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"})
MODULE_SUFFIXES = frozenset({".py", ".go", ".rs"}) | _SCRIPT
"""The suffixes of the files whose leading documentation is read."""

_FOLDERS = frozenset({"__init__.py", "mod.rs", "lib.rs", "main.rs", "doc.go"})
"""Files that represent their folder; so does an index file of JavaScript or TypeScript."""

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
    """The draft of a module that documents itself, of kind `module`; none for one that doesn't.

    `name` is its source and `place` its path from the project's root. The scope is that path, or the
    folder for a file that represents its folder, such as `__init__.py`. In JavaScript and TypeScript the
    documentation is the first block comment with two stars, before any code; in Go the comment right above
    `package`; in Rust the inner doc comment. A licence is none. Raises UnreadableSource for what isn't text,
    and for Python that can't be parsed.
    """
    if path.is_file() and path.stat().st_size == 0:
        return []  # An empty `__init__.py` is no fault.
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
            # How somebody else's source escapes its backslashes is not for us to remark on.
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
    # The blank part before the first line was taken along; its indentation doesn't matter here.
    lines = _INNER.match(text, start)
    if not lines:
        return ""
    return "\n".join(line.strip()[3:].removeprefix(" ") for line in lines[0].strip().split("\n")).strip()


def _without_stars(text: str) -> str:
    return "\n".join(re.sub(r"^\s*\*? ?", "", line).rstrip() for line in text.split("\n")).strip()

"""What the source of a module says about it: Python's docstring, the leading doc comment of other languages.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from pathlib import Path, PurePosixPath

from germane.errors import UnreadableSource
from germane.exchange.sources import EXTERNAL, read_text, unreadable
from germane.model.draft import Draft

__all__ = ["MODULE_SUFFIXES", "doc_of_source", "module_drafts"]

_SCRIPT = frozenset({".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"})
MODULE_SUFFIXES = frozenset({".py", ".go", ".rs"}) | _SCRIPT
"""The suffixes of the files whose leading documentation is read."""

_FOLDERS = frozenset({"__init__.py", "mod.rs", "lib.rs", "main.rs", "doc.go"})
"""Files that speak for the folder they lie in; so does an index file of JavaScript or TypeScript."""

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
    folder for a file that speaks for its folder, such as `__init__.py`. Raises UnreadableSource for what
    isn't text, and for Python that can't be parsed.
    """
    try:
        text = read_text(path)
    except UnreadableSource:
        if path.stat().st_size == 0:
            return []  # An empty `__init__.py` is no fault.
        raise
    doc = doc_of_source(text, path)
    if not doc:
        return []
    speaks_for = _scope(PurePosixPath(place))
    return [
        Draft(
            content=f"{speaks_for or '.'}: {doc}",
            kind="module",
            subject=speaks_for or place,
            scope=f"path:{speaks_for}" if speaks_for else "global",
            trust=EXTERNAL,
            source=name,
        )
    ]


def doc_of_source(text: str, path: Path) -> str:
    """The documentation that opens a source, without its markers; empty where there is none.

    In JavaScript and TypeScript it is the first block comment with two stars, before any code; in Go
    the comment right above `package`; in Rust the inner doc comment. A licence is none. Raises
    UnreadableSource for Python that can't be parsed.
    """
    suffix = path.suffix.lower()
    if suffix == ".py":
        return _of_python(text, path)
    found = {".go": _of_go, ".rs": _of_rust}.get(suffix, _of_script)(text)
    return "" if _LICENCE.search(found.partition("\n\n")[0]) else found


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
    found = _BLOCK.match(text, before.end() if before else 0)
    if found and _LICENCE.search(found["text"]):
        before = _BEFORE_SCRIPT.match(text, found.end())
        found = _BLOCK.match(text, before.end() if before else found.end())
    return _without_stars(found["text"]) if found else ""


def _of_go(text: str) -> str:
    found = _PACKAGE.search(text)
    above = text[: found.start()] if found else ""
    if above.endswith("*/\n"):
        return inspect.cleandoc(above[above.rfind("/*") + 2 : -3])
    said: list[str] = []
    for line in reversed(above.split("\n")[:-1]):
        if not line.startswith("//"):
            break
        said.insert(0, line[2:].removeprefix(" "))
    return "\n".join(line for line in said if not _DIRECTIVE.match(line)).strip()


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


def _scope(place: PurePosixPath) -> str:
    if place.name in _FOLDERS or (place.stem == "index" and place.suffix in _SCRIPT):
        folder = place.parent.as_posix()
        return "" if folder == "." else folder
    return place.as_posix()

"""Which paths of a project a text governs: those that its front matter lists, or that it names.

Level: exchange (imports nothing of the package but this room). Looks at names of files, never at their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from germane.exchange.fields import FieldError

__all__ = ["MOST_PATHS", "named_paths", "pattern_of", "stated_paths", "stated_scope"]

MOST_PATHS = 50
"""How many paths a text may govern; one that names more is about all of them."""

_QUOTED = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_PLACE = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)$")
_MEANING = re.compile(r"([\\*?\[\]!# ])")
_GLOB = re.compile(r"[*?\[]")
_SCOPE = re.compile(r"^(?:global$|[A-Za-z][\w-]*:\S)")
_ELSEWHERE = re.compile(r"^(?:[A-Za-z]:|~|\\\\)")


def stated_scope(fields: Mapping[str, Any]) -> str | None:
    """The scope that front matter names: `global`, or a name with a value; None for anything else there.

    Other tools write other words under `scope`, which stay metadata.
    """
    scope = fields.get("scope")
    return scope.strip() if isinstance(scope, str) and _SCOPE.match(scope.strip()) else None


def stated_paths(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The patterns under `paths` in front matter, and under a `scope` that lists paths or is one.

    Each is a pattern as in a .gitignore, from the project's root. Raises FieldError for what is no list
    of texts, and for a path outside the project.
    """
    stated = [*_listed(fields.get("paths"), "paths")]
    scope = fields.get("scope")
    if isinstance(scope, list) or (isinstance(scope, str) and "/" in scope and stated_scope(fields) is None):
        stated += _listed(scope, "scope")
    for pattern in stated:
        if ".." in PurePosixPath(pattern).parts or _ELSEWHERE.match(pattern):
            raise FieldError(
                f"the path {pattern!r} lies outside the project; it is written from the project's root, "
                "such as src/auth"
            )
    return tuple(dict.fromkeys(stated))


def named_paths(text: str, root: Path) -> tuple[str, ...]:
    """The patterns of the files and folders under `root` that a text names between backticks.

    A name counts when it is there now and has a slash or a suffix, so that the word `docs` isn't one;
    a glob counts when the folder above its first wildcard is there. A line number behind it is ignored.
    """
    found = dict.fromkeys(pattern for name in _quoted(text) if (pattern := _existing(name, root)))
    return tuple(found) if len(found) <= MOST_PATHS else ()


def pattern_of(place: str, *, folder: bool) -> str:
    """The pattern that matches one file or folder alone, by its path from the project's root."""
    return "/" + _MEANING.sub(r"\\\1", place) + ("/" if folder else "")


def _listed(value: object, name: str) -> Iterator[str]:
    items = value.split(",") if isinstance(value, str) else value
    if items is None:
        return
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise FieldError(f"{name!r} must be a list of paths, or one text with commas, and is {value!r}")
    yield from (item.strip() for item in items if item.strip())


def _quoted(text: str) -> Iterator[str]:
    for match in _QUOTED.finditer(text):
        yield _PLACE.sub("", match[1].strip())


def _existing(name: str, root: Path) -> str | None:
    plain = name.removeprefix("./")
    parts = PurePosixPath(plain).parts
    if not parts or plain.startswith(("/", "~")) or ".." in parts or "\\" in plain or "\0" in plain:
        return None
    if _GLOB.search(plain):
        above = PurePosixPath(*_before_glob(parts))
        return f"/{plain}" if "/" in plain and above.parts and _is_there(root / above) else None
    if "/" not in plain and not PurePosixPath(plain).suffix:
        return None
    place = PurePosixPath(plain).as_posix()
    if not _is_there(root / place):
        return None
    return pattern_of(place, folder=(root / place).is_dir())


def _before_glob(parts: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        if _GLOB.search(part):
            return
        yield part


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # Too long a name, or one that no file can have.
        return False

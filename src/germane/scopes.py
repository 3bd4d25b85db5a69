"""Where a memory applies, beyond the one scope that it has: further scopes, and patterns of paths.

Pure: paths are texts, and no file is looked at.

A memory stands in its own scope, in those that its metadata lists under `scopes`, and on the paths that a
`path:` scope or the patterns under `paths` in its metadata cover. A path scope without a wildcard is
one file or folder, from the project's root, with all below it. Everything else is a pattern as in a
.gitignore, read by `pathspec`: of several patterns the last that matches decides, and `!` excludes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from germane.errors import InvalidInput, MissingExtra, shown
from germane.model.memory import Memory, Scope

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

PATHS = "paths"
"""The metadata that lists the patterns of the paths a memory applies to, besides its scope."""

SCOPES = "scopes"
"""The metadata that lists further scopes of a memory."""

_PATH = "path"
_PATTERNS = "paths:"
_ELSEWHERE = re.compile(r"^(?:/|~|[A-Za-z]:)")
_WILDCARD = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r"\\(.)")
_PART_OF_A_LEVEL = 0.5
"""What a wildcard takes off: `src/*.py` says less of a file than `src/auth` does of what is in it."""
_LEAST = 0.1
"""What covers a path is nearer to it than what doesn't, however little it says of where."""


def checked_path(path: object) -> str:
    """A path from the project's root, with `/` between its parts; backslashes and `./` are taken along.

    Raises InvalidInput for one outside the project, or none at all.
    """
    text = str(path).replace("\\", "/").strip()
    plain = PurePosixPath(text)
    if "\0" in text:
        raise InvalidInput(f"The path {shown(text)} holds a NUL character, which no path can.")
    if not text or _ELSEWHERE.match(text) or ".." in plain.parts:
        raise InvalidInput(
            f"The path {str(path)!r} lies outside the project. Write it from the project's root, with no "
            "'..' in it, such as 'src/auth/login.py'."
        )
    return plain.as_posix()


def further_places(memory: Memory) -> tuple[str, ...]:
    """Where a memory stands besides its scope, each as the one text by which a store can find it.

    A path scope is among them, since a path is found by what covers it and not by its name.
    """
    places = [f"{scope}" for scope in _scopes(memory.metadata.get(SCOPES))]
    if memory.scope.name == _PATH:
        places.append(str(memory.scope))
    patterns = memory.metadata.get(PATHS)
    if patterns and _are_patterns(patterns):
        places.append(_PATTERNS + json.dumps(list(patterns), ensure_ascii=False))
    return tuple(dict.fromkeys(places))


def covers(place: str, scopes: Collection[Scope]) -> bool:
    """Whether one of a memory's further places is among these scopes; a path counts when it is covered."""
    paths = [scope.value for scope in scopes if scope.name == _PATH]
    if place.startswith(_PATTERNS):
        patterns = tuple(json.loads(place.removeprefix(_PATTERNS)))
        return any(_of_patterns(patterns, path) is not None for path in paths)
    if place.startswith(f"{_PATH}:"):
        return any(_of_scope(place.removeprefix(f"{_PATH}:"), path) is not None for path in paths)
    return any(place == str(scope) for scope in scopes)


def closeness(memory: Memory, paths: Iterable[str]) -> float:
    """How closely a memory's places fit the nearest of some paths: 1 for the very path, 0 for none.

    In between it is the share of the path's levels that the place names, less half a level for a pattern.
    """
    return closeness_to(paths)(memory)


def closeness_to(paths: Iterable[str]) -> Callable[[Memory], float]:
    """`closeness` to these paths for many memories, where those of one place are looked at once."""
    paths = tuple(paths)

    @cache
    def of_scope(value: str) -> float:
        return max((_of_scope(value, path) or 0.0 for path in paths), default=0.0)

    @cache
    def of_patterns(patterns: tuple[str, ...]) -> float:
        return max((_of_patterns(patterns, path) or 0.0 for path in paths), default=0.0)

    def near(memory: Memory) -> float:
        best = of_scope(memory.scope.value) if memory.scope.name == _PATH else 0.0
        patterns = memory.metadata.get(PATHS) if memory.metadata else None
        return max(best, of_patterns(tuple(patterns))) if patterns and _are_patterns(patterns) else best

    return near


def _are_patterns(listed: Any) -> bool:
    # Of a list of one, as most are, this costs a fifth of what a loop does.
    if isinstance(listed, list | tuple) and len(listed) == 1:
        return isinstance(listed[0], str)
    return isinstance(listed, list | tuple) and all(isinstance(each, str) for each in listed)


@lru_cache(maxsize=16_384)
def _of_patterns(patterns: tuple[str, ...], path: str) -> float | None:
    """How near a list of patterns is to a path; None where it doesn't cover it."""
    plain = _plain(patterns[0]) if len(patterns) == 1 else None
    return _by_patterns(patterns, path) if plain is None else _below(plain, path)


@lru_cache(maxsize=16_384)
def _of_scope(value: str, path: str) -> float | None:
    """The same for the value of a path scope."""
    if _WILDCARD.search(value):
        return _by_patterns((value,), path)
    return _below(PurePosixPath(value.removeprefix("/")).as_posix(), path)


def _plain(pattern: str) -> str | None:
    """The one file or folder that a pattern stands for; None where it may stand for several."""
    text = pattern.rstrip()
    if text.endswith("\\") or text.startswith(("!", "#")) or "/" not in text[:-1]:
        return None
    bare = _ESCAPED.sub("", text)
    if _WILDCARD.search(bare):
        return None
    return _ESCAPED.sub(r"\1", text).strip("/") or None


def _below(place: str, path: str) -> float | None:
    """How near a file or folder is to a path that lies there or below it."""
    if place == ".":
        return _share(0, path)
    if path != place and not path.startswith(f"{place}/"):
        return None
    return _share(place.count("/") + 1, path)


def _by_patterns(patterns: tuple[str, ...], path: str) -> float | None:
    result = _spec(patterns).check_file(path)
    if not result.include or result.index is None:
        return None
    pattern = patterns[result.index]
    named = [part for part in pattern.strip("/").split("/") if part and not _WILDCARD.search(part)]
    less = _PART_OF_A_LEVEL if _WILDCARD.search(pattern) else 0.0
    return _share(len(named) - less, path)


def _share(levels: float, path: str) -> float:
    return min(1.0, max(levels, _LEAST) / (path.count("/") + 1))


@lru_cache(maxsize=4096)
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    try:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - An optional dependency, needed only for patterns.
    except ImportError as error:
        raise MissingExtra(feature="Matching paths by patterns", extra="project") from error
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError:
        readable = list(patterns)
    for place, pattern in enumerate(patterns):
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            # What git itself would pass over covers nothing. A comment keeps the places of those after it.
            readable[place] = "#"
    return GitIgnoreSpec.from_lines(readable)


def _scopes(listed: Any) -> list[Scope]:
    """The scopes that metadata lists; what is no scope there is somebody else's word."""
    scopes: list[Scope] = []
    for text in listed if isinstance(listed, list | tuple) else ():
        with suppress(InvalidInput):
            scopes.append(Scope.parse(str(text)))
    return scopes

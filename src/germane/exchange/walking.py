"""The files of a project that may be read: what git ignores and what others wrote is passed over.

Level: exchange (imports errors).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from germane.errors import MissingExtra
from germane.exchange.sources import OnSkip, Skipped, unreadable

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["MOST_BYTES", "NOT_OURS", "Ignored", "Wanted", "is_hidden", "walk"]

MOST_BYTES = 1_000_000
"""A file of more is generated or data; what people write to be read is far shorter."""

NOT_OURS = frozenset(
    {"node_modules", "bower_components", "site-packages", "vendor", "third_party", "__pycache__"}
)
"""Folders that hold other people's work or none at all; so do hidden ones and virtual environments."""

_IGNORE_FILE = ".gitignore"

Wanted: TypeAlias = Callable[[Path], bool]
"""Whether a file is of a sort that is read at all, judged by its name."""


class Ignored:
    """Whether git ignores a path, by every .gitignore from the root to it and the repository's own list.

    The patterns are read by `pathspec`, in git's order: the nearest file decides, and in it the last
    pattern that matches. What lies below an ignored folder is ignored whatever else is said.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[Path, GitIgnoreSpec | None] = {}
        self._own = _spec(root / ".git" / "info" / "exclude")

    def __call__(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the path itself is ignored; its folders are taken to be not."""
        for folder in path.parents:
            spec = self._spec_of(folder)
            said = _says(spec, path.relative_to(folder), is_folder=is_folder)
            if said is not None:
                return said
            if folder == self._root:
                break
        return bool(_says(self._own, path.relative_to(self._root), is_folder=is_folder))

    def below(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the path or one of its folders, from the root down, is ignored."""
        above = [folder for folder in path.parents if folder != self._root and self._root in folder.parents]
        return any(self(folder, is_folder=True) for folder in above) or self(path, is_folder=is_folder)

    def _spec_of(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = _spec(folder / _IGNORE_FILE)
        return self._specs[folder]


def walk(
    start: Path,
    *,
    root: Path,
    wanted: Wanted,
    passed_over: OnSkip,
    refused: OnSkip,
) -> Iterator[Path]:
    """The wanted files at or below `start`, folder by folder in the order of their names.

    Ignored and hidden ones are left out silently; folders of other people's work, files of more than
    MOST_BYTES and links that lead out of the project are told to `passed_over`, folders that the system
    refuses to `refused`.
    """
    ignored = Ignored(root)
    if start.is_dir():
        found = _below(start, ignored, wanted, passed_over, refused)
    elif ignored.below(start, is_folder=False) or is_hidden(start, root) or not wanted(start):
        return
    else:
        found = iter([start])
    for path in found:
        if _may_be_read(path, root, passed_over):
            yield path


def _below(
    start: Path, ignored: Ignored, wanted: Wanted, passed_over: OnSkip, refused: OnSkip
) -> Iterator[Path]:
    def failed(error: OSError) -> None:
        refused(Skipped(source=str(error.filename), reason=f"the system refused it ({error.strerror})"))

    for folder, folders, names in os.walk(start, onerror=failed):
        here = Path(folder)
        kept = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [
            name
            for name in kept
            if not ignored(here / name, is_folder=True) and _is_ours(here / name, passed_over)
        ]
        for name in sorted(names):
            path = here / name
            if not name.startswith(".") and wanted(path) and not ignored(path, is_folder=False):
                yield path


def _is_ours(folder: Path, passed_over: OnSkip) -> bool:
    if folder.name in NOT_OURS or folder.name.endswith(".egg-info"):
        if folder.name != "__pycache__":
            passed_over(
                Skipped(source=str(folder), reason="the folder holds other people's work, or a build's")
            )
        return False
    if os.path.exists(folder / "pyvenv.cfg"):  # noqa: PTH110 - False also where nobody may look.
        passed_over(Skipped(source=str(folder), reason="the folder is a virtual environment"))
        return False
    return True


def _may_be_read(path: Path, root: Path, passed_over: OnSkip) -> bool:
    try:
        if path.is_symlink():
            if root not in path.resolve().parents:
                passed_over(Skipped(source=str(path), reason="the link leads out of the project"))
            return False  # Inside the project the file itself is read.
        size = path.stat().st_size
    except OSError:
        return True  # Reading it says what is wrong.
    if size > MOST_BYTES:
        reason = f"the file has {size:,} bytes, and at most {MOST_BYTES:,} are read"
        passed_over(Skipped(source=str(path), reason=reason))
        return False
    return True


def is_hidden(path: Path, root: Path) -> bool:
    """Whether the path, or a folder between it and the root, is hidden or holds other people's work."""
    return any(part.startswith(".") or part in NOT_OURS for part in path.relative_to(root).parts)


def _says(spec: GitIgnoreSpec | None, path: Path, *, is_folder: bool) -> bool | None:
    """What the last pattern that matches says of the path itself; None where none does."""
    if spec is None:
        return None
    text = path.as_posix() + ("/" if is_folder else "")
    for pattern in reversed(spec.patterns):
        found = pattern.match_file(text) if pattern.include is not None else None
        # One that ends before the path does speaks of a folder that the path is in, which was asked before.
        if found is not None and found.match.end() == len(text):
            return pattern.include
    return None


def _spec(path: Path) -> GitIgnoreSpec | None:
    try:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - An optional dependency, needed only for projects.
    except ImportError as error:
        raise MissingExtra(feature="Reading a project's .gitignore", extra="project") from error
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, f"the system refused to read it ({error.strerror or error})") from error
    return GitIgnoreSpec.from_lines(text.splitlines())

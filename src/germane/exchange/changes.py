"""When files of a project were changed last, by git.

Level: exchange (imports errors). Runs the `git` executable, reading only. Git never looks at the files
themselves, since it would run the filters and the monitor that a repository's configuration names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from germane.errors import UnreadableSource
from germane.exchange.git import ask_git

__all__ = ["changed_paths"]

_ENTRY = re.compile(
    r"^(?P<mode>\d{6}) (?P<blob>[0-9a-f]+) 0\t.*$\n(?s:.*?)^  mtime: (?P<seconds>\d+):(?P<nanoseconds>\d+)$"
    r"(?s:.*?)^  size: (?P<size>\d+)\b",
    re.MULTILINE,
)
_SYMLINK = "120000"
_SHA1_DIGITS = 40


def changed_paths(root: Path | str, paths: Iterable[str]) -> dict[str, datetime]:
    """The time of the last commit that touched each path, for `engine.assemble(changed=...)`.

    Of a file that was edited since, it is the time of that edit. Paths are from `root`; those that git knows
    nothing of are left out, and so are all where `root` is in no repository or git isn't installed. No
    command that the repository's configuration names is run. A file that such a filter changes on
    checkout counts as edited once its time or size differs from that of the checkout.
    """
    folder = Path(root)
    found: dict[str, datetime] = {}
    for path in dict.fromkeys(paths):
        try:
            seconds = ask_git(folder, "log", "-1", "--format=%ct", "--", path, refused="")
            edited = (folder / path).is_file() and _is_edited(folder, path)
        except (UnreadableSource, OSError, ValueError):
            continue
        times = [int(seconds)] if seconds.isdigit() else []
        if edited:
            times.append(int((folder / path).stat().st_mtime))
        if times:
            found[path] = datetime.fromtimestamp(max(times), UTC)
    return found


def _is_edited(folder: Path, path: str) -> bool:
    """Whether a file differs from the last commit, or is new and not ignored."""
    entry = _indexed(ask_git(folder, "ls-files", "--stage", "--debug", "--", path))
    if entry is None:
        return ask_git(folder, "ls-files", "--others", "--exclude-standard", "--", path) != ""
    committed = ask_git(folder, "ls-tree", "HEAD", "--", path, refused="").split()[2:3]
    return not committed or committed[0] not in _blobs(folder / path, entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Indexed:
    """What the index holds of a file: its blob, and the file's time and size when that was written."""

    mode: str
    blob: str
    time: tuple[int, int]
    size: int


def _indexed(listed: str) -> _Indexed | None:
    match = _ENTRY.match(listed)
    if match is None:
        return None
    time = (int(match["seconds"]), int(match["nanoseconds"]))
    return _Indexed(mode=match["mode"], blob=match["blob"], time=time, size=int(match["size"]))


def _blobs(file: Path, entry: _Indexed) -> tuple[str, ...]:
    """The blobs that a file may be: that of the index where its time and size are the same, or by content.

    Git may store line feeds for the line ends of Windows, so both are tried.
    """
    seen = file.lstat()
    if (divmod(seen.st_mtime_ns, 1_000_000_000), seen.st_size) == (entry.time, entry.size):
        return (entry.blob,)
    data = str(file.readlink()).encode() if entry.mode == _SYMLINK else file.read_bytes()
    return tuple(_blob(text, len(entry.blob)) for text in (data, data.replace(b"\r\n", b"\n")))


def _blob(data: bytes, digits: int) -> str:
    name = "sha1" if digits == _SHA1_DIGITS else "sha256"
    return hashlib.new(name, b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()

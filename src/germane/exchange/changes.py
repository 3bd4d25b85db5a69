"""When files of a project were changed last, by git.

Level: exchange (imports errors). Runs the `git` executable, reading only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from germane.errors import UnreadableSource
from germane.exchange.git import ask_git

__all__ = ["changed_paths"]


def changed_paths(root: Path | str, paths: Iterable[str]) -> dict[str, datetime]:
    """The time of the last commit that touched each path, for `engine.assemble(changed=...)`.

    Of a file that was edited since, it is the time of that edit. Paths are from `root`; those that git knows
    nothing of are left out, and so are all where `root` is in no repository or git isn't installed.
    """
    folder = Path(root)
    found: dict[str, datetime] = {}
    for path in dict.fromkeys(paths):
        try:
            edited = ask_git(folder, "status", "--porcelain", "--", path)
            seconds = ask_git(folder, "log", "-1", "--format=%ct", "--", path)
        except UnreadableSource:
            continue
        times = [int(seconds)] if seconds.isdigit() else []
        if edited and (folder / path).is_file():
            times.append(int((folder / path).stat().st_mtime))
        if times:
            found[path] = datetime.fromtimestamp(max(times), UTC)
    return found

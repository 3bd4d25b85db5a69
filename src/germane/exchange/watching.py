"""Keeping what is stored of a folder current while people work in it.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from germane.errors import InvalidInput, MissingExtra, StoreBusy
from germane.exchange.projects import Project, is_read, project_of
from germane.exchange.report import ImportReport, Keeper
from germane.exchange.running import Run, Told
from germane.exchange.sources import unreadable
from germane.exchange.syncing import sync
from germane.exchange.walking import Ignored, is_hidden

if TYPE_CHECKING:
    from watchfiles import Change

__all__ = ["SETTLED", "watch"]

SETTLED = 0.2
"""Seconds without a change after which what changed is read: editors write a file in several steps."""

_LONGEST = 8
"""A folder that never rests is read all the same, after this many times the seconds it should."""

_TICK = 250
"""Milliseconds between two looks at whether to stop."""


def watch(
    engine: Keeper,
    path: str | Path,
    *,
    stop: threading.Event | None = None,
    project: str | None = None,
    root: Path | str | None = None,
    allow_secrets: bool = False,
    settled: float = SETTLED,
    progress: Told | None = None,
) -> Iterator[ImportReport]:
    """Import a folder, then again whatever changes in it; one report each time that something did.

    The first report is of the whole folder, as `import_source` with `prune` gives it; each later one
    of the files that changed since, once nothing has for `settled` seconds. Edits become versions, what
    is renamed keeps its history, and what is deleted is forgotten until it comes back. It ends when
    `stop` is set or the caller stops iterating; every report stands for what is stored already.

    Raises UnreadableSource for what is no folder, or when the folder itself disappears, which forgets
    nothing; InvalidInput for `settled` of less than a hundredth of a second, or a folder outside `root`;
    MissingExtra without
    `watchfiles`, or without what a project's import needs.
    """
    if not 0.01 <= settled <= 60:  # noqa: PLR2004 - The limits stand in the message.
        raise InvalidInput(f"settled={settled} can't be used: take from 0.01 to 60 seconds.")
    folder = Path(path).expanduser().resolve()
    if not folder.is_dir():
        raise unreadable(path, "there is no such folder, and only a folder can be watched")
    if find_spec("watchfiles") is None:
        raise MissingExtra(feature="Watching a folder", extra="watch")
    Run(allow_secrets=allow_secrets).require_detector()
    owner = project_of(folder, name=project, root=root)
    changes = _changes(folder, owner, stop or threading.Event(), settled)

    def synced(starts: Iterable[Path]) -> ImportReport:
        one = Run(progress=progress, allow_secrets=allow_secrets)
        sync(engine, owner, sorted(starts), one, prune=True)
        return one.report()

    return _reports(folder, changes, synced)


def _reports(
    folder: Path, changes: Iterator[set[Path]], synced: Callable[[Iterable[Path]], ImportReport]
) -> Iterator[ImportReport]:
    first = True
    waiting: set[Path] = set()
    for changed in changes:
        waiting |= {folder} if first else changed
        if not waiting:
            continue
        if not folder.exists():
            raise unreadable(folder, "the folder has disappeared; nothing of it was forgotten")
        try:
            report = synced({folder} if folder in waiting else waiting)
        except StoreBusy:
            continue  # What changed waits for the next look.
        waiting = set()
        if first or report.written or report.gone or report.skipped:
            yield report
        first = False


def _changes(folder: Path, project: Project, stop: threading.Event, settled: float) -> Iterator[set[Path]]:
    """What changed since the last look, and nothing at times; the first look is before anything is read.

    A change of what git ignores is one of the whole folder.
    """
    from watchfiles import watch as look  # noqa: PLC0415 - An optional dependency, needed only here.

    step = max(round(settled * 1000), 1)
    for changed in look(
        folder,
        watch_filter=None,
        step=step,
        debounce=step * _LONGEST,
        rust_timeout=_TICK,
        yield_on_timeout=True,
        stop_event=stop,
    ):
        yield _worth_reading(changed, folder, project)


def _worth_reading(changed: set[tuple[Change, str]], folder: Path, project: Project) -> set[Path]:
    ignored = Ignored(project.root)
    found = set()
    for _, name in changed:
        path = Path(name)
        if path.name == ".gitignore":
            return {folder}
        is_folder = path.is_dir()
        if is_hidden(path, project.root) or ignored.below(path, is_folder=is_folder):
            continue
        # What is no longer there may have been a folder, whatever its name looks like.
        if is_folder or not path.exists() or is_read(path):
            found.add(path)
    return found

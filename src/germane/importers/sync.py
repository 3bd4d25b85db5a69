"""Synchronizing the memories of a project with its files, once or continuously."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from germane.errors import InvalidInput, MissingExtra, NotFound, StaleRevision, StoreBusy, UnreadableSource
from germane.importers.foreign import USER, LeaveOut, uncounted
from germane.importers.host_files import imported_files
from germane.importers.markdown import Ignored, is_hidden, walk
from germane.importers.project import (
    MODULE_SUFFIXES,
    Project,
    is_read,
    not_imported,
    project_of,
    read_file,
)
from germane.importers.reconciliation import distinct, matched, origin_of, place_of, stands_as_it_was
from germane.importers.report import Gone, ImportReport, ProgressCallback, Run
from germane.importers.sources import Skipped, batches, unreadable
from germane.importers.vaults import is_in_vault
from germane.model.memory import Draft, Memory, RememberResult, Status
from germane.model.query import Filter
from germane.model.text import counted
from germane.operations.read import pages
from germane.provenance import ORIGIN

if TYPE_CHECKING:
    from watchfiles import Change

    from germane.engine import Engine

_HEADS = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED, Status.FORGOTTEN))
_CHANGES_A_STEP = 100
"""The number of changed memories between two progress reports."""


def sync(
    engine: Engine,
    project: Project,
    starts: Sequence[Path],
    run: Run,
    *,
    prune: bool = False,
    batch: int = 500,
    named: bool = False,
    leave_out: LeaveOut = uncounted,
) -> int:
    """Store the drafts of the files at or below `starts`, edits as next versions. Returns the file count.

    Memories whose text is gone are reported, and with `prune` forgotten, unless another file continues the
    text of a missing file. The memories of an unreadable file or a refused part stay unchanged. A start that
    doesn't exist has no texts. `named` files are read whatever their names, and raise UnreadableSource if
    they can't be read. `leave_out` counts what isn't taken over of the files.

    If no stored memory of the files has changed, new drafts are stored while the files are read, so that an
    interruption costs one batch. Otherwise all files are read first, since any can contain a moved text.
    """
    scan = FileScan(project, run, leave_out)
    for start in starts:
        if named or start.exists():
            scan.look(start, named=named)
    places = [project.place(start) for start in (*starts, *scan.look_at_imports())]
    run.pruned = prune
    stored = list(_heads(engine))
    first = scan.known_files(stored)
    drafts = scan.drafts(scan.paths if first is None else first)
    heads = scan.continued(stored, drafts, places)
    matches = matched(drafts, heads)
    new: Iterable[Draft]
    if (
        first is not None
        and len(matches.known) == len(heads)
        and all(stands_as_it_was(*pair) for pair in matches.known)
    ):
        # No draft of the other files can continue a memory.
        known = {id(draft) for _, draft in matches.known}
        new = (draft for path in scan.paths for draft in scan.drafts([path]) if id(draft) not in known)
    else:
        drafts = scan.drafts(scan.paths)
        heads = scan.continued(stored, drafts, places)
        matches = matched(drafts, heads, lost=scan.lost(heads))
        new = matches.new
    run.note_moves(matches.moved)
    run.read += len(matches.known)
    run.known += len(matches.known)
    for group in batches(new, batch):
        _remember(engine, group, run)
    for number, (head, draft) in enumerate(matches.changed):
        if number % _CHANGES_A_STEP == 0:
            run.show_progress(draft.source)
        _supersede(engine, head, draft, run)
    run.show_progress(None)
    _let_go(engine, matches.gone, run, prune=prune)
    scan.put_in_order()
    return len(scan.paths)


def sync_items(engine: Engine, drafts: Iterable[Draft], run: Run, *, product: str, batch: int) -> None:
    """Store the memories of another product, each for its user; edits there become next versions.

    Sources identify the memories, so other exports of the same ones add nothing. What another export doesn't
    have stays as it is, and so does what was revised or forgotten here. An engine that is bound to a user
    takes that user's memories, and those that are nobody's.
    """
    groups: dict[str | None, list[Draft]] = {}
    for draft in drafts:
        groups.setdefault(draft.metadata.get(USER), []).append(draft)
    for user, group in groups.items():
        if user in (None, engine.user):
            _sync_group(engine, group, run, product=product, batch=batch)
        elif engine.user is not None:
            others = f"{counted(len(group), 'memory')} of the user {user!r}"
            reason = f"not taken over: {others}, since this import is for {engine.user!r} alone"
            run.passed_over.append(Skipped(source=product, reason=reason))
        else:
            try:
                owner = engine.for_user(str(user))
            except InvalidInput as error:
                reason = f"{counted(len(group), 'memory')} of the user {user!r} not stored: {error}"
                run.skipped.append(Skipped(source=product, reason=reason))
                continue
            with owner:
                _sync_group(owner, group, run, product=product, batch=batch)


def _sync_group(engine: Engine, group: Sequence[Draft], run: Run, *, product: str, batch: int) -> None:
    # No project has such a name, so none takes these memories for texts that its files have lost.
    named = distinct(group, project=f"memories of {product}", file=product)
    drafts = [draft for draft in named if not run.holds_secret(draft)]
    run.read += len(group) - len(drafts)
    stored = list(_heads(engine))
    keys = {draft.metadata[ORIGIN]["key"] for draft in drafts}
    origins = ((head, origin_of(head)) for head in stored)
    ours = [head for head, origin in origins if origin and origin.file == product and origin.key in keys]
    matches = matched(drafts, ours)
    run.read += len(matches.known)
    run.known += len(matches.known)
    taken = {head.key for head in stored if head.key is not None}
    new = [draft for draft in matches.new if draft.key not in taken]
    for draft in matches.new:
        if draft.key in taken:
            reason = f"not taken over: a memory with the key {draft.key!r} is stored, and stays as it is"
            run.passed_over.append(Skipped(source=str(draft.source), reason=reason))
    for several in batches(new, batch):
        run.store(
            several, lambda items: engine.remember_many(items, revive=False, allow_secrets=run.allows_secrets)
        )
    for number, (head, draft) in enumerate(matches.changed):
        if number % _CHANGES_A_STEP == 0:
            run.show_progress(draft.source)
        _supersede(engine, head, draft, run)
    run.show_progress(None)


def _heads(engine: Engine) -> Iterator[Memory]:
    """Every memory that isn't superseded."""
    # For a user, the agent's own memories are read too, and stay unchanged.
    known = chain.from_iterable(pages(engine.memories, _HEADS))
    stored = (memory for memory in known if memory.user == engine.user)
    return (memory for memory in stored if memory.superseded_by is None)


def _remember(engine: Engine, drafts: Sequence[Draft], run: Run) -> None:
    """Store new drafts. A draft with the text of a superseded version gets a unique source."""
    todo, count = list(drafts), 1
    while todo:
        stored = run.store(
            todo, lambda items: engine.remember_many(items, revive=False, allow_secrets=run.allows_secrets)
        )
        past = [
            draft
            for draft, one in zip(todo, stored, strict=True)
            if one is not None and not one.created and one.memory.status is Status.SUPERSEDED
        ]
        run.read -= len(past)
        run.known -= len(past)
        count += 1
        todo = [replace(draft, source=f"{draft.metadata[ORIGIN]['key']}~v{count}") for draft in past]


def _writing(engine: Engine, run: Run) -> Callable[[Sequence[Draft]], Sequence[RememberResult]]:
    """What stores drafts and leaves forgotten ones forgotten."""
    return partial(engine.remember_many, revive=False, allow_secrets=run.allows_secrets)


def _supersede(engine: Engine, head: Memory, draft: Draft, run: Run) -> None:
    run.read += 1
    try:
        if head.status is Status.FORGOTTEN:
            engine.restore(head.id)
        run.revise(_as_next_version(engine, head, run.trusted(draft)))
        run.note_open_fence(draft)
    except (StaleRevision, NotFound, InvalidInput) as error:
        changed = "its memory was changed meanwhile; import again"
        reason = str(error) if isinstance(error, InvalidInput) else changed
        run.skipped.append(Skipped(source=str(draft.source), reason=reason))


def _as_next_version(engine: Engine, head: Memory, draft: Draft) -> Memory:
    try:
        return engine.supersede(head.id, draft, expected=head.version)
    except InvalidInput as error:
        # Another memory may have had this text in this place before. A unique source distinguishes the two;
        # an invalid draft is refused again.
        try:
            named = replace(draft, source=f"{draft.source}~{head.id[-12:]}")
            return engine.supersede(head.id, named, expected=head.version)
        except InvalidInput:
            raise error from None


def _let_go(engine: Engine, gone: Sequence[Memory], run: Run, *, prune: bool) -> None:
    for head in gone:
        origin = origin_of(head)
        run.gone.append(Gone(id=head.id, source=str(place_of(head))))
        if not prune:
            continue
        try:
            if origin is not None and not origin.gone:
                noted = {**head.metadata, ORIGIN: replace(origin, gone=True).noted()}
                engine.revise(head.id, metadata=noted, expected=head.version)
            engine.forget(head.id)
        except (StaleRevision, NotFound, InvalidInput) as error:
            run.skipped.append(Skipped(source=str(head.source), reason=str(error)))


# The drafts of the files of one import, and the memories that must stay unchanged.

_FILES_A_STEP = 25
"""The number of files between two progress reports."""

_READING, _CHECKING, _STORING = range(3)


class FileScan:
    """The files to import in the order of their paths, and the drafts of those that were read."""

    def __init__(self, project: Project, run: Run, leave_out: LeaveOut) -> None:
        self.project = project
        self.paths: dict[Path, int] = {}
        self._run = run
        self._count = leave_out
        self._named: set[Path] = set()
        self._drafts: dict[Path, list[Draft]] = {}
        self._unread: set[str] = set()
        self._refused: set[str] = set()
        self._order: dict[int, tuple[int, int]] = {}

    def look(self, start: Path, *, named: bool) -> None:
        """Add a file, or every file of a folder. Unreadable `named` files raise UnreadableSource."""
        for path in [start] if named else self._below(start):
            self.paths.setdefault(path, len(self.paths))
        if named:
            self._named.add(start)
        self._run.seen_of = len(self.paths)

    def look_at_imports(self) -> list[Path]:
        """Add the files that instructions for coding agents import, and return these."""

        def leave_out(one: Skipped) -> None:
            self._leave_out(self._run.passed_over, one, self.paths.get(Path(one.source), len(self.paths)))

        found = [*imported_files([*self.paths], self.project.root, not_imported, leave_out)]
        for path in found:
            self.paths.setdefault(path, len(self.paths))
        self._run.seen_of = len(self.paths)
        return found

    def drafts(self, paths: Iterable[Path]) -> list[Draft]:
        """The drafts of these files, without possible secrets. Each file is read once."""
        drafts = []
        for path in paths:
            if path not in self._drafts:
                if self._run.seen % _FILES_A_STEP == 0 and len(self.paths) > _FILES_A_STEP:
                    self._run.show_progress(self.project.place(path))
                self._drafts[path] = self._read(path)
                self._run.seen += 1
            drafts += self._drafts[path]
        return drafts

    def continued(
        self, heads: Iterable[Memory], drafts: Iterable[Draft], places: Sequence[str]
    ) -> list[Memory]:
        """The stored memories from these files that a draft can continue."""
        keys = {str(draft.source) for draft in drafts}
        return [head for head in heads if self._may_continue(head, places, keys)]

    def _may_continue(self, head: Memory, places: Sequence[str], keys: Collection[str]) -> bool:
        origin = origin_of(head)
        if origin is None:
            return head.source in keys and ORIGIN not in head.metadata
        if origin.project != self.project.name or origin.file in self._unread or origin.key in self._refused:
            return False
        return any(place in (".", origin.file) or origin.file.startswith(f"{place}/") for place in places)

    def lost(self, heads: Iterable[Memory]) -> set[str]:
        """The missing files of these memories, as paths from the project's root."""
        files = {origin.file for head in heads if (origin := origin_of(head)) is not None}
        return {file for file in files if not (self.project.root / file).exists()}

    def known_files(self, heads: Iterable[Memory]) -> list[Path] | None:
        """The files of these memories; None if the file of a memory is unknown and may be any of these."""
        names = {self.project.source(path) for path in self.paths}
        files = set()
        for head in heads:
            origin = origin_of(head)
            if origin is None:
                source = head.source or ""
                if any(source[:end] in names for end in range(1, len(source) + 1)):
                    return None
            elif origin.project == self.project.name:
                files.add(origin.file)
        return [path for path in self.paths if self.project.place(path) in files]

    def put_in_order(self) -> None:
        """Sort the skipped parts by the order of the files."""
        last = (_STORING, 0)
        for left_out in (self._run.skipped, self._run.passed_over):
            left_out.sort(key=lambda one: self._order.get(id(one), last))

    def _below(self, start: Path) -> Iterable[Path]:
        in_vault = is_in_vault(start)

        def wanted(path: Path) -> bool:
            if in_vault and not is_read(path):
                self._count(f"attachments of type {path.suffix.lower() or path.name!r}")
            return is_read(path)

        return walk(
            start,
            root=self.project.root,
            wanted=wanted,
            passed_over=lambda one: self._leave_out(self._run.passed_over, one, len(self.paths)),
            refused=lambda one: self._leave_out(self._run.skipped, one, len(self.paths)),
        )

    def _read(self, path: Path) -> list[Draft]:
        place = self.project.place(path)
        try:
            drafts = distinct(
                read_file(self.project, path, leave_out=self._count), project=self.project.name, file=place
            )
        except UnreadableSource as error:
            if path in self._named:
                raise
            self._unread.add(place)
            # Code that can't be parsed is often intended, unlike text.
            aside = self._run.passed_over if path.suffix.lower() in MODULE_SUFFIXES else self._run.skipped
            self._leave_out(aside, Skipped(source=str(path), reason=str(error)), self.paths[path])
            return []
        accepted = []
        for draft in drafts:
            if not self._run.holds_secret(draft, path):
                accepted.append(draft)
                continue
            self._run.read += 1
            self._refused.add(str(draft.source))
            self._order[id(self._run.skipped[-1])] = (_CHECKING, self.paths[path])
        return accepted

    def _leave_out(self, aside: list[Skipped], one: Skipped, number: int) -> None:
        aside.append(one)
        self._order[id(one)] = (_READING, number)


# Watching a folder.

SETTLED = 0.2
"""Seconds without a change before changes are read, since editors write a file in several steps."""

_LONGEST = 8
"""The maximum wait for a folder that always changes, as a multiple of `settled`."""

_TICK = 250
"""Milliseconds between two checks of `stop`."""


def watch(
    engine: Engine,
    path: str | Path,
    *,
    stop: threading.Event | None = None,
    project: str | None = None,
    root: Path | str | None = None,
    allow_secrets: bool = False,
    settled: float = SETTLED,
    progress: ProgressCallback | None = None,
) -> Iterator[ImportReport]:
    """Import a folder, then each change in it; yields a report after each import.

    The first report is the report of `import_source` with `prune` for the whole folder. Each later report is
    of the changed files, after `settled` seconds without a change. Edits become versions, renamed files keep
    their history, and memories of deleted files are forgotten until the files return. It ends when `stop` is
    set or the caller stops iterating. Every reported memory is stored already.

    Raises UnreadableSource if `path` isn't a folder, or if the folder disappears, which forgets nothing.
    Raises InvalidInput for `settled` below 0.01 or above 60 seconds, and for a folder outside `root`. Raises
    MissingExtra without `watchfiles` or the extra `project`.
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
            continue  # The changes wait for the next check.
        waiting = set()
        if first or report.written or report.gone or report.skipped:
            yield report
        first = False


def _changes(folder: Path, project: Project, stop: threading.Event, settled: float) -> Iterator[set[Path]]:
    """The changes since the last check, which can be empty; the first check precedes the first import.

    A change of a .gitignore counts as a change of the whole folder.
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
    paths = set()
    for _, name in changed:
        path = Path(name)
        if path.name == ".gitignore":
            return {folder}
        is_folder = path.is_dir()
        if is_hidden(path, project.root) or ignored.below(path, is_folder=is_folder):
            continue
        # A missing path may have been a folder, whatever its name.
        if is_folder or not path.exists() or is_read(path):
            paths.add(path)
    return paths

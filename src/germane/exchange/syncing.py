"""Bringing what is stored of a project's files up to what the files say now.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from germane.errors import InvalidInput, NotFound, StaleRevision, UnreadableSource
from germane.exchange.modules import MODULE_SUFFIXES
from germane.exchange.projects import FileDrafts, Project, files_of, read_file
from germane.exchange.reconciling import ORIGIN, distinct, matched, origin_of
from germane.exchange.report import Gone, Keeper
from germane.exchange.running import Run
from germane.exchange.sources import Skipped
from germane.model.draft import Draft
from germane.model.memory import Memory, Status
from germane.model.query import Filter

__all__ = ["sync"]

_HEADS = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED, Status.FORGOTTEN))
_PAGE = 1000
_FILES_A_STEP = 100


def sync(
    engine: Keeper,
    project: Project,
    starts: Sequence[Path],
    run: Run,
    *,
    prune: bool = False,
    batch: int = 500,
    named: bool = False,
) -> int:
    """Store what the files at or below `starts` say, link edits to what they were; how many files were read.

    What the files no longer hold is reported as gone, and with `prune` forgotten, unless a text elsewhere
    continues what a missing file said; what an unreadable file or a refused part had brought stays as it
    is. A start that doesn't exist has nothing left. Files that are `named` are read whatever they are
    called, and raise UnreadableSource when they can't be.
    """
    found = _Found(project, run)
    for start in starts:
        if named or start.exists():
            found.add(start, named=named)
    places = [project.place(start) for start in starts]
    drafts = found.checked()
    keys = {str(draft.source) for draft in drafts}
    heads = [head for head in _heads(engine) if found.may_continue(head, places, keys)]
    matches = matched(drafts, heads, lost=found.lost(heads))
    run.note_moves(matches.moved)
    run.read += len(matches.known)
    run.known += len(matches.known)
    fresh = iter(matches.new)
    while group := list(islice(fresh, batch)):
        _remember(engine, group, run)
    for head, draft in matches.changed:
        _supersede(engine, head, draft, run)
    run.tell(None)
    _let_go(engine, matches.gone, run, prune=prune)
    return found.files


class _Found:
    """What the files of one import hold, and what of it must be left alone."""

    def __init__(self, project: Project, run: Run) -> None:
        self.project = project
        self.run = run
        self.files = 0
        self._read: dict[Path, FileDrafts] = {}
        self._unread: set[str] = set()
        self._refused: set[str] = set()

    def add(self, start: Path, *, named: bool) -> None:
        """Read a file, or every file of a folder."""
        for path in [start] if named else self._below(start):
            if path in self._read:
                continue
            self._read[path] = one = read_file(self.project, path)
            self.files += 1
            if one.unread is not None:
                if named:
                    raise UnreadableSource(one.unread)
                self._unread.add(self.project.place(path))
                # Sources that can't be parsed are often meant to be so; what people write to be read isn't.
                aside = self.run.passed_over if path.suffix.lower() in MODULE_SUFFIXES else self.run.skipped
                aside.append(Skipped(source=str(path), reason=one.unread))
            if self.files % _FILES_A_STEP == 0:
                self.run.tell(self.project.place(path))

    def checked(self) -> list[Draft]:
        """The drafts of all files, without those that look like a secret."""
        kept = []
        for path, one in self._read.items():
            for draft in distinct(one.drafts, project=self.project.name, file=self.project.place(path)):
                if self.run.holds_secret(draft, path):
                    self.run.read += 1
                    self._refused.add(str(draft.source))
                else:
                    kept.append(draft)
        return kept

    def may_continue(self, head: Memory, places: Sequence[str], keys: set[str]) -> bool:
        """Whether a stored memory came from these files, and may be continued by a draft of them."""
        origin = origin_of(head)
        if origin is None:
            return head.source in keys and ORIGIN not in head.metadata
        if origin.project != self.project.name or origin.file in self._unread or origin.key in self._refused:
            return False
        return any(place in (".", origin.file) or origin.file.startswith(f"{place}/") for place in places)

    def lost(self, heads: Sequence[Memory]) -> set[str]:
        """The files of these memories that are no longer there, from the project's root."""
        files = {origin.file for head in heads if (origin := origin_of(head)) is not None}
        return {file for file in files if not (self.project.root / file).exists()}

    def _below(self, start: Path) -> Iterator[Path]:
        return files_of(
            self.project, start, passed_over=self.run.passed_over.append, refused=self.run.skipped.append
        )


def _heads(engine: Keeper) -> Iterator[Memory]:
    """Every memory that nothing supersedes."""
    after: str | None = None
    while page := engine.memories(_HEADS, limit=_PAGE, after=after):
        yield from (memory for memory in page if memory.superseded_by is None)
        after = page[-1].id


def _remember(engine: Keeper, drafts: Sequence[Draft], run: Run) -> None:
    """Store new drafts. What only a past version says elsewhere is stored under a source of its own."""
    todo, count = list(drafts), 1
    while todo:
        stored = run.store(todo, lambda items: engine.remember_many(items, revive=False))
        past = [
            draft
            for draft, one in zip(todo, stored, strict=True)
            if one is not None and not one.created and one.memory.status is Status.SUPERSEDED
        ]
        run.read -= len(past)
        run.known -= len(past)
        count += 1
        todo = [replace(draft, source=f"{draft.metadata[ORIGIN]['key']}~v{count}") for draft in past]


def _supersede(engine: Keeper, head: Memory, draft: Draft, run: Run) -> None:
    run.read += 1
    try:
        if head.status is Status.FORGOTTEN:
            engine.restore(head.id)
        run.revise(_as_next_version(engine, head, draft))
    except (StaleRevision, NotFound):
        run.skipped.append(
            Skipped(source=str(draft.source), reason="its memory was changed meanwhile; import again")
        )
    except InvalidInput as error:
        run.skipped.append(Skipped(source=str(draft.source), reason=str(error)))


def _as_next_version(engine: Keeper, head: Memory, draft: Draft) -> Memory:
    try:
        return engine.supersede(head.id, draft)
    except InvalidInput as error:
        # Another memory may have said just this in this place once. A source that only this chain
        # can have tells the two apart; where the draft itself is bad, it is refused again.
        try:
            return engine.supersede(head.id, replace(draft, source=f"{draft.source}~{head.chain[-12:]}"))
        except InvalidInput:
            raise error from None


def _let_go(engine: Keeper, gone: Sequence[Memory], run: Run, *, prune: bool) -> None:
    run.pruned = prune
    for head in gone:
        origin = origin_of(head)
        run.gone.append(Gone(id=head.id, source=origin.key if origin else str(head.source)))
        if not prune:
            continue
        try:
            marked = head
            if origin is not None and not origin.gone:
                noted = {**head.metadata, ORIGIN: replace(origin, gone=True).noted()}
                marked = engine.revise(head.id, metadata=noted)
            engine.forget(marked.id)
        except (StaleRevision, NotFound, InvalidInput) as error:
            run.skipped.append(Skipped(source=str(head.source), reason=str(error)))

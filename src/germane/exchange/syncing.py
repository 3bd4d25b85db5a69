"""Bringing what is stored of a project's files up to what the files say now.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.exchange.found import Found
from germane.exchange.projects import Project
from germane.exchange.reconciling import ORIGIN, matched, origin_of, stands_as_it_was
from germane.exchange.report import Gone, Keeper
from germane.exchange.running import Run
from germane.exchange.sources import Skipped
from germane.model.draft import Draft
from germane.model.memory import Memory, Status
from germane.model.query import Filter

__all__ = ["sync"]

_HEADS = Filter(statuses=(Status.ACTIVE, Status.ARCHIVED, Status.FORGOTTEN))
_PAGE = 1000
_FEW_FILES = 100
"""So few are read at once; for more it is worth asking first whether they can be stored as they are read."""


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

    Where nothing that is stored of the files has changed, what is new is stored while they are read, so
    that an interruption costs a batch; else all of them are read first, since any may hold what moved.
    """
    found = Found(project, run)
    for start in starts:
        if named or start.exists():
            found.look(start, named=named)
    places = [project.place(start) for start in starts]
    run.pruned = prune
    if len(found.paths) <= _FEW_FILES or not _store_while_reading(engine, found, places, run, batch=batch):
        _store_when_read(engine, found, places, run, prune=prune, batch=batch)
    found.put_in_order()
    return len(found.paths)


def _store_while_reading(
    engine: Keeper, found: Found, places: Sequence[str], run: Run, *, batch: int
) -> bool:
    """Store what is new as it is read, and whether that was possible; if not, nothing was stored.

    It is where each stored memory of these files still stands in its place as it was: then no draft
    continues any, whatever the other files say, and the result is that of reading all of them first.
    """
    heads = list(_heads(engine))
    known_files = found.known_files(heads)
    if known_files is None:
        return False
    drafts = found.drafts(known_files)
    keys = {str(draft.source) for draft in drafts}
    heads = [head for head in heads if found.may_continue(head, places, keys)]
    matches = matched(drafts, heads)
    if len(matches.known) != len(heads) or not all(stands_as_it_was(*pair) for pair in matches.known):
        return False
    run.read += len(matches.known)
    run.known += len(matches.known)
    known = {id(draft) for _, draft in matches.known}
    fresh = (draft for path in found.paths for draft in found.drafts([path]) if id(draft) not in known)
    _remember_all(engine, fresh, run, batch=batch)
    run.tell(None)
    return True


def _store_when_read(
    engine: Keeper, found: Found, places: Sequence[str], run: Run, *, prune: bool, batch: int
) -> None:
    drafts = found.drafts(found.paths)
    keys = {str(draft.source) for draft in drafts}
    heads = [head for head in _heads(engine) if found.may_continue(head, places, keys)]
    matches = matched(drafts, heads, lost=found.lost(heads))
    run.note_moves(matches.moved)
    run.read += len(matches.known)
    run.known += len(matches.known)
    _remember_all(engine, matches.new, run, batch=batch)
    for number, (head, draft) in enumerate(matches.changed):
        if number % _FEW_FILES == 0:
            run.tell(draft.source)
        _supersede(engine, head, draft, run)
    run.tell(None)
    _let_go(engine, matches.gone, run, prune=prune)


def _heads(engine: Keeper) -> Iterator[Memory]:
    """Every memory that nothing supersedes."""
    after: str | None = None
    while page := engine.memories(_HEADS, limit=_PAGE, after=after):
        yield from (memory for memory in page if memory.superseded_by is None)
        after = page[-1].ref


def _remember_all(engine: Keeper, drafts: Iterable[Draft], run: Run, *, batch: int) -> None:
    fresh = iter(drafts)
    while group := list(islice(fresh, batch)):
        _remember(engine, group, run)


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
        run.note_open_fence(draft)
    except (StaleRevision, NotFound):
        run.skipped.append(
            Skipped(source=str(draft.source), reason="its memory was changed meanwhile; import again")
        )
    except InvalidInput as error:
        run.skipped.append(Skipped(source=str(draft.source), reason=str(error)))


def _as_next_version(engine: Keeper, head: Memory, draft: Draft) -> Memory:
    try:
        return engine.supersede(head.id, draft, expected=head.version)
    except InvalidInput as error:
        # Another memory may have said just this in this place once. A source that only this chain
        # can have tells the two apart; where the draft itself is bad, it is refused again.
        try:
            named = replace(draft, source=f"{draft.source}~{head.id[-12:]}")
            return engine.supersede(head.id, named, expected=head.version)
        except InvalidInput:
            raise error from None


def _let_go(engine: Keeper, gone: Sequence[Memory], run: Run, *, prune: bool) -> None:
    for head in gone:
        origin = origin_of(head)
        run.gone.append(Gone(id=head.id, source=origin.key if origin else str(head.source)))
        if not prune:
            continue
        try:
            marked = head
            if origin is not None and not origin.gone:
                noted = {**head.metadata, ORIGIN: replace(origin, gone=True).noted()}
                marked = engine.revise(head.id, metadata=noted, expected=head.version)
            engine.forget(marked.id)
        except (StaleRevision, NotFound, InvalidInput) as error:
            run.skipped.append(Skipped(source=str(head.source), reason=str(error)))

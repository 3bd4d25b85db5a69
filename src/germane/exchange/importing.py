"""Feeding what readers find to an engine.

Level: exchange (imports errors and model). An engine is anything with the methods that `report` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from germane.errors import InvalidInput
from germane.exchange.detect import Layout, layout_of, path_of, read
from germane.exchange.experiences import Learns, known_by
from germane.exchange.jsonl import Line, read_lines
from germane.exchange.projects import Project, nothing_in, project_of
from germane.exchange.records import RenditionsOf
from germane.exchange.report import Importer, ImportReport, Keeper, Progress
from germane.exchange.running import Run, Told
from germane.exchange.syncing import sync
from germane.model.experience import Experience, Experienced
from germane.model.learning import Attested, Example
from germane.model.memory import Memory
from germane.model.stage import LifeEvent, Standing

__all__ = ["ImportReport", "Importer", "Keeper", "Progress", "import_source"]

_Item = TypeVar("_Item")

_LINES_A_STEP = 100
"""Lines of an export after which it is told how far the search for secrets has come."""


def import_source(
    engine: Keeper,
    source: str,
    *,
    progress: Told | None = None,
    batch: int = 500,
    renditions_of: RenditionsOf | None = None,
    project: str | None = None,
    root: Path | str | None = None,
    prune: bool = False,
    allow_secrets: bool = False,
) -> ImportReport:
    """Import a source, `batch` memories per transaction, and say what became of it.

    Sources are what `read` accepts; an export is restored as it was, and with it what was gone through with
    its memories, without counting any of it anew. Importing twice changes nothing, and what was forgotten
    stays so. Of files and folders, a text that was edited becomes the next version of its memory; what is
    no longer there is reported, and with `prune` forgotten until it comes back. `project` names
    what they belong to, so that an agent's projects stay apart; `root` is the folder that its paths are
    told from, unless that is where `project_root` finds it.

    A part that looks like a secret is skipped with the rule and the place, unless `allow_secrets`; of an
    export, all versions of the memory. A draft that the engine refuses is skipped with its reason, and
    so is an unreadable file of a folder. When the source itself can't be read any further,
    UnreadableSource says where; the batches before that are stored.

    `progress` is called after each batch, and while files or the lines of an export are looked through before
    the first. An import may be interrupted at any time: each batch that was stored stays, and the next
    import goes on from there. `renditions_of` serves export lines without renditions.
    Raises InvalidInput for a batch size below 1, for `project`, `root` or `prune` with what is no file or
    folder of a project, for a source outside `root`, and MissingExtra for a folder without that extra.
    """
    if batch < 1:
        raise InvalidInput(f"batch={batch} can't be used: a batch holds 1 memory or more.")
    layout, path = layout_of(source), path_of(source)
    run = Run(progress=progress, allow_secrets=allow_secrets)
    if layout in (Layout.PROJECT, Layout.MARKDOWN):
        owner = project_of(path, name=project, root=root)
        _import_files(engine, path, run, owner, prune=prune, batch=batch)
    elif prune or project is not None or root is not None:
        named = f"project={project!r}" if project is not None else f"root={str(root)!r}"
        option = "prune=True" if prune else named
        raise InvalidInput(
            f"{option} goes with a project's files; {source!r} is of layout {layout}. Leave it out."
        )
    elif layout is Layout.EXPORT:
        _import_export(engine, path, run, batch=batch, renditions_of=renditions_of)
    else:
        _import_stream(engine, source, None if layout is Layout.GIT else path, run, batch=batch)
    return run.report()


def _import_files(engine: Keeper, path: Path, run: Run, owner: Project, *, prune: bool, batch: int) -> None:
    start = path.resolve()
    if not path.is_dir():
        sync(engine, owner, [start], run, prune=prune, batch=batch, named=True)
        return
    run.require_detector()
    if not sync(engine, owner, [start], run, prune=prune, batch=batch) and not run.skipped:
        raise nothing_in(path)


def _import_stream(engine: Importer, source: str, path: Path | None, run: Run, *, batch: int) -> None:
    for drafts in _batches(read(source, on_skip=run.skipped.append), batch):
        kept = [draft for draft in drafts if not run.holds_secret(draft, path)]
        run.read += len(drafts) - len(kept)
        run.store(kept, lambda items: engine.remember_many(items, revive=False))


def _import_export(
    engine: Importer, path: Path, run: Run, *, batch: int, renditions_of: RenditionsOf | None
) -> None:
    """Restore an export. Its versions stand or fall together, so the whole of it is looked at first."""
    read = partial(read_lines, path, agent=engine.agent, renditions_of=renditions_of)
    refused: set[str] = set()
    if run.unchecked is None:
        refused = _chains_with_secrets(read(), run)
    gone_through: list[Experienced | Learns] = []
    ids: dict[str, str] = {}
    for group in _batches(_apart(read(), gone_through), batch):
        kept = [memory for memory, _ in group if memory.id not in refused]
        lives = {memory.ref: standing for memory, standing in group if standing is not None}
        run.read += len(group) - len(kept)
        stored = run.store(kept, partial(engine.adopt, standings=lives))
        # What is known here by another id has gone through the same.
        ids |= {
            given.ref: one.memory.version_id
            for given, one in zip(kept, stored, strict=True)
            if one is not None
        }
    if gone_through:
        run.experience = engine.adopt_experience(_experience(gone_through, ids))


def _chains_with_secrets(lines: Iterable[Line], run: Run) -> set[str]:
    found = set()
    for line in lines:
        run.seen += 1
        if run.seen % _LINES_A_STEP == 0:
            run.tell(None)
        if isinstance(line, tuple) and run.holds_secret(line[0]):
            found.add(line[0].id)
    return found


def _apart(
    lines: Iterable[Line], others: list[Experienced | Learns]
) -> Iterator[tuple[Memory, Standing | None]]:
    """The memories of an export; what else it holds is put into the list meanwhile."""
    for line in lines:
        if isinstance(line, tuple):
            yield line
        else:
            others.append(line)


def _experience(gone_through: Iterable[Experienced | Learns], ids: Mapping[str, str]) -> Experience:
    """What of it speaks of memories that are here. Nothing is said of those that were left out."""
    learns, told = False, 0
    kept: list[Experienced] = []
    for one in gone_through:
        if isinstance(one, bool):
            learns = learns or one
            continue
        if isinstance(one, Example):
            told += one.given
        if (known := known_by(one, ids)) is not None:
            kept.append(replace(known, given=told) if isinstance(known, Example) else known)
    return Experience(
        learns=learns,
        showings=tuple(one for one in kept if isinstance(one, Example)),
        outcomes=tuple(one for one in kept if isinstance(one, Attested)),
        events=tuple(one for one in kept if isinstance(one, LifeEvent)),
    )


def _batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    iterator = iter(items)
    while group := list(islice(iterator, size)):
        yield group

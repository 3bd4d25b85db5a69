"""Feeding what readers find to an engine.

Level: exchange (imports errors and model). An engine is anything with the two methods below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeAlias, TypeVar

from germane.errors import InvalidInput
from germane.exchange.detect import Layout, layout_of, path_of, read
from germane.exchange.jsonl import read_memories
from germane.exchange.records import RenditionsOf
from germane.exchange.sources import Skipped
from germane.model.draft import Draft, Remembered
from germane.model.memory import Memory

__all__ = ["ImportReport", "Importer", "Progress", "import_source"]

_Item = TypeVar("_Item", Draft, Memory)
_Write: TypeAlias = Callable[[Sequence[_Item]], Sequence[Remembered]]


class Importer(Protocol):
    """What an import needs of an engine."""

    @property
    def agent(self) -> str:
        """Whose memories they become."""
        ...

    def remember_many(self, drafts: Iterable[Draft], *, revive: bool) -> Sequence[Remembered]:
        """Remember all of them in one transaction or none; one result per draft, in order.

        `revive` False leaves a forgotten memory forgotten. Raises InvalidInput for a draft that
        can't be stored.
        """
        ...

    def adopt(self, memories: Iterable[Memory]) -> Sequence[Remembered]:
        """Store memories as they are, ids, versions, status and counts included; what is there stays."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an import has come: what was read, of that created and already known, and left out."""

    read: int
    created: int
    known: int
    skipped: int
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did. `known` were there already; `skipped` says what was left out, and why."""

    read: int
    created: int
    known: int
    skipped: tuple[Skipped, ...] = ()


def import_source(
    engine: Importer,
    source: str,
    *,
    progress: Callable[[Progress], None] | None = None,
    batch: int = 500,
    renditions_of: RenditionsOf | None = None,
) -> ImportReport:
    """Import a source, `batch` memories per transaction, and say what became of it.

    Sources are what `read` accepts; an export is restored as it was. Importing twice changes
    nothing, and what was forgotten stays so. A draft that the engine refuses is skipped with its
    reason, and so is an unreadable file of a folder. When the source itself can't be read any
    further, UnreadableSource says where; the batches before that are stored, so importing again
    once it is mended brings only the rest.

    `progress` is called after each batch. `renditions_of` serves export lines without renditions.
    Raises InvalidInput for a batch size below 1.
    """
    if batch < 1:
        raise InvalidInput(f"batch={batch} can't be used: a batch holds 1 memory or more.")
    run = _Run(engine=engine, progress=progress)
    if layout_of(source) is Layout.EXPORT:
        memories = read_memories(path_of(source), agent=engine.agent, renditions_of=renditions_of)
        for group in _batches(memories, batch):
            run.store(group, engine.adopt)
    else:
        for drafts in _batches(read(source, on_skip=run.skipped.append), batch):
            run.store(drafts, run.remember)
    return ImportReport(read=run.read, created=run.created, known=run.known, skipped=tuple(run.skipped))


class _Run:
    """The counts of one import while it goes on."""

    def __init__(self, *, engine: Importer, progress: Callable[[Progress], None] | None) -> None:
        self.engine = engine
        self.progress = progress
        self.skipped: list[Skipped] = []
        self.read = self.created = self.known = 0

    def remember(self, drafts: Sequence[Draft]) -> Sequence[Remembered]:
        return self.engine.remember_many(drafts, revive=False)

    def store(self, items: Sequence[_Item], write: _Write[_Item]) -> None:
        """Write a batch; if the engine refuses it, each alone, so that one bad item costs only itself."""
        try:
            applied = [*write(items)]
        except InvalidInput:
            applied = [done for item in items for done in self.alone(item, write)]
        self.read += len(items)
        created = sum(one.created for one in applied)
        self.created += created
        self.known += len(applied) - created
        if self.progress is not None:
            self.progress(
                Progress(
                    read=self.read,
                    created=self.created,
                    known=self.known,
                    skipped=len(self.skipped),
                    source=items[-1].source,
                )
            )

    def alone(self, item: _Item, write: _Write[_Item]) -> Sequence[Remembered]:
        try:
            return write([item])
        except InvalidInput as error:
            self.skipped.append(Skipped(source=item.source or item.content[:60], reason=str(error)))
            return ()


def _batches(items: Iterator[_Item], size: int) -> Iterator[list[_Item]]:
    while group := list(islice(items, size)):
        yield group

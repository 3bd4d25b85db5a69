"""What an import needs of an engine, and what it reports.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from germane.exchange.sources import Skipped
from germane.model.draft import Draft, Remembered
from germane.model.experience import Experience
from germane.model.memory import Memory
from germane.model.query import Filter
from germane.model.stage import Standing

__all__ = ["Gone", "ImportReport", "Importer", "Keeper", "Moved", "Progress", "Written"]


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

    def adopt(
        self, memories: Iterable[Memory], *, standings: Mapping[str, Standing] | None = None
    ) -> Sequence[Remembered]:
        """Store memories as they are, ids, versions, status and counts included; what is there stays."""
        ...

    def adopt_experience(self, experience: Experience) -> int:
        """Keep what was gone through with memories that are here; returns how much of it is new."""
        ...


class Keeper(Importer, Protocol):
    """What the import of files needs besides, to link what changed to what it was."""

    def memories(
        self, where: Filter | None = None, *, limit: int | None = None, after: str | None = None
    ) -> Sequence[Memory]:
        """The memories that pass a filter, a page at a time; `after` ended the page before."""
        ...

    def supersede(self, memory_id: str, draft: Draft, *, expected: int | None = None) -> Memory:
        """Store a draft as the next version. Raises NotFound, InvalidInput or StaleRevision."""
        ...

    def revise(self, memory_id: str, *, metadata: Mapping[str, Any], expected: int | None = None) -> Memory:
        """Store the next version with other metadata. Raises as `supersede` does."""
        ...

    def forget(self, memory_id: str) -> Memory:
        """Keep a memory out of every result until it is restored. Raises NotFound."""
        ...

    def restore(self, memory_id: str) -> Memory:
        """Undo a forget. Raises NotFound, or InvalidInput when the memory isn't forgotten."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an import has come: what was read, of that new, known and changed, and left out.

    `seen` counts what was looked through, and `seen_of` how much there is: the files of a folder, or the
    lines of an export, whose number isn't known before. It goes ahead of what is stored: `read` counts
    only what is settled.
    """

    read: int
    created: int
    known: int
    skipped: int
    source: str | None = None
    revised: int = 0
    seen: int = 0
    seen_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A memory whose source no longer holds it."""

    id: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A memory whose file is gone, and that a text elsewhere continues, by likeness alone.

    `share` is the part of what only the old text said that stands in the new one, from 0 to 1.
    """

    id: str
    before: str
    after: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A memory that an import wrote: a new one, or with `revised` the next version of one."""

    id: str
    source: str
    revised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did. Each draft read is `created`, `known` (there already), `revised`, or left out.

    `revised` counts the drafts that became the next version of a memory. `gone` are the memories whose
    text stands no longer in the files imported, and `pruned` tells whether they were forgotten. `moved` are
    those of `revised` that were moved to another file and edited, and are known by their likeness alone.
    `experience` counts what was new of uses, outcomes and events of lives, which an export holds beside
    memories.
    `skipped` says what was left out though it was to be read, and why: files that can't be read, parts
    that look like a secret. `passed_over` says what is left out by rule: other people's folders, large
    files. `unchecked` says why nothing was checked for secrets, where nothing was. `written` names each
    memory that was written, in order; reports are compared without it, since ids differ each time.
    """

    read: int
    created: int
    known: int
    revised: int = 0
    gone: tuple[Gone, ...] = ()
    pruned: bool = False
    moved: tuple[Moved, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    passed_over: tuple[Skipped, ...] = ()
    unchecked: str | None = None
    experience: int = 0
    written: tuple[Written, ...] = field(default=(), compare=False)

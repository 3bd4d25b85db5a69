"""What the files of one import hold, read one by one, and what of it must be left alone.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from germane.errors import UnreadableSource
from germane.exchange.modules import MODULE_SUFFIXES
from germane.exchange.projects import Project, files_of, read_file
from germane.exchange.reconciling import ORIGIN, distinct, origin_of
from germane.exchange.running import Run
from germane.exchange.sources import Skipped
from germane.model.draft import Draft
from germane.model.memory import Memory

__all__ = ["Found"]

_FILES_A_STEP = 25
"""Files after which an import tells how far it has come."""

_READING, _CHECKING, _STORING = range(3)


class Found:
    """The files to import in the order of their paths, and what those that were read so far say."""

    def __init__(self, project: Project, run: Run) -> None:
        self.project = project
        self.paths: dict[Path, int] = {}
        self._run = run
        self._named: set[Path] = set()
        self._drafts: dict[Path, list[Draft]] = {}
        self._unread: set[str] = set()
        self._refused: set[str] = set()
        self._order: dict[int, tuple[int, int]] = {}

    def look(self, start: Path, *, named: bool) -> None:
        """Take a file, or every file of a folder. What is `named` raises UnreadableSource when it is read."""
        for path in [start] if named else self._below(start):
            self.paths.setdefault(path, len(self.paths))
        if named:
            self._named.add(start)
        self._run.seen_of = len(self.paths)

    def drafts(self, paths: Iterable[Path]) -> list[Draft]:
        """What these files say, without what looks like a secret. Each file is read once."""
        found = []
        for path in paths:
            if path not in self._drafts:
                if self._run.seen % _FILES_A_STEP == 0 and len(self.paths) > _FILES_A_STEP:
                    self._run.tell(self.project.place(path))
                self._drafts[path] = self._read(path)
                self._run.seen += 1
            found += self._drafts[path]
        return found

    def may_continue(self, head: Memory, places: Sequence[str], keys: Collection[str]) -> bool:
        """Whether a stored memory came from these files, and may be continued by a draft of them."""
        origin = origin_of(head)
        if origin is None:
            return head.source in keys and ORIGIN not in head.metadata
        if origin.project != self.project.name or origin.file in self._unread or origin.key in self._refused:
            return False
        return any(place in (".", origin.file) or origin.file.startswith(f"{place}/") for place in places)

    def lost(self, heads: Iterable[Memory]) -> set[str]:
        """The files of these memories that are no longer there, from the project's root."""
        files = {origin.file for head in heads if (origin := origin_of(head)) is not None}
        return {file for file in files if not (self.project.root / file).exists()}

    def known_files(self, heads: Iterable[Memory]) -> list[Path] | None:
        """The files that brought these memories; None if one names no file and may be of any of these."""
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
        """Put what was left out in the order of the files, whichever of them were read first."""
        last = (_STORING, 0)
        for left_out in (self._run.skipped, self._run.passed_over):
            left_out.sort(key=lambda one: self._order.get(id(one), last))

    def _below(self, start: Path) -> Iterable[Path]:
        return files_of(
            self.project,
            start,
            passed_over=lambda one: self._leave_out(self._run.passed_over, one, len(self.paths)),
            refused=lambda one: self._leave_out(self._run.skipped, one, len(self.paths)),
        )

    def _read(self, path: Path) -> list[Draft]:
        one = read_file(self.project, path)
        if one.unread is not None:
            if path in self._named:
                raise UnreadableSource(one.unread)
            self._unread.add(self.project.place(path))
            # Sources that can't be parsed are often meant to be so; what people write to be read isn't.
            aside = self._run.passed_over if path.suffix.lower() in MODULE_SUFFIXES else self._run.skipped
            self._leave_out(aside, Skipped(source=str(path), reason=one.unread), self.paths[path])
        drafts = distinct(one.drafts, project=self.project.name, file=self.project.place(path))
        return [draft for draft in drafts if not self._is_refused(draft, path)]

    def _is_refused(self, draft: Draft, path: Path) -> bool:
        if not self._run.holds_secret(draft, path):
            return False
        self._run.read += 1
        self._refused.add(str(draft.source))
        self._order[id(self._run.skipped[-1])] = (_CHECKING, self.paths[path])
        return True

    def _leave_out(self, aside: list[Skipped], one: Skipped, number: int) -> None:
        aside.append(one)
        self._order[id(one)] = (_READING, number)

"""One import while it goes on: what it stored, what it refused, how far it has come.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from germane.errors import InvalidInput, MissingExtra
from germane.exchange.likeness import Continued
from germane.exchange.reconciling import ORIGIN, origin_of
from germane.exchange.report import Gone, ImportReport, Moved, Progress, Written
from germane.exchange.secrets import Secret, can_find_secrets, find_secrets, find_secrets_in_fields
from germane.exchange.sources import Skipped
from germane.model.draft import Draft, Remembered
from germane.model.memory import Memory
from germane.model.recalled import left_open

__all__ = ["Run", "Told"]

_Item = TypeVar("_Item", Draft, Memory)
_Write: TypeAlias = Callable[[Sequence[_Item]], Sequence[Remembered]]

Told: TypeAlias = Callable[[Progress], None]
"""Told how far an import has come."""

_NO_DETECTOR = "detect-secrets isn't installed; pip install 'germane[project]' to have secrets refused"
_ALLOWED = "secrets were allowed"


class Run:
    """The counts of one import."""

    def __init__(self, *, progress: Told | None = None, allow_secrets: bool = False) -> None:
        self._progress = progress
        self._told: tuple[int, ...] = ()
        self.unchecked = _ALLOWED if allow_secrets else None if can_find_secrets() else _NO_DETECTOR
        self.skipped: list[Skipped] = []
        self.passed_over: list[Skipped] = []
        self.gone: list[Gone] = []
        self.moved: list[Moved] = []
        self.written: list[Written] = []
        self.read = self.created = self.known = self.revised = self.experience = 0
        self.pruned = False
        self.seen = 0
        self.seen_of: int | None = None

    def store(self, items: Sequence[_Item], write: _Write[_Item]) -> list[Remembered | None]:
        """Write a batch; if the engine refuses it, each alone, so that one bad item costs only itself.

        One result per item, None for what was refused.
        """
        applied: list[Remembered | None]
        try:
            applied = [*write(items)]
        except InvalidInput:
            applied = [self._alone(item, write) for item in items]
        stored = [one for one in applied if one is not None]
        created = sum(one.created for one in stored)
        self.read += len(items)
        self.created += created
        self.known += len(stored) - created
        self.written.extend(_written(one.memory, revised=False) for one in stored if one.created)
        for item, one in zip(items, applied, strict=True):
            if one is not None and isinstance(item, Draft):
                self.note_open_fence(item)
        if items:
            self.tell(items[-1].source)
        return applied

    def revise(self, memory: Memory) -> None:
        """Count a memory that became the next version of one."""
        self.revised += 1
        self.written.append(_written(memory, revised=True))

    def note_open_fence(self, draft: Draft) -> None:
        """Note how much of a text isn't stored because it follows the start of an unclosed fence."""
        if left_out := left_open(draft.content):
            reason = (
                f"the last {left_out:,} characters aren't stored: they follow a <recalled-from-memory> that "
                "nothing closes. Close it, or write \\<recalled-from-memory> where it is only mentioned"
            )
            self.skipped.append(Skipped(source=draft.source or draft.content[:60], reason=reason))

    def note_moves(self, moves: Sequence[Continued]) -> None:
        """Note which texts were known again, although their file is another and they were edited."""
        for one in moves:
            origin = origin_of(one.head)
            before = origin.key if origin else str(one.head.source)
            after = one.draft.metadata[ORIGIN]["key"]
            self.moved.append(Moved(id=one.head.id, before=before, after=after, share=round(one.share, 2)))

    def require_detector(self) -> None:
        """Raise MissingExtra where nothing could be checked for secrets although nobody allowed them."""
        if self.unchecked == _NO_DETECTOR:
            raise MissingExtra(
                feature="Importing a folder, whose secrets must not be stored,", extra="project"
            )

    def holds_secret(self, item: Draft | Memory, path: Path | None = None) -> bool:
        """Whether something in it looks like a secret, which is then told; no where secrets are unchecked."""
        if self.unchecked is not None:
            return False
        said = {name: value for name, value in item.metadata.items() if name != ORIGIN}
        fields = {**said, "subject": item.subject or "", "tags": list(item.tags)}
        found = (*find_secrets(item.content), *find_secrets_in_fields(fields))
        for secret in found[:1]:
            rules = ", ".join(dict.fromkeys(each.rule for each in found))
            self.skipped.append(
                Skipped(
                    source=_place(item, secret, path),
                    reason=f"it looks like a secret ({rules}), so this part isn't stored. Take it out, or "
                    "write `pragma: allowlist secret` on a line that holds none",
                )
            )
        return bool(found)

    def tell(self, source: str | None) -> None:
        """Tell how far the import has come, unless that was told already."""
        counts = (self.read, self.created, self.known, self.revised, len(self.skipped), self.seen)
        if self._progress is None or counts == self._told:
            return
        self._told = counts
        self._progress(
            Progress(
                read=self.read,
                created=self.created,
                known=self.known,
                revised=self.revised,
                skipped=len(self.skipped),
                source=source,
                seen=self.seen,
                seen_of=self.seen_of,
            )
        )

    def report(self) -> ImportReport:
        """What the import did."""
        return ImportReport(
            read=self.read,
            created=self.created,
            known=self.known,
            revised=self.revised,
            gone=tuple(self.gone),
            pruned=self.pruned,
            moved=tuple(self.moved),
            skipped=tuple(self.skipped),
            passed_over=tuple(self.passed_over),
            unchecked=self.unchecked,
            experience=self.experience,
            written=tuple(self.written),
        )

    def _alone(self, item: _Item, write: _Write[_Item]) -> Remembered | None:
        try:
            return write([item])[0]
        except InvalidInput as error:
            self.skipped.append(Skipped(source=item.source or item.content[:60], reason=str(error)))
            return None


def _written(memory: Memory, *, revised: bool) -> Written:
    return Written(id=memory.id, source=memory.source or memory.content[:60], revised=revised)


def _place(item: Draft | Memory, secret: Secret, path: Path | None) -> str:
    """The file and line of a secret; without a file the item's source, and the line of its text."""
    line = item.content.split("\n")[secret.line - 1].strip()
    name = item.source or "a memory"
    if path is None:
        return f"{name}, line {secret.line} of its text" if line else name
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(path)
    wanted = [line, line.partition(": ")[2]]  # What a module says follows the module's name.
    standing = (
        n for n, each in enumerate(text.splitlines(), 1) if any(part and part in each for part in wanted)
    )
    alike = (found.line for found in find_secrets(text) if found.rule == secret.rule)
    number = next(standing, None) or next(alike, None)
    return str(path) if number is None else f"{path}:{number}"

"""What an import reports: its progress, its result, and what it left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeAlias, TypeVar

from germane.errors import InvalidInput, MissingExtra
from germane.importers.reconciliation import ORIGIN, ContinuedMemory, place_of
from germane.importers.secrets import Secret, can_find_secrets, find_secrets, find_secrets_in_fields
from germane.importers.sources import Skipped
from germane.model.memory import Draft, Memory, RememberResult
from germane.model.text import left_open


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

    `share` is how much of the text that only the old one had is in the new one, from 0 to 1.
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
    text is no longer in the imported files, and `pruned` is true if they were forgotten. `moved` are
    those of `revised` that were moved to another file and edited, and are known by their likeness alone.
    `usage_records` counts the new usage records of an export: uses, outcomes and lifecycle events.
    `skipped` are the parts that should have been read, with the reason: files that can't be read, parts
    that look like a secret. `passed_over` are parts left out by rule: other people's folders, large
    files. `unchecked` is the reason why nothing was checked for secrets, or None. `written` names each
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
    usage_records: int = 0
    written: tuple[Written, ...] = field(default=(), compare=False)


# One import while it goes on: what it stored, what it refused, how far it has come.

_Item = TypeVar("_Item", Draft, Memory)
_Write: TypeAlias = Callable[[Sequence[_Item]], Sequence[RememberResult]]

ProgressCallback: TypeAlias = Callable[[Progress], None]
"""Receives the progress of an import."""

_NO_DETECTOR = "detect-secrets isn't installed; pip install 'germane[project]' to have secrets refused"
_ALLOWED = "secrets were allowed"


class Run:
    """The counts of one import."""

    def __init__(self, *, progress: ProgressCallback | None = None, allow_secrets: bool = False) -> None:
        self._progress = progress
        self._reported: dict[str, int] = {}
        self.unchecked = _ALLOWED if allow_secrets else None if can_find_secrets() else _NO_DETECTOR
        self.skipped: list[Skipped] = []
        self.passed_over: list[Skipped] = []
        self.gone: list[Gone] = []
        self.moved: list[Moved] = []
        self.written: list[Written] = []
        self.read = self.created = self.known = self.revised = self.usage_records = 0
        self.pruned = False
        self.seen = 0
        self.seen_of: int | None = None

    def store(self, items: Sequence[_Item], write: _Write[_Item]) -> list[RememberResult | None]:
        """Write a batch; if the engine refuses it, each alone, so that one bad item costs only itself.

        One result per item, None for what was refused.
        """
        applied: list[RememberResult | None]
        try:
            applied = [*write(items)]
        except InvalidInput:
            applied = []
            for item in items:
                try:
                    applied += write([item])
                except InvalidInput as error:
                    applied.append(None)
                    self.skipped.append(Skipped(source=item.source or item.content[:60], reason=str(error)))
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
            self.show_progress(items[-1].source)
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

    def note_moves(self, moves: Sequence[ContinuedMemory]) -> None:
        """Note the texts that were recognized although they moved to another file and were edited."""
        for one in moves:
            after = one.draft.metadata[ORIGIN]["key"]
            before, share = str(place_of(one.head)), round(one.share, 2)
            self.moved.append(Moved(id=one.head.id, before=before, after=after, share=share))

    def require_detector(self) -> None:
        """Raise MissingExtra where nothing could be checked for secrets although nobody allowed them."""
        if self.unchecked == _NO_DETECTOR:
            feature = "Importing a folder, whose secrets must not be stored,"
            raise MissingExtra(feature=feature, extra="project")

    def holds_secret(self, item: Draft | Memory, path: Path | None = None) -> bool:
        """Report what looks like a secret; whether anything does. False where secrets are unchecked."""
        if self.unchecked is not None:
            return False
        named = {name: value for name, value in item.metadata.items() if name != ORIGIN}
        named |= {"subject": item.subject or "", "tags": list(item.tags)}
        secrets = (*find_secrets(item.content), *find_secrets_in_fields(named))
        for secret in secrets[:1]:
            rules = ", ".join(dict.fromkeys(each.rule for each in secrets))
            self.skipped.append(
                Skipped(
                    source=_place(item, secret, path),
                    reason=f"it looks like a secret ({rules}), so this part isn't stored. Take it out, or "
                    "write `pragma: allowlist secret` on a line that holds none",
                )
            )
        return bool(secrets)

    def show_progress(self, source: str | None) -> None:
        """Report the progress of the import, unless it is the same as before."""
        counts = {name: getattr(self, name) for name in ("read", "created", "known", "revised", "seen")}
        counts["skipped"] = len(self.skipped)
        if self._progress is not None and counts != self._reported:
            self._reported = counts
            self._progress(Progress(**counts, source=source, seen_of=self.seen_of))

    def report(self) -> ImportReport:
        """What the import did."""
        values = {each.name: getattr(self, each.name) for each in fields(ImportReport)}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return ImportReport(**values | lists)


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
    wanted = [line, line.partition(": ")[2]]  # The documentation of a module follows its name.
    lines = enumerate(text.splitlines(), 1)
    exact = (number for number, each in lines if any(part and part in each for part in wanted))
    alike = (secret_there.line for secret_there in find_secrets(text) if secret_there.rule == secret.rule)
    number = next(exact, None) or next(alike, None)
    return str(path) if number is None else f"{path}:{number}"

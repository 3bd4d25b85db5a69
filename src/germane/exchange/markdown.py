"""Markdown files and folders of them as drafts.

Level: exchange (imports errors).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from germane.errors import UnreadableSource
from germane.exchange.decisions import decision_record
from germane.exchange.fields import FieldError, as_day, as_moment, as_tags, number_of, plain, text_of
from germane.exchange.front_matter import split_front_matter
from germane.exchange.governing import stated_paths, stated_scope
from germane.exchange.outline import Outline, outline
from germane.exchange.sections import LONG, Passage, passages
from germane.exchange.sources import EXTERNAL, OnSkip, Skipped, name_of, read_text, unreadable
from germane.exchange.versions import is_changelog_name, versions
from germane.exchange.walking import NOT_OURS
from germane.model.draft import Draft

__all__ = ["MARKDOWN_SUFFIXES", "drafts_of_markdown", "read_markdown"]

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd"})

_KINDS_BY_TYPE = frozenset(
    {"adr", "pattern", "iplan", "module", "dependency", "changelog", "decision", "procedure", "fact", "note"}
)
"""What `type:` may say in front matter; other tools write other words there, which stay metadata."""

_SEPARATOR = " > "
_CREATED = ("date", "created", "created_at")
_UPDATED = ("updated", "updated_at", "modified", "last_modified", "lastmod")


def read_markdown(path: Path, *, on_skip: OnSkip | None = None, long: int = LONG) -> Iterator[Draft]:
    """The drafts of a Markdown file, or of every one in a folder, in the order of their paths.

    A decision record is one draft of kind `adr`, whole, with its status, date and number as metadata; a
    changelog one of kind `changelog` per version; any other file is one draft, or where it is
    longer than `long` characters, one per section (see `passages`), with the path of headings as
    subject. Front matter gives kind, subject (or title), tags, scope, importance, confidence,
    outcome, pinned, date and the date of the last update; everything else in it becomes metadata.
    Whatever it claims, the text is trusted as a document's.

    Hidden folders and those of installed packages are left out. A file that can't be read raises
    UnreadableSource; in a folder it is reported to `on_skip` instead, where there is one.
    """
    if not path.is_dir():
        yield from drafts_of_markdown(path, long=long)
        return
    found = False
    for file in _files(path, on_skip):
        found = True
        try:
            yield from drafts_of_markdown(file, long=long)
        except UnreadableSource as error:
            if on_skip is None:
                raise
            on_skip(Skipped(source=str(file), reason=str(error)))
    if not found:
        raise unreadable(path, f"the folder holds no Markdown file ({', '.join(sorted(MARKDOWN_SUFFIXES))})")


def drafts_of_markdown(path: Path, *, name: str | None = None, long: int | None = None) -> list[Draft]:
    """The drafts of one Markdown file, all or none, as `read_markdown` says; `name` is their source.

    Raises UnreadableSource.
    """
    front = split_front_matter(read_text(path), path)
    if not front.body.strip():
        raise unreadable(path, "it has front matter and no text")
    document = outline(front.body)
    try:
        base = _draft_of_fields(front.fields, name or name_of(path))
        return _drafts(path, document, base, front.lines, LONG if long is None else long)
    except FieldError as error:
        raise unreadable(path, f"in its front matter, {error}") from error


def _files(root: Path, on_skip: OnSkip | None) -> Iterator[Path]:
    def refused(error: OSError) -> None:
        skipped = Skipped(source=str(error.filename), reason=f"the system refused it ({error.strerror})")
        if on_skip is None:
            raise unreadable(skipped.source, skipped.reason) from error
        on_skip(skipped)

    for folder, folders, names in os.walk(root, onerror=refused):
        folders[:] = sorted(name for name in folders if _is_ours(Path(folder, name)))
        for name in sorted(names):
            if Path(name).suffix.lower() in MARKDOWN_SUFFIXES and not name.startswith("."):
                yield Path(folder, name)


def _is_ours(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in NOT_OURS:
        return False
    return not (folder / "pyvenv.cfg").exists()


def _draft_of_fields(fields: Mapping[str, Any], source: str) -> Draft:
    """What front matter says about every draft of its file."""
    kind, metadata = text_of(fields, "kind"), dict(plain(fields))
    declared = text_of(fields, "type") if kind is None and isinstance(fields.get("type"), str) else None
    if declared and declared.lower() in _KINDS_BY_TYPE:
        kind = declared.lower()
        metadata.pop("type")
    created, updated = (_moment(fields, names) for names in (_CREATED, _UPDATED))
    if created is not None and updated is not None and updated < created:
        updated = None
    for name in (
        "kind",
        "subject",
        "title",
        "tags",
        "importance",
        "confidence",
        "outcome",
        "pinned",
    ):
        metadata.pop(name, None)
    scope, paths = stated_scope(fields), stated_paths(fields)
    if scope is not None or paths:
        metadata.pop("scope", None)
    if paths:
        metadata["paths"] = list(paths)
    pinned = fields.get("pinned", False)
    if not isinstance(pinned, bool):
        raise FieldError(f"'pinned' must be true or false, and is {pinned!r}")
    return Draft(
        content="",
        kind=kind or "",
        subject=text_of(fields, "subject") or text_of(fields, "title"),
        tags=as_tags(fields.get("tags")),
        scope=scope or "global",
        importance=number_of(fields, "importance"),
        confidence=number_of(fields, "confidence"),
        outcome=text_of(fields, "outcome"),
        trust=EXTERNAL,
        source=source,
        created_at=created,
        updated_at=updated,
        pinned=pinned,
        metadata=metadata,
    )


def _moment(fields: Mapping[str, Any], names: Sequence[str]) -> datetime | None:
    """The time under the first of these names that the fields have."""
    name = next((name for name in names if fields.get(name)), None)
    return None if name is None else as_moment(fields[name], name=name, assume_utc=True)


def _drafts(path: Path, document: Outline, base: Draft, above: int, long: int) -> list[Draft]:
    kind = base.kind
    if kind in ("", "changelog") and (kind or is_changelog_name(path.stem)):
        entries = _of_changelog(document, base, above)
        if entries:
            return entries
    if kind in ("", "adr"):
        record = _of_record(path, document, base)
        if record is not None:
            return [record]
    base = replace(base, kind=kind or "note")
    found = passages(document, long=long)
    title = base.subject or document.title() or path.stem
    if len(found) == 1:
        return [replace(base, content=found[0].text, subject=title)]
    anchors: dict[str, int] = {}
    return [_of_passage(passage, base, title, above, anchors) for passage in found]


def _of_changelog(document: Outline, base: Draft, above: int) -> list[Draft]:
    """A draft per version. One without a day takes that of the next below, or else above."""
    entries = versions(document)
    days = [as_day(version.date) for version in entries]
    for place in range(len(days) - 2, -1, -1):
        if entries[place].name.lower() != "unreleased":
            days[place] = days[place] or days[place + 1]
    for place in range(1, len(days)):
        days[place] = days[place] or days[place - 1]
    return [
        replace(
            base,
            kind="changelog",
            content=version.text,
            subject=version.name,
            source=f"{base.source}#{version.name}",
            created_at=day or base.created_at,
            updated_at=None if day else base.updated_at,
            metadata={
                **base.metadata,
                "version": version.name,
                "line": version.line + above + 1,
                **({"date": version.date} if version.date else {}),
                **({"yanked": True} if version.yanked else {}),
            },
        )
        for version, day in zip(entries, days, strict=True)
    ]


def _of_record(path: Path, document: Outline, base: Draft) -> Draft | None:
    record = decision_record(document, file_name=path.name, fields=base.metadata, known=base.kind == "adr")
    if record is None:
        return None
    said = {"status": record.status, "date": record.date, "number": record.number}
    return replace(
        base,
        kind="adr",
        content=document.text(0, len(document.lines)),
        subject=base.subject or record.title,
        created_at=base.created_at or as_day(record.date),
        metadata={**base.metadata, **{name: value for name, value in said.items() if value is not None}},
    )


def _of_passage(passage: Passage, base: Draft, title: str, above: int, anchors: dict[str, int]) -> Draft:
    anchor = _anchor(passage.path[-1] if passage.path else title)
    count = anchors[anchor] = anchors.get(anchor, 0) + 1
    place = {"line": passage.line + above + 1}
    if passage.parts > 1:
        place |= {"part": passage.part, "parts": passage.parts}
    return replace(
        base,
        content=passage.text,
        subject=_SEPARATOR.join(passage.path) or title,
        source=f"{base.source}#{anchor}" if count == 1 else f"{base.source}#{anchor}-{count - 1}",
        metadata={**base.metadata, **place},
    )


def _anchor(title: str) -> str:
    """The name that a heading has in a link, as most renderers make it."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) or "section"

"""Markdown files and folders of them as drafts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from germane.errors import MissingExtra, UnreadableSource
from germane.importers.documents import (
    CHANGELOGS,
    LONG,
    DocumentPassage,
    Outline,
    decision_record,
    outline,
    passages,
    stated_paths,
    stated_scope,
    versions,
    without_own_blocks,
)
from germane.importers.foreign import LeaveOut, counted, uncounted
from germane.importers.host_files import HOST_FOLDERS, host_fields, is_host_path, walked_names, working_file
from germane.importers.sources import (
    EXTERNAL,
    FieldError,
    OnSkip,
    Skipped,
    as_day,
    as_moment,
    draft_of_fields,
    name_of,
    plain,
    raise_skipped,
    read_text,
    text_of,
    translated_os_errors,
    unreadable,
)
from germane.importers.vaults import (
    is_basic_memory,
    is_in_vault,
    note_fields,
    statements_of,
    with_links,
)
from germane.model.memory import Draft

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd"})

_KINDS_BY_TYPE = frozenset(
    {"adr", "pattern", "iplan", "module", "dependency", "changelog", "decision", "procedure", "fact", "note"}
)
"""The kinds that `type:` can name in front matter; other values stay metadata."""

_SEPARATOR = " > "
_CREATED = ("date", "created", "created_at")
_LONGEST_BLANK = 1_000
_UPDATED = ("updated", "updated_at", "modified", "last_modified", "lastmod")


def read_markdown(path: Path, *, on_skip: OnSkip | None = None, long: int = LONG) -> Iterator[Draft]:
    """The drafts of a Markdown file, or of all Markdown files in a folder, in the order of their paths.

    A decision record is one draft of kind `adr`, with its status, date and number as metadata. A changelog is
    one draft of kind `changelog` per version. Any other file is one draft, or if it has more than `long`
    characters, one per section (see `passages`) with the path of headings as subject. Front matter gives
    kind, subject (or title), tags, scope, importance, confidence, outcome, pinned, date and the date of the
    last update; its other fields become metadata. The text always has the trust of a document.

    In a folder, paths that git ignores, hidden folders, third-party folders and files of more than a megabyte
    are skipped. An unreadable file raises UnreadableSource; in a folder it is reported to `on_skip` instead,
    if given. Raises MissingExtra without the extra `project`.
    """
    start, skip = path.resolve(), on_skip or raise_skipped

    def wanted(file: Path) -> bool:
        return file.suffix.lower() in MARKDOWN_SUFFIXES

    with counted(path, on_skip or (lambda _: None)) as leave_out:
        if not path.is_dir():
            yield from drafts_of_markdown(path, long=long, leave_out=leave_out)
            return
        any_file = False
        for file in walk(start, root=start, wanted=wanted, passed_over=lambda _: None, refused=skip):
            any_file = True
            try:
                yield from drafts_of_markdown(file, long=long, leave_out=leave_out)
            except UnreadableSource as error:
                skip(Skipped(source=str(file), reason=str(error)))
    if not any_file:
        raise unreadable(path, f"the folder holds no Markdown file ({', '.join(sorted(MARKDOWN_SUFFIXES))})")


def drafts_of_markdown(
    path: Path, *, name: str | None = None, long: int = LONG, leave_out: LeaveOut = uncounted
) -> list[Draft]:
    """The drafts of one Markdown file by the rules of `read_markdown`; `name` is their source.

    In a vault of Obsidian, and for notes of Basic Memory, they have the links and tags of their texts, and
    what isn't taken over is reported to `leave_out`. Raises UnreadableSource.
    """
    in_vault, source = is_in_vault(path), name or name_of(path)
    no_memory = _BLANK if in_vault and _is_blank(path) else working_file(path)
    if no_memory is not None:
        leave_out(no_memory)
        return []
    fields, whole, above = host_fields(path, read_text(path))
    is_note = in_vault or is_basic_memory(fields)
    body = without_own_blocks(whole)
    if whole.strip() and not body.strip():
        return []
    if not body.strip() and is_note:
        leave_out(_BLANK)
        return []
    if not body.strip():
        raise unreadable(path, "it has front matter and no text")
    try:
        if not is_note:
            return _drafts(path, outline(body), _draft_of_fields(fields, source), above, long)
        own, others = note_fields(fields)
        base = _draft_of_fields(own, source)
        base = replace(base, metadata={**others, **base.metadata})
        stated: list[Draft] = []
        if is_basic_memory(fields):
            stated, body = statements_of(body, base, base.subject or path.stem)
        document = outline(body)
        whole_note = _drafts(path, document, base, above, long) if document.blocks or not stated else []
        return [with_links(draft, leave_out) for draft in (*whole_note, *stated)]
    except FieldError as error:
        raise unreadable(path, f"in its front matter, {error}") from error


_BLANK = "notes without a text"


def _is_blank(path: Path) -> bool:
    with translated_os_errors(path):
        return path.stat().st_size < _LONGEST_BLANK and not path.read_bytes().strip()


def drafts_of_text(text: str, base: Draft, path: Path, *, long: int = LONG) -> list[Draft]:
    """A Markdown text of another file as drafts with the fields of `base`, by `read_markdown`'s rules."""
    return _drafts(path, outline(text), base, 0, long)


def _draft_of_fields(fields: Mapping[str, Any], source: str) -> Draft:
    """The fields that front matter gives every draft of its file."""
    kind, metadata = text_of(fields, "kind"), dict(plain(fields))
    declared = text_of(fields, "type") if kind is None and isinstance(fields.get("type"), str) else None
    if declared and declared.lower() in _KINDS_BY_TYPE:
        kind = declared.lower()
        metadata.pop("type")
    created, updated = _moment(fields, _CREATED), None
    with suppress(FieldError):  # Other tools write other values there.
        updated = _moment(fields, _UPDATED)
    if created is not None and updated is not None and updated < created:
        updated = None
    for name in ("kind", "subject", "title", "tags", "importance", "confidence", "outcome", "pinned"):
        metadata.pop(name, None)
    scope, paths = stated_scope(fields), stated_paths(fields)
    if scope is not None or paths:
        metadata.pop("scope", None)
    if paths:
        metadata["paths"] = list(paths)
    return draft_of_fields(
        {**fields, "scope": scope},
        content="",
        kind=kind or "",
        subject=text_of(fields, "subject") or text_of(fields, "title"),
        trust=EXTERNAL,
        source=source,
        created_at=created,
        updated_at=updated,
        metadata=metadata,
    )


def _moment(fields: Mapping[str, Any], names: Sequence[str]) -> datetime | None:
    """The time in the first existing field of these names."""
    name = next((name for name in names if fields.get(name)), None)
    return None if name is None else as_moment(fields[name], name=name, assume_utc=True)


def _drafts(path: Path, document: Outline, base: Draft, above: int, long: int) -> list[Draft]:
    kind = base.kind
    is_changelog = kind == "changelog" or (not kind and path.stem.lower() in CHANGELOGS)
    if is_changelog and (entries := _of_changelog(document, base, above)):
        return entries
    if kind in ("", "adr") and (record := _of_record(path, document, base)) is not None:
        return [record]
    base = replace(base, kind=kind or "note")
    parts = passages(document, long=long)
    title = base.subject or document.title() or path.stem
    if len(parts) == 1:
        return [replace(base, content=parts[0].text, subject=title)]
    anchors: dict[str, int] = {}
    return [_of_passage(passage, base, title, above, anchors) for passage in parts]


def _of_changelog(document: Outline, base: Draft, above: int) -> list[Draft]:
    """A draft per version. A version without a day has the day of the next below, or else above."""
    entries = versions(document)
    days = [as_day(entry.get("date")) for entry, _ in entries]
    for place in range(len(days) - 2, -1, -1):
        if entries[place][0]["version"].lower() != "unreleased":
            days[place] = days[place] or days[place + 1]
    for place in range(1, len(days)):
        days[place] = days[place] or days[place - 1]
    return [
        replace(
            base,
            kind="changelog",
            content=text,
            subject=entry["version"],
            source=f"{base.source}#{entry['version']}",
            created_at=day or base.created_at,
            updated_at=None if day else base.updated_at,
            metadata={**base.metadata, **entry, "line": entry["line"] + above},
        )
        for (entry, text), day in zip(entries, days, strict=True)
    ]


def _of_record(path: Path, document: Outline, base: Draft) -> Draft | None:
    record = decision_record(document, file_name=path.name, fields=base.metadata, known=base.kind == "adr")
    if record is None:
        return None
    title = record.pop("title")
    return replace(
        base,
        kind="adr",
        content=document.text(0, len(document.lines)),
        subject=base.subject or title,
        created_at=base.created_at or as_day(record["date"]),
        metadata={**base.metadata, **{name: value for name, value in record.items() if value is not None}},
    )


def _of_passage(
    passage: DocumentPassage, base: Draft, title: str, above: int, anchors: dict[str, int]
) -> Draft:
    # The anchor of a heading, as most renderers make it.
    plain_title = re.sub(r"[^\w\s-]", "", (passage.path[-1] if passage.path else title).lower()).strip()
    anchor = re.sub(r"[\s-]+", "-", plain_title) or "section"
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


# The files of a project to read, without ignored and third-party files.

MOST_BYTES = 1_000_000
"""The maximum size of a file; longer ones are generated or data."""

NOT_OURS = frozenset(
    {"node_modules", "bower_components", "site-packages", "vendor", "third_party", "__pycache__"}
)
"""Folders of third-party or generated files, besides hidden folders and virtual environments."""

_IGNORE_FILE = ".gitignore"

Wanted: TypeAlias = Callable[[Path], bool]
"""Whether a file is read at all, by its name."""


class Ignored:
    """Whether git ignores a path, by every .gitignore from the root to it and `.git/info/exclude`.

    `pathspec` parses the patterns. As in git, the nearest file decides, and in it the last matching pattern.
    Paths below an ignored folder are ignored, whatever other patterns match.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[Path, GitIgnoreSpec | None] = {}
        self._own = _spec(root / ".git" / "info" / "exclude")

    def __call__(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the path itself is ignored, assuming that its folders aren't."""
        for folder in path.parents:
            if folder not in self._specs:
                self._specs[folder] = _spec(folder / _IGNORE_FILE)
            ignored = _decision(self._specs[folder], path.relative_to(folder), is_folder=is_folder)
            if ignored is not None:
                return ignored
            if folder == self._root:
                break
        return bool(_decision(self._own, path.relative_to(self._root), is_folder=is_folder))

    def below(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the path or one of its folders, from the root down, is ignored."""
        above = [folder for folder in path.parents if folder != self._root and self._root in folder.parents]
        return any(self(folder, is_folder=True) for folder in above) or self(path, is_folder=is_folder)


def walk(start: Path, *, root: Path, wanted: Wanted, passed_over: OnSkip, refused: OnSkip) -> Iterator[Path]:
    """The wanted files at or below `start`, folder by folder in the order of their names.

    Ignored and hidden files are skipped silently. Third-party folders, files of more than MOST_BYTES and
    links out of the project are reported to `passed_over`, and unreadable folders to `refused`.
    """
    ignored = Ignored(root)
    if start.is_dir():
        files = _below(start, ignored, wanted, passed_over, refused)
    elif ignored.below(start, is_folder=False) or is_hidden(start, root) or not wanted(start):
        return
    else:
        files = iter([start])
    for path in files:
        if _may_be_read(path, root, passed_over):
            yield path


def _below(
    start: Path, ignored: Ignored, wanted: Wanted, passed_over: OnSkip, refused: OnSkip
) -> Iterator[Path]:
    def failed(error: OSError) -> None:
        refused(Skipped(source=str(error.filename), reason=f"the system refused it ({error.strerror})"))

    for folder, folders, files in os.walk(start, onerror=failed):
        here = Path(folder)
        only = walked_names(here)
        visible = sorted(name for name in folders if not name.startswith(".") or name in HOST_FOLDERS)
        names = [name for name in files if only is None or name in only]
        if only is not None:
            _name_settings(here, [name for name in visible if name not in only], passed_over)
            visible = [name for name in visible if name in only]
        folders[:] = [
            name
            for name in visible
            if not ignored(here / name, is_folder=True) and _is_ours(here / name, passed_over)
        ]
        for name in sorted(names):
            path = here / name
            if not name.startswith(".") and wanted(path) and not ignored(path, is_folder=False):
                yield path


def _name_settings(folder: Path, names: Sequence[str], passed_over: OnSkip) -> None:
    """Report the folders in the folder of a host that contain no memories."""
    for name in names:
        reason = "the folder has settings of the host, and no memories"
        passed_over(Skipped(source=str(folder / name), reason=reason))


def _is_ours(folder: Path, passed_over: OnSkip) -> bool:
    reason = ""
    if folder.name in NOT_OURS or folder.name.endswith(".egg-info"):
        reason = "the folder holds other people's work, or a build's"
    elif os.path.exists(folder / "pyvenv.cfg"):  # noqa: PTH110 - False also where nobody may look.
        reason = "the folder is a virtual environment"
    if reason and folder.name != "__pycache__":
        passed_over(Skipped(source=str(folder), reason=reason))
    return not reason


def _may_be_read(path: Path, root: Path, passed_over: OnSkip) -> bool:
    try:
        if path.is_symlink():
            if root not in path.resolve().parents:
                passed_over(Skipped(source=str(path), reason="the link leads out of the project"))
            return False  # A file inside the project is read at its own path.
        reason = too_large(path)
    except OSError:
        return True  # Reading it reports the problem.
    if reason is not None:
        passed_over(Skipped(source=str(path), reason=reason))
    return reason is None


def too_large(path: Path) -> str | None:
    """Why a file is too large to be read, or None. Raises OSError."""
    size = path.stat().st_size
    return f"the file has {size:,} bytes, and at most {MOST_BYTES:,} are read" if size > MOST_BYTES else None


def is_hidden(path: Path, root: Path) -> bool:
    """Whether the path, or a folder between it and the root, is hidden or third-party."""
    place = path.relative_to(root)
    return not is_host_path(place) or any(part in NOT_OURS for part in place.parts)


def _decision(spec: GitIgnoreSpec | None, path: Path, *, is_folder: bool) -> bool | None:
    """Whether the last pattern that matches the path itself ignores it; None if none matches."""
    if spec is None:
        return None
    text = path.as_posix() + ("/" if is_folder else "")
    for pattern in reversed(spec.patterns):
        match = pattern.match_file(text) if pattern.include is not None else None
        # A match that ends before the path matches a folder above, which was checked before.
        if match is not None and match.match.end() == len(text):
            return pattern.include
    return None


def _spec(path: Path) -> GitIgnoreSpec | None:
    try:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - An optional dependency, needed only for projects.
    except ImportError as error:
        raise MissingExtra(feature="Reading a project's .gitignore", extra="project") from error
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, f"the system refused to read it ({error.strerror or error})") from error
    return GitIgnoreSpec.from_lines(text.splitlines())

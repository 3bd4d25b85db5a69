"""JSON lines of memories: hand-written ones as drafts, exported ones as they were.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from germane.errors import GermaneError, InvalidInput
from germane.exchange.exact import MARKER
from germane.exchange.experiences import RECORD, Learns, experienced_from_json
from germane.exchange.fields import FieldError, as_moment, as_tags, nearest, number_of, plain, text_of
from germane.exchange.records import RenditionsOf, memory_from_json, standing_from_json
from germane.exchange.sources import EXTERNAL, name_of, numbered_lines, unreadable
from germane.model.draft import Draft
from germane.model.experience import Experienced
from germane.model.memory import Memory
from germane.model.stage import Standing

__all__ = ["Line", "parse_object", "read_export", "read_jsonl", "read_lines", "read_memories"]

Line: TypeAlias = "tuple[Memory, Standing | None] | Experienced | Learns"
"""What a line of an export says."""

_FIELDS = (
    "content",
    "text",
    "kind",
    "subject",
    "tags",
    "scope",
    "importance",
    "confidence",
    "outcome",
    "trust",
    "source",
    "created_at",
    "updated_at",
    "pinned",
    "metadata",
)


def read_jsonl(path: Path) -> Iterator[Draft]:
    """One draft per line, read as they are asked for; blank lines are passed over.

    A line is an object with `content` (or `text`) and any other field of a draft. Without a
    `source` it is the file and the text is trusted as a document's; a line that names its source may
    name its `trust` too. An exported line is accepted as well and gives up its id, status and counts
    (`read_memories` keeps them); what was gone through with memories is passed over. Raises
    UnreadableSource, naming the line, for anything else.
    """
    name = name_of(path)
    for number, line in numbered_lines(path):
        fields = parse_object(line, path, number)
        if MARKER in fields and RECORD in fields:
            continue
        try:
            yield _draft(fields, name)
        except (FieldError, InvalidInput) as error:
            raise unreadable(path, str(error), line=number) from error


def read_memories(path: Path, *, agent: str, renditions_of: RenditionsOf | None = None) -> Iterator[Memory]:
    """The memories of an export as they were: ids, versions, status, times and counts.

    They become `agent`'s. `renditions_of` makes the renditions of lines that lost theirs. Raises
    UnreadableSource, naming the line, for a line that is no exported memory.
    """
    for memory, _ in read_export(path, agent=agent, renditions_of=renditions_of):
        yield memory


def read_export(
    path: Path, *, agent: str, renditions_of: RenditionsOf | None = None
) -> Iterator[tuple[Memory, Standing | None]]:
    """The memories of an export as they were, each with what was counted of its life.

    None stands where nothing was, and where an older germane wrote the line. Raises UnreadableSource.
    """
    for line in read_lines(path, agent=agent, renditions_of=renditions_of):
        if isinstance(line, tuple):
            yield line


def read_lines(path: Path, *, agent: str, renditions_of: RenditionsOf | None = None) -> Iterator[Line]:
    """All that an export holds: memories as `read_export` gives them, and what was gone through with them.

    Raises UnreadableSource, naming the line.
    """
    for number, line in numbered_lines(path):
        fields = parse_object(line, path, number)
        try:
            if RECORD in fields:
                yield experienced_from_json(fields, agent=agent)
                continue
            memory = memory_from_json(fields, agent=agent, renditions_of=renditions_of)
            yield memory, standing_from_json(fields)
        except (FieldError, GermaneError) as error:
            raise unreadable(path, str(error).rstrip("."), line=number) from error


def parse_object(line: str, path: Path, number: int) -> dict[str, Any]:
    """The JSON object on a line. Raises UnreadableSource for anything else."""
    try:
        value = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"it is no JSON ({error})", line=number) from error
    if not isinstance(value, dict):
        raise unreadable(path, f"one JSON object was expected, and this is {line[:40]}", line=number)
    return value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _draft(fields: Mapping[str, Any], file: str) -> Draft:
    exported = MARKER in fields
    unknown = () if exported else [name for name in fields if name not in _FIELDS]
    if unknown:
        hint = nearest(unknown[0], _FIELDS) or "."
        raise FieldError(f"unknown field {unknown[0]!r}{hint} Fields of your own go under 'metadata'")
    content = fields.get("content", fields.get("text"))
    if not isinstance(content, str) or not content.strip():
        raise FieldError(f"'content' must be a text that isn't blank, and is {content!r}")
    metadata = fields.get("metadata") or {}
    pinned = fields.get("pinned") or False
    if not isinstance(metadata, dict) or not isinstance(pinned, bool):
        raise FieldError("'metadata' must be an object, and 'pinned' true or false")
    source = text_of(fields, "source")
    return Draft(
        content=content,
        kind=text_of(fields, "kind") or "note",
        subject=text_of(fields, "subject"),
        tags=as_tags(fields.get("tags")),
        scope=text_of(fields, "scope") or "global",
        importance=number_of(fields, "importance"),
        confidence=number_of(fields, "confidence"),
        outcome=text_of(fields, "outcome"),
        trust=text_of(fields, "trust") or (None if exported else EXTERNAL),
        source=source or (None if exported else file),
        created_at=as_moment(fields.get("created_at"), name="created_at", assume_utc=False),
        updated_at=as_moment(fields.get("updated_at"), name="updated_at", assume_utc=False),
        pinned=pinned,
        metadata=plain(metadata),
    )

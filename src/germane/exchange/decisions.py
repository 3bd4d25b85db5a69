"""Decision records: recognised by their headings, whatever template they follow.

Level: exchange (imports nothing of the package but this room). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from germane.exchange.fields import day_in
from germane.exchange.outline import Outline

__all__ = ["DecisionRecord", "decision_record"]

_TITLES = (
    re.compile(r"^adr[\s#_-]*(?P<number>\d{1,5})\s*[.:)\u2013\u2014-]?\s*(?P<title>.*)$", re.IGNORECASE),
    re.compile(r"^(?P<number>\d{1,5})(?:[.:)]|\s+[\u2013\u2014-])\s*(?P<title>.*)$"),
    re.compile(r"^(?P<number>)adr\s*[:\u2013\u2014-]\s*(?P<title>.*)$", re.IGNORECASE),
)
_FIELD = re.compile(r"^\W*(?P<name>status|date)\W*:\W*(?P<value>\w.*)$", re.IGNORECASE)
_NUMBER_OF_FILE = re.compile(r"^(?:adr[-_]?)?(\d{1,5})[-_.]", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_DECISIONS = frozenset({"decision", "decisions", "decision outcome", "the decision"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """What a decision record says about itself. `date` is ISO text, `status` as it is written."""

    title: str
    number: int | None
    status: str | None
    date: str | None


def decision_record(
    document: Outline, *, file_name: str, fields: Mapping[str, Any], known: bool = False
) -> DecisionRecord | None:
    """What the document decides, if it is one decision record; None if it is anything else.

    It is one when exactly one heading announces a decision and a context, a status or a title such
    as `ADR 7` stands beside it: so do the templates of Nygard, MADR and Tyree. `known` says that
    its front matter already calls it one. Front matter wins over what the text says.
    """
    heads = [heading.title.lower().strip(" :") for heading in document.headings]
    number, title = _title(document, file_name)
    status = _said(document, fields, "status")
    named = re.match(r"adr\b", heads[0]) is not None if heads else False
    context = any(head.startswith("context") for head in heads)
    decides = sum(head in _DECISIONS for head in heads) == 1
    if not known and not (decides and (context or status or named)):
        return None
    date = day_in(_said(document, fields, "date") or status or "")
    return DecisionRecord(title=title, number=number, status=status, date=date)


def _title(document: Outline, file_name: str) -> tuple[int | None, str]:
    title = document.title() or file_name.rsplit(".", 1)[0]
    for pattern in _TITLES:
        if (match := pattern.match(title)) and match["title"]:
            number, title = match["number"], match["title"]
            break
    else:
        number = ""
    if not number and (match := _NUMBER_OF_FILE.match(file_name)):
        number = match[1]
    return (int(number) if number else None), title


def _said(document: Outline, fields: Mapping[str, Any], name: str) -> str | None:
    """A field from the front matter, the lines above the first section, or a section of that name."""
    if fields.get(name):
        return str(fields[name]).strip() or None
    for line in _opening(document):
        match = _FIELD.match(line)
        if match and match["name"].lower() == name:
            return _words(match["value"])
    ends = [*(heading.line for heading in document.headings[1:]), len(document.lines)]
    for heading, end in zip(document.headings, ends, strict=bool(document.headings)):
        if heading.title.lower() == name:
            lines = document.lines[heading.end : end]
            return next((_words(line) for line in lines if _words(line)), None)
    return None


def _opening(document: Outline) -> tuple[str, ...]:
    """The lines that stand before the first section: where most templates keep their fields."""
    sections = [heading for heading in document.headings if heading.level > 1]
    return document.lines[: sections[0].line] if sections else document.lines[:20]


def _words(text: str) -> str:
    """A line without its markup and comments."""
    return _LINK.sub(r"\1", text.partition("<!--")[0]).strip(" *_`{}-+\t")

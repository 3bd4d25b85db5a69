"""Notes of Obsidian and Basic Memory: their links, tags, observations and relations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from germane.importers.documents import Prose, prose_in
from germane.importers.foreign import LeaveOut
from germane.importers.sources import FieldError, as_moment, as_texts, plain
from germane.model.memory import Draft

SETTINGS: Final = ".obsidian"
"""The folder with Obsidian's settings at the root of a vault."""

MOST_LINKS: Final = 1_000
"""The maximum number of links of one memory."""

_PERMALINK = re.compile(r"\w[^\s]*")
_DATES: Final = ("date", "created", "created_at", "updated", "updated_at", "modified")


def is_in_vault(path: Path) -> bool:
    """Whether a file or folder lies in a vault of Obsidian."""
    here = path.resolve()
    return any((folder / SETTINGS).is_dir() for folder in (here, *here.parents))


def is_basic_memory(fields: Mapping[str, Any]) -> bool:
    """Whether the front matter is of a note of Basic Memory, which has a permalink and a type.

    The permalink of a page of a website begins with a slash instead.
    """
    link = fields.get("permalink")
    return isinstance(link, str) and "type" in fields and _PERMALINK.fullmatch(link) is not None


def note_fields(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of front matter that a note's memory has, and all others, which are metadata.

    Other programs than germane wrote them, so only titles, tags, types and valid dates have a meaning here.
    Raises FieldError.
    """
    own = {name: fields[name] for name in ("title", "type", "tags") if name in fields}
    if "tags" not in own and "tag" in fields:
        own["tags"] = fields["tag"]
    for name in _DATES:
        with suppress(FieldError):  # A template's placeholder, or a link to the note of a day.
            own |= {name: fields[name]} if as_moment(fields.get(name), name=name, assume_utc=True) else {}
    others = {name: value for name, value in fields.items() if name not in (*own, "tag", "alias")}
    aliases = fields.get("aliases", fields.get("alias"))
    if isinstance(aliases, str | list):
        others["aliases"] = list(as_texts(aliases, name="aliases"))
    return own, {name: value for name, value in plain(others).items() if value not in (None, "", [], {})}


# Links and tags in running text.

_LINK = re.compile(r"(?<!\\)\[\[(?P<target>[^\[\]\n]{1,500})\]\]")
_TAG = re.compile(r"(?<![^\s(,;])#(?P<tag>[\w/-]+)")
_TICKS = re.compile("`+")


def with_links(draft: Draft, leave_out: LeaveOut) -> Draft:
    """The draft with the targets of its text's wiki links as metadata, and the tags in its text as tags."""
    if "[[" not in draft.content and "#" not in draft.content:
        return draft
    links, tags, more = dict[str, None](), dict.fromkeys(draft.tags), 0
    for prose in prose_in(draft.content):
        text = without_code(prose.text)
        tags |= dict.fromkeys(_tags_in(text))
        for match in _LINK.finditer(text):
            target = _target(match["target"])
            if target and target not in links and len(links) == MOST_LINKS:
                more += 1
            elif target:
                links[target] = None
    leave_out(f"links of notes with more than {MOST_LINKS:,}", more)
    named = {"links": list(links)} if links else {}
    return replace(draft, tags=tuple(tags), metadata={**draft.metadata, **named})


def _target(text: str) -> str:
    """The note that a link names, without the words it shows and the place in the note."""
    return text.partition("|")[0].partition("#")[0].rstrip("\\").strip().removesuffix(".md")


def _tags_in(text: str) -> Iterator[str]:
    for match in _TAG.finditer(text):
        tag = match["tag"].strip("/")
        if tag and not tag.replace("/", "").isdigit():  # `#12` is the number of something.
            yield tag


def without_code(text: str) -> str:
    """The text with code between backticks blanked, in linear time."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    last: dict[int, int] = {}
    closing: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        if length in last:
            closing[number] = last[length]
        last[length] = number
    parts, done, number = [], 0, 0
    while number < len(runs):
        end = closing.get(number)
        if end is None:
            number += 1
            continue
        parts += [text[done : runs[number][0]], " "]
        done, number = runs[end][1], end + 1
    return "".join([*parts, text[done:]])


# Observations and relations of Basic Memory: items of lists, which become facts of their own.

_OBSERVATION = re.compile(r"\[(?P<category>[^\[\]()\n]+)\]\s+(?P<text>\S.*)", re.DOTALL)
_RELATION = re.compile(
    r"(?:\"(?P<quoted>[^\"\n]+)\"|'(?P<single>[^'\n]+)'|(?P<word>[^\s\[\]]+))\s*"
    r"\[\[(?P<target>[^\[\]\n]{1,500})\]\]\s*(?:\((?P<context>[^()\n]*)\))?"
)
_CLOCK = re.compile(r"\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?:\s+-\s+\d{1,3}:\d{2}.*)?")
_VALIDITY = re.compile(
    r"@(?:valid|effective)?\[(?P<since>[\d-]{10}[\dTZ:.+-]*)?,(?P<until>[\d-]{10}[\dTZ:.+-]*)?\)\s+(?=\S)"
)
_CONTEXT = re.compile(r"\((?P<context>[^()\n]*)\)$")
_HEADING = re.compile(r"#{2,6}\s")
_KINDS: Final = frozenset({"decision", "pattern", "procedure", "fact", "note"})
"""The kinds that the category of an observation can name."""


def statements_of(body: str, base: Draft, title: str) -> tuple[list[Draft], str]:
    """The drafts of the observations and relations of a note, and its text without them.

    `base` has the fields of its front matter. Blank lines replace them, so that the numbers of the other
    lines stay; a heading that has nothing below it any longer is blanked too.
    """
    before, drafts, texts = body.split("\n"), [], prose_in(body)
    lines = before.copy()
    for prose in texts:
        draft = _statement(prose, base, title) if prose.in_item else None
        if draft is not None:
            drafts.append(draft)
            lines[prose.start : prose.end] = [""] * (prose.end - prose.start)
    headings = [each for each in texts if _HEADING.match(before[each.start])]
    ends = [*(each.start for each in headings[1:]), len(lines)]
    for heading, end in zip(headings, ends, strict=bool(headings)):
        if any(map(str.strip, before[heading.end : end])) and not any(
            map(str.strip, lines[heading.end : end])
        ):
            lines[heading.start : heading.end] = [""] * (heading.end - heading.start)
    return drafts, "\n".join(lines)


def _statement(prose: Prose, base: Draft, title: str) -> Draft | None:
    text = prose.text.strip()
    plain_text = without_code(text)
    if match := _RELATION.fullmatch(text) if "[[" in plain_text else None:
        relation = (match["quoted"] or match["single"] or match["word"]).strip()
        target, context = _target(match["target"]), (match["context"] or "").strip()
        content = f"{title} {relation.replace('_', ' ')} {target}" + (f" ({context})" if context else "")
        about = {"relation": relation, "object": target, "context": context, "links": [target]}
        return _fact(base, title, content, "relation", about) if target and relation else None
    match = _OBSERVATION.fullmatch(text)
    category = match["category"].strip() if match else ""
    is_mark = len(category) == 1 and (category in "xX" or not category.isalnum())
    if is_mark or _CLOCK.fullmatch(category) or (not match and not _tag_words(plain_text)):
        return None  # A task, or a line of a transcript.
    since, until, words = _validity(match["text"] if match else text)
    context = found["context"].strip() if (found := _CONTEXT.search(words)) else ""
    draft = _fact(base, title, f"{title}: {words}", category or "observation", {"context": context})
    kind = category.lower() if category.lower() in _KINDS else "fact"
    noted = {**draft.metadata, **({"category": category} if category else {})}
    return replace(draft, kind=kind, metadata=noted, valid_from=since, valid_until=until)


def _tag_words(text: str) -> bool:
    return next(_tags_in(text), None) is not None


def _validity(text: str) -> tuple[datetime | None, datetime | None, str]:
    """The time for which an observation holds, and its text without it; other times stay in the text."""
    if match := _VALIDITY.match(text):
        with suppress(FieldError):
            since, until = (as_moment(match[name], name=name, assume_utc=True) for name in ("since", "until"))
            if since is None or until is None or since < until:
                return since, until, text[match.end() :]
    return None, None, text


def _fact(base: Draft, title: str, content: str, place: str, about: Mapping[str, Any]) -> Draft:
    noted = {name: value for name, value in about.items() if value}
    source = f"{base.source}#{place.lower()}"
    return replace(
        base,
        kind="fact",
        content=content,
        subject=title,
        source=source,
        metadata={**base.metadata, **noted},
    )

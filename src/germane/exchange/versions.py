"""Changelogs: one entry per version.

Level: exchange (imports nothing of the package but this room). Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from germane.exchange.fields import day_in
from germane.exchange.outline import Outline

__all__ = ["Version", "is_changelog_name", "versions"]

_NAMES = frozenset({"changelog", "changes", "history", "news", "releases", "release-notes", "release_notes"})
_VERSION = re.compile(
    r"^(?:(?:version|release|v)\s*)?\[?v?(?P<name>\d+\.\d+[\w.+-]*|unreleased)\b\]?(?P<rest>.*)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version's entry: its heading and all below it. `date` is ISO text, `line` counts from 0."""

    name: str
    date: str | None
    yanked: bool
    text: str
    line: int


def is_changelog_name(stem: str) -> bool:
    """Whether a file of that name (without its suffix) is by custom a changelog."""
    return stem.lower() in _NAMES


def versions(document: Outline) -> tuple[Version, ...]:
    """The entries of a changelog in its order; none where no heading names a version.

    An entry ends at the next version's heading, whatever the level: generated changelogs give major
    versions a higher one. Link definitions, which tools gather at the end, belong to no entry.
    """
    heads = [(heading, match) for heading in document.headings if (match := _VERSION.match(heading.title))]
    ends = [*(heading.line for heading, _ in heads[1:]), len(document.lines)]
    found = []
    for (heading, match), end in zip(heads, ends, strict=bool(heads)):
        kept = [document.lines[line] for line in range(heading.line, end) if line not in document.references]
        found.append(
            Version(
                name=match["name"],
                date=day_in(match["rest"]),
                yanked="yanked" in match["rest"].lower(),
                text="\n".join(kept).strip("\n").rstrip(),
                line=heading.line,
            )
        )
    return tuple(found)

"""Dialogues as people write them: `Name: text` lines.

Level: exchange (imports nothing of the package but this room). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from germane.exchange.turns import Turn

__all__ = ["dialogue_turns", "starts_dialogue"]

_TURN = re.compile(
    r"(?:\[?(?P<stamp>\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\]?"
    r"\s{0,8}[-\u2013]?\s{0,8})?"
    r"(?:\*\*|<)?(?P<name>[^\W\d_][\w.'\u2019()&-]*(?: [\w.'\u2019()&-]+){0,3})(?:\*\*|>)?:"
    r"(?:\*\*)?(?:\s+(?P<text>.*)|$)"
)
_ROLES = frozenset(
    {"user", "assistant", "system", "developer", "tool", "function", "human", "ai", "bot", "agent", "model"}
)
_LABELS = frozenset(
    {"note", "notes", "todo", "warning", "error", "example", "examples", "hint", "tip", "ps", "p.s", "p.s."}
    | {"edit", "update", "re", "fwd", "subject", "date", "from", "to", "cc", "source", "output", "input"}
    | {"result", "results", "answer", "question", "traceback", "http", "https", "file", "e.g", "e.g.", "i.e."}
)
"""Words before a colon that open a remark within a turn and are nobody's name."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


def starts_dialogue(text: str) -> bool:
    """Whether the first line that isn't blank is a turn."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    match = _TURN.fullmatch(first.rstrip())
    return match is not None and match["name"].lower() not in _LABELS


def dialogue_turns(text: str) -> Iterator[Turn]:
    """The turns of a text in which each begins with its speaker, as `user: …` or `Ann Lee: …`.

    A day and time may stand before the name, in brackets or not; without an offset it is UTC. Other
    lines belong to the turn above them. What counts as a speaker is settled by the first turn: if it is
    a role, only roles are; if it has a stamp, only stamped lines begin turns. An indented line, one
    in a code block and a label such as `Note:` never do. What stands before the first turn is left
    out; see `starts_dialogue`.
    """
    speaker, stamp, lines, index = "", None, list[str](), 0
    rule: str | None = None
    fence = ""
    for line in text.split("\n"):
        match = None if fence else _TURN.fullmatch(line.rstrip())
        fence = _fence_after(line, fence)
        if match is None or not _counts(match, rule):
            lines.append(line.rstrip())
            continue
        if rule is None:
            rule = _rule(match)
        elif said := "\n".join(lines).strip():
            yield _turn(speaker, stamp, said, index)
        index += bool(speaker)
        speaker, stamp, lines = match["name"], match["stamp"], [match["text"] or ""]
        fence = _fence_after(lines[0], "")
    if speaker and (said := "\n".join(lines).strip()):
        yield _turn(speaker, stamp, said, index)


def _rule(first: re.Match[str]) -> str:
    if first["stamp"]:
        return "stamped"
    return "roles" if first["name"].lower() in _ROLES else "names"


def _counts(match: re.Match[str], rule: str | None) -> bool:
    name = match["name"].lower()
    if rule == "stamped":
        return match["stamp"] is not None
    if rule == "roles":
        return name in _ROLES
    return name not in _LABELS


def _fence_after(line: str, fence: str) -> str:
    """The mark of the code block that is open after the line; empty when none is."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    mark = match[1]
    if not fence:
        return mark
    closes = mark[0] == fence[0] and len(mark) >= len(fence) and line.strip() == mark
    return "" if closes else fence


def _turn(speaker: str, stamp: str | None, text: str, index: int) -> Turn:
    role = speaker.lower() if speaker.lower() in _ROLES else None
    return Turn(speaker=speaker, role=role, text=text, index=index, at=_moment(stamp))


def _moment(stamp: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(stamp) if stamp else None
    except ValueError:  # The 31st of February has the right form and is no day.
        return None
    if moment is None or moment.tzinfo:
        return moment.astimezone(UTC) if moment else None
    return moment.replace(tzinfo=UTC)

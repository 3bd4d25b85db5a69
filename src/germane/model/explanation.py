"""A trace as a table for people.

Level: model (imports errors only). Pure: the same trace gives the same text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from germane.model.columns import bar, cut, line_of, table, width
from germane.model.query import TimeRange
from germane.model.trace import Emptiness, Entry, Reason, SectionUse, Trace

__all__ = ["ESTIMATED", "explain", "sentence_of", "short_id", "why_of"]

ESTIMATED = "estimated"
"""The code of the note that says that the counts of a trace are estimates."""

_COLUMNS = 110
_BAR = 24
_WHY = 44
"""Columns for the parts of a score: what layered plans need, and enough is left to know a memory by."""
_INCLUDED_PER_SECTION = 12
_EXCLUDED_PER_REASON = 8
_NEARLY = 1e-6
_SHOWN = 0.005
_STANDING = frozenset({"frame", "recency", "outcome", "usage", "confidence", "domain", "core", "useful"})

_REASONS = {
    Reason.OVER_BUDGET: "no level of it fitted what its section had left",
    Reason.STOPPED: "ranked below the first that didn't fit",
    Reason.DUPLICATE: "the same text already stands in the context",
    Reason.LIMIT: "its section holds as many memories as the plan allows",
    Reason.NOT_RELEVANT: "too little to do with the question",
    Reason.SAID: "it stands in the conversation already",
    Reason.ALIKE: "its section shows as many of its subject as the plan allows",
    Reason.EVICTED: "it left the context under pressure",
}
_EMPTINESS = {
    Emptiness.NOTHING_STORED: "this agent has no memories yet.",
    Emptiness.NOTHING_HELD: "the working set holds nothing.",
    Emptiness.FILTERED: "this agent has memories, but none passes the filters.",
    Emptiness.NOTHING_RELEVANT: "no memory that passes the filters has to do with the question.",
    Emptiness.OVER_BUDGET: "some memories have to do with the question, but none fits the budget.",
}


def explain(trace: Trace, *, tokens: int) -> str:
    """The account of one assembly as plain text of at most 110 columns.

    In this order: what was asked and how it was understood; the notes; the budget of each section;
    what is in, at which level and why; what is out, why, and by how many tokens it missed. Long
    lists are cut, and say how much was cut.
    """
    parts = [
        _header(trace, tokens),
        _notes(trace),
        _sections(trace.sections),
        _included(trace),
        _excluded(trace.excluded),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def sentence_of(emptiness: Emptiness) -> str:
    """Why nothing is shown, as a sentence for people."""
    return f"Nothing is shown: {_EMPTINESS[emptiness]}"


def short_id(memory_id: str) -> str:
    """The last eight digits of an id: ids made in the same minute differ only towards their end.

    The version of an `id@n` stays.
    """
    memory, at, version = memory_id.partition("@")
    return f"{memory[-8:]}{at}{version}"


def why_of(parts: Mapping[str, float], score: float | None = None) -> str:
    """The parts of a score, each with its number; one part alone is the score and needs none.

    Where they are not what adds up to `score`, but factors and what these rest on, no sum is written.
    What a memory's standing adds to relevance is one number here, and each by itself in the trace.
    """
    if len(parts) == 1:
        return next(iter(parts))
    adds_up = score is None or math.isclose(math.fsum(parts.values()), score, abs_tol=_NEARLY)
    standing = [name for name in parts if name in _STANDING]
    if adds_up and standing and ("semantic" in parts or "lexical" in parts) and "access" not in parts:
        kept = {name: value for name, value in parts.items() if name not in _STANDING}
        together = math.fsum(parts[name] for name in standing)
        parts = kept if abs(together) < _SHOWN else {**kept, "standing": together}
    return (" + " if adds_up else ", ").join(f"{name} {value:.2f}" for name, value in sorted(parts.items()))


def _header(trace: Trace, tokens: int) -> list[str]:
    share = f" ({tokens / trace.budget:.0%})" if trace.budget else ""
    question = trace.question
    how = "estimated" if any(note.code == ESTIMATED for note in trace.notes) else "counted"
    rows = [
        ("Context", f"{tokens:,} of {trace.budget:,} tokens{share}, {how} by {trace.counter}"),
        ("Plan", f"{trace.plan}, as of {trace.now:%Y-%m-%d %H:%M} UTC"),
        ("Question", line_of(question.text) or "none"),
    ]
    if question.when is not None:
        rows.append(("Time", _range(question.when)))
    if question.terms:
        rows.append(("Looked for", ", ".join(map(line_of, question.terms))))
    return [cut(line, _COLUMNS) for line in table(rows)]


def _range(when: TimeRange) -> str:
    since = f"from {when.start:%Y-%m-%d %H:%M}" if when.start else ""
    until = f"before {when.end:%Y-%m-%d %H:%M}" if when.end else ""
    return f"{' and '.join(filter(None, [since, until])) or 'any'} UTC"


def _notes(trace: Trace) -> list[str]:
    said = [note.text for note in trace.notes]
    if trace.emptiness is not None:
        said.insert(0, sentence_of(trace.emptiness))
    return [line for text in said for line in _wrapped(line_of(text), first="Note  ", rest="      ")]


def _wrapped(text: str, *, first: str, rest: str) -> list[str]:
    """The text in lines of at most the table's width, broken at spaces where there are any."""
    lines, room = [first], _COLUMNS
    for word in text.split(" "):
        shown = cut(word, room - width(rest))
        gap = "" if lines[-1] in (first, rest) else " "
        if width(lines[-1]) + width(gap + shown) > room:
            lines.append(rest)
            gap = ""
        lines[-1] += gap + shown
    return lines


def _sections(sections: Sequence[SectionUse]) -> list[str]:
    if not sections:
        return []
    rows = [("SECTION", "share", "flowed", "used", "in", "out", "")]
    scale = max((max(_given(section), section.used) for section in sections), default=0)
    rows.extend(
        (
            section.name,
            f"{section.share:,}",
            f"{section.flowed:+,}" if section.flowed else "",
            f"{section.used:,}",
            f"{section.included}",
            f"{section.excluded}",
            bar(section.used, _given(section), scale=scale, columns=_BAR),
        )
        for section in sections
    )
    return [cut(line, _COLUMNS) for line in table(rows, right=(1, 2, 3, 4, 5))]


def _given(section: SectionUse) -> int:
    return section.share + section.flowed


def _included(trace: Trace) -> list[str]:
    included = trace.included
    if not included:
        return [
            f"None of {len(trace.entries)} candidates is in."
            if trace.entries
            else "No candidates were found."
        ]
    rows = [("IN", "level", "tokens", "score", "why", "memory")]
    for name in dict.fromkeys(entry.section for entry in included):
        entries = [entry for entry in included if entry.section == name]
        listed = entries[:_INCLUDED_PER_SECTION]
        cells = [row for entry in listed for row in _included_rows(entry)]
        if more := len(entries) - len(listed):
            cells.append(("", "", "", "", f"… and {more} more ({name})"))
        rows.extend(("" if number else name, *shown) for number, shown in enumerate(cells))
    heading = f"{len(included)} of {len(trace.entries)} candidates are in."
    return [heading, *(cut(line, _COLUMNS) for line in table(rows, right=(2, 3)))]


def _included_rows(entry: Entry) -> list[tuple[str, str, str, str, str]]:
    """The row of an entry, and further ones for the parts of its score that would leave its name no room."""
    why, *further = _parts_in_lines(why_of(entry.parts, entry.score) or "always shown")
    first = (
        str(entry.level or ""),
        f"{entry.tokens:,}",
        f"{entry.score:.2f}" if entry.parts else "",
        why,
        _named(entry),
    )
    return [first, *(("", "", "", line, "") for line in further)]


def _parts_in_lines(why: str) -> list[str]:
    """The parts of a score in lines of at most `_WHY` columns, each but the first beginning with its sign."""
    lines = [""]
    for number, part in enumerate(why.split(" + ")):
        said = f"+ {part}" if number else part
        gap = " " if lines[-1] else ""
        if lines[-1] and width(lines[-1]) + width(gap + said) > _WHY:
            lines.append("")
            gap = ""
        lines[-1] += gap + said
    return lines


def _named(entry: Entry) -> str:
    return f"{short_id(entry.memory_id)}  {line_of(entry.label)}".rstrip()


def _excluded(excluded: Sequence[Entry]) -> list[str]:
    if not excluded:
        return []
    lines = [f"{len(excluded)} left out."]
    for reason in Reason:
        entries = [entry for entry in excluded if entry.reason is reason]
        if entries:
            lines.append(f"OUT: {reason} ({len(entries)}), {_REASONS[reason]}")
            lines.extend(_excluded_rows(reason, entries))
    return [cut(line, _COLUMNS) for line in lines]


def _excluded_rows(reason: Reason, entries: Sequence[Entry]) -> Iterable[str]:
    """The candidates that came closest: by score, and by order of the plan where scores are equal."""
    closest = sorted(entries, key=lambda entry: -entry.score)[:_EXCLUDED_PER_REASON]
    rows = [
        (
            entry.section,
            f"short by {entry.short_by:,} tokens" if entry.short_by else "",
            f"{entry.score:.2f}" if entry.parts else "",
            _named(entry),
        )
        for entry in closest
    ]
    more = len(entries) - len(closest)
    if more:
        rows.append(("", "", "", f"… and {more} more ({reason})"))
    return (f"  {line}" for line in table(rows, right=(1, 2)))

"""What an assembly returns: the text, its items, and the account of every candidate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

from germane.model.memory import Level, Memory, Trust
from germane.model.query import Candidate, Filter, Order, TimeRange
from germane.model.text import (
    COLUMNS,
    bar,
    checked_columns,
    counted,
    cut,
    day_in_words,
    line_of,
    table,
    width,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A memory as it stands in a context: at one level, in one section.

    `text` is the rendered, fenced line; `tokens` what that line costs, its line end included.
    """

    memory: Memory
    section: str
    level: Level
    text: str
    tokens: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The result of an assembly. `tokens` is the count of `text` as it stands, headings and all.

    `items` may be written when they are first looked at; they equal a tuple of the same items. `ref` is the
    id of the assembly in the ledger, None for one that wasn't recorded.
    """

    text: str
    tokens: int
    items: Sequence[Item]
    trace: Trace
    ref: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        # The whole of it holds each candidate's texts: far more than anybody reads at a prompt.
        out = len(self.trace.excluded)
        return (
            f"<germane.Context {self.tokens:,} of {self.trace.budget:,} tokens by plan {self.trace.plan!r}, "
            f"{counted(len(self.items), 'memory')} in, {out} left out>"
        )

    def reused_prefix(self, previous: Context | None) -> int:
        """How many tokens of whole items stand at the beginning of the previous context as well.

        A provider's prompt cache can keep at most these and the headings between them.
        """
        if previous is None:
            return 0
        if self.text == previous.text:
            return self.tokens
        pairs = zip(self.text, previous.text, strict=False)
        same, place, tokens = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), 0, 0
        for item in self.items:
            place = self.text.find(item.text, place) + len(item.text)
            if place < len(item.text) or place > same:
                break
            tokens += item.tokens
        return tokens

    def explain(self, *, columns: int = COLUMNS) -> str:
        """A table for people: what is in, at which level and why; what is out, why, and by how much.

        No line is longer than `columns`, 40 or more. Raises InvalidInput for fewer.
        """
        return explain(self.trace, tokens=self.tokens, columns=checked_columns(columns))


# What a refresh says: whether a context still serves, why not, and the one that does.


class RefreshReason(StrEnum):
    """Why a context no longer serves: the closed list, the first that holds."""

    FIRST = "first"  # There was none yet.
    EXPIRED = "expired"  # A memory in it has expired.
    FILTER = "filter"  # It was made by another filter, and may show what this one excludes.
    FRAME = "frame"  # The agent is doing something else now.
    DECISION_POINT = "decision_point"  # The agent is about to act on a decision.
    TOPIC = "topic"  # The message has little to do with the context.
    PRESSURE = "pressure"  # The context exceeds the free tokens.


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """The answer to a refresh; it unpacks as `needed, reason, context`.

    `context` is the new one where one was needed, and otherwise the one that was given. `similarity`,
    from 0 to 1, is how much the message has to do with the given context; None for a message without content.
    """

    needed: bool
    reason: RefreshReason | None
    context: Context
    similarity: float | None = None

    def __iter__(self) -> Iterator[bool | RefreshReason | Context | None]:
        return iter((self.needed, self.reason, self.context))


# The account of an assembly: how the question was understood, and where each candidate went.


class Reason(StrEnum):
    """Why a candidate stands outside the context: the closed list."""

    OVER_BUDGET = "over_budget"  # No level of it fitted what its section had left.
    STOPPED = "stopped"  # Ranked below the first that didn't fit, in a section that stops there.
    DUPLICATE = "duplicate"  # The same text already stands in the context.
    LIMIT = "limit"  # The section already holds as many items as its plan allows.
    NOT_RELEVANT = "not_relevant"  # It has too little to do with the question to take part.
    IN_CONVERSATION = "said"  # It stands in the running conversation already.
    ALIKE = "alike"  # The section shows as many of its subject as the plan allows.
    EVICTED = "evicted"  # It stood in the context, and left it under pressure for something else.
    OUTDATED = "outdated"  # A message of a fact that was superseded since.


class EmptyReason(StrEnum):
    """Why a context or a recall holds nothing."""

    NOTHING_STORED = "nothing_stored"  # The agent has no memory at all.
    EMPTY_WORKING_SET = "nothing_held"  # The working set is empty.
    FILTERED = "filtered"  # It has, but none passes the filter.
    NOTHING_RELEVANT = "nothing_relevant"  # Some pass, but none has to do with the question.
    OVER_BUDGET = "over_budget"  # Some are relevant, but none fits.


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How the caller's words were understood.

    `cleaned` is the text without the time expression that became `when`; `terms` are those
    searched in the index. With no terms left the question is empty, and recency ranks instead.
    `order` is that of time where the question asks for the first of something, or for the last.
    """

    text: str = ""
    cleaned: str = ""
    terms: tuple[str, ...] = ()
    when: TimeRange | None = None
    order: Order | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """What several ranked lists say of one of their members: one score, and what each list adds to it.

    `sources` names the lists that it stands in; their numbers add up to `score`.
    """

    score: float
    sources: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A memory with its score and the named parts of the score. Higher is better.

    `candidate` has the raw signals that the score was made from. `fused` is what a ranker that fuses several
    lists made of the places that it has in them.
    """

    candidate: Candidate
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    fused: Fused | None = None

    @property
    def memory(self) -> Memory:
        """The memory that was ranked."""
        return self.candidate.memory

    @property
    def id(self) -> str:
        """The id of the memory."""
        return self.memory.id

    @property
    def kind(self) -> str:
        """The kind of the memory."""
        return self.memory.kind

    @property
    def content(self) -> str:
        """The text of the memory."""
        return self.memory.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One candidate's place in the trace: included at a level, or excluded for one reason.

    `tokens` is the cost of the level shown, or of the smallest level tried; `short_by` how many
    tokens were missing for that smallest level, where the budget was the reason. `label` is the
    beginning of the memory's shortest rendition, for people. `agent` is whose memory it is: the
    caller's, or a space. `memory_id` is the memory's id, and `id@n` for a version that isn't the current
    one; `version` is the number of the version. `scope`, `created_at`, `source` and `trust` are those of the
    memory.
    """

    memory_id: str
    kind: str
    section: str
    score: float
    parts: Mapping[str, float]
    level: Level | None = None
    reason: Reason | None = None
    tokens: int = 0
    short_by: int = 0
    label: str = ""
    agent: str = ""
    version: int = 1
    scope: str = ""
    created_at: datetime | None = None
    source: str | None = None
    trust: Trust | None = None

    @property
    def included(self) -> bool:
        """Whether the candidate stands in the context."""
        return self.reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionUsage:
    """What a section was given and what it used, in tokens; `flowed` came from other sections."""

    name: str
    heading: str
    share: int
    used: int
    flowed: int
    included: int
    excluded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNote:
    """Something that a reader of the trace should know: a fall-back, a degraded part, a margin."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The whole account of one assembly: every candidate gathered stands in `entries` once.

    `entries` may be written when they are first looked at; they equal a tuple of the same entries.
    `weights` are those that the parts of the scores were multiplied by, where use has taught some. `frame`
    is the name of the frame that the plan was built for, if it was for one, and `frame_confidence` how
    surely it was chosen, from 0 to 1. `where` is the filter that the caller gave.
    """

    plan: str
    question: Question
    budget: int
    counter: str
    now: datetime
    entries: Sequence[Entry]
    sections: tuple[SectionUsage, ...]
    notes: tuple[TraceNote, ...] = ()
    empty_reason: EmptyReason | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    frame: str | None = None
    frame_confidence: float | None = None
    where: Filter = field(default_factory=Filter)

    def __repr__(self) -> str:
        shown = len(self.included)
        return f"<germane.Trace of plan {self.plan!r}, {shown} of {len(self.entries)} candidates are in>"

    @property
    def included(self) -> tuple[Entry, ...]:
        """The entries that stand in the context, in rank order."""
        return tuple(entry for entry in self.entries if entry.included)

    @property
    def excluded(self) -> tuple[Entry, ...]:
        """The entries that were left out, each with its reason."""
        return tuple(entry for entry in self.entries if not entry.included)


# A trace as a table for people.
#
# Pure: the same trace gives the same text.

ESTIMATED = "estimated"
"""The code of the note that says that the counts of a trace are estimates."""

_BAR = 24
_NORMAL = 80
"""Columns from which on a memory that is left out stands beside its figures."""
_NAME = 42
"""Columns that a long memory needs beside its figures; with fewer it is in a line of its own."""
_WHY = 44
"""Columns for the parts of a score: what layered plans need, and enough is left to know a memory by."""
_INCLUDED_PER_SECTION = 12
_LONGEST_SOURCE = 80
_EXCLUDED_PER_REASON = 8
_NEARLY = 1e-6
_SHOWN = 0.005
_STATE_PARTS = frozenset({"frame", "recency", "outcome", "usage", "confidence", "domain", "core", "useful"})

_REASONS = {
    Reason.OVER_BUDGET: "no level of it fitted what its section had left",
    Reason.STOPPED: "ranked below the first that didn't fit",
    Reason.DUPLICATE: "the same text already stands in the context",
    Reason.LIMIT: "its section holds as many memories as the plan allows",
    Reason.NOT_RELEVANT: "too little to do with the question",
    Reason.IN_CONVERSATION: "it stands in the conversation already",
    Reason.ALIKE: "its section shows as many of its subject as the plan allows",
    Reason.EVICTED: "it left the context under pressure",
    Reason.OUTDATED: "the fact that it states was superseded since",
}
_EMPTY_REASONS = {
    EmptyReason.NOTHING_STORED: "this agent has no memories yet.",
    EmptyReason.EMPTY_WORKING_SET: "the working set holds nothing.",
    EmptyReason.FILTERED: "this agent has memories, but none passes the filters.",
    EmptyReason.NOTHING_RELEVANT: "no memory that passes the filters has to do with the question.",
    EmptyReason.OVER_BUDGET: "some memories have to do with the question, but none fits the budget.",
}


def explain(trace: Trace, *, tokens: int, columns: int = COLUMNS) -> str:
    """The account of one assembly as plain text of at most so many columns.

    In this order: the question and how it was understood; the notes; the budget of each section;
    what is in, at which level and why; where it comes from; what is out, why, and by how many tokens it
    missed. Long lists are cut, and say how much was cut.
    """
    parts = [
        _header(trace, tokens),
        _notes(trace, columns),
        _sections(trace.sections, columns),
        _included(trace, columns),
        _origins(trace),
        _excluded(trace.excluded, columns),
    ]
    return "\n\n".join("\n".join(cut(line, columns) for line in part) for part in parts if part) + "\n"


def sentence_of(empty_reason: EmptyReason) -> str:
    """Why nothing is shown, as a sentence for people."""
    return f"Nothing is shown: {_EMPTY_REASONS[empty_reason]}"


def short_id(memory_id: str) -> str:
    """The last eight digits of an id: ids made in the same minute differ only towards their end.

    The version of an `id@n` stays.
    """
    memory, at, version = memory_id.partition("@")
    return f"{memory[-8:]}{at}{version}"


def origin_of(trust: Trust | None, source: str | None, at: datetime | None) -> str:
    """Whose word a memory is, its source, and when it was made, in a few words for people."""
    named = cut(line_of(source or ""), _LONGEST_SOURCE)
    return ", ".join(filter(None, (trust, named, "" if at is None else day_in_words(at))))


def why_of(parts: Mapping[str, float], score: float | None = None) -> str:
    """The parts of a score, each with its number; one part alone is the score and needs none.

    Where they are not what adds up to `score`, but factors and what these rest on, no sum is written.
    What a memory's state adds to relevance is one number here; the trace has each part.
    """
    if len(parts) == 1:
        return next(iter(parts))
    adds_up = score is None or math.isclose(math.fsum(parts.values()), score, abs_tol=_NEARLY)
    states = [name for name in parts if name in _STATE_PARTS]
    if adds_up and states and ("semantic" in parts or "lexical" in parts) and "access" not in parts:
        others = {name: value for name, value in parts.items() if name not in _STATE_PARTS}
        together = math.fsum(parts[name] for name in states)
        parts = others if abs(together) < _SHOWN else {**others, "state": together}
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
    return table(rows)


def _range(when: TimeRange) -> str:
    since = f"from {when.start:%Y-%m-%d %H:%M}" if when.start else ""
    until = f"before {when.end:%Y-%m-%d %H:%M}" if when.end else ""
    return f"{' and '.join(filter(None, [since, until])) or 'any'} UTC"


def _notes(trace: Trace, columns: int) -> list[str]:
    texts = [note.text for note in trace.notes]
    if trace.empty_reason is not None:
        texts.insert(0, sentence_of(trace.empty_reason))
    return [
        line for text in texts for line in _wrapped(line_of(text), columns, first="Note  ", rest="      ")
    ]


def _wrapped(text: str, columns: int, *, first: str, rest: str) -> list[str]:
    """The text in lines of at most so many columns, broken at spaces where there are any."""
    lines = [first]
    for word in text.split(" "):
        shown = cut(word, columns - width(rest))
        gap = "" if lines[-1] in (first, rest) else " "
        if width(lines[-1]) + width(gap + shown) > columns:
            lines.append(rest)
            gap = ""
        lines[-1] += gap + shown
    return lines


def _sections(sections: Sequence[SectionUsage], columns: int) -> list[str]:
    if not sections:
        return []
    rows = [("SECTION", "share", "flowed", "used", "in", "out")]
    scale = max((max(_given(section), section.used) for section in sections), default=0)
    rows.extend(
        (
            section.name,
            f"{section.share:,}",
            f"{section.flowed:+,}" if section.flowed else "",
            f"{section.used:,}",
            f"{section.included}",
            f"{section.excluded}",
        )
        for section in sections
    )
    heading, *lines = table(rows, right=(1, 2, 3, 4, 5))
    free = max(0, min(_BAR, columns - width(heading) - len("  ")))
    bars = [bar(each.used, _given(each), scale=scale, columns=free) for each in sections]
    return [heading, *(f"{line}  {drawn}".rstrip() for line, drawn in zip(lines, bars, strict=True))]


def _given(section: SectionUsage) -> int:
    return section.share + section.flowed


def _included(trace: Trace, columns: int) -> list[str]:
    included = trace.included
    if not included:
        return [
            f"None of {len(trace.entries)} candidates is in."
            if trace.entries
            else "No candidates were found."
        ]
    rows = [_Row(("IN", "level", "tokens", "score"), "memory", ("why",))]
    for name in dict.fromkeys(entry.section for entry in included):
        entries = [entry for entry in included if entry.section == name]
        rows += [_included_row(each, name) for each in entries[:_INCLUDED_PER_SECTION]]
        if (more := len(entries) - _INCLUDED_PER_SECTION) > 0:
            rows.append(_Row((name, "", "", ""), f"… and {more} more ({name})", ("",)))
    heading = f"{len(included)} of {len(trace.entries)} candidates are in."
    beside, longest = _beside(rows), max(width(row.name) for row in rows)
    needed = max(map(width, beside)) - longest + min(longest, _NAME)
    return [heading, *(beside if needed <= columns else _below(rows))]


class _Row(NamedTuple):
    """A memory of a list: its section and figures, its name, and the parts of its score in lines."""

    figures: tuple[str, str, str, str]
    name: str
    why: Sequence[str]


def _beside(rows: Sequence[_Row]) -> list[str]:
    """The rows as a table: a section is named once, and further parts of a score have lines of their own."""
    cells: list[tuple[str, ...]] = []
    section = ""
    for (name, *figures), memory, (why, *further) in rows:
        cells.append(("" if name == section else name, *figures, why, memory))
        cells += [("", "", "", "", line, "") for line in further]
        section = name
    return table(cells, right=(2, 3))


def _below(rows: Sequence[_Row]) -> list[str]:
    """The rows as a table of the figures, each memory and the parts of its score in lines below them."""
    figures = table([row.figures for row in rows], right=(2, 3))
    lines = figures[:1]
    for line, row in zip(figures[1:], rows[1:], strict=True):
        lines += [line] if row.figures[1] else []
        lines += [f"  {text}" for text in (row.name, *row.why) if text]
    return lines


def _origins(trace: Trace) -> list[str]:
    """Where the included memories come from, except those that the agent itself remembered."""
    listed = [each for each in trace.included if each.source or each.trust not in (None, Trust.AGENT)]
    rows = [
        (short_id(each.memory_id), origin_of(each.trust, each.source, each.created_at))
        for each in listed[:_INCLUDED_PER_SECTION]
    ]
    if more := len(listed) - len(rows):
        rows.append(("", f"… and {more} more"))
    heading = ["Where they come from:"] if rows else []
    return [*heading, *(f"  {line}" for line in table(rows))]


def _included_row(entry: Entry, section: str) -> _Row:
    score = f"{entry.score:.2f}" if entry.parts else ""
    why = _parts_in_lines(why_of(entry.parts, entry.score) or "always shown")
    return _Row((section, str(entry.level or ""), f"{entry.tokens:,}", score), _named(entry), why)


def _parts_in_lines(why: str) -> list[str]:
    """The parts of a score in lines of at most `_WHY` columns, each but the first beginning with its sign."""
    lines = [""]
    for number, part in enumerate(why.split(" + ")):
        term = f"+ {part}" if number else part
        gap = " " if lines[-1] else ""
        if lines[-1] and width(lines[-1]) + width(gap + term) > _WHY:
            lines.append("")
            gap = ""
        lines[-1] += gap + term
    return lines


def _named(entry: Entry) -> str:
    return f"{short_id(entry.memory_id)}  {line_of(entry.label)}".rstrip()


def _excluded(excluded: Sequence[Entry], columns: int) -> list[str]:
    if not excluded:
        return []
    lines = [f"{len(excluded)} left out."]
    for reason in Reason:
        entries = [entry for entry in excluded if entry.reason is reason]
        if entries:
            lines.append(f"OUT: {reason} ({len(entries)}), {_REASONS[reason]}")
            lines.extend(_excluded_rows(reason, entries, columns))
    return lines


def _excluded_rows(reason: Reason, entries: Sequence[Entry], columns: int) -> list[str]:
    """The candidates that came closest: by score, and by order of the plan where scores are equal."""
    closest = sorted(entries, key=lambda entry: -entry.score)[:_EXCLUDED_PER_REASON]
    rows = [
        (
            entry.section,
            f"short by {counted(entry.short_by, 'token')}" if entry.short_by else "",
            f"{entry.score:.2f}" if entry.parts else "",
        )
        for entry in closest
    ]
    names = [_named(entry) for entry in closest]
    if more := len(entries) - len(closest):
        rows.append(("", "", ""))
        names.append(f"… and {more} more ({reason})")
    if columns >= _NORMAL:
        beside = [(*row, name) for row, name in zip(rows, names, strict=True)]
        return [f"  {line}" for line in table(beside, right=(1, 2))]
    figures = table(rows, right=(1, 2))
    pairs = zip(figures, names, strict=True)
    return [line for first, name in pairs for line in (f"  {first}", f"    {name}") if line.strip()]

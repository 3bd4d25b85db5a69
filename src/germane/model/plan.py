"""Plans and frames as data: which sections a context has, their shares, and what an agent is doing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import Literal, TypeAlias

from germane.errors import InvalidInput, InvalidPlan
from germane.model.memory import Level, Memory, Status, Trust
from germane.model.query import Filter, Order
from germane.model.validation import checked_fields, checked_flag

Fusion: TypeAlias = Literal["floored", "rrf", "weighted_sum", "weighted_sum_v1"]
"""The ways in which the signals of relevance become one score."""

Repeats: TypeAlias = Literal["never", "across", "always"]
"""Where a text that stands in a context may stand again: nowhere, in another section, or anywhere."""

Alike: TypeAlias = Literal["subject", "category", "tag", "kind", "source"]
"""What makes two memories of a section alike: subject, category (of their metadata), first tag, kind, or the
page or file of their source.
"""


class Overflow(StrEnum):
    """What happens when the next item doesn't fit its section."""

    STOP = "stop"  # The section ends there.
    SKIP = "skip"  # It is left out and the next is tried.
    DEGRADE = "degrade"  # It is shown at the largest shorter level that fits, else skipped.
    DEGRADE_STOP = "degrade_stop"  # It is shown at such a level; where none fits, the section ends there.

    @property
    def degrades(self) -> bool:
        """Whether shorter levels are tried."""
        return self in _DEGRADING

    @property
    def stops(self) -> bool:
        """Whether a section ends at the first that doesn't fit."""
        return self in _STOPPING


_DEGRADING = frozenset({Overflow.DEGRADE, Overflow.DEGRADE_STOP})
_STOPPING = frozenset({Overflow.STOP, Overflow.DEGRADE_STOP})


class RollOver(StrEnum):
    """Where the tokens go that a section leaves unused."""

    NONE = "none"  # They stay unused.
    NEXT = "next"  # To the next section in the plan's order.
    PRIORITY = "priority"  # To every section that wants more, by priority.
    BEST = "best"  # To the best candidates that are left, whatever their section; see `packing.fit`.


class Style(StrEnum):
    """How the memories of a section are written."""

    BULLETS = "bullets"  # Each begins a list item, under the section's heading.
    PARAGRAPHS = "paragraphs"  # Separated by blank lines, with none inside, so that none can pose as two.
    RAW = "raw"  # Separated by blank lines and as they are: the text of a memory can pose as anything.


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Share:
    """A section's part of the total.

    `weight` is relative to the other sections' weights; `floor` tokens are set aside before
    weights are applied, `ceiling` caps what the section may use, roll-over included.
    """

    weight: int
    floor: int = 0
    ceiling: int | None = None

    def __post_init__(self) -> None:
        if self.weight < 0 or self.floor < 0 or (self.ceiling is not None and self.ceiling < self.floor):
            raise InvalidPlan(
                f"A share of weight {self.weight}, floor {self.floor} and ceiling {self.ceiling} can't be "
                "given: weight and floor are 0 or more, and a ceiling is at least the floor."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(items=(0, inf), priority=(0, inf), limit=(1, inf), each=(1, inf))
class Section:
    """A named part of the output.

    `heading` is the line written above it; sections that follow each other under one heading share it.
    `kinds` are shown here, of what `where` admits; without kinds, all that it admits. A memory that several
    sections would show stands in the first of them.

    With `order` set, the section is always attempted and its memories come in that order, whatever the
    question; without, they are the most relevant. A `bounded` one shows beyond its share only what has to do
    with the question, where the plan's tokens flow to the best. One of `leftover` is filled last, with what
    all other sections leave, and takes part in nothing else. `required` sections must be shown or the
    assembly fails, as must memories of `required_kinds`; a kind can require single memories too (a constraint
    that blocks), and these at full length.

    `limit` bounds how many candidates are gathered and `items` how many are shown; `priority` says who gets
    left-over tokens first (higher first). `levels` are the lengths that may be shown, in the order in which
    they are tried. Of the memories that are `alike` at most `each` are shown, the best ones; those that lack
    what makes them alike are like none. One that `associates` takes in, where it would be empty, what is near
    to what the other sections show. With `of_domain` memories that name another domain than the frame's in
    their metadata are not gathered.

    `text` is shown as it is (the frame's). One that `advises` says in one sentence how far the agent's
    confidence is to be trusted, as its text. With `own_heading` each item stands under a heading of its own,
    made from `heading` by filling `{title}`. With `by_session` the memories of a session stand together, in
    the order of their times, under its date; those of no session come before them. `style` says how memories
    are written; only bullets stand under headings, and only a working set is written otherwise, in one
    section. With `reverse` the best stands last in such a list; which memories stand there is the same. With
    `dates`, `sources` and `ids` each item ends with the day it was created, a short name of its source and a
    short id that `Engine.expand` takes; under the date of a session there is neither day nor source.

    `trust` is the least trust of the memories of `trust_kinds`, and of those about the user, that the section
    takes; without `trust_kinds`, of all memories. A `quoted` one takes what the others refuse by that rule,
    and writes each text as a quotation with its origin.
    """

    name: str
    heading: str
    kinds: tuple[str, ...] = ()
    share: Share
    order: Order | None = None
    required: bool = False
    required_kinds: tuple[str, ...] = ()
    limit: int = 100
    priority: float = 0.5
    levels: tuple[Level, ...] = (Level.SUMMARY, Level.MICRO)
    overflow: Overflow = Overflow.DEGRADE
    items: int | None = None
    own_heading: bool = False
    by_session: bool = False
    text: str = ""
    leftover: bool = False
    style: Style = Style.BULLETS
    reverse: bool = False
    alike: Alike | None = None
    each: int = 2
    associates: bool = False
    of_domain: bool = False
    advises: bool = False
    bounded: bool = False
    dates: bool = False
    sources: bool = False
    ids: bool = False
    where: Filter | None = None
    trust: Trust = Trust.EXTERNAL
    trust_kinds: tuple[str, ...] = ()
    quoted: bool = False
    admits: Filter | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Made once, since every search needs it.
        rule = (self.trust, self.trust_kinds, self.quoted)
        object.__setattr__(self, "admits", _admits(self.where, *rule, ordered=self.order is not None))
        headed = self.heading or self.text or self.own_heading or self.by_session
        if self.reverse and self.style is Style.BULLETS:
            raise InvalidPlan(
                f"Section {self.name!r} can't be reversed: only a list of paragraphs can, without headings."
            )
        if self.style is not Style.BULLETS and headed:
            raise InvalidPlan(
                f"Section {self.name!r} is written as {self.style}, which stand under no heading and beside "
                "no text. Leave these out, or write bullets."
            )

    @property
    def gathers(self) -> bool:
        """Whether the section shows memories at all: of its kinds, or those that its own filter admits."""
        return bool(self.kinds) or self.where is not None or self.quoted

    def takes(self, memory: Memory) -> bool:
        """Whether the section's rule of trust admits a memory."""
        trusted = _TRUSTS.index(memory.trust) <= _TRUSTS.index(self.trust)
        bound = not self.trust_kinds or memory.kind in self.trust_kinds or memory.subject == _USER
        return (trusted or not bound) is not self.quoted


_TRUSTS = tuple(Trust)
_USER = "user"


@lru_cache(maxsize=64)
def _admits(
    where: Filter | None, trust: Trust, kinds: tuple[str, ...], quoted: bool, *, ordered: bool
) -> Filter | None:
    """A section's own filter together with its rule of trust; None where it has neither.

    Sections of one rule share it, so that a search finds its mask once.
    """
    if trust is Trust.EXTERNAL:
        return where
    from germane.model.conditions import Comparison, Condition, Not, Or  # noqa: PLC0415 - Few filters have one.

    rule: Condition = Comparison("trust", "in", tuple(map(str, _TRUSTS[: _TRUSTS.index(trust) + 1])))
    if kinds:
        rule = Or((rule, Not(Or((Comparison("kind", "in", kinds), Comparison("subject", "=", _USER))))))
    rule = Not(rule) if quoted else rule
    if where is None:
        # By relevance the search's own filter says which statuses are found.
        return Filter(where=rule, statuses=(Status.ACTIVE,) if ordered else ())
    return replace(where, where=rule & where.where if isinstance(where.where, Condition) else rule)


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Plan:
    """A named list of sections in the order of the output, and how tokens flow between them.

    `fusion` says how the signals of relevance become one score: on an absolute scale ("floored"), by
    reciprocal ranks ("rrf"), or by the sum of the note on context management ("weighted_sum_v1", and
    "weighted_sum" with every signal from 0 to 1). With `boosts`, how old, how proven, how often used and how
    sure a memory is and the priority of its section multiply into the first of these. `spare` is the weight
    of what no section has a claim to, which flows as left-over tokens do. `without` names parts that are left
    out of every score ("window", "speaker"), which shows what they are worth; what is gathered stays the
    same, and a name that no score has a part of leaves nothing out. With `gate` set, what has nothing to do
    with the question stays out of the sections that relevance fills, however many tokens are free.

    With `kinds_first` memories are ranked by kind before all else, nothing is left out for having little to
    do with the question, and each section gathers by its own filter, its `where`; what two sections
    would show stands in the first. `backfill` gives what all sections leave to what was left out, then
    to longer levels, in that order across sections. With `counts_content` a memory costs what its
    content counts, and nothing else counts: the text as it stands may then be longer than the budget.

    With `counts_renditions` a section's memories cost what their renditions count, without bullets and
    headings; the whole text keeps within the budget all the same. With `by_meaning` a question searches by
    its vector alone if it has one, so that a section gathers exactly as many as its limit says.
    `repeats` says whether two memories of one text may both stand in the context.
    """

    name: str
    sections: tuple[Section, ...]
    roll_over: RollOver = RollOver.PRIORITY
    fusion: Fusion = "floored"
    without: tuple[str, ...] = ()
    gate: bool = False
    boosts: bool = False
    spare: int = 0
    kinds_first: KindPriority | None = None
    backfill: bool = False
    counts_content: bool = False
    counts_renditions: bool = False
    by_meaning: bool = False
    repeats: Repeats = "never"

    def __post_init__(self) -> None:
        names = [section.name for section in self.sections]
        if not names or len(set(names)) != len(names):
            raise InvalidPlan(f"Plan {self.name!r} needs sections of different names; it has {names}.")
        for section in self.sections:
            if not section.levels or section.limit < 1 or section.each < 1:
                raise InvalidPlan(
                    f"Section {section.name!r} of plan {self.name!r} needs at least one level, a limit and a "
                    f"count of alike ones of 1 or more; it has levels {section.levels}, limit "
                    f"{section.limit} and each {section.each}."
                )
            if Level.EXCERPT in section.levels:
                raise InvalidPlan(
                    f"Section {section.name!r} of plan {self.name!r} can't have level {Level.EXCERPT}: only "
                    "packing makes an excerpt, of a full text that doesn't fit. Choose from full, summary "
                    "and micro."
                )
        if self.counts_content and self.counts_renditions:
            raise InvalidPlan(f"Plan {self.name!r} counts contents and renditions. Let it count one of them.")
        if self.spare < 0:
            raise InvalidPlan(f"Plan {self.name!r} spares {self.spare}. A weight is 0 or more.")

    def showing(self, *, dates: bool = True, sources: bool = True, ids: bool = False) -> Plan:
        """The plan with the days and sources of its items left out, or with their ids shown."""
        if dates and sources and not ids:
            return self
        for name, flag in (("dates", dates), ("sources", sources), ("ids", ids)):
            checked_flag(flag, name=name)
        return replace(self, sections=_showing(self.sections, dates=dates, sources=sources, ids=ids))

    @property
    def shares(self) -> Sequence[Share]:
        """The sections' shares, in order."""
        return [section.share for section in self.sections]


@lru_cache(maxsize=64)
def _showing(sections: tuple[Section, ...], *, dates: bool, sources: bool, ids: bool) -> tuple[Section, ...]:
    """The sections, which show only what is chosen; cached, since most questions have one plan."""
    return tuple(
        replace(
            section,
            dates=section.dates and dates,
            sources=section.sources and sources,
            ids=section.ids or (ids and section.style is Style.BULLETS),
        )
        for section in sections
    )


# What an agent is doing: frames, and how one was chosen.

AUTO = "auto"
"""As the name of a frame: choose the frame by the text."""

DEFAULT_SHARES = (("decisions", 2000), ("facts", 1500), ("procedures", 1500), ("episodes", 1000))
"""Tokens for each section that relevance fills, of a total of 8,000 (note on context management)."""

_DEFAULT_BUDGET = 8000
_NAME = re.compile(r"\w[\w -]{0,39}")
_ALTERNATIVE = re.compile(r"\?|\^?[\w'-]+\*?(?: [\w'-]+\*?)*")

Chooser: TypeAlias = Literal["words", "model", "caller"]
"""Who chose a frame: the patterns of the frames, the model that selects frames, or the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Frame:
    """What the agent is doing now: shown in the frame section, and what the layered plan is built by.

    `priorities` say, from 0 to 1 by section, who gets left-over tokens first; 0.5 unless named. `budget`
    is the total in tokens if the caller gives none, and `shares` are the tokens of the sections that
    relevance fills; they shrink in proportion where the total can't hold them beside what is always
    there. Memories whose metadata name a `domain` of the frame's count a little more.

    `patterns` select the frame by the text. Each is a list of phrases separated by "|", and counts once
    if any of them stands there: whole words, case aside; "fail*" is any word that begins so, "^fix" one
    that begins a sentence or a part of one, "?" a question mark. Of frames with as many patterns the one
    of the greater `precedence` is chosen. `learned_tags` note the tags of the work from which a frame was
    learned; they choose nothing. Raises InvalidInput for a name, pattern or priority that can't be one, and
    InvalidPlan for a budget below 1 or a share below 0.
    """

    name: str
    description: str
    questions: tuple[str, ...] = ()
    priorities: tuple[tuple[str, float], ...] = ()
    patterns: tuple[str, ...] = ()
    precedence: int = 0
    domain: tuple[str, ...] = ()
    budget: int = _DEFAULT_BUDGET
    shares: tuple[tuple[str, int], ...] = DEFAULT_SHARES
    learned_tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == AUTO:
            raise InvalidInput(
                f"Frame name {self.name!r} can't be used: take up to 40 letters, digits, spaces, '-' and "
                f"'_', such as 'review', and not {AUTO!r}, which asks for a choice."
            )
        wrong = [
            each
            for pattern in self.patterns
            for each in pattern.split("|")
            if not _ALTERNATIVE.fullmatch(each)
        ]
        if wrong:
            raise InvalidInput(
                f"Frame {self.name!r} has the pattern {wrong[0]!r}, which says nothing: separate phrases "
                "by '|', such as 'error*|stack trace|^fix'."
            )
        _check_doubled(self.name, (name for name, _ in self.priorities))
        _check_doubled(self.name, (name for name, _ in self.shares))
        for section, priority in self.priorities:
            if not 0 <= priority <= 1:
                raise InvalidInput(
                    f"Frame {self.name!r} gives {section!r} the priority {priority}. "
                    "Take a number from 0 to 1."
                )
        for section, tokens in (("the total", self.budget - 1), *self.shares):
            if tokens < 0:
                raise InvalidPlan(
                    f"Frame {self.name!r} has too few tokens for {section}. A budget is 1 or more, a share 0 "
                    "or more."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameChoice:
    """A frame, who chose it, and how surely, from 0 to 1.

    By words, `confidence` is the part of all patterns found, of all frames, that are this frame's: 1 where
    nothing speaks for another, 0 where nothing speaks for any and the most general one stands in.
    """

    frame: Frame
    confidence: float = 1.0
    by: Chooser = "caller"


def _check_doubled(frame: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"Frame {frame!r} names section {name!r} twice. Name each once.")
        seen.add(name)


# What an agent works on, as far as it says what it should know.


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class KindPriority:
    """How memories are ranked where their kind comes before all else.

    `priorities` are those of the kinds, 1 before 2, and `others` that of any other kind. Within a
    kind come those nearest to the paths of the work, then with `relevance` those that have most to do
    with it, then those updated last. With `stale_after` set, what wasn't updated for so long ranks lower.
    With `obsolete_last`, what is superseded, rejected or deprecated comes after all others of its kind.
    """

    priorities: Mapping[str, int]
    others: int
    relevance: bool = True
    stale_after: timedelta | None = None
    obsolete_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInput:
    """What a caller says of the work at hand: a task by its id or in words, the paths, what changed there."""

    task: str | None = None
    paths: Sequence[str] = ()
    changed: Mapping[str, datetime] | None = None

    def __bool__(self) -> bool:
        return self.task is not None or bool(self.paths) or bool(self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(leanings=(-1, 1))
class TaskContext:
    """The paths that are worked on, what is known of changes, and how work turned out.

    `paths` are from the project's root. `changed` says when a file was changed last. `leanings` are those of
    memories by their ids, from -1, work failed with them, to 1, it succeeded.
    """

    paths: tuple[str, ...] = ()
    changed: Mapping[str, datetime] = field(default_factory=dict)
    leanings: Mapping[str, float] = field(default_factory=dict)

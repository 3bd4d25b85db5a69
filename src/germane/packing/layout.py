"""The text as it stands at last: blocks in order, one list for working sets, and the account of both."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from operator import itemgetter
from typing import Any

from germane.errors import BudgetTooSmall, InvalidPlan
from germane.model.context import (
    Context,
    EmptyReason,
    Entry,
    Item,
    Question,
    Ranked,
    Reason,
    SectionUsage,
    Trace,
    TraceNote,
)
from germane.model.memory import Level, Memory
from germane.model.plan import Plan, Section, Style
from germane.model.query import Deferred
from germane.packing.lines import RenderedLine
from germane.packing.render import fence, session_of
from germane.packing.sections import Choice, ExcludedCandidates, Fitted, SectionBlock
from germane.protocols import TokenCounter
from germane.tokens import spendable

__all__ = [
    "BETWEEN",
    "Paragraph",
    "Paragraphs",
    "assemble_list",
    "blocks_of",
    "entries_of",
    "items_of",
    "label_of",
    "lines_of",
    "uses_of",
]


def blocks_of(
    fitted: Fitted, heading_text: Callable[[Section, Memory], str]
) -> list[tuple[str, Sequence[str]]]:
    """The headings and lines of the text, in the plan's order, for `render`.

    `heading_text` gives the heading of a memory: its own, or its session's.
    """
    written: list[tuple[str, Sequence[str]]] = []
    for block in fitted.blocks:
        section = block.section
        if section.own_heading:
            written.extend(
                (heading_text(section, choice.memory), [_text(choice)]) for choice in _shown(block)
            )
        elif block.open:
            lines = [section.text] if block.shows_text else []
            shown = _shown(block)
            lines += _under_dates(section, shown, heading_text) if section.by_session else map(_text, shown)
            if written and section.heading and written[-1][0] == section.heading:
                written[-1] = section.heading, [*written[-1][1], *lines]
            else:
                written.append((section.heading, lines))
    return written


def items_of(fitted: Fitted) -> Sequence[Item]:
    """What stands in the text, in its order; each is written when it is looked at."""
    shown = [
        (block.section.name, choice, choice.line)
        for block in fitted.blocks
        for choice in _shown(block)
        if choice.line is not None
    ]

    def item(place: int) -> Item:
        section, choice, line = shown[place]
        return Item(
            memory=choice.memory,
            section=section,
            level=line.level,
            text=line.text,
            tokens=line.tokens,
            score=choice.score,
        )

    return Deferred(len(shown), item)


def lines_of(fitted: Fitted) -> list[RenderedLine]:
    """The lines of the text, in no order."""
    return [choice.line for block in fitted.blocks for choice in block.choices if choice.line is not None]


def _under_dates(
    section: Section, shown: Sequence[Choice], heading_text: Callable[[Section, Memory], str]
) -> Iterator[str]:
    """The lines of a section, each session's under its date."""
    session = None
    for choice in shown:
        its = session_of(section, choice.memory)
        if its is not None and its != session:
            yield heading_text(section, choice.memory)
        session = its
        yield _text(choice)


def _shown(block: SectionBlock) -> list[Choice]:
    """What stands in a section, in the order of the text.

    That is rank order; by session it is first what belongs to none, then session after session,
    the one with the best memory first, each in the order of its times.
    """
    shown = [choice for choice in block.choices if choice.line is not None]
    if not block.section.by_session:
        return shown
    sessions = [session_of(block.section, choice.memory) for choice in shown]
    places = {session: place for place, session in reversed(list(enumerate(sessions)))}

    def place_of(choice: Choice) -> tuple[int, datetime, str]:
        memory = choice.memory
        session = session_of(block.section, memory)
        return places[session], memory.created_at, memory.ref

    alone = [choice for choice, session in zip(shown, sessions, strict=True) if session is None]
    together = [choice for choice, session in zip(shown, sessions, strict=True) if session is not None]
    return [*alone, *sorted(together, key=place_of)]


def _text(choice: Choice) -> str:
    return choice.line.text if choice.line is not None else ""


# The account of a packing: where each candidate went, and what each section used.


def entries_of(fitted: Fitted, dropped: Sequence[Sequence[ExcludedCandidates]]) -> Sequence[Entry]:
    """Per section what was tried, in rank order, and then what was left out before, each once.

    `dropped` is what was left out before the fit, per section. What the entries say is settled here; they are
    written when they are read.
    """
    parts: list[tuple[str, SectionBlock | ExcludedCandidates]] = []
    for block, several in zip(fitted.blocks, dropped, strict=True):
        parts.append((block.section.name, block))
        parts += [(block.section.name, part) for part in several]
    starts = list(accumulate((_length(part) for _, part in parts), initial=0))

    def entry(number: int) -> Entry:
        part = bisect_right(starts, number) - 1
        section, those = parts[part]
        place = number - starts[part]
        if isinstance(those, SectionBlock):
            return _entry_of_choice(section, those.choices[place])
        return _entry(section, those.ranked[place], reason=those.reason)

    return Deferred(starts[-1], entry)


def uses_of(fitted: Fitted, dropped: Sequence[Sequence[ExcludedCandidates]]) -> tuple[SectionUsage, ...]:
    """What each section was given and used, and how many candidates stand in it and outside."""
    return tuple(
        _use(block, sum(map(_length, several))) for block, several in zip(fitted.blocks, dropped, strict=True)
    )


def _length(part: SectionBlock | ExcludedCandidates) -> int:
    return len(part.choices if isinstance(part, SectionBlock) else part.ranked)


def _entry_of_choice(section: str, choice: Choice) -> Entry:
    return _entry(
        section,
        choice.ranked,
        level=choice.line.level if choice.line is not None else None,
        reason=choice.reason,
        tokens=choice.tokens,
        short_by=choice.short_by,
    )


def _entry(section: str, ranked: Ranked, **became: Any) -> Entry:
    memory = ranked.memory
    return Entry(
        memory_id=memory.ref,
        version=memory.version,
        kind=memory.kind,
        scope=str(memory.scope),
        created_at=memory.created_at,
        source=memory.source,
        section=section,
        score=ranked.score,
        parts=ranked.parts,
        label=label_of(memory),
        agent=memory.agent,
        **became,
    )


def _use(block: SectionBlock, left_out: int) -> SectionUsage:
    included = sum(1 for choice in block.choices if choice.line is not None)
    return SectionUsage(
        name=block.section.name,
        heading=block.section.heading,
        share=block.share,
        used=block.used,
        flowed=block.flowed,
        included=included,
        excluded=len(block.choices) - included + left_out,
    )


# Make a context of one list: memories in rank order, parted by blank lines, within a budget.
#
# It is what the pipeline does for a plan of one section without headings, whose memories come ranked:
# fit, render, count. A working set can hold thousands of them, so the memories that can't fit are passed
# over by their stored counts, and the account of each is written when it is read.
#
# The budget is that of the text as it stands. A paragraph inside the list takes its blank line with
# it, the last one doesn't, and tokenizers may join a blank line to the punctuation before it; so each
# paragraph is counted both ways. The text is then counted whole all the same, and where it is
# longer than its paragraphs, it is fitted anew into that much less.

BETWEEN = "\n\n"
"""What parts two memories of a list."""

_LABEL = 60
"""Characters of a memory's name in the account."""
_MOST = 24_000_000
_LONGEST = 20_000
_OVERHEAD = 400


def assemble_list(
    plan: Plan,
    ranked: Sequence[Ranked],
    *,
    memories: Sequence[Memory],
    paragraphs: Paragraphs,
    budget: int,
    now: datetime,
    question: Question | None = None,
    required: Collection[str] = (),
    notes: Sequence[TraceNote] = (),
) -> Context:
    """The context of a one-section plan from what was ranked, each once; `memories` are those of `ranked`.

    `paragraphs` makes and counts the texts in the section's style. `required` are ids of memories
    that must be shown. Raises BudgetTooSmall when they can't be, and InvalidPlan for a plan of
    several sections or of bullets.
    """
    styles = {section.style for section in plan.sections}
    if len(plan.sections) != 1 or styles != {paragraphs.style} or Style.BULLETS in styles:
        raise InvalidPlan(
            f"Plan {plan.name!r} is no list of {paragraphs.style}: it needs one section, of that style."
        )
    section, counter = plan.sections[0], paragraphs.counter
    chosen, text, tokens = _fit_to(section, memories, paragraphs, budget=budget, required=required)
    account = _Account(section=section, ranked=ranked, paragraphs=paragraphs, chosen=chosen)
    places = chosen.in_text()
    use = SectionUsage(
        name=section.name,
        heading=section.heading,
        share=spendable(budget, counter),
        used=chosen.tokens,
        flowed=0,
        included=len(places),
        excluded=len(memories) - len(places),
    )
    empty = EmptyReason.OVER_BUDGET if memories else EmptyReason.EMPTY_WORKING_SET
    trace = Trace(
        plan=plan.name,
        question=question or Question(),
        budget=budget,
        counter=counter.name,
        now=now,
        entries=Deferred(len(memories), account.entry),
        sections=(use,),
        notes=(*notes, *_margin(counter, budget)),
        empty_reason=None if places else empty,
    )
    items = Deferred(len(places), lambda number: account.item(places[number]))
    return Context(text=text, tokens=tokens, items=items, trace=trace)


@dataclass(slots=True, kw_only=True)
class Paragraph:
    """A memory's text at one level: its tokens as the last of the list, and with a blank line after it.

    The latter are counted when the paragraph first stands before another.
    """

    level: Level
    text: str
    tokens: int
    before_another: int | None = None


class Paragraphs:
    """Makes paragraphs in one style, counted by one counter, and keeps them for the next time.

    Threads may share it: at worst a paragraph is made twice. It changes no result.
    """

    __slots__ = ("_characters", "_kept", "counter", "style")

    def __init__(self, counter: TokenCounter, *, style: Style = Style.PARAGRAPHS) -> None:
        self.counter, self.style = counter, style
        self._kept: dict[Level, dict[str, tuple[Memory, Paragraph]]] = {level: {} for level in Level}
        self._characters = 0

    def of(self, memory: Memory, level: Level) -> Paragraph:
        """The paragraph of a memory; one without text can't be shown."""
        known = self._kept[level].get(memory.ref)
        stored = memory.renditions.at(level)
        # An id can be taken anew once its memory was purged, so it alone proves nothing; and a memory
        # that was read anew has the text that it had.
        if known is not None and (known[0] is memory or known[0].renditions.at(level) == stored):
            return known[1]
        text = stored.text if self.style is Style.RAW else "\n".join(fence(stored.text))
        counted = text == stored.text and memory.renditions.counter == self.counter.name
        made = Paragraph(
            level=level, text=text, tokens=stored.tokens if counted else self.counter.count(text)
        )
        self._keep(memory, made)
        return made

    def shortest(self, memories: Sequence[Memory], levels: Sequence[Level]) -> list[Paragraph]:
        """Each memory's paragraph, at the level at which it has the fewest tokens."""
        if len(levels) == 1:
            (level,) = levels
            kept = self._kept[level].get
            # Written out, since thousands are asked about for each that is shown.
            return [
                known[1]
                if (known := kept(memory.ref)) is not None and known[0] is memory
                else self.of(memory, level)
                for memory in memories
            ]
        return [
            min([self.of(memory, level) for level in levels], key=lambda one: one.tokens)
            for memory in memories
        ]

    def before_another(self, paragraph: Paragraph) -> int:
        """The tokens of a paragraph with the blank line after it."""
        if paragraph.before_another is None:
            paragraph.before_another = self.counter.count(paragraph.text + BETWEEN)
        return paragraph.before_another

    def _keep(self, memory: Memory, made: Paragraph) -> None:
        size = len(memory.content) + len(made.text)
        if size > _LONGEST:
            return
        self._characters += size + _OVERHEAD
        if self._characters > _MOST:
            # Starting over is cheaper than keeping track of use.
            for kept in self._kept.values():
                kept.clear()
            self._characters = size + _OVERHEAD
        self._kept[made.level][memory.ref] = memory, made


class _List:
    """A list on its way: which memories stand in it, by their places in rank order, and its tokens.

    `why` says why a memory isn't shown; of the others that aren't, none had room. `left` are the places
    from which on there was another number of tokens left, each with that number.
    """

    __slots__ = ("_inside", "_last", "_paragraphs", "_reverse", "left", "shown", "texts", "why")

    def __init__(self, paragraphs: Paragraphs, *, reverse: bool) -> None:
        self._paragraphs, self._reverse = paragraphs, reverse
        self.shown: dict[int, Paragraph] = {}
        self.why: dict[int, Reason] = {}
        self.left: list[tuple[int, int]] = []
        self.texts: set[str] = set()
        # What all would take with a blank line after each, and the place of the one that has none.
        self._inside, self._last = 0, -1

    @property
    def tokens(self) -> int:
        """The tokens of the list as it stands."""
        if not self.shown:
            return 0
        last = self.shown[self._last]
        return self._inside - self._paragraphs.before_another(last) + last.tokens

    def note_left(self, place: int, free_tokens: int) -> int:
        """The tokens that a memory from this place on may add, by itself or with its blank line."""
        left = free_tokens - (self._inside if self._ends(place) else self.tokens)
        self.left.append((place, left))
        return left

    def take(self, place: int, paragraph: Paragraph, *, left: int) -> bool:
        """Let a memory stand in the list, if no more than so many tokens are added; whether it does."""
        ends = self._ends(place)
        # Asked for where it stands, since a list of thousands takes thousands.
        before_another = paragraph.before_another
        if before_another is None:
            before_another = self._paragraphs.before_another(paragraph)
        if (paragraph.tokens if ends else before_another) > left:
            return False
        if ends:
            self._last = place
        self._inside += before_another
        self.shown[place] = paragraph
        self.texts.add(paragraph.text)
        return True

    def in_text(self) -> list[int]:
        """The places of what is shown, in the order of the text."""
        return sorted(self.shown, reverse=self._reverse)

    def _ends(self, place: int) -> bool:
        """Whether a memory at this place would stand last in the text."""
        return not self.shown or (place < self._last if self._reverse else place > self._last)


def _fit_to(
    section: Section,
    memories: Sequence[Memory],
    paragraphs: Paragraphs,
    *,
    budget: int,
    required: Collection[str],
) -> tuple[_List, str, int]:
    """Choose and write until the whole text, counted as it stands, keeps within the budget."""
    limit = room = spendable(budget, paragraphs.counter)
    while True:
        chosen = _List(paragraphs, reverse=section.reverse)
        if required:
            _require(chosen, section, memories, paragraphs, required)
            if (owed := chosen.tokens - room) > 0:
                named = tuple(memories[place].ref for place in chosen.shown)
                raise BudgetTooSmall(budget=budget, needed=budget + owed + limit - room, required=named)
        _fill(chosen, section, memories, paragraphs, room)
        text = BETWEEN.join([chosen.shown[place].text for place in chosen.in_text()])
        tokens = paragraphs.counter.count(text)
        if tokens <= limit:
            return chosen, text, tokens
        room -= tokens - limit


def _require(
    chosen: _List,
    section: Section,
    memories: Sequence[Memory],
    paragraphs: Paragraphs,
    required: Collection[str],
) -> None:
    """Show what has to be shown, at its shortest."""
    for place, memory in enumerate(memories):
        if memory.ref in required:
            (least,) = paragraphs.shortest([memory], section.levels)
            chosen.take(place, least, left=least.tokens + paragraphs.before_another(least))


def _fill(
    chosen: _List, section: Section, memories: Sequence[Memory], paragraphs: Paragraphs, free_tokens: int
) -> None:
    """Show what fits, in rank order, by the section's overflow rule."""
    levels = _tried(section)
    most = len(memories) if section.items is None else section.items
    left = chosen.note_left(0, free_tokens)
    shown, several, stops = chosen.shown, len(levels) > 1, section.overflow.stops
    for place, least in enumerate(paragraphs.shortest(memories, levels)):
        if place in shown:
            # Required, so that it stands already; what comes after it may end the list.
            left = chosen.note_left(place + 1, free_tokens)
            continue
        if least.tokens <= left:
            if len(shown) >= most:
                chosen.why[place] = Reason.LIMIT
                continue
            tried = (paragraphs.of(memories[place], level) for level in levels) if several else (least,)
            if _show(chosen, place, tried, left=left):
                left = chosen.note_left(place + 1, free_tokens)
                continue
        if stops and place not in chosen.why:
            after = range(place + 1, len(memories))
            chosen.why.update((later, Reason.STOPPED) for later in after if later not in shown)
            return


def _show(chosen: _List, place: int, made: Iterable[Paragraph], *, left: int) -> bool:
    """Show a memory at the first level that fits, if one does and its text isn't there yet."""
    for paragraph in made:
        if paragraph.text in chosen.texts:
            chosen.why[place] = Reason.DUPLICATE
            return False
        if paragraph.text and chosen.take(place, paragraph, left=left):
            return True
    return False


def _tried(section: Section) -> Sequence[Level]:
    return section.levels if section.overflow.degrades else section.levels[:1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """What became of each memory, written when it is read."""

    section: Section
    ranked: Sequence[Ranked]
    paragraphs: Paragraphs
    chosen: _List

    def item(self, place: int) -> Item:
        """A memory as it stands in the list."""
        one, shown = self.ranked[place], self.chosen.shown[place]
        return Item(
            memory=one.memory,
            section=self.section.name,
            level=shown.level,
            text=shown.text,
            tokens=self.paragraphs.before_another(shown),
            score=one.score,
        )

    def entry(self, place: int) -> Entry:
        """A memory's place in the trace."""
        one, shown = self.ranked[place], self.chosen.shown.get(place)
        reason, short_by = self.chosen.why.get(place), 0
        if shown is not None:
            tokens = self.paragraphs.before_another(shown)
        else:
            (least,) = self.paragraphs.shortest([one.memory], _tried(self.section))
            tokens = least.tokens
            if reason is None:
                reason = Reason.OVER_BUDGET
                _, left = self.chosen.left[bisect_right(self.chosen.left, place, key=itemgetter(0)) - 1]
                short_by = max(1, tokens - left)
        return Entry(
            memory_id=one.memory.ref,
            version=one.memory.version,
            kind=one.memory.kind,
            scope=str(one.memory.scope),
            created_at=one.memory.created_at,
            source=one.memory.source,
            section=self.section.name,
            score=one.score,
            parts=one.parts,
            level=None if shown is None else shown.level,
            reason=reason,
            tokens=tokens,
            short_by=short_by,
            label=label_of(one.memory),
            agent=one.memory.agent,
        )


def label_of(memory: Memory) -> str:
    """The beginning of a memory's shortest text, by which a person knows it in a list."""
    text = memory.renditions.micro.text[: 4 * _LABEL].strip()
    if "  " in text or not text.isprintable():
        text = " ".join(text.split())
    return text if len(text) <= _LABEL else text[: _LABEL - 1].rstrip() + "…"


def _margin(counter: TokenCounter, budget: int) -> list[TraceNote]:
    limit = spendable(budget, counter)
    if limit == budget:
        return []
    text = f"The counter {counter.name} is exact to {counter.margin:.0%}, so "
    return [TraceNote(code="margin", text=f"{text}{budget - limit} of {budget} tokens are kept as a margin.")]

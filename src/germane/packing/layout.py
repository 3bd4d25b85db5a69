"""The text as it stands at last: blocks in order, one list for working sets, and the account of both."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Any

from germane.errors import BudgetTooSmall, InvalidPlan
from germane.kinds import Kinds
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
from germane.model.memory import Memory
from germane.model.plan import Plan, Section, Style
from germane.model.query import Deferred
from germane.packing.lines import BETWEEN, Heading, ListCosts, RememberedLines, RenderedLine
from germane.packing.render import session_of
from germane.packing.sections import Choice, ExcludedCandidates, Fitted, SectionBlock
from germane.protocols import TokenCounter
from germane.tokens import spendable


def blocks_of(
    fitted: Fitted, heading_of: Callable[[Section, Memory], Heading]
) -> list[tuple[str, Sequence[str]]]:
    """The headings and lines of the text, in the plan's order, for `render`.

    `heading_of` gives the heading of a memory: its own, or its session's.
    """
    written: list[tuple[str, Sequence[str]]] = []
    for block in fitted.blocks:
        section, shown = block.section, _shown(block)
        if section.own_heading:
            written += [(heading_of(section, memory).text, [line.text]) for memory, _, line in shown]
        elif block.shows_text or shown:
            lines = [section.text] if block.shows_text else []
            session = None
            for memory, _, line in shown:
                # Each session's lines stand under its date.
                if section.by_session and (its := session_of(section, memory)) != session:
                    lines += [] if its is None else [heading_of(section, memory).text]
                    session = its
                lines.append(line.text)
            if written and section.heading and written[-1][0] == section.heading:
                written[-1] = section.heading, [*written[-1][1], *lines]
            else:
                written.append((section.heading, lines))
    return written


def items_of(fitted: Fitted) -> Sequence[Item]:
    """What stands in the text, in its order; each is written when it is looked at."""
    shown = [(block.section.name, *each) for block in fitted.blocks for each in _shown(block)]

    def item(place: int) -> Item:
        section, memory, score, line = shown[place]
        return _item(section, memory, score, line, line.tokens)

    return Deferred(len(shown), item)


def _item(section: str, memory: Memory, score: float, line: RenderedLine, tokens: int) -> Item:
    return Item(memory=memory, section=section, level=line.level, text=line.text, tokens=tokens, score=score)


def _shown(block: SectionBlock) -> list[tuple[Memory, float, RenderedLine]]:
    """What stands in a section, in the order of the text: memories with their scores and their lines.

    That is rank order; by session it is first what belongs to none, then session after session,
    the one with the best memory first, each in the order of its times.
    """
    shown = [(one.memory, one.score, one.line) for one in block.choices if one.line is not None]
    if block.section.by_session:
        sessions = [session_of(block.section, memory) for memory, _, _ in shown]
        places = {session: place for place, session in reversed(list(enumerate(sessions)))}
        order = [
            (-1, place) if session is None else (places[session], memory.created_at, memory.ref)
            for place, ((memory, _, _), session) in enumerate(zip(shown, sessions, strict=True))
        ]
        shown = [shown[place] for place in sorted(range(len(shown)), key=order.__getitem__)]
    return shown


# The account of a packing: where each candidate went, and what each section used.


def entries_of(fitted: Fitted, dropped: Sequence[Sequence[ExcludedCandidates]]) -> Sequence[Entry]:
    """Per section what was tried, in rank order, and then what was left out before, each once.

    `dropped` is what was left out before the fit, per section. What the entries say is settled here; they are
    written when they are read.
    """
    parts: list[tuple[str, SectionBlock | ExcludedCandidates, int]] = []
    for block, several in zip(fitted.blocks, dropped, strict=True):
        parts.append((block.section.name, block, len(block.choices)))
        parts += [(block.section.name, part, len(part.ranked)) for part in several]
    starts = list(accumulate((length for _, _, length in parts), initial=0))

    def entry(number: int) -> Entry:
        part = bisect_right(starts, number) - 1
        section, those, _ = parts[part]
        place = number - starts[part]
        if isinstance(those, SectionBlock):
            return _entry_of_choice(section, those.choices[place])
        return _entry(section, those.ranked[place], reason=those.reason)

    return Deferred(starts[-1], entry)


def uses_of(fitted: Fitted, dropped: Sequence[Sequence[ExcludedCandidates]]) -> tuple[SectionUsage, ...]:
    """What each section was given and used, and how many candidates stand in it and outside."""
    uses = []
    for block, several in zip(fitted.blocks, dropped, strict=True):
        included = sum(1 for choice in block.choices if choice.line is not None)
        uses.append(
            SectionUsage(
                name=block.section.name,
                heading=block.section.heading,
                share=block.share,
                used=block.used,
                flowed=block.flowed,
                included=included,
                excluded=len(block.choices) - included + sum(len(part.ranked) for part in several),
            )
        )
    return tuple(uses)


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
        trust=memory.trust,
        section=section,
        score=ranked.score,
        parts=ranked.parts,
        label=label_of(memory),
        agent=memory.agent,
        **became,
    )


# Make a context of one list: memories in rank order, separated by blank lines, within a budget.
#
# Lines, their cache and the account are those of every plan; the choice is its own. A working set can have
# thousands of memories, for which `fit` takes 4 to 14 times as long, and what a paragraph costs depends on
# where it stands: one inside the list takes its blank line with it, the last one doesn't, and tokenizers may
# join a blank line to the punctuation before it. So each paragraph is counted both ways. The text is then
# counted whole all the same, and where it is longer than its paragraphs, it is fitted again into that much
# less.

_TOKENS, _REF = attrgetter("tokens"), attrgetter("ref")
_LABEL = 60
"""Characters of a memory's name in the account."""


def assemble_list(
    plan: Plan,
    ranked: Sequence[Ranked],
    *,
    memories: Sequence[Memory],
    counter: TokenCounter,
    kinds: Kinds,
    lines: RememberedLines,
    budget: int,
    now: datetime,
    question: Question | None = None,
    required: Collection[str] = (),
    notes: Sequence[TraceNote] = (),
) -> Context:
    """The context of a one-section plan from what was ranked, each once; `memories` are those of `ranked`.

    `lines` caches the texts. `required` are ids of memories that must be shown. Raises BudgetTooSmall when
    they can't be, and InvalidPlan for a plan of several sections or of bullets.
    """
    (section, *others) = plan.sections
    if others or section.style is Style.BULLETS:
        raise InvalidPlan(f"Plan {plan.name!r} is no list: it needs one section, of paragraphs.")
    costs = ListCosts(counter, kinds, lines)
    chosen, places, text, tokens = _filled(
        section, memories, costs, counter=counter, budget=budget, required=required
    )
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
        entries=Deferred(len(memories), lambda place: chosen.entry(place, ranked[place])),
        sections=(use,),
        notes=(*notes, *margin_notes(counter, budget)),
        empty_reason=None if places else empty,
    )

    def item(number: int) -> Item:
        place = places[number]
        line = chosen.shown[place]
        return _item(section.name, memories[place], ranked[place].score, line, costs.followed(line))

    return Context(text=text, tokens=tokens, items=Deferred(len(places), item), trace=trace)


def _filled(
    section: Section,
    memories: Sequence[Memory],
    costs: ListCosts,
    *,
    counter: TokenCounter,
    budget: int,
    required: Collection[str],
) -> tuple[_List, list[int], str, int]:
    """A list whose whole text, counted as it stands, keeps within the budget, with its places in the order of
    the text, the text and its count.
    """
    limit = free_tokens = spendable(budget, counter)
    while True:
        chosen = _List(section, memories, costs)
        chosen.require(required)
        if required and (owed := chosen.tokens - free_tokens) > 0:
            named = tuple(memories[place].ref for place in chosen.shown)
            raise BudgetTooSmall(budget=budget, needed=budget + owed + limit - free_tokens, required=named)
        chosen.fill(free_tokens)
        places = sorted(chosen.shown, reverse=section.reverse)
        text = BETWEEN.join([chosen.shown[place].text for place in places])
        tokens = counter.count(text)
        if tokens <= limit:
            return chosen, places, text, tokens
        free_tokens -= tokens - limit


class _List:
    """A list while it is filled: which memories stand in it, by their places in rank order, and its tokens.

    `reasons` say why a memory isn't shown; the others that aren't were over budget. `left` are the places
    from which on there was another number of tokens left, each with that number.
    """

    def __init__(self, section: Section, memories: Sequence[Memory], costs: ListCosts) -> None:
        self._section, self._memories, self._costs, self._reverse = section, memories, costs, section.reverse
        self._levels = section.levels if section.overflow.degrades else section.levels[:1]
        self.shown: dict[int, RenderedLine] = {}
        self.reasons: dict[int, Reason] = {}
        self.left: list[tuple[int, int]] = []
        self._texts: set[str] = set()
        # What all would take with a blank line after each, and the place of the one that has none.
        self._inside, self._last = 0, -1

    @property
    def tokens(self) -> int:
        """The tokens of the list as it stands."""
        if not self.shown:
            return 0
        last = self.shown[self._last]
        return self._inside - self._costs.followed(last) + last.tokens

    def require(self, required: Collection[str]) -> None:
        """Show what has to be shown, at its shortest, whatever it takes."""
        for place, memory in enumerate(self._memories if required else ()):
            if memory.ref in required:
                lines = [self._costs.line(self._section, memory, level) for level in self._section.levels]
                least = min(lines, key=_TOKENS)
                self._take(place, least, left=least.tokens + self._costs.followed(least))

    def fill(self, free_tokens: int) -> None:
        """Show what fits, in rank order, by the section's overflow rule."""
        section, shown, levels = self._section, self.shown, self._levels
        most = len(self._memories) if section.items is None else section.items
        several, stops = len(levels) > 1, section.overflow.stops
        left = self._note_left(0, free_tokens)
        for place, least in enumerate(self._shortest()):
            if place in shown:
                # Required, so that it stands already; what comes after it may end the list.
                left = self._note_left(place + 1, free_tokens)
                continue
            if least.tokens <= left:
                if len(shown) >= most:
                    self.reasons[place] = Reason.LIMIT
                    continue
                lines = self._lines(self._memories[place]) if several else (least,)
                if self._show(place, lines, left=left):
                    left = self._note_left(place + 1, free_tokens)
                    continue
            if stops and place not in self.reasons:
                after = range(place + 1, len(self._memories))
                self.reasons.update((later, Reason.STOPPED) for later in after if later not in shown)
                return

    def entry(self, place: int, ranked: Ranked) -> Entry:
        """A memory's place in the trace."""
        shown, reason, short_by = self.shown.get(place), self.reasons.get(place), 0
        if shown is not None:
            tokens = self._costs.followed(shown)
        else:
            tokens = self._least(ranked.memory).tokens
            if reason is None:
                reason = Reason.OVER_BUDGET
                _, left = self.left[bisect_right(self.left, place, key=itemgetter(0)) - 1]
                short_by = max(1, tokens - left)
        level = None if shown is None else shown.level
        return _entry(
            self._section.name, ranked, level=level, reason=reason, tokens=tokens, short_by=short_by
        )

    def _least(self, memory: Memory) -> RenderedLine:
        """A memory's paragraph at the level at which it has the fewest tokens."""
        return min(self._lines(memory), key=_TOKENS)

    def _lines(self, memory: Memory) -> list[RenderedLine]:
        """A memory's paragraphs at the levels that are tried."""
        made = self._costs.line_cache(self._section, memory).lines
        return [made.get(level) or self._costs.line(self._section, memory, level) for level in self._levels]

    def _shortest(self) -> list[RenderedLine]:
        """Each memory's paragraph at its shortest level."""
        if len(self._levels) > 1:
            return [self._least(memory) for memory in self._memories]
        (level,), memories = self._levels, [*self._memories]
        try:
            # Looked up in bulk, since thousands are looked at for each that is shown.
            cached = [*map(self._costs.cached(self._section).__getitem__, map(_REF, memories))]
            lines = [known[1].lines[level] for known in cached]
        except KeyError:
            pass
        else:
            if [known[0] for known in cached] == memories:
                return lines
        return [self._costs.line(self._section, memory, level) for memory in memories]

    def _show(self, place: int, lines: Iterable[RenderedLine], *, left: int) -> bool:
        """Show a memory at the first level that fits, if one does and its text isn't there yet."""
        for line in lines:
            if line.text in self._texts:
                self.reasons[place] = Reason.DUPLICATE
                return False
            if line.text and self._take(place, line, left=left):
                return True
        return False

    def _note_left(self, place: int, free_tokens: int) -> int:
        """The tokens that a memory from this place on may add, by itself or with its blank line."""
        left = free_tokens - (self._inside if self._ends(place) else self.tokens)
        self.left.append((place, left))
        return left

    def _take(self, place: int, line: RenderedLine, *, left: int) -> bool:
        """Let a memory stand in the list, if no more than so many tokens are added; whether it does."""
        ends = self._ends(place)
        # Looked up here first, since a list of thousands takes thousands.
        followed = line.followed
        if followed is None:
            followed = self._costs.followed(line)
        if (line.tokens if ends else followed) > left:
            return False
        if ends:
            self._last = place
        self._inside += followed
        self.shown[place] = line
        self._texts.add(line.text)
        return True

    def _ends(self, place: int) -> bool:
        """Whether a memory at this place would stand last in the text."""
        return not self.shown or (place < self._last if self._reverse else place > self._last)


def label_of(memory: Memory) -> str:
    """The beginning of a memory's shortest text, by which a person knows it in a list."""
    text = memory.renditions.micro.text[: 4 * _LABEL].strip()
    if "  " in text or not text.isprintable():
        text = " ".join(text.split())
    return text if len(text) <= _LABEL else text[: _LABEL - 1].rstrip() + "…"


def margin_notes(counter: TokenCounter, budget: int) -> list[TraceNote]:
    """A note where a counter that isn't exact keeps a part of the budget unspent."""
    limit = spendable(budget, counter)
    if limit == budget:
        return []
    text = f"The counter {counter.name} is exact to {counter.margin:.0%}, so "
    return [TraceNote(code="margin", text=f"{text}{budget - limit} of {budget} tokens are left as a margin.")]

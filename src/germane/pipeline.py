"""The way every context is made: rank, allocate, fit, render, count.

Level: pipeline (imports plans, packing, ranking, kinds, tokens, model and errors; never stores or
retrieval). Pure: what gathering found, a plan, a budget, a counter and a moment in; a context out.

    gather (verbs)  ->  rank  ->  allocate  ->  fit  ->  render  ->  count  ->  Context

The last step is what makes the promise: the rendered text is counted whole, and where it is
longer than its parts were thought to be, it is fitted anew into that much less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from germane.errors import BudgetTooSmall
from germane.kinds import Kinds
from germane.model.context import Context, Item
from germane.model.learning import Weights
from germane.model.memory import Level, Memory
from germane.model.plan import Plan, Section
from germane.model.query import Found, Query, TimeRange
from germane.model.trace import Emptiness, Entry, Note, Question, Ranked, Reason, SectionUse, Trace
from germane.packing.fit import Block, Choice, Fitted, Line, fit
from germane.packing.remembered import RememberedLines
from germane.packing.render import heading_of, item_lines, render, session_of
from germane.protocols import Scorer, TokenCounter
from germane.ranking.gate import FEW, LOW_CONFIDENCE, Gated, gate
from germane.ranking.learning import learned_note
from germane.ranking.order import in_order
from germane.ranking.relevance import rank
from germane.tokens import spendable

__all__ = ["RECENCY", "Request", "assemble", "emptiness_of"]

_LABEL = 60
"""Characters of a memory's name in the trace."""
_SAVED_BY_A_LINE = 4
"""Tokens; a bullet before a text and a line end after it may join what the text alone counts apart."""


RECENCY = Note(
    code="recency", text="The question names nothing to look for, so the newest memories come first."
)
"""What a trace says of a question without a term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one assembly was asked for.

    `coverage` is what the gate judges words by, by memory id; None leaves the gate out.
    `weights` are what use has taught of the parts of scores. `lines` are those that were made before by
    this counter. They save work and change no result.
    """

    plan: Plan
    question: Question
    query: Query
    budget: int
    counter: TokenCounter
    kinds: Kinds
    now: datetime
    pinned: frozenset[str] = frozenset()
    prefer: TimeRange | None = None
    scorer: Scorer | None = None
    coverage: Mapping[str, float] | None = None
    weights: Weights | None = None
    notes: tuple[Note, ...] = ()
    lines: RememberedLines = field(default_factory=RememberedLines, repr=False, compare=False)


def assemble(request: Request, found: Found) -> Context:
    """The context for a request from what the store found.

    `found` holds one slice per section that shows memories, in the plan's order. Raises
    BudgetTooSmall when what is required doesn't fit.
    """
    sections = _rank(request, found)
    ranked = [section.kept for section in sections]
    notes = list(request.notes)
    limit = spendable(request.budget, request.counter)
    if limit < request.budget:
        notes.append(
            Note(
                code="margin",
                text=f"The counter {request.counter.name} is exact to {request.counter.margin:.0%}, "
                f"so {request.budget - limit} of {request.budget} tokens are kept as a margin.",
            )
        )
    fitted, text = _fit_to(request, ranked, limit)
    tokens = request.counter.count(text)
    trace = Trace(
        plan=request.plan.name,
        question=request.question,
        budget=request.budget,
        counter=request.counter.name,
        now=request.now,
        entries=tuple(_entries(fitted, sections)),
        sections=tuple(_use(*each) for each in zip(fitted.blocks, sections, strict=True)),
        notes=(*notes, *_notes(request, found, fitted, unsure=any(each.unsure for each in sections))),
        emptiness=None if any(block.shown for block in fitted.blocks) else emptiness_of(found, ranked),
        weights={} if request.weights is None else request.weights.values,
    )
    return Context(text=text, tokens=tokens, items=tuple(_items(fitted)), trace=trace)


def emptiness_of(found: Found, ranked: Sequence[Sequence[Ranked]]) -> Emptiness:
    """Why nothing is shown: the first of the reasons that holds."""
    if found.stored == 0:
        return Emptiness.NOTHING_STORED
    if found.admitted == 0:
        return Emptiness.FILTERED
    if not any(ranked):
        return Emptiness.NOTHING_RELEVANT
    return Emptiness.OVER_BUDGET


def _rank(request: Request, found: Found) -> list[Gated]:
    """The candidates of each section in rank order, and those that have nothing to do with the question.

    All that relevance found is ranked together, so that scores compare across sections; what a
    section shows whatever the question comes in the order that the plan gives it.
    """
    slices = iter(found.slices)
    per_section = [next(slices) if section.kinds else () for section in request.plan.sections]
    by_relevance = [
        candidate
        for section, candidates in zip(request.plan.sections, per_section, strict=True)
        if section.order is None
        for candidate in candidates
    ]
    order = rank(
        by_relevance,
        lexical_bound=found.lexical_bound,
        window_bound=found.window_bound,
        now=request.now,
        method=request.plan.fusion,
        scorer=request.scorer,
        query=request.query,
        prefer=request.prefer,
        order=request.question.order if found.by_relevance else None,
        without=request.plan.without,
        weights=request.weights,
    )
    # A pinned memory of a kind that the plan doesn't show is a guest in another's section.
    section_of = {
        candidate.memory.id: section.name
        for section, candidates in zip(request.plan.sections, per_section, strict=True)
        for candidate in candidates
    }
    passed = _gated(request, order, section_of, few=found.admitted <= FEW)
    return [
        Gated(
            kept=tuple(one for one in passed.kept if section_of[one.memory.id] == section.name),
            dropped=tuple(one for one in passed.dropped if section_of[one.memory.id] == section.name),
            unsure=passed.unsure,
        )
        if section.order is None
        else Gated(
            kept=tuple(Ranked(candidate=one, score=0.0) for one in in_order(candidates, section.order))
        )
        for section, candidates in zip(request.plan.sections, per_section, strict=True)
    ]


def _gated(request: Request, order: tuple[Ranked, ...], section_of: Mapping[str, str], *, few: bool) -> Gated:
    """What is left of the ranking after the gate; what is required or pinned never goes."""
    if request.coverage is None:
        return Gated(kept=order)
    sections = {section.name: section for section in request.plan.sections}
    exempt = {
        one.memory.id for one in order if _required(request, sections[section_of[one.memory.id]], one.memory)
    }
    said = request.query.information
    return gate(
        order, coverage=request.coverage, prefer=request.prefer, exempt=exempt, few=few, information=said
    )


def _fit_to(request: Request, ranked: Sequence[Sequence[Ranked]], limit: int) -> tuple[Fitted, str]:
    """Fit and render until the whole text, counted as it stands, keeps within the limit.

    Tokens of parts needn't add up to the tokens of the whole. Each round takes the excess off the
    limit, so the rounds end: at the latest where only what is required is left, and there the
    budget is too small for it.
    """
    costs = _Costs(request)
    room = limit
    while True:
        try:
            fitted = fit(
                request.plan,
                ranked,
                room,
                requires=lambda section, memory: _required(request, section, memory),
                line_of=costs.line,
                heading_cost=costs.heading,
                text_cost=costs.text,
                at_least=costs.at_least,
            )
        except BudgetTooSmall as error:
            # What the margin and the rounds before took off is needed on top.
            needed = error.needed + request.budget - room
            raise BudgetTooSmall(budget=request.budget, needed=needed, required=error.required) from None
        text = render(_blocks(fitted, request.kinds))
        excess = request.counter.count(text) - limit
        if excess <= 0:
            return fitted, text
        if room == 0:
            raise BudgetTooSmall(budget=request.budget, needed=request.budget + excess, required=())
        room = max(0, room - excess)


def _required(request: Request, section: Section, memory: Memory) -> bool:
    return section.required or memory.id in request.pinned or request.kinds.of(memory).requires(memory)


class _Costs:
    """What lines and headings add to a context, counted once each."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._headings: dict[tuple[str, str | None], int] = {}

    def line(self, section: Section, memory: Memory, level: Level) -> Line:
        known = self._request.lines.get(memory, level, own_heading=section.own_heading)
        if known is not None:
            return known
        text = item_lines(section, memory, level)
        tokens = self._request.counter.count(text + "\n") if text else 0
        line = Line(level=level, text=text, tokens=tokens)
        self._request.lines.keep(memory, line, own_heading=section.own_heading)
        return line

    def at_least(self, memory: Memory, level: Level) -> int:
        """The stored count, if it is by this counter, less what a line's other beginning may save."""
        renditions = memory.renditions
        if renditions.counter != self._request.counter.name:
            return 0
        return renditions.at(level).tokens - _SAVED_BY_A_LINE

    def heading(self, section: Section, memory: Memory | None) -> int:
        key = (section.name, None if memory is None else memory.id)
        if key not in self._headings:
            heading = heading_of(section, memory, self._request.kinds)
            before = "" if memory is not None and not section.own_heading else "\n"
            self._headings[key] = self._request.counter.count(f"{before}{heading}\n")
        return self._headings[key]

    def text(self, section: Section) -> int:
        return self._request.counter.count(f"\n{section.heading}\n{section.text}\n")


def _blocks(fitted: Fitted, kinds: Kinds) -> list[tuple[str, list[str]]]:
    """The headings and lines of the text, in the plan's order."""
    written: list[tuple[str, list[str]]] = []
    for block in fitted.blocks:
        section = block.section
        if section.own_heading:
            written.extend(
                (heading_of(section, choice.ranked.memory, kinds), [_text(choice)])
                for choice in _shown(block)
            )
        elif block.open:
            lines = [section.text] if block.shows_text else []
            session = None
            for choice in _shown(block):
                its = session_of(section, choice.ranked.memory)
                if its is not None and its != session:
                    lines.append(heading_of(section, choice.ranked.memory, kinds))
                session = its
                lines.append(_text(choice))
            written.append((section.heading, lines))
    return written


def _shown(block: Block) -> list[Choice]:
    """What stands in a section, in the order of the text.

    That is rank order; by session it is first what belongs to none, then session after session,
    the one with the best memory first, each in the order of its times.
    """
    shown = [choice for choice in block.choices if choice.line is not None]
    if not block.section.by_session:
        return shown
    sessions = [session_of(block.section, choice.ranked.memory) for choice in shown]
    places = {session: place for place, session in reversed(list(enumerate(sessions)))}

    def place_of(choice: Choice) -> tuple[int, datetime, str]:
        memory = choice.ranked.memory
        session = session_of(block.section, memory)
        return places[session], memory.created_at, memory.id

    alone = [choice for choice, session in zip(shown, sessions, strict=True) if session is None]
    together = [choice for choice, session in zip(shown, sessions, strict=True) if session is not None]
    return [*alone, *sorted(together, key=place_of)]


def _text(choice: Choice) -> str:
    return choice.line.text if choice.line is not None else ""


def _items(fitted: Fitted) -> list[Item]:
    return [
        Item(
            memory=choice.ranked.memory,
            section=block.section.name,
            level=choice.line.level,
            text=choice.line.text,
            tokens=choice.line.tokens,
            score=choice.ranked.score,
        )
        for block in fitted.blocks
        for choice in _shown(block)
        if choice.line is not None
    ]


def _entries(fitted: Fitted, sections: Sequence[Gated]) -> list[Entry]:
    """The account: per section what was tried, in rank order, and then what the gate left out."""
    return [
        _entry(block.section, choice)
        for block, gated in zip(fitted.blocks, sections, strict=True)
        for choice in (
            *block.choices,
            *(Choice(ranked=one, reason=Reason.NOT_RELEVANT) for one in gated.dropped),
        )
    ]


def _entry(section: Section, choice: Choice) -> Entry:
    return Entry(
        memory_id=choice.ranked.memory.id,
        kind=choice.ranked.memory.kind,
        section=section.name,
        score=choice.ranked.score,
        parts=choice.ranked.parts,
        level=choice.line.level if choice.line is not None else None,
        reason=choice.reason,
        tokens=choice.tokens,
        short_by=choice.short_by,
        label=_label(choice.ranked.memory),
        agent=choice.ranked.memory.agent,
    )


def _label(memory: Memory) -> str:
    """The beginning of a memory's shortest text, by which a person knows it in a list."""
    text = memory.renditions.micro.text[: 4 * _LABEL].strip()
    if "  " in text or not text.isprintable():
        text = " ".join(text.split())
    return text if len(text) <= _LABEL else text[: _LABEL - 1].rstrip() + "…"


def _use(block: Block, gated: Gated) -> SectionUse:
    included = sum(1 for choice in block.choices if choice.line is not None)
    return SectionUse(
        name=block.section.name,
        heading=block.section.heading,
        share=block.share,
        used=block.used,
        flowed=block.flowed,
        included=included,
        excluded=len(block.choices) - included + len(gated.dropped),
    )


def _notes(request: Request, found: Found, fitted: Fitted, *, unsure: bool) -> list[Note]:
    """What a reader of the trace should know about how this context came to be."""
    notes: list[Note] = []
    if not found.by_relevance:
        notes.append(RECENCY)
    if unsure:
        notes.append(LOW_CONFIDENCE)
    if request.weights is not None:
        notes.append(learned_note(request.weights))
    if fitted.lent:
        notes.append(
            Note(
                code="lent",
                text=f"Required memories needed {fitted.lent} tokens beyond their sections' shares.",
            )
        )
    notes.extend(
        Note(code="text_left_out", text=f"The text of section {block.section.name!r} did not fit.")
        for block in fitted.blocks
        if block.section.text and not block.shows_text
    )
    if request.question.when is not None:
        treated = (
            "memories of that time rank higher"
            if request.prefer
            else "only memories of that time were gathered"
        )
        named = f"The question names a time, {request.question.when}"
        notes.append(Note(code="when", text=f"{named}; {treated}."))
    return notes

"""The way every context is made: rank, allocate, fit, render, count.

Pure: what gathering found, a plan, a budget, a counter and a moment in; a context out.

    gather (operations)  ->  rank  ->  allocate  ->  fit  ->  render  ->  count  ->  Context

The last step is what makes the promise: the rendered text is counted whole, and where it is
longer than its parts were thought to be, it is fitted anew into that much less.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

from germane.errors import BudgetTooSmall
from germane.kinds import Kinds
from germane.lifecycle import is_obsolete, replaces
from germane.model.context import Context, Question, Ranked, Reason, Trace, TraceNote, short_id
from germane.model.learning import Weights
from germane.model.memory import Memory
from germane.model.plan import FrameChoice, Plan, RollOver, Section, TaskContext
from germane.model.query import Candidate, CandidateTable, Order, Query, SearchResult, TimeRange
from germane.packing.fit import fit
from germane.packing.layout import blocks_of, entries_of, items_of, margin_notes, uses_of
from germane.packing.lines import ContentCosts, Costs, RememberedLines, RenditionCosts
from germane.packing.render import written_lines
from germane.packing.sections import WORTH_TOKENS, Choice, ExcludedCandidates, Fitted, displaced_turns
from germane.protocols import Scorer, TokenCounter
from germane.ranking.by_kind import by_kind, in_precedence, kinds_first_notes
from germane.ranking.learning import learned_note
from germane.ranking.relevance import FEW, LOW_CONFIDENCE, Gated, Scoring, rank, rank_sections
from germane.ranking.scores import Boosts
from germane.ranking.similarity import RECENCY, crowding, empty_reason_of, in_order, memories_of, of_each
from germane.renditions.passages import PassageScores
from germane.tokens import spendable

_SHORTEST = 5
"""Tokens that hardly any memory's line stays below."""
_MEMORY: Callable[[Candidate], Memory] = attrgetter("memory")

Gathered: TypeAlias = Sequence[tuple[Section, Sequence[Candidate]]]
"""Each section of a plan with its candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineInput:
    """What a context is made of, beside what was found: a plan, a question, a budget and a moment.

    `gated` has the gate judge what has to do with the question; `gate` is what the caller set, if
    anything.
    `weights` are what use has taught of the parts of scores, `usefulness` what of single memories; `domain`
    is what the frame is about, `associated` says by memory id how near one is to what was found, `reranked`
    how a reranker scored it, `left_out` why one is not to be shown, and `frame` is the one that the plan was
    built for. `lines` are those that were made before by this counter. They save work and change no result.
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
    gated: bool = False
    gate: bool | None = None
    weights: Weights | None = None
    notes: tuple[TraceNote, ...] = ()
    domain: tuple[str, ...] = ()
    usefulness: Mapping[str, float] = field(default_factory=dict)
    associated: Mapping[str, float] = field(default_factory=dict)
    reranked: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, Reason] = field(default_factory=dict)
    frame: FrameChoice | None = None
    work: TaskContext = field(default_factory=TaskContext)
    lines: RememberedLines = field(default_factory=RememberedLines, repr=False, compare=False)
    passages: PassageScores | None = field(default=None, repr=False, compare=False)


def assemble(request: PipelineInput, found: SearchResult) -> Context:
    """The context for a request from what the store found.

    `found` holds one slice per section that shows memories, in the plan's order. Raises
    BudgetTooSmall when what is required doesn't fit.
    """
    gathered = _gathered(request.plan, found)
    required = _required(request, gathered)
    how = request.plan.kinds_first
    if how is None:
        return pack(request, found, _rank(request, found, gathered, required), required)
    ranked = by_kind(
        [candidates for _, candidates in gathered],
        how,
        replace(_scoring(request, found), window_bound=0.0, weights=request.weights),
        work=request.work,
        relevant=found.by_relevance,
        gated=request.gated,
    )
    return pack(request, found, ranked, required)


def best_ranked(request: PipelineInput, found: SearchResult, most: int) -> list[Ranked]:
    """What relevance ranks first, over all sections that it fills, of what passes the gate."""
    gathered = _gathered(request.plan, found)
    sections = _rank(request, found, gathered, _required(request, gathered))
    parts = zip(request.plan.sections, sections, strict=True)
    ranked = [one for section, gated in parts if section.order is None for one in gated.passed]
    return sorted(ranked, key=lambda one: -one.score)[:most]


def pack(
    request: PipelineInput, found: SearchResult, sections: Sequence[Gated], required: frozenset[str]
) -> Context:
    """The context of what was ranked, per section of the plan. Raises BudgetTooSmall."""
    limit = spendable(request.budget, request.counter)
    if _might_all_fit(request, found, sections, limit):
        everything = [
            Gated(passed=(*gated.passed, *gated.dropped), unsure=gated.unsure) for gated in sections
        ]
        out = frozenset(one.memory.ref for gated in sections for one in gated.dropped)
        context, whole = _packed(request, found, everything, required, limit=limit, late=out)
        if whole:
            return context
    return _packed(request, found, sections, required, limit=limit)[0]


def _packed(
    request: PipelineInput,
    found: SearchResult,
    sections: Sequence[Gated],
    required: frozenset[str],
    *,
    limit: int,
    late: frozenset[str] = frozenset(),
) -> tuple[Context, bool]:
    """The context, and whether every candidate stands in it at full length; those in `late` come last."""
    last = set(late)
    pairs = [
        _split_section(request, section, gated, required, last)
        for section, gated in zip(request.plan.sections, sections, strict=True)
    ]
    ranked = [passed for passed, _ in pairs]
    dropped = [left_out for _, left_out in pairs]
    if request.plan.roll_over is RollOver.BEST:
        sections_by_value = zip(request.plan.sections, ranked, strict=True)
        last |= crowding([part for section, part in sections_by_value if not section.leftover])
    fitted, text, tokens = _fit_to(request, ranked, required, limit, last)
    trace = Trace(
        plan=request.plan.name,
        question=request.question,
        budget=request.budget,
        counter=request.counter.name,
        now=request.now,
        entries=entries_of(fitted, dropped),
        sections=uses_of(fitted, dropped),
        notes=tuple(_notes(request, found, fitted, ranked, unsure=any(each.unsure for each in sections))),
        empty_reason=None if any(block.shown for block in fitted.blocks) else empty_reason_of(found, ranked),
        weights={} if request.weights is None else request.weights.values,
        frame=None if request.frame is None else request.frame.frame.name,
        frame_confidence=None if request.frame is None else request.frame.confidence,
    )
    context = Context(text=text, tokens=tokens, items=items_of(fitted), trace=trace)
    return context, fitted.shows_all


def _required(request: PipelineInput, gathered: Gathered) -> frozenset[str]:
    """The ids of what has to stand in the context: by its section, by its kind, or because it is pinned."""
    # Few kinds have any that must stand, and most candidates are of another.
    strict = request.kinds.strict()
    requires = any(section.required or section.required_kinds for section in request.plan.sections)
    if not (requires or strict or request.pinned):
        return frozenset()
    return frozenset(
        memory.ref
        for section, candidates in gathered
        for memory in (
            candidates.memories if isinstance(candidates, CandidateTable) else map(_MEMORY, candidates)
        )
        if section.required
        or memory.kind in section.required_kinds
        or memory.ref in request.pinned
        or (not section.quoted and memory.kind in strict and strict[memory.kind](memory))
    )


def _gathered(plan: Plan, found: SearchResult) -> Gathered:
    """Each section with what was found for it; a section of text alone has nothing."""
    slices = iter(found.slices)
    return [(section, next(slices) if section.gathers else ()) for section in plan.sections]


def _rank(
    request: PipelineInput, found: SearchResult, gathered: Gathered, required: frozenset[str]
) -> list[Gated]:
    """The candidates of each section in rank order, and those that have nothing to do with the question.

    All that relevance found is ranked together, so that scores compare across sections; what a section shows
    whatever the question comes in the order that the plan gives it. Where left-over tokens go to the best,
    that has a score too if it passes the gate. What is required passes it.
    """
    together = request.plan.roll_over is RollOver.BEST and found.by_relevance
    parts = [
        candidates
        if section.order is None
        else [
            one
            for one in candidates
            if together and section.order is Order.IMPORTANT and one.memory.ref not in required
        ]
        for section, candidates in gathered
    ]
    ranked = _by_relevance(request, found, parts, required)
    return [
        gated
        if section.order is None
        else Gated(
            passed=tuple(_always_shown(request, found, section, candidates, order=section.order, gated=gated))
        )
        for (section, candidates), gated in zip(gathered, ranked, strict=True)
    ]


def _by_relevance(
    request: PipelineInput,
    found: SearchResult,
    parts: Sequence[Sequence[Candidate]],
    required: frozenset[str],
) -> list[Gated]:
    """The sections ranked together, and apart from them those that get only left-over tokens.

    Otherwise the latter would change the scores of the others, and what the gate leaves out. They show a weak
    match only where nothing else matches.
    """
    scoring = Scoring(
        now=request.now,
        query=request.query,
        lexical_bound=found.lexical_bound,
        window_bound=found.window_bound,
        scorer=request.scorer,
        method=request.plan.fusion,
        prefer=request.prefer,
        order=request.question.order if found.by_relevance else None,
        without=request.plan.without,
        weights=request.weights,
        boosts=_boosts(request),
        associated=request.associated,
        reranked=request.reranked,
    )
    how: dict[str, Any] = {"gated": request.gated, "few": found.admitted <= FEW, "exempt": required}
    last = [section.leftover for section in request.plan.sections]
    first = [() if later else part for later, part in zip(last, parts, strict=True)]
    ranked = rank_sections(first, scoring, **how)
    if not any(later and len(part) for later, part in zip(last, parts, strict=True)):
        return ranked
    others = [part if later else () for later, part in zip(last, parts, strict=True)]
    apart = rank_sections(others, scoring, **how)
    sections = request.plan.sections
    if any(gated.passed for gated, section in zip(ranked, sections, strict=True) if section.order is None):
        apart = [
            Gated(passed=(), dropped=(*gated.passed, *gated.dropped)) if gated.unsure else gated
            for gated in apart
        ]
    return [two if later else one for later, one, two in zip(last, ranked, apart, strict=True)]


def _scoring(request: PipelineInput, found: SearchResult) -> Scoring:
    """What scores of any plan are made of."""
    return Scoring(
        now=request.now,
        query=request.query,
        lexical_bound=found.lexical_bound,
        window_bound=found.window_bound,
        scorer=request.scorer,
    )


def _boosts(request: PipelineInput) -> Boosts | None:
    """What multiplies into scores, where the plan wants it or scores by priorities."""
    plan = request.plan
    if not plan.boosts and plan.fusion not in ("weighted_sum", "weighted_sum_v1"):
        return None
    priorities = {
        kind: min(section.priority, 1.0)
        for section in reversed(plan.sections)  # Where several show a kind, the first says.
        if section.order is None
        for kind in section.kinds
    }
    return Boosts(priorities=priorities, domain=request.domain, usefulness=request.usefulness)


def _always_shown(
    request: PipelineInput,
    found: SearchResult,
    section: Section,
    candidates: Sequence[Candidate],
    *,
    order: Order,
    gated: Gated,
) -> list[Ranked]:
    """What a section shows whatever the question is, in its order; first the kinds say what leads.

    Where it holds fewer than were found, those that have least to do with the question leave.
    """
    shown = list(in_order(candidates, order))
    if order is Order.IMPORTANT:
        shown.sort(key=lambda one: request.kinds.of(one.memory).place(one.memory))
    if section.items is not None and section.items > 1 and len(shown) > section.items and found.by_relevance:
        scores = {
            one.memory.ref: one.score for one in rank(shown, replace(_scoring(request, found), scorer=None))
        }
        best = sorted(shown, key=lambda one: -scores[one.memory.ref])
        stay = {one.memory.ref for one in best[: section.items]}
        shown = [*(one for one in shown if one.memory.ref in stay), *best[section.items :]]
    matching = {} if gated.unsure else {one.memory.ref: one for one in gated.passed}
    return [matching.get(one.memory.ref) or Ranked(candidate=one, score=0.0) for one in shown]


def _might_all_fit(
    request: PipelineInput, found: SearchResult, sections: Sequence[Gated], limit: int
) -> bool:
    """Whether a gate dropped some of so few memories that all of them may fit whole, and none would compete.

    All current memories have to be gathered for it. A gate that the caller requested drops all the same.
    """
    if request.plan.roll_over is not RollOver.BEST or request.gate is not None:
        return False
    if found.admitted * _SHORTEST > limit:
        return False
    if not any(len(gated.dropped) for gated in sections):
        return False
    memories = {
        memory.ref: memory.renditions.full.tokens
        for gated in sections
        for part in (gated.passed, gated.dropped)
        for memory in memories_of(part)
        if memory.version
    }
    return len(memories) >= found.admitted and sum(memories.values()) <= limit


def _split_section(
    request: PipelineInput, section: Section, gated: Gated, required: frozenset[str], late: set[str]
) -> tuple[Sequence[Ranked], Sequence[ExcludedCandidates]]:
    """What of a section may stand in the context, and what may not, each with its reason.

    What is left out, and what a subject has too many of, only leaves a section that relevance fills; what the
    context has twice leaves any. Where left-over tokens go to the best, those of a subject come late instead.
    """
    taken, dropped = gated.passed, [ExcludedCandidates(gated.dropped, Reason.NOT_RELEVANT)]
    if section.order is not None:
        return _without(request, section, taken, dropped, required) if request.left_out else (taken, dropped)
    obsolete = [memory for memory in memories_of(taken) if is_obsolete(memory)] if len(gated.dropped) else []
    heirs = [
        one
        for one in (gated.dropped if obsolete else ())
        if any(replaces(one.memory, each) for each in obsolete)
    ]
    if heirs:
        # Nobody should read a record without the one that stands in its place.
        taken = sorted([*taken, *heirs], key=lambda one: one.score, reverse=True)
        others = [one for one in gated.dropped if one not in heirs]
        dropped = [ExcludedCandidates(others, Reason.NOT_RELEVANT)]
    if request.left_out:
        taken, dropped = _without(request, section, taken, dropped, required)
    if section.alike is not None:
        fewer, over = of_each(taken, alike=section.alike, most=section.each, exempt=required)
        if request.plan.roll_over is RollOver.BEST and not section.quoted:
            late.update(one.memory.ref for one in over)
        else:
            taken = fewer
            dropped.append(ExcludedCandidates(over, Reason.ALIKE))
    return taken, dropped


def _without(
    request: PipelineInput,
    section: Section,
    taken: Sequence[Ranked],
    dropped: list[ExcludedCandidates],
    required: frozenset[str],
) -> tuple[Sequence[Ranked], list[ExcludedCandidates]]:
    out = {
        name: reason
        for name, reason in request.left_out.items()
        if name not in required and (section.order is None or reason is Reason.DUPLICATE)
    }
    more = [ExcludedCandidates((one,), out[one.memory.ref]) for one in taken if one.memory.ref in out]
    return tuple(one for one in taken if one.memory.ref not in out), [*dropped, *more]


def _fit_to(
    request: PipelineInput,
    ranked: Sequence[Sequence[Ranked]],
    required: frozenset[str],
    limit: int,
    late: Collection[str],
) -> tuple[Fitted, str, int]:
    """Fit and render until the whole text, counted as it stands, keeps within the limit; with that count.

    Tokens of parts needn't add up to the tokens of the whole. Each round takes the excess off the
    limit, so the rounds end: at the latest where only what is required is left, and there the
    budget is too small for it.
    """
    plan, how = request.plan, request.plan.kinds_first
    cost = ContentCosts if plan.counts_content else RenditionCosts if plan.counts_renditions else Costs
    costs = cost(request.counter, request.kinds, request.lines, request.passages)
    whole: Collection[str] = ()
    if required:
        strict = request.kinds.strict()
        memories = chain.from_iterable(map(memories_of, ranked))
        whole = {one.id for one in memories if one.kind in strict and strict[one.kind](one)}
    available = limit
    while True:
        try:
            fitted = fit(
                plan,
                ranked,
                available,
                costs,
                required=required,
                whole=whole,
                late=late,
                precedence=None if how is None else lambda several: in_precedence(several, how),
            )
        except BudgetTooSmall as error:
            # What the margin and the rounds before took off is needed on top.
            needed = error.needed + request.budget - available
            raise BudgetTooSmall(budget=request.budget, needed=needed, required=error.required) from None
        written = written_lines(blocks_of(fitted, costs.heading))
        tokens = costs.whole(
            written, [one.line for block in fitted.blocks for one in block.choices if one.line]
        )
        excess = tokens - limit
        if excess <= 0 or plan.counts_content:
            return fitted, "".join(written), tokens
        if available == 0:
            raise BudgetTooSmall(budget=request.budget, needed=request.budget + excess, required=())
        available = max(0, available - excess)


def _notes(
    request: PipelineInput,
    found: SearchResult,
    fitted: Fitted,
    ranked: Sequence[Sequence[Ranked]],
    *,
    unsure: bool,
) -> list[TraceNote]:
    """What a reader of the trace should know about how this context came to be."""
    notes = [*request.notes, *margin_notes(request.counter, request.budget)]
    if not found.by_relevance and request.plan.kinds_first is None:
        notes.append(RECENCY)
    if unsure:
        notes.append(LOW_CONFIDENCE)
    if request.weights is not None:
        notes.append(learned_note(request.weights))
    if fitted.lent:
        notes.append(
            TraceNote(
                code="lent",
                text=f"Required memories needed {fitted.lent} tokens beyond their sections' shares.",
            )
        )
    if request.plan.roll_over is RollOver.BEST and (displaced := displaced_turns(fitted)):
        notes.append(
            TraceNote(
                code="worth_per_token",
                text=f"Shorter turns with a lower score are whole in the place of {displaced} of more than "
                f"{WORTH_TOKENS} tokens: a turn counts by its score times ({WORTH_TOKENS} / tokens)^¼.",
            )
        )
    notes.extend(
        text_left_out(block.section.name)
        for block in fitted.blocks
        if block.section.text and not block.shows_text and any(each.choices for each in fitted.blocks)
    )
    if request.question.when is not None and request.plan.kinds_first is None:
        treated = (
            "memories of that time rank higher"
            if request.prefer
            else "only memories of that time were gathered"
        )
        named = f"The question names a time, {request.question.when}"
        notes.append(TraceNote(code="when", text=f"{named}; {treated}."))
    if request.plan.kinds_first is not None:
        # What may be out of date, what is too long, and how it was counted.
        notes += [*kinds_first_notes(ranked, work=request.work, now=request.now), *large_notes(fitted)]
        notes += [_CONTENT_COUNTED] if request.plan.counts_content else []
    return notes


def text_left_out(section: str) -> TraceNote:
    """The note that a section's own text isn't in the context."""
    return TraceNote(
        code="text_left_out", text=f"The text of section {section!r} was left out: too few tokens were left."
    )


# What a reader of a trace should know of memories that are old, moved by outcomes, or too long.

_NAMED = 5
_CONTENT_COUNTED = TraceNote(
    code="content_counted",
    text="Only the content of memories was counted, and neither headings nor what parts them: the text as "
    "it stands may be longer than the budget.",
)


def large_notes(fitted: Fitted) -> Iterator[TraceNote]:
    """A note for each section with memories that are longer than all that the section was given."""
    for block in fitted.blocks:
        given = block.share + block.flowed
        large = [one for one in block.choices if one.memory.renditions.full.tokens > given > 0]
        if large:
            choices = "; ".join(_choice_line(one) for one in large[:_NAMED])
            more = f"; and {len(large) - _NAMED} more" if len(large) > _NAMED else ""
            yield TraceNote(
                code="large",
                text=f"Longer than the {given:,} tokens of section {block.section.name!r}: {choices}{more}. "
                "Revise them to say it shorter, or split them.",
            )


def _choice_line(choice: Choice) -> str:
    memory = choice.memory
    shown = "left out" if choice.line is None else f"shown at level {choice.line.level}"
    return f"{short_id(memory.ref)} ({memory.kind}, {memory.renditions.full.tokens:,} tokens, {shown})"

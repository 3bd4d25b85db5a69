"""Settles what an assembly is for: its frame, plan and budget; finds what a question means but doesn't
say, and what a conversation says already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from germane.errors import EmbeddingFailed, InvalidInput, UnreadableSource
from germane.kinds import Kinds
from germane.model.context import Context, Reason, TraceNote
from germane.model.memory import Memory, Vector
from germane.model.plan import AUTO, Frame, FrameChoice, Plan, Section
from germane.model.query import Candidate, CandidateTable, Query, SearchResult, Slice
from germane.model.text import DEFAULT_BUDGET, DEFAULT_FRAME
from germane.model.validation import checked_text
from germane.operations.context import AgentContext
from germane.operations.inputs import Reranking, checked_count, embed_texts, is_eager
from germane.plans.frames import FRAMES, choose_frame, frame_named, with_frames
from germane.plans.intent import Complexity, Intent, IntentKind, complexity_of, read_intent
from germane.plans.layered import FRAMED, TOTAL, Past, budgeted, layered, layered_strict, plan_for
from germane.plans.scoped import ScopedPlan
from germane.protocols import FrameSelector
from germane.ranking.relevance import RERANKED
from germane.ranking.scores import is_of
from germane.ranking.signals import asks_for_history, rest_of_releases
from germane.retrieval.dates import LONGEST_QUESTION
from germane.retrieval.tokenizer import query_terms

if TYPE_CHECKING:
    from germane.operations.conversation import Conversation
    from germane.pipeline import PipelineInput

Framing: TypeAlias = str | Frame | FrameSelector
"""A frame by its name, as it is, or by who chooses it; "auto" is words, or the engine's own selector."""

_EMPTY_TEXT = {IntentKind.GREET: "A greeting", IntentKind.ACKNOWLEDGE: "An acknowledgement"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """The plan that a caller wants, in which frame, with its own words or without, and for how many tokens.

    `budget` None is the frame's total. With `guidance` "named" the frame's words are shown if tokens are free
    for them, and no note says where there isn't. Raises InvalidInput for a budget below 0.
    """

    plan: str | Plan | ScopedPlan = "layered"
    frame: Framing = DEFAULT_FRAME
    guidance: bool | str = False
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.budget is not None:
            checked_count(self.budget, name="budget")

    @classmethod
    def of(
        cls,
        plan: str | Plan | ScopedPlan,
        *,
        frame: Framing | None,
        guidance: bool | str | None,
        budget: int | None,
    ) -> Self:
        """The same from what callers may leave out: a frame that is named shows its words if it can."""
        if guidance is None:
            guidance = "named" if frame is not None and frame != AUTO else False
        frame = DEFAULT_FRAME if frame is None else frame
        return cls(plan=plan, frame=frame, guidance=guidance, budget=budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Which messages of conversations take part: those of the agents `of`, but for sessions and texts.

    `sessions` are pairs of an agent and a session; `texts` are messages that the model gets anyway. `until`
    leaves out what was written after a moment.
    """

    of: tuple[AgentContext, ...] = ()
    sessions: frozenset[tuple[str, str]] = frozenset()
    texts: frozenset[str] = field(default=frozenset(), repr=False)
    until: datetime | None = None

    def read_beside(self, session: AgentContext, *, converses: bool) -> bool:
        """Whether messages are searched: the store of the memories has some, or another store is named."""
        return bool(self.of) and (converses or self.of[0].store is not session.store)

    @classmethod
    def beside(
        cls,
        session: AgentContext,
        conversation: object = None,
        *,
        on: bool = True,
        until: datetime | None = None,
    ) -> Self:
        """All messages that an agent reads, but for those of a running conversation."""
        agent, name = getattr(conversation, "agent", None), getattr(conversation, "session", None)
        sessions = frozenset({(agent, name)}) if agent and name else frozenset[tuple[str, str]]()
        return cls(of=session.sides if on else (), sessions=sessions, until=until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """A plan with its budget, and where it was built for a frame, that frame and its domain.

    It `looks_back` if the question is about recent events and names no topic, and `searches` unless
    there is nothing to look for.
    """

    plan: Plan
    budget: int
    choice: FrameChoice | None = None
    domain: tuple[str, ...] = ()
    looks_back: bool = False
    searches: bool = True
    notes: tuple[TraceNote, ...] = ()


def frames_of(session: AgentContext) -> tuple[Frame, ...]:
    """The built-in frames, and those that the agent's engine was opened with."""
    return with_frames(session.frames) if session.frames else FRAMES


def own_frames(frames: Iterable[Frame] | str | Path) -> tuple[Frame, ...]:
    """The frames of a TOML file, or these.

    Raises UnreadableSource for a file that can't be read, and InvalidInput for what is no frame.
    """
    if isinstance(frames, str | Path):
        from germane.plans.frames import frames_from_toml  # noqa: PLC0415 - Few engines have a file.

        try:
            frames = frames_from_toml(Path(frames).read_text(encoding="utf-8"))
        except InvalidInput as error:
            raise type(error)(f"{frames}: {error}") from error
        except (OSError, ValueError) as error:
            raise UnreadableSource(f"The frames in {str(frames)!r} can't be read: {error}.") from error
    several: tuple[object, ...] = tuple(frames)
    if wrong := [each for each in several if not isinstance(each, Frame)]:
        raise InvalidInput(
            f"frames holds {wrong[0]!r}. Give germane.Frame values, or the path of a TOML file."
        )
    return tuple(each for each in several if isinstance(each, Frame))


def framed(session: AgentContext, text: str, how: PlanInput, *, dated: bool) -> Framed:
    """The plan for a text in its frame, with the requested budget, or else the frame's total.

    A text that looks back and names no topic gets what is latest. Where the frame is to be chosen, the text
    is read for more: a greeting looks for nothing, a look back lifts episodes, a hint at a kind shifts
    limits, and the question's size scales the shares; none of it in "layered_strict". `dated` says that the
    text names a time. Raises InvalidInput or InvalidPlan.
    """
    plan, budget = how.plan, how.budget
    assert not isinstance(plan, ScopedPlan)  # noqa: S101 - Such a plan goes by no text; this tells the checker.
    if plan not in FRAMED:
        chosen = plan_for(plan, kinds=session.kinds, frame=DEFAULT_FRAME)
        return Framed(plan=chosen, budget=DEFAULT_BUDGET if budget is None else budget)
    choice, notes = choice_of(session, text, how.frame)
    if plan == "layered_strict":
        chosen = layered_strict(session.kinds, choice.frame)
        total, domain = TOTAL if budget is None else budget, choice.frame.domain
        return Framed(plan=chosen, budget=total, choice=choice, domain=domain, notes=notes)
    complexity, usual = Complexity.USUAL, choice.frame.budget
    if choice.by == "caller":
        intent = wants(session, text, dated=dated) if len(text) <= LONGEST_QUESTION else None
        # Who names no topic has nothing to look for by words, whatever the frame is.
        intent = intent if intent is not None and intent.plain else None
    else:
        intent, complexity = wants(session, text, dated=dated), complexity_of(text)
        usual = budgeted(choice.frame, complexity=complexity, intent=intent).total
        taken = f"Taken for: {choice.frame.name} (by {choice.by}, confidence {choice.confidence:.2f})"
        hints = f", about {', '.join(intent.hints)}" if intent.hints else ""
        notes = (*notes, TraceNote(code="frame", text=f"{taken}; {intent.aim}{hints}; {complexity}."))
        if not intent.asks:
            what = _EMPTY_TEXT[intent.aim]
            notes = (*notes, TraceNote(code="nothing_asked", text=f"{what} names nothing to look for."))
    total = usual if budget is None else budget
    past = _past(session, text, intent, dated=dated)
    chosen = layered(
        session.kinds,
        choice.frame,
        complexity=complexity,
        intent=intent,
        guidance=bool(how.guidance),
        past=past,
        # For other questions one plan does for all budgets, so that it is found in the cache.
        total=total if past.history else None,
    )
    return Framed(
        plan=chosen,
        budget=total,
        choice=choice,
        domain=choice.frame.domain,
        looks_back=intent is not None and intent.plain,
        searches=intent is None or intent.asks,
        notes=notes,
    )


def _past(session: AgentContext, text: str, intent: Intent | None, *, dated: bool) -> Past:
    """What a text asks of the past. A time that it names says which releases are meant."""
    rest = rest_of_releases(text)
    return Past(
        history=asks_for_history(text),
        looks_back=intent is not None and intent.looks_back,
        releases=rest is not None,
        newest=rest is not None and not dated and not query_terms(rest, language=session.language),
    )


def choice_of(session: AgentContext, text: str, frame: Framing) -> tuple[FrameChoice, tuple[TraceNote, ...]]:
    """The frame for a text, and a note where a selector failed and words chose. Raises InvalidInput."""
    if isinstance(frame, Frame):
        return FrameChoice(frame=frame), ()
    if isinstance(frame, str) and frame != AUTO:
        return FrameChoice(frame=frame_named(frame, frames_of(session))), ()
    selector = session.frame_selector if isinstance(frame, str) else frame
    if not text.strip():
        return FrameChoice(
            frame=frame_named(DEFAULT_FRAME, frames_of(session)), confidence=0.0, by="words"
        ), ()
    if selector is None:
        return choose_frame(text, frames_of(session)), ()
    try:
        chosen = selector(text, frames_of(session))
        named = chosen if isinstance(chosen, Frame) else frame_named(chosen, frames_of(session))
    except Exception as error:  # noqa: BLE001 - A model may fail in any way; words choose then.
        note = TraceNote(code="frame_by_words", text=f"The frame selector failed, so words chose. {error}")
        return choose_frame(text, frames_of(session)), (note,)
    return FrameChoice(frame=named, by="model"), ()


def wants(session: AgentContext, text: str, *, dated: bool = False) -> Intent:
    """What a text wants, by words that count as informative in the agent's language."""
    return read_intent(
        text, informative=lambda rest: bool(query_terms(rest, language=session.language)), dated=dated
    )


# Finds what a question means and doesn't say, by what was found for it.
#
# A question about a cache names no database, and still the decision for the database is what one has to
# know. Where a section that the frame cares for stays empty, what is near in meaning to the memories that
# do have to do with the question takes its place: a few, and never beside better ones.

LEAST_NEARNESS = 0.3
"""The cosine from which on two memories are taken to be of one matter."""

MOST = 3
"""Memories that an empty section takes in."""

_SEEDS = 5
_HOW_TO = "procedures"
_RANKS = ("floored", "rrf")


def associated(
    session: AgentContext, request: PipelineInput, found: SearchResult, context: Context
) -> tuple[PipelineInput, SearchResult] | None:
    """The request and what was found for it with what is near; None where nothing is missing, or near.

    Only an eager embedder is used. It embeds again the memories that stand in the context
    for what they have to do with the question, five at most, and the store is queried once for what is near
    to all of them together, by the caller's filter. A procedure may be near to what is being done instead:
    to the frame and its domain.
    """
    empty = _empty(request, found, context) if request.plan.fusion in _RANKS else []
    seeds = _seeds(context) if empty and not found.failed else ()
    if not seeds or session.embedder is None or not is_eager(session.embedder):
        return None
    try:
        *vectors, doing = embed_texts(session.embedder, [*(seed.content for seed in seeds), _doing(request)])
    except EmbeddingFailed:
        return None
    how_to = [section for section in empty if section.name == _HOW_TO]
    near: dict[str, dict[str, tuple[float, Memory]]] = {section.name: {} for section in empty}
    for vector, sections in ((_together(vectors), empty), (doing, how_to)):
        if vector is not None and sections:
            _note_near(session, request, vector, sections, near)
    chosen = {name: _best(several) for name, several in near.items()}
    if not any(chosen.values()):
        return None
    named = ", ".join(name for name, several in chosen.items() if several)
    note = TraceNote(
        code="associated",
        text=f"Nothing in {named} has to do with the question itself, so what is near to the rest "
        "stands there.",
    )
    nearness = {
        memory.ref: near[name][memory.ref][0] for name, several in chosen.items() for memory in several
    }
    with_them = replace(request, associated=nearness, notes=(*request.notes, note))
    return with_them, _with(request, found, chosen)


def reranked(reranking: Reranking, request: PipelineInput, found: SearchResult) -> PipelineInput:
    """The request with the scores of the engine's reranker, or with a note why there are none."""
    plan = request.plan
    if not found.by_relevance:
        return request
    if plan.kinds_first is not None or plan.fusion != "floored":
        text = f"The plan {plan.name} has an order of its own, without the reranker {reranking.name!r}."
        return replace(request, notes=(*request.notes, TraceNote(code="not_reranked", text=text)))
    from germane.pipeline import best_ranked  # noqa: PLC0415 - Most engines have no reranker.

    scores, notes = reranking.of(
        request.question.cleaned,
        best_ranked(request, found, RERANKED),
        passages=request.passages,
        counter=request.counter,
    )
    return replace(request, reranked=scores, notes=(*request.notes, *notes))


def _together(vectors: Sequence[Vector | None]) -> Vector | None:
    """The direction that these vectors have in common, of unit length."""
    known = [vector for vector in vectors if vector is not None]
    total = np.sum(known, axis=0) if known else np.zeros(0)
    length = float(np.linalg.norm(total))
    return (total / length).astype(np.float32) if length else None


def _note_near(
    session: AgentContext,
    request: PipelineInput,
    vector: Vector,
    sections: Sequence[Section],
    near: Mapping[str, dict[str, tuple[float, Memory]]],
) -> None:
    """Note for each section what is near to the vector, where it wasn't nearer to another."""
    slices = tuple(Slice(kinds=section.kinds, also=section.admits, limit=MOST) for section in sections)
    query = Query(vector=vector, filter=request.query.filter, slices=slices, now=request.query.now)
    for section, part in zip(sections, session.store.search(session.agent, query).slices, strict=True):
        known = near[section.name]
        for one in part:
            cosine = min(one.signals.get("semantic", 0.0), 1.0)
            if cosine >= max(LEAST_NEARNESS, known.get(one.memory.id, (0.0,))[0]):
                known[one.memory.id] = cosine, one.memory


def _doing(request: PipelineInput) -> str:
    """What the frame says is being done: what a way of doing it is near to, whatever the matter."""
    choice = request.frame
    return "" if choice is None else " ".join([choice.frame.name, *choice.frame.domain])


def _empty(request: PipelineInput, found: SearchResult, context: Context) -> list[Section]:
    """The sections for which nothing is relevant although there is something of their kinds: no other could
    be near.

    One whose memories lacked tokens isn't empty in this sense, so that what is near doesn't depend on the
    budget.
    """
    shown = {use.name: use.included for use in context.trace.sections}
    gathering = [section for section in request.plan.sections if section.gathers]
    empty = [
        section
        for section, part in zip(gathering, found.slices, strict=True)
        if section.associates and part and not shown[section.name]
    ]
    return [section for section in empty if not _has_relevant(section, context)]


def _has_relevant(section: Section, context: Context) -> bool:
    """Whether anything passed the gate for a section: what did comes first among its entries."""
    start = 0
    for use in context.trace.sections:
        count = use.included + use.excluded
        if use.name == section.name:
            return count > 0 and context.trace.entries[start].reason is not Reason.NOT_RELEVANT
        start += count
    return False


def _seeds(context: Context) -> Sequence[Memory]:
    """The memories that have most to do with the question."""
    meant = {entry.memory_id for entry in context.trace.included if "semantic" in entry.parts}
    items = sorted((item for item in context.items if item.memory.ref in meant), key=lambda item: -item.score)
    return [item.memory for item in items[:_SEEDS]]


def _best(near: Mapping[str, tuple[float, Memory]]) -> list[Memory]:
    several = sorted(near.values(), key=lambda pair: (-pair[0], pair[1].ref))
    return [memory for _, memory in several[:MOST]]


def _with(
    request: PipelineInput, found: SearchResult, chosen: Mapping[str, Sequence[Memory]]
) -> SearchResult:
    """What was found, and what is near, each in its section once."""
    gathering = [section for section in request.plan.sections if section.gathers]
    slices = []
    for section, part in zip(gathering, found.slices, strict=True):
        there = {one.memory.ref for one in part}
        more = tuple(Candidate(memory=each) for each in chosen.get(section.name, ()) if each.ref not in there)
        slices.append((*part, *more))
    return replace(found, slices=tuple(slices))


# Find memories that the running conversation contains already.

CONTAINED = 0.8
"""The share of a memory's information, by its words, that one message must have to contain the memory."""

_LINES = 3
_LONGEST = 20_000


def excluding(
    found: SearchResult, pinned: frozenset[str], ids: Iterable[str]
) -> tuple[SearchResult, frozenset[str]]:
    """What was found and is pinned, as if the memories with these ids were not stored."""
    gone = frozenset(ids)
    slices, refs = [], set[str]()
    for part in found.slices:
        table = CandidateTable.of(part)
        stay = [place for place, memory in enumerate(table.memories) if memory.id not in gone]
        refs.update(memory.ref for memory in table.memories if memory.id in gone)
        slices.append(part if len(stay) == len(part) else table.at(stay))
    stored, admitted = found.stored - len(refs), found.admitted - len(refs)
    return replace(found, slices=tuple(slices), stored=stored, admitted=admitted), pinned - refs


def in_conversation(
    session: AgentContext, candidates: Iterable[Candidate], conversation: str | Conversation
) -> Mapping[str, Reason]:
    """The ids of the candidates that the conversation contains, each with that reason.

    The memory has to be contained in a message, never the other way around: a short message hides no long
    memory. Measured are the memory's distinct terms, each by its information in English, within one message,
    or within three lines of a text: words scattered over a long conversation mean nothing together. Raises
    InvalidInput for what is neither a text nor a conversation.
    """
    from germane.operations.turn_search import rarities  # noqa: PLC0415 - Most calls name no conversation.

    language = session.language
    pieces = [frozenset(query_terms(piece, language=language)) for piece in _pieces(conversation)]
    everything = frozenset[str]().union(*pieces)
    found: dict[str, Reason] = {}
    own = None if isinstance(conversation, str) else (conversation.agent, f"session:{conversation.session}")
    for candidate in candidates:
        if own is not None and (candidate.memory.agent, candidate.memory.key) == own:
            # The summary of the conversation itself.
            found[candidate.memory.ref] = Reason.IN_CONVERSATION
            continue
        terms = query_terms(candidate.memory.content[:_LONGEST], language=language)
        if not terms:
            continue
        weights = dict(zip(terms, rarities(terms, language=language, usual=1.0), strict=True))
        least = CONTAINED * sum(weights.values())
        # Few memories are contained in the whole conversation, which is checked once, and first.
        if _contained_share(weights, everything) >= least and any(
            _contained_share(weights, piece) >= least for piece in pieces
        ):
            found[candidate.memory.ref] = Reason.IN_CONVERSATION
    return found


def _pieces(conversation: str | Conversation) -> list[str]:
    from germane.operations.conversation import Conversation  # noqa: PLC0415 - As above.

    if not isinstance(conversation, str | Conversation):
        raise InvalidInput(
            f"conversation={type(conversation).__name__} can't be read. Pass the messages as one text, or "
            "what engine.conversation(...) gives."
        )
    if not isinstance(conversation, str):
        return [message.own_text for message in conversation.messages()]
    lines = [line for line in checked_text(conversation, name="conversation").splitlines() if line.strip()]
    return ["\n".join(lines[start : start + _LINES]) for start in range(max(1, len(lines) - _LINES + 1))]


def _contained_share(weights: Mapping[str, float], piece: frozenset[str]) -> float:
    return sum(weight for term, weight in weights.items() if term in piece)


# Keeps what belongs to another domain out of the sections that show only the frame's own.
#
# No store knows domains, which stand in the metadata, so more is gathered than the section's limit says and
# the best are selected.


def within_domain(
    plan: Plan, slices: Sequence[Sequence[Candidate]], domain: Collection[str], kinds: Kinds
) -> Sequence[Sequence[Candidate]]:
    """What was found for each section, and in sections of a domain nothing that names others alone.

    What names none stays, what no budget may drop, and everything where the frame has none. Of what
    relevance found there, and in any section of a plan that asks by meaning, as many stay as the section's
    limit says: the nearest in meaning, or where nothing has a vector, in words. (Turns of dialogue are found
    by the turns around them as well.)
    """
    sections = [section for section in plan.sections if section.gathers]
    return [
        _of_domain(section, candidates, domain, kinds) if plan.by_meaning or section.of_domain else candidates
        for section, candidates in zip(sections, slices, strict=True)
    ]


def _of_domain(
    section: Section, candidates: Sequence[Candidate], domain: Collection[str], kinds: Kinds
) -> tuple[Candidate, ...]:
    everywhere = not section.of_domain or not domain
    here = [one for one in candidates if everywhere or _admits(one.memory, domain, kinds)]
    if section.order is not None or len(here) <= section.limit:
        return tuple(here)
    signal = "semantic" if any("semantic" in one.signals for one in here) else "lexical"
    best = sorted(here, key=lambda one: (-one.signals.get(signal, -1.0), one.memory.ref))[: section.limit]
    return tuple(sorted(best, key=lambda one: one.memory.ref))


def _admits(memory: Memory, domain: Collection[str], kinds: Kinds) -> bool:
    named = memory.metadata.get("domain")
    return not named or is_of(memory, domain) or kinds.of(memory).requires(memory)

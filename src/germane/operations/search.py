"""recall, and the search behind it: understand a question, gather candidates, rank them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import Any, overload

from germane.errors import EmbeddingFailed, InvalidInput, NotFound
from germane.model.context import EmptyReason, Question, Ranked, TraceNote, short_id
from germane.model.learning import Weights
from germane.model.memory import Outcome, Scope, Status, Vector
from germane.model.query import (
    LEAST_COSINE,
    Candidate,
    CandidateTable,
    Filter,
    Query,
    SearchResult,
    Slice,
    TimeRange,
    read_memories,
    spaces_united,
)
from germane.model.text import DEFAULT_RANKER, cut, is_space, line_of, space_of
from germane.model.validation import as_utc, checked_tags, checked_text, checked_words
from germane.operations.context import MANY_TERMS, AgentContext, found_apart, found_with_named, unknown_kinds
from germane.operations.inputs import (
    Ranker,
    check_ranker,
    checked_count,
    checked_time,
    embed_texts,
    least_cosine_of,
    settled,
)
from germane.operations.passages import PassageSearch, by_passages
from germane.protocols import Clock, Scorer
from germane.ranking.learning import learned_note
from germane.ranking.relevance import FEW, LOW_CONFIDENCE, RERANKED, Gated, Scoring, gate, rank
from germane.ranking.scores import HYBRID_WEIGHTS, hybrid, superseded_notes
from germane.ranking.signals import identifiers_in
from germane.ranking.similarity import RECENCY, empty_reason_of, memories_of, nothing_then
from germane.retrieval.dates import parse_order, parse_when
from germane.retrieval.quality import information, least_share
from germane.retrieval.tokenizer import query_terms

_LABEL = 60
_GATHERED = 100
"""Candidates of each signal. Twice as many changed recall at 5, 10 and 20 by less than noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult(Sequence[Ranked]):
    """The answer to a recall: a sequence of ranked memories, and why it is empty if it is.

    `text` lists them within the budget that the call gave, one a line with an id that `expand` takes, and
    `tokens` counts it; without a budget there is none. `now` is the moment for which it was ranked; `weights`
    are those that the parts of the scores were multiplied by, where use has taught some. The notes name a
    ranker that the caller chose.
    """

    ranked: tuple[Ranked, ...]
    question: Question
    now: datetime
    notes: tuple[TraceNote, ...] = ()
    empty_reason: EmptyReason | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    tokens: int = 0

    def __repr__(self) -> str:
        """A line for each memory, as a prompt or a notebook shows it."""
        found = f"{len(self.ranked)} found" if self.empty_reason is None else f"none, {self.empty_reason}"
        rows = (
            f"\n  {one.score:.2f}  {short_id(one.memory.ref)}  {one.memory.kind}  "
            f"{cut(line_of(one.memory.renditions.micro.text), _LABEL)}"
            for one in self.ranked
        )
        return f"<germane.RecallResult {cut(line_of(self.question.text), _LABEL)!r}: {found}{''.join(rows)}>"

    def __len__(self) -> int:
        return len(self.ranked)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.ranked)

    @overload
    def __getitem__(self, index: int) -> Ranked: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Ranked, ...]: ...
    def __getitem__(self, index: int | slice) -> Ranked | tuple[Ranked, ...]:
        return self.ranked[index]


def recall(
    session: AgentContext,
    query: str,
    *,
    where: Filter,
    limit: int = 10,
    scorer: Scorer | None = None,
    ranker: Ranker | str = DEFAULT_RANKER,
    gated: bool = True,
    spaces: Sequence[AgentContext] = (),
    messages: Callable[[ParsedQuery, SearchResult], SearchResult] | None = None,
) -> RecallResult:
    """The best `limit` memories for a question, also of spaces. Reading changes nothing.

    With spaces nothing learned applies: what one memory's use has taught is no measure for another's;
    nor does it with another ranker. A question that names nothing is answered by the newest, whoever ranks.
    `messages` adds those that match a question. Unless `gated` is False or a scorer
    decides, what has nothing to do with the question is left out.
    """
    checked_count(limit, name="limit", least=1)
    check_ranker(ranker, scorer, session.reranking)
    now = as_utc(session.clock(), name="clock")
    parsed = understand(session, query, where, now=now)
    how: dict[str, Any] = {"now": now, "limit": limit, "scorer": scorer, "ranker": ranker, "gated": gated}
    how |= {"spaces": spaces, "messages": messages}
    try:
        return _recalled(session, replace(parsed, deferred=True), **how)
    except NotFound:
        # Something was purged before its record was read: now all are read from one snapshot.
        return _recalled(session, parsed, **how)


def _recalled(
    session: AgentContext,
    parsed: ParsedQuery,
    *,
    now: datetime,
    limit: int,
    scorer: Scorer | None,
    ranker: Ranker | str,
    gated: bool,
    spaces: Sequence[AgentContext],
    messages: Callable[[ParsedQuery, SearchResult], SearchResult] | None,
) -> RecallResult:
    slices = (Slice(limit=max(limit, _GATHERED)),)
    parsed, searched, found = gather_together(session, parsed, slices, spaces)
    found = found if messages is None else messages(parsed, found)
    named = ranker != DEFAULT_RANKER and found.by_relevance
    learns = scorer is None and found.by_relevance and not spaces and not named
    scoring = Scoring(
        now=now,
        query=searched,
        lexical_bound=found.lexical_bound,
        window_bound=found.window_bound,
        scorer=scorer,
        prefer=parsed.prefers,
        order=parsed.question.order if found.by_relevance else None,
        weights=session.weight_cache.of(session.store, session.agent, found.learning) if learns else None,
    )
    judges = gated and scorer is None and found.by_relevance
    notes: Sequence[TraceNote]
    if named:
        ranked, *notes = by_hybrid(parsed, found, searched, now=now, limit=limit)
        result = _gated(ranked, parsed, found, searched, judges=judges)
    else:
        result, notes = _ranked(session, parsed, found, scoring, judges=judges)
    read_memories(memories_of(result.passed)[:limit])
    selected = tuple(result.passed[:limit])
    return RecallResult(
        ranked=selected,
        question=parsed.question,
        now=now,
        notes=(
            *parsed.notes,
            *notes,
            *_notes(parsed, found, result, scoring.weights, selected),
        ),
        empty_reason=None if result.passed else empty_reason_of(found, [result.passed]),
        weights={} if scoring.weights is None else scoring.weights.values,
    )


def _ranked(
    session: AgentContext,
    parsed: ParsedQuery,
    found: SearchResult,
    scoring: Scoring,
    *,
    judges: bool,
) -> tuple[Gated, tuple[TraceNote, ...]]:
    """What was found in rank order, by the engine's reranker as well, and a note if that failed."""
    first = _gated(rank(found.slices[0], scoring), parsed, found, scoring.query, judges=judges)
    if session.reranking is None or not found.by_relevance:
        return first, ()
    search = passage_search(session, scoring.query, found)
    parts, notes = session.reranking.of(
        parsed.question.cleaned,
        first.passed[:RERANKED],
        passages=None if search is None else search.scores,
        counter=session.counter,
    )
    if not parts:
        return first, notes
    again = rank(found.slices[0], replace(scoring, reranked=parts))
    return _gated(again, parsed, found, scoring.query, judges=judges), notes


def _gated(
    ranked: Sequence[Ranked], parsed: ParsedQuery, found: SearchResult, query: Query, *, judges: bool
) -> Gated:
    if not judges:
        return Gated(passed=ranked)
    return gate(
        ranked,
        prefer=parsed.prefers,
        few=found.admitted <= FEW,
        information=query.information,
        least_cosine=parsed.least_cosine,
    )


def _notes(
    parsed: ParsedQuery,
    found: SearchResult,
    result: Gated,
    weights: Weights | None,
    selected: Sequence[Ranked],
) -> tuple[TraceNote, ...]:
    memories = [one.memory for one in selected]
    notes = (
        None if found.by_relevance else RECENCY,
        LOW_CONFIDENCE if result.unsure else None,
        None if weights is None else learned_note(weights),
        nothing_then(parsed.question.when or parsed.where.when, memories, None),
    )
    return (*(note for note in notes if note is not None), *superseded_notes(memories))


# Understand a question: its time, its terms, its vector; and which memories may answer it.

_EVERY, _USUAL = Filter(), Filter(without=(Outcome.ABANDONED,))
"""What a call admits that names no filter, with what was abandoned and without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A question with what is needed to search for its answer.

    `informative` are the terms of the question without the time that it names, `least_cosine` what its
    embedder calls near. `deferred` allows stores to leave records unread.
    """

    question: Question
    vector: Vector | None
    where: Filter
    informative: tuple[str, ...] = ()
    notes: tuple[TraceNote, ...] = ()
    language: str | None = None
    least_cosine: float = LEAST_COSINE
    now: datetime | None = None
    deferred: bool = False

    @property
    def prefers(self) -> TimeRange | None:
        """The time whose memories rank higher: the one that the question names beside other words."""
        return self.question.when if self.question.terms else None


def understand(session: AgentContext, text: str, where: Filter, *, now: datetime) -> ParsedQuery:
    """Read a question. A time that the caller gave stands; otherwise the one that the question names.

    A time beside other words is a preference: people misdate things, and a text that tells of May
    may have been written in June. Its words stay among the terms, since texts name dates too. A
    time alone ("last week?") is all there is to go by, and restricts what is found. An embedder
    that fails costs the question its semantic side, and a note says so.
    """
    text = checked_text(text, name="query")
    cleaned, when = (text, None) if where.when is not None else parse_when(text, now=now)
    informative = query_terms(cleaned, language=session.language)
    terms = informative
    if informative and cleaned != text:
        terms = query_terms(text, language=session.language)
    order = parse_order(cleaned) if session.language == "english" else None
    question = Question(text=text, cleaned=cleaned, terms=terms, when=when, order=order)
    notes: tuple[TraceNote, ...] = ()
    vector: Vector | None = None
    if informative:
        try:
            vector = embed_texts(session.embedder, [cleaned])[0]
        except EmbeddingFailed as error:
            notes = (TraceNote(code="embedding_failed", text=f"Ranked by words alone. {error}"),)
        if session.set_aside:
            text = f"Ranked by words alone: {session.set_aside}"
            notes = (TraceNote(code="embedder_set_aside", text=text),)
    elif when is not None:
        where = _at(where, when)
    return ParsedQuery(
        question=question,
        vector=vector,
        where=where,
        informative=informative,
        notes=notes,
        language=session.language,
        least_cosine=least_cosine_of(session.embedder),
        now=now,
    )


def of_no_topic(parsed: ParsedQuery) -> ParsedQuery:
    """The same for a question whose words name nothing to look for, but for the time that it may name."""
    when = parsed.question.when
    return replace(
        parsed,
        question=replace(parsed.question, cleaned="", terms=(), order=None),
        vector=None,
        informative=(),
        where=parsed.where if when is None else _at(parsed.where, when),
    )


def search(session: AgentContext, parsed: ParsedQuery, query: Query) -> SearchResult:
    """Ask the store, for memories of the time that the question prefers as well, in one search.

    What matches best at any time could otherwise crowd out all that matches at the right one.
    """
    preferred, slices = parsed.prefers, query.slices
    gathered = found_apart if len(query.terms) < MANY_TERMS else found_with_named
    if preferred is None:
        found = gathered(session.store, session.agent, query)
        return by_passages(passage_search(session, query, found), found)
    narrow = [
        replace(part, where=_at(part.where or parsed.where, preferred))
        for part in slices
        if part.order is None
    ]
    found = gathered(session.store, session.agent, replace(query, slices=(*slices, *narrow)))
    more = iter(found.slices[len(slices) :])
    united = tuple(
        CandidateTable.united((candidates, next(more))) if part.order is None else candidates
        for part, candidates in zip(slices, found.slices, strict=False)
    )
    if any(one.is_dated for part in united for one in CandidateTable.of(part).memories):
        united = _with_former(session, query, united, preferred)
    # Where only the search for that time failed, the one for any time stands.
    failed = {place: error for place, error in found.failed.items() if place < len(slices)}
    found = replace(found, slices=united, failed=failed)
    return by_passages(passage_search(session, query, found), found)


def _with_former(
    session: AgentContext, query: Query, slices: tuple[Sequence[Candidate], ...], time: TimeRange
) -> tuple[Sequence[Candidate], ...]:
    """The candidates of each slice, and the former versions that were valid in the time that is preferred."""
    ranked = [place for place, part in enumerate(query.slices) if part.order is None]
    dated = tuple(
        replace(part, where=replace(part.where or query.filter, statuses=(Status.SUPERSEDED,), valid_at=time))
        for part in map(query.slices.__getitem__, ranked)
    )
    found = found_apart(session.store, session.agent, replace(query, slices=dated))
    united = list(slices)
    for place, part in zip(ranked, found.slices, strict=True):
        # What has no end was replaced for another reason than that its time was over.
        former = [one for one in part if one.memory.valid_until is not None]
        united[place] = CandidateTable.united((united[place], former))
    return tuple(united)


def passage_search(session: AgentContext, query: Query, found: SearchResult) -> PassageSearch | None:
    """The search of a query in the passages of long memories.

    None for one that has neither a word that a memory has nor a vector. Only an `instant` embedder makes
    vectors of passages; else their words decide.
    """
    instant = session.embedder if getattr(session.embedder, "instant", False) else None
    vector = None if instant is None else query.vector
    if not found.by_relevance or (vector is None and not found.term_weights):
        return None
    return PassageSearch(
        cache=session.passages,
        language=session.language,
        embedder=instant,
        vector=vector,
        weights=found.term_weights,
        average=found.average_terms,
    )


def _at(where: Filter, when: TimeRange) -> Filter:
    """The filter for a time that the question names, which asks for what is archived as well."""
    return replace(where, when=when, statuses=tuple(dict.fromkeys((*where.statuses, Status.ARCHIVED))))


def filter_of(
    clock: Clock,
    *,
    kinds: Iterable[str] = (),
    tags: Iterable[str] = (),
    scopes: Iterable[Scope | str] = (),
    subject: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    min_importance: float | None = None,
    include_superseded: bool = False,
    include_archived: bool = False,
    include_abandoned: bool = False,
    where: Filter | str | Mapping[str, Any] | None = None,
) -> Filter:
    """A filter from the forms that callers use, each in the place of what `where` says of it.

    A time that is a text is read by the clock. Whoever asks for a time asks for what is archived as well.
    Raises InvalidInput.
    """
    base = (
        (_EVERY if include_abandoned else _USUAL)
        if where is None
        else settled(where if isinstance(where, Filter) else Filter.of(where), clock)
    )
    if isinstance(scopes, str):
        raise InvalidInput(f"scopes={scopes!r} is one value; pass a sequence, such as ({scopes!r},).")
    when = None
    if since is not None or until is not None:
        when = TimeRange(
            since=None if since is None else checked_time(since, name="since", clock=clock),
            until=None if until is None else checked_time(until, name="until", clock=clock),
        )
    more = [
        *([Status.SUPERSEDED] if include_superseded else []),
        *([Status.ARCHIVED] if include_archived or (when or base.when) is not None else []),
    ]
    lacks = not include_abandoned and Outcome.ABANDONED not in base.without
    given = {
        "kinds": () if kinds == () else checked_words(kinds, name="kinds"),
        "tags": () if tags == () else checked_tags(tags),
        "scopes": tuple(Scope.parse(scope) for scope in scopes),
        "subject": None if subject is None else checked_text(subject, name="subject"),
        "when": when,
        "min_importance": min_importance,
        # No status is every status.
        "statuses": tuple(dict.fromkeys((*base.statuses, *more))) if more and base.statuses else (),
        "without": (*base.without, Outcome.ABANDONED) if lacks else (),
    }
    # A filter checks each of its fields, and most calls name none.
    changes: dict[str, Any] = {name: value for name, value in given.items() if value not in (None, ())}
    made = replace(base, **changes) if changes else base
    return made if made.statuses and Status.FORGOTTEN not in made.statuses else _shown_alone(made)


def _shown_alone(where: Filter) -> Filter:
    """The filter without what is in quarantine, which only an explicit release shows."""
    from germane.filters import And, Comparison, Condition, Not  # noqa: PLC0415 - Few ask for what is forgotten.
    from germane.provenance import QUARANTINE  # noqa: PLC0415 - As above.

    shown = Not(Comparison(QUARANTINE, "exists"))
    if isinstance(where.where, Condition):
        return replace(where, where=And((where.where, shown)))
    return replace(where, where=shown)


def query_of(parsed: ParsedQuery, slices: tuple[Slice, ...]) -> Query:
    """The store's query for a question."""
    named, language = identifiers_in(parsed.question.cleaned), parsed.language or "english"
    return Query(
        text=parsed.question.cleaned,
        terms=parsed.question.terms,
        informative=parsed.informative,
        information=information(parsed.informative),
        named_share=least_share(named, parsed.informative, language=language) if named else 0.0,
        vector=parsed.vector,
        filter=parsed.where,
        slices=slices,
        language=parsed.language,
        least_cosine=parsed.least_cosine,
        now=parsed.now,
        deferred=parsed.deferred,
    )


# Gathers from an agent's own memory and from spaces it is in, so that one ranking judges them all.


def entered_spaces(session: AgentContext, names: Sequence[str]) -> tuple[AgentContext, ...]:
    """What an agent reads besides its own: for one of its users the agent itself, and these spaces.

    Raises UnknownSpace or InvalidInput.
    """
    beside = () if session.base is None else (session.base,)
    if not names:
        return beside
    from germane.operations.spaces import entered  # noqa: PLC0415 - Most calls name no space.

    return *beside, *(entered(session, name) for name in dict.fromkeys(checked_words(names, name="spaces")))


def gather_together(
    session: AgentContext,
    parsed: ParsedQuery,
    slices: tuple[Slice, ...],
    spaces: Sequence[AgentContext],
) -> tuple[ParsedQuery, Query, SearchResult]:
    """What a search finds in the agent's own memory and in spaces, the question with a note of it, and the
    query of the agent's own memory.

    A memory that stands in several of them is taken from the first: the agent's own, then the spaces in
    the order given. The searches see a snapshot each. A note tells
    of a kind that none of them knows. Raises NotAllowed for a space that the agent isn't in.
    """
    if parsed.where.kinds:
        notes = unknown_kinds((session, *spaces), parsed.where)
        parsed = replace(parsed, notes=(*parsed.notes, *notes))
    query = query_of(parsed, slices)
    own = search(session, parsed, query)
    if not spaces:
        return parsed, query, own
    others = [(space, _in_language(parsed, space.language)) for space in spaces]
    queries = [query_of(each, slices) for _, each in others]
    found = [own, *(search(*one, sought) for one, sought in zip(others, queries, strict=True))]
    # In another language the words of an identifier may be another share of the question.
    query = replace(query, named_share=min(one.named_share for one in (query, *queries)))
    names = ", ".join(space_of(one.agent) for one in spaces if is_space(one.agent))
    text = f"Gathered from the agent's own memory and from the spaces {names}."
    notes = (TraceNote(code="spaces", text=text),) if names else ()
    if any(one.by_relevance for one in found):
        # Where a language knows none of the words, the newest of a memory would pass for its best.
        ordered = [part.order is not None for part in slices]
        for place, one in enumerate(found):
            if not one.by_relevance:
                parts = zip(ordered, one.slices, strict=True)
                rest = tuple(candidates if orders else () for orders, candidates in parts)
                found[place] = replace(one, slices=rest, by_relevance=True)
    return replace(parsed, notes=(*parsed.notes, *notes)), query, spaces_united(found)


def _in_language(parsed: ParsedQuery, language: str) -> ParsedQuery:
    """The same question in the terms of another index."""
    if language == parsed.language:
        return parsed
    informative = query_terms(parsed.question.cleaned, language=language)
    terms = query_terms(parsed.question.text, language=language) if informative else ()
    question = replace(parsed.question, terms=terms)
    return replace(parsed, question=question, informative=informative, language=language)


# The rankers that a recall can name.

_WIDER = 3
"""How many times as many as are wanted stay to be scored, as in the design that it comes from."""
_BETWEEN = re.compile(r"[\W_]+")


def by_hybrid(
    parsed: ParsedQuery, found: SearchResult, sought: Query, *, now: datetime, limit: int
) -> tuple[tuple[Ranked, ...], TraceNote]:
    """What a search found by `germane.ranking.scores`, three times the limit at most, and a note of it."""
    (candidates,) = found.slices
    named = query_tags(parsed, (tag for one in candidates for tag in one.memory.tags))
    wanted = sorted({*parsed.where.tags, *named})
    ranked = hybrid(
        candidates,
        query=sought,
        now=now,
        tags=wanted,
        keep=_WIDER * limit,
        lexical_bound=found.lexical_bound,
    )
    weighed = ", ".join(f"{name} {weight:g}" for name, weight in HYBRID_WEIGHTS.items())
    text = f"Ranked by the ranker hybrid, from 0 to 10: {weighed}. "
    text += f"Tags requested: {', '.join(wanted)}." if wanted else "No tag was requested."
    if parsed.prefers is not None:
        text += " The time that the question names doesn't count."
    return ranked, TraceNote(code="ranker", text=text)


def query_tags(parsed: ParsedQuery, tags: Iterable[str]) -> frozenset[str]:
    """Those of the tags, and of what is above them, that the question names by all words of the last part.

    "Which database is it, Postgres?" names `tech:database` of the tag `tech:database:redis`, and so do the
    words of another form, by their stems. A part without any word of its own is named by nothing.
    """
    terms = set(parsed.question.terms)
    language = parsed.language or "english"
    found = set()
    for level in {each for tag in set(tags) for each in accumulate(tag.split(":"), lambda a, b: f"{a}:{b}")}:
        # Without its punctuation a word of several parts is its parts, and none of them is the whole.
        named = query_terms(_BETWEEN.sub(" ", level.rpartition(":")[2]), language=language)
        if named and terms.issuperset(named):
            found.add(level)
    return frozenset(found)

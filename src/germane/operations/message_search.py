"""Messages of earlier conversations as candidates of a recall and of a context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np
from numpy.typing import NDArray

from germane.conversation.views import Tiers
from germane.errors import StoreError
from germane.kinds import MESSAGE
from germane.model.conditions import Comparison
from germane.model.context import Context, Reason
from germane.model.conversation import Message, MessageRole, TextPart
from germane.model.memory import Memory, Rendition, Renditions, Status, Trust
from germane.model.plan import Plan
from germane.model.query import (
    Candidate,
    CandidateTable,
    Filter,
    Order,
    Query,
    SearchResult,
    Slice,
    TimeRange,
    joined_results,
)
from germane.model.text import is_space, own_text
from germane.operations.context import AgentContext
from germane.operations.frame import MessageFilter
from germane.operations.passages import by_passages
from germane.operations.search import ParsedQuery, passage_search, query_of
from germane.operations.turn_search import memory_of, outside_alone, turn_vectors
from germane.plans.layered import EARLIER, with_messages
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import CONVERSATIONS
from germane.stores.relational.conversation_log import PastTurns

_GATHERED = 100
"""Turns of each signal, as many as `recall` gathers of memories."""
_LATEST = 20
"""Turns of a question that names no topic."""
_NEAR = 2
"""Messages to each side of a turn that matches: an answer often has no word of the question."""
_MOST_KNOWN = 20_000
"""Candidates that are remembered between calls."""
_TELLING = 2
"""Terms of a query beside a name that say what it is about."""
_COVERED = 1 / 3
"""The share of these terms that a fact beside messages has at least."""
_SOURCE = "conversation:"
"""Begins the source of a memory that was learned from a message: `conversation:SESSION#MESSAGE`."""
_TRUSTS = tuple(Trust)
_TRUST = {MessageRole.USER: Trust.OWNER, MessageRole.ASSISTANT: Trust.AGENT}
_TOGETHER = 200
"""Messages whose facts are read at once."""
_ROUNDS = 4
"""How often a context is made again without messages that a memory in it contains; mostly once is enough."""


def admits_messages(where: Filter) -> bool:
    """Whether a filter can admit messages, of which nothing is known but their text, kind and time."""
    plain = Filter(kinds=where.kinds, when=where.when, statuses=where.statuses, without=where.without)
    return where == plain and (not where.kinds or MESSAGE in where.kinds)


def found_messages(
    session: AgentContext,
    parsed: ParsedQuery,
    among: MessageFilter,
    *,
    latest: bool = False,
    gated: bool = True,
) -> SearchResult | None:
    """The messages that match a question, in one slice; None where no conversation is stored.

    A question without any word to look for finds the latest if `latest` says so, else none. Unless `gated` is
    False, only turns that match by themselves, and those next to one in the same session, are candidates.
    """
    query = query_of(parsed, (Slice(limit=_GATHERED),))
    if not query.informative:
        if not latest:
            return None
        query = replace(query, terms=(), vector=None, slices=(Slice(limit=_LATEST, order=Order.NEWEST),))
    found = [part for one in among.of if (part := _found(one, query, parsed, among)) is not None]
    if not found:
        return None
    several = [by_passages(passage_search(session, query, one), one) for one in found]
    if gated and query.informative:
        several = [_gated(one, query) for one in several]
    # Who appends a question before asking it knows what it says. What is suspicious is never shown.
    return _without_texts(joined_results(several), among.texts | {parsed.question.text.strip()})


def _found(
    session: AgentContext, query: Query, parsed: ParsedQuery, among: MessageFilter
) -> SearchResult | None:
    log = None if is_space(session.agent) else CONVERSATIONS.of(session.store)
    if log is None:
        return None
    embedder, vectors = session.embedder, None
    if query.vector is not None and embedder is not None:
        vectors = turn_vectors(embedder)
    if len(session.heard) > _MOST_KNOWN:
        session.heard.clear()
    past = PastTurns(
        make=partial(candidate_of, session),
        known=session.heard,
        without=frozenset(name for agent, name in among.sessions if agent == session.agent),
        when=_by(parsed.where.when, among.until),
        vectors=vectors,
    )
    return log.search_all(session.agent, query, past)


def _by(when: TimeRange | None, until: datetime | None) -> TimeRange | None:
    """The part of a time up to a moment, itself included."""
    if until is None:
        return when
    end = until + timedelta(microseconds=1)
    since, ends = (None, None) if when is None else (when.start, when.end)
    return TimeRange(since=since, until=end if ends is None else min(ends, end))


def candidate_of(session: AgentContext, turn: Sequence[Message], part: int, names: bool) -> Memory:
    """A turn of a conversation as what is ranked and shown, see `memory_of`, in one part of its session.

    What came from memory isn't in its text.
    """
    own = []
    for message in turn:
        parts = tuple(
            replace(part, text=own_text(part.text)) if isinstance(part, TextPart) else part
            for part in message.parts
            if not (isinstance(part, TextPart) and part.recalled)
        )
        own.append(message.evolve(parts=parts))

    def whole(text: str) -> Renditions:
        # Packing makes excerpts by the question, so that no shorter text is needed.
        full = Rendition(text=text, tokens=session.counter.count(text))
        return Renditions(micro=full, summary=full, full=full, counter=session.counter.name)

    first = turn[0]
    within = f"{first.session} {part + 1}" if part else first.session
    made = memory_of(own, within, names=names, tiers=Tiers(), renditions=whole)
    metadata = {"session": first.session, **made.metadata, "seq": first.seq}
    trust = max((_trust_of(message) for message in turn), key=_TRUSTS.index)
    return made.evolve(version=0, content_hash=first.id, metadata=metadata, trust=trust)


def _trust_of(message: Message) -> Trust:
    """A result of a tool can be any text of the world, in whichever message a provider puts it."""
    return Trust.EXTERNAL if message.results else _TRUST.get(message.role, Trust.EXTERNAL)


def _gated(found: SearchResult, query: Query) -> SearchResult:
    """What was found without turns that neither match by themselves nor stand next to one that does."""
    table = CandidateTable.of(found.slices[0])
    if not len(table):
        return found
    out = outside_alone(table, query)
    near = _next_to(table.memories, ~out)
    return replace(found, slices=(table.at(np.flatnonzero(~out | near).tolist()),))


def _next_to(memories: Sequence[Memory], passed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which memories are at most a few messages from one that passed."""
    places = {_place(memories[place]) for place in np.flatnonzero(passed).tolist()}
    return np.array(
        [
            any((session, seq + step) in places for step in range(-_NEAR, _NEAR + 1))
            for session, seq in map(_place, memories)
        ],
        dtype=np.bool_,
    )


def _place(memory: Memory) -> tuple[str, int]:
    return f"{memory.agent}\n{memory.scope.value}", int(memory.metadata["seq"])


def _without_texts(found: SearchResult, texts: frozenset[str]) -> SearchResult:
    table = CandidateTable.of(found.slices[0])
    left = [
        place
        for place, one in enumerate(table.memories)
        # As it is shown, and without the role before it.
        if texts.isdisjoint((one.content, one.content.partition(": ")[2])) and not _is_suspicious(one)
    ]
    return replace(found, slices=(table.at(left),))


def _is_suspicious(turn: Memory) -> bool:
    """Whether a turn has a secret, or is external and looks like an instruction to a model."""
    from germane.retrieval.suspicion import findings_of, secrets_in  # noqa: PLC0415 - Only for conversations.

    return bool(findings_of(turn.content) if turn.trust is Trust.EXTERNAL else secrets_in(turn.content))


def gathered_messages(
    session: AgentContext,
    parsed: ParsedQuery,
    plan: Plan,
    found: SearchResult,
    among: MessageFilter,
    *,
    latest: bool,
    gated: bool,
) -> tuple[Plan, SearchResult]:
    """The plan with a section of messages, and what was found with them; both as given where there are none.

    The layered plan gets the section, and another plan shows messages if it has one of that name.
    """
    place = next((number for number, one in enumerate(plan.sections) if one.name == EARLIER), None)
    if (place is None and plan.name != "layered") or not admits_messages(parsed.where):
        return plan, found
    messages: SearchResult | None = None
    failed: StoreError | None = None
    try:
        messages = found_messages(session, parsed, among, latest=latest, gated=gated)
    except StoreError as error:
        # Memories are shown all the same, and a note says what is missing.
        failed = error
    if failed is None and (messages is None or not len(messages.slices[0])):
        return plan, found
    if place is None:
        plan = with_messages(plan)
        place = next(number for number, one in enumerate(plan.sections) if one.name == EARLIER)
        slices = list(found.slices)
        ordinal = sum(one.gathers for one in plan.sections[:place])
        slices.insert(ordinal, ())
        # The errors are those of slices by their numbers.
        failures = {number + (number >= ordinal): error for number, error in found.failed.items()}
        found = replace(found, slices=tuple(slices), failed=failures)
    ordinal = sum(one.gathers for one in plan.sections[:place])
    if messages is None:
        return plan, found if failed is None else replace(found, failed={**found.failed, ordinal: failed})
    empty: list[Sequence[Candidate]] = [()] * len(found.slices)
    quoting = [
        number for number, one in enumerate(each for each in plan.sections if each.gathers) if one.quoted
    ]
    table = CandidateTable.of(messages.slices[0])
    outside = [memory.trust is Trust.EXTERNAL for memory in table.memories] if quoting else []
    if any(outside):
        empty[quoting[0]] = table.at([place for place, is_outside in enumerate(outside) if is_outside])
        table = table.at([place for place, is_outside in enumerate(outside) if not is_outside])
    empty[ordinal] = table
    if messages.by_relevance and not found.by_relevance:
        # The newest memories would pass for the best.
        sections = [one for one in plan.sections if one.gathers]
        slices = [() if one.order is None else part for one, part in zip(sections, found.slices, strict=True)]
        found = replace(found, slices=tuple(slices), by_relevance=True)
    return plan, _together(found, replace(messages, slices=tuple(empty)))


def recalling(
    session: AgentContext, *, gated: bool, until: datetime | None = None
) -> Callable[[ParsedQuery, SearchResult], SearchResult]:
    """What adds to the results of a recall the messages that match, written by a moment if one is given."""
    return partial(recalled_messages, session, gated=gated, until=until)


def recalled_messages(
    session: AgentContext,
    parsed: ParsedQuery,
    found: SearchResult,
    *,
    gated: bool,
    until: datetime | None = None,
) -> SearchResult:
    """What a recall found, with the messages that match."""
    # A copy of the memories of then has no conversation.
    if not ((found.converses or until is not None) and admits_messages(parsed.where)):
        return found
    among = MessageFilter.beside(session, until=until)
    messages = found_messages(session, parsed, among, latest=True, gated=gated)
    if messages is None or not len(messages.slices[0]):
        return found
    return _together(found, messages)


def _together(found: SearchResult, messages: SearchResult) -> SearchResult:
    joined = joined_results([found, messages])
    if found.stored:
        # The gate, and whether all memories may fit, go by how many memories there are.
        joined = replace(joined, stored=found.stored, admitted=found.admitted)
    return replace(joined, learning=found.learning, failed=found.failed)


def without_doubled(
    session: AgentContext, context: Context, remade: Callable[[Mapping[str, Reason]], Context]
) -> Context:
    """The context without what its messages make needless, and without messages that a memory in it contains.

    `remade` makes it without some memories.
    """
    out: dict[str, Reason] = {}
    for _ in range(_ROUNDS):
        needless = _needless(session, context)
        if not needless:
            break
        out |= needless
        context = remade(out)
    return context


def _needless(session: AgentContext, context: Context) -> dict[str, Reason]:
    """What a context with messages needs no more, by its id, with the reason.

    A message is needless where a memory has all its words, or where what it states was superseded since.
    Else a fact that was learned from it is, unless it is pinned: the message says more. And of a subject
    whose name is in the query every fact shares the name, which shows nothing: beside messages a learned
    fact needs more of the query's words.
    """
    messages = [item for item in context.items if item.memory.is_message]
    if not messages:
        return {}
    terms_of = partial(query_terms, language=session.language)
    others = [
        (item.memory, frozenset(terms_of(item.text))) for item in context.items if not item.memory.is_message
    ]
    found = _outdated(session, context)
    stated: dict[str, list[frozenset[str]]] = {}
    for item in messages:
        terms = frozenset(terms_of(_words(item.memory)))
        if item.memory.ref in found:
            continue
        if terms and any(terms <= shown for _, shown in others):
            found[item.memory.ref] = Reason.DUPLICATE
        elif item.memory.scope is not None:
            stated.setdefault(item.memory.scope.value, []).append(frozenset(terms_of(item.text)))
    wanted = frozenset(context.trace.question.terms)
    for memory, _ in others:
        if memory.pinned or memory.kind != "fact" or not (memory.source or "").startswith(_SOURCE):
            continue
        name = frozenset(terms_of(memory.subject or ""))
        own = frozenset(terms_of(memory.content)) - name - {"user"}
        spoken_in = (memory.source or "").removeprefix(_SOURCE).rpartition("#")[0]
        telling = wanted - name
        if own and any(own <= terms for terms in stated.get(spoken_in, ())):
            found[memory.ref] = Reason.DUPLICATE
        elif name & wanted and len(telling) >= _TELLING and len(telling & own) < _COVERED * len(telling):
            found[memory.ref] = Reason.NOT_RELEVANT
    return found


def _outdated(session: AgentContext, context: Context) -> dict[str, Reason]:
    """The messages of a context that state a superseded fact and little else, by their ids.

    A question about the time when the fact was true finds the fact.
    """
    stated: dict[tuple[str, str], Memory] = {}
    for item in context.items:
        if (one := item.memory).is_message:
            stated[one.agent, f"{_SOURCE}{one.metadata['session']}#{one.id}"] = one
    terms_of = partial(query_terms, language=session.language)
    found: dict[str, Reason] = {}
    sources = sorted(stated)
    for start in range(0, len(sources), _TOGETHER):
        several = sources[start : start + _TOGETHER]
        condition = Comparison("source", "in", tuple(source for _, source in several))
        where = Filter(statuses=(Status.SUPERSEDED,), where=condition)
        for agent in sorted({agent for agent, _ in several}):
            for fact in session.store.find(agent, where):
                if (message := stated.get((agent, fact.source or ""))) is None:
                    continue  # Another agent's session has the same name.
                terms = frozenset(terms_of(_words(message)))
                if terms and 2 * len(terms & frozenset(terms_of(fact.content))) >= len(terms):
                    found[message.ref] = Reason.OUTDATED
    return found


def _words(message: Memory) -> str:
    """What a message says, without who says it."""
    return message.content.partition(": ")[2]

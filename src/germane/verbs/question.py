"""Understand a question: its time, its terms, its vector; and which memories may answer it.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from germane.errors import EmbeddingFailed, InvalidInput
from germane.model.memory import Outcome, Status
from germane.model.picking import Pick
from germane.model.query import LEAST_COSINE, Candidate, Filter, Found, Query, Slice, TimeRange
from germane.model.scope import Scope
from germane.model.trace import Note, Question
from germane.model.vector import Vector
from germane.protocols import Clock
from germane.retrieval.informative import information
from germane.retrieval.ordering import parse_order
from germane.retrieval.terms import query_terms
from germane.retrieval.when import parse_when
from germane.verbs.checks import (
    checked_filter,
    checked_number,
    checked_tags,
    checked_text,
    checked_time,
    checked_words,
    settled,
)
from germane.verbs.embed import embed_texts, least_cosine_of
from germane.verbs.isolating import found_apart
from germane.verbs.session import Session

__all__ = ["Asked", "filter_of", "of_no_topic", "query_of", "search", "understand"]


_NO_FILTER = Filter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with what is needed to search for its answer.

    `informative` are the terms of the question without the time that it names, `least_cosine` what its
    embedder calls near.
    """

    question: Question
    vector: Vector | None
    where: Filter
    informative: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    language: str | None = None
    least_cosine: float = LEAST_COSINE

    @property
    def prefers(self) -> TimeRange | None:
        """The time whose memories rank higher: the one that the question names beside other words."""
        return self.question.when if self.question.terms else None


def understand(session: Session, text: str, where: Filter, *, now: datetime) -> Asked:
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
    notes: tuple[Note, ...] = ()
    vector: Vector | None = None
    if informative:
        try:
            vector = embed_texts(session.embedder, [cleaned])[0]
        except EmbeddingFailed as error:
            notes = (Note(code="embedding_failed", text=f"Ranked by words alone. {error}"),)
        if session.set_aside:
            notes = (_set_aside(session.set_aside),)
    elif when is not None:
        where = _at(where, when)
    return Asked(
        question=question,
        vector=vector,
        where=where,
        informative=informative,
        notes=notes,
        language=session.language,
        least_cosine=least_cosine_of(session.embedder),
    )


def of_no_topic(asked: Asked) -> Asked:
    """The same for a question whose words name nothing to look for, but for the time that it may name."""
    when = asked.question.when
    return replace(
        asked,
        question=replace(asked.question, cleaned="", terms=(), order=None),
        vector=None,
        informative=(),
        where=asked.where if when is None else _at(asked.where, when),
    )


def _set_aside(model: str) -> Note:
    return Note(
        code="embedder_set_aside",
        text=f"Ranked by words alone: the vectors in this store were made by {model}. "
        "Open it with that embedder to rank by meaning as well, "
        "or let another make them anew: `germane reembed`.",
    )


def search(session: Session, asked: Asked, slices: tuple[Slice, ...], *, pick: Pick | None = None) -> Found:
    """Ask the store, for memories of the time that the question prefers as well, in one search.

    What matches best at any time could otherwise crowd out all that matches at the right one.
    """
    preferred = asked.prefers
    if preferred is None:
        return found_apart(session.store, session.agent, query_of(asked, slices, pick=pick))
    narrow = [
        replace(part, where=_at(part.where or asked.where, preferred))
        for part in slices
        if part.order is None
    ]
    found = found_apart(session.store, session.agent, query_of(asked, (*slices, *narrow), pick=pick))
    if found.picked:
        return found
    more = iter(found.slices[len(slices) :])
    united = tuple(
        _united(candidates, next(more)) if part.order is None else candidates
        for part, candidates in zip(slices, found.slices, strict=False)
    )
    # Where only the search for that time failed, the one for any time stands.
    failed = {place: error for place, error in found.failed.items() if place < len(slices)}
    return replace(found, slices=united, failed=failed)


def _at(where: Filter, when: TimeRange) -> Filter:
    """The filter for a time that the question names, which asks for what is archived as well."""
    return replace(where, when=when, statuses=tuple(dict.fromkeys((*where.statuses, Status.ARCHIVED))))


def _united(one: Sequence[Candidate], other: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Both, each memory once, in the order of their ids."""
    by_id = {candidate.memory.ref: candidate for candidate in (*one, *other)}
    return tuple(by_id[memory_id] for memory_id in sorted(by_id))


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
    where: Filter | None = None,
) -> Filter:
    """A filter from the forms that callers use, each in the place of what `where` says of it.

    A time that is a text is read by the clock. Whoever asks for a time asks for what is archived as well.
    Raises InvalidInput.
    """
    base = _NO_FILTER if where is None else settled(checked_filter(where), clock)
    when = None
    if since is not None or until is not None:
        when = TimeRange(
            since=None if since is None else checked_time(since, name="since", clock=clock),
            until=None if until is None else checked_time(until, name="until", clock=clock),
        )
    if min_importance is not None:
        checked_number(min_importance, 0, 10, name="min_importance")
    when = when or base.when
    statuses = [*base.statuses]
    # No status is every status.
    statuses += [Status.SUPERSEDED] if include_superseded and statuses else []
    statuses += [Status.ARCHIVED] if (include_archived or when is not None) and statuses else []
    return replace(
        base,
        kinds=checked_words(kinds, name="kinds") or base.kinds,
        tags=checked_tags(tags) or base.tags,
        scopes=_scopes(scopes) or base.scopes,
        subject=base.subject if subject is None else checked_text(subject, name="subject"),
        when=when,
        min_importance=base.min_importance if min_importance is None else min_importance,
        statuses=tuple(dict.fromkeys(statuses)),
        without=base.without
        if include_abandoned
        else tuple(dict.fromkeys((*base.without, Outcome.ABANDONED))),
    )


def _scopes(scopes: Iterable[Scope | str]) -> tuple[Scope, ...]:
    if isinstance(scopes, str):
        raise InvalidInput(f"scopes={scopes!r} is one value; pass a sequence, such as ({scopes!r},).")
    return tuple(Scope.parse(scope) for scope in scopes)


def query_of(asked: Asked, slices: tuple[Slice, ...], *, pick: Pick | None = None) -> Query:
    """What the store is asked."""
    return Query(
        text=asked.question.cleaned,
        terms=asked.question.terms,
        informative=asked.informative,
        information=information(asked.informative),
        vector=asked.vector,
        filter=asked.where,
        slices=slices,
        language=asked.language,
        least_cosine=asked.least_cosine,
        pick=pick,
    )

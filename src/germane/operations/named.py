"""Searches a store, and gathers what a long question names although its other words bring other memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from germane.model.query import Candidate, Query, SearchResult, Slice
from germane.operations.context import AgentContext, found_apart
from germane.ranking.signals import identifiers_in, shares_of_identifiers
from germane.retrieval.quality import information
from germane.retrieval.tokenizer import query_terms

__all__ = ["found_with_named"]

_MANY = 16
"""Terms of a question from which on an identifier may be outvoted before it is ranked."""


def found_with_named(session: AgentContext, query: Query) -> SearchResult:
    """What a search finds, and what holds an identifier of a long question verbatim.

    The hundred best by all words of a pasted text need not have the one memory that it names. Raises what
    the store raises where no slice can be searched.
    """
    found = found_apart(session.store, session.agent, query)
    named = identifiers_in(query.text) if len(query.terms) >= _MANY and not found.picked else ()
    terms = query_terms(" ".join(named), language=query.language or session.language)
    if not terms:
        return found
    asked = replace(
        query,
        text=" ".join(named),
        terms=terms,
        informative=terms,
        information=information(terms),
        vector=None,
        pick=None,
    )
    more = found_apart(session.store, session.agent, asked)
    parts = zip(query.slices, found.slices, more.slices, strict=True)
    return replace(found, slices=tuple(_with_holders(*part, question=query.text) for part in parts))


def _with_holders(
    part: Slice, candidates: Sequence[Candidate], others: Sequence[Candidate], *, question: str
) -> Sequence[Candidate]:
    """The candidates, and of the others those that hold an identifier, in the order of their ids."""
    if part.order is not None:
        return candidates
    known = {candidate.memory.ref for candidate in candidates}
    new = [candidate for candidate in others if candidate.memory.ref not in known]
    held = shares_of_identifiers([candidate.memory for candidate in new], question)
    if not held:
        return candidates
    return tuple(sorted([*candidates, *(new[place] for place in held)], key=lambda each: each.memory.ref))

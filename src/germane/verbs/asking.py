"""Asks a conversation's log which groups a prompt has to do with.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from germane.conversation.derive import derive_query, prompt_of
from germane.conversation.groups import groups_of
from germane.model.conversation import DerivedQuery, GroupScores
from germane.model.message import Message
from germane.protocols import Conversing
from germane.retrieval.informative import english_idf
from germane.retrieval.terms import query_terms, term_hash
from germane.verbs.checks import checked_text
from germane.verbs.session import Session

__all__ = ["asked", "derived", "matched"]

_USUAL_RARITY = 6.5
"""What a term counts in a language whose words nobody has counted: a fairly telling one."""


def asked(
    session: Session, log: Conversing, name: str, messages: Sequence[Message], query: str | None
) -> GroupScores | None:
    """How well the groups match a query, or the latest prompt; None when it says nothing."""
    groups = groups_of(messages)
    text = checked_text(query, name="query") if query is not None else prompt_of(groups[-1]) if groups else ""
    terms = query_terms(text, language=session.language)
    return log.match_groups(session.agent, name, terms) if terms else None


def derived(session: Session, messages: Sequence[Message], query: str | None) -> DerivedQuery:
    """What to search for: the query's own terms, or what the latest prompt goes on about."""
    terms_of = partial(query_terms, language=session.language)
    if query is not None:
        return DerivedQuery(prompt=query, own=terms_of(checked_text(query, name="query")))
    rarity = _rarity if session.language == "english" else _usual
    return derive_query(messages, terms_of=terms_of, rarity=rarity)


def matched(session: Session, log: Conversing, name: str, query: DerivedQuery) -> GroupScores:
    """How well the groups match a query; a carried term counts half of one that was said."""
    own = log.match_groups(session.agent, name, query.own)
    if not query.carried:
        return own
    carried = log.match_groups(session.agent, name, query.carried)
    both = {**carried.scores, **own.scores}
    return GroupScores(
        scores={group: own.scores.get(group, 0) + carried.scores.get(group, 0) // 2 for group in both},
        bound=own.bound + carried.bound // 2,
    )


def _rarity(terms: Sequence[str]) -> Sequence[float]:
    if not terms:
        return ()
    found: list[float] = (
        english_idf().of(np.array([term_hash(term) for term in terms], dtype=np.uint32)).tolist()
    )
    return found


def _usual(terms: Sequence[str]) -> Sequence[float]:
    return [_USUAL_RARITY] * len(terms)

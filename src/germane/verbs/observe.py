"""observe: which of the memories that were shown an answer draws on, by the telling words that it has.

Level: verbs.

Containment, not likeness: a memory may be much longer or shorter than what an answer says of it. Each
sentence of what was shown is looked for by itself, and the best one counts, since an answer takes from a
long memory what it needs. A word counts its inverse document frequency in English; a word of the question
counts little, for an answer says it whether or not it was shown anything; and a word of several memories is
shared among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from germane.model.context import Context
from germane.model.learning import Shown
from germane.model.ledger import Assembly
from germane.model.memory import Level, Memory
from germane.model.observed import Observed
from germane.retrieval.informative import english_idf
from germane.retrieval.terms import query_terms, term_hash
from germane.verbs.checks import checked_flag, checked_text
from germane.verbs.feedback import feedback, shown_of
from germane.verbs.recall import Recalled
from germane.verbs.session import Session

__all__ = ["USED_FROM", "contained", "observe"]

USED_FROM = 0.25
"""The share of a sentence's information from which it counts as drawn on: see docs/explanation/metrics.md."""

_LEAST = 7.0
"""Nats that have to be in common: one rare word, or two that are less so."""

_ASKED = 0.25
"""What a word of the question counts of what it would otherwise."""

_USUAL = 6.5
"""What a word counts in a language whose words nobody has counted."""

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")


def observe(
    session: Session,
    context: Context | Recalled | Assembly | Shown,
    response: str,
    *,
    count: bool,
    question: str | None = None,
) -> Observed:
    """Which memories an answer draws on, told to `feedback` where `count` is set. Raises InvalidInput.

    Those of a space are found, and not told: their uses are the space's own.
    """
    checked_flag(count, name="count")
    answer = checked_text(response, name="response")
    asked = _question(context) if question is None else checked_text(question, name="question")
    shown = shown_of(context)
    texts, owned = _texts(session, context, shown)
    scores = contained(texts, answer, question=asked, language=session.language)
    used = tuple(one for one, score in scores.items() if score >= USED_FROM)
    said = bool(query_terms(answer, language=session.language))
    told = None
    if count and said and owned:
        told = feedback(session, shown, used=[one for one in used if one in owned])
    return Observed(used=used, scores=scores, feedback=told)


def contained(
    texts: Mapping[str, str], answer: str, *, question: str = "", language: str = "english"
) -> dict[str, float]:
    """How much of what each text says stands in the answer, from 0 to 1. Pure."""
    sentences = {
        name: [frozenset(query_terms(part, language=language)) for part in _SENTENCE.split(text)]
        for name, text in texts.items()
    }
    said = frozenset(query_terms(answer, language=language))
    asked = frozenset(query_terms(question, language=language))
    shared: dict[str, int] = {}
    for parts in sentences.values():
        for term in frozenset().union(*parts):
            shared[term] = shared.get(term, 0) + 1
    weights = _weights(sorted(shared), language)
    for term in weights:
        weights[term] *= (_ASKED if term in asked else 1.0) / shared[term]
    return {
        name: max((_share(part, said, weights) for part in parts), default=0.0)
        for name, parts in sentences.items()
    }


def _share(terms: frozenset[str], said: frozenset[str], weights: Mapping[str, float]) -> float:
    """The share of a sentence's information that was said; 0 where that is too little to tell anything."""
    common = sum(weights[term] for term in sorted(terms & said))
    return common / sum(weights[term] for term in sorted(terms)) if common >= _LEAST else 0.0


def _weights(terms: Sequence[str], language: str) -> dict[str, float]:
    if language != "english":
        return dict.fromkeys(terms, _USUAL)
    hashes = np.array([term_hash(term) for term in terms], dtype=np.uint32)
    return dict(zip(terms, english_idf().of(hashes).tolist(), strict=True)) if terms else {}


def _question(context: Context | Recalled | Assembly | Shown) -> str:
    if isinstance(context, Context):
        return context.trace.question.text
    if isinstance(context, Shown):
        return ""
    return context.question if isinstance(context, Assembly) else context.question.text


def _texts(
    session: Session, context: Context | Recalled | Assembly | Shown, shown: Shown
) -> tuple[dict[str, str], set[str]]:
    """What was shown of each memory, for an answer can draw on nothing else, and which are the agent's own.

    Where only ids and levels were kept, the store has the texts; a memory that was purged has none.
    """
    if isinstance(context, Context):
        memories = [item.memory for item in context.items]
    elif isinstance(context, Recalled):
        memories = [one.memory for one in context]
    else:
        found = session.store.get(session.agent, list(shown.parts))
        memories = [one for one in found if one is not None]
    levels = {name: shown.levels.get(name) for name in shown.parts}
    texts = {one.ref: _at(one, levels.get(one.version_id, levels.get(one.id))) for one in memories}
    return texts, {one.ref for one in memories if one.agent == session.agent}


def _at(memory: Memory, level: Level | None) -> str:
    return memory.content if level is None else memory.renditions.at(level).text

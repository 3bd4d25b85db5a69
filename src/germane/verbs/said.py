"""Finds memories that stand in the running conversation already.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from germane.errors import InvalidInput
from germane.model.query import Candidate
from germane.model.trace import Reason
from germane.retrieval.informative import english_idf
from germane.retrieval.terms import query_terms, term_hash
from germane.verbs.checks import checked_text
from germane.verbs.conversation import Conversation

__all__ = ["CONTAINED", "said_already"]

CONTAINED = 0.8
"""The share of what a memory says, by its words, that one message has to have for the memory to be said."""

_LINES = 3
_LONGEST = 20_000


def said_already(
    candidates: Iterable[Candidate], conversation: str | Conversation, *, language: str
) -> Mapping[str, Reason]:
    """The ids of the candidates that the conversation contains, each with that reason.

    It is the memory that has to be contained in what was said, never the other way around: a short
    message hides no long memory. Measured are the memory's distinct terms, each by its information in
    English, within one message, or within three lines of a text: words scattered over a long talk say
    nothing together. Raises InvalidInput for what is neither a text nor a conversation.
    """
    pieces = [frozenset(query_terms(piece, language=language)) for piece in _pieces(conversation)]
    everything = frozenset[str]().union(*pieces)
    found: dict[str, Reason] = {}
    for candidate in candidates:
        terms = query_terms(candidate.memory.content[:_LONGEST], language=language)
        if not terms:
            continue
        weights = dict(zip(terms, _weights(terms, language), strict=True))
        least = CONTAINED * sum(weights.values())
        # Nearly nothing stands in the whole of a conversation, and that is asked once.
        if _held(weights, everything) >= least and any(_held(weights, piece) >= least for piece in pieces):
            found[candidate.memory.ref] = Reason.SAID
    return found


def _pieces(conversation: str | Conversation) -> list[str]:
    if not isinstance(conversation, str | Conversation):
        raise InvalidInput(
            f"conversation={type(conversation).__name__} can't be read. Pass what was said as one text, or "
            "what engine.conversation(...) gives."
        )
    if not isinstance(conversation, str):
        return [message.own_text for message in conversation.messages()]
    lines = [line for line in checked_text(conversation, name="conversation").splitlines() if line.strip()]
    return ["\n".join(lines[start : start + _LINES]) for start in range(max(1, len(lines) - _LINES + 1))]


def _held(weights: Mapping[str, float], piece: frozenset[str]) -> float:
    return sum(weight for term, weight in weights.items() if term in piece)


def _weights(terms: Sequence[str], language: str) -> Sequence[float]:
    if language != "english":
        return [1.0] * len(terms)
    weights: list[float] = (
        english_idf().of(np.array([term_hash(term) for term in terms], dtype=np.uint32)).tolist()
    )
    return weights

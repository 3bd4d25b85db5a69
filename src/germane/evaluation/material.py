"""Reads what is measured: conversations in LoCoMo's layout, questions about a store, or probes.

Level: evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from germane.errors import InvalidInput
from germane.evaluation.asked import Asked, Material, Piece
from germane.evaluation.corpus import Corpus, Stored
from germane.evaluation.metrics import Needle
from germane.evaluation.own import own_material
from germane.evaluation.records import Records
from germane.exchange.locomo import (
    ADVERSARIAL,
    Conversation,
    conversation_drafts,
    evidence_report,
    read_locomo,
)
from germane.model.days import day_in_words
from germane.protocols import Embedder, TokenCounter
from germane.verbs.checks import checked_count

__all__ = ["drawn", "read_material"]

_LINES = (".jsonl", ".ndjson")


def read_material(
    path: Path,
    *,
    counter: TokenCounter,
    embedder: Embedder | None,
    conversations: Sequence[str] | None = None,
    stored: Stored | None = None,
    records: Records | None = None,
) -> Material:
    """The questions of a file. One of JSON lines holds questions about `records` or `stored`, or probes.

    `conversations` are sample ids, of LoCoMo's layout alone. Raises UnreadableSource or InvalidInput.
    """
    if path.suffix.lower() in _LINES:
        if conversations is not None:
            raise InvalidInput(f"{path.name} holds no conversations to choose from; leave them unsaid.")
        return own_material(path, counter=counter, embedder=embedder, stored=stored, records=records)
    if records is not None:
        raise InvalidInput(
            f"{path.name} brings its own conversations, so records can't be named beside it. Leave one out."
        )
    chosen = _chosen(read_locomo(path), conversations)
    every = [question for conversation in chosen for question in conversation.questions]
    return Material(
        corpora=tuple(_corpus(conversation, counter, embedder) for conversation in chosen),
        asked=_asked(chosen),
        names=tuple(each.sample_id for each in chosen),
        adversarial=sum(each.category == ADVERSARIAL for each in every),
        without_evidence=sum(not each.evidence and each.category != ADVERSARIAL for each in every),
        evidence=evidence_report(chosen),
    )


def drawn(material: Material, limit: int | None, seed: int) -> Material:
    """The material with at most `limit` of its questions, drawn over all of them and left in order."""
    asked = material.asked
    if limit is None or len(asked) <= checked_count(limit, name="questions_limit", least=1):
        return material
    places = np.random.default_rng(seed).choice(len(asked), size=limit, replace=False)
    return replace(material, asked=tuple(asked[place] for place in sorted(places.tolist())))


def _chosen(every: Sequence[Conversation], names: Sequence[str] | None) -> list[Conversation]:
    if names is None:
        return list(every)
    known = [each.sample_id for each in every]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise InvalidInput(
            f"No conversation is named {', '.join(unknown)}. The file holds {', '.join(known)}."
        )
    return [each for each in every if each.sample_id in names]


def _asked(conversations: Sequence[Conversation]) -> tuple[Asked, ...]:
    """The questions with evidence, the adversarial ones aside; the first half has the middle conversation."""
    middle = (len(conversations) + 1) // 2
    counting = (
        (place, question)
        for place, conversation in enumerate(conversations)
        for question in conversation.questions
        if question.category != ADVERSARIAL and question.evidence
    )
    return tuple(
        Asked(
            number=number,
            corpus=place,
            question=question.question,
            category=question.category,
            pieces=tuple(Piece(name=each, ids=(each,)) for each in question.evidence),
            half=int(place >= middle),
        )
        for number, (place, question) in enumerate(counting, 1)
    )


def _corpus(conversation: Conversation, counter: TokenCounter, embedder: Embedder | None) -> Corpus:
    """A conversation as memories, asked about on the day after it ended."""
    last = max((turn.session_at for turn in conversation.turns), default=None)
    if last is None:
        raise InvalidInput(f"Conversation {conversation.sample_id!r} has no turns to ask about.")
    return Corpus(
        ids=tuple(turn.dia_id for turn in conversation.turns),
        turns=tuple(
            Needle(day_in_words(turn.session_at), f"{turn.speaker}: {turn.text}")
            for turn in conversation.turns
        ),
        drafts=tuple(conversation_drafts(conversation)),
        now=last + timedelta(days=1),
        counter=counter,
        embedder=embedder,
    )

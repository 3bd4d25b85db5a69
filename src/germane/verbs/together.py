"""Gathers from an agent's own memory and from spaces it is in, so that one ranking judges them all.

Level: verbs. Each is searched by its own index, whose statistics stay its own; what comes together are
candidates on a common scale. Nothing is stored by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from germane.model.names import space_of
from germane.model.picking import Pick
from germane.model.query import Candidate, Found, Slice
from germane.model.trace import Note
from germane.retrieval.terms import query_terms
from germane.verbs.checks import checked_words
from germane.verbs.question import Asked, search
from germane.verbs.session import Session
from germane.verbs.unknown_kinds import unknown_kinds

__all__ = ["entered_spaces", "gather_together"]


def entered_spaces(session: Session, names: Sequence[str]) -> tuple[Session, ...]:
    """The agent's sides of these spaces, each once. Raises UnknownSpace or InvalidInput."""
    checked = dict.fromkeys(checked_words(names, name="spaces"))
    if not checked:
        return ()
    from germane.verbs.sharing import entered  # noqa: PLC0415 - Most calls name no space.

    return tuple(entered(session, name) for name in checked)


def gather_together(
    session: Session,
    asked: Asked,
    slices: tuple[Slice, ...],
    spaces: Sequence[Session],
    *,
    pick: Pick | None = None,
) -> tuple[Asked, Found]:
    """What a search finds in the agent's own memory and in spaces, and the question with a note of it.

    A memory that stands in several of them is taken from the first: the agent's own, then the spaces in
    the order given. The searches see a snapshot each. Without spaces the question may `pick`. A note tells
    of a kind that none of them knows. Raises NotAllowed for a space that the agent isn't in.
    """
    if asked.where.kinds:
        told = unknown_kinds((session, *spaces), asked.where)
        asked = replace(asked, notes=(*asked.notes, *told))
    own = search(session, asked, slices, pick=None if spaces else pick)
    if not spaces:
        return asked, own
    found = [own, *(search(space, _in_language(asked, space.language), slices) for space in spaces)]
    names = ", ".join(space_of(space.agent) for space in spaces)
    note = Note(code="spaces", text=f"Gathered from the agent's own memory and from the spaces {names}.")
    if any(one.by_relevance for one in found):
        # Where a language knows none of the words, the newest of a memory would pass for its best.
        found = [one if one.by_relevance else _without_relevance(one, slices) for one in found]
    return replace(asked, notes=(*asked.notes, note)), _united(found)


def _in_language(asked: Asked, language: str) -> Asked:
    """The same question in the terms of another index."""
    if language == asked.language:
        return asked
    informative = query_terms(asked.question.cleaned, language=language)
    terms = query_terms(asked.question.text, language=language) if informative else ()
    question = replace(asked.question, terms=terms)
    return replace(asked, question=question, informative=informative, language=language)


def _without_relevance(found: Found, slices: tuple[Slice, ...]) -> Found:
    kept = tuple(
        () if part.order is None else candidates
        for part, candidates in zip(slices, found.slices, strict=True)
    )
    return replace(found, slices=kept, by_relevance=True)


def _united(found: Sequence[Found]) -> Found:
    """One result of several, its words' signals in units of what a full match is worth in each of them.

    The stamp is that of the first, the agent's own.
    """
    scaled = [_scaled(one) for one in found]
    return Found(
        slices=tuple(_each_once(parts) for parts in zip(*(one.slices for one in scaled), strict=True)),
        lexical_bound=max(one.lexical_bound for one in scaled),
        window_bound=max(one.window_bound for one in scaled),
        stored=sum(one.stored for one in found),
        admitted=sum(one.admitted for one in found),
        by_relevance=all(one.by_relevance for one in scaled),
        failed={place: error for one in reversed(found) for place, error in one.failed.items()},
        stamp=found[0].stamp,
    )


def _scaled(found: Found) -> Found:
    # Where no word of the question is known there is no signal of words to scale.
    units = {"lexical": found.lexical_bound or 1.0, "window_lexical": found.window_bound or 1.0}

    def scaled(candidate: Candidate) -> Candidate:
        signals = {name: value / units.get(name, 1.0) for name, value in candidate.signals.items()}
        return replace(candidate, signals=signals)

    return replace(
        found,
        slices=tuple(tuple(map(scaled, candidates)) for candidates in found.slices),
        lexical_bound=1.0 if found.lexical_bound else 0.0,
        window_bound=1.0 if found.window_bound else 0.0,
    )


def _each_once(parts: Sequence[tuple[Candidate, ...]]) -> tuple[Candidate, ...]:
    """The candidates of all, in the order of their ids, a memory that several have from the first of them."""
    owners: dict[str, str] = {}
    kept = {
        candidate.memory.ref: candidate
        for part in parts
        for candidate in part
        if owners.setdefault(candidate.memory.content_hash, candidate.memory.agent) == candidate.memory.agent
    }
    return tuple(kept[memory_id] for memory_id in sorted(kept))

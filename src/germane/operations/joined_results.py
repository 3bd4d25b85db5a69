"""One result of a search of several indexes: an agent's and its spaces', or memories and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from germane.model.query import Candidate, CandidateTable, SearchResult


def joined_results(found: Sequence[SearchResult]) -> SearchResult:
    """One result of several indexes, each's words in units of what a full match is worth there."""
    if len(found) == 1:
        return found[0]
    most = max(found, key=lambda one: one.stored)
    return replace(spaces_united(found), term_weights=most.term_weights, average_terms=most.average_terms)


def spaces_united(found: Sequence[SearchResult]) -> SearchResult:
    """One result of several, its words' signals in units of what a full match is worth in each of them.

    The stamp is that of the first, the agent's own.
    """
    scaled = [_scaled(one) for one in found]
    return SearchResult(
        slices=tuple(_each_once(parts) for parts in zip(*(one.slices for one in scaled), strict=True)),
        lexical_bound=max(one.lexical_bound for one in scaled),
        window_bound=max(one.window_bound for one in scaled),
        stored=sum(one.stored for one in found),
        admitted=sum(one.admitted for one in found),
        by_relevance=all(one.by_relevance for one in scaled),
        failed={place: error for one in reversed(found) for place, error in one.failed.items()},
        stamp=found[0].stamp,
        term_weights=found[0].term_weights,
        average_terms=found[0].average_terms,
        converses=any(one.converses for one in found),
    )


def _scaled(found: SearchResult) -> SearchResult:
    # Where no word of the question is known there is no signal of words to scale.
    units = {"lexical": found.lexical_bound or 1.0, "window_lexical": found.window_bound or 1.0}

    def scaled(table: CandidateTable) -> CandidateTable:
        signals = {name: column / units.get(name, 1.0) for name, column in table.signals.items()}
        return CandidateTable(table.memories, signals)

    return replace(
        found,
        slices=tuple(scaled(CandidateTable.of(candidates)) for candidates in found.slices),
        lexical_bound=1.0 if found.lexical_bound else 0.0,
        window_bound=1.0 if found.window_bound else 0.0,
    )


def _each_once(parts: Sequence[Sequence[Candidate]]) -> CandidateTable:
    """The candidates of all, in the order of their ids, a memory that several have from the first of them."""
    table = CandidateTable.united(parts)
    memories = [memory for part in parts for memory in CandidateTable.of(part).memories]
    owners: dict[str, str] = {}
    for memory in memories:
        owners.setdefault(memory.content_hash, memory.agent)
    return table.at(
        [place for place, one in enumerate(table.memories) if owners[one.content_hash] == one.agent]
    )

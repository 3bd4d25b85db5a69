"""Keeps what belongs to another domain out of the sections that show only the frame's own.

Level: verbs. No store knows domains, which stand in the metadata, so more is gathered than the section's
limit says and the best are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from germane.kinds import Kinds
from germane.model.memory import Memory
from germane.model.plan import Plan, Section
from germane.model.query import Candidate, Found
from germane.ranking.composite import is_of

__all__ = ["gathered_limit", "within_domain"]

_OF_ANY_DOMAIN: Final = 200


def gathered_limit(section: Section) -> int:
    """How many to gather, so that enough are left of the frame's domain."""
    return max(section.limit, _OF_ANY_DOMAIN) if section.of_domain else section.limit


def within_domain(plan: Plan, found: Found, domain: Collection[str], kinds: Kinds) -> Found:
    """What was found, and in sections of a domain nothing that names others alone.

    What names none stays, what no budget may drop, and everything where the frame has none. Of what
    relevance found there, and in any section of a plan that asks by meaning, as many stay as the section's
    limit says: the nearest in meaning, or where nothing has a vector, in words. (Turns of dialogue are found
    by the turns around them as well.)
    """
    sections = [section for section in plan.sections if section.gathers]
    if not plan.by_meaning and not any(section.of_domain for section in sections):
        return found
    slices = (
        _kept(section, candidates, domain, kinds) if plan.by_meaning or section.of_domain else candidates
        for section, candidates in zip(sections, found.slices, strict=False)
    )
    return replace(found, slices=(*slices, *found.slices[len(sections) :]))


def _kept(
    section: Section, candidates: Sequence[Candidate], domain: Collection[str], kinds: Kinds
) -> tuple[Candidate, ...]:
    everywhere = not section.of_domain or not domain
    here = [one for one in candidates if everywhere or _admits(one.memory, domain, kinds)]
    if section.order is not None or len(here) <= section.limit:
        return tuple(here)
    signal = "semantic" if any("semantic" in one.signals for one in here) else "lexical"
    best = sorted(here, key=lambda one: (-one.signals.get(signal, -1.0), one.memory.ref))[: section.limit]
    return tuple(sorted(best, key=lambda one: one.memory.ref))


def _admits(memory: Memory, domain: Collection[str], kinds: Kinds) -> bool:
    named = memory.metadata.get("domain")
    return not named or is_of(memory, domain) or kinds.of(memory).requires(memory)

"""Searches a store so that what can't be found for one section leaves the others as they are.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from germane.errors import GermaneError, StoreError
from germane.kinds import Kinds
from germane.model.plan import Plan, Section
from germane.model.query import Found, Query
from germane.model.trace import Note
from germane.protocols import Store

__all__ = ["failures", "found_apart"]


def found_apart(store: Store, agent: str, query: Query) -> Found:
    """What a search finds; where it fails, what each of its slices finds alone, in a snapshot each.

    `Found.failed` holds the error of each slice that fails by itself. Raises the first error where all do,
    and whatever says that the question is at fault.
    """
    try:
        return store.search(agent, query)
    except Exception as error:  # A store of the caller's own may fail in any way.
        if _is_the_callers(error) or len(query.slices) == 1:
            raise
        found: list[Found] = []
        failed: dict[int, Exception] = {}
        for place, part in enumerate(query.slices):
            try:
                found.append(store.search(agent, replace(query, slices=(part,))))
            except Exception as alone:  # noqa: BLE001 - As above; it is told of, or raised for what is vital.
                found.append(Found(slices=((),), by_relevance=False))
                failed[place] = alone
        if len(failed) == len(query.slices):
            raise
        return Found(
            slices=tuple(one.slices[0] for one in found),
            lexical_bound=max(one.lexical_bound for one in found),
            window_bound=max(one.window_bound for one in found),
            stored=max(one.stored for one in found),
            admitted=max(one.admitted for one in found),
            by_relevance=any(one.by_relevance for one in found),
            failed=failed,
        )


def failures(plan: Plan, found: Found, kinds: Kinds) -> Sequence[Note]:
    """A note for each section that could not be searched.

    Raises the error of one whose memories may have to stand in the context, of what was pinned, and of the
    first where all failed: what nobody could look for must not be missing without a word.
    """
    sections = [section for section in plan.sections if section.gathers]
    notes: list[Note] = []
    for place, error in sorted(found.failed.items()):
        section = sections[place] if place < len(sections) else None
        alone = len(found.failed) >= len(sections)
        if section is None or alone or section.required or section.required_kinds or _strict(section, kinds):
            raise error
        notes.append(
            Note(
                code="section_failed",
                text=f"Section {section.name!r} could not be searched and is empty: "
                f"{type(error).__name__}: {error}",
            )
        )
    return notes


def _is_the_callers(error: Exception) -> bool:
    return isinstance(error, GermaneError) and not isinstance(error, StoreError)


def _strict(section: Section, kinds: Kinds) -> bool:
    """Whether memories that no budget may drop could stand there; without kinds of its own, any could."""
    names = section.kinds or tuple(kinds.by_name)
    return any(name in kinds and kinds.require(name).strict for name in names)

"""Which texts from outside take part in a context: as quotations, and as a share of the candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from germane.model.conditions import Comparison, Condition, Not, Or
from germane.model.context import TraceNote
from germane.model.memory import Scope, Trust
from germane.model.plan import Plan, Section, Share
from germane.model.query import Candidate, CandidateTable, Filter, SearchResult, Slice
from germane.plans.layered import QUOTED_SHARE
from germane.ranking.similarity import is_outside, source_of

_OURS = Comparison("trust", "in", tuple(each.value for each in Trust if each is not Trust.EXTERNAL))


@lru_cache(maxsize=32)
def stored_pins(refused: Filter | None, places: tuple[Scope, ...]) -> Filter:
    """What is always shown because it was stored with a pin; a pin doesn't lift the rule of trust."""
    rule = Not(refused.where) if refused and isinstance(refused.where, Condition) else None
    return Filter(pinned=True, applies_to=places, where=rule)


def with_quotations(
    plan: Plan, budget: int, found: SearchResult
) -> tuple[Plan, SearchResult, tuple[TraceNote, ...]]:
    """The plan with a token limit for quotations and a note, or without their section if there are none."""
    gathering = [section for section in plan.sections if section.gathers]
    place = next((number for number, one in enumerate(gathering) if one.quoted), None)
    if place is None or place in found.failed:
        return plan, found, ()
    quoted, count = gathering[place], len(found.slices[place])
    if not count:
        failed = {number - (number > place): error for number, error in found.failed.items()}
        found = replace(found, slices=(*found.slices[:place], *found.slices[place + 1 :]), failed=failed)
        return replace(plan, sections=tuple(one for one in plan.sections if one is not quoted)), found, ()
    limited = replace(quoted, share=Share(weight=0, ceiling=budget // QUOTED_SHARE))
    text = (
        f"{count} of trust {Trust.EXTERNAL} {'is' if count == 1 else 'are'} shown as quotations, if at all: "
        f"sections that instruct take {quoted.trust} or above."
    )
    sections = tuple(limited if one is quoted else one for one in plan.sections)
    return replace(plan, sections=sections), found, (TraceNote(code="quoted", text=text),)


def uncrowded(
    plan: Plan,
    found: SearchResult,
    gather: Callable[[tuple[Slice, ...]], Sequence[Sequence[Candidate]]],
) -> SearchResult:
    """What was found, and where texts from outside are most of a section's candidates, others as well.

    These are the best of trusted memories, and the best that aren't of the most frequent source. `gather`
    searches for slices.
    """
    gathering = [section for section in plan.sections if section.gathers]
    wanted = {
        place: further
        for place, (section, part) in enumerate(zip(gathering, found.slices, strict=False))
        if len(part) >= section.limit and (further := _further(section, CandidateTable.of(part)))
    }
    if not wanted:
        return found
    slices = tuple(one for several in wanted.values() for one in several)
    more = iter(gather(slices))
    united = list(found.slices)
    for place, several in wanted.items():
        united[place] = CandidateTable.united((united[place], *(next(more) for _ in several)))
    return replace(found, slices=tuple(united))


def _further(section: Section, part: CandidateTable) -> list[Slice]:
    """The slices that find what texts from outside crowd out of a section; none where they don't."""
    if section.order is not None or section.quoted or section.leftover:
        return []
    sources = Counter(source_of(memory) for memory in part.memories if is_outside(memory))
    if 2 * sources.total() < len(part):
        return []
    rules: list[Condition] = [_OURS]
    source, count = sources.most_common(1)[0]
    if source and 2 * count >= len(part):
        rules.append(
            Not(Or((Comparison("source", "=", source), Comparison("source", "startswith", f"{source}#"))))
        )
    own = Filter(statuses=()) if section.admits is None else section.admits
    both = (rule & own.where if isinstance(own.where, Condition) else rule for rule in rules)
    return [Slice(kinds=section.kinds, limit=section.limit, also=replace(own, where=one)) for one in both]

"""Writes into a plan's sections what the agent's own record says: how far its confidence is to be trusted.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from germane.model.judgement import Judgement
from germane.model.plan import Plan
from germane.model.query import Found, Slice
from germane.model.trace import Note
from germane.ranking.calibration import FEWEST
from germane.verbs.judged import Sought
from germane.verbs.session import Session

__all__ = ["advised", "judgement_of", "sought_for", "split_off", "told_sections"]


def sought_for(session: Session, plan: Plan) -> Sought | Exception | None:
    """What a search has to bring for a plan whose sections advise; None for others.

    Or why that can't be known.
    """
    if not any(section.advises for section in plan.sections):
        return None
    try:
        return session.known_judgement.sought(session.store, session.agent, session.kinds)
    except Exception as error:  # noqa: BLE001 - A store of the caller's own may fail in any way; a note tells.
        return error


def split_off(
    session: Session, sought: Sought | Exception | None, found: Found, slices: tuple[Slice, ...]
) -> tuple[Found, Judgement | Exception | None]:
    """What was found without the last slice where that was for the judgement; and the judgement."""
    if not isinstance(sought, Sought):
        return found, sought
    if sought.slice is None:
        return found, sought.known
    place = len(slices) - 1
    failed = {number: error for number, error in found.failed.items() if number != place}
    decisions = (one.memory for one in found.slices[place])
    rest = replace(found, slices=found.slices[:place], failed=failed)
    if place in found.failed:
        return rest, found.failed[place]
    return rest, session.known_judgement.told(session.agent, sought, decisions)


def judgement_of(session: Session) -> Judgement | Exception:
    """The judgement by a search of its own, or why there is none."""
    try:
        return session.known_judgement.of(session.store, session.agent, session.kinds)
    except Exception as error:  # noqa: BLE001 - As above.
        return error


def advised(
    plan: Plan, judgement: Judgement | Exception | None, *, told: Collection[str]
) -> tuple[Plan, tuple[Note, ...]]:
    """The plan with one sentence as the text of each section that `advises`.

    Without any decision that has a confidence and an outcome there is none; that there are too few is only
    said in sections that have nothing else to say, which `told` names are not. Where the decisions couldn't
    be read the section stays without, and a note says so.
    """
    advising = [section for section in plan.sections if section.advises]
    if isinstance(judgement, Exception):
        why = f"could not be told how decisions turned out: {type(judgement).__name__}: {judgement}"
        return plan, tuple(
            Note(code="section_failed", text=f"Section {section.name!r} {why}") for section in advising
        )
    if judgement is None or not judgement.count:
        return plan, ()
    sections = tuple(
        replace(section, text=judgement.advice)
        if section.advises and (judgement.count >= FEWEST or section.name not in told)
        else section
        for section in plan.sections
    )
    return replace(plan, sections=sections), ()


def told_sections(plan: Plan, found: Found) -> frozenset[str]:
    """The sections for which memories were found."""
    gathering = [section for section in plan.sections if section.gathers]
    return frozenset(section.name for section, part in zip(gathering, found.slices, strict=False) if part)

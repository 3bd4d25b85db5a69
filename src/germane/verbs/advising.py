"""Writes into a plan's sections what the agent's own record says: how far its confidence is to be trusted.

Level: verbs.
"""

from __future__ import annotations

from dataclasses import replace

from germane.model.judgement import Judgement
from germane.model.plan import Plan
from germane.model.query import Filter, Found, Slice
from germane.model.trace import Note
from germane.ranking.calibration import FEWEST
from germane.verbs.session import Session

__all__ = ["advised", "judgement_of", "sought_for", "split_off"]


def sought_for(session: Session, plan: Plan, where: Filter) -> tuple[Slice, ...]:
    """What a search has to bring besides for a plan whose sections advise: a slice or nothing."""
    sought = session.known_judgement.sought(session.agent, session.kinds, where) if _advises(plan) else None
    return () if sought is None else (sought,)


def split_off(
    session: Session, plan: Plan, found: Found, sought: tuple[Slice, ...], *, where: Filter
) -> tuple[Found, Judgement | Exception | None]:
    """What was found without the last slice where that was `sought` for the judgement; and the judgement.

    There is none for a plan without a section that advises.
    """
    if not sought:
        return found, judgement_of(session, where, found=found) if _advises(plan) else None
    place = len(found.slices) - 1
    failed = {number: error for number, error in found.failed.items() if number != place}
    rest = replace(found, slices=found.slices[:place], failed=failed)
    if place in found.failed:
        return rest, found.failed[place]
    return rest, session.known_judgement.told(session.agent, found, place, where)


def judgement_of(session: Session, where: Filter, *, found: Found | None = None) -> Judgement | Exception:
    """The judgement, or why there is none; by a search of its own unless what was `found` tells enough."""
    try:
        return session.known_judgement.of(session.store, session.agent, session.kinds, where, found=found)
    except Exception as error:  # noqa: BLE001 - A store of the caller's own may fail in any way; a note tells.
        return error


def advised(plan: Plan, judgement: Judgement | Exception | None) -> tuple[Plan, tuple[Note, ...]]:
    """The plan with one sentence as the text of each section that `advises`.

    Where fewer than ten decisions have a confidence and an outcome there is nothing to say yet. Where the
    decisions couldn't be read the section stays without, and a note says so.
    """
    if isinstance(judgement, Exception):
        why = f"could not be told how decisions turned out: {type(judgement).__name__}: {judgement}"
        return plan, tuple(
            Note(code="section_failed", text=f"Section {section.name!r} {why}")
            for section in plan.sections
            if section.advises
        )
    if judgement is None or judgement.count < FEWEST:
        return plan, ()
    sections = tuple(
        replace(section, text=judgement.advice) if section.advises else section for section in plan.sections
    )
    return replace(plan, sections=sections), ()


def _advises(plan: Plan) -> bool:
    return any(section.advises for section in plan.sections)

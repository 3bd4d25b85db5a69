"""Writes into a plan's sections what the agent's own record says: how far its confidence is to be trusted.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from germane.model.plan import Plan
from germane.model.query import Found
from germane.model.trace import Note
from germane.ranking.calibration import FEWEST
from germane.verbs.session import Session

__all__ = ["advised", "told_sections"]


def advised(session: Session, plan: Plan, *, told: Collection[str] = ()) -> tuple[Plan, tuple[Note, ...]]:
    """The plan with one sentence as the text of each section that `advises`.

    Without any decision that has a confidence and an outcome there is none; that there are too few is only
    said in sections that have nothing else to say, which `told` names are not. Where the decisions can't be
    read the section stays without, and a note says so.
    """
    if not any(section.advises for section in plan.sections):
        return plan, ()
    try:
        judgement = session.known_judgement.of(session.store, session.agent, session.kinds)
    except Exception as error:  # noqa: BLE001 - A store of the caller's own may fail in any way; a note tells.
        failed = (
            Note(
                code="section_failed",
                text=f"Section {section.name!r} could not be told how decisions turned out: "
                f"{type(error).__name__}: {error}",
            )
            for section in plan.sections
            if section.advises
        )
        return plan, tuple(failed)
    if not judgement.count:
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

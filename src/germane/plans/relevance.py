"""The relevance plan: one section, everything by relevance, whole where it fits.

Level: plans. Pure data. It is what a question over dialogue or documents needs, where no kind of
memory has a claim to a share of its own.
"""

from __future__ import annotations

from germane.kinds import PROFILE, Kinds
from germane.model.memory import Level
from germane.model.plan import Overflow, Plan, RollOver, Section, Share

__all__ = ["relevance"]


def relevance(kinds: Kinds) -> Plan:
    """The plan for these kinds; those that need no question (identity, censors, focus) are left to others."""
    always = {
        name
        for section in ("identity", "censors", "focus", "calibration")
        for name in kinds.in_section(section)
        if name not in PROFILE
    }
    return Plan(
        name="relevance",
        roll_over=RollOver.NONE,
        sections=(
            Section(
                name="memories",
                heading="## Relevant Memories",
                kinds=tuple(kind.name for kind in kinds if kind.name not in always),
                share=Share(weight=1),
                limit=200,
                levels=(Level.FULL,),
                overflow=Overflow.SKIP,
                by_session=True,
            ),
        ),
    )

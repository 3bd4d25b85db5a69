"""The relevance plan: the layered plan's way to fill a budget, with one section for everything.

Level: plans. Pure data.
"""

from __future__ import annotations

from germane.kinds import PROFILE, Kinds
from germane.model.plan import Plan, RollOver, Section, Share
from germane.plans.layered import LONGEST_FIRST

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
        roll_over=RollOver.BEST,
        gate=True,
        boosts=True,
        sections=(
            Section(
                name="memories",
                heading="## Relevant Memories",
                kinds=tuple(kind.name for kind in kinds if kind.name not in always),
                share=Share(weight=1),
                limit=200,
                levels=LONGEST_FIRST,
                by_session=True,
                dates=True,
                sources=True,
            ),
        ),
    )

"""The layered plan: nine sections, from who the agent is to how well it judges.

Level: plans. Pure data.

Shares, order and headings are those of the note on context management. Its shares sum to 8,100 of
8,000 once the calibration note is counted; here they are weights, and the budget is a hard cap.
"""

from __future__ import annotations

from germane.kinds import Kinds
from germane.model.memory import Level
from germane.model.plan import Frame, Plan, RollOver, Section, Share
from germane.model.query import Order

__all__ = ["layered"]

_WHOLE_FIRST = (Level.FULL, Level.SUMMARY, Level.MICRO)
_FLEXIBLE = (
    # Section, heading, weight, candidates gathered.
    ("decisions", "## Relevant Past Decisions", 2000, 50),
    ("facts", "## Known Information", 1500, 75),
    ("procedures", "## Procedure: {title}", 1500, 15),
    ("episodes", "## Past Experience", 1000, 75),
)
_UNKNOWN_PRIORITY = 0.5


def layered(kinds: Kinds, frame: Frame) -> Plan:
    """The plan for these kinds in this frame; the frame's priorities say who gets left-over tokens."""
    priorities = dict(frame.priorities)
    flexible = [
        Section(
            name=name,
            heading=heading,
            kinds=kinds.in_section(name),
            share=Share(weight=weight),
            limit=limit,
            priority=priorities.get(name, _UNKNOWN_PRIORITY),
            own_heading="{title}" in heading,
            by_session=name == "episodes",
        )
        for name, heading, weight, limit in _FLEXIBLE
    ]
    return Plan(
        name="layered",
        roll_over=RollOver.PRIORITY,
        gate=True,
        sections=(
            _always("identity", "## Identity", 500, kinds, priority=4.0, required=True),
            _always("censors", "## Active Constraints", 300, kinds, priority=3.0),
            Section(
                name="frame",
                heading=f"## Current Approach: {frame.name.capitalize()}",
                share=Share(weight=500),
                priority=2.0,
                text=_frame_text(frame),
            ),
            _always("focus", "## Current Focus", 700, kinds, priority=2.0),
            *flexible,
            _always("calibration", "## Note", 100, kinds, priority=0.1, items=1),
        ),
    )


def _always(
    name: str,
    heading: str,
    weight: int,
    kinds: Kinds,
    *,
    priority: float,
    required: bool = False,
    items: int | None = None,
) -> Section:
    """A section that is attempted whatever the question, most important memories first."""
    return Section(
        name=name,
        heading=heading,
        kinds=kinds.in_section(name),
        share=Share(weight=weight),
        order=Order.IMPORTANT,
        required=required,
        limit=50,
        items=items,
        priority=priority,
        levels=_WHOLE_FIRST if name in ("identity", "focus") else (Level.SUMMARY, Level.MICRO),
    )


def _frame_text(frame: Frame) -> str:
    if not frame.questions:
        return frame.description
    return "\n".join([frame.description, "Consider:", *(f"- {question}" for question in frame.questions)])

"""The layered plan by the letter of the note on context management.

Level: plans. Pure data.

Its layers have the note's own tokens whatever the frame is; the frame writes its section, gives the
priorities of the score and names the domain. Each layer takes its candidates in the order of the note's sum,
the summary of one if it fits, else its micro, and ends at the first of which neither does; nothing flows
from layer to layer, nothing grows afterwards, and nothing is left out for having little to do with the
question. A memory costs what its rendition counts, as there.

What it keeps of `layered`: the text as it stands never exceeds the budget, and what forbids something is
never left out. The note has its layers add up to 8,000 and the calibration note on top; that is the budget
here.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from germane.kinds import Kinds
from germane.model.frame import DEFAULT_SHARES, Frame
from germane.model.memory import Level
from germane.model.plan import Overflow, Plan, RollOver, Section, Share
from germane.plans.history import HISTORY
from germane.plans.layered import always, check_sections, frame_section

__all__ = ["LAYERS", "TOTAL", "newton_exact"]

_ALWAYS = {"identity": 500, "censors": 300, "frame": 500, "focus": 700, "calibration": 100}
LAYERS = MappingProxyType({**_ALWAYS, **dict(DEFAULT_SHARES)})
"""Tokens of each layer, the calibration note among them."""

TOTAL = sum(LAYERS.values())
"""8,100: the layers' 8,000 and the 100 of the calibration note."""

_SHORT = (Level.SUMMARY, Level.MICRO)
_FLEXIBLE: tuple[tuple[str, str, int, tuple[Level, ...]], ...] = (
    # Layer, heading, results of its search, levels. Of episodes the note wants summaries only.
    ("decisions", "## Relevant Past Decisions", 20, _SHORT),
    ("facts", "## Known Information", 30, _SHORT),
    ("procedures", "## Procedure: {title}", 10, _SHORT),
    ("episodes", "## Past Experience", 10, (Level.SUMMARY,)),
)
_OF_DOMAIN = ("censors", "procedures")
_UNKNOWN_PRIORITY = 0.5
_MANY = 1000
_IN_FOCUS = 20


def newton_exact(kinds: Kinds, frame: Frame) -> Plan:
    """The plan for these kinds in this frame. Raises InvalidPlan for a frame of other sections."""
    check_sections(frame)
    priorities = dict(frame.priorities)
    strict = kinds.in_section("identity")
    identity = replace(always("identity", "## Identity", kinds), kinds=(*strict, *kinds.in_section("user")))
    censors = replace(always("censors", "## Active Constraints", kinds), levels=_SHORT)
    sections = (
        replace(identity, required_kinds=strict, limit=_MANY, priority=4.0),
        replace(censors, limit=_MANY, priority=3.0),
        frame_section(frame),
        replace(always("focus", "## Current Focus", kinds), items=_IN_FOCUS, priority=2.0),
        *(
            Section(
                name=name,
                heading=heading,
                # The note knows no history of changes: it stands among what happened.
                kinds=(*kinds.in_section(name), *(kinds.in_section(HISTORY) if name == "episodes" else ())),
                share=Share(weight=LAYERS[name]),
                limit=limit,
                priority=priorities.get(name, _UNKNOWN_PRIORITY),
                levels=levels,
                own_heading="{title}" in heading,
            )
            for name, heading, limit, levels in _FLEXIBLE
        ),
        replace(always("calibration", "## Note", kinds), levels=_SHORT, items=1, advises=True, priority=0.1),
    )
    return Plan(
        name="newton_exact",
        sections=tuple(map(_to_the_letter, sections)),
        roll_over=RollOver.NONE,
        fusion="newton_v1",
        counts_renditions=True,
        by_meaning=True,
    )


def _to_the_letter(section: Section) -> Section:
    """The section, which ends where neither level fits, and has its tokens and no more of any budget."""
    tokens = LAYERS[section.name]
    return replace(
        section,
        share=Share(weight=tokens, ceiling=tokens),
        overflow=Overflow.DEGRADE_STOP,
        of_domain=section.name in _OF_DOMAIN,
    )

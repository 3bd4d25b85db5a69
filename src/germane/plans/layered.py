"""The layered plan: ten sections, from who the agent is to how well it judges.

Level: plans. Pure data.

Order and headings are those of the note on context management; what is known of the user has a section of its
own. Shares are soft: what one section doesn't need goes to the best candidates of any section. The frame's
shares and the fixed ones stand inside its total: where they exceed it, those of the sections that relevance
fills shrink in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from germane.errors import InvalidPlan
from germane.kinds import CHANGELOG, USER, Kinds
from germane.model.frame import Frame
from germane.model.memory import Level
from germane.model.plan import Alike, Plan, RollOver, Section, Share
from germane.model.query import Filter, Order
from germane.packing.allocate import allocate
from germane.plans.complexity import Complexity, scaled
from germane.plans.history import NO_PAST, Past, history, releases
from germane.plans.intent import Intent, limit_of

__all__ = [
    "ALWAYS",
    "FLEXIBLE",
    "LONGEST_FIRST",
    "Budgeted",
    "always",
    "budgeted",
    "check_sections",
    "frame_section",
    "layered",
]

ALWAYS: Mapping[str, int] = {"identity": 500, "user": 500, "censors": 300, "focus": 700, "calibration": 100}
"""Tokens of the sections that are attempted whatever the question is."""

LONGEST_FIRST = (Level.FULL, Level.SUMMARY, Level.MICRO)
"""The levels of a section whose texts are shown as long as the budget allows."""

FLEXIBLE = ("decisions", "facts", "procedures", "episodes")
"""The sections that relevance fills, in their order."""

_HEADINGS: tuple[tuple[str, str, int, Alike | None, int], ...] = (
    # Section, heading, candidates gathered, what makes two of it alike, and how many such come before others.
    # Two facts of a subject, as Newton has it, cost three points of recall on the demo's questions; five
    # cost none.
    ("decisions", "## Relevant Past Decisions", 50, "category", 3),
    ("facts", "## Known Information", 100, "subject", 5),
    ("procedures", "## Procedure: {title}", 15, None, 2),
    ("episodes", "## Past Experience", 200, "tag", 2),
)
_DATED = ("decisions", "facts", "episodes")
_ABOUT_USER = "## About the user"
_FLOOR = 40
"""Tokens that a section of standing memories may claim of the smallest budget: about two of them."""
_HALF_OF_USER = Share(weight=ALWAYS["user"] // 2, floor=_FLOOR)
"""Kinds about the user and facts whose subject is the user are two sections under one heading."""
_UNKNOWN_PRIORITY = 0.5
_CARED_FOR = 0.8
_CONSTRAINTS = 1000
"""Far more than any budget holds, so that none which must stand there stays out unseen."""
_IN_FOCUS = 20
_LOOKING_BACK = 500
_ALWAYS_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgeted:
    """A frame's tokens by section, what is left of the total, and the total."""

    shares: Mapping[str, int]
    spare: int
    total: int


def budgeted(
    frame: Frame, *, complexity: Complexity = Complexity.USUAL, intent: Intent | None = None
) -> Budgeted:
    """The tokens of each section in this frame, within its total.

    A question that looks back gives episodes twice their share, and at least 500 tokens. Raises
    InvalidPlan for a total that can't hold what is always there, or shares or priorities of an unknown
    section.
    """
    check_sections(frame)
    fixed = sum(ALWAYS.values())
    if frame.budget < fixed:
        raise InvalidPlan(
            f"Frame {frame.name!r} has a budget of {frame.budget} tokens, and {fixed} belong to what is "
            f"always there. Give it {fixed} or more; an assembly may be asked for fewer all the same."
        )
    whole = dict.fromkeys(FLEXIBLE, 0) | dict(frame.shares)
    wanted = scaled(whole, complexity)
    lost = sum(whole.values()) - sum(wanted.values()) if complexity is Complexity.SIMPLE else 0
    total = max(fixed, frame.budget - lost)
    if intent is not None and intent.looks_back:
        wanted["episodes"] = max(2 * wanted["episodes"], _LOOKING_BACK)
    room = total - fixed
    if sum(wanted.values()) > room:
        looks_back = intent is not None and intent.looks_back
        floors = {"episodes": min(_LOOKING_BACK, room)} if looks_back else {}
        parts = [
            Share(weight=wanted[name] - floors.get(name, 0), floor=floors.get(name, 0)) for name in FLEXIBLE
        ]
        wanted = dict(zip(FLEXIBLE, allocate(room, parts), strict=True))
    shares = {**ALWAYS, **wanted}
    return Budgeted(shares=shares, spare=total - sum(shares.values()), total=total)


def check_sections(frame: Frame) -> None:
    """Raise InvalidPlan for shares or priorities of sections that relevance doesn't fill."""
    for what, given in (("share", frame.shares), ("priority", frame.priorities)):
        if unknown := sorted({name for name, _ in given} - set(FLEXIBLE)):
            raise InvalidPlan(
                f"Frame {frame.name!r} gives a {what} to {unknown[0]!r}. "
                f"Sections with a {what}: {', '.join(FLEXIBLE)}."
            )


def layered(
    kinds: Kinds,
    frame: Frame,
    *,
    complexity: Complexity = Complexity.USUAL,
    intent: Intent | None = None,
    guidance: bool = False,
    past: Past = NO_PAST,
    total: int | None = None,
) -> Plan:
    """The plan for these kinds in this frame, whose priorities multiply into scores.

    More is gathered of what an intent hints at. With `guidance` the frame's own words stand in the context,
    as far as nothing else needs their tokens. `past` says what the question asks of commits and releases.
    Raises InvalidPlan.
    """
    budget = budgeted(frame, complexity=complexity, intent=intent)
    return Plan(
        name="layered",
        roll_over=RollOver.BEST,
        gate=True,
        boosts=True,
        spare=budget.spare,
        sections=(
            replace(
                always("identity", "## Identity", kinds),
                priority=4.0,
                limit=_CONSTRAINTS,
                required_kinds=kinds.in_section("identity"),
            ),
            replace(always("user", _ABOUT_USER, kinds), priority=2.5, share=_HALF_OF_USER, bounded=True),
            replace(
                always("user", _ABOUT_USER, kinds),
                share=_HALF_OF_USER,
                bounded=True,
                name="user_facts",
                priority=2.4,
                kinds=kinds.in_section("facts"),
                where=Filter(subject=USER),
            ),
            replace(
                always("censors", "## Active Constraints", kinds),
                priority=3.0,
                limit=_CONSTRAINTS,
                share=Share(weight=ALWAYS["censors"], floor=_FLOOR),
            ),
            frame_section(frame, guidance=guidance),
            replace(always("focus", "## Current Focus", kinds), priority=2.0, items=_IN_FOCUS),
            *_flexible(kinds, frame, budget.shares, intent, past),
            history(
                kinds,
                past,
                weight=max(budget.shares["episodes"], _LOOKING_BACK),
                budget=total or budget.total,
            ),
            # It has its share, and of what others leave only what nothing else wants.
            replace(always("calibration", "## Note", kinds), priority=0.1, items=1, advises=True),
        ),
    )


def _flexible(
    kinds: Kinds, frame: Frame, shares: Mapping[str, int], intent: Intent | None, past: Past
) -> tuple[Section, ...]:
    """The sections that relevance fills. A look back takes in all that happened, much alike or not.

    Releases that are asked for come before all else.
    """
    priorities = dict(frame.priorities)
    hints = () if intent is None else intent.hints
    every = ("episodes",) if intent is not None and intent.looks_back else ()
    before: tuple[Section, ...] = ()
    if past.releases:
        before = (releases(weight=2 * sum(shares[name] for name in FLEXIBLE), newest=past.newest),)
    return before + tuple(
        Section(
            name=name,
            heading=heading,
            kinds=tuple(kind for kind in kinds.in_section(name) if not (before and kind == CHANGELOG)),
            share=Share(weight=shares[name]),
            limit=limit_of(name, limit, hints),
            priority=priorities.get(name, _UNKNOWN_PRIORITY) + (name in hints),
            own_heading="{title}" in heading,
            levels=LONGEST_FIRST,
            by_session=name == "episodes",
            dates=name in _DATED,
            sources=name in _DATED,
            alike=None if name in every else alike,
            each=each,
            associates=priorities.get(name, _UNKNOWN_PRIORITY) >= _CARED_FOR,
        )
        for name, heading, limit, alike, each in _HEADINGS
    )


def always(name: str, heading: str, kinds: Kinds) -> Section:
    """A section that is attempted whatever the question, most important memories first."""
    return Section(
        name=name,
        heading=heading,
        kinds=kinds.in_section(name),
        share=Share(weight=ALWAYS[name]),
        order=Order.IMPORTANT,
        limit=_ALWAYS_LIMIT,
        levels=LONGEST_FIRST,
    )


def frame_section(frame: Frame, *, guidance: bool = True, weight: int = 0) -> Section:
    """The section that says what the agent is doing now, in the frame's own words; empty without guidance."""
    return Section(
        name="frame",
        heading=f"## Current Approach: {frame.name[:1].upper()}{frame.name[1:]}",
        share=Share(weight=weight),
        priority=2.0,
        text=_frame_text(frame) if guidance else "",
    )


def _frame_text(frame: Frame) -> str:
    if not frame.questions:
        return frame.description
    return "\n".join([frame.description, "Consider:", *(f"- {question}" for question in frame.questions)])

"""The sections of commits and of releases.

Level: plans. Pure data.

A repository has thousands of commits, whose short messages share words with any question. So commits have a
section with a limit of candidates of its own, which an ordinary question fills last.
"""

from __future__ import annotations

from dataclasses import dataclass

from germane.kinds import CHANGELOG, Kinds
from germane.model.memory import Level
from germane.model.plan import Section, Share
from germane.model.query import Order

__all__ = ["HEADING", "HISTORY", "NO_PAST", "Past", "history", "releases"]

HISTORY = "history"
"""The section of commits."""

HEADING = "## What Was Changed"

_LONGEST_FIRST = (Level.FULL, Level.SUMMARY, Level.MICRO)
_CANDIDATES = 100
_FEW_COMMITS = 2
"""As many as an ordinary question shows at most: more would be a list of subjects that nobody asked for."""
_TOKENS_OF_A_COMMIT = 40
_NEWEST = 10
_FLOOR = 40
"""Tokens that releases may claim of the smallest budget, where a question asks for them: about one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a question asks of the past: what was changed (`history`), what happened, or releases.

    `newest` says that it asks for releases and names no topic.
    """

    history: bool = False
    looks_back: bool = False
    releases: bool = False
    newest: bool = False


NO_PAST = Past()


def history(kinds: Kinds, past: Past, *, weight: int, budget: int) -> Section:
    """The section of commits.

    A question on history shows them beside all else, about half a budget of them before other memories are
    through. Any other question leaves them what nothing else uses.
    """
    if past.history:
        return Section(
            name=HISTORY,
            heading=HEADING,
            kinds=kinds.in_section(HISTORY),
            share=Share(weight=weight),
            limit=_CANDIDATES,
            priority=1.0,
            levels=_LONGEST_FIRST,
            alike="kind",
            each=max(2, budget // (2 * _TOKENS_OF_A_COMMIT)),
        )
    return Section(
        name=HISTORY,
        heading=HEADING,
        kinds=kinds.in_section(HISTORY),
        share=Share(weight=0),
        limit=_CANDIDATES,
        levels=_LONGEST_FIRST,
        items=None if past.looks_back else _FEW_COMMITS,
        leftover=True,
    )


def releases(*, weight: int, newest: bool) -> Section:
    """The section of releases: the most relevant, or the `newest` whatever the words of the question."""
    return Section(
        name="releases",
        heading="## Releases",
        kinds=(CHANGELOG,),
        share=Share(weight=weight, floor=_FLOOR),
        order=Order.NEWEST if newest else None,
        limit=_NEWEST if newest else _CANDIDATES,
        priority=1.0,
        levels=_LONGEST_FIRST,
        dates=True,
        sources=True,
    )

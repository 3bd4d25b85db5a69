"""The sections of a context on their way through the passes of a fit, and the candidates in them.

Level: packing (imports ranking and model). What a fit has chosen is read of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from germane.model.memory import Level, Memory
from germane.model.plan import Plan, Section
from germane.model.trace import Ranked, Reason
from germane.packing.lines import Ladder, Line
from germane.ranking.deferred import Ranking, memories_of

__all__ = ["Block", "Choice", "Fitted", "LeftOut", "empty_blocks"]


@dataclass(slots=True, eq=False)
class Choice:
    """A candidate on its way through the passes: the level chosen for it, or why there is none.

    It stands at a place of a ranking. A `whole` one is required at full length; a `late` one comes after all
    others, whatever its score. One whose successor is a candidate too is `replaced`, and only shown
    shortened. `ladder` has its lines, and `asked` those of their levels that a pass has asked for so far.
    """

    ranking: Sequence[Ranked]
    place: int
    memory: Memory
    required: bool = field(default=False, init=False)
    whole: bool = field(default=False, init=False)
    late: bool = field(default=False, init=False)
    replaced: bool = field(default=False, init=False)
    line: Line | None = field(default=None, init=False)
    reason: Reason | None = field(default=None, init=False)
    tokens: int = field(default=0, init=False)
    short_by: int = field(default=0, init=False)
    ladder: Ladder | None = field(default=None, init=False)
    asked: tuple[Level, ...] = field(default=(), init=False)

    @property
    def passed_over(self) -> bool:
        """Whether it was tried and no level of it fitted."""
        return self.line is None and self.reason is Reason.OVER_BUDGET

    def wait(self) -> None:
        """Forget that it was passed over, so that a later pass may show it at another level or in more
        room.
        """
        self.reason, self.tokens, self.short_by = None, 0, 0

    @property
    def ranked(self) -> Ranked:
        """The candidate with its score."""
        return self.ranking[self.place]

    @property
    def score(self) -> float:
        """The score, which may be known without the rest."""
        ranking = self.ranking
        return ranking.scores[self.place] if isinstance(ranking, Ranking) else ranking[self.place].score


class LeftOut(NamedTuple):
    """Candidates that take no part in any pass, and why."""

    ranked: Sequence[Ranked]
    reason: Reason


@dataclass(slots=True, kw_only=True)
class Block:
    """A section on its way through the passes.

    `levels` are those that are tried, `share` is what it may use, `used` what it does, `shown` counts the
    memories that stand in it, and `sessions` names those whose date is written. `seen` are the texts that
    must not stand in it again. It is `plain` where neither a limit of items nor a heading beside its own
    has a say in what fits.
    """

    section: Section
    choices: list[Choice]
    levels: Sequence[Level]
    seen: set[str]
    repeats: bool
    plain: bool
    shown: int = 0
    share: int = 0
    used: int = 0
    flowed: int = 0
    shows_text: bool = False
    sessions: set[str] = field(default_factory=set)

    @property
    def open(self) -> bool:
        """Whether the section's heading is written, and so paid for."""
        return self.shows_text or self.shown > 0

    def note(self, text: str) -> None:
        """Remember that a text stands in the context, where it must not stand again."""
        if not self.repeats:
            self.seen.add(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The outcome of a fit: one block per section of the plan, in the plan's order."""

    blocks: tuple[Block, ...]
    lent: int = 0

    @property
    def shows_all(self) -> bool:
        """Whether every candidate stands there at full length, but for those whose text stands there
        already. Sections that get only left-over tokens don't count.
        """
        return all(
            choice.reason is Reason.DUPLICATE
            or (choice.line is not None and choice.line.level is block.section.levels[0])
            for block in self.blocks
            if not block.section.leftover
            for choice in block.choices
        )


def empty_blocks(
    plan: Plan,
    candidates: Sequence[Sequence[Ranked]],
    requires: Callable[[Section, Memory], bool] | None,
    *,
    whole: Collection[str] = (),
    late: Collection[str] = (),
) -> list[Block]:
    """The sections with their candidates, before anything stands in them.

    `whole` are the ids of memories that are required at full length, `late` those of memories that come last.
    """
    seen: set[str] = set()
    return [
        Block(
            section=section,
            levels=section.levels if section.overflow.degrades else section.levels[:1],
            seen=seen if plan.repeats == "never" else set(),
            repeats=plan.repeats == "always",
            plain=section.items is None and not section.own_heading and not section.by_session,
            choices=_choices(section, ranked, requires, whole, late),
        )
        for section, ranked in zip(plan.sections, candidates, strict=True)
    ]


def _choices(
    section: Section,
    ranked: Sequence[Ranked],
    requires: Callable[[Section, Memory], bool] | None,
    whole: Collection[str],
    late: Collection[str],
) -> list[Choice]:
    choices = [Choice(ranked, place, memory) for place, memory in enumerate(memories_of(ranked))]
    if requires is not None:
        for choice in choices:
            choice.required = requires(section, choice.memory)
            choice.whole = choice.memory.id in whole
    if late:
        for choice in choices:
            choice.late = choice.memory.ref in late
    return choices

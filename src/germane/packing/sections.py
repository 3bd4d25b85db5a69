"""Sections and their candidates on their way into a context, and how a budget is split over them.

What a fit has chosen is read of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from germane.errors import InvalidInput
from germane.lifecycle import is_obsolete, replaces
from germane.model.context import Ranked, Reason
from germane.model.memory import Level, Memory
from germane.model.plan import Plan, Section, Share
from germane.model.query import Order
from germane.ranking.similarity import Ranking, memories_of

if TYPE_CHECKING:
    from germane.packing.lines import LineCache, RenderedLine

_SUMMARY = (Level.SUMMARY,)
_HARDLY_LONGER = 1.3
"""A text that is so little longer than its summary is shown whole where the summary would do."""
_CUT_INSIDE = re.compile(r"…(?<=\S…)(?: \[[^]]*\])?$")
WORTH_TOKENS = 100
"""Tokens up to which turns are worth their score, whatever their length; about one passage."""
_PER_TOKEN = 0.25
"""The power by which a longer turn is worth less per token: see `docs/explanation/ranking.md`."""
_NEAR_BEST = 0.7
"""Advice whose score is at least so much of the best one's comes in with what relevance brought."""


@dataclass(slots=True, eq=False)
class Choice:
    """A candidate on its way through the passes: the level chosen for it, or why there is none.

    It stands at a place of a ranking, with a score. A `whole` one is required at full length; a `late` one
    comes after all others, whatever its score. One whose successor is a candidate too is `replaced` by that,
    and only shown on one line. Where sections are filled by value, `levels` are those at which it may be
    shown, longest first, and `brief` the shortest that carries its point with what is tried where that
    doesn't fit. `line_cache` has its lines, and `inquiries` those of their levels that a pass has tried.
    """

    ranking: Sequence[Ranked]
    place: int
    memory: Memory
    score: float
    required: bool = field(default=False, init=False)
    whole: bool = field(default=False, init=False)
    late: bool = field(default=False, init=False)
    replaced: Choice | None = field(default=None, init=False)
    levels: Sequence[Level] = field(default=(), init=False)
    brief: Sequence[Level] = field(default=(), init=False)
    line: RenderedLine | None = field(default=None, init=False)
    reason: Reason | None = field(default=None, init=False)
    tokens: int = field(default=0, init=False)
    short_by: int = field(default=0, init=False)
    line_cache: LineCache | None = field(default=None, init=False)
    inquiries: tuple[Level, ...] = field(default=(), init=False)

    @property
    def ranked(self) -> Ranked:
        """The candidate with the parts of its score, which is made when it is looked at."""
        return self.ranking[self.place]


class ExcludedCandidates(NamedTuple):
    """Candidates that take no part in any pass, and why."""

    ranked: Sequence[Ranked]
    reason: Reason


@dataclass(slots=True, kw_only=True)
class SectionBlock:
    """A section on its way through the passes.

    `levels` are those that are tried, `share` is what it may use, `used` what it does, `shown` counts the
    memories that stand in it, and `sessions` names those whose date is written. `seen` are the texts that
    must not stand in it again.
    """

    section: Section
    choices: list[Choice]
    levels: Sequence[Level]
    seen: set[str]
    repeats: bool
    shown: int = 0
    share: int = 0
    used: int = 0
    flowed: int = 0
    shows_text: bool = False
    sessions: set[str] = field(default_factory=set)


Waiting: TypeAlias = tuple[SectionBlock, Choice]
"""A candidate with the section that it would stand in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The outcome of a fit: one block per section of the plan, in the plan's order."""

    blocks: tuple[SectionBlock, ...]
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
    required: Collection[str],
    *,
    whole: Collection[str] = (),
    late: Collection[str] = (),
) -> list[SectionBlock]:
    """The sections with their candidates, before anything stands in them.

    `required` and `late` are versions that must stand and that come last, `whole` the ids of memories that
    are required at full length.
    """
    seen: set[str] = set()
    blocks = []
    for section, ranked in zip(plan.sections, candidates, strict=True):
        scores = ranked.scores if isinstance(ranked, Ranking) else [one.score for one in ranked]
        numbered = enumerate(zip(memories_of(ranked), scores, strict=True))
        choices = [Choice(ranked, place, memory, score) for place, (memory, score) in numbered]
        for choice in choices if required or late else ():
            ref = choice.memory.ref
            choice.required, choice.late = ref in required, ref in late
            choice.whole = choice.memory.id in whole
        blocks.append(
            SectionBlock(
                section=section,
                levels=section.levels if section.overflow.degrades else section.levels[:1],
                seen=seen if plan.repeats == "never" else set(),
                repeats=plan.repeats == "always",
                choices=choices,
            )
        )
    return blocks


@dataclass(slots=True)
class Reached:
    """What steps have led to: the candidates' lines, and how many are shown in a section with which dates.

    By the identity of candidates and of sections.
    """

    lines: dict[int, RenderedLine] = field(default_factory=dict)
    headed: dict[int, tuple[int, set[str]]] = field(default_factory=dict)


def in_rank_order(blocks: Sequence[SectionBlock]) -> list[Waiting]:
    """What has to do with the question in all sections, best first, then what comes late.

    What another one replaces follows it, in the place of the better of both. Of equal scores the newer comes
    first, then the greater id. Advice must be nearly as good as the best.
    """
    waiting = [
        (block, choice)
        for block in blocks
        for choice in block.choices
        if block.section.order is None or choice.score > 0
    ]
    places = {id(choice): choice.score for _, choice in waiting}
    for _, choice in waiting:
        if choice.replaced is not None and id(choice.replaced) in places:
            best = max(choice.score, places[id(choice.replaced)])
            places[id(choice)] = places[id(choice.replaced)] = best
    waiting.sort(key=lambda pair: (pair[1].memory.created_at, pair[1].memory.id), reverse=True)
    waiting.sort(key=lambda pair: (pair[1].late, -places[id(pair[1])], pair[1].replaced is not None))
    least = _NEAR_BEST * waiting[0][1].score if waiting else 0.0
    return [pair for pair in waiting if not pair[0].section.advises or pair[1].score >= least]


class Step(NamedTuple):
    """A candidate that comes into a context at a level, or is lengthened to it."""

    block: SectionBlock
    choice: Choice
    level: Level


def in_order_of_worth(waiting: Sequence[Waiting]) -> Iterator[Step]:
    """The steps by which candidates come in whole, in the order in which tokens are best spent on them.

    What a turn of dialogue adds grows with its length, and ever more slowly: as the power of 3/4 of its
    tokens. So per token a long turn is worth less than its score. A record is worth its score.
    """

    def worth(choice: Choice) -> float:
        tokens = choice.memory.renditions.full.tokens
        if tokens <= WORTH_TOKENS or not is_turn(choice.memory):
            return choice.score
        part: float = (WORTH_TOKENS / tokens) ** _PER_TOKEN
        return choice.score * part

    # What another one replaces stays behind it.
    order = sorted(waiting, key=lambda pair: (pair[1].late, -worth(pair[1].replaced or pair[1])))
    # Most steps are never taken.
    return (Step(block, choice, choice.levels[0]) for block, choice in order)


def displaced_turns(fitted: Fitted) -> int:
    """How many long turns are not whole while shorter ones with a lower score are."""
    turns = [choice for block in fitted.blocks for choice in block.choices if is_turn(choice.memory)]
    whole = {id(choice) for choice in turns if choice.line is not None and choice.line.level is Level.FULL}
    least = min((choice.score for choice in turns if id(choice) in whole), default=math.inf)
    long = [choice for choice in turns if choice.memory.renditions.full.tokens > WORTH_TOKENS]
    return sum(choice.score > least and id(choice) not in whole for choice in long)


def settle_levels(blocks: Sequence[SectionBlock]) -> None:
    """Mark the candidates that another one replaces, and say of each at which levels it may be shown.

    What is replaced gets no more tokens than its successor. One line that ends inside a sentence tells a
    reader too little of what relevance brought.
    """
    choices = [choice for block in blocks for choice in block.choices]
    obsolete = [choice for choice in choices if is_obsolete(choice.memory)]
    if obsolete:
        versions: dict[str, list[Choice]] = {}
        for choice in choices:
            versions.setdefault(choice.memory.id, []).append(choice)
        numbered = [choice for choice in choices if "number" in choice.memory.metadata]
        for choice in obsolete:
            named = (choice.memory.superseded_by or "").partition("@")[0]
            near = [*versions.get(named, ()), *versions[choice.memory.id], *numbered]
            choice.replaced = next((one for one in near if replaces(one.memory, choice.memory)), None)
    for block in blocks:
        longest = block.levels[:1]
        briefly = _SUMMARY if Level.SUMMARY in block.levels else longest
        for choice in block.choices:
            renditions = choice.memory.renditions
            levels = block.levels[-1:] if choice.replaced else block.levels
            line = renditions.micro.text
            if block.section.order is None and "…" in line and _CUT_INSIDE.search(line):
                levels = [level for level in levels if level is not Level.MICRO] or levels
            hardly_longer = renditions.full.tokens <= _HARDLY_LONGER * renditions.summary.tokens
            choice.levels = levels
            choice.brief = levels[:1] if choice.replaced else longest if hardly_longer else briefly


def in_claim_order(block: SectionBlock) -> Sequence[Choice]:
    """The candidates of a section that is always shown, in the order in which they claim its share.

    Where importance orders them: what has to do with the question first, then the more important, then the
    nearer in meaning.
    """
    if block.section.order is not Order.IMPORTANT:
        return block.choices
    near = "semantic"
    return sorted(
        block.choices,
        key=lambda one: (-one.score, -one.memory.importance, -one.ranked.candidate.signals.get(near, 0.0)),
    )


def is_turn(memory: Memory) -> bool:
    """Whether a memory is a turn of dialogue: one message of a session."""
    return memory.scope.name == "session" and "speaker" in memory.metadata


def is_whole(block: SectionBlock) -> bool:
    """Whether all of a section's candidates are shown at full length."""
    return all(
        choice.reason is Reason.DUPLICATE or (choice.line is not None and choice.line.level is Level.FULL)
        for choice in block.choices
    )


# Split a budget over sections: floors first, then weights, under ceilings, to the last token.


def allocate(total: int, shares: Sequence[Share]) -> tuple[int, ...]:
    """The tokens of each share; they sum to `total` exactly unless ceilings keep some back.

    Floors are set aside first (in proportion, where they don't all fit); what remains is split by
    weight, each part rounded down and the remainder given to the last section that can take it.
    What a ceiling cuts off goes to the others by weight again. Raises InvalidInput for a negative
    total.
    """
    if total < 0:
        raise InvalidInput(f"A budget of {total} tokens can't be split: it must be 0 or more.")
    floors = [share.floor for share in shares]
    if sum(floors) > total:
        return tuple(_by_weight(total, floors))
    given = list(floors)
    open_ = [index for index, share in enumerate(shares) if share.weight > 0]
    rest = total - sum(floors)
    while rest > 0 and open_:
        parts = _by_weight(rest, [shares[index].weight for index in open_])
        capped = []
        for index, part in zip(open_, parts, strict=True):
            ceiling = shares[index].ceiling
            granted = part if ceiling is None else min(part, ceiling - given[index])
            given[index] += granted
            rest -= granted
            if granted < part:
                capped.append(index)
        if not capped:
            break
        open_ = [index for index in open_ if index not in capped]
    return tuple(given)


def _by_weight(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in proportion to the weights, rounded down, the remainder to the last with a weight."""
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    parts = [total * weight // whole for weight in weights]
    last = max(index for index, weight in enumerate(weights) if weight)
    parts[last] += total - sum(parts)
    return parts

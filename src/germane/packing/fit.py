"""Choose which memories stand in a context, at which level, within the budget.

Pure: the same sections, budget and counter give the same choice.

Three passes. What is required comes first, at its shortest or whole, and grows as its section's share allows;
where a section's required memories need more than its share, the flexible sections lend it, the lowest
priority first. Then each section fills its share in rank order by its overflow rule. Then what is left over
flows where the plan sends it: to memories that were left out, then to longer levels of those that were not. A
plan whose tokens flow to the best instead fills all sections together; see `_Packer.by_value`. An exact
knapsack finds denser packings and worse contexts: rank order is the default because longer items carry more
evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from germane.errors import BudgetTooSmall
from germane.model.context import Ranked, Reason
from germane.model.memory import Level
from germane.model.plan import Plan, RollOver, Section, Share
from germane.packing.lines import Costs, RenderedLine
from germane.packing.render import session_of
from germane.packing.sections import (
    Choice,
    Fitted,
    Reached,
    SectionBlock,
    Step,
    Waiting,
    allocate,
    empty_blocks,
    in_claim_order,
    in_order_of_worth,
    in_rank_order,
    is_turn,
    is_whole,
    settle_levels,
)

# Read for every candidate. On Python 3.11 finding a member in its enum takes as long as a call.
_OVER_BUDGET, _DUPLICATE, _STOPPED = Reason.OVER_BUDGET, Reason.DUPLICATE, Reason.STOPPED

_BREADTH = 0.25
"""The share of a budget that brings candidates in by their order alone, each briefly.

Of 0.2 to 0.5 it is the largest that shows at least as much evidence whole as none does, in four kinds of
dialogue and in decision records (`germane eval run`); of long turns it shows more.
"""
_STATE_PARTS = 0.15
"""The share of what is left that lengthens what stands there whatever the question, before others come in."""
_TOKENS = attrgetter("tokens")
_LEAST_MORE = 12
"""Tokens by which an excerpt is longer than what it takes the place of."""
_OWN_WORDS = 0.05
"""The share of a budget that a section's own text may take where sections are filled by value."""

Precedence = Callable[[list[Ranked]], Sequence[Ranked]]
"""Orders memories whatever their section."""


def fit(
    plan: Plan,
    candidates: Sequence[Sequence[Ranked]],
    budget: int,
    costs: Costs,
    *,
    required: Collection[str] = (),
    whole: Collection[str] = (),
    late: Collection[str] = (),
    precedence: Precedence | None = None,
) -> Fitted:
    """What stands in the context, per section of the plan, within `budget` tokens.

    `candidates` holds one sequence per section, in rank order; `costs` makes their lines, and knows what they
    and the headings cost. Memories whose versions are `required` must stand, and those whose ids are in
    `whole` at full length; `late` versions come after all others. `precedence` orders what a plan backfills.
    Raises BudgetTooSmall when what is required doesn't fit.
    """
    blocks = empty_blocks(plan, candidates, required, whole=whole, late=late)
    packer = _Packer(costs)
    packer.require(blocks, budget)
    # What the plan spares has a share that no section gets.
    shares = [*(section.share for section in plan.sections), Share(weight=plan.spare)]
    for block, share in zip(blocks, allocate(budget, shares), strict=False):
        block.share = share
    lent = _lend(blocks)
    every, blocks = blocks, [block for block in blocks if not block.section.leftover]
    available = budget - sum(block.used for block in every if block.section.leftover)
    if plan.roll_over is RollOver.BEST:
        packer.by_value(blocks, available)
    else:
        carried = 0
        for block in blocks:
            if plan.roll_over is RollOver.NEXT:
                block.flowed += carried
            packer.fill(block, block.share + block.flowed - block.used)
            carried = block.share + block.flowed - block.used
        if plan.roll_over is RollOver.PRIORITY:
            packer.spread(blocks, available - sum(block.used for block in blocks))
        if plan.backfill and precedence is not None:
            packer.backfill(blocks, available, precedence)
    for block in every:
        if block.section.leftover:
            packer.fill(block, packer.under_ceiling(block, budget - sum(each.used for each in every)))
            block.flowed = max(0, block.used - block.share)
    return Fitted(blocks=tuple(every), lent=lent)


def _left(blocks: Sequence[SectionBlock], budget: int) -> int:
    return budget - sum(block.used for block in blocks)


def _lend(blocks: Sequence[SectionBlock]) -> int:
    """Cover sections whose required memories exceed their share from the others' shares; the tokens lent.

    The lowest priority lends first, and nobody lends what its own required memories use.
    """
    owed = lent = sum(max(0, block.used - block.share) for block in blocks)
    for block in blocks:
        block.share = max(block.share, block.used)
    for _, block in sorted(enumerate(blocks), key=lambda pair: (pair[1].section.priority, -pair[0])):
        part = min(owed, block.share - block.used)
        block.share -= part
        owed -= part
    return lent


@dataclass(frozen=True, slots=True)
class _Packer:
    """The passes over the blocks."""

    costs: Costs

    def require(self, blocks: Sequence[SectionBlock], budget: int) -> None:
        """Place what is required, whole or at its shortest, or raise BudgetTooSmall."""
        named: list[str] = []
        for block in blocks:
            for choice in block.choices:
                if choice.required:
                    levels = (Level.FULL,) if choice.whole else block.section.levels
                    lines = [self._line(block.section, choice, level) for level in levels]
                    line = min((line for line in lines if line.text), key=_TOKENS, default=None)
                    if line is not None:
                        heading = self._heading(block, choice, block.shown, block.sessions)
                        self._show(block, choice, line, heading)
                        named.append(choice.memory.ref)
        needed = sum(block.used for block in blocks)
        if needed > budget:
            raise BudgetTooSmall(budget=budget, needed=needed, required=tuple(named))

    def fill(self, block: SectionBlock, free_tokens: int) -> None:
        """Fill a section's free tokens: required memories grow, then the others come in rank order."""
        end = block.used + free_tokens
        self.upgrade(block, end - block.used)
        self.add(block, end - block.used)

    def add(self, block: SectionBlock, free_tokens: int) -> None:
        """Show the section's own text and the memories that were left out so far, in rank order."""
        end = block.used + free_tokens
        self._write_text(block, free_tokens)
        stops = block.section.overflow.stops
        for position, choice in enumerate(block.choices):
            if choice.line is not None or choice.reason is _DUPLICATE:
                continue
            self._try(block, choice, end - block.used)
            if stops and choice.reason is _OVER_BUDGET:
                for later in block.choices[position + 1 :]:
                    if later.line is None:
                        later.reason = _STOPPED
                return

    def upgrade(self, block: SectionBlock, free_tokens: int) -> None:
        """Show memories that stand already at longer levels, in rank order, within `free_tokens`."""
        end = block.used + free_tokens
        for choice in block.choices:
            if choice.line is not None:
                self._lengthen(block, choice, end - block.used)

    def spread(self, blocks: Sequence[SectionBlock], pool: int) -> None:
        """Give left-over tokens away by priority: first to what was left out, then to longer levels."""
        end = sum(block.used for block in blocks) + pool
        by_priority = sorted(blocks, key=lambda block: -block.section.priority)
        for step in (self.add, self.upgrade):
            for block in by_priority:
                before = block.used
                step(block, self.under_ceiling(block, end - sum(one.used for one in blocks)))
                block.flowed += max(0, block.used - max(before, block.share))

    def backfill(self, blocks: Sequence[SectionBlock], budget: int, precedence: Precedence) -> None:
        """Give all that is left to what was left out, then to longer levels, whatever the section."""
        left = budget - sum(block.used for block in blocks)
        for grows in (False, True):
            # Few can still come in, or grow: only these are worth putting in order.
            waiting = {
                choice.memory.ref: (block, choice)
                for block in blocks
                for choice in block.choices
                if (choice.line is not None) is grows and self._could_use(block, choice, left)
            }
            for one in precedence([choice.ranked for _, choice in waiting.values()]):
                block, choice = waiting[one.candidate.memory.ref]
                before = block.used
                step = self._lengthen if grows else self._try
                step(block, choice, self.under_ceiling(block, left))
                left -= block.used - before
        for block in blocks:
            block.flowed = max(block.flowed, block.used - block.share)

    def by_value(self, blocks: Sequence[SectionBlock], budget: int) -> None:
        """Fill all sections together, so that a larger budget shows all that a smaller one showed.

        Sections that are shown whatever the question claim their shares. The other candidates come in by the
        first steps of two orders that don't depend on the budget: briefly by rank, in a quarter of it, and
        whole by `in_order_of_worth`. Then what is shown is lengthened in rank order, and texts are cut to
        the rest.
        """
        settle_levels(blocks)
        queue = in_rank_order(blocks)
        queued = {id(choice) for _, choice in queue}
        always = sorted(
            (block for block in blocks if block.section.order is not None),
            key=lambda block: -block.section.priority,
        )
        rest = [(block, choice) for block in always for choice in block.choices if id(choice) not in queued]
        advice = [pair for pair in rest if pair[0].section.advises]
        state = [pair for pair in rest if not pair[0].section.advises]
        for block in blocks:
            # Words that a floor is set aside for don't wait for what is left.
            self._write_text(block, min(block.section.share.floor, _left(blocks, budget)))
        claimed = 0
        # Advice stands where nothing else needs its tokens.
        claiming = [block for block in always if not block.section.advises]
        for block in claiming:
            self._claim(block, min(block.share - block.used, _left(blocks, budget)))
            claimed += block.used if is_whole(block) else max(block.used, block.share)
        available = budget - claimed - sum(block.used for block in blocks if block.section.order is None)
        available -= self._deepen(state, int(_STATE_PARTS * max(0, available)))
        free = [pair for pair in state if not pair[0].section.bounded]
        self._appear([*queue, *free], advice, max(0, available), blocks, budget)
        self._begin_next([*queue, *state], claiming, _left(blocks, budget))
        self._deepen([*state, *queue], _left(blocks, budget))
        self._begin_next([*queue, *state], claiming, _left(blocks, budget))  # Lengthened, all may be whole.
        self._deepen(advice, _left(blocks, budget))
        self._cut([*queue, *state], blocks, budget)
        if any(block.choices for block in blocks):
            for block in blocks:
                most = budget if block.section.advises else int(_OWN_WORDS * budget)
                self._write_text(block, min(_left(blocks, budget), most))
        for block in blocks:
            block.flowed = max(0, block.used - block.share)
        left = _left(blocks, budget)
        for _, choice in [*queue, *rest]:
            if choice.line is None and choice.reason is None:
                # Its turn never came.
                choice.tokens = choice.memory.renditions.at(choice.brief[0]).tokens
                choice.short_by = max(0, choice.tokens - left)
                choice.reason = _OVER_BUDGET if choice.short_by else _STOPPED

    def _claim(self, block: SectionBlock, free_tokens: int) -> None:
        """Show what a section always shows within its share, the important ones by the question first."""
        end = block.used + free_tokens
        choices = in_claim_order(block)
        for choice in choices:
            if not self._offer(block, choice, end - block.used, choice.brief):
                self._offer(block, choice, end - block.used, choice.levels)
                break
        for choice in choices:
            self._lengthen(block, choice, end - block.used)

    def _appear(
        self,
        sequence: Sequence[Waiting],
        advice: Sequence[Waiting],
        free_tokens: int,
        blocks: Sequence[SectionBlock],
        budget: int,
    ) -> None:
        """Show the leading candidates of a sequence by their worth, and more with a larger budget.

        Advice follows where all of them fit whole.
        """
        every = [*sequence, *advice]
        reached = Reached()
        breadth = int(_BREADTH * free_tokens)
        briefly = (Step(block, choice, choice.brief[0]) for block, choice in sequence)
        used = breadth - self._reach(briefly, breadth, reached)
        steps = chain(in_order_of_worth(sequence), in_order_of_worth(advice))
        self._reach(steps, free_tokens - used, reached, whole=True)
        for place, (block, choice) in enumerate(every):
            if choice.line is None and (not place or id(choice) in reached.lines):
                left = self.under_ceiling(block, _left(blocks, budget))
                self._offer(block, choice, left, choice.brief)
                self._offer(block, choice, left, choice.levels)
        for block, choice in every:
            line = reached.lines.get(id(choice))
            if line is not None and choice.line is not None:
                more = line.tokens - choice.line.tokens
                if 0 < more <= self.under_ceiling(block, _left(blocks, budget)):
                    self._show(block, choice, line)

    def _reach(
        self, steps: Iterable[Step], free_tokens: int, reached: Reached, *, whole: bool = False
    ) -> int:
        """Take the leading steps that fit into so many tokens, after those taken before; the tokens left.

        The first that is too long ends them, unless it shows a turn of dialogue `whole`: then others are
        taken in its place.
        """
        lines, headed = reached.lines, reached.headed
        for block, choice, level in steps:
            if choice.line is not None or choice.reason is not None:
                continue
            before = lines.get(id(choice))
            paid = 0 if before is None else before.tokens
            session = session_of(block.section, choice.memory)
            skips = whole and is_turn(choice.memory)
            if skips and self.costs.at_least(choice.memory, level) - paid > free_tokens:
                continue
            line = self._line(block.section, choice, level)
            if not line.text:
                continue
            shown, sessions = headed.get(id(block)) or (block.shown, set(block.sessions))
            heading = 0 if before is not None else self._heading(block, choice, shown, sessions)
            more = line.tokens + heading - paid
            if more > free_tokens:
                if skips:
                    continue
                break
            if more <= 0 and before is not None:
                continue
            free_tokens -= more
            lines[id(choice)] = line
            if session is not None:
                sessions.add(session)
            headed[id(block)] = shown + (before is None), sessions
        return free_tokens

    def _deepen(self, queue: Sequence[Waiting], free_tokens: int) -> int:
        """Lengthen what is shown, in the order given; the tokens used."""
        left = free_tokens
        for block, choice in queue:
            if choice.line is not None:
                before = block.used
                self._lengthen(block, choice, self.under_ceiling(block, left))
                left -= block.used - before
        return free_tokens - left

    def _begin_next(
        self, sequence: Sequence[Waiting], claims: Sequence[SectionBlock], free_tokens: int
    ) -> None:
        """Show the next text that fits into so many tokens, if all before it are whole.

        Only one, before any is lengthened, and not in what other sections have yet to claim: so a larger
        budget shows it as well, or one of a higher score. Turns of dialogue are passed over.
        """
        least = math.inf
        for block, choice in sequence:
            if choice.line is not None:
                if choice.line.level is not Level.FULL:
                    return
            elif (
                choice.reason in (None, _OVER_BUDGET) and choice.score <= least and not is_turn(choice.memory)
            ):
                others = [each for each in claims if each is not block and not is_whole(each)]
                left = free_tokens - sum(max(0, each.share - each.used) for each in others)
                levels = choice.levels if choice.replaced else block.levels
                if self._try(block, choice, self.under_ceiling(block, left), levels) is None:
                    return
                if any(one.line is not None for each, one in sequence if each.section.order is None):
                    return  # Only where nothing has come in by its score may a shorter text go first.
                least = choice.score

    def _cut(self, sequence: Sequence[Waiting], blocks: Sequence[SectionBlock], budget: int) -> None:
        """Use up what is left: longer excerpts of what is shown, and turns of dialogue.

        Turns come in whole where they fit, and shortened as long as over a twelfth of the budget is left.
        """
        for block, choice in sequence:
            if choice.line is not None and choice.line.level is not Level.FULL:
                self._excerpt(block, choice, self.under_ceiling(block, _left(blocks, budget)))
            elif choice.line is None and is_turn(choice.memory):
                left = self.under_ceiling(block, _left(blocks, budget))
                if self.costs.at_least(choice.memory, Level.FULL) <= left:
                    self._offer(block, choice, left, block.levels[:1])
        few = budget // 12  # Parts count for more than the whole text, of which at most a tenth stays free.
        for block, choice in sequence:
            if choice.line is None and choice.reason is None and is_turn(choice.memory):
                left = self.under_ceiling(block, _left(blocks, budget))
                if left > few:
                    self._try(block, choice, left, choice.levels if choice.replaced else block.levels)
                    self._excerpt(block, choice, self.under_ceiling(block, _left(blocks, budget)))

    def _offer(self, block: SectionBlock, choice: Choice, free_tokens: int, levels: Sequence[Level]) -> bool:
        """Show a memory at the longest of these levels that fits; else it waits, and the answer is False."""
        if choice.line is None and choice.reason is None:
            reason = self._try(block, choice, free_tokens, levels)
            if reason is _OVER_BUDGET:
                # A later pass may show it at another level or in more tokens.
                choice.reason, choice.tokens, choice.short_by = None, 0, 0
                return False
        return True

    def _excerpt(self, block: SectionBlock, choice: Choice, free_tokens: int) -> None:
        """Show more of a shortened memory's full text, if its next sentences fit."""
        line = choice.line
        if line is None or line.level is Level.FULL or Level.FULL not in choice.levels:
            return
        longer = self.costs.excerpt(block.section, choice.memory, line.tokens + free_tokens)
        if longer is not None and longer.tokens >= line.tokens + _LEAST_MORE:
            self._show(block, choice, longer)

    def _write_text(self, block: SectionBlock, free_tokens: int) -> None:
        if (
            block.section.text
            and not block.shows_text
            and (cost := self.costs.text(block.section)) <= free_tokens
        ):
            block.shows_text = True
            block.used += cost

    def _could_use(self, block: SectionBlock, choice: Choice, free_tokens: int) -> bool:
        """Whether so many tokens could bring a memory in, or lengthen one that stands already."""
        if choice.line is None:
            return choice.tokens <= free_tokens and choice.reason is _OVER_BUDGET
        return choice.line.level is not block.section.levels[0]

    def under_ceiling(self, block: SectionBlock, free_tokens: int) -> int:
        """So many tokens, or fewer where the section's ceiling leaves fewer."""
        ceiling = block.section.share.ceiling
        return free_tokens if ceiling is None else max(0, min(free_tokens, ceiling - block.used))

    def _try(
        self, block: SectionBlock, choice: Choice, free_tokens: int, levels: Sequence[Level] | None = None
    ) -> Reason | None:
        """Show a memory at the longest level that fits, of these or of its section's; why none does."""
        section = block.section
        if section.items is not None and block.shown >= section.items:
            choice.reason, choice.short_by = Reason.LIMIT, 0
            return choice.reason
        heading = self._heading(block, choice, block.shown, block.sessions)
        if choice.reason is _OVER_BUDGET and choice.tokens > free_tokens:
            # A pass before this one found no level short enough even for these tokens.
            choice.short_by = choice.tokens + heading - max(0, free_tokens)
            return _OVER_BUDGET
        least = 0
        levels = levels or block.levels
        for level in levels:
            if self._is_too_long(section, choice, level, levels[-1], free_tokens):
                continue
            line = self._line(section, choice, level)
            if not line.text:
                continue
            if line.body in block.seen:
                choice.reason, choice.tokens, choice.short_by = _DUPLICATE, line.tokens, 0
                return _DUPLICATE
            if line.tokens + heading <= free_tokens:
                self._show(block, choice, line, heading)
                return None
            least = min(least or line.tokens, line.tokens)
        choice.reason, choice.tokens = _OVER_BUDGET, least
        choice.short_by = max(0, least + heading - max(0, free_tokens))
        return _OVER_BUDGET

    def _lengthen(self, block: SectionBlock, choice: Choice, free_tokens: int) -> None:
        """Show a memory that already stands at a longer level within `free_tokens`."""
        current = choice.line
        if current is None or choice.whole or current.level is block.section.levels[0]:
            return
        for level in choice.levels if choice.replaced else block.section.levels:
            line = self._line(block.section, choice, level)
            if line.text and line.level is current.level:
                return
            if line.text and 0 < line.tokens - current.tokens <= free_tokens:
                self._show(block, choice, line)
                return

    def _show(self, block: SectionBlock, choice: Choice, line: RenderedLine, heading: int = 0) -> None:
        """Show a memory by a line under headings of so many tokens, or by another line than before."""
        if choice.line is None:
            block.shown += 1
            block.used += heading
            if (session := session_of(block.section, choice.memory)) is not None:
                block.sessions.add(session)
        else:
            block.seen.discard(choice.line.body)
            block.used -= choice.line.tokens
        block.used += line.tokens
        if not block.repeats:
            block.seen.add(line.body)
        choice.line, choice.tokens, choice.reason, choice.short_by = line, line.tokens, None, 0

    def _heading(self, block: SectionBlock, choice: Choice, shown: int, sessions: Collection[str]) -> int:
        """What the headings cost that this memory would be the first to stand under.

        `shown` memories stand in its section already, and the dates of `sessions` are written there.
        """
        section = block.section
        if section.own_heading:
            return self.costs.heading(section, choice.memory).tokens
        if shown and not section.by_session:
            return 0
        cost = 0 if shown or block.shows_text else self.costs.heading(section, None).tokens
        if section.by_session:
            session = session_of(section, choice.memory)
            if session is not None and session not in sessions:
                cost += self.costs.heading(section, choice.memory).tokens
        return cost

    def _line(self, section: Section, choice: Choice, level: Level) -> RenderedLine:
        """The line of a memory at a level."""
        cache = choice.line_cache
        if cache is None:
            cache = choice.line_cache = self.costs.line_cache(section, choice.memory)
        if level not in choice.inquiries:
            choice.inquiries += (level,)
        line = cache.lines.get(level)
        if line is None:
            line = cache.lines[level] = self.costs.line(section, choice.memory, level)
        return line

    def _is_too_long(
        self, section: Section, choice: Choice, level: Level, last: Level, free_tokens: int
    ) -> bool:
        """Whether a line that no pass has looked at is sure to be longer than `free_tokens`.

        No for the `last` level that will be tried, and where that may be longer still.
        """
        if level is last or level in choice.inquiries:
            return False
        memory, cache = choice.memory, choice.line_cache
        if cache is None:
            cache = choice.line_cache = self.costs.line_cache(section, memory)
        for each in (level, last):
            if each not in cache.least:
                cache.least[each] = self.costs.at_least(memory, each)
        return free_tokens < cache.least[level] >= cache.least[last]

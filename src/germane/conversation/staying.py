"""What is recalled beside a window: at first, and what of it stays from one request to the next.

Level: ranking (imports model and conversation). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from germane.conversation.arranging import Arrangement
from germane.conversation.beside import recall_block, worth
from germane.conversation.fitting import Window, loosened
from germane.conversation.wanted import AIM, FULL, Wanted, block_cost
from germane.model.conversation import GroupScores
from germane.model.request import Block

__all__ = ["Case", "cost_of", "lifted", "recalled_anew", "recalled_on", "spare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a request is solved for: `fixed` is what its head and the blocks but the recalled one cost.

    `share` is what may be recalled by relevance, `bound` the most that the window may cost.
    """

    arranged: Arrangement
    wanted: Wanted
    fixed: int
    share: int
    bound: int | None = None

    @property
    def full(self) -> int:
        """The tokens from which on a request is full enough."""
        return math.ceil(FULL * self.wanted.limit)

    @property
    def is_same_question(self) -> bool:
        """Whether the request before was for the same group and query."""
        before, now = self.wanted.previous, (self.arranged.current, self.wanted.asked)
        return before is not None and (before.current, before.asked) == now

    def room(self, taken: int) -> int:
        """What the window may cost beside `taken` tokens of other things."""
        left = self.wanted.limit - self.fixed - taken
        return left if self.bound is None else min(left, self.bound)

    def to_fill(self, used: int, held: int) -> tuple[int, int]:
        """How many tokens at least and at most fill a request that costs `used`, `held` of it recalled.

        More than the ceiling says is recalled only to keep the promise of a full request.
        """
        limit, ceiling = self.wanted.limit, self.wanted.shares.recalled.ceiling
        bound = limit if ceiling is None else max(ceiling - held, math.ceil(FULL * limit) - used)
        return min(self.full - used, bound), min(limit - used, bound)

    def tokens(self, window: Window, blocks: Sequence[Block]) -> int:
        """What the whole request costs with these."""
        return self.fixed + window.tokens(self.arranged) + cost_of(self.arranged, blocks)


def recalled_anew(case: Case, window: Window, slack: int, *, fill: bool = False) -> list[Block]:
    """What is recalled beside a new window, within its share or, to fill the request, beyond it."""
    used = case.tokens(window, ())
    least, most = case.to_fill(used, 0) if fill else (0, 0)
    block = recall_block(
        case.arranged,
        _before(case, window),
        case.wanted.found(),
        room=min(case.share, case.wanted.limit - used - slack),
        least=least,
        most=most,
    )
    return [] if block is None else [replace(block, before=case.arranged.current)]


def recalled_on(case: Case, window: Window, recalled: list[Block]) -> tuple[Window, list[Block]]:
    """The same beside a window that only grew: as it was, with more beside it, or anew.

    It is anew when what the question asks for and isn't shown is worth the prefix that this breaks.
    """
    before = _before(case, window)
    if before and not case.is_same_question:
        recalled = _for_question(case, window, recalled, before)
    total = case.tokens(window, recalled)
    if total < case.full and window.forms:
        room = case.room(cost_of(case.arranged, recalled))
        window = loosened(case.arranged, window, room, window.tokens(case.arranged))
        total = case.tokens(window, recalled)
    if total < case.full and before:
        least, most = case.to_fill(total, cost_of(case.arranged, recalled))
        unshown = _unshown(before, recalled)
        more = recall_block(case.arranged, unshown, GroupScores(), room=0, least=least, most=most)
        recalled = _with_more(case, recalled, more)
    return window, recalled


def spare(case: Case, window: Window, recalled: Sequence[Block]) -> list[Block]:
    """What takes the room that is left for the next turn until that turn needs it: the latest unshown."""
    used = case.tokens(window, recalled)
    wanting = math.ceil(AIM * case.wanted.limit) - used
    if wanting <= 0:
        return []
    _, most = case.to_fill(used, cost_of(case.arranged, recalled))
    unshown = _unshown(_before(case, window), recalled)
    block = recall_block(case.arranged, unshown, GroupScores(), room=0, least=min(wanting, most), most=most)
    return [] if block is None else [replace(block, before=case.arranged.current, spare=True)]


def lifted(arranged: Arrangement, blocks: Sequence[Block], window: Window) -> list[Block]:
    """The blocks, those that stood before a group that is gone now above the window."""
    return [
        replace(block, before=None)
        if block.before is not None and arranged.number(block.before) < window.start
        else block
        for block in blocks
    ]


def cost_of(arranged: Arrangement, blocks: Sequence[Block]) -> int:
    """What blocks cost together."""
    return sum(block_cost(block, arranged) for block in blocks)


def _for_question(case: Case, window: Window, recalled: list[Block], before: Sequence[str]) -> list[Block]:
    """What is shown for another question than the request before answered."""
    found, arranged = case.wanted.found(), case.arranged
    used = case.tokens(window, ())
    held = cost_of(arranged, recalled)
    best = recall_block(arranged, before, found, room=min(case.share, case.wanted.limit - used))
    if best is None:
        return recalled
    wants = {name: float(found.scores.get(group, 0)) for name, group in _groups_in([best]).items()}
    if wants.keys() <= _groups_in(recalled).keys():
        return recalled
    left = min(case.share, case.wanted.limit - used) - held
    wider = _with_more(case, recalled, recall_block(arranged, _unshown(before, recalled), found, room=left))
    shown = _groups_in(wider).keys()
    if (
        recalled
        and not wants.keys() <= shown
        and worth(wants, tuple(shown), _after(case, recalled), used + held)
    ):
        return [replace(best, before=arranged.current)]
    return wider


def _with_more(case: Case, recalled: list[Block], more: Block | None) -> list[Block]:
    return recalled if more is None else [*recalled, replace(more, before=case.arranged.current)]


def _unshown(groups: Sequence[str], blocks: Sequence[Block]) -> list[str]:
    known: Collection[str] = set(_groups_in(blocks).values())
    return [group for group in groups if group not in known]


def _groups_in(blocks: Sequence[Block]) -> dict[str, str]:
    """The groups that blocks recall, by their names there, which tell what was said in them."""
    return {name: name.rpartition(" ")[0] for block in blocks for name in block.shows}


def _before(case: Case, window: Window) -> list[str]:
    """The groups that the window doesn't show."""
    pins = set(window.pins)
    return [group for group in case.arranged.order[: window.start] if group not in pins]


def _after(case: Case, blocks: Sequence[Block]) -> int:
    """The tokens from the first of the blocks on."""
    arranged = case.arranged
    places = (arranged.number(block.before) for block in blocks if block.before is not None)
    groups = arranged.order[min(places, default=0) :]
    return cost_of(arranged, blocks) + sum(arranged.shown(group).tokens for group in groups)

"""What stands beside the dialogue of a request: anchors, memory and what is recalled, and when it changes.

Level: ranking (imports model and conversation). Pure.

Whatever changes in a request makes the provider read again all that stands after it. So a block stays
where it was first put as long as its text does, and one that changes is put just before the current group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from germane.conversation.arranging import Arrangement, Said
from germane.conversation.cutting import cut_middle
from germane.conversation.recalling import HEADING
from germane.conversation.wanted import Remembered, Wanted, block_cost
from germane.model.conversation import GroupScores
from germane.model.request import Block, RequestState

__all__ = [
    "MEMORY",
    "PRICE",
    "RECALLED",
    "anchor_blocks",
    "carried",
    "memory_block",
    "recall_block",
    "with_neighbours",
    "worth",
]

MEMORY, RECALLED = "memory", "recalled"
"""The names of blocks; that of an anchor is `anchor` and its own."""

PRICE: Final = 0.9
"""What a token costs more that a cache doesn't hold, as a share of its price: both providers ask a tenth."""

_SEPARATOR: Final = "\n---\n"
_LEAST: Final = 0.05
"""The share of the best score, or of a full match if that is more, below which nothing is recalled."""
_BESIDE: Final = ((1, 40), (2, 15))
"""What a group's score gives those so many places before and after it, in hundredths."""
_JUDGED: Final = 400
_SMALLEST: Final = 12
"""Tokens below which an excerpt says nothing."""


def carried(arranged: Arrangement, state: RequestState | None, wanted: Wanted) -> tuple[Block, ...]:
    """The blocks of the request before that may stay: nothing in them was hidden, changed or forgotten.

    Memory that another filter admitted may not.
    """
    if state is None:
        return ()
    kept = []
    for block in state.blocks:
        if block.before is not None and block.before not in arranged:
            continue
        if block.name == MEMORY:
            stands = state.admits == wanted.admits and wanted.still_stands(block.shows)
        elif block.name == RECALLED:
            stands = all(_still_said(arranged, *shown.rsplit(" ", 1)) for shown in block.shows)
        else:
            stands = any(
                block == replace(each, before=block.before) for each in anchor_blocks(wanted.anchors)
            )
        if stands:
            kept.append(block)
    return tuple(kept)


def anchor_blocks(anchors: Mapping[str, str], before: str | None = None) -> list[Block]:
    """Each anchor as a block of its own."""
    return [
        Block(name=f"anchor {name}", text=f"{name.capitalize()}:\n{text}", before=before)
        for name, text in anchors.items()
        if text.strip()
    ]


def memory_block(remembered: Remembered, before: str | None) -> Block | None:
    """Memory as a block; None where there is nothing to show."""
    if not remembered.text.strip():
        return None
    return Block(name=MEMORY, text=remembered.text, before=before, shows=tuple(remembered.shows))


def worth(shown: Mapping[str, float], kept: Sequence[str], reread: int, total: int) -> bool:
    """Whether new text is worth the prefix that it breaks.

    It is when the share of the new text's scores that the kept one lacks is more than the share of the
    request that has to be read anew, times what that costs.
    """
    mass = sum(shown.values())
    if not shown:
        return False
    known = set(kept)
    lacking = [score for name, score in shown.items() if name not in known]
    gain = sum(lacking) / mass if mass > 0 else len(lacking) / len(shown)
    return gain > PRICE * reread / max(total, 1)


def recall_block(
    arranged: Arrangement,
    candidates: Sequence[str],
    found: GroupScores,
    *,
    room: int,
    least: int = 0,
    most: int = 0,
) -> Block | None:
    """What matches best, of at most `room` tokens; then the latest, up to `least` tokens if there are any.

    The whole block has at most the larger of `room` and `most` tokens. None where nothing is recalled.
    """
    most = max(room, most)
    alone = block_cost(Block(name=RECALLED, text=HEADING), arranged)
    chosen = _Chosen(used=alone)
    for group in _matching(arranged, candidates, found, room - alone):
        chosen.take(group, arranged.said(group))
    if least > 0:
        _fill(arranged, candidates, chosen, least, most)
    while chosen.sources:
        block = _written(arranged, chosen)
        over = block_cost(block, arranged) - most
        if over <= 0:
            return block
        # Tokens don't add up where texts meet, so the last one chosen gives way.
        chosen.shorten(over)
    return None


class _Chosen:
    """The groups of a block in words, some of them cut to so many tokens; about what they cost together."""

    def __init__(self, *, used: int) -> None:
        self.used = used
        self.sources: dict[str, Said] = {}
        self.cut: dict[str, int] = {}

    def take(self, group: str, said: Said, tokens: int | None = None) -> None:
        """Add a group, or show more of it; with `tokens`, only so much."""
        before = self.cut.pop(group, self.sources[group].tokens) + 2 if group in self.sources else 0
        self.sources[group] = said
        if tokens is not None:
            self.cut[group] = tokens
        self.used += (said.tokens if tokens is None else tokens) + 2 - before

    def shorten(self, over: int) -> None:
        """Make the last one shorter by so many tokens, or leave it out."""
        last = next(reversed(self.sources))
        left = self.cut.get(last, self.sources[last].tokens) - over
        if left >= _SMALLEST:
            self.cut[last] = left
        else:
            del self.sources[last]
            self.cut.pop(last, None)


def _fill(arranged: Arrangement, candidates: Sequence[str], chosen: _Chosen, least: int, most: int) -> None:
    """Take the latest of what isn't there yet, then what was cut of their tool results."""
    for whole in (False, True):
        for group in reversed(candidates):
            # What groups cost together is a little less than the sum.
            if chosen.sources and chosen.used - 2 * len(chosen.sources) >= least:
                return
            said = arranged.said(group, whole=whole)
            shown = chosen.sources.get(group)
            if not said.text or (shown is not None and said.tokens <= shown.tokens):
                continue
            left = most - chosen.used + (0 if shown is None else shown.tokens + 2)
            if said.tokens + 2 <= left:
                chosen.take(group, said)
            elif left - 2 >= max(_SMALLEST, 0 if shown is None else shown.tokens + 1):
                chosen.take(group, said, left - 2)


def with_neighbours(arranged: Arrangement, found: GroupScores) -> GroupScores:
    """The scores with a share of each for the groups around it.

    The answer to a question often stands beside the words of it: bench/prefix.py measures 5 points more
    of the evidence with it.
    """
    order, spread = arranged.order, dict(found.scores)
    for group, score in found.scores.items():
        if group not in arranged:
            continue
        place = arranged.number(group)
        for distance, share in _BESIDE:
            for near in (place - distance, place + distance):
                if 0 <= near < len(order):
                    spread[order[near]] = spread.get(order[near], 0) + score * share // 100
    return GroupScores(scores=spread, bound=found.bound)


def _still_said(arranged: Arrangement, group: str, digest: str) -> bool:
    return group in arranged and arranged.said(group).digest == digest


def _matching(arranged: Arrangement, candidates: Sequence[str], found: GroupScores, room: int) -> list[str]:
    """The groups that match best; whoever doesn't fit is passed over."""
    floor = _LEAST * max([found.bound, *found.scores.values()], default=0)
    matched = [group for group in candidates if found.scores.get(group, 0) > floor]
    matched.sort(key=lambda group: (-found.scores[group], -arranged.number(group)))
    chosen = []
    for group in matched[:_JUDGED]:
        if room < _SMALLEST:
            break
        price = arranged.said(group).tokens + 2
        if price <= room and arranged.said(group).text:
            chosen.append(group)
            room -= price
    return chosen


def _written(arranged: Arrangement, chosen: _Chosen) -> Block:
    texts, shows = [], []
    for group in sorted(chosen.sources, key=arranged.number):
        text = chosen.sources[group].text
        if group in chosen.cut:
            first = arranged.members(group)[0].id
            whole = f'; expand("{first}") returns the whole' if first else ""
            text = cut_middle(
                text,
                chosen.cut[group],
                lambda gone, whole=whole: f"[{gone:,} characters left out{whole}]",  # type: ignore[misc]  # The default binds it.
                head=0.5,
                measure=arranged.counter.count,
            )
        texts.append(text)
        shows.append(f"{group} {arranged.said(group).digest}")
    return Block(name=RECALLED, text=f"{HEADING}\n{_SEPARATOR.join(texts)}", shows=tuple(shows))

"""The groups that match a query best, by words and recency, in the order of the conversation.

Level: ranking (imports model, errors, ranking and conversation). Pure: scores come in as plain data.

This is std_slop's FTS_RANKED. Two parts of it are chosen differently unless the caller says
otherwise: recency ranks all groups and not only those that match, so that free places are
filled, and the number of groups counts the current one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from germane.conversation.groups import groups_of
from germane.conversation.window import ALL, NONE, checked_size, required_cost, selected, window
from germane.errors import InvalidInput
from germane.model.conversation import Cost, LeftOut, Selection
from germane.model.message import Group, Message
from germane.model.trace import Note, Reason
from germane.ranking.fusion import fuse_ranks

__all__ = ["RECENCY", "WEIGHTS", "RecencyScope", "fused", "ranked"]

RecencyScope: TypeAlias = Literal["all", "matched"]

WEIGHTS = (1.5, 1.0)
"""What a rank by words counts, and what one by recency does."""

RECENCY = Note(code="recency", text="The prompt names nothing to search for, so the latest groups are shown.")


def ranked(
    messages: Sequence[Message],
    scores: Mapping[str, float] | None,
    *,
    groups: int = ALL,
    budget: int | None = None,
    cost: Cost | None = None,
    recency_scope: RecencyScope = "all",
    counts_current: bool = True,
    depth: int | None = None,
    weights: Sequence[float] = WEIGHTS,
) -> Selection:
    """The best `groups` groups (0 all, -1 none but the current) of no more than `budget` tokens.

    `scores` are those of the prompt by group id; None when the prompt says nothing, and the result is
    then the recent window. The current group is no candidate and always in; system messages are as well.
    With `recency_scope="matched"`, recency ranks only what matches, if anything does.
    `counts_current=False` takes `groups` groups beside the current one where any matches; where none does,
    recency ranks the current group too, and it is one of `groups`. `depth` is how many of each
    ranking count, `weights` what a rank by words and one by recency do. Of equal scores the later group
    wins. Raises BudgetTooSmall and InvalidInput.
    """
    if recency_scope not in ("all", "matched"):
        raise InvalidInput(f"recency_scope={recency_scope!r} is unknown: take 'all' or 'matched'.")
    if depth is not None and depth < 1:
        raise InvalidInput(f"depth={depth!r} ranks nothing: take 1 or more, or None for all.")
    if len(weights) != 2 or not all(0 <= weight < math.inf for weight in weights):  # noqa: PLR2004 - Words, recency.
        raise InvalidInput(
            f"weights={weights!r} can't be used: take two numbers from 0, for words and recency."
        )
    checked_size(groups, budget, cost)
    if scores is None:
        recent = window(messages, groups=1 if groups == NONE else groups, budget=budget, cost=cost)
        return replace(recent, notes=(RECENCY,))
    candidates = groups_of(messages)
    current, others = candidates[-1:], candidates[:-1]
    # Without a match std_slop ranks all groups by recency: the current one is the latest, and takes a place.
    ranks_current = not counts_current and not any(group.id in scores for group in others)
    opened = [group.id for group in (candidates if ranks_current else others)]
    parts = fused(
        opened, {} if ranks_current else scores, recency_scope=recency_scope, depth=depth, weights=weights
    )
    counted = counts_current or ranks_current
    room = len(others) if groups == ALL else 0 if groups == NONE else groups - counted
    used = required_cost(messages, current, budget, cost)
    left = None if budget is None else budget - used
    best, left_out, spent = _best(others, parts, room=room, budget=left, cost=cost)
    chosen = {group.id for group in (*current, *best)}
    found = selected(messages, candidates, chosen, tokens=used + spent, left_out=left_out)
    return replace(found, scores=parts)


def fused(
    opened: Sequence[str],
    scores: Mapping[str, float],
    *,
    recency_scope: RecencyScope = "all",
    depth: int | None = None,
    weights: Sequence[float] = WEIGHTS,
) -> Mapping[str, float]:
    """The fused score of each group in either ranking; `opened` are the candidates, oldest first.

    1.5 / (60 + rank by words) + 1 / (60 + rank by recency), ranks from 1, a group once in each, unless
    other `weights` are given.
    """
    recent = list(dict.fromkeys(reversed(opened)))
    age = {name: rank for rank, name in enumerate(recent)}
    matched = sorted((name for name in recent if name in scores), key=lambda name: (-scores[name], age[name]))
    matched = matched[:depth]
    if recency_scope == "matched" and matched:
        among = set(matched)
        recent = [name for name in recent if name in among]
    by_words, by_recency = weights
    found = fuse_ranks(
        {"words": matched, "recency": recent[:depth]}, weights={"words": by_words, "recency": by_recency}
    )
    return {name: each.score for name, each in found.items()}


def _best(
    groups: Sequence[Group],
    scores: Mapping[str, float],
    *,
    room: int,
    budget: int | None,
    cost: Cost | None,
) -> tuple[list[Group], list[LeftOut], int]:
    """The groups that win a place, why each other doesn't, in their order, and what the winners cost."""
    chosen: list[Group] = []
    left_out: dict[str, LeftOut] = {}
    spent = 0
    opened = {group.id: place for place, group in enumerate(groups)}
    for group in sorted(groups, key=lambda each: (-scores.get(each.id, 0.0), -opened[each.id])):
        score = scores.get(group.id)
        if score is None or len(chosen) >= room:
            reason = Reason.NOT_RELEVANT if score is None else Reason.LIMIT
            left_out[group.id] = LeftOut(group=group.id, reason=reason, score=score)
            continue
        price = sum(map(cost, group)) if cost else 0
        if budget is not None and spent + price > budget:
            short = spent + price - budget
            left_out[group.id] = LeftOut(
                group=group.id, reason=Reason.OVER_BUDGET, tokens=price, short_by=short, score=score
            )
            continue
        spent += price
        chosen.append(group)
    return chosen, [left_out[group.id] for group in groups if group.id in left_out], spent

"""Groups of messages, the recent window of groups, and the groups that match a query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import regex

from germane.errors import BudgetTooSmall, InvalidInput
from germane.model.context import Reason, TraceNote
from germane.model.conversation import (
    Append,
    ConversationChange,
    Cost,
    DerivedQuery,
    Group,
    LeftOut,
    Message,
    MessageRole,
    Messages,
    OpaquePart,
    Selection,
)
from germane.model.memory import maker
from germane.ranking.signals import fuse_ranks

_SYSTEM = MessageRole.SYSTEM


def opens_group(message: Message) -> bool:
    """Whether a message is a prompt: a user's message with own content and without results."""
    if message.role is not MessageRole.USER or message.results:
        return False
    has_more = any(isinstance(part, OpaquePart) for part in message.parts)
    return has_more or bool(message.own_text.strip()) or message.own_text == message.text


def grouped(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with their groups: a given group stays, a prompt opens a group, others join.

    A result joins the group of its call, however late it comes. System messages and messages before the first
    prompt have no group. A group that is opened here is named after its message, by id or number.
    """
    return placed(tuple(messages), ()).messages


def named_by(change: ConversationChange, messages: Iterable[Message]) -> set[int]:
    """The `seq` of each message that a change names, by its id or its group; a whole purge names none."""
    group, one = getattr(change, "group", None), getattr(change, "message_id", None)
    return {each.seq for each in messages if each.id == one or (group is not None and each.group == group)}


def placed(new: Sequence[Message], earlier: Sequence[Message]) -> Append:
    """New messages with their groups, as `grouped` gives them, to be appended to a log.

    `earlier` is the part of the log that can contain the calls of results.
    """
    made: list[Message] = []
    current: str | None = None
    joining = 0
    # The current group of the log is only known when the messages are written.
    open_end = True
    for message in new:
        group = message.group
        if group is None and message.role is not MessageRole.SYSTEM:
            if opens_group(message):
                group = message.id or f"#{message.seq}"
            else:
                group = _group_of_calls(message, made, earlier)
                if group is not None:
                    made.append(message.evolve(group=group))
                    continue
                group = current
                if open_end:
                    joining = len(made) + 1
        if group is not None:
            current, open_end = group, False
        made.append(message if group == message.group else message.evolve(group=group))
    return Append(messages=tuple(made), joining=joining)


def groups_of(messages: Iterable[Message], *, hidden: bool = False) -> tuple[Group, ...]:
    """The groups in the order of their opening; with `hidden`, including hidden ones.

    System messages never belong to a group.
    """
    if not isinstance(messages, Messages):
        return _grouped(messages, hidden=hidden)
    if hidden not in messages.groups:
        messages.groups[hidden] = _grouped(messages, hidden=hidden)
    return messages.groups[hidden]


def current_of(messages: Sequence[Message]) -> str | None:
    """The current group: the visible group that was opened last. None without groups."""
    groups = groups_of(messages)
    return groups[-1].id if groups else None


def is_always_selected(message: Message) -> bool:
    """Whether a message is in every selection: system messages and messages without a group."""
    return not message.hidden and (message.group is None or message.role is _SYSTEM)


def _group_of_calls(message: Message, new: Sequence[Message], earlier: Sequence[Message]) -> str | None:
    """The group of the latest call that a message answers."""
    wanted = {result.call_id for result in message.results}
    if not wanted:
        return None
    for messages in (new, earlier):
        for before in reversed(messages):
            if before.group is not None and any(call.id in wanted for call in before.calls):
                return before.group
    return None


def _grouped(messages: Iterable[Message], *, hidden: bool) -> tuple[Group, ...]:
    by_name: dict[str, list[Message]] = {}
    members: list[Message] = []
    latest: str | None = None
    for message in messages:
        name = message.group
        if name is None or message.role is _SYSTEM or (message.hidden and not hidden):
            continue
        if name != latest:
            # Nearly every message follows a message of its group.
            members, latest = by_name.setdefault(name, []), name
        members.append(message)
    return tuple(Group(id=name, messages=tuple(members)) for name, members in by_name.items())


# The recent window: the last groups of a conversation, without gaps.

ALL, NONE = 0, -1
"""Special numbers of groups."""

SYSTEM = "system and ungrouped messages"
"""The name in errors of the messages that are in every selection."""


def window(
    messages: Sequence[Message], *, groups: int = ALL, budget: int | None = None, cost: Cost | None = None
) -> Selection:
    """The last `groups` groups (0 all, -1 none) of at most `budget` tokens; the tighter limit counts.

    System messages and messages without a group are always selected and counted first. The order is the
    conversation's. The first group that doesn't fit ends the window, so it has no gaps. Raises BudgetTooSmall
    if the current group doesn't fit, and InvalidInput.
    """
    checked_size(groups, budget, cost)
    candidates = groups_of(messages)
    wanted = 0 if groups == NONE else len(candidates) if groups == ALL else groups
    must = candidates[-1:] if wanted else ()
    used = required_cost(messages, must, budget, cost)
    earlier = candidates[: len(candidates) - len(must)]
    chosen, left_out, spent = pick(
        earlier[::-1],
        places=wanted - len(must),
        budget=None if budget is None else budget - used,
        cost_of=_cost_of(cost),
        stops=True,
    )
    names = {group.id for group in (*must, *chosen)}
    reasons = [left_out[group.id] for group in earlier if group.id in left_out]
    return _selected(messages, candidates, names, tokens=used + spent, left_out=reasons)


def pick(
    order: Sequence[Group],
    *,
    places: float,
    budget: int | None,
    cost_of: Callable[[Group], int],
    scores: Mapping[str, float] | None = None,
    least: float = 0.0,
    tried: float = math.inf,
    stops: bool = False,
) -> tuple[list[Group], dict[str, LeftOut], int]:
    """The first groups of an order that fit, the reason for each other group by its id, and the total cost.

    At most `places` groups are selected, of the first `tried`. With `scores`, a group without a score of at
    least `least` isn't relevant. A group that exceeds the budget is skipped; with `stops` it ends the
    selection.
    """
    chosen: list[Group] = []
    left_out: dict[str, LeftOut] = {}
    spent = 0
    stopped = False
    for rank, group in enumerate(order):
        score = None if scores is None else scores.get(group.id)
        price = short_by = 0
        reason: Reason | None = None
        if stopped:
            reason = Reason.STOPPED
        elif scores is not None and (score is None or score < least):
            reason = Reason.NOT_RELEVANT
        elif rank >= tried or len(chosen) >= places:
            reason = Reason.LIMIT
        else:
            price = cost_of(group)
            if budget is not None and spent + price > budget:
                reason, short_by, stopped = Reason.OVER_BUDGET, spent + price - budget, stops
        if reason is None:
            chosen.append(group)
            spent += price
        else:
            left_out[group.id] = LeftOut(
                group=group.id, reason=reason, tokens=price, short_by=short_by, score=score
            )
    return chosen, left_out, spent


def _cost_of(cost: Cost | None) -> Callable[[Group], int]:
    return lambda group: sum(map(cost, group)) if cost else 0


def with_earlier(selection: Selection, opened: Sequence[str]) -> Selection:
    """A window over the last groups as a window over all groups, whose names are `opened`, oldest first."""
    known = {*selection.groups, *(one.group for one in selection.left_out)}
    stopped = any(one.reason is Reason.OVER_BUDGET for one in selection.left_out)
    reason = Reason.STOPPED if stopped else Reason.LIMIT
    earlier = (LeftOut(group=name, reason=reason) for name in opened if name not in known)
    return replace(selection, left_out=(*earlier, *selection.left_out))


def checked_size(groups: int, budget: int | None, cost: Cost | None) -> None:
    """Raise InvalidInput for an invalid number of groups or budget, or a budget without a cost function."""
    if isinstance(groups, bool) or groups < NONE:
        raise InvalidInput(
            f"groups={groups!r} can't be used: take a number of groups, 0 for all, or -1 for none."
        )
    if budget is not None and (budget < 0 or cost is None):
        raise InvalidInput(f"budget={budget!r} can't be used: take 0 or more tokens, and say what they cost.")


def required_cost(
    messages: Sequence[Message], groups: Sequence[Group], budget: int | None, cost: Cost | None
) -> int:
    """The tokens of the messages that are always selected and of these groups. Raises BudgetTooSmall."""
    if cost is None:
        return 0
    always = sum(cost(message) for message in messages if is_always_selected(message))
    needed = always + sum(cost(message) for group in groups for message in group)
    if budget is not None and needed > budget:
        named = (*((SYSTEM,) if always else ()), *(f"group {group.id}" for group in groups))
        raise BudgetTooSmall(budget=budget, needed=needed, required=named)
    return needed


def _selected(
    messages: Sequence[Message],
    candidates: Sequence[Group],
    chosen: AbstractSet[str],
    *,
    tokens: int,
    left_out: Sequence[LeftOut],
) -> Selection:
    """The messages of the chosen groups and those that are always selected, in the conversation's order."""
    return Selection(
        messages=tuple(
            each
            for each in messages
            if (each.group in chosen and not each.hidden) or is_always_selected(each)
        ),
        groups=tuple(group.id for group in candidates if group.id in chosen),
        tokens=tokens,
        left_out=tuple(left_out),
    )


# The best groups for a query by words and recency, in the order of the conversation.
#
# This is std_slop's FTS_RANKED with two other defaults: recency ranks all groups and not only matching ones,
# which fills free places, and the number of groups includes the current one.

RecencyScope: TypeAlias = Literal["all", "matched"]

WEIGHTS = (1.5, 1.0)
"""The weights of the rank by words and the rank by recency."""

RECENCY = TraceNote(
    code="recency", text="The prompt names nothing to search for, so the latest groups are shown."
)


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
    """The best `groups` groups (0 all, -1 only the current one) of at most `budget` tokens.

    `scores` are the prompt's scores by group id; None if the prompt has no terms, and the result is then the
    recent window. The current group and system messages are always selected. With `recency_scope="matched"`,
    recency ranks only matching groups, if any. `counts_current=False` selects `groups` groups besides the
    current one if any group matches; otherwise recency also ranks the current group, which counts towards
    `groups`. `depth` is the number of groups that count in each ranking, `weights` are the weights of the
    ranks by words and by recency. Of equal scores the later group wins. Raises BudgetTooSmall and
    InvalidInput.
    """
    _check_ranking(recency_scope, depth, weights)
    checked_size(groups, budget, cost)
    if scores is None:
        recent = window(messages, groups=1 if groups == NONE else groups, budget=budget, cost=cost)
        return replace(recent, notes=(RECENCY,))
    candidates = groups_of(messages)
    used = required_cost(messages, candidates[-1:], budget, cost)
    chosen, reasons, spent, parts = _chosen_groups(
        candidates,
        scores,
        groups=groups,
        budget=None if budget is None else budget - used,
        cost_of=_cost_of(cost),
        recency_scope=recency_scope,
        counts_current=counts_current,
        depth=depth,
        weights=weights,
    )
    return replace(
        _selected(messages, candidates, chosen, tokens=used + spent, left_out=reasons), scores=parts
    )


def ranked_by_name(
    opened: Sequence[str],
    scores: Mapping[str, float],
    *,
    groups: int,
    recency_scope: RecencyScope = "all",
    counts_current: bool = True,
    depth: int | None = None,
    weights: Sequence[float] = WEIGHTS,
) -> Selection:
    """The same without messages and without a budget, from the names of all groups, oldest first."""
    _check_ranking(recency_scope, depth, weights)
    candidates = [_named_group((name, ())) for name in opened]
    chosen, reasons, _, parts = _chosen_groups(
        candidates,
        scores,
        groups=groups,
        budget=None,
        cost_of=_cost_of(None),
        recency_scope=recency_scope,
        counts_current=counts_current,
        depth=depth,
        weights=weights,
    )
    return replace(_selected((), candidates, chosen, tokens=0, left_out=reasons), scores=parts)


def _check_ranking(recency_scope: str, depth: int | None, weights: Sequence[float]) -> None:
    if recency_scope not in ("all", "matched"):
        raise InvalidInput(f"recency_scope={recency_scope!r} is unknown: take 'all' or 'matched'.")
    if depth is not None and depth < 1:
        raise InvalidInput(f"depth={depth!r} ranks nothing: take 1 or more, or None for all.")
    if len(weights) != 2 or not all(0 <= weight < math.inf for weight in weights):  # noqa: PLR2004 - Words, recency.
        raise InvalidInput(
            f"weights={weights!r} can't be used: take two numbers from 0, for words and recency."
        )


_named_group = maker(Group, "id", "messages", checks=True)


def _chosen_groups(
    candidates: Sequence[Group],
    scores: Mapping[str, float],
    *,
    groups: int,
    budget: int | None,
    cost_of: Callable[[Group], int],
    recency_scope: RecencyScope,
    counts_current: bool,
    depth: int | None,
    weights: Sequence[float],
) -> tuple[set[str], list[LeftOut], int, Mapping[str, float]]:
    """The groups to select, why each other isn't, what those beside the current one cost, and all scores."""
    current, others = candidates[-1:], candidates[:-1]
    # Without a match std_slop ranks all groups by recency, including the current one, which takes a place.
    ranks_current = not counts_current and not any(group.id in scores for group in others)
    opened = [group.id for group in (candidates if ranks_current else others)]
    parts = fused(
        opened, {} if ranks_current else scores, recency_scope=recency_scope, depth=depth, weights=weights
    )
    counted = counts_current or ranks_current
    places = len(others) if groups == ALL else 0 if groups == NONE else groups - counted
    latest_first = others[::-1]
    best, left_out, spent = pick(
        sorted(latest_first, key=lambda group: -parts.get(group.id, 0.0)),
        places=places,
        budget=budget,
        cost_of=cost_of,
        scores=parts,
    )
    chosen = {group.id for group in (*current, *best)}
    reasons = [left_out[group.id] for group in others if group.id in left_out]
    return chosen, reasons, spent, parts


def fused(
    opened: Sequence[str],
    scores: Mapping[str, float],
    *,
    recency_scope: RecencyScope = "all",
    depth: int | None = None,
    weights: Sequence[float] = WEIGHTS,
) -> Mapping[str, float]:
    """The fused score of each ranked group; `opened` are the candidates, oldest first.

    1.5 / (60 + rank by words) + 1 / (60 + rank by recency) by default, ranks from 1; `weights` replace 1.5
    and 1.
    """
    recent = list(dict.fromkeys(reversed(opened)))
    age = {name: rank for rank, name in enumerate(recent)}
    matched = sorted((name for name in recent if name in scores), key=lambda name: (-scores[name], age[name]))
    matched = matched[:depth]
    if recency_scope == "matched" and matched:
        among = set(matched)
        recent = [name for name in recent if name in among]
    by_words, by_recency = weights
    scored = fuse_ranks(
        {"words": matched, "recency": recent[:depth]}, weights={"words": by_words, "recency": by_recency}
    )
    return {name: each.score for name, each in scored.items()}


# The query for a conversation whose last prompt is too short for a query. No model is called; functions for
# terms and their rarities are arguments, since the index belongs to `germane.retrieval`.

TermsOf: TypeAlias = Callable[[str], Sequence[str]]
"""The distinct searchable terms of a text."""

Rarity: TypeAlias = Callable[[Sequence[str]], Sequence[float]]
"""The rarity of each term in the language: a natural logarithm, 0 for a term in all texts."""

ENOUGH: Final = 11.0
"""The minimum sum of rarities of a sufficient query, about two informative words."""

_RARE: Final = 5.0  # Less rare words are common in all dialogues and name no topic.
_MOST: Final = 6
_REACH: Final = 3
_FADES: Final = 0.5  # From each exchange to the one before it.
_OF_AN_ANSWER: Final = 0.6
_OF_A_NAME: Final = 1.5
# Capitalized words within a sentence, and words with a digit, an underscore, a slash or a capital inside.
_NAME = regex.compile(
    r"(?<=[\p{L}\p{N},;:]\s)\p{Lu}[\p{L}\p{M}\p{N}'’-]+"
    r"|\b[\w./-]*(?:\p{Ll}\p{Lu}|\p{L}\d|\d\p{L}|_|\w/\w|\w\.\w)[\w./-]*"
)


def derive_query(
    messages: Sequence[Message],
    *,
    terms_of: TermsOf,
    rarity: Rarity,
) -> DerivedQuery:
    """The terms of the latest prompt and, if their rarities sum to less than `ENOUGH`, terms of its topic.

    At most 6 terms are carried over from up to 3 earlier exchanges, back to the latest with a sufficient
    prompt. Names, rare terms, near exchanges and the user's words have precedence. Text from memory is never
    carried over.
    """
    groups = groups_of(messages)
    prompt = prompt_of(groups[-1]) if groups else ""
    own = tuple(terms_of(prompt))
    if sum(rarity(own)) >= ENOUGH:
        return DerivedQuery(prompt=prompt, own=own)
    weights: dict[str, float] = {}
    fade = 1.0
    for group in reversed(groups[:-1][-_REACH:]):
        question = prompt_of(group)
        answers = "\n".join(each.own_text for each in group if each.role is MessageRole.ASSISTANT)
        for text, share in ((question, fade), (answers, fade * _OF_AN_ANSWER)):
            for term, weight in _weighed(text, terms_of, rarity).items():
                weights[term] = max(weights.get(term, 0.0), weight * share)
        if sum(rarity(tuple(terms_of(question)))) >= ENOUGH:
            break
        fade *= _FADES
    for term in own:
        weights.pop(term, None)
    carried = sorted(weights, key=lambda term: (-weights[term], term))[:_MOST]
    return DerivedQuery(prompt=prompt, own=own, carried=tuple(carried))


def prompt_of(group: Group | Iterable[Message]) -> str:
    """The user's own text in an exchange, without text from memory."""
    return "\n".join(
        each.own_text
        for each in group
        if each.role is MessageRole.USER and (opens_group(each) or each.own_text)
    )


def _weighed(text: str, terms_of: TermsOf, rarity: Rarity) -> Mapping[str, float]:
    """The rare terms of a text, each with its weight."""
    terms = tuple(terms_of(text))
    named = {term for name in _NAME.findall(text) for term in terms_of(name)}
    return {
        term: rare * (_OF_A_NAME if term in named else 1.0)
        for term, rare in zip(terms, rarity(terms), strict=True)
        if rare >= _RARE or term in named
    }

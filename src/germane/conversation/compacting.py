"""Makes a long conversation shorter: tool output first, then its beginning, which a summary stands for.

Level: ranking (imports model, errors, protocols, renditions and conversation). Pure, but for the
summarizer where one is given: nothing is hidden here, only proposed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import regex

from germane.conversation.cost import cost_by
from germane.conversation.groups import current_of, groups_of, is_always_kept
from germane.conversation.tiers import Tiers, tiered
from germane.conversation.words import in_words, names_of_calls
from germane.errors import BudgetTooSmall
from germane.model.compaction import Compaction
from germane.model.draft import Draft
from germane.model.memory import Trust
from germane.model.message import Group, Message, Role
from germane.protocols import Summarizer, TokenCounter
from germane.renditions import shorten

__all__ = ["ANCHOR", "Compacting", "compacted"]

ANCHOR: Final = "summary"
"""The name of the anchor that a summary is kept as."""

_SUMMARY: Final = 0.1
"""The share of the budget that a summary has at most."""
_SHORTEST: Final = 4
"""Words of a sentence that says something."""
_LONGEST: Final = 60
_MOST_DRAFTS: Final = 40
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}'’_-]*")
_SENTENCES = regex.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
# An answer of a model that was asked for a summary and had nothing to say.
_META = regex.compile(
    r"(?i)^\W*(?:please provide|i (?:can't|cannot|don't see)|there is no (?:text|conversation))"
)
_KINDS: Final = {
    "rule": r"\b(?:always|never|must(?:n't| not)?|make sure|from now on|under no circumstances)\b",
    "preference": r"\bI(?:'d| would)? (?:prefer|like|love|hate|dislike|want)\b|\bmy favou?rite\b",
    "decision": r"\b(?:we|I|let's)\W+(?:\w+\W+)?"
    r"(?:decided?|chose|choose|agreed?|settled?|go(?:ing)? with|picked|will use|'ll use)\b",
    "fact": r"\b(?:my|our) (?:name|team|company|birthday|address|deadline|server|database|version|\w+ is)\b"
    r"|\bremember (?:that|this)\b|\bI(?:'m| am| live| work| was born)\b",
}
_PATTERNS = [(kind, regex.compile(pattern, regex.IGNORECASE)) for kind, pattern in _KINDS.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """How to make a conversation shorter: to how many tokens, and how many of its last groups stay whole.

    `previous` is the summary that stands for what was compacted before; it goes into the new one.
    """

    budget: int
    counter: TokenCounter
    keep: int = 2
    tiers: Tiers = field(default_factory=Tiers)
    previous: str = ""
    anchor: str = ANCHOR
    summarizer: Summarizer | None = None


def compacted(messages: Sequence[Message], how: Compacting) -> Compaction:
    """What to hide of a conversation, and what stands for it, so that the rest has at most the budget.

    Tool results are cut first, and if that is enough nothing is hidden. Else the oldest groups go, so that
    what stays begins with a user's message wherever one of its groups but the kept ones does. Raises
    BudgetTooSmall where the last groups alone don't fit.
    """
    cost = cost_by(how.counter)
    visible = [message for message in messages if not message.hidden]
    before = sum(map(cost, visible)) + how.counter.count(how.previous)
    if before <= how.budget:
        return Compaction(before=before, after=before, anchor=how.anchor, summary=how.previous)
    cut = tiered(visible, active=current_of(visible), tiers=how.tiers)
    number = sum(one is not other for one, other in zip(visible, cut, strict=True))
    shorter = sum(map(cost, cut)) + how.counter.count(how.previous)
    if shorter <= how.budget:
        return Compaction(before=before, after=shorter, anchor=how.anchor, summary=how.previous, cut=number)
    always = sum(cost(message) for message in cut if is_always_kept(message))
    costs = {group.id: sum(map(cost, group)) for group in groups_of(cut)}
    room = max(1, int(how.budget * _SUMMARY))
    begins = {group.id for group in groups_of(cut) if group.messages[0].role is Role.USER}
    hides = _hidden(costs, how, always + room, begins)
    gone = [group for group in groups_of(visible) if group.id in hides]
    summary, by = _summary(gone, how, room)
    rest = sum(tokens for group, tokens in costs.items() if group not in hides)
    return Compaction(
        hides=tuple(group.id for group in gone),
        summary=summary,
        anchor=how.anchor,
        replaces=how.previous,
        before=before,
        after=always + rest + how.counter.count(summary),
        cut=number,
        drafts=tuple(_drafts(gone)),
        by=by,
    )


def _hidden(costs: Mapping[str, int], how: Compacting, beside: int, begins: Collection[str]) -> set[str]:
    """The oldest groups, as many as have to go, and on to one that `begins` with the user's message."""
    order = list(costs)
    total = beside + sum(costs.values())
    hides: set[str] = set()
    for group in order[: max(0, len(order) - max(1, how.keep))]:
        if total <= how.budget and (not hides or group in begins):
            break
        hides.add(group)
        total -= costs[group]
    if total > how.budget:
        named = tuple(f"group {group}" for group in order if group not in hides)
        raise BudgetTooSmall(budget=how.budget, needed=total, required=named)
    return hides


def _summary(gone: Sequence[Group], how: Compacting, room: int) -> tuple[str, str]:
    """What stands for these groups, and who made it: a model, or the most telling sentences."""
    if how.summarizer is not None:
        text = "\n".join([how.previous, *_lines(gone)]).strip()
        try:
            said = how.summarizer.summarize(text, room).strip()
        except Exception:  # noqa: BLE001 - Whatever a summarizer raises, the conversation has to get shorter.
            said = ""
        if said and not _META.match(said):
            return shorten(said, room, how.counter), "summarizer"
    return _extract(gone, how, room), "extractive"


def _extract(gone: Sequence[Group], how: Compacting, room: int) -> str:
    """The sentences that share most with all that was said, in their order, under who said them."""
    said = [(who, text) for who, text, _ in _said(gone)]
    earlier = [("", text) for text in how.previous.splitlines() if text.strip()]
    sentences = [*earlier, *((who, each) for who, text in said for each in _sentences(text))]
    words = [set(map(str.casefold, _WORD.findall(text))) for _, text in sentences]
    often = Counter(word for each in words for word in each)
    weights = {word: math.log1p(len(words) / times) * math.log1p(times) for word, times in often.items()}

    def telling(place: int) -> float:
        own = words[place]
        # What stood in the summary before has been chosen once already.
        return (1.5 if place < len(earlier) else 1.0) * sum(weights[word] for word in own) / (8 + len(own))

    left, chosen = room, []
    for place in sorted(range(len(sentences)), key=lambda place: (-telling(place), place)):
        price = how.counter.count(_line(*sentences[place])) + 1
        if price <= left:
            chosen.append(place)
            left -= price
    lines = dict.fromkeys(_line(*sentences[place]) for place in sorted(chosen))
    return shorten("\n".join(lines), room, how.counter)


def _line(who: str, text: str) -> str:
    return f"{who}: {text}" if who else text


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCES.split(text):
        if sentence and _SHORTEST <= len(_WORD.findall(sentence)) <= _LONGEST:
            yield sentence.strip()


def _said(gone: Sequence[Group]) -> Iterator[tuple[str, str, Message]]:
    """What user and assistant said in words of their own; what came from memory isn't among it."""
    for group in gone:
        for message in group:
            if message.role in (Role.USER, Role.ASSISTANT) and message.own_text.strip():
                yield message.role.value, message.own_text, message


def _lines(gone: Sequence[Group]) -> Iterator[str]:
    for group in gone:
        names: dict[str, str] = {}
        for message in tiered(group.messages, active=None):
            names |= names_of_calls(message)
            if text := in_words(message, names).strip():
                yield f"{message.role.value}: {text}"


def _drafts(gone: Sequence[Group]) -> Iterator[Draft]:
    """What is said like a rule, a preference, a decision or a fact, once each, the user's before all."""
    known: set[str] = set()
    found = []
    for who, text, message in _said(gone):
        for sentence in _sentences(text):
            kind = next((kind for kind, pattern in _PATTERNS if pattern.search(sentence)), None)
            if kind is None or sentence.endswith("?") or sentence.casefold() in known:
                continue
            known.add(sentence.casefold())
            if who == Role.USER.value or kind == "decision":
                found.append(_draft(kind, sentence, message))
    yield from sorted(found, key=lambda draft: draft.trust is not Trust.OWNER)[:_MOST_DRAFTS]


def _draft(kind: str, sentence: str, message: Message) -> Draft:
    return Draft(
        content=sentence,
        kind=kind,
        source=f"conversation:{message.session}#{message.id}" if message.id else None,
        trust=Trust.OWNER if message.role is Role.USER else Trust.AGENT,
        created_at=message.created_at,
        tags=("compacted",),
    )

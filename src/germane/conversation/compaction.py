"""Token counts of conversations and requests, and the shortening of long conversations.

Pure except for a given summarizer: groups are proposed for hiding, not hidden.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final

import regex

from germane.conversation.formats.parts import spoken_lines
from germane.conversation.groups import current_of, groups_of, is_always_selected
from germane.conversation.views import Tiers, tiered
from germane.errors import BudgetTooSmall
from germane.model.conversation import (
    Compaction,
    Cost,
    Group,
    Message,
    MessageRole,
    OpaquePart,
    Provider,
    TextPart,
    ToolCall,
    ToolResult,
)
from germane.model.memory import Draft
from germane.protocols import Summarizer, TokenCounter
from germane.renditions import shorten

ANCHOR: Final = "summary"
"""The name of the anchor of a summary."""

_SUMMARY: Final = 0.1
"""The maximum share of the budget for a summary."""
_SHORTEST: Final = 4
"""The minimum words of an informative sentence."""
_LONGEST: Final = 60
_MOST_DRAFTS: Final = 40
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}'’_-]*")
SENTENCES = regex.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
# The reply of a model without anything to summarize.
_META = regex.compile(
    r"(?i)^\W*(?:please provide|i (?:can't|cannot|don't see)|there is no (?:text|conversation))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """The settings of a compaction: the budget in tokens, and the number of last groups to keep whole.

    `previous` is the summary of earlier compactions; the new summary includes it.
    """

    budget: int
    counter: TokenCounter
    keep: int = 2
    tiers: Tiers = field(default_factory=Tiers)
    previous: str = ""
    anchor: str = ANCHOR
    summarizer: Summarizer | None = None


def compacted(messages: Sequence[Message], how: Compacting) -> Compaction:
    """The groups to hide and their summary, so that the rest of the conversation fits the budget.

    Tool results are cut first, and if that is enough nothing is hidden. Otherwise the oldest groups are
    hidden, up to a group that begins with a user's message if there is one before the last `keep` groups.
    Raises BudgetTooSmall if the last groups alone don't fit.
    """
    cost = cost_by(how.counter)
    visible = [message for message in messages if not message.hidden]
    before = sum(map(cost, visible)) + how.counter.count(how.previous)
    proposed = Compaction(before=before, after=before, anchor=how.anchor, summary=how.previous)
    if before <= how.budget:
        return proposed
    cut = tiered(visible, active=current_of(visible), tiers=how.tiers)
    shorter = sum(map(cost, cut)) + how.counter.count(how.previous)
    number = sum(one is not other for one, other in zip(visible, cut, strict=True))
    proposed = replace(proposed, after=shorter, cut=number)
    if shorter <= how.budget:
        return proposed
    always = sum(cost(message) for message in cut if is_always_selected(message))
    costs = {group.id: sum(map(cost, group)) for group in groups_of(cut)}
    free_tokens = max(1, int(how.budget * _SUMMARY))
    begins = {group.id for group in groups_of(cut) if group.messages[0].role is MessageRole.USER}
    hides = _hidden(costs, how, always + free_tokens, begins)
    gone = [group for group in groups_of(visible) if group.id in hides]
    summary, by = _summary(gone, how, free_tokens)
    rest = sum(tokens for group, tokens in costs.items() if group not in hides)
    return replace(
        proposed,
        hides=tuple(group.id for group in gone),
        summary=summary,
        replaces=how.previous,
        after=always + rest + how.counter.count(summary),
        drafts=tuple(_drafts(gone)),
        by=by,
    )


def _hidden(costs: Mapping[str, int], how: Compacting, beside: int, begins: Collection[str]) -> set[str]:
    """The oldest groups to hide, up to a group in `begins`, which begins with a user's message."""
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


def _summary(gone: Sequence[Group], how: Compacting, free_tokens: int) -> tuple[str, str]:
    """The summary of these groups, and its method: the summarizer, or their own sentences."""
    if how.summarizer is not None:
        shown = (each for group in gone for each in spoken_lines(tiered(group.messages, active=None)))
        text = "\n".join([how.previous, *(f"{role}: {text}" for role, text in shown)]).strip()
        try:
            summary = how.summarizer.summarize(text, free_tokens).strip()
        except Exception:  # noqa: BLE001 - Whatever a summarizer raises, the conversation has to get shorter.
            summary = ""
        if summary and not _META.match(summary):
            return shorten(summary, free_tokens, how.counter), "summarizer"
    return _extract(gone, how, free_tokens), "extractive"


def _extract(gone: Sequence[Group], how: Compacting, free_tokens: int) -> str:
    """The most representative sentences in their order, each after its speaker."""
    spoken = ((each.role.value, each.own_text) for each in spoken_messages(gone))
    earlier = [("", text) for text in how.previous.splitlines() if text.strip()]
    sentences = [*earlier, *((who, each) for who, text in spoken for each in _sentences(text))]
    lines = [_line(*each) for each in sentences]
    return representative(
        [text for _, text in sentences], lines, free_tokens, how.counter, earlier=len(earlier)
    )


def representative(
    sentences: Sequence[str], lines: Sequence[str], tokens: int, counter: TokenCounter, *, earlier: int = 0
) -> str:
    """The lines of the most representative sentences, in their order, in so many tokens.

    The first `earlier` ones are of a previous summary, so they were selected before.
    """
    # Distinct, in their order, since a sum of floats depends on the order, and sets have none.
    words = [list(dict.fromkeys(map(str.casefold, _WORD.findall(text)))) for text in sentences]
    often = Counter(word for each in words for word in each)
    weights = {word: math.log1p(len(words) / times) * math.log1p(times) for word, times in often.items()}

    def telling(place: int) -> float:
        own = words[place]
        return (1.5 if place < earlier else 1.0) * sum(weights[word] for word in own) / (8 + len(own))

    left, chosen = tokens, []
    for place in sorted(range(len(sentences)), key=lambda place: (-telling(place), place)):
        price = counter.count(lines[place]) + 1
        if price <= left:
            chosen.append(place)
            left -= price
    unique = dict.fromkeys(lines[place] for place in sorted(chosen))
    return shorten("\n".join(unique), tokens, counter)


def _line(who: str, text: str) -> str:
    return f"{who}: {text}" if who else text


def _sentences(text: str) -> Iterator[str]:
    for sentence in SENTENCES.split(text):
        if sentence and _SHORTEST <= len(_WORD.findall(sentence)) <= _LONGEST:
            yield sentence.strip()


def spoken_messages(groups: Iterable[Group]) -> Iterator[Message]:
    """The messages of user and assistant that have text of their own, which isn't from memory."""
    for message in chain.from_iterable(groups):
        if message.role in (MessageRole.USER, MessageRole.ASSISTANT) and message.own_text.strip():
            yield message


def _drafts(gone: Sequence[Group]) -> Iterator[Draft]:
    """What the user states plainly in these groups, by the rules of `germane.extractors`; each once."""
    from germane.extractors.gate import trust_of  # noqa: PLC0415 - As below.
    from germane.extractors.rules import RuleExtractor  # noqa: PLC0415 - Few conversations are compacted.

    messages = {message.id or str(message.seq): message for message in spoken_messages(gone)}
    found = {
        each.content.casefold(): each for each in reversed(RuleExtractor().extract([*messages.values()]))
    }
    for proposal in list(reversed(found.values()))[:_MOST_DRAFTS]:
        message = messages[proposal.quotes[-1].message]
        yield Draft(
            content=proposal.content,
            kind=proposal.kind,
            subject=proposal.subject,
            trust=trust_of(proposal, messages),
            source=f"conversation:{message.session}#{message.id}" if message.id else None,
            created_at=message.created_at,
            valid_from=proposal.valid_from,
            tags=("compacted",),
        )


# The token count of a request, counted on the provider's own JSON.
#
# Providers don't publish all tokens that they add around a message. Calls in OpenAI's chat are counted by
# measurements of its users, with a margin; unmeasured parts are counted as the sent JSON, which is an upper
# bound. See docs/reference/tokens.md.

IMAGE: Final = 4800
"""The tokens of an image: the maximum that either provider charges, at full resolution."""

_PER_MESSAGE: Final = {Provider.OPENAI: 3, Provider.RESPONSES: 3, Provider.ANTHROPIC: 4}
PRIMING: Final = {Provider.OPENAI: 3, Provider.RESPONSES: 3, Provider.ANTHROPIC: 8}
"""The tokens that a provider adds before each answer."""
_PER_NAME: Final = 1
_PER_PART: Final = 2
_PER_CALL: Final = 8
"""The tokens that OpenAI adds around a call in its chat: measured are 2 to 7, and the name again. Ids of
calls cost nothing. https://community.openai.com/t/538914, https://github.com/forestwanglin/openai-java/issues/5"""
_PARALLEL: Final = 24
"""The tokens that OpenAI adds around several calls of one message, by the same measurements. The model gets
the results of such calls as JSON with escapes for all but ASCII: of the 39,235 tokens that it reported for
three results in Korean, 39,000 are escapes; the texts themselves have 3,003.
https://community.openai.com/t/1375117, https://community.openai.com/t/816259"""
_TOOLS: Final = {Provider.OPENAI: 12, Provider.RESPONSES: 12, Provider.ANTHROPIC: 1000}
"""The tokens added around the tools; Anthropic adds a prompt of 159 to 935 tokens, by model and choice."""
_PER_TOOL: Final = 8

_RESULTS = frozenset({"tool", "function"})
_TEXTS = frozenset({"text", "input_text", "output_text"})
_IMAGES = frozenset({"image", "image_url", "input_image"})
_Count = Callable[[str], int]


def as_json(value: object) -> str:
    """The JSON of a request: compact, in the given order, without escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def message_tokens(
    message: Mapping[str, Any], provider: Provider, counter: TokenCounter, *, parallel: bool = False
) -> int:
    """The tokens of one message or item in the provider's format.

    3 tokens for a message, its role, and each of its values, 1 more for a name: OpenAI's rule for chat,
    https://github.com/openai/openai-cookbook (How to count tokens with tiktoken). `parallel` is true for the
    result of one of several calls of a message.
    """
    count: _Count = counter.count
    if parallel and provider is Provider.OPENAI and message.get("role") in _RESULTS:
        count = partial(_count_escaped, count)
    if "role" not in message:
        # An item of the Responses API other than a message.
        if isinstance(message.get("output"), str | list):
            return _PER_MESSAGE[provider] + _around(message, "output", count)
        return _PER_MESSAGE[provider] + count(as_json(message))
    total = _PER_MESSAGE[provider] + 1
    for key, value in message.items():
        if key == "content":
            total += _content(value, count)
        elif key == "tool_calls" and value:
            total += sum(_call(call, count) for call in value) + (_PARALLEL if len(value) > 1 else 0)
        elif key == "name":
            total += count(str(value)) + _PER_NAME
        elif key not in ("role", "tool_call_id"):
            total += _any(value, count)
    return total


def system_tokens(
    system: str | Sequence[Mapping[str, Any]] | None, provider: Provider, counter: TokenCounter
) -> int:
    """The tokens of a system prompt beside the messages; 0 without one."""
    return _PER_MESSAGE[provider] + 1 + _content(system, counter.count) if system else 0


def tools_tokens(tools: Sequence[Mapping[str, Any]], provider: Provider, counter: TokenCounter) -> int:
    """The tokens of tool definitions: their JSON, and the provider's additions."""
    if not tools:
        return 0
    return _TOOLS[provider] + sum(_PER_TOOL + counter.count(as_json(tool)) for tool in tools)


def _count_escaped(count: _Count, text: str) -> int:
    """The tokens of a text inside ASCII-only JSON, without the surrounding JSON."""
    escaped = json.dumps(text)[1:-1]
    return count(text) if escaped == text else max(count(text), count(escaped))


def _content(content: object, count: _Count) -> int:
    if isinstance(content, str):
        return count(content)
    if not isinstance(content, Sequence):
        return 0
    return sum(_part(part, count) for part in content)


def _part(part: Mapping[str, Any], count: _Count) -> int:
    kind = part.get("type")
    if kind in _IMAGES:
        return IMAGE
    if kind in _TEXTS and isinstance(part.get("text"), str):
        rest = {key: value for key, value in part.items() if key not in ("type", "text") and value}
        return _PER_PART + count(part["text"]) + (count(as_json(rest)) if rest else 0)
    if kind == "tool_result":
        return _PER_PART + _around(part, "content", count)
    return _PER_PART + count(as_json(part))


def _call(call: Mapping[str, Any], count: _Count) -> int:
    """The tokens of a call in OpenAI's chat: its values, its name twice, and the additions."""
    total = _PER_CALL
    for key, value in call.items():
        if key in ("function", "custom"):
            total += sum(_any(each, count) for each in value.values()) + _any(value.get("name"), count)
        elif key not in ("id", "type"):
            total += _any(value, count)
    return total


def _around(fields: Mapping[str, Any], content: str, count: _Count) -> int:
    """The tokens of a content, and of the other fields as JSON."""
    rest = {key: value for key, value in fields.items() if key != content}
    return count(as_json(rest)) + _content(fields.get(content), count)


def _any(value: object, count: _Count) -> int:
    if value is None or value == []:
        return 0
    return count(value) if isinstance(value, str) else count(as_json(value))


# The cost of a message, for windows with a token budget.

PER_MESSAGE = 4
"""The tokens that OpenAI's chat format adds to each message, including its role."""


def cost_by(counter: TokenCounter) -> Cost:
    """The cost of a message: texts, names, arguments, opaque parts, and the additions of the chat format.

    A whole request costs more than its messages; see `message_tokens` and the other counts of requests.
    """

    def cost(message: Message) -> int:
        return PER_MESSAGE + sum(map(of_part, message.parts))

    def of_part(part: TextPart | OpaquePart | ToolCall | ToolResult) -> int:
        if isinstance(part, TextPart):
            return counter.count(part.text)
        if isinstance(part, ToolCall):
            return counter.count(part.id) + counter.count(part.name) + counter.count(part.arguments)
        if isinstance(part, ToolResult):
            return counter.count(part.call_id) + sum(map(of_part, part.content))
        return counter.count(part.json)

    return cost

"""A conversation in the format of one provider, the specification of a request, and the request's head.

The module is pure except for a cache: an arrangement of a growing conversation processes only new messages.

Providers refuse a call whose result isn't in the next messages, and a result anywhere else. So a late result
moves to its call, and a call without a result gets a placeholder.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from threading import RLock
from typing import Any, Final, NamedTuple, TypeAlias

from germane.conversation.compaction import PRIMING, as_json, message_tokens, system_tokens, tools_tokens
from germane.conversation.formats import WRITE, anthropic, openai, translated
from germane.conversation.formats.parts import content_in_words
from germane.conversation.groups import is_always_selected
from germane.conversation.views import Tiers, section_of, tiered
from germane.forks import renewed
from germane.model.conversation import (
    Group,
    Message,
    MessageRole,
    Part,
    Provider,
    TextPart,
    ToolCall,
    ToolResult,
)
from germane.model.memory import Memory
from germane.model.plan import Share
from germane.model.request import ContextBlock, RequestState, ResultLimit
from germane.model.text import fenced
from germane.model.validation import checked_fields
from germane.packing.lines import RememberedLines
from germane.protocols import TokenCounter

MISSING: Final = "[no result: the call was interrupted, or its result hasn't come yet]"
"""The placeholder for a missing result, since providers refuse a call without a result."""

_ANSWERED_BY = {
    "": "",
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""The calls of the Responses API that can have a placeholder, with the types of their results."""
_OLD = "function_call"


class RequestEntry(NamedTuple):
    """One message in the provider's format; `place` orders the entries of a request.

    `origins` are the indexes of the given messages in it, `cut` those of them whose result is shortened.
    """

    place: tuple[int, int]
    text: str
    tokens: int
    origins: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedGroup:
    """A group in one form: its entries, their tokens, and the numbers of all results and of cut results.

    `prompt` are the tokens of the user's messages in it.
    """

    entries: tuple[RequestEntry, ...] = ()
    tokens: int = 0
    results: int = 0
    cut: int = 0
    prompt: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupText:
    """A group as recalled text. `digest` changes with the text."""

    text: str
    tokens: int
    digest: str


@dataclass(slots=True)
class _Slot:
    """A message, and the results of its calls by the indexes of the calls."""

    place: int
    message: Message
    results: dict[int, tuple[int, ToolResult, Message]] = field(default_factory=dict)


class _Answer(NamedTuple):
    """A result as a message in the provider's format, or the placeholder of a missing one."""

    place: int
    written: dict[str, Any]
    origins: tuple[int, ...]
    cut: tuple[int, ...]


class Arrangement:
    """The groups of a conversation for one provider and counter; hold `lock` while using it.

    `order` are the groups in the order of their opening. `beside` are the system messages that the provider
    expects beside the messages. `turns` and `lines` cache recalled messages.
    """

    def __init__(self, provider: Provider, counter: TokenCounter, tiers: Tiers) -> None:
        self.lock = renewed(RLock())
        self.provider = provider
        self.counter = counter
        self.tiers = tiers
        self._source: tuple[Message, ...] = ()
        self._forget()

    def follow(self, messages: Sequence[Message]) -> None:
        """Update the arrangement to these messages; if they only grew, cached parts stay valid."""
        source = tuple(messages)
        known = len(self._source)
        if source[:known] != self._source:
            self._forget()
            known = 0
        for place in range(known, len(source)):
            if not source[place].hidden:
                self._take(place, source[place])
        self._source = source

    @property
    def current(self) -> str | None:
        """The group that was opened last, if any."""
        return self.order[-1] if self.order else None

    def number(self, group: str) -> int:
        """The index of a group in `order`."""
        return self._numbers[group]

    def __contains__(self, group: object) -> bool:
        return group in self._numbers

    def place(self, group: str) -> int:
        """The index of a group's first message."""
        return self._slots[group][0].place

    def rendered(self, group: str | None, form: ResultLimit | None = None) -> RenderedGroup:
        """A group in a form, by default whole; None renders the messages without a group."""
        made = self._made.setdefault(group, {})
        if form not in made:
            made[form] = self._show(self._slots.get(group, []), form)
        return made[form]

    def cost_in(self, group: str, form: ResultLimit) -> int:
        """The tokens of a group in a form, without caching it."""
        return self._show(self._slots[group], form).tokens

    def longest_result(self, group: str) -> int:
        """The characters of the longest result in a group, including late ones; 0 without results."""
        results = (result for slot in self._slots[group] for _, result, _ in slot.results.values())
        return max((len(content_in_words(result.content)) for result in results), default=0)

    def group_text(self, group: str, *, whole: bool = False) -> GroupText:
        """A group as text, with tool results cut as in past groups unless `whole`."""
        if (group, whole) not in self._group_texts:
            members = Group(id=group, messages=tuple(self._members[group]))
            tiers = replace(self.tiers, inactive=None) if whole else self.tiers
            # The heading and the id are removed.
            text = section_of((members,), tiers=tiers).partition("\n")[2].partition("\n")[2]
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
            self._group_texts[group, whole] = GroupText(
                text=text, tokens=self.counter.count(text) + 1, digest=digest
            )
        return self._group_texts[group, whole]

    def prompt(self) -> Sequence[Message]:
        """The messages of the last groups, for deriving a query."""
        return [message for group in self.order[-5:] for message in self._members[group]]

    def members(self, group: str) -> Sequence[Message]:
        """The messages of a group in their order."""
        return self._members[group]

    def _forget(self) -> None:
        self._source = ()
        self.order: list[str] = []
        self.beside: list[Message] = []
        self._numbers: dict[str, int] = {}
        self._slots: dict[str | None, list[_Slot]] = {}
        self._members: dict[str, list[Message]] = {}
        self._waiting: dict[str, list[tuple[str | None, _Slot, list[int]]]] = {}
        self._made: dict[str | None, dict[ResultLimit | None, RenderedGroup]] = {}
        self._group_texts: dict[tuple[str, bool], GroupText] = {}
        self.turns: dict[Hashable, Memory] = {}
        self.lines = RememberedLines()

    def _take(self, place: int, message: Message) -> None:
        group = None if is_always_selected(message) else message.group
        if group is not None:
            self._members.setdefault(group, []).append(message)
            self._changed(group)
        if message.provider not in (self.provider, Provider.PLAIN):
            # Calls and results of another provider are dropped together, so no pair is split.
            for one in translated((message,), self.provider):
                self._keep(place, one, group)
            return
        if not any(isinstance(part, ToolResult) for part in message.parts):
            self._keep(place, message, group)
            return
        rest: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._answer(place, part, message)
            else:
                rest.append(part)
        if rest:
            role = MessageRole.USER if message.role is MessageRole.TOOL else message.role
            self._keep(place, message.evolve(parts=tuple(rest), role=role), group)

    def _keep(self, place: int, message: Message, group: str | None) -> None:
        if self._is_beside(message):
            self.beside.append(message)
            return
        if group is not None and group not in self._numbers:
            self._numbers[group] = len(self.order)
            self.order.append(group)
        slot = _Slot(place, message)
        self._slots.setdefault(group, []).append(slot)
        self._changed(group)
        waiting: dict[str, list[int]] = {}
        for index, call in enumerate(message.calls):
            waiting.setdefault(call.id, []).append(index)
        for call_id, indices in waiting.items():
            self._waiting.setdefault(call_id, []).append((group, slot, indices))

    def _answer(self, place: int, result: ToolResult, message: Message) -> None:
        """Assign a result to the latest call that waits for it; a result without a call is dropped."""
        waiting = self._waiting.get(result.call_id)
        if not waiting:
            return
        group, slot, indices = waiting[-1]
        slot.results[indices.pop(0)] = (place, result, message)
        self._changed(group)
        if not indices:
            waiting.pop()

    def _changed(self, group: str | None) -> None:
        self._made.pop(group, None)
        if group is not None:
            self._group_texts.pop((group, False), None)
            self._group_texts.pop((group, True), None)

    def _is_beside(self, message: Message) -> bool:
        if message.role is not MessageRole.SYSTEM:
            return False
        if self.provider is Provider.ANTHROPIC:
            return message.provider is Provider.PLAIN or message.form == anthropic.SYSTEM
        return self.provider is Provider.RESPONSES and message.form == openai.INSTRUCTIONS

    def _show(self, slots: Sequence[_Slot], form: ResultLimit | None) -> RenderedGroup:
        entries: list[RequestEntry] = []
        results = cut = prompt = 0
        for slot in slots:
            calls = slot.message.calls
            if self.provider is Provider.RESPONSES and any(
                index not in slot.results and call.form not in _ANSWERED_BY
                for index, call in enumerate(calls)
            ):
                # The result of a provider's own tool has a special format, so no placeholder is possible.
                continue
            own = WRITE[self.provider]([slot.message])
            made = [entry_of(each, self, (slot.place, 0), origins=(slot.place,)) for each in own]
            entries += made
            if slot.message.role is MessageRole.USER:
                prompt += sum(entry.tokens for entry in made)
            answers: list[_Answer] = []
            for index, call in enumerate(calls):
                place, answer, shortened = self._answered(slot, index, call, form, results)
                origins = (place,) if index in slot.results else ()
                results += index in slot.results
                cut += shortened
                answers += [
                    _Answer(place, each, origins, origins if shortened else ())
                    for each in WRITE[self.provider]([answer])
                ]
            entries += self._answers(slot, answers)
        entries.sort(key=lambda entry: entry.place)
        tokens = sum(entry.tokens for entry in entries)
        return RenderedGroup(entries=tuple(entries), tokens=tokens, results=results, cut=cut, prompt=prompt)

    def _answers(self, slot: _Slot, answers: Sequence[_Answer]) -> list[RequestEntry]:
        if self.provider is Provider.RESPONSES:
            # Its items name their calls, so each can stay in its place.
            return [
                entry_of(each.written, self, (each.place, 1), origins=each.origins, cut=each.cut)
                for each in answers
            ]
        if self.provider is Provider.ANTHROPIC and answers:
            parts = [part for each in answers for part in each.written["content"]]
            origins = tuple(dict.fromkeys(place for each in answers for place in each.origins))
            cut = tuple(dict.fromkeys(place for each in answers for place in each.cut))
            answers = [_Answer(slot.place, {"role": "user", "content": parts}, origins, cut)]
        parallel = len(slot.message.calls) > 1
        return [
            entry_of(
                each.written, self, (slot.place, 1), parallel=parallel, origins=each.origins, cut=each.cut
            )
            for each in answers
        ]

    def _answered(
        self, slot: _Slot, index: int, call: ToolCall, form: ResultLimit | None, number: int
    ) -> tuple[int, Message, bool]:
        """The place of a call's result, the result as a separate message, and whether it is cut."""
        if index not in slot.results:
            return slot.place, self._missing(call), False
        place, result, source = slot.results[index]
        extra = source.extra if self.provider is Provider.OPENAI and source.role is MessageRole.TOOL else ""
        whole = source.evolve(role=MessageRole.TOOL, parts=(result,), extra=extra)
        if form is None or number >= form.count:
            return place, whole, False
        limit = Tiers(inactive=form.limit, head=self.tiers.head)
        (shorter,) = tiered((whole,), active=None, tiers=limit)
        return place, shorter, shorter is not whole

    def _missing(self, call: ToolCall) -> Message:
        text = TextPart(text=MISSING)
        if self.provider is Provider.OPENAI and call.form == _OLD:
            extra = as_json({"role": "function", "name": call.name})
            result = ToolResult(call_id="", content=(text,), form=_OLD)
            return Message(role=MessageRole.TOOL, parts=(result,), provider=Provider.OPENAI, extra=extra)
        form = _ANSWERED_BY.get(call.form, "") if self.provider is Provider.RESPONSES else ""
        provider = self.provider if form else Provider.PLAIN
        result = ToolResult(call_id=call.id, content=(text,), form=form)
        return Message(role=MessageRole.TOOL, parts=(result,), provider=provider)


def entry_of(
    written: Mapping[str, Any],
    arranged: Arrangement,
    place: tuple[int, int],
    *,
    parallel: bool = False,
    origins: tuple[int, ...] = (),
    cut: tuple[int, ...] = (),
) -> RequestEntry:
    """The entry of a message in the provider's format; `parallel` as in `message_tokens`."""
    tokens = message_tokens(written, arranged.provider, arranged.counter, parallel=parallel)
    return RequestEntry(place, as_json(written), tokens, origins, cut)


# The specification of a request.

FULL: Final = 0.9
"""The minimum share of the limit that a request uses if it could use more."""

AIM: Final = 0.96
"""The share of the limit that a request is filled to, since parts rarely end exactly at the limit, and counts
are upper estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class RequestShares:
    """The shares of a request's tokens, after its required parts.

    Each part has a weight, a floor and a ceiling in tokens; unused tokens of one part go to the others.
    `recalled` are matching groups from before the window, and counts only if the window doesn't contain all
    groups. It exceeds its ceiling only if the request would otherwise use less than 90 % of its limit.
    """

    memory: Share = field(default_factory=lambda: Share(weight=15, ceiling=8_000))
    recalled: Share = field(default_factory=lambda: Share(weight=40, ceiling=16_000))
    history: Share = field(default_factory=lambda: Share(weight=45))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBlock:
    """A text of memories or messages, and the relevance of each memory or turn in it to the question.

    A `required` block must fit whole, or the request fails.
    """

    text: str
    shows: Mapping[str, float] = field(default_factory=dict)
    required: bool = False


Remember: TypeAlias = Callable[[int], MemoryBlock]
"""Memory of at most so many tokens. Raises BudgetTooSmall if required memories need more."""


Recall: TypeAlias = Callable[[Sequence[str], int, Container[str]], MemoryBlock]
"""The matches in these groups within so many tokens, without the turns that are shown already.

The name of a turn is its group, a space, and a name without spaces.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpec:
    """One request: its required parts, its optional parts, and its limit.

    `limit` is in tokens by the arrangement's counter, without margins. `query` distinguishes two questions in
    the same group, `admits` two filters of memory. `still_stands` tells whether shown memories are unchanged.
    With `opens`, the request begins with a user message, which some providers require.
    """

    limit: int
    system: Sequence[Message] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    anchors: Mapping[str, str] = field(default_factory=dict)
    pins: frozenset[str] = frozenset()
    remember: Remember | None = None
    recall: Recall = lambda *_: MemoryBlock(text="")
    still_stands: Callable[[Sequence[str]], bool] = lambda _: True
    query: str = ""
    admits: str = ""
    shares: RequestShares = field(default_factory=RequestShares)
    previous: RequestState | None = None
    opens: bool = False


def block_cost(block: ContextBlock, arranged: Arrangement) -> int:
    """The tokens of a block as a message."""
    return message_tokens(block_message(block), arranged.provider, arranged.counter)


def block_message(block: ContextBlock) -> dict[str, Any]:
    """A block as a message of the user and not of the system, since recalled text isn't an instruction."""
    return {"role": "user", "content": fenced(block.text)}


# The head of a request, which is never shortened: tools and system.

OPENING: Final = "[the conversation goes on from here]"
"""The user's first message in a request that would begin with another role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Tools and system prompt as JSON, the messages in every request, and the tokens of each part."""

    tools: str = "[]"
    system: str = "null"
    entries: tuple[RequestEntry, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """The tokens of all parts."""
        return sum(self.parts.values())


def head_of(arranged: Arrangement, spec: RequestSpec) -> Head:
    """The head of the system prompt, the tools, and the messages without a group."""
    provider, counter = arranged.provider, arranged.counter
    given = list(spec.system)
    beside: str | list[dict[str, Any]] | None = None
    entries: list[RequestEntry] = []
    if provider is Provider.ANTHROPIC:
        beside = anthropic.write_system([*given, *arranged.beside])
    elif provider is Provider.RESPONSES:
        instructions = [each.evolve(form=openai.INSTRUCTIONS, provider=Provider.RESPONSES) for each in given]
        beside = openai.write_instructions([*instructions, *arranged.beside])
    else:
        written = openai.write_chat(given)
        entries = [entry_of(each, arranged, (-1, number)) for number, each in enumerate(written)]
    line = {"role": "user", "content": OPENING}
    opening = [entry_of(line, arranged, (-2, 0))] if spec.opens else []
    always = arranged.rendered(None)
    parts = {
        "opening": sum(entry.tokens for entry in opening),
        "tools": tools_tokens(spec.tools, provider, counter),
        "system": system_tokens(beside, provider, counter) + sum(entry.tokens for entry in entries),
        "messages of no group": always.tokens,
        "priming": PRIMING[provider],
    }
    return Head(
        tools=as_json(list(spec.tools)),
        system=as_json(beside),
        entries=(*opening, *entries, *always.entries),
        parts={name: tokens for name, tokens in parts.items() if tokens},
    )

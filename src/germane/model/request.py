"""A request to a model as a value: what is sent, what each part costs, and what a prompt cache keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any, Final, Self

from germane.encoding import to_json
from germane.errors import InvalidInput
from germane.model.context import Context, Reason, TraceNote
from germane.model.conversation import LeftOut, Provider, client_arguments
from germane.model.text import COLUMNS, bar, checked_columns, counted, cut, table
from germane.model.validation import checked_fields, checked_value, forms_of

_BAR = 24
_SHOWN = 8
_REASONS = {
    Reason.OVER_BUDGET: "it doesn't fit the window",
    Reason.STOPPED: "older than the first that doesn't fit",
    Reason.LIMIT: "more than may be recalled",
    Reason.NOT_RELEVANT: "not relevant to the prompt",
    Reason.DUPLICATE: "the request has it already",
}


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(count=(0, inf), limit=(0, inf))
class ResultLimit:
    """How a group's tool results are shown: the first `count` of them with at most `limit` characters."""

    count: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class ContextBlock:
    """Text beside the dialogue, as one message of the user's: memory, an anchor, what is recalled.

    It stands before the group `before`, or with None before the window. `shows` are the ids of the
    memories or groups in it. What is `spare` takes tokens that the next turn may need, and leaves first.
    """

    name: str
    text: str
    before: str | None = None
    shows: tuple[str, ...] = ()
    spare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """What the next request of the same conversation goes on from, so that its prefix stays.

    `start` is the group that the window begins with, `current` the one that was answered, `forms` the
    groups whose tool results are cut, by id, and `admits` tells by which filter memory was gathered.
    `tokens` are those of the request, and `calibration` says how its counter and provider compare. It can be
    stored and sent as JSON.
    """

    start: str | None = None
    current: str | None = None
    query: str = ""
    admits: str = ""
    tokens: int = 0
    calibration: TokenCalibration = field(default_factory=lambda: TokenCalibration(counter="", provider=""))
    forms: Mapping[str, ResultLimit] = field(default_factory=dict)
    blocks: tuple[ContextBlock, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The state in types of JSON, as `from_json` reads it."""
        made: dict[str, Any] = to_json(self)
        return made

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Self:
        """The state from its JSON. Raises InvalidInput for other JSON."""
        try:
            made = cls(
                **{
                    **state,
                    "calibration": TokenCalibration(**state["calibration"]),
                    "forms": {str(group): ResultLimit(**form) for group, form in state["forms"].items()},
                    "blocks": tuple(ContextBlock(**block) for block in state["blocks"]),
                }
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"previous is not the state of a request ({error!r}). Pass `state` of the answer before."
            ) from error
        for name in ("start", "current", "query", "admits", "tokens"):
            annotation = cls.__annotations__[name]
            checked_value(getattr(made, name), forms_of(annotation, cls.__module__), f"previous.{name}")
        return made

    def calibrate(self, usage: object) -> TokenCalibration:
        """What the provider's usage for the request adds to what is known of its counts.

        `usage` as in `TokenCalibration.learn`. Raises InvalidInput.
        """
        return self.calibration.learn(self.tokens, usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUsage:
    """What became of one part of a request, in tokens.

    `offered` is what the part would cost whole, as far as that was looked at: of a history that goes back
    further than the window, the groups beyond it are counted in `left_out` and not in tokens. `share` is
    its limit in tokens, 0 for what is always there. `cut` says how many of its tool
    results are shortened, `shown` and `left_out` how many messages, groups or memories stand in it or not.
    """

    name: str
    used: int
    offered: int = 0
    share: int = 0
    shown: int = 0
    cut: int = 0
    left_out: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to send, ready for a provider's client, and the account of it.

    `tokens` is its count by `counter`, at most `limit`; `limit` is what the window leaves beside the
    `reserve`, less what the counter's margin or the calibration keeps. Messages, system and tools are
    made anew each time that they are read, so changing them changes no request. `memory` is the context
    that was shown, where one was made for this request. The first `stable` messages stand before the
    current group and what was put just before it.

    `origins` has, for each message, the indexes in the given list of what it consists of: mostly one, several
    where a provider takes the results of parallel calls as one message, and none for what was put in (memory,
    anchors, a placeholder for a missing result). The given messages in no origin are left out, or are system
    messages that the provider takes in `system`. `shortened` are the indexes of those whose result is cut.
    """

    provider: Provider
    counter: str
    window: int
    reserve: int
    limit: int
    tokens: int
    parts: tuple[PartUsage, ...] = ()
    left_out: Sequence[LeftOut] = ()
    notes: tuple[TraceNote, ...] = ()
    state: RequestState = field(default_factory=RequestState)
    memory: Context | None = None
    stable: int = 0
    head: tuple[str, str] = ("[]", "null")
    texts: tuple[str, ...] = field(default=(), repr=False)
    costs: tuple[int, ...] = field(default=(), repr=False)
    origins: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    shortened: frozenset[int] = field(default=frozenset(), repr=False)

    def __repr__(self) -> str:
        return (
            f"<germane.Request {self.tokens:,} of {self.limit:,} tokens for {self.provider}, "
            f"{counted(len(self.texts), 'message')}, {counted(len(self.left_out), 'group')} left out>"
        )

    @property
    def calibration(self) -> TokenCalibration:
        """What is known of the provider's counts; without ratios where no usage was learned."""
        return self.state.calibration

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, or the items of the Responses API."""
        messages: list[dict[str, Any]] = json.loads(f"[{','.join(self.texts)}]")
        return messages

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools as they were given."""
        tools: list[dict[str, Any]] = json.loads(self.head[0])
        return tools

    @property
    def system(self) -> str | list[dict[str, Any]] | None:
        """What the system says beside the messages; None where it is one of them, or says nothing."""
        system: str | list[dict[str, Any]] | None = json.loads(self.head[1])
        return system

    def arguments(self, *, cache: bool = False) -> dict[str, Any]:
        """What the provider's client takes: `**request.arguments()` beside the model's name.

        With `cache`, what stays for the next request is marked for Anthropic's prompt cache, which keeps
        nothing unasked; the other providers' caches take no marks.
        """
        named = client_arguments(self.provider, self.messages, self.system)
        if tools := self.tools:
            named["tools"] = tools
        if cache and self.provider is Provider.ANTHROPIC:
            return with_marks(named, stable=self.stable)
        return named

    def serialised(self) -> str:
        """All of the request as JSON; the same request gives the same text."""
        return f'{{"tools":{self.head[0]},"system":{self.head[1]},"messages":[{",".join(self.texts)}]}}'

    def reused_prefix(self, previous: Request | None) -> int:
        """How many of these tokens stand at the beginning of the previous request as well.

        A provider's prompt cache can keep at most these. Whole messages are compared, in the order in which
        providers read them: tools, system, messages.
        """
        if previous is None or self.provider is not previous.provider or self.head != previous.head:
            return 0
        same = self.tokens - sum(self.costs)
        for one, other, cost in zip(self.texts, previous.texts, self.costs, strict=False):
            if one != other:
                break
            same += cost
        return same

    def calibrate(self, usage: object) -> TokenCalibration:
        """What the provider's usage for this request adds to what is known of its counts.

        Give it to the next request. `usage` as in `TokenCalibration.learn`. Raises InvalidInput.
        """
        return self.state.calibrate(usage)

    def explain(self, *, columns: int = COLUMNS) -> str:
        """A table for people: what each part was offered and takes, and what is left out and why.

        No line is longer than `columns`, 40 or more. Raises InvalidInput for fewer.
        """
        share = self.tokens / self.limit if self.limit else 0.0
        rows = [
            ("Request", f"{self.tokens:,} of {self.limit:,} tokens ({share:.0%}), by {self.counter}"),
            ("Window", f"{self.window:,}, of which {self.reserve:,} are reserved for the answer"),
            ("For", str(self.provider)),
        ]
        notes = [f"Note  {note.text}" for note in self.notes]
        lines = [*table(rows), *notes, "", *self._parts(), *self._left_out()]
        return "\n".join(cut(line, checked_columns(columns)) for line in lines) + "\n"

    def _parts(self) -> list[str]:
        scale = max((part.used for part in self.parts), default=0)
        rows = [("PART", "offered", "used", "in", "cut", "out", "", "")]
        rows += [
            (
                part.name,
                f"{part.offered:,}" if part.offered else "",
                f"{part.used:,}",
                f"{part.shown}" if part.shown else "",
                f"{part.cut}" if part.cut else "",
                f"{part.left_out}" if part.left_out else "",
                bar(part.used, part.used, scale=scale, columns=_BAR),
                part.why,
            )
            for part in self.parts
        ]
        return table(rows, right=(1, 2, 3, 4, 5))

    def _left_out(self) -> list[str]:
        left_out = tuple(self.left_out)
        if not left_out:
            return []
        lines = ["", f"Left out: {counted(len(left_out), 'group')} of the conversation."]
        for reason in Reason:
            ones = [one for one in left_out if one.reason is reason]
            if not ones:
                continue
            lines.append(f"OUT: {reason} ({len(ones)}), {_REASONS[reason]}")
            lines += [
                f"  {one.group}" + (f"  short by {counted(one.short_by, 'token')}" if one.short_by else "")
                for one in ones[-_SHOWN:]
            ]
            if len(ones) > _SHOWN:
                lines.append(f"  … and {len(ones) - _SHOWN} older")
        return lines


# Marks for Anthropic's prompt cache, at the ends of what stays from one request to the next. Everything up to
# a mark is cached; at most four are accepted.
# https://platform.claude.com/docs/en/build-with-claude/prompt-caching

MOST_MARKS: Final = 4

_MARK: Final = "cache_control"
_MARKABLE: Final = frozenset(
    {"text", "image", "document", "search_result", "tool_use", "tool_result", "server_tool_use"}
)


def with_marks(arguments: Mapping[str, Any], *, stable: int) -> dict[str, Any]:
    """The arguments of Anthropic's client with marks; nothing given is changed.

    Marked are the last message, the last of the first `stable` ones, the system and the tools. Marks that
    the caller set on system and tools stay and count; those of messages are from requests that are past,
    so they go.
    """
    marked = dict(arguments)
    system, tools = marked.get("system"), marked.get("tools")
    given = _marks_in(system)
    messages = [_unmarked(message) for message in marked.get("messages", ())]
    left = MOST_MARKS - given - _marks_in(tools)
    markable = [place for place, each in enumerate(messages) if _markable_block(each["content"]) is not None]
    early = [place for place in markable if place < stable]
    ends = {*markable[-1:], *early[-1:]}
    for place in sorted(ends, reverse=True)[: max(left, 0)]:
        messages[place] = {**messages[place], "content": _marked_content(messages[place]["content"])}
        left -= 1
    marked["messages"] = messages
    if left > 0 and system and not given:
        marked["system"] = _marked_content(system)
        left -= 1
    # A mark that lasts longer must stand before those that don't, so none is put before the caller's.
    if left > 0 and tools and not given and not _marks_in(tools):
        marked["tools"] = [*tools[:-1], _marked(tools[-1])]
    return marked


def _marks_in(value: object) -> int:
    """How many marks are set already, wherever they stand."""
    if isinstance(value, Mapping):
        return (_MARK in value) + sum(map(_marks_in, value.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return sum(map(_marks_in, value))
    return 0


def _unmarked(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return dict(message)
    blocks = [{key: value for key, value in block.items() if key != _MARK} for block in content]
    return {**message, "content": blocks}


def _marked_content(content: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A content as blocks, the last of those that can be marked with a mark."""
    if isinstance(content, str):
        return [_marked({"type": "text", "text": content})]
    place = _markable_block(content)
    return [_marked(block) if number == place else dict(block) for number, block in enumerate(content)]


def _markable_block(content: str | Sequence[Mapping[str, Any]]) -> int | None:
    """The place of the last block that the API lets be marked: no thought, and no empty text."""
    if isinstance(content, str):
        return 0 if content.strip() else None
    for place in range(len(content) - 1, -1, -1):
        block = content[place]
        kind = block.get("type")
        if kind in _MARKABLE and (kind != "text" or str(block.get("text", "")).strip()):
            return place
    return None


def _marked(block: Mapping[str, Any]) -> dict[str, Any]:
    return {**block, _MARK: {"type": "ephemeral"}}


# Our token counts compared with the provider's.

_STORED: Final = 32
_ENOUGH: Final = 4
_HEADROOM: Final = Fraction("1.03")
_LOWEST, _HIGHEST = Fraction("0.5"), Fraction(4)
_OF_ANTHROPIC = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class TokenCalibration:
    """How many tokens the provider reported for each that we counted, for the latest 32 requests.

    The largest of these ratios counts, and 3 % more, so that one text of another kind doesn't break the
    bound at once; below 4 requests the counter's own margin stands if it is larger. The factor stays
    between 0.5 and 4. It holds for the counter and provider that it was learned by, and no others.
    Store `ratios` to keep it, and give them back to go on.
    """

    counter: str
    provider: str
    ratios: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not all(0 < ratio < float("inf") for ratio in self.ratios):
            raise InvalidInput(f"ratios={self.ratios!r} can't be used: each is a finite number above 0.")

    def learn(self, counted: int, usage: object) -> Self:
        """The calibration after one more request that was counted here and used there.

        `usage` is the provider's: a number of tokens, or the `usage` of its answer as an object or a
        mapping. Raises InvalidInput for none.
        """
        reported = reported_tokens(usage)
        if counted < 1:
            raise InvalidInput(f"counted={counted} can't be compared: a request has 1 token or more.")
        ratios = (*self.ratios, reported / counted)[-_STORED:]
        return type(self)(counter=self.counter, provider=self.provider, ratios=ratios)

    def factor(self, margin: float) -> Fraction:
        """What to multiply a count by, so that the true one is no larger; `margin` is the counter's."""
        stated = 1 + Fraction(str(margin))
        if not self.ratios:
            return stated
        learned = min(max(Fraction(str(max(self.ratios))) * _HEADROOM, _LOWEST), _HIGHEST)
        return learned if len(self.ratios) >= _ENOUGH else max(learned, stated)


def reported_tokens(usage: object) -> int:
    """The tokens of the prompt by a provider's usage, what came from its cache included.

    Raises InvalidInput for what names none.
    """
    if isinstance(usage, int) and not isinstance(usage, bool):
        tokens = usage
    else:
        tokens = _of(usage, "prompt_tokens") or sum(_of(usage, name) for name in _OF_ANTHROPIC)
    if tokens < 1:
        raise InvalidInput(
            f"usage={usage!r} names no tokens of a prompt: give the number, or the `usage` of the answer, "
            "which has prompt_tokens or input_tokens."
        )
    return tokens


def _of(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

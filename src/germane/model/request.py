"""A request to a model as a value: what is sent, what each part of it costs, and what stays for the next.

Level: model (imports errors only).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from germane.model.calibration import Calibration
from germane.model.columns import bar, cut, table
from germane.model.context import Context
from germane.model.conversation import LeftOut
from germane.model.marking import with_marks
from germane.model.message import Provider
from germane.model.trace import Note, Reason

__all__ = ["Block", "Form", "PartUse", "Request", "RequestState"]

_COLUMNS = 110
_BAR = 24
_SHOWN = 8
_REASONS = {
    Reason.OVER_BUDGET: "the window has no room for it",
    Reason.STOPPED: "older than the first that has no room",
    Reason.LIMIT: "more than may be recalled",
    Reason.NOT_RELEVANT: "nothing to do with the prompt",
    Reason.DUPLICATE: "it stands in the request already",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a group's tool results are shown: the first `count` of them with at most `limit` characters."""

    count: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Text beside the dialogue, as one message of the user's: memory, an anchor, what is recalled.

    It stands before the group `before`, or with None before the window. `shows` are the ids of the
    memories or groups in it. What is `spare` takes room that the next turn may need, and leaves first.
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
    """

    start: str | None = None
    current: str | None = None
    asked: str = ""
    admits: str = ""
    forms: Mapping[str, Form] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUse:
    """What became of one part of a request, in tokens.

    `offered` is what the part would cost whole, as far as that was looked at: of a history that goes back
    further than the window, the groups beyond it are counted in `left_out` and not in tokens. `share` is
    what it was given of the room, 0 for what is always there. `cut` says how many of its tool
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
    """

    provider: Provider
    counter: str
    window: int
    reserve: int
    limit: int
    tokens: int
    parts: tuple[PartUse, ...] = ()
    left_out: Sequence[LeftOut] = ()
    notes: tuple[Note, ...] = ()
    state: RequestState = field(default_factory=RequestState)
    memory: Context | None = None
    calibration: Calibration | None = None
    stable: int = 0
    head: tuple[str, str] = ("[]", "null")
    texts: tuple[str, ...] = field(default=(), repr=False)
    costs: tuple[int, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return (
            f"<germane.Request {self.tokens:,} of {self.limit:,} tokens for {self.provider}, "
            f"{len(self.texts)} messages, {len(self.left_out)} groups left out>"
        )

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, or the items of the Responses API."""
        found: list[dict[str, Any]] = json.loads(f"[{','.join(self.texts)}]")
        return found

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools as they were given."""
        found: list[dict[str, Any]] = json.loads(self.head[0])
        return found

    @property
    def system(self) -> str | list[dict[str, Any]] | None:
        """What the system says beside the messages; None where it is one of them, or says nothing."""
        found: str | list[dict[str, Any]] | None = json.loads(self.head[1])
        return found

    def arguments(self, *, cache: bool = False) -> dict[str, Any]:
        """What the provider's client takes: `**request.arguments()` beside the model's name.

        With `cache`, what stays for the next request is marked for Anthropic's prompt cache, which keeps
        nothing unasked; the other providers' caches take no marks.
        """
        in_responses = self.provider is Provider.RESPONSES
        named: dict[str, Any] = {"input" if in_responses else "messages": self.messages}
        if self.system is not None:
            named["instructions" if in_responses else "system"] = self.system
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

    def calibrate(self, usage: object) -> Calibration:
        """What the provider's usage for this request adds to what is known of its counts.

        Give it to the next request. `usage` as in `Calibration.learn`. Raises InvalidInput.
        """
        known = self.calibration or Calibration(counter=self.counter, provider=self.provider.value)
        return known.learn(self.tokens, usage)

    def explain(self) -> str:
        """A table for people: what each part was offered and takes, and what is left out and why."""
        lines = [
            *table(
                [
                    (
                        "Request",
                        f"{self.tokens:,} of {self.limit:,} tokens ({self._share():.0%}), by {self.counter}",
                    ),
                    ("Window", f"{self.window:,}, of which {self.reserve:,} are reserved for the answer"),
                    ("For", str(self.provider)),
                ]
            ),
            *(f"Note  {note.text}" for note in self.notes),
            "",
            *self._parts(),
        ]
        return "\n".join(cut(line, _COLUMNS) for line in (*lines, *self._left_out())) + "\n"

    def _share(self) -> float:
        return self.tokens / self.limit if self.limit else 0.0

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
        if not self.left_out:
            return []
        lines = ["", f"{len(self.left_out)} groups of the conversation are left out."]
        by_reason: dict[Reason, list[LeftOut]] = {}
        for one in self.left_out:
            by_reason.setdefault(one.reason, []).append(one)
        for reason in Reason:
            ones = by_reason.get(reason, [])
            if not ones:
                continue
            lines.append(f"OUT: {reason} ({len(ones)}), {_REASONS[reason]}")
            lines += [
                f"  {one.group}" + (f"  short by {one.short_by:,} tokens" if one.short_by else "")
                for one in ones[-_SHOWN:]
            ]
            if len(ones) > _SHOWN:
                lines.append(f"  … and {len(ones) - _SHOWN} older")
        return lines

"""Messages of typed parts, the log that stores them, and what is selected of a conversation.

Nothing here reads a clock; a sequence orders messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

import regex

from germane.model.memory import Draft, Vector
from germane.model.text import fenced, own_text
from germane.model.validation import checked_fields

if TYPE_CHECKING:
    from germane.model.context import Reason, TraceNote


class MessageRole(StrEnum):
    """Who speaks. A provider's other names for these are stored beside the message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


_ROLES: Final = frozenset((*MessageRole, "developer", "function"))

_NAME: Final = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}'’._-]*(?: [\p{L}\p{M}\p{N}'’._-]+){0,3}")
"""A name that can stand before what somebody says."""


def author_in(extra: str) -> str:
    """The name in a message's further fields, as OpenAI has it; empty for none, and for that of a role."""
    fields = json.loads(extra) if '"name"' in extra else None
    name = fields.get("name") if isinstance(fields, dict) else None
    is_name = isinstance(name, str) and _NAME.fullmatch(name) and name.casefold() not in _ROLES
    return cast("str", name) if is_name else ""


class Provider(StrEnum):
    """In whose layout a message came. What is PLAIN belongs to none and can go to each."""

    PLAIN = "plain"
    OPENAI = "openai"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"


def client_arguments(
    provider: Provider, messages: list[dict[str, Any]], system: str | list[dict[str, Any]] | None
) -> dict[str, Any]:
    """What a provider's client takes: `messages` or `input`, and `system` or `instructions`, if any."""
    in_responses = provider is Provider.RESPONSES
    named: dict[str, Any] = {"input" if in_responses else "messages": messages}
    if system is not None:
        named["instructions" if in_responses else "system"] = system
    return named


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class TextPart:
    """Text of a message. `recalled` marks what came from memory: it is never learned again as new.

    `form` is the provider's name of such a part, empty where the text stood alone as a string;
    `extra` are its further fields there, as a JSON object, empty where there were none.
    """

    text: str
    recalled: bool = False
    form: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class OpaquePart:
    """A part that only its provider understands (an image, a thought), verbatim, as a JSON object.

    `form` is the provider's name of it.
    """

    json: str
    form: str


ContentPart: TypeAlias = TextPart | OpaquePart


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class ToolCall:
    """A call that the model made. `arguments` are text as it was given, mostly JSON.

    `form` and `extra` as in a TextPart; an empty `form` is a function's.
    """

    id: str
    name: str
    arguments: str = "{}"
    form: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class ToolResult:
    """What a call gave back. `is_error` is None where the provider doesn't say.

    `form` and `extra` as in a TextPart; an empty `form` is a function's.
    """

    call_id: str
    content: tuple[ContentPart, ...] = ()
    is_error: bool | None = None
    form: str = ""
    extra: str = ""

    @property
    def text(self) -> str:
        """The text parts of the result, each on lines of its own."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


Part: TypeAlias = TextPart | OpaquePart | ToolCall | ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Message:
    """One message. Values of this class are never changed: `evolve` returns a changed copy.

    `role` and `provider` may be given as text, and `parts` as any sequence. Raises InvalidInput for an
    unknown role or provider, and for what is no part.

    `seq` orders the messages of a session and grows with each; in a list that isn't stored it is the
    place there, from 1, and `id` and `created_at` are absent. `group` names the exchange that the message
    belongs to, None for none: such a message and every system message stay in each window.
    `form` says where the provider keeps it, empty for its list of messages; `extra` are the
    message's further fields there, as a JSON object.
    """

    role: MessageRole
    parts: tuple[Part, ...]
    id: str = ""
    agent: str = ""
    session: str = ""
    seq: int = 0
    group: str | None = None
    provider: Provider = Provider.PLAIN
    created_at: datetime | None = None
    hidden: bool = False
    form: str = ""
    extra: str = ""

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)

    @property
    def author(self) -> str:
        """Who wrote it: the `name` that a message has in OpenAI's form, else the role; of a tool the role."""
        is_spoken = self.role in (MessageRole.USER, MessageRole.ASSISTANT)
        return (author_in(self.extra) if is_spoken else "") or self.role.value

    @property
    def text(self) -> str:
        """The text parts, each on lines of its own; tool traffic is left out."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def own_text(self) -> str:
        """The same without what came from memory: what may be learned from, and searched by."""
        parts = (part for part in self.parts if isinstance(part, TextPart) and not part.recalled)
        return "\n".join(filter(None, (own_text(part.text) for part in parts)))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results in this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Group:
    """A prompt with all that answered it: selected whole or not at all.

    `messages` are in the order of their sequence, at least one.
    """

    id: str
    messages: tuple[Message, ...]

    @property
    def hidden(self) -> bool:
        """Whether it was taken out of its conversation."""
        return self.messages[-1].hidden

    @property
    def first(self) -> int:
        """The sequence number of its first message."""
        return self.messages[0].seq

    @property
    def last(self) -> int:
        """The sequence number of its latest message, by which groups are ordered."""
        return self.messages[-1].seq

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)


class Messages(tuple[Message, ...]):  # noqa: SLOT001 - no tuple can have slots with names in them.
    """The messages of a stored conversation. `groups` caches their groups, by whether hidden ones count."""

    groups: dict[bool, tuple[Group, ...]]

    def __new__(cls, messages: Iterable[Message] = ()) -> Self:
        made = super().__new__(cls, messages)
        made.groups = {}
        return made


# What is selected of a conversation, and the account of what isn't.

Cost: TypeAlias = Callable[[Message], int]
"""What a message costs in tokens, with all that its provider adds to it. Must be pure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A group that isn't selected, and why; `short_by` tokens were missing where that is the budget.

    `tokens` is what it costs, 0 where that wasn't the question.
    """

    group: str
    reason: Reason
    tokens: int = 0
    short_by: int = 0
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Messages of a conversation in their order, by whole groups.

    Every visible group stands once, in `groups` or in `left_out`, both in the order in which they were
    opened. System messages and those of no group are always among the messages. `scores` are those by
    which groups were ranked. `tokens` is what the messages cost; 0 where a caller of the pure functions gives
    no cost. Without a budget it may be counted only when it is first read.
    """

    messages: tuple[Message, ...]
    groups: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    tokens: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[TraceNote, ...] = ()


class _Deferred:
    """A field whose value may be computed when it is first read; in place of the slot of a dataclass."""

    def __init__(self, slot: Any) -> None:
        self._slot = slot

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        if owner is None:
            return self
        value = self._slot.__get__(owner, kind)
        if callable(value):
            value = value()
            self._slot.__set__(owner, value)
        return value

    def __set__(self, owner: object, value: object) -> None:
        self._slot.__set__(owner, value)


Selection.tokens = _Deferred(Selection.tokens)  # type: ignore[assignment, misc] # A slot, behind another descriptor.


def deferred(count: Callable[[], int]) -> int:
    """What `Selection.tokens` is given to be counted when it is first read."""
    return cast(int, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScores:
    """How well the visible groups of a session match a query, by group id; without a match there is no score.

    `scores` are those of the best turn of each group; `bound` is what a good match has.
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    bound: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedQuery:
    """What a conversation is searched for: the prompt's own terms, and those carried from before it.

    With neither, the prompt says nothing that could be searched for.
    """

    prompt: str = ""
    own: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms, the prompt's own first."""
        return (*self.own, *self.carried)

    @property
    def text(self) -> str:
        """What is searched for, as one text."""
        return " ".join([self.prompt, *self.carried])


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """A recent window, unbroken, and beside it what is recalled from before it and the anchors.

    `anchors` are texts by name, `section` the recalled groups in words, in the order of their
    opening; both are bare here and fenced in `beside`. `left_out` accounts for the groups in neither.
    """

    window: Selection
    current: str | None = None
    recalled: tuple[Group, ...] = ()
    section: str = ""
    anchors: Mapping[str, str] = field(default_factory=dict)
    query: DerivedQuery = field(default_factory=DerivedQuery)
    left_out: tuple[LeftOut, ...] = ()
    tokens: int = 0

    @property
    def beside(self) -> Message | None:
        """Anchors and the recalled section as one message of parts marked as recalled; None without any.

        It is the user's, not the system's: what was recalled informs and doesn't instruct.
        """
        return beside_message(self.anchors, self.section)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All as one list. What changes from turn to turn stands just before the current group.

        So the messages above it are a prefix that stays, and a provider's cache can keep it.
        """
        beside, shown = self.beside, self.window.messages
        if beside is None:
            return shown
        groups = [message.group for message in shown]
        known = self.current is not None and self.current in groups
        place = groups.index(self.current) if known else len(shown)
        return (*shown[:place], beside, *shown[place:])


def beside_message(anchors: Mapping[str, str], section: str) -> Message | None:
    """The message that carries anchors, each a block of its own, and a recalled section."""
    blocks = [f"{name.capitalize()}:\n{text}" for name, text in anchors.items() if text.strip()]
    if section:
        blocks.append(section)
    if not blocks:
        return None
    return Message(
        role=MessageRole.USER, parts=tuple(TextPart(text=fenced(block), recalled=True) for block in blocks)
    )


# The changes of a conversation that a store writes, as values, and what is known of a session.


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add messages at the end of the log; each gets the next number of the session as its `seq`.

    Of the first `joining` messages, those without a group that aren't the system's join the group that
    was opened last. What joins a hidden group is hidden. `vectors` are those of the messages, of unit length,
    or None for one that waits for it; empty where all wait.
    """

    messages: tuple[Message, ...]
    joining: int = 0
    vectors: tuple[Vector | None, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHidden:
    """Take a group out of its conversation, or put it back. Raises MessageNotFound where there is no
    such group.
    """

    group: str
    hidden: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveGroup:
    """Delete the messages of a group. Raises MessageNotFound where there is no such group."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMessage:
    """Delete one message. Raises MessageNotFound when the session has no such message."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteMessage:
    """Store other parts of a message. Raises MessageNotFound when the session has no such message."""

    message_id: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeMessages:
    """Delete a group, or with None the whole conversation and its anchors, from every form.

    Raises MessageNotFound where there is no such group or conversation.
    """

    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAnchor:
    """Store a text that stands outside any window, in place of the one of the same name; none removes it."""

    name: str
    text: str


ConversationChange: TypeAlias = (
    Append | SetHidden | RemoveGroup | RemoveMessage | RewriteMessage | PurgeMessages | SetAnchor
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """A conversation at a glance; `messages` counts the hidden ones as well, of which there are `hidden`.

    `first_at` and `last_at` are when its first and latest message were made; None without any. `user` is the
    one whose conversation it is, None for the agent's own; `title` that of its stored summary.
    """

    session: str
    messages: int
    hidden: int
    first_at: datetime | None = None
    last_at: datetime | None = None
    user: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """What a session was about.

    `title` is the user's first sentence, `topics` the words that say most, `first` and `last` the first and
    last message that user or assistant wrote, each shortened. `open_questions` are the user's to which no
    reply follows, and those with which the assistant ends. `summary` is the text of the summarizer, or else
    put together from these; `by` says which. `messages` counts those of visible groups. `memory` is the id of
    the memory that has the summary, None where it isn't stored.
    """

    session: str
    title: str
    topics: tuple[str, ...] = ()
    first: str = ""
    last: str = ""
    open_questions: tuple[str, ...] = ()
    messages: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    summary: str = ""
    by: str = "words"
    memory: str | None = None

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastGroups:
    """The end of a conversation: the messages of its last visible groups, and those that are always selected.

    `opened` are the names of all visible groups, in the order of their opening.
    """

    messages: tuple[Message, ...] = ()
    opened: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What a compaction would do; nothing is done until it is applied, and then it can be undone.

    The groups named `hides` leave every view but stay in the log; `summary` stands for them, as the anchor
    `anchor`, in place of `replaces`. `before` and `after` are the conversation's tokens. `drafts` are what
    the user stated plainly in these groups: proposals, to be remembered before they go. `cut`
    results were shortened first; where that is enough nothing is hidden.
    """

    hides: tuple[str, ...] = ()
    summary: str = ""
    anchor: str = "summary"
    replaces: str = ""
    before: int = 0
    after: int = 0
    cut: int = 0
    drafts: tuple[Draft, ...] = ()
    by: str = "extractive"

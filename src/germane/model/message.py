"""What is said in a conversation: messages of typed parts, and the groups that they form.

Level: model (imports model only). Nothing here reads a clock; a sequence orders messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self, TypeAlias

from germane.model.forms import checked_fields
from germane.model.recalled import own_text

__all__ = [
    "ContentPart",
    "Group",
    "Message",
    "MessageRole",
    "Messages",
    "OpaquePart",
    "Part",
    "Provider",
    "Role",
    "TextPart",
    "ToolCall",
    "ToolResult",
]


class MessageRole(StrEnum):
    """Who speaks. A provider's other names for these are kept beside the message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


Role = MessageRole
"""The same, by the name that modules use which know no other role."""


class Provider(StrEnum):
    """In whose layout a message came. What is PLAIN belongs to none and can go to each."""

    PLAIN = "plain"
    OPENAI = "openai"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class TextPart:
    """Text that was said. `recalled` marks what came from memory: it is never learned again as new.

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
    def text(self) -> str:
        """What was said in words; tool traffic is left out."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def own_text(self) -> str:
        """The same without what came from memory: what may be learned from, and searched by."""
        said = (
            own_text(part.text) for part in self.parts if isinstance(part, TextPart) and not part.recalled
        )
        return "\n".join(text for text in said if text)

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
    """The messages of a conversation as a store keeps them. `groups` holds what was found of them once."""

    groups: dict[bool, tuple[Group, ...]]

    def __new__(cls, messages: Iterable[Message] = ()) -> Self:
        made = super().__new__(cls, messages)
        made.groups = {}
        return made

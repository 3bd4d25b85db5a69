"""Reading and writing messages in the formats of providers, without loss for the same provider.

Messages in germane's own format can be sent to every provider:

    {"role": "user", "content": "Is it raining in Paris?"}
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "weather", "arguments": "{}"}]}
    {"role": "tool", "tool_results": [{"call_id": "1", "content": "21 degrees", "is_error": false}]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from germane.conversation.formats import anthropic, openai
from germane.conversation.formats.parts import (
    content_in_words,
    content_of,
    extra_fields,
    object_of,
    provider_of,
    read_content,
    refused,
    rest_of,
    role_of,
    to_json,
    with_content,
    without_orphans,
)
from germane.errors import InvalidInput, shown
from germane.model.conversation import (
    ContentPart,
    Message,
    MessageRole,
    Provider,
    TextPart,
    ToolCall,
    ToolResult,
    client_arguments,
)

# Calls and results depend on their provider's format and ids, so only this provider gets them. Every provider
# gets text.


def translated(messages: Iterable[Message], provider: Provider) -> tuple[Message, ...]:
    """The messages for this provider: its own and plain messages whole, the text of other messages.

    Empty messages are dropped, and so are results without their calls.
    """
    sent = []
    for message in messages:
        if message.provider in (provider, Provider.PLAIN):
            sent.append(message)
            continue
        spoken = [part for part in content_of(message.parts) if not _is_traffic(part, message)]
        text = content_in_words(spoken)
        if text.strip():
            recalled = all(isinstance(part, TextPart) and part.recalled for part in spoken)
            part = TextPart(text=text, recalled=recalled)
            sent.append(message.evolve(parts=(part,), provider=Provider.PLAIN, form="", extra=""))
    return without_orphans(sent)


def _is_traffic(part: ContentPart, message: Message) -> bool:
    """Whether a part belongs to a tool that the provider runs."""
    if isinstance(part, TextPart):
        return False
    whole_item = message.provider is Provider.RESPONSES and message.form != ""
    return whole_item or part.form.endswith(("tool_use", "tool_result"))


_ROLES = {role.value: role for role in MessageRole}
_Read = TypeVar("_Read", ToolCall, ToolResult)


def read_plain(fields: Mapping[str, Any]) -> Message:
    """Read one message. Raises InvalidInput, naming the field."""
    role = role_of(fields, _ROLES)
    content = read_content(fields.get("content"), "'content'")
    calls = _read_each(fields.get("tool_calls"), "'tool_calls'", ToolCall, _call)
    results = _read_each(fields.get("tool_results"), "'tool_results'", ToolResult, _result)
    if calls and role is not MessageRole.ASSISTANT:
        raise refused("'role' of a message with 'tool_calls'", "assistant", role.value)
    if results and role not in (MessageRole.TOOL, MessageRole.USER):
        raise refused("'role' of a message with 'tool_results'", "tool or user", role.value)
    if role is MessageRole.TOOL and (content or not results):
        raise refused("a tool's message", "one with 'tool_results', and without 'content'", fields)
    extra = rest_of(fields, "role", content and "content", calls and "tool_calls", results and "tool_results")
    return Message(role=role, parts=(*results, *content, *calls), extra=extra)


def _read_each(
    values: object, place: str, kind: type[_Read], read: Callable[[Mapping[str, Any], str], _Read]
) -> tuple[_Read, ...]:
    """The calls or results in a list, each a value or a JSON object."""
    values = values or ()
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
        raise refused(place, "a list", values)
    places = [f"{place}[{index}]" for index in range(len(values))]
    return tuple(
        value if isinstance(value, kind) else read(object_of(value, each), each)
        for each, value in zip(places, values, strict=True)
    )


def _call(fields: Mapping[str, Any], place: str) -> ToolCall:
    """The call in an object with `id`, `name` and `arguments` (a text or an object)."""
    call_id, name = _text(fields, "id", place), _text(fields, "name", place)
    arguments = fields.get("arguments", "{}")
    # The object stays in `extra` besides its text, so that it is written as it was read.
    extra = rest_of(fields, "id", "name", isinstance(arguments, str) and "arguments")
    text = arguments if isinstance(arguments, str) else to_json(arguments)
    absent = "" if "arguments" in fields else "none"
    return ToolCall(id=call_id, name=name, arguments=text, form=absent, extra=extra)


def _result(fields: Mapping[str, Any], place: str) -> ToolResult:
    """The result in an object with `call_id`, `content` and optionally `is_error`."""
    content = read_content(fields.get("content"), f"{place}['content']")
    failed = fields.get("is_error")
    if not (failed is None or isinstance(failed, bool)):
        raise refused(f"{place}['is_error']", "true or false", failed)
    call_id = _text(fields, "call_id", place)
    extra = rest_of(fields, "call_id", content and "content", failed is not None and "is_error")
    return ToolResult(call_id=call_id, content=content, is_error=failed, extra=extra)


def _write_plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages in germane's own format; parts without text are replaced by their names."""
    return [_written(message, message.provider is Provider.PLAIN) for message in messages]


def _written(whole: Message | ToolCall | ToolResult, plain: bool) -> dict[str, Any]:
    fields: dict[str, Any]
    if isinstance(whole, ToolCall):
        fields = {"id": whole.id, "name": whole.name}
        if whole.form != "none":
            fields["arguments"] = whole.arguments
    elif isinstance(whole, ToolResult):
        fields = {"call_id": whole.call_id}
        if whole.content:
            with_content(fields, "content", whole.content, native=plain)
        if whole.is_error is not None:
            fields["is_error"] = whole.is_error
    else:
        fields = {"role": whole.role.value}
        if content := content_of(whole.parts):
            with_content(fields, "content", content, native=plain)
        for name, parts in (("tool_calls", whole.calls), ("tool_results", whole.results)):
            if parts:
                fields[name] = [_written(part, plain) for part in parts]
    return {**fields, **extra_fields(whole.extra)} if plain else fields


def _text(fields: Mapping[str, Any], name: str, place: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise refused(f"{place}[{name!r}]", "a text", value)
    return value


_READ = {
    Provider.PLAIN: read_plain,
    Provider.OPENAI: openai.read_chat,
    Provider.RESPONSES: openai.read_items,
    Provider.ANTHROPIC: anthropic.read,
}
WRITE: Mapping[Provider, Callable[[Sequence[Message]], list[dict[str, Any]]]] = {
    Provider.PLAIN: _write_plain,
    Provider.OPENAI: openai.write_chat,
    Provider.RESPONSES: openai.write_items,
    Provider.ANTHROPIC: anthropic.write,
}

PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider.OPENAI,
    "openai-responses": Provider.RESPONSES,
    "anthropic": Provider.ANTHROPIC,
    "plain": Provider.PLAIN,
}
"""The names of formats in arguments: the providers, and germane's own format."""
_ALSO: Mapping[str, Provider] = {"responses": Provider.RESPONSES, "openai-chat": Provider.OPENAI}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Messages as JSON for a provider. `system` is beside the list if the provider expects it there."""

    provider: Provider
    messages: list[dict[str, Any]]
    system: str | list[dict[str, Any]] | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of the provider's client: `messages` or `input`, and `system` or `instructions`."""
        return client_arguments(self.provider, self.messages, self.system)


def as_provider(name: str | Provider | None) -> Provider | None:
    """The provider of that name; None stays None. Raises InvalidInput for an unknown one.

    Names are those of `PROVIDERS`, and the synonyms "responses" and "openai-chat".
    """
    if name is None:
        return None
    provider = PROVIDERS.get(str(name), _ALSO.get(str(name)))
    if provider is None:
        raise InvalidInput(f"provider={shown(name)} is unknown: take one of {', '.join(PROVIDERS)}.")
    return provider


def read_message(message: object, provider: str | Provider | None = None) -> Message:
    """Read one message in a provider's format, which is detected unless it is given.

    Raises InvalidInput, naming the field, for an invalid message.
    """
    fields = object_of(message, "a message")
    return _READ[as_provider(provider) or provider_of(fields)](fields)


def read_messages(value: object, provider: str | Provider | None = None) -> tuple[Message, ...]:
    """Read the messages of a list, or of a request with `messages` or `input` and a system prompt.

    They are numbered from 1. Raises InvalidInput, with the number of the message.
    """
    known = as_provider(provider)
    read: list[Message] = []
    for number, (make, item) in enumerate(_opened(value, known), start=1):
        try:
            read.append(make(item).evolve(seq=number))
        except InvalidInput as error:
            raise InvalidInput(f"In message {number}: {error}") from error
    return tuple(read)


def write_messages(messages: Iterable[Message], provider: str | Provider) -> Payload:
    """The messages for a provider.

    Messages of another provider lose their calls and results and keep their text. Results without their
    calls are dropped. Plain messages are complete for every provider.
    """
    wanted = as_provider(provider) or Provider.PLAIN
    sent = tuple(messages) if wanted is Provider.PLAIN else translated(messages, wanted)
    system = None
    if wanted is Provider.ANTHROPIC:
        system = anthropic.write_system(sent)
    elif wanted is Provider.RESPONSES:
        system = openai.write_instructions(sent)
    return Payload(provider=wanted, messages=WRITE[wanted](sent), system=system)


def written_alone(message: Message, provider: Provider) -> Sequence[dict[str, Any]]:
    """One message for a provider, whatever stands around it; as text where it is another provider's."""
    own = provider is Provider.PLAIN or message.provider in (provider, Provider.PLAIN)
    return WRITE[provider]([message] if own else translated((message,), provider))


def _opened(value: object, provider: Provider | None) -> list[tuple[Any, Any]]:
    """Each message with the function that reads it."""
    opened: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping) and ("messages" in value or "input" in value):
        if "system" in value:
            opened.append((anthropic.read_system, value["system"]))
            provider = provider or Provider.ANTHROPIC
        if value.get("instructions") is not None:
            opened.append((openai.read_instructions, value["instructions"]))
        if "input" in value and "messages" not in value:
            provider = provider or Provider.RESPONSES
            value = value["input"]
        else:
            value = value["messages"]
    if isinstance(value, str):
        value = {"role": "user", "content": value}
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, Sequence):
        raise refused("messages", "a list of messages, or an object with one", value)
    return [*opened, *((lambda item: read_message(item, provider), item) for item in value)]

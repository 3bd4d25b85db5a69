"""Messages in the layouts of the providers, in and out: what came from one goes back as it came.

Messages in germane's own layout, which belongs to no provider and can be sent to each.

    {"role": "user", "content": "Is it raining in Paris?"}
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "weather", "arguments": "{}"}]}
    {"role": "tool", "tool_results": [{"call_id": "1", "content": "21 degrees", "is_error": false}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
)

__all__ = [
    "PROVIDERS",
    "Payload",
    "as_provider",
    "provider_of",
    "read_message",
    "read_messages",
    "read_plain",
    "translated",
    "write_messages",
]

# The part of a message that can be sent to another provider.
#
# Calls and results are in the layout of their provider and are bound to its ids, so only it gets them. Text
# goes to every provider.


def translated(messages: Iterable[Message], provider: Provider) -> tuple[Message, ...]:
    """The messages as this provider can have them: its own and plain ones whole, of others the text.

    A message of which nothing is left is left out, and so are results without their call.
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
    """Whether a part is of tools that the provider runs itself."""
    if isinstance(part, TextPart):
        return False
    whole_item = message.provider is Provider.RESPONSES and message.form != ""
    return whole_item or part.form.endswith(("tool_use", "tool_result"))


_ROLES = {role.value: role for role in MessageRole}


def read_plain(fields: Mapping[str, Any]) -> Message:
    """One message. Raises InvalidInput, naming the field, for what is none."""
    role = role_of(fields, _ROLES)
    content = read_content(fields.get("content"), "'content'")
    calls = tuple(_calls_of(fields.get("tool_calls") or ()))
    results = tuple(_results_of(fields.get("tool_results") or ()))
    if calls and role is not MessageRole.ASSISTANT:
        raise refused("'role' of a message with 'tool_calls'", "assistant", role.value)
    if results and role not in (MessageRole.TOOL, MessageRole.USER):
        raise refused("'role' of a message with 'tool_results'", "tool or user", role.value)
    if role is MessageRole.TOOL and (content or not results):
        raise refused("a tool's message", "one with 'tool_results', and without 'content'", fields)
    extra = rest_of(fields, "role", content and "content", calls and "tool_calls", results and "tool_results")
    return Message(role=role, parts=(*results, *content, *calls), extra=extra)


def _calls_of(calls: object) -> Iterator[ToolCall]:
    """Calls, given as themselves or as objects with `id`, `name` and `arguments` (a text or an object)."""
    for index, call in enumerate(_listed(calls, "'tool_calls'")):
        if isinstance(call, ToolCall):
            yield call
            continue
        place = f"'tool_calls'[{index}]"
        fields = object_of(call, place)
        call_id, name = _text(fields, "id", place), _text(fields, "name", place)
        arguments = fields.get("arguments", "{}")
        # An object stays in `extra` beside its text, so that it is written as it was read.
        extra = rest_of(fields, "id", "name", isinstance(arguments, str) and "arguments")
        text = arguments if isinstance(arguments, str) else to_json(arguments)
        absent = "" if "arguments" in fields else "none"
        yield ToolCall(id=call_id, name=name, arguments=text, form=absent, extra=extra)


def _results_of(results: object) -> Iterator[ToolResult]:
    """Results, given as themselves or as objects with `call_id`, `content` and maybe `is_error`."""
    for index, result in enumerate(_listed(results, "'tool_results'")):
        if isinstance(result, ToolResult):
            yield result
            continue
        place = f"'tool_results'[{index}]"
        fields = object_of(result, place)
        content = read_content(fields.get("content"), f"{place}['content']")
        failed = fields.get("is_error")
        if not (failed is None or isinstance(failed, bool)):
            raise refused(f"{place}['is_error']", "true or false", failed)
        call_id = _text(fields, "call_id", place)
        extra = rest_of(fields, "call_id", content and "content", failed is not None and "is_error")
        yield ToolResult(call_id=call_id, content=content, is_error=failed, extra=extra)


def _write_plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages in germane's own layout, whichever they came in; what has no text there is named."""
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


def _listed(value: object, place: str) -> Sequence[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise refused(place, "a list", value)
    return value


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
_WRITE = {
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
"""The names of layouts in every argument: those that take requests, and the neutral one."""
_ALSO: Mapping[str, Provider] = {"responses": Provider.RESPONSES, "openai-chat": Provider.OPENAI}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Messages as JSON for a provider. `system` stands beside the list, where the provider keeps it there."""

    provider: Provider
    messages: list[dict[str, Any]]
    system: str | list[dict[str, Any]] | None = None

    def arguments(self) -> dict[str, Any]:
        """What the provider's own client takes: `messages` or `input`, and `system` or `instructions`."""
        in_responses = self.provider is Provider.RESPONSES
        named: dict[str, Any] = {"input" if in_responses else "messages": self.messages}
        if self.system is not None:
            named["instructions" if in_responses else "system"] = self.system
        return named


def as_provider(name: str | Provider | None) -> Provider | None:
    """The provider of that name; None stays None. Raises InvalidInput for an unknown one.

    Names are those of `PROVIDERS`; "responses" and "openai-chat" mean two of them as well.
    """
    if name is None:
        return None
    found = PROVIDERS.get(str(name), _ALSO.get(str(name)))
    if found is None:
        raise InvalidInput(f"provider={shown(name)} is unknown: take one of {', '.join(PROVIDERS)}.")
    return found


def read_message(message: object, provider: str | Provider | None = None) -> Message:
    """One message of a provider's layout, which is found out unless it is named.

    Raises InvalidInput, naming the field, for what is no message of that layout.
    """
    fields = object_of(message, "a message")
    return _READ[as_provider(provider) or provider_of(fields)](fields)


def read_messages(value: object, provider: str | Provider | None = None) -> tuple[Message, ...]:
    """The messages of a list, or of a request: `messages` or `input` and what stands beside.

    They are numbered from 1. Raises InvalidInput, naming the message by its number, for what is none.
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

    What came from another keeps its text and loses its tool traffic; so does a result whose call
    isn't there. A plain message goes to each. Nothing else is left out.
    """
    wanted = as_provider(provider) or Provider.PLAIN
    sent = tuple(messages) if wanted is Provider.PLAIN else translated(messages, wanted)
    system = None
    if wanted is Provider.ANTHROPIC:
        system = anthropic.write_system(sent)
    elif wanted is Provider.RESPONSES:
        system = openai.write_instructions(sent)
    return Payload(provider=wanted, messages=_WRITE[wanted](sent), system=system)


def _opened(value: object, provider: Provider | None) -> list[tuple[Any, Any]]:
    """Each message with what reads it."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping) and ("messages" in value or "input" in value):
        if "system" in value:
            found.append((anthropic.read_system, value["system"]))
            provider = provider or Provider.ANTHROPIC
        if value.get("instructions") is not None:
            found.append((openai.read_instructions, value["instructions"]))
        if "input" in value and "messages" not in value:
            provider = provider or Provider.RESPONSES
            value = value["input"]
        else:
            value = value["messages"]
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    elif isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, Sequence):
        raise refused("messages", "a list of messages, or an object with one", value)
    found += [(lambda item: read_message(item, provider), item) for item in value]
    return found

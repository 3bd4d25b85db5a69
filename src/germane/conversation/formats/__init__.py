"""Messages in the layouts of the providers, in and out: what came from one goes back as it came.

Level: ranking (imports errors and model). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from germane.conversation.formats import anthropic, openai, plain, responses
from germane.conversation.formats.detecting import provider_of
from germane.conversation.formats.fields import object_of, refused
from germane.conversation.formats.translating import translated
from germane.errors import InvalidInput, shown
from germane.model.message import Message, Provider

__all__ = [
    "PROVIDERS",
    "Payload",
    "as_provider",
    "provider_of",
    "read_message",
    "read_messages",
    "translated",
    "write_messages",
]

_READ = {
    Provider.PLAIN: plain.read,
    Provider.OPENAI: openai.read,
    Provider.RESPONSES: responses.read,
    Provider.ANTHROPIC: anthropic.read,
}
_WRITE = {
    Provider.PLAIN: plain.write,
    Provider.OPENAI: openai.write,
    Provider.RESPONSES: responses.write,
    Provider.ANTHROPIC: anthropic.write,
}

PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider.OPENAI,
    "openai-responses": Provider.RESPONSES,
    "anthropic": Provider.ANTHROPIC,
    "plain": Provider.PLAIN,
}
"""The names of layouts, wherever one is asked for: those that take requests, and the neutral one."""
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
        system = responses.write_instructions(sent)
    return Payload(provider=wanted, messages=_WRITE[wanted](sent), system=system)


def _opened(value: object, provider: Provider | None) -> list[tuple[Any, Any]]:
    """Each message with what reads it."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping) and ("messages" in value or "input" in value):
        if "system" in value:
            found.append((anthropic.read_system, value["system"]))
            provider = provider or Provider.ANTHROPIC
        if value.get("instructions") is not None:
            found.append((responses.read_instructions, value["instructions"]))
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

"""Messages keep every field on their way to values and back, whatever the layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from germane import Message
from germane.conversation import MessageRole, Provider, ToolCall, ToolResult
from germane.conversation.formats import read_messages, write_messages
from germane.conversation.formats.parts import without_orphans
from transcripts import anthropic_requests, openai_messages, plain_messages, responses_items


def there_and_back(value: Any, provider: Provider) -> dict[str, Any]:
    """What comes back of a value, with the results that answer nothing, which a provider refuses."""
    messages = read_messages(value, provider)
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    # A call for every result, so that none is left out.
    answered = {result.call_id for message in messages for result in message.results}
    calls = read_messages(
        [{"role": "assistant", "tool_calls": [{"id": call, "name": "n"}] * 20} for call in sorted(answered)]
    )
    back = write_messages((*calls, *messages), provider)
    rest = back.messages[len(back.messages) - len(messages) + beside(messages) :]
    return {**back.arguments(), ("input" if provider is Provider.RESPONSES else "messages"): rest}


def beside(messages: tuple[Any, ...]) -> int:
    return sum(message.form in ("system", "instructions") for message in messages)


@given(st.lists(openai_messages(), max_size=5))
def test_openai_messages_come_back_as_they_were(messages: list[dict[str, Any]]) -> None:
    assert there_and_back(messages, Provider.OPENAI) == {"messages": messages}


@given(anthropic_requests())
def test_anthropic_requests_come_back_as_they_were(request: dict[str, Any]) -> None:
    assert there_and_back(request, Provider.ANTHROPIC) == request


@given(st.lists(responses_items(), max_size=5), st.none() | st.text(st.characters(exclude_categories=["Cs"])))
def test_responses_items_come_back_as_they_were(
    items: list[dict[str, Any]], instructions: str | None
) -> None:
    request = {"input": items, **({} if instructions is None else {"instructions": instructions})}
    assert there_and_back(request, Provider.RESPONSES) == request


@given(st.lists(plain_messages(), max_size=5))
def test_plain_messages_come_back_as_they_were(messages: list[dict[str, Any]]) -> None:
    assert write_messages(read_messages(messages, "plain"), "plain").messages == messages


def results_without_call(messages: Sequence[Message]) -> int:
    """How many results answer no call before them that was open, counted one id at a time."""
    parts = [part for message in messages for part in message.parts]
    found = 0
    for call_id in {part.call_id for part in parts if isinstance(part, ToolResult)}:
        waiting = 0
        for part in parts:
            if isinstance(part, ToolCall) and part.id == call_id:
                waiting += 1
            elif isinstance(part, ToolResult) and part.call_id == call_id:
                found += waiting == 0
                waiting = max(0, waiting - 1)
    return found


@given(st.lists(openai_messages() | plain_messages(), max_size=8), st.sampled_from(list(Provider)))
@example(
    [
        {"role": "assistant", "content": [], "tool_calls": [{"id": "call_1", "name": "read_file"}]},
        {"role": "tool", "tool_results": [{"call_id": "call_1"}]},
    ],
    Provider.ANTHROPIC,
)
def test_no_result_is_sent_without_its_call(messages: list[dict[str, Any]], provider: Provider) -> None:
    read = read_messages(messages)
    kept = without_orphans(read)
    assert without_orphans(kept) == kept
    assert results_without_call(kept) == 0
    gone = sum(len(m.results) for m in read) - sum(len(m.results) for m in kept)
    assert results_without_call(read) == gone
    if provider is not Provider.PLAIN:
        sent = read_messages(write_messages(read, provider).arguments(), provider)
        assert results_without_call(sent) == 0


@given(st.lists(openai_messages(), max_size=6))
def test_what_was_said_goes_to_every_provider(messages: list[dict[str, Any]]) -> None:
    read = read_messages(messages, "openai")
    for provider in (Provider.ANTHROPIC, Provider.RESPONSES):
        sent = read_messages(write_messages(read, provider).arguments(), provider)
        assert not any(message.calls or message.results for message in sent)
        said = "\n".join(message.text for message in sent)
        for message in read:
            if message.role is not MessageRole.TOOL and message.text.strip():
                assert message.text.splitlines()[0] in said


@given(st.lists(anthropic_requests(), min_size=1, max_size=1))
def test_a_message_of_results_alone_is_a_tools(requests: list[dict[str, Any]]) -> None:
    for message in read_messages(requests[0], "anthropic"):
        of_results = bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
        assert not (of_results and message.role is MessageRole.USER)

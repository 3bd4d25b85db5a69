"""A request names, for each of its messages, which of the given ones it consists of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Engine, Message
from germane.conversation import Provider
from germane.conversation.formats import write_messages
from germane.errors import RequestTooLarge
from requests_of import PROVIDERS, conversations
from support.examples import examples
from transcripts import anthropic_requests, openai_messages, responses_items

NAMES = {Provider.OPENAI: "openai", Provider.RESPONSES: "openai-responses", Provider.ANTHROPIC: "anthropic"}


@pytest.fixture(scope="module")
def engine() -> Any:
    with germane.open(":memory:", agent="a") as engine:
        engine.remember("The weather is best on the west coast.")
        yield engine


@settings(max_examples=examples(100))
@given(conversations(), st.sampled_from(PROVIDERS), st.sampled_from([600, 1500, 4000]))
def test_origins_name_what_each_message_was(
    engine: Engine, chat: tuple[Message, ...], provider: Provider, window: int
) -> None:
    offered = write_messages([message for message in chat if not message.hidden], provider)
    given_messages = offered.messages
    try:
        request = engine.request(
            given_messages, provider=NAMES[provider], window=window, reserve=0, memory="layered"
        )
    except RequestTooLarge:
        return
    assert len(request.origins) == len(request.messages)
    named = [place for places in request.origins for place in places]
    assert all(0 <= place < len(given_messages) for place in named)
    assert request.shortened <= set(named)
    for message, places in zip(request.messages, request.origins, strict=True):
        if len(places) == 1 and not request.shortened & set(places):
            (place,) = places
            if provider is not Provider.ANTHROPIC:
                assert message == given_messages[place]
            elif len(given_messages[place]["content"]) == 1:
                # A placeholder for the result of a call that was interrupted has no origin of its own.
                assert message["role"] == given_messages[place]["role"]
                assert message["content"][:1] == given_messages[place]["content"]
    # What no message comes from is left out, and none of it is in the request.
    if provider is not Provider.ANTHROPIC:
        assert len(named) == len(set(named))
        everything = engine.request(given_messages, provider=NAMES[provider], window=10_000_000, reserve=0)
        assert {place for places in everything.origins for place in places} == set(range(len(given_messages)))


@given(
    st.one_of(
        st.tuples(st.just("openai"), st.lists(openai_messages(), max_size=6)),
        st.tuples(st.just("openai-responses"), st.lists(responses_items(), max_size=6)),
        st.tuples(st.just("anthropic"), anthropic_requests().map(lambda request: request["messages"])),
    )
)
def test_items_are_what_was_appended(appended: tuple[str, list[dict[str, Any]]]) -> None:
    provider, messages = appended
    with germane.open(":memory:", agent="a") as engine:
        conversation = engine.conversation("s")
        conversation.extend(messages, provider=provider)
        assert conversation.items(provider) == messages


def test_a_lone_result_is_an_item_and_no_part_of_a_payload() -> None:
    lone = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    with germane.open(":memory:", agent="a") as engine:
        conversation = engine.conversation("s")
        conversation.append(lone, provider="openai")
        assert conversation.items("openai") == [lone]
        assert conversation.payload("openai").messages == []


def test_a_cut_result_is_named_and_a_placeholder_has_no_origin(engine: Engine) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Read the file."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "line\n" * 4000},
        {"role": "user", "content": "And the other?"},
        {"role": "assistant", "content": None, "tool_calls": [call | {"id": "c2"}]},
    ]
    request = engine.request(messages, provider="openai", window=2000, reserve=0)
    assert request.origins == ((0,), (1,), (2,), (3,), (4,), ())
    assert request.shortened == {2}
    assert len(json.dumps(request.messages[2])) < 10_000


def test_origins_don_t_count_what_is_beside_the_list(engine: Engine) -> None:
    given_request = {"system": "Be brief.", "messages": [{"role": "user", "content": "Hello"}]}
    assert engine.request(given_request, provider="anthropic", window=2000, reserve=0).origins == ((0,),)

"""Any conversation comes back from each layout as it was, and every request of it keeps its promises."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from conversations import system
from germane import Message, Request
from germane.conversation import MessageRole, Provider, TextPart, Tiers, ToolCall, ToolResult
from germane.conversation.formats import read_messages, write_messages
from germane.conversation.formats.parts import without_orphans
from germane.conversation.groups import grouped, groups_of
from germane.conversation.layout import FULL, Arrangement, MemoryBlock, RequestSpec
from germane.conversation.solver import request_of
from germane.errors import RequestTooLarge
from germane.tokens import CachedCounter, get_counter
from requests_of import PROVIDERS, TOOLS, check_accepted, check_pairs, conversations, request_tokens
from support.examples import examples
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
    whole = without_orphans(read)
    assert without_orphans(whole) == whole
    assert results_without_call(whole) == 0
    gone = sum(len(m.results) for m in read) - sum(len(m.results) for m in whole)
    assert results_without_call(read) == gone
    if provider is not Provider.PLAIN:
        sent = read_messages(write_messages(read, provider).arguments(), provider)
        assert results_without_call(sent) == 0


@given(st.lists(openai_messages(), max_size=6))
def test_messages_go_to_every_provider(messages: list[dict[str, Any]]) -> None:
    read = read_messages(messages, "openai")
    for provider in (Provider.ANTHROPIC, Provider.RESPONSES):
        sent = read_messages(write_messages(read, provider).arguments(), provider)
        assert not any(message.calls or message.results for message in sent)
        conversation = "\n".join(message.text for message in sent)
        for message in read:
            if message.role is not MessageRole.TOOL and message.text.strip():
                assert message.text.splitlines()[0] in conversation


@given(st.lists(anthropic_requests(), min_size=1, max_size=1))
def test_a_message_of_results_alone_is_a_tools(requests: list[dict[str, Any]]) -> None:
    for message in read_messages(requests[0], "anthropic"):
        of_results = bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
        assert not (of_results and message.role is MessageRole.USER)


COUNTER = CachedCounter(get_counter("o200k"))
SCORES = st.dictionaries(st.sampled_from([f"m{n}" for n in range(1, 20)] + ["b"]), st.integers(1, 9))
LIMITS = st.sampled_from([1000, 1500, 3000, 8000, 30_000])
Chat = tuple[Message, ...]


def made(
    chat: Chat,
    provider: Provider,
    limit: int,
    scores: dict[str, int] | None = None,
    previous: Request | None = None,
    arranged: Arrangement | None = None,
    pins: frozenset[str] = frozenset(),
) -> Request:
    arranged = arranged or Arrangement(provider, COUNTER, Tiers())
    arranged.follow(chat)
    wanted = RequestSpec(
        limit=limit,
        system=[system("You are terse.")],
        tools=TOOLS[provider],
        anchors={"state": "the build is red"},
        recall=partial(recalled, arranged, scores or {}),
        pins=pins,
        previous=None if previous is None else previous.state,
    )
    return request_of(arranged, wanted, window=limit, reserve=0)


def recalled(
    arranged: Arrangement,
    scores: dict[str, int],
    groups: Sequence[str],
    budget: int,
    shown: Container[str],
) -> MemoryBlock:
    """The best of these groups that fit, in words, whole ones and then the beginning of one."""
    text, shows = "", {}
    wanted = {group for group in groups if group in scores and f"{group} 1" not in shown}
    for group in sorted(wanted, key=lambda group: (-scores[group], group)):
        longer = f"{text}{arranged.group_text(group).text}\n"
        while COUNTER.count(longer) > budget and len(longer) > len(text):
            longer = longer[: -max(1, (len(longer) - len(text)) // 2)]
        if len(longer) > len(text):
            text, shows[f"{group} 1"] = longer, float(scores[group])
    return MemoryBlock(text=text, shows=shows)


def check(request: Request, chat: Chat, limit: int) -> None:
    """What every request promises."""
    arguments = request.arguments()
    check_accepted(arguments, request.provider)
    messages = request.messages
    check_pairs(messages, request.provider)
    if request.provider is Provider.ANTHROPIC:
        check_accepted(request.arguments(cache=True), request.provider)
        assert [message["role"] for message in messages[:1]] in ([], ["user"])
    counted = request_tokens(
        request.provider, COUNTER, messages=messages, system=request.system, tools=request.tools
    )
    assert request.tokens == counted
    assert counted <= limit
    assert sum(part.used for part in request.parts) == counted
    sent = request.serialised()
    assert "You are terse." in sent
    assert "the build is red" in sent
    assert len({*request.state.forms} - {group.id for group in groups_of(chat)}) == 0


def check_full(request: Request, chat: Chat, offered: Request) -> None:
    """Where less than 90 % is used, all that says something is there, and no result is cut."""
    # The line that says that the conversation goes on stands where it must, and is nothing on offer.
    opening = sum(part.used for part in offered.parts if part.name == "opening")
    if request.tokens >= min(FULL * request.limit, offered.tokens - opening):
        return
    # White space alone says nothing: it stands in the window, but is never recalled to fill a request.
    groups = [group.id for group in groups_of(chat)]
    before = set(groups[: groups.index(str(request.state.start))])
    gone = [message for message in chat if message.group in before]
    texts = [message.text for message in gone] + [each.text for message in gone for each in message.results]
    assert any(text and not text.strip() for text in texts)
    out = {one.group for one in request.left_out}
    left = [message for message in chat if message.group in out and not message.hidden]
    assert not any(message.text.strip() or message.calls for message in left)
    assert not request.state.forms


@settings(max_examples=examples(150))
@given(conversations(), st.sampled_from(PROVIDERS), LIMITS, SCORES)
def test_a_request_is_valid_fits_and_is_full(
    chat: Chat, provider: Provider, limit: int, scores: dict[str, int]
) -> None:
    offered = made(chat, provider, 10_000_000, scores)
    check(offered, chat, 10_000_000)
    try:
        request = made(chat, provider, limit, scores)
    except RequestTooLarge as error:
        assert error.budget == limit
        assert sum(error.parts.values()) == error.needed > limit
        return
    check(request, chat, limit)
    check_full(request, chat, offered)
    assert request == made(chat, provider, limit, scores)
    assert request.serialised() == made(chat, provider, limit, scores).serialised()


@settings(max_examples=examples(60))
@given(conversations(), st.sampled_from(PROVIDERS), LIMITS, SCORES)
def test_each_turn_keeps_all_promises_and_mostly_the_prefix(
    chat: Chat, provider: Provider, limit: int, scores: dict[str, int]
) -> None:
    previous: Request | None = None
    arranged = Arrangement(provider, COUNTER, Tiers())
    for end in range(1, len(chat) + 1):
        try:
            request = made(chat[:end], provider, limit, scores, previous, arranged)
        except RequestTooLarge:
            continue
        check(request, chat[:end], limit)
        # What was remembered of the turns before changes no request.
        anew = made(chat[:end], provider, limit, scores, previous)
        assert request.serialised() == anew.serialised()
        offered = made(chat[:end], provider, 10_000_000, scores)
        check_full(request, chat[:end], offered)
        previous = request


@settings(max_examples=examples(60))
@given(conversations(), st.sampled_from(PROVIDERS), LIMITS, st.sampled_from(["a", "b", "m2", "m3"]))
def test_pinned_groups_stay_and_hidden_ones_never_come_back(
    chat: Chat, provider: Provider, limit: int, group: str
) -> None:
    conversation = "said in this group alone"
    marked = tuple(
        message.evolve(parts=(*message.parts, TextPart(text=conversation)))
        if message.group == group and message.role is MessageRole.USER and not message.results
        else message
        for message in chat
    )
    is_there = any(conversation in message.text and not message.hidden for message in marked)
    try:
        request = made(marked, provider, limit, {group: 9}, pins=frozenset({group}))
    except RequestTooLarge:
        return
    check(request, marked, limit)
    assert (conversation in request.serialised()) == is_there
    hidden = tuple(message.evolve(hidden=message.hidden or message.group == group) for message in marked)
    try:
        after = made(hidden, provider, limit, {group: 9}, previous=request)
    except RequestTooLarge:
        return
    check(after, hidden, limit)
    assert conversation not in after.serialised()


@settings(max_examples=examples(80))
@given(
    st.one_of(
        st.tuples(st.just(Provider.OPENAI), st.lists(openai_messages(), max_size=12)),
        st.tuples(st.just(Provider.RESPONSES), st.lists(responses_items(), max_size=12)),
        st.tuples(st.just(Provider.ANTHROPIC), anthropic_requests()),
    ),
    st.sampled_from(PROVIDERS),
)
def test_what_came_from_any_provider_fits_any(given_talk: tuple[Provider, Any], provider: Provider) -> None:
    source, value = given_talk
    chat = grouped(read_messages(value, source))
    try:
        request = made(chat, provider, 1500)
    except RequestTooLarge:
        return
    counted = request_tokens(
        provider, COUNTER, messages=request.messages, system=request.system, tools=request.tools
    )
    assert request.tokens == counted <= 1500
    if provider is not source:
        check_accepted(request.arguments(), provider)
        check_pairs(request.messages, provider)


@settings(max_examples=examples(80))
@given(
    conversations(),
    st.lists(st.sampled_from([Provider.PLAIN, *PROVIDERS]), min_size=4, max_size=4),
    st.sampled_from(PROVIDERS),
    LIMITS,
)
def test_what_several_providers_sent_in_one_conversation_is_sent_to_one(
    chat: Chat, sources: list[Provider], provider: Provider, limit: int
) -> None:
    mixed: list[Message] = []
    for number, group in enumerate(groups_of(chat)):
        source = sources[number % len(sources)]
        conversation = write_messages(group.messages, source)
        read = read_messages(conversation.arguments(), source)
        mixed += (message.evolve(group=group.id) for message in read)
    native = grouped(
        message.evolve(seq=place, id=f"m{place}") for place, message in enumerate(mixed, start=1)
    )
    offered = made(native, provider, 10_000_000)
    check(offered, native, 10_000_000)
    try:
        request = made(native, provider, limit)
    except RequestTooLarge:
        return
    check(request, native, limit)
    check_full(request, native, offered)
    assert request.serialised() == made(native, provider, limit).serialised()


@settings(max_examples=examples(80))
@given(conversations(), st.sampled_from(PROVIDERS), st.sampled_from([1500, 4000]))
def test_what_a_provider_sent_goes_back_to_it_in_pairs(chat: Chat, provider: Provider, limit: int) -> None:
    conversation = write_messages([message for message in chat if not message.hidden], provider)
    native = grouped(read_messages(conversation.arguments(), provider))
    try:
        request = made(native, provider, limit)
    except RequestTooLarge:
        return
    check(request, native, limit)

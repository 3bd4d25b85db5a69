"""Conversations through the engine: what is appended, what is shown of it, and what never is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

import germane
from germane import Conversation, Engine, InvalidInput
from germane.conversation import MessageRole, Provider, TextPart, Tiers
from germane.errors import MessageNotFound, PurgeNotConfirmed
from germane.stores import SqliteStore
from germane.testing.fakes import WordCounter
from germane.tokens import get_counter
from support.recalled import recalled

NOW = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="ada", embedder=None, clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def chat(engine: Engine) -> Conversation:
    return engine.conversation("chat")


def tell(chat: Conversation, *prompts: str) -> list[str]:
    """Prompts with an answer each; returns their groups."""
    groups = []
    for text in prompts:
        opened = chat.append("user", text)
        assert opened.group is not None
        groups.append(opened.group)
        chat.append("assistant", f"Answer to it: {text}.")
    return groups


def test_a_prompt_and_all_that_answers_it_are_a_group(chat: Conversation) -> None:
    chat.append("system", "Be brief.")
    question = chat.append("user", "Rain in Paris?")
    called = chat.append(
        "assistant", tool_calls=[{"id": "c1", "name": "weather", "arguments": {"city": "Paris"}}]
    )
    second = chat.append("user", "And in Rome?")
    late = chat.append("tool", tool_results=[{"call_id": "c1", "content": "dry"}])
    answered = chat.append("assistant", "No.")
    assert [each.group for each in (question, called, second, late, answered)] == [
        question.id,
        question.id,
        second.id,
        question.id,
        second.id,
    ]
    assert [each.seq for each in chat.messages()] == [1, 2, 3, 4, 5, 6]
    assert {each.created_at for each in chat.messages()} == {NOW}
    current = chat.current()
    assert current is not None
    assert (current.id, [each.text for each in current]) == (second.id, ["And in Rome?", "No."])
    assert [group.id for group in chat.groups()] == [question.id, second.id]


def test_the_clock_does_not_order(engine: Engine) -> None:
    chat = engine.conversation("back in time")
    for days in (3, 1, 2):
        chat.append("user", str(days), created_at=NOW - timedelta(days=days))
    assert [each.text for each in chat.messages()] == ["3", "1", "2"]
    assert [each.text for each in chat.window(2).messages] == ["1", "2"]


def test_the_same_log_each_time(tmp_path: Any) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, agent="ada", embedder=None) as engine:
        tell(engine.conversation("chat"), "One?")
    with germane.open(path, agent="ada", embedder=None) as engine:
        chat = engine.conversation("chat")
        chat.append("assistant", "More.")
        assert [each.text for each in chat.messages()] == ["One?", "Answer to it: One?.", "More."]
        assert len(chat.groups()) == 1
        assert [(each.session, each.messages) for each in engine.sessions()] == [("chat", 3)]
        assert repr(chat) == "<germane.Conversation session='chat' agent='ada'>"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "responses"])
def test_what_came_from_a_provider_goes_back_as_it_came(chat: Conversation, provider: str) -> None:
    layouts: dict[str, Any] = {
        "openai": {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "name": "ann", "content": [{"type": "text", "text": "C++ & user's"}]},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c", "content": "noon"},
            ]
        },
        "anthropic": {
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": "C++ & user's"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "c", "name": "now", "input": {}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "noon"}]},
            ],
        },
        "responses": {
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": "C++ & user's"},
                {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "noon"},
            ],
        },
    }
    given = layouts[provider]
    chat.extend(given, provider=provider)
    assert chat.payload(provider).arguments() == given
    assert len(chat.groups()) == 1
    for other in {"openai", "anthropic", "responses"} - {provider}:
        sent = chat.payload(other)
        assert "noon" not in str(sent)
        assert "C++ & user's" in str(sent.messages[0 if other == "anthropic" else 1])


def test_text_and_plain_tools_survive_a_change_of_provider(chat: Conversation) -> None:
    chat.append({"role": "user", "content": "Save it."})
    chat.append(
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "save", "input": {}}]}
    )
    chat.append("tool", tool_results=[{"call_id": "t", "content": "saved"}])
    chat.append("assistant", "Saved.")
    assert chat.payload("openai").messages == [
        {"role": "user", "content": "Save it."},
        {"role": "assistant", "content": "Saved."},
    ]
    # The plain result answers Anthropic's call, where that is shown.
    assert chat.payload("anthropic").messages[2]["content"][0]["tool_use_id"] == "t"
    bound = chat.append("assistant", "Again.", tool_calls=[{"id": "u", "name": "save"}], provider="openai")
    assert chat.payload("openai").messages[-1]["tool_calls"][0]["id"] == "u"
    assert chat.payload("anthropic").messages[-1] == {"role": "assistant", "content": "Again."}
    copy = chat.append(bound)
    assert (copy.parts, copy.provider, copy.group) == (bound.parts, bound.provider, bound.group)
    assert copy.id != bound.id
    assert [each.text for each in chat.extend([bound, {"role": "user", "content": "?"}])] == ["Again.", "?"]


def test_a_hidden_group_comes_back_by_no_path(chat: Conversation) -> None:
    groups = tell(chat, "redis secret cache", "postgres index", "redis timeout", "redis?")
    message = chat.messages()[0]
    hidden = chat.hide(groups[0])
    assert (hidden.id, hidden.hidden, len(hidden.messages)) == (groups[0], True, 2)

    def shown() -> str:
        views: list[Any] = [
            chat.messages(),
            chat.groups(),
            chat.current(),
            chat.window(),
            chat.ranked(query="redis secret"),
            chat.ranked(query="redis secret", recency_scope="matched"),
            chat.anchored(1, query="redis secret").messages,
            chat.anchored(1).messages,
            *(chat.payload(provider) for provider in Provider),
        ]
        return str(views)

    assert "secret" not in shown()
    with pytest.raises(MessageNotFound, match="There is no message"):
        chat.expand(message.id)
    chat.append("assistant", "secret too", group=groups[0])
    assert "secret" not in shown()
    assert [group.id for group in chat.groups(hidden=True)] == groups
    assert [group.hidden for group in chat.groups(hidden=True)] == [True, False, False, False]
    assert chat.unhide(hidden).messages[0] == message
    assert "secret" in shown()
    assert chat.groups()[0].id == groups[0]
    with pytest.raises(MessageNotFound, match="no group 'x' in conversation 'chat'"):
        chat.hide("x")


def test_another_session_never_appears(engine: Engine, chat: Conversation) -> None:
    other = engine.conversation("other")
    (secret,) = tell(other, "redis secret")
    tell(chat, "redis", "redis")
    views = [chat.anchored(1, query="redis secret").messages, chat.ranked(query="redis secret").messages]
    assert "secret" not in str([chat.messages(), chat.window(), views])
    for lost in (lambda: chat.expand(secret), lambda: chat.hide(secret), lambda: chat.remove(secret)):
        with pytest.raises(MessageNotFound):
            lost()
    assert len(other.messages()) == 2


def test_removing_and_undoing(chat: Conversation) -> None:
    one, two, three = tell(chat, "one", "two", "three")
    assert [each.text for each in chat.remove(one)] == ["one", "Answer to it: one."]
    undone = chat.undo()
    assert undone is not None
    assert undone.id == three
    # An answer joins what is current now, and numbers go on.
    more = chat.append("assistant", "More.")
    assert (more.group, more.seq) == (two, 7)
    assert chat.remove_message(more.id) == more
    assert chat.undo() is not None
    assert (chat.undo(), chat.current(), chat.messages(hidden=True)) == (None, None, ())


def test_windows_by_groups_and_tokens(chat: Conversation) -> None:
    chat.append("system", "Be brief.")
    groups = tell(chat, *(f"Question number {number}" for number in range(8)))
    assert chat.window().groups == tuple(groups)
    assert chat.window(-1).groups == ()
    found = chat.window(5, budget=90, counter="o200k")
    assert 0 < len(found.groups) < 5
    assert 0 < found.tokens <= 90
    assert chat.window(5, budget=90, counter=WordCounter(margin=1.0)).tokens <= 45
    with pytest.raises(germane.BudgetTooSmall):
        chat.window(budget=10)
    with pytest.raises(germane.InvalidInput):
        chat.window(budget=-1)


@pytest.mark.parametrize("text", ["go on", "next", "continue", "  ", "and?"])
def test_a_prompt_that_says_nothing_ranks_by_recency(chat: Conversation, text: str) -> None:
    groups = tell(chat, "Redis timeouts", "Postgres index", "Kafka")
    current = chat.append("user", text)
    found = chat.ranked(2)
    assert found.groups == (groups[2], current.id)
    assert [(note.code, note.text) for note in found.notes] == [
        ("recency", "The prompt names nothing to search for, so the latest groups are shown.")
    ]
    assert chat.ranked(2, query="redis").groups == (groups[0], current.id)


@pytest.mark.parametrize("text", ["C++", "user's", 'say "hi', "foo AND", "path/to/file.cpp", "NEAR(", "a-b"])
def test_any_text_is_only_text(chat: Conversation, text: str) -> None:
    groups = tell(chat, f"About {text} then", "Something else", "Another thing", text)
    assert chat.ranked(2).groups[-1] == groups[3]
    if text in ("C++", "path/to/file.cpp"):
        assert chat.ranked(2).groups == (groups[0], groups[3])
        assert groups[0] in [group.id for group in chat.anchored(1).recalled]
        assert [group.id for group in chat.anchored(1, query=text).recalled] == [groups[0]]
    assert chat.messages()[0].text == f"About {text} then"


def test_a_vague_prompt_finds_what_the_talk_is_about(chat: Conversation) -> None:
    groups = tell(
        chat,
        "We chose Redis for the session cache of the Lisbon office",
        "What is for lunch?",
        "Tell me about the weather on Friday",
        "How is the Redis cache in the Lisbon office doing?",
    )
    chat.append("user", "And why?")
    found = chat.anchored(2)
    assert found.query.own == ()
    assert {"redi", "lisbon", "cach"} <= set(found.query.carried)
    assert [group.id for group in found.recalled] == [groups[0]]
    assert "Recalled from earlier" in found.section
    beside = found.messages[-2]
    assert beside == found.beside
    assert beside.own_text == ""
    alone = chat.anchored(2, query="lunch")
    assert [group.id for group in alone.recalled] == [groups[1]]
    assert alone.query.terms == ("lunch",)


def test_anchors_stand_in_the_anchored_view(chat: Conversation) -> None:
    tell(chat, "One")
    chat.anchor("state", "Step 2 of 3.")
    chat.anchor("scratchpad", "maybe B")
    assert dict(chat.anchors()) == {"scratchpad": "maybe B", "state": "Step 2 of 3."}
    beside = chat.anchored().beside
    assert beside is not None
    assert len(beside.parts) == 2
    assert "Step 2 of 3." not in str(chat.window())
    chat.anchor("state", "")
    assert dict(chat.anchors()) == {"scratchpad": "maybe B"}
    with pytest.raises(germane.InvalidInput):
        chat.anchor(" ", "x")


def test_what_a_view_cuts_is_had_whole(chat: Conversation) -> None:
    long = " ".join(str(number) for number in range(3000))
    chat.append("user", "Look")
    chat.append("assistant", tool_calls=[{"id": "c1", "name": "look"}])
    result = chat.append("tool", tool_results=[{"call_id": "c1", "content": long}])
    chat.append("user", "Next")
    (cut,) = [each for each in chat.anchored().window.messages if each.results]
    assert len(cut.results[0].text) == 400
    assert f'expand("{result.id}")' in cut.results[0].text
    assert chat.expand(result.id) == f"[look returned] {long}"
    assert chat.window().messages[2] == result
    tokens = Tiers(inactive=50, counter=get_counter("o200k"))
    shown = chat.window(tiers=tokens).messages[2].results[0].text
    assert get_counter("o200k").count(shown) <= 50


def test_what_came_from_memory_opens_no_group_and_is_not_searched_for(chat: Conversation) -> None:
    (first,) = tell(chat, "One")
    shown = chat.append("user", recalled("The cache is Redis."))
    assert (shown.group, shown.own_text) == (first, "")
    assert chat.payload("openai").messages[-1]["content"] == recalled("The cache is Redis.")
    chat.append("user", "Two")
    assert chat.ranked(query="redis").scores == pytest.approx({first: 1 / 61})


@pytest.mark.parametrize(
    "given",
    [
        lambda chat: chat.append("robot", "hi"),
        lambda chat: chat.append("user"),
        lambda chat: chat.append("tool", "hi"),
        lambda chat: chat.append("user", "hi", tool_calls=[{"id": "1", "name": "n"}]),
        lambda chat: chat.append("assistant", tool_calls=[{"name": "n"}]),
        lambda chat: chat.append({"role": "user", "content": "hi"}, "more"),
        lambda chat: chat.append("user", "hi", provider="gpt"),
        lambda chat: chat.append("user", "hi", group=""),
        lambda chat: chat.append("user", "hi", created_at=datetime(2026, 1, 1)),  # noqa: DTZ001 - Wrong on purpose.
        lambda chat: chat.append("user", "half \ud800"),
        lambda chat: chat.extend([{"role": "user", "content": "a"}, {"role": "user"}, 5]),
        lambda chat: chat.hide(None),
    ],
)
def test_what_is_no_message_is_refused_and_nothing_is_stored(chat: Conversation, given: Any) -> None:
    with pytest.raises(germane.InvalidInput):
        given(chat)
    assert chat.messages(hidden=True) == ()


def test_a_purge_needs_a_word(chat: Conversation) -> None:
    one, two = tell(chat, "one", "two")
    with pytest.raises(PurgeNotConfirmed):
        chat.purge()
    assert chat.purge(one, confirm=True) == 2
    assert [group.id for group in chat.groups()] == [two]
    assert chat.purge(confirm=True) == 2
    assert chat.messages() == ()


def test_a_conversation_needs_a_name_and_a_store_that_keeps_it(engine: Engine) -> None:
    for text in ("", " "):
        with pytest.raises(germane.InvalidInput, match="is empty"):
            engine.conversation(text)

    class Bare:
        """A store without conversations."""

    with closing(SqliteStore(":memory:")) as store:
        plain = Bare()
        for name in {*dir(store)} - {*dir(plain), "conversations"}:
            setattr(plain, name, getattr(store, name))
        with (
            germane.open(cast("germane.Store", plain), embedder=None) as bare,
            pytest.raises(germane.InvalidInput, match="The store Bare keeps no conversations"),
        ):
            bare.conversation("chat")


def test_a_role_is_given_as_text_or_as_itself(engine: Engine) -> None:
    chat = engine.conversation("roles")
    role: Any = "user"
    parts: Any = [TextPart(text="Does the pump hum?")]
    message = germane.Message(role=role, parts=parts, provider=cast("Any", "openai"))

    assert message == germane.Message(role=MessageRole.USER, parts=tuple(parts), provider=Provider.OPENAI)
    assert chat.append(message).role is MessageRole.USER
    assert [group.messages[0].text for group in chat.groups()] == ["Does the pump hum?"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"role": "owner"}, "role='owner' .* take one of system, user, assistant, tool"),
        ({"role": None}, "role=None"),
        ({"provider": "gemini"}, "provider='gemini' .* take one of plain, openai"),
        ({"parts": "So it does."}, "parts='So it does.' is one value; pass a sequence"),
        ({"parts": None}, "parts=None"),
        ({"parts": ("So it does.",)}, r"parts='So it does.' is str; pass germane\.conversation\.TextPart"),
    ],
)
def test_what_makes_no_message(given: dict[str, Any], says: str) -> None:
    fields: dict[str, Any] = {"role": "user", "parts": (), **given}
    with pytest.raises(InvalidInput, match=says):
        germane.Message(**fields)


def test_a_window_counts_its_tokens_without_a_budget_too(engine: Engine) -> None:
    chat = engine.conversation("counted")
    for number in range(3):
        chat.append("user", f"Question {number}: does the pump of hall {number} hum?")
        chat.append("assistant", "So it does. " * (number + 1))

    for verb in (chat.window, chat.ranked, chat.anchored):
        for groups in (1, 2, 0):
            if verb == chat.anchored and groups == 0:
                continue
            assert verb(groups).tokens == verb(groups, budget=100_000).tokens > 0
    assert chat.window(1).tokens < chat.window(2).tokens < chat.window().tokens


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic", "responses", "openai-chat"])
def test_one_list_of_names_serves_wherever_a_provider_is_named(engine: Engine, name: str) -> None:
    chat = engine.conversation("named")
    chat.append("user", "Does the pump hum?", provider=name)
    chat.append({"role": "assistant", "content": "So it does."}, provider=name)
    chat.extend([{"role": "user", "content": "Still?"}], provider=name)

    payload = chat.payload(name)
    assert payload.provider is engine.request(chat, provider=name).provider
    assert len(payload.messages) == 3


def test_an_unknown_provider_is_answered_with_the_same_names_everywhere(engine: Engine) -> None:
    chat = engine.conversation("named")
    for verb in (
        lambda: chat.append("user", "x", provider="gemini"),
        lambda: chat.extend([{"role": "user", "content": "x"}], provider="gemini"),
        lambda: chat.payload("gemini"),
        lambda: engine.request("x", provider="gemini"),
    ):
        with pytest.raises(InvalidInput, match="take one of openai, openai-responses, anthropic"):
            verb()


def test_an_image_that_a_view_leaves_out_is_had_as_it_was_given(chat: Conversation) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    chat.append("user", "Look")
    chat.append("assistant", tool_calls=[{"id": "c1", "name": "look"}])
    content = [{"type": "text", "text": "The pump:"}, image]
    result = chat.append("tool", tool_results=[{"call_id": "c1", "content": content}])
    question = chat.append("user", [{"type": "text", "text": "And this one?"}, image])
    chat.append("assistant", "A valve.")

    (cut,) = [each for each in chat.anchored().window.messages if each.results]
    assert cut.results[0].text == (
        f'The pump:\n[image]\n[1 image left out; expand("{result.id}") returns the whole]'
    )
    assert chat.expand(result.id) == [{"type": "text", "text": "[look returned] The pump:\n[image]"}, image]
    assert chat.expand(question.id) == [{"type": "text", "text": "And this one?"}, image]

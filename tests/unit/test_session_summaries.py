"""Summaries of sessions, the list of sessions, and the state that a model writes into its messages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import germane
from germane import Conversation, Engine, InvalidInput
from germane.errors import MessageNotFound
from germane.testing.fakes import FixedClock

BEGIN = datetime(2026, 5, 4, 9, tzinfo=UTC)


class Shortens:
    """A summarizer that counts its calls, and fails if it has to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls = 0
        self._fails = fails

    def summarize(self, text: str, tokens: int) -> str:
        self.calls += 1
        if self._fails:
            raise ConnectionError
        return f"About a cat ({len(text.splitlines())} lines, {tokens} tokens)."


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="ada", clock=FixedClock(BEGIN)) as opened:
        yield opened


def spoken(engine: Engine, session: str = "monday") -> Conversation:
    conversation = engine.conversation(session)
    conversation.append("user", "Felix, my cat, eats nothing but salmon. He is nine.")
    conversation.append("assistant", "Noted.")
    conversation.append("user", "Thanks. Where is salmon sold in Lisbon?")
    return conversation


def test_a_summary_has_title_topics_ends_and_open_questions(engine: Engine) -> None:
    conversation = spoken(engine)
    found = conversation.summary()
    assert (found.title, found.by) == ("Felix, my cat, eats nothing but salmon.", "words")
    assert {"Felix", "salmon", "Lisbon"} <= set(found.topics[:4])
    assert (found.first, found.last) == (
        "Felix, my cat, eats nothing but salmon. He is nine.",
        "Thanks. Where is salmon sold in Lisbon?",
    )
    assert found.open_questions == ("Where is salmon sold in Lisbon?",)
    assert (found.messages, found.first_at, found.last_at) == (3, BEGIN, BEGIN)
    conversation.append("assistant", "At the market. Shall I order some?")
    assert conversation.summary().open_questions == ("Shall I order some?",)
    conversation.append("user", "Yes.")
    conversation.append("assistant", "Done.")
    assert conversation.summary().open_questions == ()


def test_a_summary_is_a_memory_of_the_session_and_found(engine: Engine) -> None:
    found = spoken(engine).summary()
    memory = engine.get(key="session:monday")
    assert (memory.id, memory.session, memory.kind) == (found.memory, "monday", "episode")
    assert engine.recall("What does the cat eat?")[0].memory.id == found.memory
    assert [each.title for each in engine.sessions()] == [found.title]
    assert engine.conversation("monday").summary().memory == found.memory
    assert len(engine.history(memory.id)) == 1


def test_a_summary_that_is_not_stored_leaves_no_memory(engine: Engine) -> None:
    assert spoken(engine).summary(store=False).memory is None
    assert engine.count() == 0


def test_the_running_conversation_never_shows_its_own_summary(engine: Engine) -> None:
    conversation = spoken(engine)
    found = conversation.summary()
    assert found.memory is not None
    shown = engine.assemble("What does Felix eat?", conversation=conversation)
    assert found.memory not in {item.memory.id for item in shown.items}
    other = engine.conversation("tuesday")
    shown = engine.assemble("What does Felix eat?", conversation=other)
    assert found.memory in {item.memory.id for item in shown.items}


@pytest.mark.parametrize("what", ["hide", "remove", "undo", "remove_message", "purge_group", "purge"])
def test_a_summary_leaves_with_what_it_is_of(engine: Engine, what: str) -> None:
    conversation = spoken(engine)
    conversation.summary()
    group = conversation.groups()[-1]
    match what:
        case "hide":
            conversation.hide(group)
        case "remove":
            conversation.remove(group)
        case "undo":
            conversation.undo()
        case "remove_message":
            conversation.remove_message(group.messages[0].id)
        case "purge_group":
            conversation.purge(group, confirm=True)
        case _:
            conversation.purge(confirm=True)
    assert engine.memories(germane.Filter(statuses=())) == ()
    if what != "purge":
        assert "Lisbon" not in conversation.summary().summary


@pytest.mark.parametrize("what", ["hide", "unhide", "remove", "remove_message", "purge"])
def test_a_summary_stays_where_a_change_is_refused(engine: Engine, what: str) -> None:
    conversation = spoken(engine)
    found = conversation.summary()
    with pytest.raises(MessageNotFound):
        getattr(conversation, what)("no such", **({"confirm": True} if what == "purge" else {}))
    assert [each.id for each in engine.memories()] == [found.memory]


def test_a_purged_session_leaves_no_byte_of_its_summary(tmp_path: Path) -> None:
    with germane.open(tmp_path / "a.db") as engine:
        conversation = spoken(engine)
        conversation.summary()
        conversation.purge(confirm=True)
        assert not [each for each in tmp_path.iterdir() if b"Lisbon" in each.read_bytes()]


def test_a_summarizer_is_called_once_for_a_log() -> None:
    model = Shortens()
    with germane.open(":memory:", summarizer=model) as engine:
        conversation = spoken(engine)
        before = model.calls
        found = conversation.summary()
        assert (found.by, found.summary) == ("summarizer", "About a cat (3 lines, 200 tokens).")
        calls = model.calls
        assert conversation.summary() == found
        assert (model.calls, calls > before) == (calls, True)
        assert engine.recall("cat")[0].memory.content.endswith(found.summary)


def test_a_summarizer_that_fails_leaves_the_words() -> None:
    with germane.open(":memory:", summarizer=Shortens(fails=True)) as engine:
        assert spoken(engine).summary(store=False).by == "words"


def test_a_session_without_words_has_no_summary(engine: Engine) -> None:
    conversation = engine.conversation("empty")
    with pytest.raises(InvalidInput, match="'empty' has no message"):
        conversation.summary()
    conversation.append("system", "Be brief.")
    with pytest.raises(InvalidInput, match="'empty' has no message"):
        conversation.summary()


def test_sessions_are_listed_by_user_and_time() -> None:
    clock = FixedClock(BEGIN)
    with germane.open(":memory:", agent="ada", clock=clock) as engine:
        spoken(engine, "first")
        clock.advance(timedelta(days=2))
        spoken(engine, "second")
        alice = engine.for_user("alice")
        spoken(alice, "hers").summary()
        assert [each.session for each in engine.sessions()] == ["second", "first"]
        assert [each.session for each in engine.sessions(since="2026-05-05")] == ["second"]
        assert [each.session for each in engine.sessions(since=BEGIN)] == ["second", "first"]
        (hers,) = engine.sessions(user="alice")
        assert (hers.session, hers.user, hers.title) == (
            "hers",
            "alice",
            "Felix, my cat, eats nothing but salmon.",
        )
        assert alice.sessions() == alice.sessions(user="alice") == (hers,)
        assert engine.sessions(user="bob") == ()
        with pytest.raises(InvalidInput, match="bound to 'alice'"):
            alice.sessions(user="bob")
        with pytest.raises(InvalidInput, match="names no time"):
            engine.sessions(since="whenever")


def test_the_state_is_that_of_the_latest_message_and_outside_of_views(engine: Engine) -> None:
    conversation = engine.conversation("work")
    assert conversation.state == ""
    conversation.append("user", "Write the parser.")
    conversation.append("assistant", "Begun.\n### STATE\nGoal: parser\n### END STATE")
    conversation.append("user", "Go on.")
    conversation.append("assistant", "Tests pass.\n\n### STATE\nGoal: docs")
    assert conversation.state == "Goal: docs"
    assert "### STATE" in conversation.messages()[-1].text
    for view in (conversation.window(), conversation.ranked(), conversation.anchored().window):
        assert [each.text for each in view.messages][1::2] == ["Begun.", "Tests pass."]
    sent = str(engine.request(conversation, window=4000, reserve=500).messages)
    assert sent.count("Goal: docs") == 1
    assert "Goal: parser" not in sent
    conversation.undo()
    assert conversation.state == "Goal: parser"


def test_the_state_follows_hidden_messages(engine: Engine) -> None:
    conversation = engine.conversation("work")
    conversation.extend(
        [
            {"role": "user", "content": "Begin."},
            {"role": "assistant", "content": "### STATE\none\n### END STATE"},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "Done. ### STATE\ntwo\n### END STATE Bye."},
        ]
    )
    last = conversation.groups()[-1]
    conversation.hide(last)
    assert conversation.state == "one"
    conversation.hide(conversation.groups()[0])
    assert conversation.state == ""
    conversation.unhide(last)
    assert conversation.state == "two"
    conversation.purge(last, confirm=True)
    assert conversation.state == ""


def test_a_state_that_is_set_is_written_into_the_last_message(engine: Engine) -> None:
    conversation = engine.conversation("work")
    conversation.state = "Nothing is done."
    assert (conversation.state, conversation.messages()) == ("Nothing is done.", ())
    conversation.append("user", "Begin.")
    conversation.append("assistant", "I did.\n### STATE\nbegun\n### END STATE\nNext?")
    conversation.state = "half done"
    assert conversation.messages()[-1].text == "I did.\n### STATE\nhalf done\n### END STATE\nNext?"
    assert engine.recall("half done", conversations=True)[0].memory.content.startswith("assistant: I did.")
    conversation.append("user", "Go on.")
    conversation.append("assistant", "Sure.")
    conversation.state = "all done"
    assert conversation.messages()[-1].text == "Sure.\n\n### STATE\nall done\n### END STATE"
    conversation.set_state("")
    assert (conversation.state, conversation.messages()[-1].text) == ("", "Sure.")


def test_a_pattern_of_ones_own(engine: Engine) -> None:
    conversation = engine.conversation("work", state_pattern="<state>{state}</state>")
    conversation.append("user", "<state>mine</state> is no state.")
    conversation.append("assistant", "Yes. <state>yours</state>")
    assert conversation.state == "yours"
    assert conversation.window().messages[-1].text == "Yes."
    for wrong in ("", "{state}", "no place", "<{state}{state}>"):
        with pytest.raises(InvalidInput, match="state_pattern"):
            engine.conversation("work", state_pattern=wrong)

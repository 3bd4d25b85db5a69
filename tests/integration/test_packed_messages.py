"""Messages packed by the block for the first search of a process: a saving that nothing else shows."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import Conversation, Message
from germane.conversation import MessageRole, TextPart, ToolCall, ToolResult
from germane.stores import copy_store
from support.databases import sql_at

BLOCK = 256
WORDS = "redis cache index invoice tests walking 雨ですか getUserName path/to/file.cpp".split()  # noqa: SIM905 - Short.
QUESTIONS = ("redis tests of the walker", "user name in file.cpp", "雨", "answer-17 case-40", "case-255")


def exchange(number: int) -> list[Message]:
    """A prompt, a call and its result in a group of their own, and at times what the system says."""
    group = f"group {number}"
    words = f"{WORDS[number % 9]} {WORDS[number % 7]} case-{number}"
    call = ToolCall(id=f"call-{number}", name="look", arguments="{}")
    answer = TextPart(text=f"answer-{number} {WORDS[number % 4]}")
    made = [
        Message(role=MessageRole.USER, parts=(TextPart(text=words),), group=group),
        Message(role=MessageRole.ASSISTANT, parts=(call,), group=group),
        Message(role=MessageRole.TOOL, parts=(ToolResult(call_id=call.id, content=(answer,)),), group=group),
    ]
    system = Message(role=MessageRole.SYSTEM, parts=(TextPart(text="Speak of redis."),))
    return [*made, system] if number % 10 == 0 else made


def spoken(store: str, exchanges: int, *, first: int = 0) -> str:
    """A conversation of about three messages an exchange; some begin in one block and end in the next."""
    with germane.open(store, agent="ada", embedder=None, durability="relaxed") as engine:
        talk = engine.conversation("chat")
        talk.extend([message for number in range(first, exchanges) for message in exchange(number)])
    return store


def packed(store: str) -> list[int]:
    """Which blocks are packed."""
    rows = sql_at(store, "SELECT num FROM message_lex WHERE packed IS NOT NULL ORDER BY num")
    return [((num & 0xFFFFFFFF) - 1) // BLOCK for (num,) in rows]


def answers(store: str, *, read_only: bool = False) -> list[Any]:
    """What a new process finds for each question, in the conversation and in all of them."""
    with germane.open(store, agent="ada", embedder=None, read_only=read_only) as engine:
        talk = engine.conversation("chat")
        views = [talk.ranked(4, query=each) for each in QUESTIONS]
        contexts = [engine.assemble(each, budget=300).text for each in QUESTIONS]
    return [repr(views), contexts]


def unpack(store: str) -> None:
    sql_at(store, "UPDATE message_lex SET packed = NULL")


def test_a_full_block_is_packed_when_it_is_appended(store: str) -> None:
    spoken(store, 80)
    assert packed(store) == []
    spoken(store, 83, first=80)
    assert packed(store) == [0]
    spoken(store, 260, first=83)
    assert packed(store) == [0, 1, 2]


def test_what_is_found_is_the_same_from_blocks_and_from_messages(store: str) -> None:
    spoken(store, 260)
    expected = answers(store, read_only=True)
    unpack(store)
    assert answers(store, read_only=True) == expected
    assert packed(store) == []


def test_blocks_of_an_older_version_are_packed_by_the_first_who_searches(store: str) -> None:
    spoken(store, 260)
    expected = answers(store)
    rows = sql_at(store, "SELECT num, packed FROM message_lex WHERE packed IS NOT NULL ORDER BY num")
    unpack(store)
    assert answers(store) == expected
    assert sql_at(store, "SELECT num, packed FROM message_lex WHERE packed IS NOT NULL ORDER BY num") == rows


def test_the_first_who_assembles_packs_them_too(store: str) -> None:
    spoken(store, 100)
    unpack(store)
    with germane.open(store, agent="ada", embedder=None) as engine:
        engine.assemble("redis", budget=300)
    assert packed(store) == [0]


def test_few_changes_unpack_few_blocks(store: str) -> None:
    spoken(store, 260)
    assert packed(store) == [0, 1, 2]
    with germane.open(store, agent="ada", embedder=None) as engine:
        engine.conversation("chat").hide("group 100")
    assert packed(store) == [0, 2]


def hidden(talk: Conversation) -> None:
    talk.hide("group 40")


def put_back(talk: Conversation) -> None:
    talk.hide("group 40")
    talk.ranked(4, query="case-40")
    talk.unhide("group 40")


def removed(talk: Conversation) -> None:
    talk.remove("group 40")


def a_call_removed(talk: Conversation) -> None:
    """Its result is in another block."""
    talk.remove_message(talk.messages()[255].id)


def the_last_of_a_block_removed(talk: Conversation) -> None:
    talk.remove_message(next(each for each in talk.messages() if each.seq == BLOCK).id)


def purged(talk: Conversation) -> None:
    talk.purge("group 40", confirm=True)


def state_moved(talk: Conversation) -> None:
    """The last message is written anew, which fills a block."""
    while len(talk.messages(hidden=True)) % BLOCK:
        talk.append("user", "redis")
    talk.set_state("case-41")


@pytest.mark.parametrize(
    "change",
    [hidden, put_back, removed, a_call_removed, the_last_of_a_block_removed, purged, state_moved],
    ids=lambda change: change.__name__,
)
def test_no_change_leaves_a_block_behind(change: Callable[[Conversation], None], store: str) -> None:
    spoken(store, 260)
    with germane.open(store, agent="ada", embedder=None) as engine:
        change(engine.conversation("chat"))
    found = answers(store, read_only=True)
    assert answers(store) == found
    assert answers(store) == found
    unpack(store)
    assert answers(store) == found


def test_purged_messages_leave_no_byte(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    spoken(str(path), 40)
    with germane.open(path, agent="ada", embedder=None) as engine:
        talk = engine.conversation("chat")
        call = {"id": "call-of-the-secret", "name": "look", "arguments": "{}"}
        talk.append("user", "swordfish halibut barracuda", group="group of the secret")
        talk.append("assistant", "", tool_calls=[call], group="group of the secret")
    record = sql_at(str(path), "SELECT hashes FROM message_lex ORDER BY num DESC LIMIT 2")[1][0]
    spoken(str(path), 100, first=40)
    traces = [b"call-of-the-secret", b"group of the secret", record]
    (block,) = sql_at(str(path), "SELECT packed FROM message_lex WHERE packed IS NOT NULL")[0]
    assert all(trace in block for trace in traces)
    with germane.open(path, agent="ada", embedder=None) as engine:
        engine.conversation("chat").purge("group of the secret", confirm=True)
        left = b"".join(each.read_bytes() for each in tmp_path.iterdir())
        assert not any(trace in left for trace in traces)


@pytest.mark.parametrize("bytes_", ["", "01", "ffffffff5b", "020000007b7d", "020000005b5d"])
def test_a_block_that_cannot_be_read_is_packed_anew(bytes_: str, store: str) -> None:
    spoken(store, 100)
    expected = answers(store)
    rows = sql_at(store, "SELECT packed FROM message_lex WHERE packed IS NOT NULL")
    damaged = f"'\\x{bytes_}'::bytea" if store.startswith("postgresql:") else f"x'{bytes_}'"
    sql_at(store, f"UPDATE message_lex SET packed = {damaged} WHERE packed IS NOT NULL")
    assert answers(store) == expected
    assert sql_at(store, "SELECT packed FROM message_lex WHERE packed IS NOT NULL") == rows


def test_another_language_has_blocks_of_its_own(store: str) -> None:
    spoken(store, 100)
    rows = sql_at(store, "SELECT packed FROM message_lex WHERE packed IS NOT NULL")
    with germane.open(store, agent="ada", embedder=None, language="german") as engine:
        found = engine.conversation("chat").ranked(4, query="tests walking")
    assert len(sql_at(store, "SELECT packed FROM message_lex WHERE packed IS NOT NULL")) == 1
    assert sql_at(store, "SELECT packed FROM message_lex WHERE packed IS NOT NULL") != rows
    unpack(store)
    with germane.open(store, agent="ada", embedder=None, read_only=True) as engine:
        assert engine.conversation("chat").ranked(4, query="tests walking") == found


def test_an_open_engine_follows_what_others_append_and_hide(store: str) -> None:
    spoken(store, 20)
    with germane.open(store, agent="ada", embedder=None) as engine:
        talk = engine.conversation("chat")
        talk.ranked(4, query=QUESTIONS[0])
        for last, change in ((120, hidden), (220, removed)):
            spoken(store, last, first=last - 100)
            with germane.open(store, agent="ada", embedder=None) as other:
                other.conversation("chat").append("user", "redis", group="group 40")
                change(other.conversation("chat"))
            assert repr([talk.ranked(4, query=each) for each in QUESTIONS]) == answers(store)[0]


class Words:
    """Counts words, and how often it was called."""

    name = "words"
    margin = 0.0

    def __init__(self) -> None:
        self.calls = 0

    def count(self, text: str) -> int:
        self.calls += 1
        return len(text.split())


def test_a_search_counts_the_tokens_of_its_groups_when_they_are_read(tmp_path: Path) -> None:
    store, counter = spoken(str(tmp_path / "agent.db"), 10), Words()
    with germane.open(store, agent="ada", embedder=None) as engine:
        talk = engine.conversation("chat")
        found = talk.ranked(2, query="case-3", counter=counter)
        assert found.messages
        assert counter.calls == 0
        by_budget = talk.ranked(2, query="case-3", counter=counter, budget=1000)
    assert found == by_budget
    assert found.tokens == by_budget.tokens > 4 * len(found.messages)
    assert replace(found, groups=()).tokens == deepcopy(found).tokens == found.tokens


def test_a_copy_of_a_store_finds_by_its_blocks(tmp_path: Path, store: str) -> None:
    source = spoken(str(tmp_path / "source.db"), 100)
    with germane.open(store, agent="eve", embedder=None) as engine:
        engine.conversation("another").append("user", "redis")
    copy_store(source, store, agents=["ada"])
    assert packed(store) == [0]
    assert answers(store) == answers(source)

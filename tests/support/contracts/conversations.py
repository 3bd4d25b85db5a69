"""What a store promises that keeps conversations: whole, in order, and each of one agent and one session."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from germane import Message
from germane.conversation import (
    ConversationInfo,
    MessageRole,
    OpaquePart,
    Provider,
    TextPart,
    ToolCall,
    ToolResult,
)
from germane.errors import InvalidInput, MessageNotFound
from germane.model.conversation import (
    Append,
    ConversationChange,
    GroupScores,
    PurgeMessages,
    RemoveGroup,
    RemoveMessage,
    SetAnchor,
    SetHidden,
)
from germane.model.memory import Memory
from germane.model.query import Query, Slice
from germane.model.text import fenced
from germane.protocols import Store
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import CONVERSATIONS
from germane.stores.relational.conversation_log import PastTurns
from germane.stores.relational.conversations import ConversationTables
from germane.testing.fakes import START, make_id, make_memory, make_message

__all__ = ["ConversingContract", "matches", "word_scores"]

AGENT, SESSION = "tester", "first"


def appended(store: Store, *texts: str, group: str | None = None, session: str = SESSION) -> list[Message]:
    """New messages at the end of a conversation."""
    talks = CONVERSATIONS.required(store)
    before = len(talks.messages(AGENT, session, hidden=True))
    messages = [
        make_message(
            text, place=before + place, group=group, id=make_id(f"{session} {before + place} {text}")
        )
        for place, text in enumerate(texts, start=1)
    ]
    return list(talks.apply(AGENT, session, [Append(messages=tuple(messages))]))


def scores(store: Store, question: str, *, session: str = SESSION, agent: str = AGENT) -> GroupScores:
    """How well the groups match a question."""
    return matches(CONVERSATIONS.required(store), agent, session, query_terms(question))


def word_scores(
    log: ConversationTables, agent: str, session: str, terms: Sequence[str]
) -> tuple[dict[int, float], float]:
    """BM25 of each turn that has one of the terms, by the number of its first message, and the bound."""
    found = log.search(agent, session, Query(terms=tuple(terms), slices=(Slice(limit=10_000),)), _made)
    scores = {int(one.memory.content): one.signals["lexical"] for one in found.slices[0]}
    return {number: score for number, score in scores.items() if score > 0}, found.lexical_bound


def matches(log: ConversationTables, agent: str, session: str, terms: Sequence[str]) -> GroupScores:
    """The same by group, the best turn of each."""
    scores, bound = word_scores(log, agent, session, terms)
    group_of = {message.seq: str(message.group) for message in log.messages(agent, session)}
    best: dict[str, float] = {}
    for number, score in scores.items():
        best[group_of[number]] = max(best.get(group_of[number], 0.0), score)
    return GroupScores(scores=best, bound=bound)


def _made(turn: Sequence[Message], session: str) -> Memory:
    return make_memory(str(turn[0].seq), metadata={"session": session})


def _past(without: Sequence[str] = ()) -> PastTurns:
    def made(turn: Sequence[Message], part: int, names: bool) -> Memory:  # noqa: ARG001 - The signature.
        return make_memory(turn[0].text, id=turn[0].id)

    return PastTurns(make=made, known={}, without=without)


class ConversingContract:
    """What the sub-store `conversations` does."""

    def test_every_field_of_a_message_comes_back(self, store: Store) -> None:
        parts = (
            TextPart(text='C++ user\'s "hi" foo AND path/to/file.cpp \U0001f600'),
            TextPart(text=fenced("old"), recalled=True, form="text", extra='{"cache_control":{}}'),
            OpaquePart(json='{"type":"image"}', form="image"),
            ToolCall(id="c1", name="look", arguments="{broken", form="custom", extra='{"x":1}'),
            ToolResult(call_id="c0", content=(TextPart(text=""),), is_error=False, form="f", extra="{}"),
            ToolResult(call_id="c2"),
        )
        given = make_message(
            role=MessageRole.ASSISTANT,
            parts=parts,
            provider=Provider.ANTHROPIC,
            form="system",
            extra='{"name":"x"}',
        )
        bare = make_message("", place=2, created_at=None, role=MessageRole.SYSTEM)
        appended = CONVERSATIONS.required(store).apply(AGENT, SESSION, [Append(messages=(given, bare))])
        expected = (
            given.evolve(agent=AGENT, session=SESSION, seq=1),
            bare.evolve(agent=AGENT, session=SESSION, seq=2),
        )
        assert appended == expected
        assert CONVERSATIONS.required(store).messages(AGENT, SESSION) == expected
        assert CONVERSATIONS.required(store).message(AGENT, bare.id) == expected[1]

    def test_what_is_not_there_is_empty(self, store: Store) -> None:
        talks = CONVERSATIONS.required(store)
        assert talks.messages("nobody", SESSION) == ()
        assert talks.message(AGENT, make_id("x")) is None
        assert talks.message(AGENT, "no id' OR 1=1") is None
        assert talks.sessions(AGENT) == ()
        assert dict(talks.anchors(AGENT, SESSION)) == {}
        assert scores(store, "anything") == GroupScores()
        assert talks.apply(AGENT, SESSION, []) == ()

    def test_a_number_orders_and_is_never_used_twice(self, store: Store) -> None:
        talks = CONVERSATIONS.required(store)
        late = make_message("late", place=9, group="g")
        early = make_message("early", place=1, group="h")
        talks.apply(AGENT, SESSION, [Append(messages=(late,)), Append(messages=(early,))])
        assert [each.text for each in talks.messages(AGENT, SESSION)] == ["late", "early"]
        talks.apply(AGENT, SESSION, [RemoveMessage(message_id=early.id)])
        (again,) = appended(store, "again")
        assert again.seq == 3

    def test_the_end_of_a_conversation_is_read_as_the_whole_has_it(self, store: Store) -> None:
        talks = CONVERSATIONS.required(store)
        messages = [
            ("in none", None),
            ("1", "a"),
            ("2", "b"),
            ("3", "c"),
            ("4", "d"),
            ("late", "b"),
            ("terse", "a"),
        ]
        new = [
            make_message(text, place=place, group=name)
            for place, (text, name) in enumerate(messages, start=1)
        ]
        new[-1] = new[-1].evolve(role=MessageRole.SYSTEM)
        hides = SetHidden(group="d", hidden=True)
        talks.apply(AGENT, SESSION, [Append(messages=tuple(new)), hides])
        talks.apply(AGENT, "second", [Append(messages=(make_message("elsewhere", group="z"),))])
        ends = [talks.last_groups(AGENT, SESSION, count) for count in (1, 2, 9)]
        assert [end and [message.text for message in end.messages] for end in ends] == [
            ["in none", "3", "terse"],
            ["in none", "2", "3", "late", "terse"],
            ["in none", "1", "2", "3", "late", "terse"],
        ]
        assert [end and end.opened for end in ends] == [("a", "b", "c")] * 3
        assert ends[-1] is not None
        assert ends[-1].messages == talks.messages(AGENT, SESSION)

    def test_the_first_messages_may_join_what_was_opened_last(self, store: Store) -> None:
        appended(store, "one", group="a")
        appended(store, "two", group="b")
        appended(store, "late for one", group="a")
        new = [make_message(text, place=place) for place, text in enumerate(("x", "y", "z"), start=10)]
        new[1] = new[1].evolve(role=MessageRole.SYSTEM)
        talks = CONVERSATIONS.required(store)
        joined = talks.apply(AGENT, SESSION, [Append(messages=tuple(new), joining=2)])
        assert [each.group for each in joined] == ["b", None, None]
        talks.apply(AGENT, SESSION, [RemoveGroup(group="b")])
        more = make_message("more", place=20)
        assert talks.apply(AGENT, SESSION, [Append(messages=(more,), joining=1)])[0].group == "a"
        first = make_message("first", place=21)
        other = talks.apply(AGENT, "second", [Append(messages=(first,), joining=1)])
        assert other[0].group is None

    def test_a_hidden_group_is_nowhere_until_it_is_put_back(self, store: Store) -> None:
        appended(store, "redis cache", "redis answer", group="a")
        appended(store, "postgres", group="b")
        talks = CONVERSATIONS.required(store)
        assert set(scores(store, "redis postgres").scores) == {"a", "b"}
        hidden = talks.apply(AGENT, SESSION, [SetHidden(group="a", hidden=True)])
        assert [each.hidden for each in hidden] == [True, True]
        assert [each.group for each in talks.messages(AGENT, SESSION)] == ["b"]
        assert [each.hidden for each in talks.messages(AGENT, SESSION, hidden=True)] == [True, True, False]
        alone = scores(store, "redis postgres")
        assert set(alone.scores) == {"b"}
        # What joins a hidden group is hidden as well.
        assert [each.hidden for each in appended(store, "redis again", group="a")] == [True]
        assert set(scores(store, "redis").scores) == set()
        talks.apply(AGENT, SESSION, [SetHidden(group="a", hidden=False)])
        assert len(talks.messages(AGENT, SESSION)) == 4
        assert set(scores(store, "redis").scores) == {"a"}

    def test_statistics_are_of_what_is_visible_in_the_session(self, store: Store) -> None:
        appended(store, "redis cache", group="a")
        appended(store, "postgres", group="b")
        before = scores(store, "redis")
        appended(store, "redis redis cache", "redis", group="c", session="second")
        appended(store, "redis redis cache", group="c")
        CONVERSATIONS.required(store).apply(AGENT, SESSION, [SetHidden(group="c", hidden=True)])
        assert scores(store, "redis") == before
        CONVERSATIONS.required(store).apply(AGENT, SESSION, [RemoveGroup(group="c")])
        assert scores(store, "redis") == before

    @pytest.mark.parametrize(
        "text", ["C++", "user's", 'say "hi', "foo AND", "path/to/file.cpp", "a-b", "NEAR(x", "*", "col:umn"]
    )
    def test_any_text_is_only_text(self, store: Store, text: str) -> None:
        appended(store, text, group="a")
        appended(store, "something else", group="b")
        found = scores(store, text)
        assert set(found.scores) <= {"a"}
        assert bool(found.scores) == bool(query_terms(text))

    def test_what_came_from_memory_finds_nothing(self, store: Store) -> None:
        recalled = (TextPart(text=fenced("redis"), recalled=True), TextPart(text=f"ask {fenced('redis')}"))
        message = make_message(group="a", parts=recalled)
        CONVERSATIONS.required(store).apply(AGENT, SESSION, [Append(messages=(message,))])
        assert (set(scores(store, "redis").scores), set(scores(store, "ask").scores)) == (set(), {"a"})

    def test_calls_and_results_are_found(self, store: Store) -> None:
        call = ToolCall(id="c1", name="read_file", arguments='{"path": "src/zebra.py"}')
        long = ToolResult(call_id="c1", content=(TextPart(text="alpha " + "x " * 9000 + " omega"),))
        messages = (
            make_message(role=MessageRole.ASSISTANT, parts=(call,), group="a"),
            make_message(role=MessageRole.TOOL, parts=(long,), group="a", place=2),
        )
        CONVERSATIONS.required(store).apply(AGENT, SESSION, [Append(messages=messages)])
        appended(store, "nothing of it", group="b")
        for word in ("zebra", "read_file", "alpha", "omega"):
            assert set(scores(store, word).scores) == {"a"}, word

    def test_sessions_and_agents_see_nothing_of_each_other(self, store: Store) -> None:
        talks = CONVERSATIONS.required(store)
        mine = appended(store, "redis", group="a")
        other = appended(store, "redis secret", group="a", session="second")
        theirs = talks.apply("other", SESSION, [Append(messages=(make_message("redis", group="a"),))])
        assert talks.messages(AGENT, SESSION) == tuple(mine)
        assert talks.messages(AGENT, "second") == tuple(other)
        assert talks.messages("other", SESSION) == theirs
        assert talks.message("other", mine[0].id) is None
        assert scores(store, "secret") == GroupScores(bound=scores(store, "secret").bound)
        with pytest.raises(MessageNotFound):
            talks.apply(AGENT, SESSION, [RemoveMessage(message_id=other[0].id)])
        with pytest.raises(MessageNotFound):
            talks.apply("other", SESSION, [RemoveMessage(message_id=mine[0].id)])
        talks.apply(AGENT, SESSION, [RemoveGroup(group="a")])
        assert len(talks.messages(AGENT, "second")) == len(talks.messages("other", SESSION)) == 1

    @pytest.mark.parametrize(
        "change",
        [
            SetHidden(group="x", hidden=True),
            RemoveGroup(group="x"),
            RemoveMessage(message_id=make_id("x")),
            RemoveMessage(message_id="no id"),
            PurgeMessages(group="x"),
        ],
    )
    def test_what_fails_changes_nothing(self, store: Store, change: ConversationChange) -> None:
        appended(store, "redis", group="a")
        talks = CONVERSATIONS.required(store)
        before = talks.messages(AGENT, SESSION)
        changes: list[ConversationChange] = [
            Append(messages=(make_message("postgres", place=2),)),
            SetHidden(group="a", hidden=True),
            change,
        ]
        with pytest.raises(MessageNotFound) as caught:
            talks.apply(AGENT, SESSION, changes)
        assert caught.value.session == SESSION
        assert talks.messages(AGENT, SESSION) == before
        assert set(scores(store, "redis").scores) == {"a"}
        assert scores(store, "postgres").scores == {}
        assert appended(store, "next")[0].seq == 2

    def test_an_id_is_one_messages_alone(self, store: Store) -> None:
        appended(store, "one")
        (stored,) = CONVERSATIONS.required(store).messages(AGENT, SESSION)
        with pytest.raises(InvalidInput):
            CONVERSATIONS.required(store).apply(AGENT, "second", [Append(messages=(stored,))])
        for wrong in ("", "m1"):
            nameless = make_message("x").evolve(id=wrong)
            with pytest.raises(InvalidInput):
                CONVERSATIONS.required(store).apply(AGENT, SESSION, [Append(messages=(nameless,))])
        for name in ("", "x" * 2000):
            with pytest.raises(InvalidInput):
                CONVERSATIONS.required(store).apply(AGENT, name, [Append(messages=(make_message("n"),))])

    def test_anchors(self, store: Store) -> None:
        talks = CONVERSATIONS.required(store)
        talks.apply(
            AGENT, SESSION, [SetAnchor(name="state", text="one"), SetAnchor(name="plan", text="a, b")]
        )
        talks.apply(AGENT, SESSION, [SetAnchor(name="state", text="two")])
        assert list(talks.anchors(AGENT, SESSION).items()) == [("plan", "a, b"), ("state", "two")]
        assert dict(talks.anchors(AGENT, "second")) == {}
        assert dict(talks.anchors("other", SESSION)) == {}
        talks.apply(AGENT, SESSION, [SetAnchor(name="plan", text="")])
        assert dict(talks.anchors(AGENT, SESSION)) == {"state": "two"}

    def test_conversations_at_a_glance(self, store: Store) -> None:
        appended(store, "one", "two", group="a", session="second")
        appended(store, "three")
        talks = CONVERSATIONS.required(store)
        talks.apply(AGENT, "second", [SetHidden(group="a", hidden=True)])
        first, second = talks.sessions(AGENT)
        assert (first.session, first.messages, first.hidden) == (SESSION, 1, 0)
        assert (second.session, second.messages, second.hidden) == ("second", 2, 2)
        assert second.first_at is not None
        assert second.last_at is not None
        assert START < second.first_at < second.last_at
        talks.apply(AGENT, "third", [SetAnchor(name="state", text="x")])
        third = ConversationInfo(session="third", messages=0, hidden=0)
        assert talks.sessions(AGENT)[2] == third
        then = talks.sessions(AGENT, until=second.first_at)
        assert then == (first, replace(second, messages=1, hidden=1, last_at=second.first_at), third)
        assert talks.sessions(AGENT, until=START) == (third,)
        assert talks.has(AGENT, "third")
        assert not talks.has(AGENT, "fourth")
        assert not talks.has("other", "third")

    def test_a_purge_takes_a_group_or_all(self, store: Store) -> None:
        talks = CONVERSATIONS.required(store)
        appended(store, "one", group="a")
        appended(store, "two", group="b")
        talks.apply(AGENT, SESSION, [SetAnchor(name="state", text="x")])
        assert [each.text for each in talks.apply(AGENT, SESSION, [PurgeMessages(group="a")])] == ["one"]
        assert [each.text for each in talks.messages(AGENT, SESSION)] == ["two"]
        assert [each.text for each in talks.apply(AGENT, SESSION, [PurgeMessages()])] == ["two"]
        assert talks.messages(AGENT, SESSION, hidden=True) == ()
        assert dict(talks.anchors(AGENT, SESSION)) == {}
        assert talks.sessions(AGENT) == ()
        assert scores(store, "two").scores == {}
        with pytest.raises(MessageNotFound):
            talks.apply(AGENT, SESSION, [PurgeMessages()])
        assert [each.seq for each in appended(store, "anew")] == [1]
        assert [each.text for each in talks.messages(AGENT, SESSION)] == ["anew"]

    def test_many_threads_append_to_one_conversation(self, store: Store) -> None:
        talks = CONVERSATIONS.required(store)

        def append(number: int) -> Sequence[Message]:
            made = make_message(f"redis {number}", place=number + 1, group=f"g{number % 5}")
            appended = talks.apply(AGENT, SESSION, [Append(messages=(made,))])
            assert made.text in [each.text for each in talks.messages(AGENT, SESSION)]
            scores(store, "redis")
            return appended

        with ThreadPoolExecutor(4) as pool:
            seqs = [each.seq for messages in pool.map(append, range(40)) for each in messages]
        assert sorted(seqs) == list(range(1, 41))
        assert [each.seq for each in talks.messages(AGENT, SESSION)] == list(range(1, 41))
        assert len(scores(store, "redis").scores) == 5

    def test_all_conversations_are_searched_together(self, store: Store) -> None:
        first = appended(store, "the redis cache", "the queue", group="g")
        appended(store, "another redis cache", session="second", group="h")
        log = CONVERSATIONS.required(store)
        assert self._found(log) == ["another redis cache", "the redis cache"]
        assert self._found(log, without=[SESSION]) == ["another redis cache"]
        assert (
            log.search_all("stranger", Query(terms=("redis",), slices=(Slice(limit=100),)), _past()) is None
        )
        log.apply(AGENT, SESSION, [SetHidden(group="g", hidden=True)])
        assert self._found(log) == ["another redis cache"]
        log.apply(AGENT, SESSION, [SetHidden(group="g", hidden=False)])
        appended(store, "redis again", session="third", group="i")
        assert self._found(log) == ["another redis cache", "redis again", "the redis cache"]
        before = log.point(AGENT)
        log.apply(AGENT, SESSION, [RemoveMessage(message_id=first[0].id)])
        assert log.point(AGENT) != before
        log.apply(AGENT, "second", [PurgeMessages()])
        assert self._found(log) == ["redis again"]

    def test_many_conversations_are_read_as_each_by_itself(self, store: Store) -> None:
        for number in range(12):
            appended(store, f"redis {number}", "the queue", session=f"session {number}", group="g")
            appended(store, "nothing of it", session=f"session {number}", group="h")
        log = CONVERSATIONS.required(store)
        assert self._found(log) == sorted(f"redis {number}" for number in range(12))
        assert self._found(log, without=["session 3", "session 4"]) == sorted(
            f"redis {number}" for number in range(12) if number not in (3, 4)
        )

    @staticmethod
    def _found(log: ConversationTables, without: Sequence[str] = ()) -> list[str]:
        """The texts of the turns with the word, of all conversations but these."""
        found = log.search_all(
            AGENT, Query(terms=query_terms("redis"), slices=(Slice(limit=100),)), _past(without)
        )
        assert found is not None
        return sorted(one.memory.content for one in found.slices[0] if one.signals["lexical"] > 0)

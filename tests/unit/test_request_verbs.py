"""Requests as an engine makes them: from a conversation or messages, with memory, turn after turn."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot

import germane
import germane.aio
from germane import BudgetTooSmall, Engine, InvalidInput, RequestTooLarge, Share
from germane.conversation import Provider, RequestShares, RequestState, TextPart, TokenCalibration
from germane.errors import MessageNotFound
from germane.testing.fakes import FixedClock, seeded_ids
from requests_of import TOOLS, check_accepted, check_pairs

WORDS = "the parser reads a token and the worker sends an invoice to the warehouse "
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def opened(path: Path | str = ":memory:", **options: Any) -> Engine:
    return germane.open(path, embedder=None, clock=lambda: NOW, **options)


def long_talk(engine: Engine, exchanges: int = 40) -> germane.Conversation:
    chat = engine.conversation("chat")
    chat.append("user", "Our redis cache expires after ninety seconds, remember that.")
    chat.append("assistant", "Ninety seconds, noted.")
    for number in range(exchanges):
        chat.append("user", f"Question {number}: {WORDS * 3}")
        chat.append("assistant", f"Answer {number}: {WORDS * 3}")
    return chat


def test_a_request_is_ready_for_each_client() -> None:
    with opened() as engine:
        chat = long_talk(engine, 3)
        for name in ("openai", "openai-responses", "anthropic"):
            provider = Provider.RESPONSES if name == "openai-responses" else Provider(name)
            request = engine.request(chat, system="Be terse.", tools=TOOLS[provider], provider=name)
            check_accepted(request.arguments(), provider)
            assert request.provider is provider
            assert sorted(request.arguments()) == sorted(
                {
                    "openai": ["messages", "tools"],
                    "openai-responses": ["input", "instructions", "tools"],
                    "anthropic": ["messages", "system", "tools"],
                }[name]
            )
            assert ("claude" in request.counter) == (name == "anthropic")


def test_what_is_recalled_stands_in_a_block_of_its_own_before_the_prompt() -> None:
    with opened() as engine:
        chat = long_talk(engine)
        chat.append("user", "When does the redis cache expire?")
        request = engine.request(chat, window=2000, reserve=200)
        *_, recalled, spare, prompt = request.messages
        assert prompt == {"role": "user", "content": "When does the redis cache expire?"}
        assert recalled["role"] == "user"
        assert recalled["content"].startswith("<recalled-from-memory>\nRecalled from earlier")
        assert "ninety seconds" in recalled["content"]
        # The messages just before the window take the tokens that are left, until the next turn needs it.
        assert spare["content"].startswith("<recalled-from-memory>\nRecalled from earlier")
        assert [block.spare for block in request.state.blocks] == [False, True]
        # What was recalled is never learned again as new.
        assert TextPart(text="x") != TextPart(text="x", recalled=True)
        other = engine.conversation("other")
        assert other.append(recalled).own_text == ""


REPLY = "The parser reads a token, and the worker sends an invoice to the warehouse. " * 12


def recalled_for(chat: germane.Conversation, engine: Engine, question: str, window: int = 900) -> str:
    """What a request for a question recalls beside little history."""
    little = RequestShares(recalled=Share(weight=9), history=Share(weight=1))
    request = engine.request(chat, query=question, window=window, reserve=0, shares=little)
    return next((block.text for block in request.state.blocks if not block.spare), "")


def test_a_long_reply_is_recalled_by_the_sentence_that_answers() -> None:
    with opened() as engine:
        chat = engine.conversation("chat")
        for number in range(12):
            chat.append("user", f"Tell me more about step {number}.")
            needle = "The spare key lies under the blue flowerpot. " if number == 4 else ""
            chat.append("assistant", f"{REPLY}{needle}{REPLY}")
        chat.append("user", "Thanks.")
        text = recalled_for(chat, engine, "Where is the spare key?", window=500)
        assert "The spare key lies under the blue flowerpot." in text
        assert "…" in text


def test_what_is_stored_in_other_words_is_recalled_by_its_meaning() -> None:
    for embedder, is_found in (("bundled", True), (None, False)):
        with germane.open(":memory:", embedder=embedder, clock=lambda: NOW) as engine:  # One of two.
            chat = engine.conversation("chat")
            chat.append("user", "My doctor told me to avoid peanuts.")
            chat.append("assistant", "Noted.")
            for number in range(40):
                chat.append("user", f"Item {number}: {WORDS * 2}")
                chat.append("assistant", f"Done {number}: {WORDS * 2}")
            chat.append("user", "Thanks.")
            assert ("peanuts" in recalled_for(chat, engine, "Is the user allergic to nuts?")) is is_found


def test_a_call_is_recalled_with_its_result() -> None:
    with opened() as engine:
        chat = engine.conversation("chat")
        chat.append("user", "How warm is it in Lisbon?")
        chat.append(
            "assistant", tool_calls=[{"id": "c1", "name": "weather", "arguments": {"city": "Lisbon"}}]
        )
        chat.append("tool", tool_results=[{"call_id": "c1", "content": "31 degrees"}])
        for number in range(20):
            chat.append("user", f"Question {number}: {WORDS * 3}")
            chat.append("assistant", f"Answer {number}: {WORDS * 3}")
        chat.append("user", "Thanks.")
        text = recalled_for(chat, engine, "What did the weather tool say of Lisbon?")
        shown = '- assistant: [called weather] {"city":"Lisbon"}'
        assert f"{shown}\n  tool: [weather returned] 31 degrees" in text


def test_a_time_in_a_question_counts_from_the_log_and_not_from_the_clock() -> None:
    found = []
    for year in (2026, 2031):
        with germane.open(":memory:", clock=FixedClock(datetime(year, 1, 1, tzinfo=UTC))) as engine:
            chat = engine.conversation("chat")
            for day in range(1, 29):
                at = datetime(2025, 3, day, 9, tzinfo=UTC)
                chat.append("user", f"Ran {day} kilometres: {WORDS * 3}", created_at=at)
            chat.append("user", "Thanks.", created_at=datetime(2025, 3, 29, 9, tzinfo=UTC))
            found.append(recalled_for(chat, engine, "How far did I run on 7 March?", window=400))
    assert "Ran 7 kilometres" in found[0]
    assert found[0] == found[1]


def test_no_text_of_another_session_or_agent_appears(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as engine, opened(tmp_path / "a.db", agent="other") as stranger:
        talks = [engine.conversation("one"), engine.conversation("two"), stranger.conversation("one")]
        for mark, chat in zip(("Lisbon", "Oslo", "Paris"), talks, strict=True):
            for number in range(20):
                chat.append("user", f"The redis cache of the {mark} expires after {number} seconds.")
                chat.append("assistant", f"Noted for the {mark}: {WORDS}")
            chat.append("user", "When does the redis cache expire?")
        previous: germane.Request | None = None
        for chat in (talks[0], talks[0], talks[1], talks[0]):
            made = engine.request(chat, window=900, reserve=100, previous=previous)
            mine, other = ("Lisbon", "Oslo") if chat is talks[0] else ("Oslo", "Lisbon")
            assert mine in made.serialised()
            assert other not in made.serialised()
            assert "Paris" not in made.serialised()
            previous = made


def test_a_prompt_too_long_for_the_window_is_refused_with_its_parts() -> None:
    with opened() as engine, pytest.raises(RequestTooLarge) as caught:
        engine.request(
            [{"role": "user", "content": "Hello"}, {"role": "user", "content": WORDS * 500}],
            system="Be terse.",
            window=1000,
            reserve=100,
        )
    assert isinstance(caught.value, BudgetTooSmall)
    assert caught.value.budget == 900
    assert list(caught.value.parts) == ["last user message", "system", "priming"]
    assert caught.value.needed == sum(caught.value.parts.values())
    assert str(caught.value).startswith("The request doesn't fit: its window leaves 900 tokens")
    assert "Shorten last user message" in str(caught.value)


def test_the_prefix_stays_until_the_window_is_full_and_then_for_several_turns() -> None:
    with opened() as engine:
        chat = engine.conversation("chat")
        previous: germane.Request | None = None
        selected = []
        for number in range(40):
            chat.append("user", f"Question {number}: {WORDS * 2}")
            request = engine.request(chat, system="Be terse.", window=3000, reserve=500, previous=previous)
            if previous is not None:
                selected.append(request.reused_prefix(previous) / request.tokens)
            previous = request
            chat.append("assistant", f"Answer {number}: {WORDS}")
    broken = [share for share in selected if share < 0.5]
    assert 1 <= len(broken) <= 8
    assert sum(selected) / len(selected) > 0.7
    assert previous is not None
    assert previous.reused_prefix(previous) == previous.tokens
    assert previous.reused_prefix(None) == 0


def test_a_request_goes_on_from_the_state_of_the_one_before_as_json() -> None:
    with opened() as engine:
        engine.remember("Deploys are frozen on Fridays.", kind="fact")
        chat = long_talk(engine, 30)
        previous: germane.Request | None = None
        for number in range(12):
            chat.append("user", f"Question {number}: when does the redis cache expire? {WORDS}")
            given: dict[str, Any] = {"memory": "layered", "window": 1500, "reserve": 100}
            made = engine.request(chat, **given, previous=previous)
            if previous is not None:
                sent = json.dumps(previous.state.to_json())
                for form in (previous.state, json.loads(sent), RequestState.from_json(json.loads(sent))):
                    assert engine.request(chat, **given, previous=form) == made
            learned = made.calibrate(made.tokens + number)
            state = RequestState.from_json(json.loads(json.dumps(made.state.to_json())))
            assert state.calibrate(made.tokens + number) == learned
            previous = made
            chat.append("assistant", f"Answer {number}: {WORDS}")


def test_a_state_that_is_none_is_refused_by_what_is_wrong() -> None:
    with opened() as engine:
        chat = long_talk(engine, 30)
        chat.append("user", "When does the redis cache expire?")
        state = engine.request(chat, window=1500, reserve=100).state.to_json()
        for wrong, why in (
            ({}, "not the state of a request"),
            ({**state, "seen": 1}, "seen"),
            ({**state, "tokens": "many"}, "previous.tokens='many'"),
            ({**state, "start": 7}, "previous.start=7"),
            ({**state, "forms": [1]}, "not the state of a request"),
            ({**state, "forms": {"g": {"count": -1, "limit": 2}}}, "count=-1"),
            ({**state, "blocks": [{"name": "memory"}]}, "text"),
            ({**state, "blocks": [{"name": "memory", "text": 3}]}, "text=3"),
            ({**state, "calibration": {"counter": "o200k", "provider": "openai", "ratios": [0]}}, "ratios"),
        ):
            with pytest.raises(InvalidInput, match=re.escape(why)):
                engine.request(chat, window=1500, reserve=100, previous=wrong)


def test_a_tool_loop_only_appends() -> None:
    with opened() as engine:
        engine.remember("Deploys are frozen on Fridays.", kind="fact")
        chat = long_talk(engine, 60)
        chat.append("user", "Is the deploy of the warehouse worker frozen?")
        previous = engine.request(chat, memory="layered", window=6000, reserve=500)
        previous = engine.request(chat, memory="layered", window=6000, reserve=500, previous=previous)
        appended = 0
        for number in range(4):
            chat.append("assistant", tool_calls=[{"id": f"c{number}", "name": "look"}])
            waiting = engine.request(chat, memory="layered", window=6000, reserve=500, previous=previous)
            check_pairs(waiting.messages, Provider.OPENAI)
            assert "no result" in waiting.messages[-1]["content"]
            chat.append("tool", tool_results=[{"call_id": f"c{number}", "content": "nothing frozen"}])
            request = engine.request(chat, memory="layered", window=6000, reserve=500, previous=previous)
            # What only filled tokens gives way, once; all else stays as it was.
            gone = [block for block in previous.state.blocks if block not in request.state.blocks]
            assert all(block.spare for block in gone)
            selected = [
                text
                for text in previous.texts
                if not any(json.dumps(one.text, ensure_ascii=False)[1:-1] in text for one in gone)
            ]
            assert len(selected) == len(previous.texts) - len(gone)
            assert list(request.texts[: len(selected)]) == selected
            appended += not gone
            previous = request
        assert appended >= 3


@pytest.mark.parametrize("length", [40, 1900, 5000])
def test_what_a_tool_just_returned_is_not_given_up_for_older_turns(length: int) -> None:
    with opened() as engine:
        chat = long_talk(engine)
        chat.append("user", "Where is order 4711?")
        calls = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
        chat.append({"role": "assistant", "content": None, "tool_calls": calls}, provider="openai")
        result = (WORDS * 100)[:length]
        chat.append({"role": "tool", "tool_call_id": "c", "content": result}, provider="openai")
        request = engine.request(chat, window=2000, reserve=100)
        assert len(request.left_out) > 0
        sent = request.messages[-1]["content"]
        assert sent == result or (length > 2000 and len(sent) > 1900)


def test_memory_is_part_of_the_budget_and_goes_when_it_is_forgotten() -> None:
    with opened() as engine:
        selected = engine.remember("Deploys are frozen on Fridays.", kind="fact")
        chat = engine.conversation("chat")
        chat.append("user", "May I deploy on Friday?")
        request = engine.request(chat, memory="layered", window=2000, reserve=100)
        assert request.memory is not None
        assert "frozen on Fridays" in request.messages[0]["content"]
        assert {part.name: part.used for part in request.parts}["memory"] > 0
        again = engine.request(chat, memory="layered", window=2000, reserve=100, previous=request)
        assert again.serialised() == request.serialised()
        engine.forget(selected.id)
        after = engine.request(chat, memory="layered", window=2000, reserve=100, previous=request)
        assert "frozen" not in after.serialised()


def test_a_context_is_taken_whole_or_refused() -> None:
    with opened() as engine:
        for number in range(30):
            engine.remember(f"Fact {number}: {WORDS}", kind="fact")
        context = engine.assemble("warehouse invoices", budget=600)
        prompt = [{"role": "user", "content": "What of the invoices?"}]
        request = engine.request(prompt, memory=context, window=1000, reserve=50)
        assert context.text.splitlines()[1] in request.messages[0]["content"]
        with pytest.raises(RequestTooLarge) as caught:
            engine.request(prompt, memory=context, window=400, reserve=50)
        assert next(iter(caught.value.parts)) == "memory"


def test_what_a_space_knows_is_taken_as_a_context_and_stays_in_its_place() -> None:
    with opened() as engine, engine.space("team", create=True) as team:
        team.remember("The demo is on Tuesday.", kind="fact")
        chat = engine.conversation("chat")
        chat.append("user", "When is the demo?")
        known = engine.assemble("When is the demo?", budget=300, spaces=["team"])
        first = engine.request(chat, memory=known)
        assert "Tuesday" in first.serialised()
        chat.append("assistant", "On Tuesday.")
        chat.append("user", "Thanks. And who comes?")
        then = engine.request(chat, memory=known, previous=first)
        assert then.reused_prefix(first) == first.tokens
        other = engine.request(chat, memory=engine.assemble("Who comes?", budget=300), previous=then)
        assert "Tuesday" not in other.messages[0]["content"]


def test_shares_bound_the_parts() -> None:
    with opened() as engine:
        chat = long_talk(engine)
        chat.append("user", "When does the redis cache expire? What of the invoice and the parser?")
        little = RequestShares(recalled=Share(weight=1, ceiling=150), history=Share(weight=9))
        request = engine.request(chat, window=3000, reserve=0, shares=little)
        used = {part.name: part.used for part in request.parts}
        assert used["recalled"] <= 150
        assert request.tokens >= 0.9 * request.limit
        # Of a history that may have no more, the rest is summarized, to keep the promise of a full one.
        short = RequestShares(history=Share(weight=45, ceiling=700))
        request = engine.request(chat, window=3000, reserve=0, shares=short)
        used = {part.name: part.used for part in request.parts}
        assert 500 < used["history"] <= 700
        assert request.tokens >= 0.9 * request.limit
        chat.append("assistant", "After ninety seconds.")
        chat.append("user", "Thanks. What of the worker?")
        request = engine.request(chat, window=3000, reserve=0, shares=short, previous=request)
        used = {part.name: part.used for part in request.parts}
        assert 500 < used["history"] <= 700


def test_calibration_keeps_the_safe_side() -> None:
    with opened() as engine:
        chat = long_talk(engine)
        request = engine.request(chat, window=2000, reserve=0)
        learned = request.calibrate(SimpleNamespace(prompt_tokens=round(request.tokens * 1.2), total=9))
        tighter = engine.request(chat, window=2000, reserve=0, calibration=learned)
        assert tighter.limit == int(2000 / (max(learned.ratios) * 1.03))
        assert tighter.notes[0].code == "calibration"
        assert engine.request(chat, window=2000, reserve=0, previous=tighter).limit == tighter.limit
        with pytest.raises(InvalidInput, match="Keep a calibration for each"):
            engine.request(chat, calibration=learned, provider="anthropic")
    known = TokenCalibration(counter="claude-4.8-estimate", provider="anthropic")
    assert float(known.factor(0.2)) == 1.2
    for _ in range(3):
        known = known.learn(1000, {"input_tokens": 300, "cache_read_input_tokens": 500})
    assert float(known.factor(0.2)) == 1.2, "too few to trust less than the margin"
    known = known.learn(1000, 800)
    assert float(known.factor(0.2)) == pytest.approx(0.8 * 1.03)
    assert float(known.learn(1, 1000).factor(0.2)) == 4
    with pytest.raises(InvalidInput, match="names no tokens"):
        known.learn(10, {"total": 3})


def test_an_account_for_people() -> None:
    with opened(ids=seeded_ids()) as engine:
        chat = long_talk(engine, 12)
        chat.append("user", "When does the redis cache expire?")
        request = engine.request(chat, system="Be terse.", window=1000, reserve=100)
        shown = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<group>", request.explain())
        assert shown == snapshot("""\
Request  898 of 900 tokens (100%), by o200k
Window   1,000, of which 100 are reserved for the answer
For      openai

PART           offered  used  in  cut  out
system               7     7                █
priming              3     3                █
recalled            76    76   3            ███
spare              189   189   2            ███████                   the next turns may replace it
history            612   612   6         7  ████████████████████████  older groups don't fit
current group       11    11   1            █

Left out: 3 groups of the conversation.
OUT: over_budget (1), it doesn't fit the window
  <group>
OUT: stopped (2), older than the first that doesn't fit
  <group>
  <group>
""")


def test_a_request_refuses_what_it_cannot_be() -> None:
    with opened() as engine, germane.open(":memory:", agent="b", embedder=None) as other:
        chat = engine.conversation("chat")
        for wrong in (
            {"provider": "plain"},
            {"provider": "gpt"},
            {"reserve": 300_000},
            {"tools": "weather"},
        ):
            with pytest.raises(InvalidInput):
                engine.request(chat, **wrong)
        with pytest.raises(InvalidInput, match="Use the engine that it came from"):
            other.request(chat)
        with pytest.raises(MessageNotFound):
            engine.request(chat, pins=["nobody"])
        assert engine.request(chat).messages == []


def test_an_awaited_conversation_is_taken_as_well() -> None:
    async def main() -> list[dict[str, Any]]:
        async with await germane.aio.open(":memory:") as engine:
            chat = await engine.conversation("chat")
            await chat.append("user", "Hello")
            return (await engine.request(chat)).messages

    assert asyncio.run(main()) == [{"role": "user", "content": "Hello"}]


class Shortener:
    """A summarizer that says one thing, or fails."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer

    def summarize(self, text: str, tokens: int) -> str:
        assert "Question 0" in text
        assert tokens > 0
        if self.answer is None:
            raise RuntimeError
        return self.answer


@pytest.mark.parametrize(
    ("answer", "by"),
    [
        ("They talked of parsers.", "summarizer"),
        (None, "extractive"),
        ("Please provide the text.", "extractive"),
    ],
)
def test_a_compaction_is_proposed_done_and_undone(answer: str | None, by: str) -> None:
    with opened(summarizer=Shortener(answer)) as engine:
        chat = long_talk(engine, 20)
        before = chat.messages()
        proposed = engine.compaction(chat, budget=800)
        assert chat.messages() == before
        assert proposed.by == by
        assert proposed.after <= 800 < proposed.before
        assert [draft.content for draft in proposed.drafts] == [
            "Our redis cache expires after ninety seconds."
        ]
        engine.remember_many(proposed.drafts)
        engine.compact(chat, proposed)
        assert len(chat.groups()) == 21 - len(proposed.hides)
        assert chat.messages()[0].role == "user"
        assert chat.anchors() == {"summary": proposed.summary}
        assert proposed.summary in engine.request(chat).serialised() or "\n" in proposed.summary
        engine.uncompact(chat, proposed)
        assert chat.messages() == before
        assert chat.anchors() == {}


def test_what_a_compaction_leaves_begins_with_the_user() -> None:
    with opened() as engine:
        chat = engine.conversation("chat")
        for number in range(12):
            # Every other group was named by the caller and begins with an answer.
            if number % 2 == 0:
                chat.append("user", f"Question {number}: {WORDS}", group=f"g{number}")
            chat.append("assistant", f"Answer {number}: {WORDS}", group=f"g{number}")
        for budget in range(150, 400, 10):
            proposed = engine.compaction(chat, budget=budget)
            left = [group for group in chat.groups() if group.id not in proposed.hides]
            assert len(left) == 2 or left[0].messages[0].role == "user"


def test_tool_output_is_cut_before_anything_is_hidden() -> None:
    with opened() as engine:
        chat = engine.conversation("chat")
        for number in range(5):
            chat.append("user", f"Look at file {number}")
            chat.append("assistant", tool_calls=[{"id": f"c{number}", "name": "read"}])
            chat.append("tool", tool_results=[{"call_id": f"c{number}", "content": WORDS * 200}])
        proposed = engine.compaction(chat, budget=4000)
        assert proposed.hides == ()
        assert proposed.cut == 4
        assert proposed.after <= 4000 < proposed.before
        with pytest.raises(BudgetTooSmall):
            engine.compaction(chat, budget=100)


def test_a_context_tells_what_stays_of_it() -> None:
    with opened() as engine:
        for text in ("The parser is written in Rust.", "The worker is written in Go."):
            engine.remember(text, kind="fact")
        before = engine.assemble("parser worker", budget=500)
        assert before.reused_prefix(before) == before.tokens
        assert before.reused_prefix(None) == 0
        engine.remember("The parser and the worker fail on Fridays.", kind="episode")
        after = engine.assemble("parser worker", budget=500)
        assert 0 < after.reused_prefix(before) < after.tokens

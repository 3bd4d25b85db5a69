"""Nothing hidden, removed, of the current session or of another user stands in a context, at any budget."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Engine
from germane.errors import BudgetTooSmall
from germane.testing.fakes import FixedClock, HashEmbedder
from support.examples import examples

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WORDS = ["redis", "cache", "postgres", "deploy", "password", "latency", "the", "it"]
SESSIONS = ["one", "two", "three"]
CHANGES = ["none", "none", "none", "hide", "remove", "purge"]

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
message = st.tuples(st.sampled_from(["alice", "bob", ""]), st.sampled_from(SESSIONS), text)


def written(engine: Engine, number: int, session: str, words: str, change: str) -> tuple[str, bool]:
    """A mark that only this message has, and whether it may be quoted."""
    mark = f"mark{number}x"
    conversation = engine.conversation(session)
    group = conversation.append("user", f"{words} {mark}").group
    assert group is not None
    if change == "hide":
        conversation.hide(group)
    elif change == "remove":
        conversation.remove(group)
    elif change == "purge":
        conversation.purge(group, confirm=True)
    return mark, change == "none"


@settings(max_examples=examples(60), deadline=None)
@given(
    messages=st.lists(st.tuples(message, st.sampled_from(CHANGES)), max_size=14),
    memories=st.lists(text, max_size=4),
    question=text,
    current=st.sampled_from(SESSIONS),
    budget=st.integers(0, 400),
    embeds=st.booleans(),
)
def test_a_context_quotes_only_what_may_be_quoted(
    messages: list[tuple[tuple[str, str, str], str]],
    memories: list[str],
    question: str,
    current: str,
    budget: int,
    embeds: bool,
) -> None:
    embedder = HashEmbedder() if embeds else None
    with germane.open(":memory:", agent="ada", clock=FixedClock(NOW), embedder=embedder) as engine:
        users = {name: engine.for_user(name) for name in ("alice", "bob")}
        for each in memories:
            users["alice"].remember(each)
        without = users["alice"].assemble(question, budget=budget).text
        allowed: list[str] = []
        for number, ((user, session, words), change) in enumerate(messages):
            mark, is_there = written(users.get(user, engine), number, session, words, change)
            if is_there and user != "bob" and (user, session) != ("alice", current):
                allowed.append(mark)
        alice = users["alice"]
        conversation = alice.conversation(current)
        try:
            context = alice.assemble(question, budget=budget, conversation=conversation)
        except BudgetTooSmall:
            return
        assert context.tokens <= budget
        assert context.tokens == engine.counter.count(context.text)
        recalled = alice.recall(question, conversations=True)
        quoted = [name for name in context.text.split() if name.startswith("mark")]
        assert set(quoted) <= set(allowed)
        assert len(quoted) == len(set(quoted))
        assert not [one for one in recalled if one.kind == "message" and one.memory.agent == "user:bob:ada"]
        if not allowed and not any(user == "alice" for (user, *_), _ in messages):
            assert context.text == without

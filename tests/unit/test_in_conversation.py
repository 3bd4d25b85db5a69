"""What stands in the running conversation is left out; containment is the memory's, never the message's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import germane
from germane import Engine, InvalidInput, Reason

LONG = (
    "We chose Postgres with pgvector because one database is one backup, one monitor and one upgrade; "
    "Redis would add a process that somebody has to wake up for at night."
)


def found(memory: str, conversation: str, *, language: str = "english") -> bool:
    """Whether the memory is left out of a context since the conversation contains it."""
    with germane.open(":memory:", embedder=None, language=language) as engine:
        engine.remember(memory)
        (entry,) = engine.assemble(plan="relevance", conversation=conversation).trace.entries
        assert entry.reason in (None, Reason.IN_CONVERSATION)
        return entry.reason is Reason.IN_CONVERSATION


def test_a_memory_that_is_in_the_messages_is_found_and_a_short_message_hides_no_long_one() -> None:
    assert found("Redis runs on port 6379.", "so as I said, redis is running on port 6379 here")
    assert not found(LONG, "use redis")
    assert not found(LONG, "use postgres and redis")
    assert found(LONG, f"Earlier you wrote: {LONG} Right?")
    assert not found("Redis runs on port 6379.", "redis runs somewhere")


def test_words_scattered_over_a_long_talk_say_nothing_together() -> None:
    lines = [
        "The port is closed.",
        "",
        *["Nothing of note."] * 5,
        "Redis runs.",
        *["Still nothing."] * 5,
        "6379",
    ]
    assert not found("Redis runs on port 6379.", "\n".join(lines))
    assert found("Redis runs on port 6379.", "Redis runs\n\non port\n6379")


def test_what_says_nothing_is_never_contained() -> None:
    assert not found("It is what it is.", "It is what it is.")
    assert not found("Redis", "")


def test_in_another_language_every_word_counts_alike() -> None:
    memory = "Der Zwischenspeicher liegt auf Port 6379"
    assert found(memory, "Also: der Zwischenspeicher liegt auf Port 6379.", language="german")
    assert not found(memory, "Port 6379", language="german")


@pytest.fixture(name="engine")
def _engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("Redis runs on port 6379.", kind="fact")
        engine.remember("Redis was chosen for sessions.", kind="decision")
        engine.remember("Never flush Redis.", kind="constraint", metadata={"action": "block"})
        yield engine


@pytest.mark.parametrize("plan", ["layered", "relevance"])
def test_it_is_left_out_of_a_context_with_its_reason(engine: Engine, plan: str) -> None:
    conversation = "user: what about Redis?\nassistant: Redis runs on port 6379.\nuser: Never flush Redis!"
    context = engine.assemble("Redis", plan=plan, conversation=conversation)
    assert [entry.label for entry in context.trace.excluded if entry.reason is Reason.IN_CONVERSATION] == [
        "Redis runs on port 6379."
    ]
    assert "sessions" in context.text
    # What must stand there does.
    assert ("**Never** flush Redis" in context.text) == (plan == "layered")


def test_a_pinned_memory_stays(engine: Engine) -> None:
    pin = next(memory.id for memory in engine.memories() if memory.kind == "fact")
    context = engine.assemble("Redis", conversation="Redis runs on port 6379.", pins=[pin])
    assert "6379" in context.text


def test_a_conversation_of_the_engine_will_do(engine: Engine) -> None:
    talk = engine.conversation("s")
    talk.append("user", "Where is Redis?")
    talk.append("assistant", "Redis runs on port 6379.")
    context = engine.assemble("Redis", conversation=talk)
    assert "6379" not in context.text
    talk.undo()
    assert "6379" in engine.assemble("Redis", conversation=talk).text


def test_what_is_no_conversation_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match=r"is list; pass a text or germane\.Conversation"):
        engine.assemble("Redis", conversation=["Redis"])  # type: ignore[arg-type]  # Wrong on purpose.

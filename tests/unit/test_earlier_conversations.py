"""What was written in one conversation is found in the next, by contexts, requests and recalls."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Engine
from germane.errors import InvalidInput
from germane.testing.fakes import FixedClock, seeded_ids

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
QUESTION = "What does my cat Felix eat?"
CAT = "My cat Felix eats salmon and nothing else."
HEADING = "## From Earlier Conversations"


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", agent="ada", clock=FixedClock(NOW), ids=seeded_ids()) as opened:
        yield opened


def logged(engine: Engine, *texts: str, session: str = "monday") -> germane.Conversation:
    """A conversation of user messages, one a minute."""
    conversation = engine.conversation(session)
    for number, text in enumerate(texts):
        conversation.append("user", text, created_at=NOW - timedelta(days=3, minutes=-number))
    return conversation


def test_a_context_quotes_an_earlier_session_by_default(engine: Engine) -> None:
    logged(engine, CAT)
    context = engine.assemble(QUESTION)
    assert context.text == f"{HEADING}\n### 18 November 2026 (monday)\n- user: {CAT}"
    (item,) = context.items
    assert (item.memory.kind, item.section, item.memory.is_message) == ("message", "conversations", True)
    assert engine.assemble(QUESTION, conversations=False).text == ""


def test_the_current_session_is_never_quoted(engine: Engine) -> None:
    logged(engine, CAT)
    current = logged(engine, "Felix the cat needs to eat, my vet says.", QUESTION, session="tuesday")
    for context in (
        engine.assemble(QUESTION, conversation=current),
        engine.refresh(None, QUESTION, conversation=current).context,
    ):
        assert CAT in context.text
        assert "vet" not in context.text
    request = engine.request(current, memory="layered", window=4000, reserve=500)
    assert str(request.messages).count("my vet says") == 1
    assert CAT in str(request.messages)


def test_a_question_that_was_appended_is_no_answer_to_itself(engine: Engine) -> None:
    logged(engine, CAT)
    logged(engine, QUESTION, session="tuesday")
    assert QUESTION not in engine.assemble(QUESTION).text


def test_recall_finds_messages_with_an_argument(engine: Engine) -> None:
    logged(engine, CAT)
    engine.remember("The cat door is blue.")
    assert [one.kind for one in engine.recall("cat")] == ["note"]
    found = engine.recall(QUESTION, conversations=True)
    best = found[0]
    assert (best.kind, best.content, best.id) == (
        "message",
        f"user: {CAT}",
        engine.conversation("monday").messages()[0].id,
    )
    assert best.score > 0
    assert best.memory.metadata["session"] == "monday"


@pytest.mark.parametrize("way", ["hide", "remove", "remove_message", "undo", "purge"])
def test_what_left_a_conversation_is_not_quoted(engine: Engine, way: str) -> None:
    conversation = logged(engine, "Felix the cat likes to eat in the garden.", CAT)
    last = conversation.groups()[-1]
    assert CAT in engine.assemble(QUESTION).text
    if way in ("hide", "remove"):
        getattr(conversation, way)(last)
    elif way == "remove_message":
        conversation.remove_message(last.messages[0].id)
    elif way == "undo":
        conversation.undo()
    else:
        conversation.purge(last, confirm=True)
    assert "salmon" not in engine.assemble(QUESTION).text
    assert "garden" in engine.assemble(QUESTION).text
    if way == "hide":
        conversation.unhide(last)
        assert CAT in engine.assemble(QUESTION).text


def test_a_message_that_a_memory_contains_is_not_doubled(engine: Engine) -> None:
    logged(engine, CAT, "Felix the cat eats at noon.")
    engine.remember(f"{CAT} He is seven years old.")
    context = engine.assemble(QUESTION)
    assert context.text.count("salmon") == 1
    assert "at noon" in context.text
    assert [one.reason for one in context.trace.excluded if "salmon" in one.label] == ["duplicate"]


def test_a_fact_that_was_learned_from_a_message_is_not_shown_beside_it(engine: Engine) -> None:
    conversation = logged(engine, "My cat Felix only eats salmon from Norway. What else could he eat?")
    (learned,) = engine.learn_from(conversation).decisions
    context = engine.assemble(QUESTION)
    assert context.text.count("salmon") == 1
    assert "What else" in context.text
    assert [one.reason for one in context.trace.excluded if "Felix" in one.label] == ["duplicate"]
    # Without the message the fact stands, and so does one that is pinned.
    assert "salmon" in engine.assemble(QUESTION, conversations=False).text
    assert learned.memory is not None
    assert engine.assemble(QUESTION, pins=[learned.memory]).text.count("salmon") == 2


def test_a_message_of_a_superseded_fact_is_not_shown(engine: Engine) -> None:
    for session, text in (
        ("monday", "I live in Kyoto."),
        ("tuesday", "No, I moved to Osaka."),
    ):
        conversation = logged(engine, text, "My bicycle needs a new chain.", session=session)
        engine.learn_from(conversation)
    logged(engine, "We live above a bakery in Kyoto that sells the best melon bread.", session="friday")
    context = engine.assemble("Where do I live?")
    assert "Osaka" in context.text
    assert "I live in Kyoto." not in context.text
    assert [one.reason for one in context.trace.excluded if "I live in Kyoto." in one.label] == ["outdated"]
    assert "the fact that it states was superseded since" in context.explain()
    # Nothing says that this one isn't true any more.
    assert "bakery" in context.text


def test_a_question_about_a_time_shows_the_fact_of_then(engine: Engine) -> None:
    engine.learn_from(logged(engine, "I live in Kyoto."))
    engine.learn_from(logged(engine, "No, I moved to Osaka.", session="tuesday"))
    shown = engine.assemble("Where did I live on 18 November 2026?").text
    assert "The user lives in Kyoto. [valid until 2026-11-18]" in shown


def test_a_fact_about_somebody_needs_more_than_the_name_beside_messages(engine: Engine) -> None:
    chat = engine.conversation("monday")
    for text in ("I own a red boat.", "The cat of Anna eats salmon every evening."):
        chat.append({"role": "user", "name": "Anna", "content": text})
        engine.learn_from(chat)
    question = "What does the cat of Anna eat every evening?"
    assert "red boat" in engine.assemble("What does Anna own?", conversations=False).text
    assert "red boat" in engine.assemble(question, conversations=False).text
    shown = engine.assemble(question)
    assert "salmon" in shown.text
    assert "red boat" not in "".join(one.text for one in shown.items if not one.memory.is_message)


def test_users_of_an_agent_see_the_agents_conversations_and_their_own(engine: Engine) -> None:
    logged(engine, "The agent's cat eats tuna.")
    alice, bob = engine.for_user("alice"), engine.for_user("bob")
    logged(alice, CAT)
    assert "tuna" in alice.assemble(QUESTION).text
    assert "salmon" in alice.assemble(QUESTION).text
    assert "salmon" not in bob.assemble(QUESTION).text
    assert "salmon" not in engine.assemble(QUESTION).text


def test_a_filter_that_messages_cannot_pass_leaves_them_out(engine: Engine) -> None:
    logged(engine, CAT)
    assert engine.assemble(QUESTION, tags=["pets"]).text == ""
    assert engine.assemble(QUESTION, kinds=["fact"]).text == ""
    assert CAT in engine.assemble(QUESTION, kinds=["message"]).text
    assert engine.assemble(QUESTION, since=NOW - timedelta(days=1)).text == ""
    assert CAT in engine.assemble(QUESTION, since=NOW - timedelta(days=5)).text


def test_what_was_recalled_is_never_quoted_again(engine: Engine) -> None:
    conversation = engine.conversation("monday")
    conversation.append("user", f"<recalled-from-memory>\n{CAT}\n</recalled-from-memory>\nFelix, the cat?")
    assert "salmon" not in engine.assemble(QUESTION).text


def test_the_ledger_repeats_a_context_with_messages(engine: Engine) -> None:
    conversation = logged(engine, CAT)
    engine.remember("Felix is the name of a cat.")
    engine.assemble(QUESTION, record=True)
    ledger = engine.ledger()
    (recorded,) = ledger.list()
    assert [one.is_message for one in recorded.included] == [False, True]
    assert ledger.replay(recorded.id).same
    conversation.append("user", "Felix eats tuna as well.")
    again = ledger.replay(recorded.id)
    assert not again.same
    assert "the log has changed since" in again.why[0]
    conversation.purge(confirm=True)
    assert ledger.show(recorded.id).sha256 is None


def test_feedback_counts_memories_and_no_messages(engine: Engine) -> None:
    logged(engine, CAT)
    memory = engine.remember("Felix the cat is seven years old.")
    context = engine.assemble(QUESTION)
    observed = engine.observe(context, "Felix the cat is seven years old and eats salmon.")
    assert observed.used == (memory.id,)
    assert engine.feedback(context, used=[memory]).counted == 0
    message = next(item.memory for item in context.items if item.memory.is_message)
    with pytest.raises(InvalidInput, match="isn't among"):
        engine.feedback(context, used=[message])


def test_a_context_with_messages_is_cut_like_any(engine: Engine) -> None:
    logged(engine, CAT, *(f"Felix the cat ate {number} fish." for number in range(20)))
    context = engine.assemble(QUESTION)
    smaller = engine.refresh(context, "Go on.", free_tokens=60)
    assert smaller.reason == "pressure"
    assert smaller.context.tokens <= 60
    assert CAT in smaller.context.text


def test_a_transcript_of_people_names_its_speakers(engine: Engine) -> None:
    logged(engine, "Ana: Felix eats salmon.", "Ben: The cat? Really?", "Ana: Yes, my cat Felix.")
    assert "- Ana: Felix eats salmon." in engine.assemble(QUESTION).text


def test_messages_with_names_are_shown_and_found_by_them(engine: Engine) -> None:
    texts = [
        ("Ana", "Felix eats salmon."),
        ("Ben", "Mine eats nothing else than tuna."),
        ("Ana", "Fine, salmon it is."),
    ]
    engine.conversation("people").extend(
        [{"role": "user", "name": name, "content": text} for name, text in texts], provider="openai"
    )
    assert "- Ana: Felix eats salmon." in engine.assemble(QUESTION).text
    context = engine.assemble("What does the cat of Ben eat?")
    scores = {item.memory.metadata["speaker"]: item.score for item in context.items}
    assert scores["Ben"] > scores["Ana"]


@pytest.mark.parametrize("name", ["system", "Assistant", "", "a\nb", "x: y"])
def test_a_name_that_could_pass_for_something_else_is_none(engine: Engine, name: str) -> None:
    chat = engine.conversation("odd")
    chat.extend([{"role": "user", "name": name, "content": CAT}], provider="openai")
    assert [message.author for message in chat.messages()] == ["user"]
    assert f"- user: {CAT}" in engine.assemble(QUESTION).text


def test_a_question_on_the_last_time_shows_the_latest_messages(engine: Engine) -> None:
    logged(engine, CAT, "The invoices are due on Friday.")
    assert "invoices" in engine.assemble("What did we talk about last time?").text
    assert engine.assemble("Who won the chess final in Oslo?").text == ""


def test_another_plan_shows_messages_in_a_section_of_its_own(engine: Engine) -> None:
    logged(engine, CAT)
    engine.remember("Felix is a cat.")
    section = germane.Section(
        name="conversations", heading="## Log", kinds=("message",), share=germane.Share(weight=1)
    )
    facts = germane.Section(name="facts", heading="## Facts", kinds=("fact",), share=germane.Share(weight=1))
    shown = engine.assemble(QUESTION, plan=germane.Plan(name="own", sections=(facts, section)))
    assert "## Log" in shown.text
    assert CAT in shown.text
    assert "Log" not in engine.assemble(QUESTION, plan=germane.Plan(name="own", sections=(facts,))).text

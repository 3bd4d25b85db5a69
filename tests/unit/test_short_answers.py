"""Short answers, read with the question before them, and corrections of what was just stated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

import germane
from germane import Memory, Message, Trust
from germane.conversation import TextPart
from germane.extractors import Decision, Proposal, ProposalOutcome, Quote, RuleExtractor
from germane.testing.fakes import FixedClock

AT = datetime(2026, 3, 6, 12, tzinfo=UTC)


def chat(*texts: str) -> list[Message]:
    """Messages of the user and the assistant in turn, the user's first."""
    return [
        Message(
            role="assistant" if place % 2 else "user",  # type: ignore[arg-type]  # As text.
            parts=(TextPart(text=text),),
            id=f"m{place}",
            seq=place + 1,
            created_at=AT,
        )
        for place, text in enumerate(texts)
    ]


def proposed(*texts: str) -> list[str]:
    return [each.content for each in RuleExtractor().extract(chat(*texts))]


@pytest.mark.parametrize(
    ("question", "answer", "content"),
    [
        ("Where do you live?", "Osaka.", "The user lives in Osaka."),
        ("Sure! What's your name?", "Ada Lovelace", "The user's name is Ada Lovelace."),
        ("What do you do for a living?", "restoring violins", "The user's job: restoring violins."),
        ("When is your birthday?", "29 February", "The user's birthday is 29 February."),
        ("How often do you swim?", "twice a week", "The user swims twice a week."),
        ("When do you get up?", "6:30", "The user gets up at 6:30."),
        ("Any allergies?", "yes, sesame and kiwi", "The user's allergies: sesame and kiwi."),
        ("Any allergies for Mira?", "sesame!!", "Mira: allergies: sesame."),
        ("Which phone do you use?", "a Fairphone 6", "Phone that the user uses: a Fairphone 6."),
        ("What breed is your dog?", "lurcher", "The user's dog: breed is lurcher."),
        ("Do you smoke?", "no", "The user doesn't smoke."),
        ("Do you play an instrument?", "Yes, the oboe.", "The user plays an instrument: the oboe."),
        ("Are you vegetarian?", "yep", "The user is vegetarian."),
        ("Policy number?", "HH-204-881", "Policy number: HH-204-881."),
        ("How long have you worked there?", "since 2012", "The user has worked there: since 2012."),
        ("Where did you study?", "Bergen", "The user did study in Bergen."),
    ],
)
def test_a_short_answer_states_what_the_question_names(question: str, answer: str, content: str) -> None:
    assert proposed("hi", question, answer) == [content]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where do you live?", "why do you ask?"),
        ("Where do you live?", "not sure yet"),
        ("Where do you live?", "let me check"),
        ("Where do you live?", "Haha, on the moon 😂"),
        ("Do you smoke?", "maybe"),
        ("What's the capital of Bhutan?", "Thimphu"),
        ("Does it live in Africa?", "no, in Asia"),
        ("Where would you live if you could?", "Rome"),
        ("What do you want to cook?", "beans"),
        ("Shall I add a row?", "yes, two"),
        ("How old is she?", "seven"),
        ("Noted.", "Osaka"),
    ],
)
def test_nothing_is_made_of_an_answer_that_states_no_fact(question: str, answer: str) -> None:
    assert proposed("hi", question, answer) == []


def test_a_pronoun_of_the_question_is_whoever_was_mentioned() -> None:
    assert (
        proposed("My dog is called Rex.", "How old is he?", "seven")[-1] == "The user's dog's age is seven."
    )


def test_only_the_first_sentence_after_the_question_answers_it() -> None:
    assert proposed("hi", "Where do you live?", "Osaka. Two of them.") == ["The user lives in Osaka."]


def test_an_answer_is_the_word_of_the_user_and_quotes_both_messages() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        run = engine.learn_from(chat("hi", "Where do you live?", "Osaka."))
        (memory,) = engine.memories()
    assert [quote.message for quote in run.decisions[0].proposal.quotes] == ["m1", "m2"]
    assert memory.trust is Trust.OWNER


class Fixed:
    """Proposes one text that quotes the question and the answer."""

    name = "fixed"

    def __init__(self, content: str, question: str, answer: str) -> None:
        quotes = (Quote(message="m1", text=question), Quote(message="m2", text=answer))
        self.proposal = Proposal(content=content, quotes=quotes)

    def extract(self, messages: Sequence[Message], known: Sequence[Memory] = ()) -> Sequence[Proposal]:
        del messages, known
        return (self.proposal,)


def decided(content: str, question: str, answer: str) -> Decision:
    with germane.open(":memory:", embedder=None) as engine:
        (decision,) = engine.learn_from(
            chat("hi", question, answer), extractor=Fixed(content, question, answer)
        ).decisions
    return decision


@pytest.mark.parametrize(
    ("content", "question", "answer"),
    [
        ("The user is allergic to nuts.", "Are you allergic to nuts?", "let me check"),
        ("The user is allergic to nuts.", "Are you allergic to nuts?", "no"),
        ("The user isn't allergic to nuts.", "Are you allergic to nuts?", "yes"),
        ("The user is allergic to nuts.", "Are you allergic to nuts?", "why do you ask?"),
        ("The user lives in Rome.", "Where do you live?", "Osaka"),
    ],
)
def test_a_model_may_not_take_the_question_for_the_answer(content: str, question: str, answer: str) -> None:
    assert decided(content, question, answer).outcome is ProposalOutcome.REFUSED


@pytest.mark.parametrize(
    ("content", "question", "answer"),
    [
        ("The user is allergic to nuts.", "Are you allergic to nuts?", "Yes"),
        ("The user isn't allergic to nuts.", "Are you allergic to nuts?", "nope"),
        ("The user lives in Osaka.", "Where do you live?", "Osaka"),
    ],
)
def test_a_model_may_read_an_answer_with_its_question(content: str, question: str, answer: str) -> None:
    assert decided(content, question, answer).outcome is ProposalOutcome.NEW


@pytest.mark.parametrize(
    ("stated", "then", "content"),
    [
        ("The grant deadline is November 6.", "They pushed it back to November 20", "November 20"),
        ("Our retro is on Tuesday.", "since the reorg it's Thursday", "Thursday"),
        ("The rent is 850 euros.", "it's 910 now", "910"),
    ],
)
def test_a_change_of_it_revises_what_was_stated_last(stated: str, then: str, content: str) -> None:
    clock = FixedClock(AT)
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        run = engine.learn_from(chat(stated, "Noted.", then))
        assert [str(each.outcome) for each in run.decisions] == ["new", "revised"]
        (memory,) = engine.memories()
        assert content in memory.content
        assert memory.version == 2


def test_a_correction_also_finds_what_the_assistant_repeated() -> None:
    found = proposed(
        "Put the plumber down for 8", "Done: plumber on Wednesday at 8.", "no wait, it's Thursday"
    )
    assert found == ["Plumber on Thursday at 8."]

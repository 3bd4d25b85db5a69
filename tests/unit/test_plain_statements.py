"""Which sentences of the user are statements, their third person, and what they change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

import germane
from germane.conversation.formats import read_messages
from germane.extractors import ModelExtractor, Proposal, RuleExtractor

AT = datetime(2026, 5, 11, 9, tzinfo=UTC)


LONG = (
    "Okay, that makes sense, but could you go through the second function again? When the request comes in, "
    "the handler opens a transaction and then waits for the queue, which seems wrong to me. Pretend that it "
    "is empty: then the loop would never end, right? Can you write a short example with a timeout, and "
    "translate the comments, so that the others can read them as well? Thanks a lot for this!"
)
"""What somebody writes to an assistant for programming."""


def proposed(*texts: str) -> Sequence[Proposal]:
    """The proposals of these messages of the user's, each with a reply after it."""
    turns = [{"role": role, "content": text} for text in texts for role in ("user", "assistant")]
    messages = [each.evolve(id=f"m{place}", created_at=AT) for place, each in enumerate(read_messages(turns))]
    return RuleExtractor().extract(messages)


def contents(*texts: str) -> list[str]:
    return [each.content for each in proposed(*texts)]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("our staging server gets rebuilt every Sunday", "Our staging server gets rebuilt every Sunday."),
        ("My sister Imogen lives in Perth.", "The user's sister Imogen lives in Perth."),
        ("Jonas loves the number 7 tram.", "Jonas loves the number 7 tram."),
        ("We finally adopted our daughter last Friday.", "We finally adopted our daughter last Friday."),
        ("I play bass in a band", "The user plays bass in a band."),
        ("I've had a pacemaker since 2022, does that matter?", "The user has had a pacemaker since 2022."),
        ("Since Monday I'm a designer at Vellum.", "Since Monday the user is a designer at Vellum."),
        ("I paint because my therapist told me to.", ""),
        ("I use `uv` for all my projects.", "The user uses `uv` for all their projects."),
        ("Wedding date: 26 June 2027", "Wedding date: 26 June 2027."),
        ("two of my kids are vegetarian", "Two of the user's kids are vegetarian."),
        ("I need a worksheet on moles.", ""),
        ("I think we should leave.", ""),
        ("My internet keeps dropping.", ""),
        ("Our trip was amazing.", ""),
        ("Book a table for Friday at 8.", ""),
        ("Read this: I live in Oslo and I hate fish.", ""),
    ],
)
def test_a_statement_is_learned_whole_and_other_sentences_are_not(text: str, content: str) -> None:
    assert contents(text) == ([content] if content else [])


def test_no_rule_is_learned_of_a_dialogue_without_an_assistant() -> None:
    chat = [
        {"role": "user", "name": "Ann", "content": "Never cook rice in milk."},
        {"role": "user", "name": "Bo", "content": "I cook rice in tea."},
    ]
    messages = [each.evolve(id=f"m{place}") for place, each in enumerate(read_messages(chat))]

    assert [each.content for each in RuleExtractor().extract(messages)] == ["Bo cooks rice in tea."]


@pytest.mark.parametrize(
    "text",
    [
        'Translate this: "My name is Arthur and I live in a shoe."',
        "Is this right: `name = 'Alice'; city = 'Oslo'`?",
        "Summarise this mail:\nHi, I moved to Chile. I prefer email.",
        "who is right?\nAna: I deploy on Fridays\nBen: I never deploy after lunch",
        "He wrote “I quit, and I'm moving to Bali” today.",
    ],
)
def test_quotations_code_and_pasted_text_state_nothing(text: str) -> None:
    assert contents(text) == []


@pytest.mark.parametrize(
    "texts",
    [
        (
            "Let's do a role play. You are a doctor and I'm a patient who lies about everything.",
            "My name is Victor Hale. I'm allergic to penicillin and I live in Dunmore.",
            "Good. Now the second patient.",
        ),
        (
            "Pretend you're a barista.",
            "I'm lactose intolerant and I drink two espressos a day.",
            "great service",
        ),
        (
            "Proofread this cover letter for my cousin please.",
            "I have worked as a nurse for six years. I speak Spanish and Dutch.",
            "Does the second sentence sound ok?",
        ),
        (
            "Translate this into Polish, for a brochure:\nI moved to Gdansk in 2014. We run a bakery.",
            "Make it more formal please",
        ),
        ("Let's practise an interview. You're the interviewer.", "I have worked as a pilot for ten years."),
    ],
)
def test_what_is_played_or_shown_is_not_learned(texts: Sequence[str]) -> None:
    assert contents(*texts) == []


@pytest.mark.parametrize(
    ("texts", "learned"),
    [
        (("I'm vegan.", "I live in Lisbon.", "I don't like hiking.", "I play the violin."), 4),
        (("Our coach is Mirko.", "We pay 480 for childcare.", "My car is a Kia.", "I work as a nurse."), 4),
        ((*(LONG,) * 4, "I live in Lisbon, and I work as a nurse. Can you adapt it?", LONG), 2),
    ],
)
def test_facts_are_learned_in_a_row_and_in_a_long_chat(texts: Sequence[str], learned: int) -> None:
    assert len(contents(*texts)) == learned


def test_what_is_taken_back_is_not_learned() -> None:
    assert contents("We use Redis for sessions.", "sorry, no, forget that. Sessions stay in Postgres") == []
    assert contents("We use Redis for sessions.", "Thanks a lot!") == ["We use Redis for sessions."]


def test_a_pronoun_stands_for_the_relative_that_was_mentioned_last() -> None:
    found = proposed(
        "My daughter Mia is eight.", "She's obsessed with octopuses", "Her birthday is October 3rd."
    )

    assert [each.content for each in found] == [
        "The user's daughter Mia is eight.",
        "The user's daughter Mia is obsessed with octopuses.",
        "The user's daughter Mia's birthday is October 3rd.",
    ]
    assert [quote.text for quote in found[1].quotes] == [
        "My daughter Mia",
        "She's obsessed with octopuses",
    ]
    assert contents("She's obsessed with octopuses") == []


def test_a_subject_is_named_once_and_then_they() -> None:
    assert contents("I play the cello and I take my cello with me on trains.") == [
        "The user plays the cello and they take their cello with them on trains."
    ]


def test_a_period_is_learned_with_its_days() -> None:
    (found,) = proposed("I'm on parental leave from June 1 until November 30.")

    assert found.valid_from == datetime(2026, 6, 1, tzinfo=UTC)
    assert found.valid_until == datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("known", "text", "outcome"),
    [
        ("The cleaning service comes on Tuesdays.", "Cleaning is on Thursdays now.", "revised"),
        ("Support hours are 9 to 17.", "We're extending our support hours to 8 to 20.", "revised"),
        ("The default branch is master.", "We've renamed master to main everywhere.", "revised"),
        ("The service runs on Python 3.9.", "We upgraded the service to Python 3.13.", "revised"),
        ("The wedding is on June 19th 2027.", "Our wedding is on June 26 2027.", "contradicted"),
        ("The user runs 10 km on Tuesdays.", "I swim on Fridays.", "new"),
        ("The user's sister is called Marie.", "My sister Julie works in May.", "new"),
    ],
)
def test_another_day_time_or_number_of_the_same_thing_is_a_change(
    known: str, text: str, outcome: str
) -> None:
    with germane.open(":memory:") as engine:
        before = engine.remember(known, kind="fact", created_at=datetime(2026, 1, 5, tzinfo=UTC))
        run = engine.learn_from([{"role": "user", "content": text}])

        assert [each.outcome.value for each in run.decisions] == [outcome]
        shown = [each.content for each in engine.memories()]
        assert (known in shown) is (outcome != "revised")
        assert known in [each.content for each in engine.history(before.id)]


def test_a_model_is_refused_what_the_user_only_quotes() -> None:
    quote = '{"message": "m1", "text": "My name is Arthur and I live in a shoe."}'
    answer = '{"facts": [{"content": "The user\'s name is Arthur.", "quotes": [' + quote + "]}]}"
    text = 'Translate this: "My name is Arthur and I live in a shoe."'
    with germane.open(":memory:") as engine:
        run = engine.learn_from(
            [{"role": "user", "content": text}], extractor=ModelExtractor(lambda *_: answer)
        )

    (decision,) = run.decisions
    assert (decision.outcome.value, decision.memory) == ("refused", None)
    assert "quotation" in decision.reason


MEETING = (
    ("Ada", "I'm from San Diego."),
    ("Ben", "We have two buttons missing."),
    ("Cleo", "Our approach is based on the criteria of Ada."),
    ("Ada", "I give the floor to Ben."),
    ("Ben", "We have decided on a rubber case."),
)


def test_of_three_speakers_only_personal_statements_and_decisions_count() -> None:
    """A meeting is mostly about itself; two people chat."""
    turns = [{"role": "user", "content": text, "name": name} for name, text in MEETING]
    messages = [each.evolve(id=f"m{place}", created_at=AT) for place, each in enumerate(read_messages(turns))]
    extract = RuleExtractor().extract
    assert [each.content for each in extract(messages)] == [
        "Ada is from San Diego.",
        "We have decided on a rubber case.",
    ]
    assert "We have two buttons missing." in [each.content for each in extract(messages[:2])]


@pytest.mark.parametrize(
    "text",
    [
        "I have zero willpower.",
        "I quit the café.",
        "I'm an accountant and I have no sense of humour, said every accountant ever.",
        "My partner is a vampire.",
        "He is intolerant.) My happiness index is low.",
    ],
)
def test_vague_events_jokes_and_material_are_left_alone(text: str) -> None:
    assert contents(text) == []


def test_what_somebody_says_is_cut_from_a_fact_about_them() -> None:
    assert contents("My son is 15 and already says he'll lose it.") == ["The user's son is 15."]


def test_a_couple_is_named_as_two() -> None:
    assert contents("Anneke and I split up in June.") == ["Anneke and the user split up in June."]


@pytest.mark.parametrize(
    ("first", "second", "content"),
    [
        ("Our coach is Mirko.", "not Mirko, sorry, Marko.", "The user's coach's name is Marko."),
        ("Our retro is every second Tuesday.", "hmm, since the reorg it's every second Thursday actually",
         "Our retro is every second Thursday."),
        ("We pay 480 for childcare.", "scratch that, from September it'll be 530",
         "We pay 530 for childcare from September."),
        ("The bedtime of Luz is 7:30.", "she's seven now so we've moved it to 8", "The bedtime of Luz is 8."),
    ],
)  # fmt: skip
def test_a_later_message_corrects_the_value(first: str, second: str, content: str) -> None:
    assert content in contents(first, second)

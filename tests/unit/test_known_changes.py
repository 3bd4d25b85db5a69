"""Changes of a known memory by a pronoun, or by its former value: what they revise, and what not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane.extractors import Decision, LearningRun, ModelExtractor, ProposalOutcome
from germane.testing.fakes import FixedClock


def answered(known: str, recalled: str, text: str) -> tuple[Decision, ...]:
    """The decisions on what the user says after the assistant has named what is known."""
    clock = FixedClock(datetime(2026, 10, 12, tzinfo=UTC), timedelta(seconds=1))
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        engine.remember(known)
        messages = [{"role": "assistant", "content": recalled}, {"role": "user", "content": text}]
        return engine.learn_from(messages).decisions


def learned(known: Sequence[str], *texts: str) -> LearningRun:
    """The run of a dialogue about what is known, with an answer of the assistant after each message."""
    clock = FixedClock(datetime(2026, 10, 12, tzinfo=UTC), timedelta(seconds=1))
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        for each in known:
            engine.remember(each)
        messages = [
            message
            for text in texts
            for message in ({"role": "user", "content": text}, {"role": "assistant", "content": "I see."})
        ]
        return engine.learn_from(messages)


@pytest.mark.parametrize(
    ("known", "texts", "content"),
    [
        ("The team's standup is at 9:00.", ("people are late for standup", "it's at 9:45 now"),
         "The team's standup is at 9:45."),
        ("The weekly report is due on Friday.", ("When's the weekly report due?", "No, it's Thursday."),
         "The weekly report is due on Thursday."),
        ("The user's rent is 820 euros.", ("a letter about the rent", "it goes up to 870 from June"),
         "The user's rent is 870 euros."),
        ("The user's car is a Volvo V50.", ("tyres for my car", "oh I sold that! it's a Kia Niro now"),
         "The user's car is a Kia Niro."),
        ("The user owns a boat called Petrel.", ("a note about Petrel", "We sold her in April"),
         "The user sold Petrel in April."),
        ("The user takes omeprazole every morning.", ("omeprazole and grapefruit?", "I stopped taking it"),
         "The user stopped taking the omeprazole every morning."),
        ("The team has lunch at Thai Corner.", ("lunch?", "thai corner closed, we go to Bella Napoli now"),
         "The team has lunch at Bella Napoli."),
        ("The service uses MySQL 5.7.", ("can the service do that?", "we're on 8.4 since Sunday"),
         "The service uses MySQL 8.4."),
        ("The user's office is in Leeds.", ("lunch near the office", "no, we moved to York in July"),
         "The user's office is in York."),
        ("The user goes to the gym three times a week.", ("the gym is tiring", "I'm down to twice a week"),
         "The user goes to the gym twice a week."),
    ],
)  # fmt: skip
def test_a_pronoun_changes_the_one_memory_that_it_can_mean(
    known: str, texts: Sequence[str], content: str
) -> None:
    run = learned([known], *texts)
    (revised,) = [each for each in run.decisions if each.outcome is ProposalOutcome.REVISED]
    assert revised.proposal.content == content
    assert revised.proposal.quotes[-1].text in texts[-1]


@pytest.mark.parametrize(
    ("known", "recalled", "text", "content"),
    [
        ("The user's dentist is Dr. Moreau.", "With Dr. Moreau?", "no, I switched to Dr. Sato, she's closer",
         "The user's dentist is Dr. Sato."),
        ("Production runs in eu-west-1.", "In eu-west-1.", "not any more. Migrated to eu-central-1",
         "Production runs in eu-central-1."),
        ("The user's email is jo@larkmail.example.", "To jo@larkmail.example?",
         "I don't use that any more, my email is jo@tern.example", "The user's email is jo@tern.example."),
        ("The user's hotel in Rome is the Artemide.", "The Artemide?", "we changed it to the Quirinale",
         "The user's hotel in Rome is the Quirinale."),
        ("The user's son plays the trumpet.", "The trumpet?", "he gave up the trumpet, it's drums now",
         "The user's son plays the drums."),
        ("The user's house has 10 solar panels.", "For 10 panels?", "We've got 14 now, the roofer added four",
         "The user's house has 14 solar panels."),
        ("The user's rent is 850 euros.", "With a rent of 850?", "rent went up to 910 this month",
         "The user's rent is 910 euros."),
        ("The user's phone number is 555 0143.", "Is it 555 0143?", "My number changed btw, it's 555 0199",
         "The user's phone number is 555 0199."),
    ],
)  # fmt: skip
def test_what_the_assistant_has_just_named_is_revised_by_another_value(
    known: str, recalled: str, text: str, content: str
) -> None:
    (revised,) = [each for each in answered(known, recalled, text) if each.outcome is ProposalOutcome.REVISED]
    assert revised.proposal.content == content


@pytest.mark.parametrize(
    ("known", "recalled", "text"),
    [
        ("The user's dentist is Dr. Moreau.", "With Dr. Moreau?", "no, with Dr. Sato this time"),
        ("The user's boss is Tom.", "Shall I tell Tom?", "my sister moved to Kiel"),
        ("The user goes to the sauna on Fridays.", "Friday as usual?", "no, Saturday, Bo has moved"),
        ("The user's rent is 850 euros.", "With a rent of 850?", "prices went up to 910"),
        ("The user's sister works at Acme.", "At Acme?", "I moved to Globex in May"),
    ],
)
def test_another_value_beside_what_the_assistant_named_revises_nothing(
    known: str, recalled: str, text: str
) -> None:
    assert not [each for each in answered(known, recalled, text) if each.outcome is ProposalOutcome.REVISED]


@pytest.mark.parametrize(
    ("known", "texts"),
    [
        (["The standup is at 9:00."], ("how long is the standup?", "it's at 9:45 tomorrow")),
        (["The standup is at 9:00."], ("standup notes", "my dentist is next door, it's at 11:00 now")),
        (["The standup is at 9:00.", "The standup of the interns is at 9:15."],
         ("people are late for standup", "it's at 9:45 now")),
        (["The user has yoga on Wednesdays."], ("yoga was hard", "it's Monday already, I'm sore")),
        (["The meeting is in room Turing."], ("who's in the meeting", "It's Ada, Grace and Alan now")),
        (["The user's sister works at Bosch."], ("my sister visits", "I moved to Siemens in May")),
        (["The user has two cats."], ("the cats are hungry", "we sold it last month")),
        (["The user owns a boat called Petrel."], ("the Petrel leaks", "if we sold it we'd be rich")),
        (["The user owns a boat called Petrel."], ("the Petrel leaks", "my brother thinks we sold it")),
        (["The user met Anna in Rome."], ("a card for Anna", "it's in Oslo now")),
        (["The company has 40 employees."], ("a company party", "there are 12 of us now in the car")),
        (["The standup is at 9:00."], ("what's for lunch?", "it's at 9:45 now")),
        (["The user lives in Bonn."], ("Anna lives in Kiel.",)),
        (["Anna lives in Kiel."], ("I live in Bonn.",)),
    ],
)  # fmt: skip
def test_what_may_mean_something_else_changes_nothing(known: Sequence[str], texts: Sequence[str]) -> None:
    run = learned(known, *texts)
    assert [each for each in run.decisions if each.outcome is ProposalOutcome.REVISED] == []


def test_another_time_of_day_is_not_the_same_statement() -> None:
    run = learned(["The user's standup is at 9:00."], "My standup is at 9:45.")
    (decided,) = run.decisions
    assert decided.outcome in (ProposalOutcome.REVISED, ProposalOutcome.CONTRADICTED)


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ("The team's standup is at 9:45.", "revised"),
        ("The team's standup is at 10:15.", "refused"),
        ("The team's standup is at 9:00.", "refused"),
        ("The team's standup was cancelled at 9:45.", "refused"),
    ],
)
def test_a_model_may_add_only_what_is_quoted_to_the_memory_that_it_replaces(
    content: str, outcome: str
) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember("The team's standup is at 9:00.")
        fact = (
            f'{{"content": "{content}", "replaces": "k1", '
            '"quotes": [{"message": "m1", "text": "it\'s at 9:45 now"}]}'
        )
        extractor = ModelExtractor(lambda _request, _tokens: f'{{"facts": [{fact}]}}', name="mine")
        run = engine.learn_from(
            [{"role": "user", "content": "People are late for standup, it's at 9:45 now"}],
            extractor=extractor,
        )
        assert [each.outcome.value for each in run.decisions] == [outcome]


def test_a_pronoun_inside_of_a_sentence_stands_for_whom_the_dialogue_mentioned() -> None:
    run = learned([], "a gift for my sister?", "office stuff, she's moved on to a new firm, Novo")
    (found,) = run.decisions
    assert found.proposal.content == "The user's sister has moved on to a new firm, Novo."
    assert [quote.text for quote in found.proposal.quotes] == [
        "my sister",
        "office stuff, she's moved on to a new firm, Novo",
    ]

"""Whether the words of a turn choose the strategy that it needs; the sample is labelled by hand."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import germane
from germane import WorkingSet

OPEN = {
    "conversational": """
        ok, thanks!
        yes
        go on
        And what about Spain?
        Can you make it shorter?
        I meant the other one.
        What did you just say?
        hello there
        Try again without the flag.
        The test still fails with the same error.
        Now rename it to fetch_rows.
        Why does it print None?
        it's on line 42
        TypeError: 'NoneType' object is not subscriptable. What now?
        Undo that.
        Wait, that was the previous version.
        no, the second one
        Run the tests again please
        Fix the error.
        Hey, did you see the output above?
        Which of those was the fastest?
        Could you repeat the last answer in German?
    """,
    "strategic": """
        Should we use Redis for caching?
        What did we decide about the database?
        What are the pros and cons of event sourcing?
        Plan the migration to Postgres for next quarter.
        Which architecture fits a multi-tenant product?
        Compare Kafka and RabbitMQ for our long-term needs.
        What are our coding conventions?
        Why did we choose SQLite?
        Summarise the project's key decisions.
        What is our policy on third-party licences?
        Give me an overview of the roadmap.
        Is it worth rewriting the importer in Rust?
        What are the biggest risks of the launch?
        Recommend an approach to versioning the API.
        Which constraints must every design respect?
        Should I hire a second backend engineer?
        What are our priorities this year?
        List the options for authentication, with their trade-offs.
        What principles guide our error handling?
        Do we want to support Windows in the long run?
    """,
    "mixed": """
        What is the capital of France?
        Which database does billing use?
        Who is Tom's manager?
        How many customers do we have in Norway?
        Write a function that parses ISO dates from a CSV file.
        Where is the configuration of the cache stored?
        When does the certificate of the shop expire?
        Explain how the scheduler works in our system.
        Wie heißt die Hauptstadt von Frankreich?
        The deploy failed again; should we switch to blue-green?
        Draft an email to the supplier about the late invoice.
        What does the customer portal show after login?
        Translate the product page into Swedish.
        How long does the nightly backup take?
        Find papers about retrieval for dialogue.
        ok, so what's the plan?
        Name the servers in Frankfurt.
        Which team owns the payment service?
    """,
}
TEST = {
    "conversational": """
        thank you so much
        Could you explain that last part again?
        Hmm, no, I was talking about the blue one.
        What's the weather like right now?
        And the one after that?
        Still getting a segfault after your change.
        That didn't help.
        Can you show me the log?
        Same thing, but in Python.
        Sounds good, do it.
        Paris?
        I just pasted the stack trace, what is wrong?
    """,
    "strategic": """
        Where do we want the product to be in three years?
        Is microservices the right choice for a team of five?
        Outline a strategy for reducing cloud costs.
        What trade-offs did we accept when we dropped TimescaleDB?
        Which vendor should our company sign with?
        Set the goals for the second half of the year.
        What lessons did we learn from the outage in May?
        How should we structure the teams after the merger?
        Evaluate whether to open-source the client library.
        What are the guiding rules for naming tables?
        Build or buy a billing system?
        What matters most to our biggest customer?
    """,
    "mixed": """
        How do I rotate the API keys of the staging system?
        What port does the metrics exporter listen on?
        Generate test data for the orders table.
        Which customers complained about slow exports?
        Convert the report to PDF and send it to Maria.
        How old is the oldest open invoice?
        Does the parser accept comments in JSON?
        Thanks! Which option did we decide on, and why does it fail now?
        What does Anna prefer to drink?
        Count the words in the attached document.
        When was the last release?
        Ist der Server in Berlin erreichbar?
    """,
}


TURNS = {"recent": "conversational", "important": "strategic", "balanced": "mixed"}


@cache
def _working() -> WorkingSet:
    engine = germane.open(":memory:", embedder=None)
    working = engine.working_set()
    working.add(engine.remember("One memory."))
    return working


def _chosen(text: str) -> tuple[str, str]:
    """The strategy that a text chooses, and the reason given."""
    (note,) = [
        note for note in _working().assemble(text, strategy="smart").trace.notes if note.code == "smart"
    ]
    strategy, _, why = note.text.removeprefix("Ranked by the strategy ").partition(": ")
    return strategy, why


def _turn(text: str) -> str:
    return TURNS[_chosen(text)[0]]


def _wrong(sample: dict[str, str]) -> list[str]:
    labelled = [(line.strip(), turn) for turn, lines in sample.items() for line in lines.strip().splitlines()]
    return [text for text, turn in labelled if _turn(text) != turn]


def test_the_sample_that_the_words_were_chosen_by() -> None:
    assert _wrong(OPEN) == snapshot(["What principles guide our error handling?"])


def test_the_sample_that_was_used_for_a_first_look() -> None:
    assert _wrong(TEST) == snapshot(
        [
            "Same thing, but in Python.",
            "What matters most to our biggest customer?",
            "Thanks! Which option did we decide on, and why does it fail now?",
        ]
    )


@pytest.mark.parametrize(
    ("text", "strategy", "why"),
    [
        ("Fix the error.", "recent", '"fix", "error" spoke for a conversation'),
        ("Should we use Redis?", "important", '"should we" spoke for what lasts'),
        (
            "Is there a plan to fix it?",
            "balanced",
            '"fix" spoke for a conversation as much as "plan" for what lasts',
        ),
        ("And Spain?", "recent", '"and", "spain" spoke for a conversation'),
        ("Does it rain?", "recent", '"does", "it", "rain" spoke for a conversation'),
        ("How does that compute the sum?", "recent", '"that" spoke for a conversation'),
        ("What is the capital of France?", "balanced", "no word of the question spoke"),
        ("", "balanced", "no word of the question spoke"),
    ],
)
def test_it_says_which_words_decided(text: str, strategy: str, why: str) -> None:
    chosen, note = _chosen(text)
    assert chosen == strategy
    assert why in note


def test_punctuation_and_case_change_nothing() -> None:
    assert _turn("SHOULD WE?!") == _turn("should we") == "strategic"
    assert '"trade offs" spoke for what lasts' in _chosen("(trade-offs)")[1]
    assert _chosen("it doesn\u2019t work") == _chosen("It doesn't work")
    assert _turn("planet") == "conversational"  # Short; and no plan is in a planet.


@given(st.text())
def test_any_text_gets_an_answer_that_names_words_of_it(text: str) -> None:
    named = re.findall(r'"([^"]*)"', _chosen(text)[1])
    words = re.findall(r"\w+(?:'\w+)*", text.casefold().replace("\u2019", "'"))
    assert all(f" {cue} " in f" {' '.join(words)} " for cue in named)

"""Long memories are found by their passages, and shortened to those that answer the question."""

from __future__ import annotations

import gc
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import germane
from germane.testing.fakes import FixedClock

CLOCK = FixedClock(datetime(2026, 5, 1, tzinfo=UTC))
TOPICS = [
    "apples",
    "bridges",
    "candles",
    "dungeons",
    "engines",
    "feathers",
    "gardens",
    "harbours",
    "islands",
    "jungles",
    "kettles",
    "lanterns",
]
SENTENCES = [
    f"The part about {topic} is general, was written long ago and says little of use to anybody."
    for topic in TOPICS
]
LONG = " ".join(SENTENCES)
RECORD = "How the shop is run\n" + "\n".join(SENTENCES)
REPLY = "\n".join(
    [
        "Here is how to set it up.",
        "First install the package, and then write the configuration file that it reads at its start.",
        "```toml",
        "[server]",
        "port = 8443",
        "workers = 12",
        "```",
        *(f"Step {number}: check that {topic} are listed." for number, topic in enumerate(TOPICS, 1)),
        "If certificates expire, run the renewal by hand and restart the proxy in front of the server.",
        *(f"Later step {number}: compare {topic} with the list." for number, topic in enumerate(TOPICS, 1)),
    ]
)


def engine_with(*texts: str, **options: Any) -> germane.Engine:
    engine = germane.open(":memory:", agent="ada", clock=CLOCK, **options)
    for text in texts:
        engine.remember(text)
    return engine


@pytest.mark.parametrize("embedder", ["bundled", None])
@pytest.mark.parametrize("topic", TOPICS)
def test_a_small_budget_shows_the_passage_that_answers(topic: str, embedder: str | None) -> None:
    options = {} if embedder else {"embedder": None}
    with engine_with(LONG, **options) as engine:
        context = engine.assemble(f"What about {topic}?", budget=110)

    (item,) = context.items
    assert f"The part about {topic} is general" in context.text
    assert item.level == "excerpt"
    assert "…" in context.text
    assert context.tokens <= 110


def test_what_is_left_out_is_marked_and_expanded() -> None:
    with engine_with(LONG) as engine:
        context = engine.assemble("What about harbours?", budget=110)
        line = context.text.splitlines()[1]

        assert line.startswith("- … The part about")
        assert " …" in line.removeprefix("- …")
        assert engine.expand(context.items[0].memory.id) == LONG


def test_a_title_stands_before_the_passages() -> None:
    with engine_with(RECORD) as engine:
        lines = engine.assemble("What about harbours?", budget=120).text.splitlines()

    assert lines[1] == "- How the shop is run"
    assert lines[2].startswith("  … The part about")


def test_a_larger_budget_shows_every_passage_of_a_smaller_one() -> None:
    with engine_with(LONG) as engine:
        shown = [engine.assemble("What about islands?", budget=budget).text for budget in range(60, 320, 10)]

    for smaller, larger in pairwise(shown):
        assert {each for each in SENTENCES if each in smaller} <= {
            each for each in SENTENCES if each in larger
        }
    assert LONG in shown[-1]


def test_code_is_shown_whole_or_not_at_all() -> None:
    with engine_with(REPLY) as engine:
        for budget in range(60, 600, 20):
            text = engine.assemble(
                "Which port and how many workers does the server have?", budget=budget
            ).text
            assert ("port = 8443" in text) == ("workers = 12" in text)

        text = engine.assemble("What to do when certificates expire?", budget=130).text

    assert "run the renewal by hand" in text
    assert "Later step 12" not in text


def test_a_long_memory_is_found_by_one_passage() -> None:
    needle = " ".join(
        [*SENTENCES, "Rotate the signing keys of the payment gateway every ninety days.", *SENTENCES]
    )
    others = [
        f"The {name} gateway keeps its keys in a cupboard." for name in ("north", "south", "east", "west")
    ]
    with engine_with(needle, *others) as engine:
        found = engine.recall("How often are signing keys of the payment gateway rotated?", limit=1)

    assert [one.content for one in found] == [needle]


def test_an_earlier_query_changes_nothing() -> None:
    questions = [f"What about {topic}?" for topic in TOPICS]
    with engine_with(LONG, RECORD, REPLY) as engine:
        first = [engine.assemble(question, budget=200).text for question in questions]
        again = [engine.assemble(question, budget=200).text for question in reversed(questions)]
    with engine_with(LONG, RECORD, REPLY) as engine:
        alone = engine.assemble(questions[-1], budget=200).text

    assert first == again[::-1]
    assert first[-1] == alone


LINKS = "\n".join(f"- [Page {number}](https://example.org/pages/{number}/index.html)" for number in range(40))


def test_a_list_of_links_has_no_passages_and_is_found_by_its_words() -> None:
    with engine_with(LINKS, LONG) as engine:
        assert LINKS in [one.content for one in engine.recall("Which page is number 7?")]
        for budget in (60, 110, 4_000):
            assert engine.assemble("Which page is number 7, and what about kettles?", budget=budget).text


@pytest.mark.parametrize("mark", ["", "# Notes\n\n"])
def test_a_huge_text_is_looked_at_to_a_bound_and_marked_as_longer(mark: str) -> None:
    filler = "Entry of the log that says nothing of note. "
    before = f"{mark}{filler * ((65_536 - 200) // len(filler))}The lighthouse keeper is called Tove. "
    with engine_with(f"{before}{filler * 1_000}The cook is called Wendelin.") as engine:
        text = engine.assemble("Who is the lighthouse keeper?", budget=120).text
        beyond = engine.assemble("Who is called Wendelin?", budget=120).text

    assert "keeper is called Tove." in text
    assert "… (2026-05-01)" in text
    assert "Wendelin" not in beyond


def test_a_number_of_an_issue_stays_with_its_sentence() -> None:
    long = f"A change that {'says nothing of note, ' * 13}and then it ends."
    assert 315 < len(long) <= 320
    changes = "\n".join(f"- {long} #60{number}\n- {sentence}" for number, sentence in enumerate(SENTENCES))
    with engine_with(f"# Changes\n\n{changes}") as engine:
        for topic in TOPICS:
            text = engine.assemble(f"What about {topic}?", budget=110).text
            assert f"about {topic} is general" in text
            assert not re.search(r"…\s+#60", text)


TABLE = "\n".join(
    [
        "# Limits",
        "",
        *SENTENCES[:6],
        "",
        "| plan | limit |",
        "| --- | --- |",
        *(
            f"| plan {number} | {number * 100} requests for each minute of the month. It is fixed. |"
            for number in range(12)
        ),
        "",
        *SENTENCES[6:],
    ]
)


def test_a_row_of_a_table_is_never_cut() -> None:
    with engine_with(TABLE) as engine:
        for budget in range(50, 400, 10):
            text = engine.assemble("What is the limit of requests of plan 7?", budget=budget).text
            assert text.count("minute of the month.") == text.count("It is fixed.")


@pytest.mark.parametrize("embedder", ["bundled", None])
def test_the_passages_of_a_purged_memory_are_forgotten(embedder: str | None) -> None:
    options = {} if embedder else {"embedder": None}
    secret = f"The code word is zanzibar-{len(LONG)}. {LONG}"
    with engine_with(secret, **options) as engine:
        (found,) = engine.recall("What is the code word?")
        engine.assemble("What is the code word?", budget=110)
        engine.purge(found.id, confirm=True)
        del found
        gc.collect()
        left = [
            each
            for each in gc.get_objects()
            if isinstance(each, tuple) and any("zanzibar-" in part for part in each if type(part) is str)
        ]

    assert left == []


class SlowEmbedder:
    """An embedder that has to be waited for: it counts the texts that it embeds."""

    name, dimension = "slow", 4

    def __init__(self) -> None:
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return np.eye(4, dtype=np.float32)[[len(text) % 4 for text in texts]]


def test_a_slow_embedder_embeds_no_passages() -> None:
    embedder = SlowEmbedder()
    with engine_with(LONG, embedder=embedder) as engine:
        before = embedder.texts
        context = engine.assemble("What about kettles?", budget=110)

    assert "The part about kettles" in context.text
    assert embedder.texts - before <= 1


def test_sections_that_are_always_shown_begin_at_the_beginning() -> None:
    with germane.open(":memory:", agent="ada", clock=CLOCK) as engine:
        engine.remember("I am the assistant of a small shop. " + LONG, kind="identity")
        text = engine.assemble("What about lanterns?", budget=150).text

    assert "I am the assistant of a small shop." in text


def test_a_long_turn_that_shorter_ones_displace_is_explained() -> None:
    with germane.open(":memory:", agent="ada", clock=CLOCK) as engine:
        for speaker, text in [
            *(("User", f"Which part was on {topic}?") for topic in TOPICS),
            ("Assistant", LONG),
        ]:
            engine.remember(
                f"{speaker}: {text}", kind="note", scope="session:one", metadata={"speaker": speaker}
            )
        context = engine.assemble("Which part about harbours was written long ago?", budget=200)

    (note,) = [note.text for note in context.trace.notes if note.code == "worth_per_token"]
    assert note == (
        "Shorter turns with a lower score are whole in the place of 1 of more than 100 tokens: "
        "a turn counts by its score times (100 / tokens)^¼."
    )

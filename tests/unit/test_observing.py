"""observe: what an answer is found to draw on, how often that is right, and what feedback hears of it.

The sample is written by hand for this project: answers of an agent beside the memories that it was shown, and
which of them each answer draws on. The rule was made with one half; the other was held back, and judges it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.ranking import Impressions

SAMPLE = json.loads(Path(__file__).with_name("observed_answers.json").read_text(encoding="utf-8"))
TRIED, TEST = SAMPLE["tried"], SAMPLE["held"]


def judged(worlds: list[dict[str, Any]]) -> tuple[int, int, int]:
    """How many uses were found rightly, found wrongly, and missed."""
    right = wrong = missed = 0
    for world in worlds:
        with germane.open(":memory:", embedder=None) as engine:
            ids = [one.memory.id for one in engine.remember_many(world["memories"])]
            shown = Impressions(key="0" * 32, parts={each: {} for each in ids})
            for each in world["answers"]:
                used = {ids[place] for place in each["used"]}
                answer, question = each["answer"], each["question"]
                found = set(engine.observe(shown, answer, question=question, count=False).used)
                right += len(found & used)
                wrong += len(found - used)
                missed += len(used - found)
    return right, wrong, missed


def test_the_sample_is_as_large_as_the_documentation_says() -> None:
    assert [sum(len(world["answers"]) for world in worlds) for worlds in (TRIED, TEST)] == [30, 31]


def test_on_answers_that_it_was_made_with() -> None:
    assert judged(TRIED) == (28, 0, 2)


def test_on_answers_that_were_reserved() -> None:
    assert judged(TEST) == (28, 0, 2)


@pytest.fixture
def engine() -> germane.Engine:
    made = germane.open(":memory:", embedder=None)
    for text in (
        "Mara is allergic to peanuts and carries an injector.",
        "Mara's birthday is on 14 May.",
        "Jonas plays the cello.",
    ):
        made.remember(text, kind="fact")
    return made


def test_what_an_answer_draws_on_is_counted_once(engine: germane.Engine) -> None:
    context = engine.assemble("What about Mara?")
    allergic = next(item.memory for item in context.items if "peanuts" in item.memory.content)

    observed = engine.observe(context, "No peanuts: she is allergic.")
    again = engine.observe(context, "No peanuts: she is allergic.")

    assert observed.used == again.used == (allergic.id,)
    assert set(observed.scores) == {item.memory.id for item in context.items}
    assert all(0 <= score <= 1 for score in observed.scores.values())
    assert observed.feedback is not None
    assert again.feedback is not None
    assert (observed.feedback.counted, again.feedback.counted) == (1, 0)
    assert engine.get(allergic.id).access_count == 1


def test_a_recall_is_observed_as_a_context_is(engine: germane.Engine) -> None:
    found = engine.recall("Mara's birthday")
    observed = engine.observe(found, "It is on 14 May.")
    assert [engine.get(one).content for one in observed.used] == ["Mara's birthday is on 14 May."]


def test_what_says_nothing_counts_nothing(engine: germane.Engine) -> None:
    context = engine.assemble("What about Mara?")
    for answer in ("", "I am it.", "…"):
        observed = engine.observe(context, answer)
        assert (observed.used, observed.feedback) == ((), None)


def test_looking_without_counting_changes_nothing(engine: germane.Engine) -> None:
    context = engine.assemble("What about Mara?")
    observed = engine.observe(context, "She carries an injector, for peanuts.", count=False)
    assert len(observed.used) == 1
    assert observed.feedback is None
    assert all(memory.access_count == 0 for memory in engine.memories())


def test_a_recorded_assembly_is_observed_as_the_context_is(engine: germane.Engine) -> None:
    context = engine.assemble("What about Mara?", record=True)
    answer = "No peanuts: she is allergic."
    seen = engine.observe(context, answer, count=False)
    (assembly,) = engine.ledger().list()
    assert engine.observe(assembly, answer, count=False) == seen
    engine.purge(next(one for one in seen.scores if one not in seen.used), confirm=True)

    observed = engine.observe(assembly, answer)

    assert observed.used == seen.used
    assert len(observed.scores) == len(seen.scores) - 1
    assert [entry.used for entry in engine.ledger().show(assembly.id).entries].count(True) == 1
    # What the ledger says was shown, feedback takes as well, and knows that it was reported.
    assert engine.feedback(assembly, used=observed.used).counted == 0


def test_what_is_left_of_a_context_is_read_at_the_level_that_was_shown(engine: germane.Engine) -> None:
    long = "The summer party is on the roof. " + "Nobody knows more of it yet. " * 40 + "Bring a tambourine."
    memory = engine.remember(long, kind="fact")
    answer = "Bring your tambourine."
    shown = Impressions(key="0" * 32, parts={memory.id: {}})
    assert engine.observe(shown, answer, question="party?").used == (memory.id,)
    short = Impressions(key="1" * 32, parts={memory.id: {}}, levels={memory.id: germane.Level.MICRO})
    assert engine.observe(short, answer, question="party?").used == ()


def test_what_a_space_gave_is_found_and_left_to_the_space() -> None:
    with germane.open(":memory:", embedder=None) as engine, engine.space("team", create=True) as space:
        theirs = space.remember("The demo takes place in Lisbon.", kind="fact")
        context = engine.assemble("Where is the demo?", spaces=["team"])
        observed = engine.observe(context, "The demo takes place in Lisbon.")
        assert observed.used == (theirs.id,)
        assert observed.feedback is None
        assert space.get(theirs.id).access_count == 0


def test_what_is_no_context_is_refused(engine: germane.Engine) -> None:
    with pytest.raises(germane.InvalidInput):
        engine.observe(engine.assemble("Mara"), 5)  # type: ignore[arg-type] # That is what is proved.


def test_a_word_of_all_memories_tells_less_than_one_of_a_single_one() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        warm = engine.remember("The cache of the product page is warm.")
        cold = engine.remember("The cache of the search page is cold.")
        shown = Impressions(key="0" * 32, parts={warm.id: {}, cold.id: {}})
        observed = engine.observe(shown, "The product page has a warm cache.", count=False)
    assert observed.used == (warm.id,)
    assert observed.scores[warm.id] > observed.scores[cold.id]

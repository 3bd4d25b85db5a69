"""What `germane context refresh` prints, turn by turn, in text and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from commandline import Ran, fields, filled, id_of, run

_FIXED = ("--now", "2020-06-01")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    made = filled(tmp_path)
    run("remember", "The backup job writes to the second disk.", "--created-at", "2020-04-01", db=made)
    return made


def refreshed(text: str, *options: str, db: Path) -> Ran:
    ran = run("context", "refresh", text, *options, *_FIXED, db=db)
    assert ran.code == 0, ran.err
    return ran


def questions(db: Path) -> list[str]:
    return [one["question"] for one in run("ledger", "list", "--json", db=db).json()]


def test_turn_by_turn_only_a_new_context_is_printed(db: Path) -> None:
    first = refreshed("Should we use Postgres for storage?", db=db)
    assert "Taken for: decision" in first.err
    assert "Chose Postgres over ChromaDB" in first.out
    assert first.err.splitlines()[-2:] == snapshot(
        [
            "There was no context yet.",
            "98 of 8,000 tokens (o200k); memories: 4 in, 0 left out.",
        ]
    )
    for goes_on in ("And Postgres?", "ok, thanks", "Storage with Postgres, yes?"):
        unchanged = refreshed(goes_on, db=db)
        assert (unchanged.out, unchanged.err.startswith("The previous context is still current.")) == (
            "",
            True,
        )
    assert refreshed("Postgres?", db=db).err == snapshot(
        "The previous context is still current. Similarity 1.00.\n"
    )
    switched = refreshed("The backup job fails with an error.", db=db)
    assert "Taken for: debug" in switched.err
    assert "second disk" in switched.out
    assert "The activity has changed." in switched.err
    assert questions(db) == ["The backup job fails with an error.", "Should we use Postgres for storage?"]


def test_what_still_serves_is_printed_on_request(db: Path) -> None:
    first = refreshed("Should we use Postgres for storage?", db=db)
    assert refreshed("ok", "--always", db=db).out == first.out


def test_an_unknown_plan_is_refused_also_while_the_context_is_current(db: Path) -> None:
    refreshed("Should we use Postgres for storage?", db=db)
    ran = run("context", "refresh", "Postgres?", "--plan", "nonsense", *_FIXED, db=db)
    assert (ran.code, ran.out) == (2, "")
    assert "Unknown plan 'nonsense'" in ran.err


def test_the_context_to_hold_it_against_can_be_named(db: Path) -> None:
    refreshed("Should we use Postgres for storage?", db=db)
    refreshed("The backup job fails with an error.", db=db)
    ids = [one["id"] for one in run("ledger", "list", "--json", db=db).json()]
    assert refreshed("Postgres?", "--context", ids[1][-8:], db=db).out == ""
    assert refreshed("Postgres?", db=db).out != ""
    unknown = run("context", "refresh", "x", "--context", "ffffffff", db=db)
    assert (unknown.code, "ffffffff" in unknown.err) == (2, True)


def test_a_decision_point_and_a_budget_too_small(db: Path) -> None:
    refreshed("Which port has Postgres?", db=db)
    acting = refreshed("Which port has Postgres?", "--acting", db=db)
    assert run("ledger", "list", "--json", db=db).json()[0]["frame"] == "decision"
    assert "A decision is about to be acted on." in acting.err
    smaller = refreshed("Which port has Postgres?", "--acting", "--free-tokens", "90", db=db)
    assert "The previous context was larger than the free tokens." in smaller.err
    assert 0 < len(smaller.out) < len(acting.out)
    # It is the context from now on, as the next turn finds it.
    assert len(questions(db)) == 3
    assert run("ledger", "list", "--json", db=db).json()[0]["made_for"] == "cut"
    unchanged = refreshed("Which port has Postgres?", "--acting", "--free-tokens", "90", "--always", db=db)
    assert (unchanged.out, "still current" in unchanged.err) == (smaller.out, True)
    assert len(questions(db)) == 3
    cut = run("ledger", "list", "--json", db=db).json()[0]["id"]
    assert run("ledger", "replay", cut, db=db).code == 0


def test_it_is_documented_as_json(db: Path) -> None:
    first = run("context", "refresh", "Postgres?", "--json", *_FIXED, db=db).json()
    unchanged = run("context", "refresh", "And Postgres?", "--json", *_FIXED, db=db).json()
    assert list(first) == list(unchanged) == fields("`germane context refresh`")
    assert (first["needed"], first["reason"], first["similarity"]) == (True, "first", None)
    assert (unchanged["needed"], unchanged["reason"], unchanged["similarity"]) == (False, None, 1.0)
    assert unchanged["context"] == first["context"]


def test_the_plan_and_the_counter_of_the_context_before_stay(db: Path) -> None:
    run(
        *("assemble", "Postgres", "--plan", "layered_strict", "--counter", "words", "--record", *_FIXED),
        db=db,
    )
    run(
        "assemble",
        "Postgres",
        "--plan",
        "layered_strict",
        "--counter",
        "estimate",
        "--record",
        *_FIXED,
        db=db,
    )
    found = run("context", "refresh", "Where is the backup?", "--json", *_FIXED, db=db).json()
    assert (found["context"]["trace"]["plan"], found["context"]["trace"]["counter"]) == (
        "layered_strict",
        "estimate",
    )


def test_what_cant_be_made_again_is_reported_and_a_first_one_made(db: Path) -> None:
    refreshed("Should we use Postgres for storage?", db=db)
    run("memory", "purge", id_of(db, "Chose ChromaDB"), "--yes", db=db)
    ran = refreshed("Should we use Postgres for storage?", db=db)
    assert "Note: The previous context, " in ran.err
    assert "ChromaDB" not in ran.out


def test_what_a_working_set_showed_is_no_context_to_refresh(db: Path) -> None:
    memory = id_of(db, "Postgres port")
    run("working", "add", memory, db=db)
    assert run("working", "assemble", "--record", *_FIXED, db=db).code == 0
    (recorded,) = [one["id"] for one in run("ledger", "list", "--json", db=db).json()]
    named = run("context", "refresh", "Postgres?", "--context", recorded, db=db)
    assert (named.code, "working set" in named.err) == (2, True)
    # And the latest context is one that was assembled for a question.
    assert "There was no context yet." in refreshed("Postgres?", db=db).err


def test_without_a_store_there_is_nothing_to_refresh(tmp_path: Path) -> None:
    assert run("context", "refresh", "x", db=tmp_path / "none.db").code == 3

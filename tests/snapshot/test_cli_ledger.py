"""What `germane ledger` and `germane ledger metrics` print, in text and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from commandline import fields, filled, run

_FIXED = ("--now", "2020-06-01")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    made = filled(tmp_path)
    for query in ("ChromaDB", "Postgres"):
        assert run("assemble", query, "--record", *_FIXED, db=made).code == 0
    return made


def printed(*arguments: str, db: Path) -> Any:
    return run(*arguments, "--json", db=db).json()


def ids(db: Path) -> list[str]:
    return [one["id"] for one in printed("ledger", "list", db=db)]


def test_the_list_is_documented(db: Path) -> None:
    latest, first = printed("ledger", "list", db=db)
    assert list(latest) == fields("Assembly")
    assert (latest["question"], first["question"]) == ("Postgres", "ChromaDB")
    assert latest["entries"] is None
    assert (latest["plan"], latest["budget"], latest["counter"], latest["unkept"]) == snapshot(
        ("layered", 8000, "o200k", [])
    )


def test_one_assembly_is_documented(db: Path) -> None:
    found = printed("ledger", "show", ids(db)[0][-8:], db=db)
    assert list(found) == fields("Assembly")
    assert [list(entry) for entry in found["entries"]] == [fields("Recorded entry")] * len(found["entries"])
    assert "Question: Postgres" in run("ledger", "show", ids(db)[0], db=db).out


def test_a_difference_is_documented(db: Path) -> None:
    latest, first = ids(db)
    found = printed("ledger", "diff", first, latest, db=db)
    assert list(found) == fields("Difference of assemblies")
    assert [each["name"] for each in found["inputs"]] == ["question"]
    assert "Another text." in run("ledger", "diff", first, latest, db=db).out


def test_a_replay_is_documented_and_ends_with_what_it_found(db: Path) -> None:
    latest = ids(db)[0]
    found = run("ledger", "replay", latest, "--json", db=db)
    assert list(found.json()) == fields("Replay")
    assert (found.code, found.json()["same"]) == (0, True)
    assert run("ledger", "replay", latest, db=db).out.startswith("The same bytes, by their hash.")
    memory = printed("ledger", "show", latest, db=db)["entries"][0]["id"]
    run("memory", "purge", memory, "--yes", db=db)
    gone = run("ledger", "replay", latest, db=db)
    assert (gone.code, gone.out.startswith("The same bytes could not be reproduced.")) == (1, True)


def test_the_figures_are_documented(db: Path) -> None:
    found = printed("ledger", "metrics", "--now", "2020-06-02", db=db)
    assert list(found) == fields("Metrics")
    assert [list(day) for day in found["per_day"]] == [fields("Day")] * len(found["per_day"])
    assert {
        name: found[name] for name in ("since", "until", "assemblies", "with_feedback", "turns", "facts")
    } == (
        snapshot(
            {
                "since": "2020-05-03T00:00:00+00:00",
                "until": "2020-06-02T00:00:00+00:00",
                "assemblies": 2,
                "with_feedback": 0,
                "turns": 0,
                "facts": 1,
            }
        )
    )


def test_the_figures_as_a_table_and_as_a_picture(db: Path, tmp_path: Path) -> None:
    picture = tmp_path / "out.svg"
    ran = run("ledger", "metrics", "--now", "2020-06-02", "--plot", str(picture), db=db)
    assert ran.out.splitlines()[0] == snapshot(
        "From 2020-05-03 until 2020-06-02: 2 assemblies recorded, 0 fed back; 0 turns of the user."
    )
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    failed = run(
        "ledger", "metrics", "--now", "2020-06-02", "--plot", str(tmp_path / "no" / "out.svg"), db=db
    )
    assert failed.code != 0


def test_nothing_recorded_says_how_to(tmp_path: Path) -> None:
    db = filled(tmp_path)
    assert "--record" in run("ledger", "list", db=db).out
    assert run("ledger", "show", "12345678", db=db).code != 0

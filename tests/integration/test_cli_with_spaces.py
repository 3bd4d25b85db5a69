"""What spaces hold takes part in an agent's own question, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from commandline import run


@pytest.fixture
def db(tmp_path: Path) -> Path:
    db = tmp_path / "agent.db"
    run("remember", "Ben brings the projector to the demo.", "--agent", "ben", db=db)
    run("space", "create", "team", "--agent", "ben", db=db)
    run("remember", "The demo is on Tuesday.", "--space", "team", "--agent", "ben", db=db)
    talk = tmp_path / "talk.json"
    talk.write_text('[{"role": "user", "content": "What about the demo?"}]')
    run("chat", "import", str(talk), "--agent", "ben", db=db)
    return db


def test_recall_names_whose_each_memory_is(db: Path) -> None:
    call = ("recall", "When is the demo?", "--agent", "ben", "--json")
    alone, together = run(*call, db=db), run(*call, "--with-space", "team", db=db)
    assert _owners(alone.json()["results"]) == {"ben"}
    assert _owners(together.json()["results"]) == {"ben", "space:team"}


@pytest.mark.parametrize("command", ["assemble", "context project"])
def test_a_context_shows_what_the_space_holds(db: Path, command: str) -> None:
    call = (*command.split(), "demo", "--agent", "ben")
    assert "on Tuesday" not in run(*call, db=db).out
    assert "on Tuesday" in run(*call, "--with-space", "team", db=db).out


def test_explain_accounts_for_it(db: Path) -> None:
    ran = run("context", "explain", "demo", "--agent", "ben", "--with-space", "team", "--json", db=db)
    assert _agents(ran.json()["trace"]["entries"]) == {"ben", "space:team"}


def test_a_request_shows_it_beside_the_agents_own(db: Path) -> None:
    call = ("chat", "request", "talk", "--agent", "ben", "--memory", "layered", "--json")
    assert "on Tuesday" not in run(*call, db=db).out
    both = run(*call, "--with-space", "team", db=db).out
    assert "on Tuesday" in both
    assert "projector" in both


@pytest.mark.parametrize(
    ("command", "needle"),
    [
        (("recall", "demo", "--with-space", "other"), "other"),
        (("recall", "demo", "--with-space", "team", "--into", "now"), "Use one of them"),
        (("chat", "request", "talk", "--with-space", "team", "--space", "team"), "Use one of them"),
    ],
)
def test_what_cant_take_part_is_reported(db: Path, command: tuple[str, ...], needle: str) -> None:
    ran = run(*command, "--agent", "ben", db=db)
    assert ran.code != 0
    assert needle in ran.err


def _owners(results: list[dict[str, dict[str, str]]]) -> set[str]:
    return {one["memory"]["agent"] for one in results}


def _agents(entries: list[dict[str, str]]) -> set[str]:
    return {entry["agent"] for entry in entries}

"""germane memory list: pages of what is stored, and how many there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from commandline import fields, filled, printed, run


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return filled(tmp_path)


def test_json(db: Path) -> None:
    value = printed("memory", "list", "--limit", "2", db=db)

    assert list(value) == fields("`germane memory list`")
    assert list(value["memories"][0]) == fields("Memory")
    assert (value["total"], value["after"]) == (3, value["memories"][1]["id"])


def test_pages_follow_each_other_until_the_last(db: Path) -> None:
    first = run("memory", "list", "--limit", "2", "--order", "oldest", "--json", db=db).json()
    then = run(
        "memory", "list", "--limit", "1", "--order", "oldest", "--after", first["after"][-8:], "--json", db=db
    ).json()

    seen = [memory["created_at"][:7] for memory in (*first["memories"], *then["memories"])]
    assert seen == ["2020-01", "2020-02", "2020-03"]
    assert then["after"] is None


def test_text_names_the_rest(db: Path) -> None:
    ran = run("memory", "list", "--limit", "1", db=db)

    assert ran.out.splitlines()[0].split() == ["id", "kind", "scope", "made", "memory"]
    assert "日本語の検索" in ran.out
    assert ran.err.startswith("1 of 3 memories. Go on with --after ")


@pytest.mark.parametrize(
    ("options", "total"),
    [
        (("--kind", "fact"), 1),
        (("--tag", "storage"), 1),
        (("--subject", "storage"), 1),
        (("--scope", "task:T-42"), 0),
        (("--where", "source = 'nowhere'"), 0),
        (("--meta", "reasons=One database fewer."), 1),
        (("--meta", "reasons=One database fewer.", "--meta", "cost=5"), 0),
        (("--since", "2020-02-01"), 2),
        (("--until", "2020-02-01"), 1),
        (("--since", "Feb 2020"), 2),
        (("--until", "Feb 2020"), 1),
        (("--min-importance", "5"), 1),
        (("--pinned",), 0),
        (("--status", "forgotten"), 0),
        (("--status", "active", "--status", "superseded"), 3),
    ],
)
def test_filters(db: Path, options: tuple[str, ...], total: int) -> None:
    value = run("memory", "list", *options, "--json", db=db).json()

    assert (value["total"], len(value["memories"])) == (total, total)


def test_what_was_forgotten_is_found_to_be_restored(db: Path) -> None:
    wanted = run("memory", "list", "--kind", "fact", "--json", db=db).json()["memories"][0]["id"]
    run("memory", "forget", wanted, db=db)

    (found,) = run("memory", "list", "--status", "forgotten", "--json", db=db).json()["memories"]
    run("memory", "restore", found["id"][-8:], db=db)

    assert found["id"] == wanted
    assert run("memory", "list", "--status", "forgotten", "--json", db=db).json()["total"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--order", "latest"), "take one of newest, oldest, important"),
        (("--status", "gone"), "take one of active, superseded, archived, forgotten"),
        (("--limit", "0"), "take 1 or more"),
        (("--after", "ffffffff"), "No memory 'ffffffff'"),
    ],
)
def test_mistakes(db: Path, options: tuple[str, ...], message: str) -> None:
    ran = run("memory", "list", *options, db=db)

    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_a_pin_is_set_and_taken_away(db: Path) -> None:
    memory = run("memory", "list", "--kind", "fact", "--json", db=db).json()["memories"][0]["id"]

    assert run("memory", "revise", memory, "--pinned", "--json", db=db).json()["memory"]["pinned"] is True
    pinned = run("memory", "list", "--pinned", "--json", db=db).json()["memories"][0]["id"]
    assert run("memory", "revise", pinned, "--unpinned", "--json", db=db).json()["memory"]["pinned"] is False


@pytest.mark.parametrize("command", ["recall", "assemble"])
def test_an_agent_without_memories_is_named(db: Path, command: str) -> None:
    ran = run(command, "storage", "--agent", "nobody", db=db)

    assert "no memories yet. It is 'nobody'; --agent or GERMANE_AGENT names another." in ran.err


@pytest.mark.parametrize("command", ["recall", "assemble"])
def test_a_question_is_put_to_what_has_a_field(db: Path, command: str) -> None:
    one = run(command, "Postgres", "--meta", "reasons=One database fewer.", "--json", db=db).json()
    none = run(command, "Postgres", "--where", "source = 'nowhere'", "--json", db=db).json()

    found = one["results"] if command == "recall" else one["items"]
    assert [each["memory"]["kind"] if command == "recall" else each["section"] for each in found] == [
        "decision" if command == "recall" else "decisions"
    ]
    assert not (none["results"] if command == "recall" else none["items"])

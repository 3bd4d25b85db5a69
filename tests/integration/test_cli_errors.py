"""An error is printed in one line, or as one object, with an exit code that tells whose fault it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from commandline import filled, run


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all that must not change it."""
    return filled(tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize(
    ("arguments", "type_", "says"),
    [
        (("remember", "   "), "InvalidInput", "empty"),
        (("remember", "x", "--kind", "wish"), "UnknownKind", "Unknown kind 'wish'"),
        (("remember", "x", "--importance", "11"), "InvalidInput", "0 to 10"),
        (("remember", "x", "--importance", "nan"), "InvalidInput", "0 to 10"),
        (("remember", "x", "--meta", "nothing"), "InvalidInput", "KEY=VALUE"),
        (("remember", "x", "--created-at", "soon"), "InvalidInput", "ISO 8601"),
        (("recall", "x", "--since", "32.13."), "InvalidInput", "since='32.13.' names no time"),
        (("recall", "x", "--limit", "0"), "InvalidInput", "limit=0"),
        (("recall", "x", "--limit", "many"), "UsageError", "--limit"),
        (("recall", "x", "--tag", "a::b"), "InvalidInput", "a::b"),
        (("recall",), "UsageError", "QUERY"),
        (("recall", "x", "--wrong"), "UsageError", "--wrong"),
        (("demo", "--budgets", "500,-1"), "InvalidInput", "numbers from 500 to"),
        (("teleport",), "UsageError", "teleport"),
        (("assemble", "x", "--budget", "-1"), "InvalidInput", "budget=-1"),
        (("assemble", "x", "--plan", "none"), "InvalidInput", "layered"),
        (("assemble", "x", "--frame", "none"), "InvalidInput", "decision"),
        (("assemble", "x", "--counter", "none"), "InvalidInput", "o200k"),
        (("assemble", "x", "--pin", "00000000"), "NotFound", "00000000"),
        (("memory", "revise", "01234567-0123-7123-8123-0123456789ab", "x"), "NotFound", "01234567"),
        (("eval", "run", "nowhere.json"), "UnreadableSource", "nowhere.json"),
        (("eval", "run", "nowhere.json", "--budgets", "few"), "InvalidInput", "--budgets"),
        (("demo", "--project", "nowhere"), "InvalidInput", "nowhere"),
    ],
)
def test_a_mistake_is_one_line_or_one_object(
    store: Path, arguments: tuple[str, ...], type_: str, says: str
) -> None:
    ran, as_json = run(*arguments, db=store), run(*arguments, "--json", db=store)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("germane: ")
    assert ran.err.count("\n") == 1
    assert says in ran.err
    assert (as_json.code, as_json.err) == (2, "")
    assert as_json.json()["error"]["type"] == type_
    assert says in as_json.json()["error"]["message"]


_LONG = "x" * 5000


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("recall", "x", "--since", "0001-01-01T00:00+14:00"), 2),
        (("recall", "x", "--until", "9999-12-31T23:59-12:00"), 2),
        (("remember", "x", "--created-at", "0001-01-01T00:00+14:00"), 2),
        (("ledger", "metrics", "--now", "0001-01-01"), 2),
        (("ledger", "metrics", "--since", "0001-01-01"), 2),
        (("ledger", "list", "--since", "0001-01-01T00:00+14:00"), 2),
        (("remember", "x", "--meta", "k=" + "[" * 300_000), 2),
        (("remember", "x", "--meta", "k=" + "[" * 200 + "]" * 200), 2),
        (("remember", "x", "--importance", "1e400"), 2),
        (("remember", "x\udcff"), 2),
        (("recall", "\udcff"), 2),
        (("recall", "x", "--limit", str(2**63)), 2),
        (("memory", "list", "--limit", str(2**63)), 2),
        (("memory", "list", "--order", "latest"), 2),
        (("assemble", "x", "--budget", str(2**63)), 2),
        (("assemble", "x", "--frames", _LONG), 2),
        (("assemble", "x", "--conversation", "a" * 300), 2),
        (("recall", "x", "--db", _LONG), 2),
        (("remember", "x", "--db", _LONG), 2),
        (("remember", "x", "--db", "a" * 300), 2),
        (("remember", "x", "--db", "a\0b"), 2),
        (("recall", "x", "--db", "a\0b"), 2),
        (("remember", "x", "--db", "postgresql://["), 2),
        (("db", "migrate", "--db", _LONG), 2),
        (("import", "a" * 300), 2),
        (("import", _LONG), 2),
        (("export", "--out", ""), 2),
        (("export", "--out", "/"), 2),
        (("context", "project", "--root", _LONG), 2),
        (("context", "project", "--task", "T-1", "--now", "0001-01-01"), 0),
    ],
)
def test_odd_arguments_end_in_one_line_too(store: Path, arguments: tuple[str, ...], code: int) -> None:
    ran = run(*arguments, db=store)

    assert ran.code == code
    if code:
        assert ran.out == ""
        assert ran.err.startswith("germane: ")
        assert ran.err.count("\n") == 1


def test_an_error_carries_what_a_program_may_act_on(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    run("remember", "Never do it.", "--kind", "constraint", "--meta", "action=block", db=db)

    error = run("assemble", "x", "--budget", "1", "--json", db=db).json()["error"]

    assert error["type"] == "BudgetTooSmall"
    assert error["needed"] - error["budget"] == error["shortfall"] > 0
    assert len(error["required"]) == 1


@pytest.mark.parametrize(
    "command",
    ["recall x", "assemble x", "context explain x", "memory show 0123", "memory history 0123", "export",
     "db stats", "db doctor", "memory forget 0123", "memory restore 0123", "memory purge 0123 --yes",
     "memory revise 0123 x"],
)  # fmt: skip
def test_a_command_that_needs_a_store_never_makes_one(tmp_path: Path, command: str) -> None:
    db = tmp_path / "none.db"

    ran = run(*command.split(), db=db)

    assert (ran.code, ran.out) == (3, "")
    assert "There is no store at" in ran.err
    assert not db.exists()


@pytest.mark.parametrize("command", ["recall x --limit 0", "assemble x --budget -5", "recall x --now soon"])
def test_a_wrong_argument_is_named_before_a_missing_store(tmp_path: Path, command: str) -> None:
    ran = run(*command.split(), db=tmp_path / "none.db")

    assert ran.code == 2
    assert command.split()[2].lstrip("-") in ran.err


def test_an_import_of_nothing_makes_no_store(tmp_path: Path) -> None:
    ran = run("import", "nowhere.md", db=tmp_path / "none.db")

    assert ran.code == 1
    assert "there is no such file" in ran.err
    assert not (tmp_path / "none.db").exists()


def test_an_option_without_its_value_points_to_the_help_of_its_command(tmp_path: Path) -> None:
    ran = run("mcp", "--print-config", db=tmp_path / "none.db")
    short = run("memory", "list", "--limit", db=tmp_path / "none.db")

    assert "germane mcp --help" in ran.err
    assert short.code == 2


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    db = tmp_path / "a.db"
    db.write_text("Dear diary, " * 100, encoding="utf-8")

    for arguments in (("recall", "x"), ("remember", "x")):
        ran = run(*arguments, "--json", db=db)
        assert ran.code == 3
        assert ran.json()["error"]["type"] == "StoreUnavailable"
    assert db.read_text(encoding="utf-8").startswith("Dear diary")


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    assert run("remember", "x", db=tmp_path).code == 3
    assert run("remember", "x", db=tmp_path / "no" / "such" / "a.db").code == 3


def test_an_export_that_cannot_be_written_is_refused(store: Path, tmp_path: Path) -> None:
    ran = run("export", "--out", str(tmp_path / "no" / "all.jsonl"), "--json", db=store)

    assert ran.code == 2
    message = json.loads(ran.out)["error"]["message"]
    assert message.endswith(f"can't be written: the folder {tmp_path / 'no'} doesn't exist.")


def test_input_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    ran = run("remember", "-", stdin=b"caf\xe9", db=tmp_path / "a.db")

    assert ran.code == 2
    assert "UTF-8" in ran.err


def test_an_error_cannot_steer_a_terminal(store: Path) -> None:
    ran = run("memory", "show", "\x1b[31mred", db=store)

    assert "\x1b" not in ran.err


def test_an_error_cuts_a_long_value(store: Path) -> None:
    several = (("memory", "show"), ("memory", "list", "--limit"), ("db", "status"), ("recall", "x", "--meta"))
    for arguments in several:
        ran = run(*arguments, "x" * 5000, db=store)

        assert ran.code == 2
        assert len(ran.err) < 400


def test_nothing_is_stored_where_one_of_several_transcripts_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text('[{"role": "user", "content": "Hi"}]')
    ran = run("chat", "import", str(tmp_path / "talk.json"), str(tmp_path / "none"), db=tmp_path / "a.db")

    assert ran.code == 2
    assert run("chat", "show", "--json", db=tmp_path / "a.db").json() == {"conversations": []}


def test_no_database_is_made_for_an_agent_without_a_name(tmp_path: Path) -> None:
    ran = run("remember", "Tea", "--agent", "", db=tmp_path / "a.db")

    assert ran.code == 2
    assert not [*tmp_path.iterdir()]


def test_a_host_is_configured_without_the_servers_package_and_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    ran = run("mcp", "--print-config", "cursor", db=tmp_path / "a.db")

    assert ran.code == 0
    assert "germane" in json.loads(ran.out)["mcpServers"]
    assert "pip install 'germane[mcp]'" in ran.err


def test_a_context_that_is_nested_too_deeply_is_refused(store: Path, tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 50_000)
    ran = run("context", "feedback", "--context", str(tmp_path / "deep.json"), db=store)

    assert ran.code == 2
    assert "holds no JSON" in ran.err

"""The commands with the address of a PostgreSQL database in place of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from commandline import id_of, run
from germane.stores import location_of


def test_what_one_command_stores_in_a_database_another_finds(postgres_store: str) -> None:
    run("remember", "Postgres runs on port 5433.", "--kind", "fact", "--db", postgres_store)
    run("remember", "Redis was given up.", "--db", postgres_store)

    found = run("recall", "Which port?", "--db", postgres_store, "--json").json()
    assert [each["memory"]["content"] for each in found["results"]] == ["Postgres runs on port 5433."]
    assert "5433" in run("assemble", "Which port?", "--db", postgres_store).out
    assert run("db", "stats", "--db", postgres_store, "--json").json()["memories"] == 2
    assert run("db", "doctor", "--db", postgres_store).out.endswith(": nothing wrong was found.\n")


def test_the_environment_may_name_a_database(postgres_store: str) -> None:
    run("remember", "Postgres runs on port 5433.", db=postgres_store)

    memory = id_of(postgres_store, "port")
    assert run("memory", "show", memory[-8:], db=postgres_store).code == 0


def test_no_output_shows_the_password(postgres_store: str) -> None:
    secret = postgres_store.replace("postgres@", "postgres:s3cr3t@")
    run("remember", "A note.", "--db", secret)
    for command in (
        ("db", "stats"),
        ("db", "stats", "--json"),
        ("db", "doctor"),
        ("embedder", "use", "bundled"),
        ("recall", "note"),
    ):
        ran = run(*command, "--db", secret)
        assert "s3cr3t" not in ran.out + ran.err
    assert location_of(secret) in run("db", "stats", "--json", "--db", secret).json()["location"]


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("mysql://host/base", "a URL that begins with postgresql://"),
        ("postgresql://nobody:hidden@127.0.0.1:1/none", "postgresql://nobody@127.0.0.1:1/none"),
    ],
)
def test_an_address_that_leads_nowhere_is_one_line_of_error(address: str, says: str) -> None:
    ran = run("recall", "anything", "--db", address)

    assert ran.code in (2, 3)
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert "hidden" not in ran.err


def test_a_path_with_slashes_is_still_a_path(tmp_path: Path) -> None:
    run("remember", "A note.", "--db", f"{tmp_path}//agent.db")

    assert (tmp_path / "agent.db").is_file()

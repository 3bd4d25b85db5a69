"""A database of the first schema becomes as a new one is: partitions, policies and rights too."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import germane
from germane.stores.postgres.connecting.connections import Connections
from germane.stores.postgres.operating.schema import grant, migrate
from germane.stores.sql import migrations
from support.postgres_schema import PARTITIONS, script
from support.postgres_server import Server

_ROLE = "migrated_application"


@pytest.fixture(params=[0, PARTITIONS], ids=["whole", "partitioned"])
def partitions(request: pytest.FixtureRequest) -> int:
    """How many the tables have."""
    return int(request.param)


@pytest.fixture
def first(postgres_server: Server, partitions: int) -> Iterator[str]:
    """The name of a database of the first schema, with an application's role."""
    database = postgres_server.fresh()
    how = "PARTITION BY HASH (agent)" if partitions else ""
    postgres_server.run(
        migrations("postgres")[0].script.replace("{partitioned}", how),
        script("partitions.sql").replace("{partitions}", str(partitions)),
        "INSERT INTO migrations VALUES (1, '0001_first.sql')",
        "INSERT INTO settings VALUES ('serves', '1')",
        f"DROP ROLE IF EXISTS {_ROLE}",
        f"CREATE ROLE {_ROLE} LOGIN",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {_ROLE}",
        f"REVOKE INSERT, UPDATE, DELETE ON agents, migrations FROM {_ROLE}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {_ROLE}",
        database=database,
    )
    yield database
    postgres_server.drop(database)
    postgres_server.run(f"DROP ROLE {_ROLE}")


def brought_up_to_date(server: Server, database: str, *, partitions: int = 0) -> tuple[str, ...]:
    connections = Connections(server.url(database))
    try:
        return migrate(connections, partitions=partitions)
    finally:
        connections.close()


def shape_of(server: Server, database: str) -> list[str]:
    """The statements that make the schema, without who may do what."""
    dump = server.tool("pg_dump", "--schema-only", "--no-privileges", server.url(database))
    return sorted(each.strip() for each in re.sub(r"(?m)^(--|\\).*$", "", dump).split(";\n"))


def test_it_becomes_as_a_new_one_is(postgres_server: Server, first: str, partitions: int) -> None:
    applied = brought_up_to_date(postgres_server, first)
    assert applied == tuple(each.name for each in migrations("postgres")[1:])
    new = postgres_server.fresh()
    brought_up_to_date(postgres_server, new, partitions=partitions)
    assert shape_of(postgres_server, first) == shape_of(postgres_server, new)
    postgres_server.drop(new)
    assert brought_up_to_date(postgres_server, first) == ()


def test_an_application_has_the_rights_that_it_needs(postgres_server: Server, first: str) -> None:
    brought_up_to_date(postgres_server, first)
    with germane.open(postgres_server.url(first, user=_ROLE), agent="ada", embedder=None) as engine:
        talk = engine.conversation("chat")
        for each in ("redis cache", "postgres", "What of redis?"):
            talk.append("user", each)
        assert [each.text for each in talk.ranked(2).messages] == ["redis cache", "What of redis?"]
        talk.remove(talk.groups()[0])
    assert postgres_server.run("SELECT count(*) FROM message_lex", database=first) == [(2,)]


def test_the_rights_are_those_that_a_grant_gives(postgres_server: Server, first: str) -> None:
    brought_up_to_date(postgres_server, first)
    rights = (
        "SELECT table_name, privilege_type FROM information_schema.role_table_grants"
        f" WHERE grantee = '{_ROLE}' AND table_name = 'message_lex' ORDER BY 2"
    )
    found = postgres_server.run(rights, database=first)
    connections = Connections(postgres_server.url(first))
    grant(connections, _ROLE)
    connections.close()
    assert found == postgres_server.run(rights, database=first) != []

"""The PostgreSQL that tests start: each has a database of its own, and a killed server comes back."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.postgres_server import Server

_CHILD = """
import os, signal, sys
sys.path[:0] = sys.argv[1:]
from support.postgres_server import Server
server = Server()
server.create()
server.start()
print(server.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_database_is_empty_but_for_the_extension(postgres_server: Server, postgres_database: str) -> None:
    name = postgres_database.split("@/")[1].split("?", maxsplit=1)[0]
    assert postgres_server.run("SELECT extname FROM pg_extension ORDER BY 1", database=name) == [
        ("plpgsql",),
        ("vector",),
    ]
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert postgres_server.run(tables, database=name) == [(0,)]


def test_a_copy_of_a_prepared_database_is_a_test_s_own(postgres_server: Server) -> None:
    def prepared(url: str) -> None:
        name = url.split("@/")[1].split("?", maxsplit=1)[0]
        postgres_server.run("CREATE TABLE shown (a int)", "INSERT INTO shown VALUES (1)", database=name)

    one, other = (postgres_server.fresh("prepared_once", prepared=prepared) for _ in range(2))
    postgres_server.run("INSERT INTO shown VALUES (2)", database=one)
    assert postgres_server.run("SELECT a FROM shown", database=other) == [(1,)]
    postgres_server.drop(one)
    postgres_server.drop(other)


def test_a_killed_server_comes_back_with_its_data(postgres_server: Server, postgres_database: str) -> None:
    name = postgres_database.split("@/")[1].split("?", maxsplit=1)[0]
    postgres_server.run("CREATE TABLE shown (a int)", "INSERT INTO shown VALUES (1)", database=name)
    postgres_server.restart()
    assert postgres_server.run("SELECT a FROM shown", database=name) == [(1,)]


@pytest.mark.long
@pytest.mark.usefixtures("postgres_server")
def test_nothing_is_left_of_a_server_whose_test_run_was_killed() -> None:
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, *sys.path], stdout=subprocess.PIPE, check=False, text=True
    )
    folder = Path(child.stdout.strip())
    assert folder.name.startswith("germane-pg-")
    assert child.returncode < 0
    end = time.monotonic() + 60
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not folder.exists()  # It goes when the server has ended.

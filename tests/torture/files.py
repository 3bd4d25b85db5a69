"""What happens to a file: a full disk, a folder that can't be written, a file that goes away, and forks."""

from __future__ import annotations

import os
import pwd
import resource
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final

import germane
from germane import Engine, GermaneError
from integration.test_forking import FORKS, forks_while_writing
from support.everything import ACTS, EVERY, Person
from torture.task import Task, in_a_child

__all__ = ["forks", "full", "gone", "unwritable"]

_VERBS: Final = 40
_GROWTH: Final = 400_000
"""The most bytes by which a file or its log may grow before the disk is full."""
_SINGLE: Final = (
    "remember",
    "remember_many",
    "revise",
    "forget",
    "confirm",
    "contradict",
    "feedback",
    "outcome",
)
"""Acts of one transaction: what is refused has stored nothing."""


def full(task: Task) -> None:
    """Let no file grow beyond a random size, as on a full disk, and then let it grow again."""
    _each(task, _on_a_full_disk, _opened_again)


def unwritable(task: Task) -> None:
    """Use a store whose folder and file can't be written: nothing changes, and every error is documented."""
    _each(task, _read_only, _unchanged)


def gone(task: Task) -> None:
    """Delete, move or replace a file under an open store: no write is taken that would be lost."""
    _each(task, _without_its_file, _nothing)


def forks(task: Task) -> None:
    """Fork while threads write: each child works with what it inherited and with an engine of its own."""
    for number in task.each_round():
        with tempfile.TemporaryDirectory() as folder:
            try:
                forks_while_writing(lambda: germane.open(Path(folder, "a.db"), agent="a", embedder=None))
            except AssertionError as error:
                task.findings.append(f"round {number}: {str(error)[:300]}")
            task.figures["forks"] += 2 * FORKS


def _each(
    task: Task,
    work: Callable[[Path, Random], dict[str, Any]],
    check: Callable[[Path, dict[str, Any]], Any],
) -> None:
    for number in task.each_round():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            path = Path(folder, "home", "a.db")
            path.parent.mkdir()
            done = in_a_child(work, path, Random(task.chance.random()))  # noqa: S311 - A run has to repeat.
            if isinstance(done, str):
                task.findings.append(f"round {number}: {done}")
                continue
            task.figures.update(done["figures"])
            found = [*done["findings"], *check(path, done)]
            task.findings += [f"round {number}: {each}" for each in found]


def _acts(who: Person, path: Path, chance: Random, done: dict[str, Any]) -> Iterator[None]:
    """Act by act; what isn't an error of germane's, or has stored something and was refused, is a finding."""
    with closing(sqlite3.connect(path)) as raw:
        for _ in range(_VERBS):
            act = chance.choice(sorted(ACTS))
            number = chance.randrange(100)
            before = _commits(raw)
            try:
                who.does(act, number)
            except Exception as error:  # noqa: BLE001 - What is looked for.
                done["findings"].append(f"{act}: {type(error).__name__}: {str(error)[:200]}")
                continue
            done["figures"]["verbs"] += 1
            if "['Store" in who.results[-1]:
                done["figures"]["refused"] += 1
                # Of an odd number, many are reconciled, and each is then stored by itself.
                is_one = act in _SINGLE and (act != "remember_many" or number % 2 == 0)
                if is_one and _commits(raw) != before:
                    done["findings"].append(
                        f"{act} is refused, and something is stored: {who.results[-1][:200]}"
                    )
            yield


def _commits(raw: sqlite3.Connection) -> Any:
    try:
        return raw.execute("PRAGMA data_version").fetchone()
    except sqlite3.Error as error:
        return str(error)


def _begun(path: Path) -> tuple[Engine, Person, dict[str, Any]]:
    """An engine with some memories, who uses it, and what is reported."""
    engine = germane.open(path, embedder=None)
    who = Person(engine, "ada")
    for number, act in enumerate(("remember", "remember_many", "session", "assemble", "working set")):
        who.does(act, number)
    return engine, who, {"figures": {"verbs": 0, "refused": 0}, "findings": []}


def _on_a_full_disk(path: Path, chance: Random) -> dict[str, Any]:
    engine, who, done = _begun(path)
    largest = max(each.stat().st_size for each in path.parent.iterdir())
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + chance.randrange(_GROWTH), hard))
    list(_acts(who, path, chance, done))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    engine.remember("The disk is free again.")
    done["findings"] += [f"doctor: {each.text}" for each in engine.doctor()]
    done["stored"] = sorted(each.version_id for each in engine.memories(EVERY))
    engine.close()
    return done


def _opened_again(path: Path, done: dict[str, Any]) -> list[str]:
    with germane.open(path, embedder=None) as engine:
        found = [f"doctor, opened again: {each.text}" for each in engine.doctor()]
        stored = sorted(each.version_id for each in engine.memories(EVERY))
    return found if stored == done["stored"] else [*found, "other memories are there after opening again"]


def _read_only(path: Path, chance: Random) -> dict[str, Any]:
    engine, _, done = _begun(path)
    engine.close()
    files = {each: each.read_bytes() for each in path.parent.iterdir()}
    for each in files:
        each.chmod(0o444)
    path.parent.chmod(0o555)
    if os.geteuid() == 0:  # Who may write everything; what is imported from now on may be closed to others.
        os.setuid(pwd.getpwnam("nobody").pw_uid)
    try:
        with germane.open(path, embedder=None, read_only=chance.random() < 0.5) as opened:
            list(_acts(Person(opened, "ada"), path, chance, done))
    except GermaneError:
        done["figures"]["refused"] += 1
    if {each: each.read_bytes() for each in path.parent.iterdir()} != files:
        done["findings"].append("a file has changed")
    return done


def _nothing(*_: Any) -> tuple[str, ...]:
    return ()


def _unchanged(path: Path, _: dict[str, Any]) -> list[str]:
    path.parent.chmod(0o755)
    with germane.open(path, embedder=None, read_only=True) as engine:
        return [f"doctor: {each.text}" for each in engine.doctor()]


def _without_its_file(path: Path, chance: Random) -> dict[str, Any]:
    engine, who, done = _begun(path)
    acts = _acts(who, path, chance, done)
    for _ in range(chance.randrange(1, _VERBS // 2)):
        next(acts)
    aside = path.parent.with_name("aside")
    harm = chance.choice(("delete", "move", "replace"))
    if harm == "delete":
        for each in path.parent.iterdir():
            each.unlink()
    else:
        path.parent.rename(aside)
        path.parent.mkdir()
    if harm == "replace":
        germane.open(path, embedder=None).close()
    there = sorted(path.parent.iterdir())
    known = len(who.results)
    list(acts)
    taken = [each[:200] for each in who.results[known:] if each.startswith(_SINGLE) and "['Store" not in each]
    done["findings"] += [f"{harm}: taken: {each}" for each in taken if "None" not in each[:60]]
    if harm == "delete" and sorted(path.parent.iterdir()) != there:
        done["findings"].append("a file is made where one was deleted")
    try:
        engine.close()
    except GermaneError:
        done["figures"]["refused"] += 1
    return done

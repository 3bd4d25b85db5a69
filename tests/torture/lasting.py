"""What lasts: many processes, a clock that runs backwards, tenants, and no growth over many calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

import germane
from germane.stores import migrate_store
from germane.testing.fakes import START
from property.test_users_apart import assert_apart, every_verb
from support.everything import ACTS, Person
from support.postgres_server import Server, missing
from torture.task import Task

__all__ = ["clock", "crowd", "growth", "opening", "tenants", "tenants_on_a_server"]

ROOT: Final = Path(__file__).resolve().parents[2]
_MOST_GROWN: Final = 24 << 20
"""Bytes by which a process may grow after its caches are full."""


def crowd(task: Task) -> None:
    """Eight writers and sixteen readers on one file for all the seconds of the section."""
    ran = subprocess.run(
        [
            sys.executable,
            str(ROOT / "bench" / "contention.py"),
            str(task.seconds),
            "--readers",
            "16",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    if ran.returncode:
        task.findings.append(ran.stderr[-300:])
        return
    report = json.loads(ran.stdout)
    task.figures["calls"] = sum(each["calls"] for each in report["workers"])
    task.figures["acknowledged"] = report["acknowledged"]
    task.figures["milliseconds of the longest wait"] = int(max(each["longest"] for each in report["workers"]))
    task.findings += [
        f"{name}: {report[name]}" for name in ("errors", "lost", "doubled", "findings") if report[name]
    ]


class LeapingClock:
    """A clock that jumps at each reading, forwards and backwards by up to a year."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def __call__(self) -> datetime:
        return START + timedelta(seconds=self._chance.uniform(-3e7, 3e7))


def clock(task: Task) -> None:
    """Every verb by a clock that runs backwards: only documented errors, and a store that is sound."""
    for number in task.each_round():
        with (
            tempfile.TemporaryDirectory() as folder,
            germane.open(Path(folder, "a.db"), embedder=None, clock=LeapingClock(task.chance)) as engine,
        ):
            who = Person(engine, "ada")
            for _ in range(60):
                act = task.chance.choice(sorted(ACTS))
                task.figures["verbs"] += 1
                try:
                    who.does(act, task.chance.randrange(100))
                except Exception as error:  # noqa: BLE001 - What is looked for.
                    task.findings.append(f"round {number}: {act}: {type(error).__name__}: {error}")
            task.findings += [f"round {number}: doctor: {each.text}" for each in engine.doctor()]


def tenants(task: Task) -> None:
    """Random verbs of an agent and two users: what one does shows for no other."""
    for _ in task.each_round():
        with tempfile.TemporaryDirectory() as folder:
            script = every_verb(task.chance.randrange(10**9), rounds=2)
            task.figures["verbs"] += 2 * len(script)
            try:
                assert_apart(script, str(Path(folder, "with.db")), str(Path(folder, "without.db")))
            except AssertionError as error:
                task.findings.append(str(error)[:500])


def tenants_on_a_server(task: Task) -> None:
    """The same in PostgreSQL, by a role that owns nothing and is under row-level security."""
    if why := missing():
        task.figures[f"rounds left out: {why}"] = 1
        return
    server = Server()
    try:
        server.create()
        server.start()
        server.run("CREATE ROLE plain LOGIN")
        for _ in task.each_round():
            names = [server.fresh("tenants", prepared=_for_a_role) for _ in range(2)]
            script = every_verb(task.chance.randrange(10**9), rounds=1)
            task.figures["verbs"] += 2 * len(script)
            try:
                assert_apart(script, *(server.url(each, user="plain") for each in names))
            except AssertionError as error:
                task.findings.append(str(error)[:500])
            for each in names:
                server.drop(each)
    finally:
        server.stop()


def _for_a_role(url: str) -> None:
    migrate_store(url, role="plain")


def growth(task: Task) -> None:
    """Assemble again and again: no more memory, files or threads than after the first quarter."""
    with tempfile.TemporaryDirectory() as folder, germane.open(Path(folder, "a.db"), embedder=None) as engine:
        engine.remember_many(f"Service {number} uses redis for queue {number % 7}." for number in range(300))
        before = None
        for number in task.each_round():
            for call in range(200):
                query = f"queue {task.chance.randrange(10**6)} of service {call}"
                engine.assemble(query, budget=500, record=call % 20 == 0)
                task.figures["contexts"] += 1
            if before is None and (task.taken > task.seconds / 4 or number == (task.rounds or 0) // 4 > 0):
                before = _size()
        _compare(before, task)


def opening(task: Task) -> None:
    """Open a store, write, and close it: no more memory, files or threads than after the first quarter."""
    with tempfile.TemporaryDirectory() as folder:
        before = None
        for number in task.each_round():
            for call in range(20):
                with germane.open(Path(folder, f"{call % 3}.db"), embedder=None) as engine:
                    engine.remember(f"Round {number % 50}, call {call}.")
                    engine.recall("round")
                task.figures["open and close"] += 1
            if before is None and (task.taken > task.seconds / 4 or number == (task.rounds or 0) // 4 > 0):
                before = _size()
        _compare(before, task)


def _size() -> tuple[int, int, int]:
    """Resident bytes, open descriptors and threads of this process; zeros where /proc isn't there."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return 0, 0, threading.active_count()
    pages = int(status.read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208 - The names alone are counted.


def _compare(before: tuple[int, int, int] | None, task: Task) -> None:
    if before is None:
        return
    grown = [now - then for now, then in zip(_size(), before, strict=True)]
    task.figures["kilobytes grown"] = max(0, grown[0] >> 10)
    if grown[0] > _MOST_GROWN:
        task.findings.append(f"{grown[0] >> 20} MB more")
    task.findings += [
        f"{more} more {what}" for more, what in zip(grown[1:], ("files", "threads"), strict=True) if more > 2
    ]

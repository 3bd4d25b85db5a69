"""How fast a conversation grows and is looked at: python bench/conversation.py [--json] [MESSAGES ...].

What a new process does first is measured in new processes, from the opened file on, by the clock and by the
processor's time. The last lines are about files of an older version, whose messages have no records of their
terms: the first process that ranks them makes and stores those.
"""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import germane
from germane import Conversation

WORDS = """
    postgres redis cache index query schema migration release rollback deploy timeout retry queue worker token
    budget context memory agent session prompt answer evidence ranking scorer vector embedding file folder
    parser compiler network socket certificate password customer invoice refund order shipment warehouse
""".split()  # noqa: SIM905 - a list of quoted words would take forty lines.
TIMES = 200
ROUNDS = 15
PROCESSES = 5


def main() -> None:
    if "--first" in sys.argv:
        print(json.dumps(first(Path(sys.argv[2]), sys.argv[3])))
        return
    as_json = "--json" in sys.argv
    sizes = [int(size) for size in sys.argv[1:] if size.isdecimal()] or [1000, 10_000]
    for size in sizes:
        with TemporaryDirectory() as folder:
            found = measure(Path(folder), size)
        if as_json:
            print(json.dumps({"messages": size, **found}))
            continue
        print(f"{size:,} messages, ms: median / 95th percentile")
        for name, (middle, high) in found.items():
            print(f"  {name:<52}{middle:>9.2f} /{high:>9.2f}")


def measure(folder: Path, size: int) -> dict[str, tuple[float, float]]:
    """Milliseconds of each thing that a program does with a conversation of so many messages."""
    found: dict[str, tuple[float, float]] = {}
    for durability in ("relaxed", "full"):
        path = folder / f"{durability}.db"
        with germane.open(path, embedder=None, durability=durability) as engine:
            talk = engine.conversation("chat")
            talk.extend(transcript(size))
            append = partial(talk.append, "assistant", sentence(random.Random(1), 50))
            found[f"append, durability={durability}"] = timed(append, times=TIMES)
            if durability == "relaxed":
                found |= views(talk)
    stored = folder / "relaxed.db"
    for name in FIRST:
        found |= in_new_processes(stored, name)
    return found | of_an_older_file(stored, size)


def views(talk: Conversation) -> dict[str, tuple[float, float]]:
    """Milliseconds of each view, after the first time."""
    looks: dict[str, Callable[[], Any]] = {
        "messages": talk.messages,
        "window(5)": lambda: talk.window(5),
        "window(budget=8000)": lambda: talk.window(budget=8000),
        "ranked(5)": lambda: ranked(talk),
        "anchored(5)": lambda: talk.anchored(5),
        "anchored(budget=8000)": lambda: talk.anchored(0, budget=8000),
        "payload of all, openai": lambda: talk.payload("openai"),
    }
    talk.append("user", "What did we say about the redis cache timeout of the warehouse worker?")
    for look in looks.values():
        look()
    return {name: timed(look, times=ROUNDS) for name, look in looks.items()}


def ranked(talk: Conversation) -> Any:
    """The five best groups for a question of several words."""
    return talk.ranked(5, query="redis cache timeout of the warehouse worker")


FIRST: dict[str, Callable[[germane.Engine, Conversation], Any]] = {
    "window(5)": lambda _, talk: talk.window(5),
    "window": lambda _, talk: talk.window(),
    "append": lambda _, talk: talk.append("assistant", sentence(random.Random(2), 50)),
    "ranked": lambda _, talk: ranked(talk),
    "anchored": lambda _, talk: talk.anchored(5, query="redis cache timeout of the warehouse worker"),
    "request": lambda engine, talk: engine.request(talk, window=32_000, reserve=1000),
}


def first(path: Path, name: str) -> tuple[float, float]:
    """Milliseconds that a thing takes in this process, by the clock and of the processor's time."""
    with germane.open(path, embedder=None) as engine:
        start, used = time.perf_counter(), time.process_time()
        FIRST[name](engine, engine.conversation("chat"))
        return (time.perf_counter() - start) * 1000, (time.process_time() - used) * 1000


def in_new_processes(path: Path, name: str, *, times: int = PROCESSES) -> dict[str, tuple[float, float]]:
    """The same of new processes, each of which does it first."""
    command = [sys.executable, __file__, "--first", str(path), name]
    taken = [json.loads(subprocess.check_output(command)) for _ in range(times)]  # noqa: S603 - This file.
    return {
        f"first {name} of a process": spread(each[0] for each in taken),
        f"first {name} of a process, processor": spread(each[1] for each in taken),
    }


def of_an_older_file(path: Path, size: int) -> dict[str, tuple[float, float]]:
    """What it takes to rank messages whose records are missing, and again; and what the records weigh."""
    before = path.stat().st_size
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("DELETE FROM message_lex")
        raw.execute("VACUUM")
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    weights = (before / 1024 / size, path.stat().st_size / 1024 / size)
    made, then = in_new_processes(path, "ranked", times=1), in_new_processes(path, "ranked")
    return {
        **{f"{name}, no records": taken for name, taken in made.items()},
        **{f"{name}, next": taken for name, taken in then.items()},
        "kB a message, with its record / without": weights,
    }


def transcript(size: int) -> list[dict[str, Any]]:
    """Exchanges of five messages: a prompt, two calls, their results, an answer."""
    chance = random.Random(size)
    made: list[dict[str, Any]] = []
    number = 0
    while len(made) < size:
        number += 1
        calls = [{"id": f"c{number}-{each}", "name": "read_file", "arguments": "{}"} for each in "ab"]
        made.append({"role": "user", "content": sentence(chance, 20)})
        made.append({"role": "assistant", "content": "", "tool_calls": calls})
        for call in calls:
            result = {"call_id": call["id"], "content": sentence(chance, 80)}
            made.append({"role": "tool", "tool_results": [result]})
        made.append({"role": "assistant", "content": sentence(chance, 60)})
    return made[:size]


def sentence(chance: random.Random, words: int) -> str:
    """So many words, one of which is nearly new."""
    return " ".join([*chance.choices(WORDS, k=words - 1), f"case-{chance.randrange(100_000)}"])


def timed(call: Callable[[], Any], *, times: int) -> tuple[float, float]:
    """The median and the 95th percentile of a call, in milliseconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append((time.perf_counter() - start) * 1000)
    return spread(taken)


def spread(taken: Iterable[float]) -> tuple[float, float]:
    """The median and the 95th percentile."""
    ordered = sorted(taken)
    return statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))]


if __name__ == "__main__":
    main()

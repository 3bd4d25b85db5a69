"""How fast a conversation grows and is looked at: python bench/conversation.py [--json] [MESSAGES ...]."""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Callable
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


def main() -> None:
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
            print(f"  {name:<34}{middle:>9.2f} /{high:>9.2f}")


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
    found["first window in a new process"] = timed(lambda: cold(path, Conversation.window), times=3)
    found["first window(5) in a new process"] = timed(lambda: cold(path, five), times=3)
    found["first ranked in a new process"] = timed(lambda: cold(path, ranked), times=3)
    return found


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


def five(talk: Conversation) -> Any:
    """The last five groups."""
    return talk.window(5)


def ranked(talk: Conversation) -> Any:
    """The five best groups for a question of several words."""
    return talk.ranked(5, query="redis cache timeout of the warehouse worker")


def cold(path: Path, look: Callable[[Conversation], Any]) -> None:
    """A view by an engine that has just been opened."""
    with germane.open(path, embedder=None) as engine:
        look(engine.conversation("chat"))


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
    taken.sort()
    return statistics.median(taken), taken[int(0.95 * (len(taken) - 1))]


if __name__ == "__main__":
    main()

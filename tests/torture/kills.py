"""Writers and servers that are killed: nothing acknowledged is lost, nothing is half there, search agrees."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import germane
from germane import Engine, NotFound
from support.everything import ACTS, Person
from support.postgres_server import missing
from torture.task import Task

__all__ = ["of_servers", "of_writers"]

ROOT: Final = Path(__file__).resolve().parents[2]
WRITERS: Final = (1, 3, 8)
_CONTEXT: Any = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)
_CONTEXT.set_forkserver_preload([__name__])  # So that a writer starts in milliseconds.
_LONG: Final = 60
"""Seconds of a section from which a server is killed several times after each start of its cluster."""
_LOOKED_FOR: Final = 20
"""Memories of a round that are looked for by their own word."""


def of_writers(task: Task) -> None:
    """Kill 1, 3 or 8 writers in the middle of every kind of write, and check what they acknowledged."""
    with tempfile.TemporaryDirectory() as folder:
        for number in task.each_round():
            path = Path(folder, f"{number // 10}.db")
            writers = WRITERS[number % len(WRITERS)]
            task.figures["kills of writers"] += writers
            _check(path, _killed(path, number, writers, task), task, number)


def _killed(path: Path, number: int, writers: int, task: Task) -> list[dict[str, Any]]:
    """What the writers of a round acknowledged before they were killed."""
    outputs = [path.with_suffix(f".{number}.{writer}") for writer in range(writers)]
    children = []
    for writer, output in enumerate(outputs):
        output.touch()
        seed = task.seed * 1_000_000 + number * 10 + writer
        children.append(_CONTEXT.Process(target=_write, args=(str(path), seed, str(output))))
        children[-1].start()
    for child, output in zip(children, outputs, strict=True):
        while not output.stat().st_size and child.exitcode is None:
            time.sleep(0.01)
    time.sleep(task.chance.uniform(0.0, 1.0))
    for child in children:
        if child.exitcode is not None:
            task.findings.append(f"round {number}: a writer ended by itself with {child.exitcode}")
        child.kill()
        child.join()
    # The last line may have been cut; only whole ones were acknowledged.
    lines = [line for output in outputs for line in output.read_text("utf-8").splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _check(path: Path, acknowledged: list[dict[str, Any]], task: Task, number: int) -> None:
    task.figures["acknowledged"] += len(acknowledged)
    with germane.open(path, agent="tester", embedder=None) as engine:
        found = [f"doctor: {each.text}" for each in engine.doctor()]
        found += [lost for each in acknowledged if (lost := _lost(engine, each))]
        batches = [each.content.split()[0] for each in engine.memories() if " batch " in each.content]
        found += [f"half a batch: {each}" for each in dict.fromkeys(batches) if batches.count(each) != _BATCH]
        active = {each.id for each in engine.memories()}  # A writer may die between forgetting and restoring.
        words = [each["word"] for each in acknowledged if "word" in each and each["id"] in active]
        for word in task.chance.sample(words, min(_LOOKED_FOR, len(words))):
            task.figures["searches"] += 1
            if not any(word in each.memory.content for each in engine.recall(word)):
                found.append(f"{word} is stored and not found")
    task.findings += [f"round {number}: {each}" for each in found]


def _lost(engine: Engine, acknowledged: Mapping[str, Any]) -> str:
    """What is missing of an acknowledged write; empty where all is there."""
    what, name = acknowledged["what"], acknowledged["id"]
    try:
        if what == "verbs":
            return ""
        if what == "message":
            messages = engine.conversation(acknowledged["session"]).messages()
            return "" if any(each.id == name for each in messages) else f"message {name} is lost"
        if what == "assembly":
            engine.ledger().show(name)
        elif what == "shared":
            engine.space("team").get(name)
        elif what == "item":
            return "" if name in [each.memory.id for each in engine.working_set().items()] else f"item {name}"
        elif what == "version":
            return "" if len(engine.history(name)) >= acknowledged["version"] else f"version of {name}"
        else:
            engine.get(name)
    except NotFound:
        return "" if what == "purged" else f"{what} {name} is lost"
    return f"{name} is there after its purge" if what == "purged" else ""


# What a writer does until it is killed.

_BATCH: Final = 5


def _write(path: str, seed: int, output: str) -> None:
    chance = Random(seed)  # noqa: S311 - A run has to repeat.
    with germane.open(path, agent="tester", embedder=None) as engine, Path(output).open("a") as acknowledged:
        engine.working_set(max_tokens=10_000_000)
        space = engine.space("team", create=True)
        for number in range(1_000_000):
            word = f"w{seed}x{number}"
            for made in chance.choice(_ACTS)(engine, space, word, chance):
                print(json.dumps(made), file=acknowledged, flush=True)


def _remember(engine: Engine, _: Any, word: str, chance: Random) -> Iterator[dict[str, Any]]:
    kind = chance.choice(("note", "fact", "decision", "procedure", "episode"))
    memory = engine.remember(f"{word} is one of many.", kind=kind, tags=["a:b"])
    yield {"what": "memory", "id": memory.id, "word": word}
    if chance.random() < 0.5:
        head = engine.revise(memory.id, f"{word} was revised. " + "It is long. " * chance.randrange(200))
        yield {"what": "version", "id": memory.id, "version": head.version}
    elif chance.random() < 0.5:
        engine.forget(memory.id)
        engine.restore(memory.id)
        if kind == "fact":
            engine.confirm(memory.id)


def _batch(engine: Engine, _: Any, word: str, __: Random) -> Iterator[dict[str, Any]]:
    for result in engine.remember_many(f"{word} batch number {number}" for number in range(_BATCH)):
        yield {"what": "memory", "id": result.memory.id}


def _purge(engine: Engine, _: Any, word: str, __: Random) -> Iterator[dict[str, Any]]:
    memory = engine.remember(f"{word} will go.")
    engine.purge(memory.id, confirm=True)
    yield {"what": "purged", "id": memory.id}


def _converse(engine: Engine, _: Any, word: str, __: Random) -> Iterator[dict[str, Any]]:
    session = word.partition("x")[0]
    conversation = engine.conversation(session)
    for role in ("user", "assistant"):
        message = conversation.append(role, f"{word} as the {role}.")
        yield {"what": "message", "id": message.id, "session": session}


def _assemble(engine: Engine, _: Any, word: str, __: Random) -> Iterator[dict[str, Any]]:
    context = engine.assemble(word, budget=500, record=True)
    yield {"what": "assembly", "id": context.ref}
    shown = [each.memory.id for each in context.items if not each.memory.is_message]
    try:
        engine.feedback(context, used=shown[:2])
    except NotFound:
        # Another writer may have purged one of them since.
        if all(each is not None for each in map(partial(_stored, engine), shown[:2])):
            raise


def _stored(engine: Engine, memory_id: str) -> Any:
    try:
        return engine.get(memory_id)
    except NotFound:
        return None


def _share(engine: Engine, space: Any, word: str, chance: Random) -> Iterator[dict[str, Any]]:
    if chance.random() < 0.3:
        yield {"what": "shared", "id": space.remember(f"{word} is for all.").id}
        return
    memory = engine.remember(f"{word} is worked on.")
    engine.working_set().add(memory)
    yield {"what": "item", "id": memory.id}


def _any_verb(engine: Engine, _: Any, word: str, chance: Random) -> Iterator[dict[str, Any]]:
    """Every other kind of write, of which the check sees whether the store is sound."""
    who = Person(engine, word)
    for act in ("remember", *chance.sample(sorted(ACTS), 4)):
        who.does(act, chance.randrange(100))
    yield {"what": "verbs", "id": ""}


_ACTS: Final[tuple[Callable[..., Iterator[dict[str, Any]]], ...]] = (
    _remember, _remember, _batch, _purge, _converse, _assemble, _share, _any_verb,
)  # fmt: skip


# Servers.


def of_servers(task: Task) -> None:
    """Kill a PostgreSQL server under three writers and a reader, with all its processes, as a crash does."""
    if why := missing():
        task.figures[f"rounds left out: {why}"] = 1
        return
    kills = 10 if task.seconds > _LONG else 1
    program = [sys.executable, str(ROOT / "bench" / "contention.py"), str(4 * kills), "--writers", "3"]
    for number in task.each_round():
        ran = subprocess.run(
            [*program, "--readers", "1", "--postgres", "--restart", str(kills), "--json"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        if ran.returncode:
            task.findings.append(f"round {number}: {ran.stderr[-300:]}")
            continue
        report = json.loads(ran.stdout)
        task.figures["kills of servers"] += kills
        task.figures["acknowledged"] += report["acknowledged"]
        for name in ("errors", "lost", "doubled", "findings"):
            if report[name]:
                task.findings.append(f"round {number}: {name}: {report[name]}")

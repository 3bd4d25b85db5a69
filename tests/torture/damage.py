"""Random damage to a file and its log: a clear error or the right answer; no hang, crash or wrong answer."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any, Final

import germane
from germane import Draft, GermaneError
from germane.testing.fakes import START
from torture.task import Task, in_a_child

__all__ = ["run"]

_QUERIES: Final = ("Which database for service 7?", "Why was redis taken out?")
_USED: Final = ("redis", "postgres", "kafka", "sqlite")


def run(task: Task) -> None:
    """Flip bits or cut off the end in copies of a store, and use each copy in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        closed, running = Path(folder, "closed.db"), Path(folder, "running.db")
        _store(closed, running)
        right = _used(closed)
        for number in task.each_round():
            copy = Path(folder, "damaged.db")
            _copy(task.chance.choice((closed, running)), copy)
            harm = _harm(copy, task.chance)
            outcome = _outcome(copy, right, task, f"round {number}: {harm}")
            task.figures[outcome] += 1


def _copy(path: Path, copy: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
        if suffix != "-shm" and Path(f"{path}{suffix}").exists():
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")


def _store(closed: Path, running: Path) -> None:
    """A store that was closed, and the same with its log, as a machine leaves it that stops in between."""
    with _opened(closed) as engine:
        engine.remember("Never deploy on a Friday.", kind="constraint")
        drafts = (
            Draft(content=f"Service {number} uses {_USED[number % 4]} for its queue.", kind="decision")
            for number in range(60)
        )
        engine.remember_many(drafts)
        talk = engine.conversation("talk")
        for number in range(20):
            talk.append("user", f"What does service {number} use?")
            talk.append("assistant", f"It uses {_USED[number % 4]}.")
        _copy(closed, running)


def _harm(path: Path, chance: Random) -> str:
    log = Path(f"{path}-wal")
    target = log if log.exists() else path  # With a log, the file itself has next to nothing.
    whole = bytearray(target.read_bytes())
    where = target.name.removeprefix("damaged.db") or "file"
    if chance.random() < 0.2:
        length = chance.randrange(len(whole))
        target.write_bytes(whole[:length])
        return f"{where} cut to {length} bytes"
    places = [chance.randrange(len(whole)) for _ in range(chance.choice((1, 1, 1, 4, 64)))]
    for place in places:
        whole[place] ^= 1 << chance.randrange(8)
    target.write_bytes(whole)
    return f"{where} changed at {places[:4]}"


def _outcome(path: Path, right: Any, task: Task, what: str) -> str:
    found = in_a_child(_answered, path)
    if isinstance(found, str):
        task.findings.append(f"{what}: {found}")
        return "hangs and crashes"
    if "error" in found:
        return "clear errors"
    if found["answers"] == right["answers"]:
        return "right answers"
    if found["doctor"]:
        return "wrong answers that doctor names"
    if "-wal" in what and _is_earlier(found, right):
        return "logs read up to the damage"
    task.findings.append(f"{what}: a wrong answer that nothing names")
    return "wrong answers"


def _is_earlier(found: Any, right: Any) -> bool:
    """Whether a store answers as at an earlier time: its log is read up to the first damaged part."""
    (_, messages, stored), (_, all_messages, all_stored) = found["answers"], right["answers"]
    return messages == all_messages[: len(messages)] and set(stored) <= set(all_stored)


def _opened(path: Path) -> germane.Engine:
    return germane.open(path, agent="tester", embedder=None, clock=lambda: START)


def _used(path: Path) -> dict[str, Any]:
    """What a store answers, or the error that it ends with."""
    copy = path.with_name("read.db")
    _copy(path, copy)
    return _answered(copy)


def _answered(path: Path) -> dict[str, Any]:
    try:
        with _opened(path) as engine:
            answers = [
                [
                    [each.memory.content for each in engine.recall(query)],
                    engine.assemble(query, budget=400).text,
                ]
                for query in _QUERIES
            ]
            messages = [each.text for each in engine.conversation("talk").messages()]
            stored = sorted(each.content for each in engine.memories())
            engine.remember("Something new.")
            findings = len(engine.doctor())
            return {"answers": [answers, messages, stored], "doctor": findings}
    except GermaneError as error:
        return {"error": type(error).__name__}

"""What tests of conversations run in processes of their own: conversation_child.py TASK PATH ARGUMENT."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from random import Random


def say(path: Path, part: str) -> None:
    """Append and hide until killed, and say what was acknowledged."""
    import germane  # noqa: PLC0415 - a task imports what it needs.

    engine = germane.open(path, agent="tester", embedder=None, durability="relaxed")
    chat = engine.conversation("shared")
    for number in count():
        question = chat.append("user", f"Part {part} question {number}", group=f"{part}-{number}")
        answers = chat.extend(
            [
                {"role": "assistant", "content": f"Part {part} answer {number}"},
                {"role": "assistant", "content": f"Part {part} more {number}"},
            ]
        )
        for message in (question, *answers):
            print(message.id, flush=True)  # noqa: T201 - how it acknowledges.
        if number % 7 == 3:
            chat.hide(f"{part}-{number - 1}")
            print(f"hidden {part}-{number - 1}", flush=True)  # noqa: T201 - as above.


def purge(path: Path, driver: str) -> None:
    """Say, hide and purge on a driver; print what traces of the purged are left, by where they are."""
    if driver != "sqlite3":
        sys.modules["sqlite3"] = __import__(driver)
    import germane  # noqa: PLC0415 - after the driver is chosen.

    chance = Random(3)  # noqa: S311 - a test has to repeat.
    engine = germane.open(path, agent="tester", embedder=None, durability="relaxed")
    talks = [engine.conversation(f"talk {each}") for each in range(3)]
    current: dict[int, str] = {}
    gone: set[int] = set()
    for number in range(180):
        mark, chat = f"Zq{number:04d}x", talks[number % 3]
        long = f"{mark} " + "lorem ipsum " * chance.choice((1, 3, 10, 40, 200, 900))
        question = chat.append("user", long)
        chat.append("assistant", f"{mark} so", tool_calls=[{"id": mark, "name": "n", "arguments": long}])
        chat.append("tool", tool_results=[{"call_id": mark, "content": f"result {long}"}])
        current[number] = question.id
        chat.hide(question.id)
        chat.unhide(question.id)
        chat.ranked(3, query=mark)
        if number % 60 == 59:
            for each in chance.sample(sorted(current), 30):
                talks[each % 3].purge(current.pop(each), confirm=True)
                gone.add(each)
            _look(path, current, gone)
    talks[0].anchor("state", "Zq9999x secret plan")
    talks[0].purge(confirm=True)
    gone |= {number for number in current if number % 3 == 0} | {9999}
    _look(path, {number: current[number] for number in current if number not in gone}, gone)
    assert engine.doctor() == ()
    engine.close()


def _look(path: Path, current: dict[int, str], gone: set[int]) -> None:
    for suffix in ("", "-wal", "-shm"):
        data = Path(f"{path}{suffix}").read_bytes()
        left = [number for number in sorted(gone) if f"Zq{number:04d}x".encode() in data]
        found = sum(f"Zq{number:04d}x".encode() in data for number in current)
        print(f"agent.db{suffix} keeps {found} of {len(current)} and traces of {left}")  # noqa: T201 - how it answers.


if __name__ == "__main__":
    {"say": say, "purge": purge}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])

"""What the tests of spaces run in processes of their own: python space_child.py TASK PATH AGENT [SEED]."""

from __future__ import annotations

import json
import random
import sys

import germane
from germane import Space
from germane.errors import NotInWorkingSet

COUNTER = "bytes_div_4_floor"
OPERATIONS = 250


def work(path: str, agent: str, seed: str) -> None:
    """Do 250 things to the space at the first signal, and print its content at the second."""
    chance = random.Random(int(seed))  # noqa: S311 - a test has to repeat.
    with germane.open(path, agent=agent, embedder=None, counter=COUNTER, durability="relaxed") as engine:
        space = engine.space("team")
        say("ready")
        sys.stdin.readline()
        for number in range(OPERATIONS):
            operate(space, chance, f"{agent} says thing number {number} about topic {chance.randrange(40)}.")
        say("done")
        sys.stdin.readline()
        say(json.dumps(looks(space)))


def operate(space: Space, chance: random.Random, text: str) -> None:
    """One operation of any sort; what another process has taken away by then is no error."""
    working = space.working_set(max_tokens=300)
    memories = space.memories(limit=20)
    try:
        match chance.choice("rrrraaaaevfsc" if memories else "r"):
            case "r":
                space.remember(text)
            case "a":
                working.add(chance.choice(memories))
            case "e":
                working.evict(40)
            case "v":
                space.revise(chance.choice(memories).id, text)
            case "f":
                space.forget(chance.choice(memories).id)
            case "s":
                working.remove(chance.choice(memories))
            case "c" if chance.random() < 0.1:
                working.clear()
    except (germane.NotFound, NotInWorkingSet, germane.StaleRevision, germane.InvalidInput):
        pass


def looks(space: Space) -> dict[str, object]:
    """All that a member sees: memories, what is held, members, and how far the log goes."""
    every = germane.Filter(statuses=tuple(germane.Status))
    return {
        "memories": sorted([each.id, each.status, each.version] for each in space.memories(every)),
        "held": [item.memory.id for item in space.working_set()],
        "found": [each.id for each in space.recall("topic 7", limit=50, gate=False)],
        "members": [[each.agent, each.role, each.rights] for each in space.members()],
        "events": space.events()[-1].number,
    }


def move(path: str, agent: str, _: str) -> None:
    """Join, put things in, take them out again, and say which memories it was."""
    with germane.open(path, agent=agent, embedder=None, counter=COUNTER, durability="relaxed") as engine:
        space = engine.space("team")
        space.join()
        one, two, three = (space.remember(text) for text in ("One.", "Two.", "Three."))
        working = space.working_set(max_tokens=2)
        working.add_many([one, two])
        working.add(three)
        space.forget(two.id)
        working.clear()
        say(json.dumps([one.id, two.id, three.id]))


def write(path: str, agent: str, _: str) -> None:
    """Write until it isn't allowed any more, and say how often it was."""
    with germane.open(path, agent=agent, embedder=None, counter=COUNTER, durability="relaxed") as engine:
        space = engine.space("team")
        count = 0
        try:
            while True:
                space.remember(f"{agent} {count}")
                count += 1
                if count == 1:
                    say("writing")
        except germane.NotAllowed:
            say(str(count))


def say(text: str) -> None:
    """One line to the test."""
    print(text, flush=True)  # noqa: T201 - how it answers.


if __name__ == "__main__":
    {"work": work, "move": move, "write": write}[sys.argv[1]](*sys.argv[2:])

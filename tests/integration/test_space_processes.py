"""A space that several processes share: each sees what the others do, and all end alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import pytest

import germane
from germane.spaces import SpaceEvent, SpaceEventKind
from integration.space_child import looks

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("space_child.py")
COUNTER = "bytes_div_4_floor"
SURELY = 60.0
"""Seconds in which even a busy machine has done it; nothing waits so long."""


@contextmanager
def started(task: str, path: Path, agents: Sequence[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """A process for each agent; none outlives the test."""
    with ExitStack() as stack:
        children = []
        for seed, agent in enumerate(agents):
            child = subprocess.Popen(
                [sys.executable, str(CHILD), task, str(path), agent, str(seed)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            )
            children.append(stack.enter_context(child))
            stack.callback(child.kill)
        yield children


def hear(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def replayed(events: tuple[SpaceEvent, ...]) -> tuple[set[str], set[str]]:
    """The active memories of a space and those in its sets, from nothing but its events."""
    active: set[str] = set()
    entered: set[str] = set()
    for event in events:
        memory_id = event.memory_id or ""
        if event.what in (SpaceEventKind.REMEMBER, SpaceEventKind.REPEAT, SpaceEventKind.RESTORE):
            active.add(memory_id)
        elif event.what is SpaceEventKind.REVISE:
            active -= {event.former_id or ""}
            active.add(memory_id)
            if event.former_id in entered:
                entered = entered - {event.former_id} | {memory_id}
        elif event.what is SpaceEventKind.ADD:
            entered.add(memory_id)
        elif event.what in (SpaceEventKind.EVICT, SpaceEventKind.REMOVE, SpaceEventKind.CLEAR):
            entered.discard(memory_id)
        elif event.what in (SpaceEventKind.FORGET, SpaceEventKind.PURGE):
            active.discard(memory_id)
            entered.discard(memory_id)
    return active, entered


@pytest.mark.timeout(180)
def test_a_thousand_operations_at_once_end_with_all_alike(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    agents = ("ada", "ben", "cleo", "dora")
    with germane.open(path, agent="ada", embedder=None, counter=COUNTER, durability="relaxed") as engine:
        space = engine.space("team", create=True)
        for agent in agents[1:]:
            space.join(agent)
        received: list[SpaceEvent] = []
        with space.follow(received.append, after=0) as following, started("work", path, agents) as children:
            for expected in ("ready", "done"):
                assert [hear(child) for child in children] == [expected] * len(agents)
                for child in children:
                    tell(child)
            seen = [json.loads(hear(child)) for child in children]
            assert [child.wait(SURELY) for child in children] == [0] * len(agents)
            last = space.events()[-1].number
            while received[-1].number < last:
                assert following.error is None
                time.sleep(0.005)
        own = json.loads(json.dumps(looks(space)))
        events = space.events()
        every = germane.Filter(statuses=(germane.Status.ACTIVE,))
        active = {memory.id for memory in space.memories(every)}
        entered = {item.memory.id for item in space.working_set()}
        assert space.doctor() == ()

    assert all(each == own for each in seen)
    assert tuple(received) == events
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert replayed(events) == (active, entered)
    assert {event.by for event in events} == set(agents)
    assert len(events) > 500


@pytest.mark.timeout(120)
def test_every_add_evict_forget_and_clear_reaches_another_process(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    cleared = Event()
    received: list[SpaceEvent] = []

    def hear_of(event: SpaceEvent) -> None:
        received.append(event)
        if event.what is SpaceEventKind.CLEAR:
            cleared.set()

    with germane.open(path, agent="ada", embedder=None, counter=COUNTER, durability="relaxed") as engine:
        space = engine.space("team", create=True)
        with space.follow(hear_of), started("move", path, ["ben"]) as (child,):
            one, two, three = json.loads(hear(child))
            assert cleared.wait(SURELY)
            assert child.wait(SURELY) == 0

    assert [(event.what, event.by, event.memory_id) for event in received] == [
        (SpaceEventKind.JOIN, "ben", None),
        (SpaceEventKind.REMEMBER, "ben", one),
        (SpaceEventKind.REMEMBER, "ben", two),
        (SpaceEventKind.REMEMBER, "ben", three),
        (SpaceEventKind.RESIZE, "ben", None),
        (SpaceEventKind.ADD, "ben", one),
        (SpaceEventKind.ADD, "ben", two),
        (SpaceEventKind.EVICT, "ben", one),
        (SpaceEventKind.ADD, "ben", three),
        (SpaceEventKind.FORGET, "ben", two),
        (SpaceEventKind.CLEAR, "ben", three),
    ]


@pytest.mark.timeout(120)
def test_a_process_whose_agent_was_put_out_writes_no_more(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with germane.open(path, agent="ada", embedder=None, counter=COUNTER, durability="relaxed") as engine:
        space = engine.space("team", create=True)
        for agent in ("ben", "cleo"):
            space.join(agent)
        with started("write", path, ["ben", "cleo"]) as children:
            assert [hear(child) for child in children] == ["writing", "writing"]
            space.leave("ben")
            space.leave("cleo")
            counts = [int(hear(child)) for child in children]
            assert [child.wait(SURELY) for child in children] == [0, 0]
        events = space.events()
        stored = space.stats().memories

    for agent in ("ben", "cleo"):
        out = next(
            event.number for event in events if (event.what, event.agent) == (SpaceEventKind.LEAVE, agent)
        )
        assert all(event.number < out for event in events if event.by == agent)
    assert stored == sum(counts)

"""What members of a space hold in mind together, and what they hear of each other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event

import pytest

import germane
from germane import Engine, Space
from germane.errors import UnknownSpace
from germane.spaces import SpaceEvent, SpaceEventKind
from germane.stores import Following

SURELY = 30.0
"""Seconds in which even a busy machine has done it; nothing waits so long."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agents.db"


@pytest.fixture
def ada(path: Path) -> Iterator[Engine]:
    with germane.open(path, agent="ada") as engine:
        yield engine


@pytest.fixture
def ben(path: Path) -> Iterator[Engine]:
    with germane.open(path, agent="ben") as engine:
        yield engine


@pytest.fixture
def team(ada: Engine) -> Space:
    return ada.space("team", create=True)


def test_members_hold_the_same_in_mind(ada: Engine, ben: Engine, team: Space) -> None:
    ben.space("team").join()
    theirs = ben.space("team").working_set()
    memory = team.remember("The demo is on Tuesday.")
    team.working_set().add(memory)

    assert [one.memory for one in theirs] == [memory]
    assert memory.content in theirs.assemble().text
    theirs.remove(memory)
    assert len(team.working_set()) == len(ada.working_set()) == 0
    assert [(move.kind.value, move.by) for move in theirs.changes()] == [("add", "ada"), ("remove", "ben")]
    with pytest.raises(germane.NotFound):
        theirs.add(ben.remember("Ben's own."))


def test_a_reader_holds_nothing_in_mind_for_others(ben: Engine, team: Space) -> None:
    memory = team.remember("The demo is on Tuesday.")
    team.working_set().add(memory)
    space = ben.space("team")
    space.join(rights="read")

    assert [one.memory for one in space.working_set()] == [memory]
    working = space.working_set()
    for change in (
        partial(working.add, memory),
        partial(working.evict, 1),
        working.clear,
        partial(working.resize, 5),
    ):
        with pytest.raises(germane.NotAllowed, match="may only read"):
            change()
    assert [one.memory for one in team.working_set()] == [memory]


def test_who_left_sees_no_more_of_the_content(ben: Engine, team: Space) -> None:
    ben.space("team").join()
    working = ben.space("team").working_set()
    working.add(team.remember("The demo is on Tuesday."))
    ben.space("team").leave()
    for read in (working.items, working.assemble, working.changes, lambda: working.tokens):
        with pytest.raises(germane.NotAllowed, match="ben"):
            read()


def test_following_hears_of_all_members_and_ends_with_the_membership(ben: Engine, team: Space) -> None:
    first = team.remember("One.")
    ben.space("team").join()
    events: list[SpaceEvent] = []
    heard = Event()

    def hear(event: SpaceEvent) -> None:
        events.append(event)
        if event.what is SpaceEventKind.FORGET:
            heard.set()

    with ben.space("team").follow(hear) as following:
        second = team.remember("Two.")
        ben.space("team").forget(first.id)
        assert heard.wait(SURELY)
        assert [(event.what, event.by, event.memory_id) for event in events] == [
            (SpaceEventKind.REMEMBER, "ada", second.id),
            (SpaceEventKind.FORGET, "ben", first.id),
        ]
        ben.space("team").leave()
        wait_for_the_end_of(following)
    assert isinstance(following.error, germane.NotAllowed)
    assert len(events) == 2


def test_following_begins_where_it_is_set_and_ends_when_its_space_does(ada: Engine, team: Space) -> None:
    team.remember("One.")
    every: list[SpaceEvent] = []
    following = team.follow(every.append, after=0)
    team.disband(confirm=True)
    wait_for_the_end_of(following)
    assert isinstance(following.error, UnknownSpace)
    space = ada.space("team", create=True)
    fails = space.follow(lambda event: [][event.number], after=0)
    wait_for_the_end_of(fails)
    assert isinstance(fails.error, IndexError)
    with space:
        idle = space.follow(every.append)
    assert not idle.is_alive
    assert idle.error is None
    with pytest.raises(germane.InvalidInput, match="every"):
        space.follow(every.append, every=0)


@pytest.mark.usefixtures("team")
def test_a_stranger_follows_nothing(ben: Engine) -> None:
    with pytest.raises(germane.NotAllowed, match="ben"):
        ben.space("team").follow(print)


def test_closing_the_engine_ends_what_follows(path: Path) -> None:
    engine = germane.open(path, agent="ada")
    space = engine.space("team", create=True)
    following = space.follow(print)
    engine.close()
    assert not following.is_alive
    assert following.error is None


def wait_for_the_end_of(following: Following[SpaceEvent]) -> None:
    """Wait until no event arrives any more."""
    end = time.monotonic() + SURELY
    while following.is_alive and time.monotonic() < end:
        time.sleep(0.005)
    assert not following.is_alive

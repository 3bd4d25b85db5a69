"""Following a working set: each move is reported once and in order, until it is closed or something fails."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

import germane
from germane import Engine
from germane.working_sets import WorkingSetEvent


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None, counter="estimate") as opened:
        yield opened


def test_following_tells_each_move_once_in_order(engine: Engine) -> None:
    working, events, enough = engine.working_set(), [], Event()

    def tell(move: WorkingSetEvent) -> None:
        events.append(move)
        if len(events) == 30:
            enough.set()

    one = engine.remember("one")
    working.add(one)
    engine.working_set("other").add(one)
    with working.follow(tell) as following:
        for _ in range(29):
            working.touch(one)
        working.remove(one)
        assert enough.wait(10)
    following.close()
    assert [following.is_alive, following.error] == [False, None]
    assert [move.kind.value for move in events] == ["touch"] * 29 + ["remove"]
    assert events == list(working.changes(after=1))
    working.add(one)
    assert len(events) == 30


def test_following_ends_with_what_the_callback_raises(engine: Engine) -> None:
    working = engine.working_set()
    following = working.follow(lambda _: 1 / 0, after=0, every=0.001)
    working.add(engine.remember("one"))
    while following.is_alive:
        Event().wait(0.001)
    assert isinstance(following.error, ZeroDivisionError)
    following.close()
    following.close()

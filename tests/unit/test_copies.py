"""What an engine gives can be copied and pickled: for a cache, a queue, or another process."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

import germane
from germane import Draft, Engine


def _remembered(engine: Engine) -> Any:
    return engine.remember("Redis is the cache.", metadata={"host": "a", "ports": [1, {"b": 2}]})


def _assembled(engine: Engine) -> Any:
    _remembered(engine)
    return engine.assemble("Which cache?", budget=500)


def _recalled(engine: Engine) -> Any:
    _remembered(engine)
    return engine.recall("Which cache?")


def _requested(engine: Engine) -> Any:
    _remembered(engine)
    talk = engine.conversation("talk")
    talk.append({"role": "user", "content": "Which cache?"})
    return engine.request(talk, memory="layered", window=2000, reserve=500)


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - It comes from the line itself.


@pytest.mark.parametrize(
    "made",
    [_remembered, _assembled, _recalled, _requested, lambda _: Draft(content="A text."), Engine.stats],
)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, _pickled])
def test_a_copy_is_equal(made: Callable[[Engine], Any], copied: Callable[[Any], Any]) -> None:
    with germane.open(":memory:", agent="ada") as engine:
        original = made(engine)
    again = copied(original)
    assert again == original
    assert repr(again) == repr(original)


def test_a_mapping_stays_what_it_was() -> None:
    unchangeable, plain = Draft(content="A text."), Draft(content="A text.", metadata={"host": "a"})
    again = [_pickled(one) for one in (unchangeable, plain)]
    assert [type(one.metadata) for one in again] == [MappingProxyType, dict]
    assert again == [unchangeable, plain]


def test_a_copy_shares_nothing_that_can_be_changed() -> None:
    with germane.open(":memory:", agent="ada") as engine:
        memory = _remembered(engine)
    copy.deepcopy(memory).metadata["ports"].append(3)
    assert memory.metadata["ports"] == [1, {"b": 2}]

"""The entries of a trace, written when they are looked at: they equal a tuple of them in every respect."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import germane
from germane import Context, Reason

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def context() -> Iterator[Context]:
    with germane.open(":memory:", agent="a", clock=lambda: NOW) as engine:
        for number in range(12):
            engine.remember(f"The cache of part {number} lives in Redis.")
        engine.remember("Bread is baked in the morning.")
        yield engine.assemble("Where does the cache live?", budget=150)


def test_its_length_is_known_before_it_is_written(context: Context) -> None:
    account = context.trace.entries
    assert not isinstance(account, tuple)
    assert len(account) == 13
    assert len(list(account)) == 13


def test_it_tells_of_what_is_in_of_what_did_not_fit_and_of_what_the_gate_left_out(context: Context) -> None:
    assert {entry.reason for entry in context.trace.entries} == {
        None,
        Reason.OVER_BUDGET,
        Reason.STOPPED,
        Reason.NOT_RELEVANT,
    }
    assert [entry.memory_id for entry in context.trace.included] == [one.memory.id for one in context.items]


def test_it_equals_the_tuple_of_its_entries_and_reads_like_it(context: Context) -> None:
    account = context.trace.entries
    written = tuple(account)
    assert account == written
    assert written == account
    assert account != written[1:]
    unequal: object = list(written)  # As a tuple, it never equals a list.
    assert account != unequal
    assert (account[0], account[-1], account[2:4]) == (written[0], written[-1], written[2:4])
    assert repr(account) == repr(written)
    assert pickle.loads(pickle.dumps(account)) == written  # noqa: S301 - Made here.
    assert type(pickle.loads(pickle.dumps(account))) is tuple  # noqa: S301 - As above.
    with pytest.raises(IndexError):
        account[len(written)]
    assert replace(context.trace, entries=written) == context.trace


def test_what_a_request_leaves_out_is_written_when_it_is_looked_at_too() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        talk = [{"role": "user", "content": f"Question {number}: {'word ' * 40}"} for number in range(9)]
        left_out = engine.request(talk, window=300, reserve=50).left_out
    written = tuple(left_out)
    assert not isinstance(left_out, tuple)
    assert len(left_out) == len(written) > 1
    assert hash(left_out) == hash(written)

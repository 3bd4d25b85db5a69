"""Candidates in columns are the candidates that they stand for."""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime

import numpy as np
import pytest

import germane
from germane import InvalidInput
from germane.protocols import Candidate
from germane.stores import CandidateTable
from germane.testing.fakes import make_memory
from support.found import FoundStore, recalled_of

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MEMORIES = [make_memory(name).evolve(id=name) for name in ("a", "b", "c")]
CANDIDATES = (
    Candidate(memory=MEMORIES[0], signals={"lexical": 2.0, "semantic": 0.5}),
    Candidate(memory=MEMORIES[1], signals={"lexical": 0.0}),
    Candidate(memory=MEMORIES[2], signals={"lexical": 1.0, "semantic": -0.25}),
)
COLUMNS = {"lexical": np.array([2.0, 0.0, 1.0]), "semantic": np.array([0.5, np.nan, -0.25])}


def test_columns_are_the_candidates_that_they_stand_for() -> None:
    slate = CandidateTable(MEMORIES, COLUMNS)
    assert slate[1] == CANDIDATES[1]
    assert slate == CANDIDATES == CandidateTable.of(CANDIDATES)
    assert tuple(slate) == CANDIDATES
    assert [type(value) for one in slate for value in one.signals.values()] == [float] * 5
    assert copy(slate) == CANDIDATES


def test_what_is_looked_at_twice_is_made_once() -> None:
    slate = CandidateTable(MEMORIES, COLUMNS)
    assert all(one is again for one, again in zip(slate, slate, strict=True))


def test_some_of_a_slate_are_those_candidates() -> None:
    some = CANDIDATES[0], CANDIDATES[2]
    assert CandidateTable(MEMORIES, COLUMNS).at([0, 2]) == some == CandidateTable.of(CANDIDATES).at([0, 2])
    assert CandidateTable.of(CANDIDATES).at([0, 2])[1] is CANDIDATES[2]


def test_columns_of_candidates_hold_what_each_has() -> None:
    made = CandidateTable.of(CANDIDATES)
    assert made.memories == MEMORIES
    assert {name: column.tolist()[::2] for name, column in made.signals.items()} == {
        "lexical": [2.0, 1.0],
        "semantic": [0.5, -0.25],
    }
    assert np.isnan(made.signals["semantic"][1])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_signal_that_is_no_number_is_refused_by_name(value: float) -> None:
    wrong = Candidate(memory=MEMORIES[0], signals={"lexical": value, "coverage": 1.0})
    with pytest.raises(InvalidInput, match="lexical signal of memory 'a'"):
        recalled_of([wrong, CANDIDATES[1]], clock=lambda: NOW)
    with (
        germane.open(FoundStore([wrong, CANDIDATES[1]]), embedder=None) as engine,
        pytest.raises(InvalidInput, match="lexical signal of memory 'a'"),
    ):
        engine.assemble("What is a?", plan="scoped")

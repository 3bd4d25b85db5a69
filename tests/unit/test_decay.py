"""The weight of age: each shape on exact inputs, and clocks that run backwards."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Literal, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.errors import InvalidInput
from germane.ranking import Decay
from germane.testing.fakes import START, make_memory
from germane.working_sets import AgeBasis, WorkingSetItem

Shape: TypeAlias = Literal["hyperbolic", "exponential", "none"]
HOURS = st.floats(min_value=0.001, max_value=1e6)
AGES = st.floats(min_value=-1e6, max_value=1e6)


@pytest.mark.parametrize(
    ("hours", "weight"),
    [(0, 1.0), (1, 0.5), (2, 1 / 3), (3, 0.25), (24, 0.04), (120, 1 / 121), (1 / 6, 6 / 7)],
)
def test_the_hyperbolic_shape_is_one_over_one_plus_hours(hours: float, weight: float) -> None:
    assert Decay().weight(hours) == pytest.approx(weight, abs=1e-12)


@pytest.mark.parametrize(("hours", "weight"), [(0, 1.0), (1, 0.5), (2, 0.25), (3, 0.125), (10, 2**-10)])
def test_the_exponential_shape_halves_again_and_again(hours: float, weight: float) -> None:
    assert Decay(shape="exponential").weight(hours) == pytest.approx(weight, abs=1e-12)


@pytest.mark.parametrize("shape", ["hyperbolic", "exponential"])
def test_half_is_left_at_the_age_that_was_named(shape: Shape) -> None:
    assert Decay(shape=shape, hours=0.5).weight(0.5) == 0.5
    assert Decay(shape=shape, hours=168.0).weight(168.0) == 0.5


def test_shorter_hours_decay_faster() -> None:
    assert Decay(hours=0.5).weight(1.0) == pytest.approx(1 / 3, abs=1e-12)


def test_no_decay_keeps_the_weight() -> None:
    assert Decay(shape="none").weight(1e9) == 1.0


@given(HOURS, st.lists(AGES, max_size=40), st.sampled_from(["hyperbolic", "exponential", "none"]))
def test_weights_of_many_are_those_of_each(hours: float, ages: list[float], shape: Shape) -> None:
    decay = Decay(shape=shape, hours=hours)
    assert decay.weights(np.array(ages, dtype=np.float64)).tolist() == [decay.weight(age) for age in ages]
    assert all(0.0 <= decay.weight(age) <= 1.0 for age in ages)


@given(HOURS, AGES, AGES, st.sampled_from(["hyperbolic", "exponential", "none"]))
def test_the_older_never_weighs_more(hours: float, one: float, other: float, shape: Shape) -> None:
    decay = Decay(shape=shape, hours=hours)
    assert decay.weight(max(one, other)) <= decay.weight(min(one, other))


@pytest.mark.parametrize("age", [-0.5, -1.0, -2.0, -1e9])
@pytest.mark.parametrize("shape", ["hyperbolic", "exponential", "none"])
def test_what_lies_in_the_future_is_new(age: float, shape: Shape) -> None:
    assert Decay(shape=shape).weight(age) == 1.0


def test_each_basis_names_its_moment() -> None:
    hour = timedelta(hours=1)
    memory = make_memory(created_at=START, updated_at=START + hour)
    item = WorkingSetItem(
        memory=memory, entered_at=START + 2 * hour, touched_at=START + 3 * hour, order=1, tokens=1
    )
    now = START + 10 * hour
    ages = {basis: (now - item.moment(basis)) / hour for basis in AgeBasis}
    assert ages == {
        AgeBasis.CREATED: 10.0,
        AgeBasis.UPDATED: 9.0,
        AgeBasis.ENTERED: 8.0,
        AgeBasis.ACCESSED: 7.0,
    }
    used = item.evolve(memory=memory.evolve(accessed_at=START + 4 * hour))
    assert used.moment(AgeBasis.ACCESSED) == START + 4 * hour


def test_a_basis_can_be_named_by_its_word() -> None:
    assert Decay(basis="entered_at").basis is AgeBasis.ENTERED  # type: ignore[arg-type] # What users write.


@pytest.mark.parametrize("hours", [0, -1, math.nan, math.inf, -math.inf, True, "1"])
def test_hours_that_halve_nothing_are_refused(hours: float) -> None:
    with pytest.raises(InvalidInput, match="hours="):
        Decay(hours=hours)


def test_unknown_shapes_and_bases_are_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"'linear'.*hyperbolic, exponential, none"):
        Decay(shape="linear")  # type: ignore[arg-type] # What the record calls it.
    with pytest.raises(InvalidInput, match=r"'added_at'.*created_at, updated_at, accessed_at, entered_at"):
        Decay(basis="added_at")  # type: ignore[arg-type] # What the record calls it.

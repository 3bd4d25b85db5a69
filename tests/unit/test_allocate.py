"""Splitting a budget: exact sums, floors, ceilings, and the worked example of the scoped shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane import InvalidInput, InvalidPlan, Share
from germane.packing.sections import allocate

shares = st.lists(
    st.builds(
        lambda weight, floor, room: Share(
            weight=weight, floor=floor, ceiling=None if room is None else floor + room
        ),
        st.integers(0, 5000),
        st.integers(0, 300),
        st.none() | st.integers(0, 4000),
    ),
    min_size=1,
    max_size=9,
)


def test_half_and_thirty_and_twenty_percent_of_eight_thousand() -> None:
    assert allocate(8000, [Share(weight=50), Share(weight=30), Share(weight=20)]) == (4000, 2400, 1600)


def test_the_remainder_goes_to_the_last_section() -> None:
    assert allocate(11, [Share(weight=50), Share(weight=30), Share(weight=20)]) == (5, 3, 3)


def test_a_floor_is_set_aside_first() -> None:
    assert allocate(100, [Share(weight=0, floor=40), Share(weight=1), Share(weight=2)]) == (40, 20, 40)


def test_floors_that_do_not_fit_shrink_in_proportion() -> None:
    assert allocate(30, [Share(weight=1, floor=40), Share(weight=1, floor=20)]) == (20, 10)


def test_what_a_ceiling_cuts_off_goes_to_the_others() -> None:
    assert allocate(100, [Share(weight=1, ceiling=10), Share(weight=1)]) == (10, 90)


def test_ceilings_everywhere_keep_tokens_back() -> None:
    assert sum(allocate(100, [Share(weight=1, ceiling=10), Share(weight=3, ceiling=20)])) == 30


def test_nothing_can_be_split_into_nothing() -> None:
    assert allocate(0, [Share(weight=2), Share(weight=3)]) == (0, 0)


def test_a_negative_total_is_refused() -> None:
    with pytest.raises(InvalidInput, match="-1 tokens"):
        allocate(-1, [Share(weight=1)])


def test_a_ceiling_below_its_floor_is_refused() -> None:
    with pytest.raises(InvalidPlan, match="floor 5 and ceiling 4"):
        Share(weight=1, floor=5, ceiling=4)


@given(total=st.integers(0, 20_000), parts=shares)
def test_shares_sum_to_the_total_unless_ceilings_keep_some_back(total: int, parts: list[Share]) -> None:
    given_ = allocate(total, parts)
    assert len(given_) == len(parts)
    assert all(part >= 0 for part in given_)
    fits = sum(share.floor for share in parts) <= total
    assert sum(given_) <= total
    if fits and any(share.weight and share.ceiling is None for share in parts):
        assert sum(given_) == total
    for part, share in zip(given_, parts, strict=True):
        if fits:
            assert part >= share.floor
        if share.ceiling is not None and fits:
            assert part <= share.ceiling


@given(total=st.integers(0, 20_000), parts=shares, more=st.integers(0, 500))
def test_a_larger_total_never_shrinks_all_shares(total: int, parts: list[Share], more: int) -> None:
    assert sum(allocate(total + more, parts)) >= sum(allocate(total, parts))

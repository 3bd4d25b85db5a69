"""Vectors in four bits: what rounding costs, and what a damaged file says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from germane.embedders.static import PackedVectors
from germane.errors import InvalidInput

NUMBERS = arrays(np.float32, (3, 4), elements=st.floats(-100, 100, width=16))


def packed(vectors: np.ndarray) -> PackedVectors:
    return PackedVectors.pack(vectors, words=("a", "b", "##c"), name="test", recipe="none")


@given(NUMBERS)
def test_rounding_moves_a_number_by_half_a_step_at_most(vectors: np.ndarray) -> None:
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 7
    back = packed(vectors).rows(np.arange(3))
    # The scale itself is rounded to float16, which moves the largest number a little more.
    assert np.all(np.abs(back - vectors) <= 0.51 * steps + 1e-6)


@given(NUMBERS)
def test_the_file_brings_back_the_same(vectors: np.ndarray) -> None:
    one = packed(vectors)
    other = PackedVectors.from_bytes(one.to_bytes())
    assert (other.name, other.recipe, other.words, other.dimension) == ("test", "none", ("a", "b", "##c"), 4)
    assert np.array_equal(other.rows(np.array([2, 0, 2])), one.rows(np.array([2, 0, 2])))
    assert other.to_bytes() == one.to_bytes()


@pytest.mark.parametrize("cut", [slice(0, -1), slice(0, 30), slice(5, None), slice(0, 0)])
def test_a_damaged_file_is_refused(cut: slice) -> None:
    data = packed(np.ones((3, 4), dtype=np.float32)).to_bytes()
    with pytest.raises(InvalidInput, match="acked vectors"):
        PackedVectors.from_bytes(data[cut])

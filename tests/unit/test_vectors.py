"""Vectors in memory: exact cosines, wherever a row lies and whatever was removed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed
from germane.retrieval.vectors import ScaledRows, VectorRows, as_stored, as_vectors, unit_rows

DIMENSION = 8


def unit_vectors(count: int, *, seed: int = 3, dimension: int = DIMENSION) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).normal(size=(count, dimension))
    return unit_rows(as_vectors(drawn, name="drawn", texts=count, dimension=dimension))


def packed(vectors: NDArray[np.float32]) -> list[bytes]:
    return [row.tobytes() for row in as_stored(vectors)]


def rows_of(vectors: NDArray[np.float32], ordinals: list[int] | None = None) -> VectorRows:
    rows = VectorRows(vectors.shape[1])
    rows.put(np.array(ordinals or range(len(vectors)), dtype=np.int64), packed(vectors))
    return rows


def ranked(rows: VectorRows, vector: NDArray[np.float32], limit: int, *, size: int) -> list[int]:
    """The nearest `limit` of the first `size` documents, equal ones by ordinal."""
    compared = rows.compare(vector)
    near = compared.nearest(np.ones(size, dtype=np.bool_), limit)
    order = np.lexsort((near, -compared.cosines(near)))[:limit]
    return [int(each) for each in near[order]]


def checked(vectors: object, *, texts: int = 2) -> NDArray[np.float32]:
    return unit_rows(as_vectors(vectors, name="some", texts=texts, dimension=2))


def test_rows_come_out_at_unit_length() -> None:
    unit = checked([[3.0, 4.0], [0.0, -2.0]])
    assert unit.dtype == np.float32
    assert np.allclose(unit, [[0.6, 0.8], [0.0, -1.0]])
    assert np.allclose(np.linalg.norm(checked([[1e30, 1e-30]], texts=1), axis=1), 1.0)
    assert checked(np.array([[3, 4]]), texts=1).tolist() == unit[:1].tolist()
    assert checked(np.zeros((0, 2)), texts=0).shape == (0, 2)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0]], "1 vectors for 2 texts"),
        ([[1.0], [2.0]], "vectors of 1 numbers, and declares a dimension of 2"),
        ([1.0, 2.0], r"shape \(2,\)"),
        ([[1.0, 2.0], [np.nan, 1.0]], "NaN, .* in vector 1 "),
        ([[np.inf, 2.0], [1.0, 1.0]], "an infinite number .* in vector 0 "),
        ([[1.0, 2.0], [0.0, 0.0]], "length 0 for text 2 of 2"),
        ([["a", "b"], ["c", "d"]], "numbers are needed"),
        ([[1.0], [1.0, 2.0]], "no table of numbers"),
        (None, "numbers are needed"),
        ([[True, False], [True, True]], "numbers are needed"),
    ],
)
def test_what_is_no_embedding_is_refused(vectors: object, message: str) -> None:
    with pytest.raises(EmbeddingFailed, match=message):
        checked(vectors)


def test_the_nearest_come_first() -> None:
    vectors = unit_vectors(50)
    rows = rows_of(vectors)
    exact = vectors.astype(np.float64) @ vectors[7].astype(np.float64)
    assert ranked(rows, vectors[7], 5, size=50) == np.argsort(-exact)[:5].tolist()
    assert np.allclose(rows.compare(vectors[7]).cosines(np.arange(50)), exact, atol=2e-3)


def test_ties_are_all_among_the_nearest() -> None:
    vectors = np.repeat(unit_vectors(1), 9, axis=0)
    rows = rows_of(vectors, [4, 1, 8, 0, 3, 7, 2, 6, 5])
    for limit in range(1, 10):
        near = rows.compare(vectors[0]).nearest(np.ones(9, dtype=np.bool_), limit)
        assert sorted(near.tolist()) == list(range(9))


@given(st.data())
def test_changed_rows_are_the_rows_of_what_is_left(data: st.DataObject) -> None:
    vectors = unit_vectors(12)
    changed = VectorRows(DIMENSION)
    present: dict[int, int] = {}
    for ordinal, row, remove in data.draw(
        st.lists(st.tuples(st.integers(0, 20), st.integers(0, 11), st.booleans()), max_size=40)
    ):
        if remove:
            present.pop(ordinal, None)
            changed.remove(ordinal)
        else:
            present[ordinal] = row
            changed.put(np.array([ordinal]), packed(vectors[row : row + 1]))
    fresh = VectorRows(DIMENSION)
    fresh.put(
        np.array(sorted(present), dtype=np.int64),
        packed(vectors[[present[each] for each in sorted(present)]]),
    )
    everything = np.arange(25)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=25, max_size=25)), dtype=np.bool_)
    found, expected = changed.compare(vectors[0]), fresh.compare(vectors[0])
    assert found.cosines(everything).tobytes() == expected.cosines(everything).tobytes()
    assert {each for each in everything.tolist() if not np.isnan(found.cosines(np.array([each]))[0])} == set(
        present
    )
    assert set(found.nearest(mask, 25).tolist()) == {each for each in present if mask[each]}


def test_a_cosine_is_the_same_among_few_and_among_all() -> None:
    vectors = unit_vectors(500, dimension=256)
    rows = rows_of(vectors)
    everything = rows.compare(vectors[3]).cosines(np.arange(500))
    for few in ([3], [1, 499], list(range(0, 500, 7))):
        # Each question works its cosines out anew, and once: what it knows mustn't stand in for the others.
        compared = rows.compare(vectors[3])
        assert compared.cosines(np.array(few)).tolist() == everything[few].tolist()
        assert compared.cosines(np.arange(500)).tobytes() == everything.tobytes()
        mask = np.zeros(500, dtype=np.bool_)
        mask[few] = True
        assert sorted(compared.nearest(mask, 500).tolist()) == few


def test_what_has_no_vector_has_no_cosine() -> None:
    compared = rows_of(unit_vectors(3), [5, 6, 7]).compare(unit_vectors(3)[1])
    found = compared.cosines(np.array([7, 99, 6, 0]))
    assert np.isnan(found).tolist() == [False, True, False, True]
    assert pytest.approx(1.0, abs=2e-3) == found[2]
    assert np.isnan(compared.rough(9)).tolist() == [True] * 5 + [False] * 3 + [True]


def test_a_mixture_is_compared_as_one_vector() -> None:
    vectors = unit_vectors(4)
    compared = rows_of(vectors).compare(vectors[0])
    ordinals = np.array([[1, 2, -1], [-1, 99, -1], [3, -1, -1]])
    weights = np.array([[1.0, 0.5, 9.0], [1.0, 1.0, 1.0], [2.0, 1.0, 1.0]])
    mixed = vectors[1] + 0.5 * vectors[2]
    found = compared.mixed(ordinals, weights)
    assert found[0] == pytest.approx(float(mixed @ vectors[0] / np.linalg.norm(mixed)), abs=2e-3)
    assert np.isnan(found[1])
    assert found[2] == pytest.approx(float(vectors[3] @ vectors[0]), abs=2e-3)


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_memory_grows_with_the_rows(size: int) -> None:
    rows = VectorRows(DIMENSION)
    for ordinal, vector in enumerate(packed(unit_vectors(size))):
        rows.put(np.array([ordinal]), [vector])
    assert 2 * DIMENSION * size <= rows.nbytes <= 2 * (2 * DIMENSION + 16) * (size + 1)


def test_no_rows_find_nothing() -> None:
    rows = VectorRows(DIMENSION)
    rows.remove(4)
    rows.put(np.empty(0, dtype=np.int64), [])
    compared = rows.compare(unit_vectors(1)[0])
    assert compared.nearest(np.ones(10, dtype=np.bool_), 10).size == 0
    assert np.isnan(compared.cosines(np.arange(3))).all()


@given(seed=st.integers(0, 10_000), count=st.integers(1, 80), dimension=st.sampled_from([8, 128, 300]))
def test_small_and_wide_numbers_give_the_same_cosines(seed: int, count: int, dimension: int) -> None:
    vectors = unit_vectors(count + 1, seed=seed, dimension=dimension)
    small, wide = VectorRows(dimension), rows_of(vectors[:-1])
    stored = as_stored(vectors[:-1])
    rows = ScaledRows.of(stored)
    for each in rows:
        each.flags.writeable = False
    small.take(np.arange(count), rows)
    wide.widen()
    exact = [
        round(float((each.astype(np.float32) * vectors[-1]).sum(dtype=np.float64)), 6) for each in stored
    ]
    for found in (small, wide):
        compared = found.compare(vectors[-1])
        assert compared.cosines(np.arange(count)).tolist() == exact
        assert np.allclose(compared.rough(count), exact, atol=1e-5)
        found.remove(0)
        found.put(np.array([count]), packed(vectors[:1]))
        assert np.isnan(found.compare(vectors[-1]).cosines(np.array([0]))).all()
        assert found.compare(vectors[-1]).cosines(np.array([count])).tolist() == exact[:1]


@given(seed=st.integers(0, 10_000), dimension=st.sampled_from([2, 127, 128, 768]), degrees=st.integers(1, 30))
def test_a_stored_vector_is_near_what_was_given_and_stays_as_it_is(
    seed: int, dimension: int, degrees: int
) -> None:
    """Of normal numbers and of those with a few that are far greater than the others."""
    drawn = np.random.default_rng(seed).standard_t(degrees, size=(20, dimension))
    vectors = unit_rows(drawn.astype(np.float32))
    stored = as_stored(vectors)
    assert as_stored(stored).tobytes() == as_stored(stored.astype(np.float32)).tobytes() == stored.tobytes()
    assert ScaledRows.of(stored).wide().tobytes() == stored.astype(np.float32).tobytes()
    products = np.einsum("ij,kj->ik", stored, vectors, dtype=np.float64)
    exact = np.einsum("ij,kj->ik", vectors, vectors, dtype=np.float64)
    assert np.allclose(products, exact, atol=0.02)


@pytest.mark.parametrize("most", [0.5, 0.9960937, 0.99609375, 0.9999999, 1.0, 2**-6])
def test_the_largest_number_is_no_less_for_being_near_a_power_of_two(most: float) -> None:
    vector = np.full((1, 256), 1e-3, dtype=np.float32)
    vector[0, 0] = -most
    assert as_stored(vector)[0, 0] == pytest.approx(-most, rel=1 / 128)


def test_vectors_of_128_dimensions_take_a_byte_for_each() -> None:
    rows = rows_of(unit_vectors(100, dimension=256))
    assert 100 * 256 <= rows.nbytes <= 2 * 100 * (256 + 20)
    widened = rows_of(unit_vectors(100, dimension=256))
    widened.widen()
    assert widened.nbytes > 3 * rows.nbytes

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from germane.errors import EmbeddingFailed, InvalidInput
from germane.retrieval.vectors import Similar, VectorTable, normalise, validate

DIMENSION = 8


def unit_vectors(count: int, *, seed: int = 3, dimension: int = DIMENSION) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).normal(size=(count, dimension))
    return validate(drawn, rows=count, dimension=dimension)


def pairs(found: Similar) -> list[tuple[int, float]]:
    return list(zip(found.ordinals.tolist(), found.cosines.tolist(), strict=True))


def test_rows_come_out_at_unit_length() -> None:
    unit = validate([[3.0, 4.0], [0.0, -2.0]], rows=2, dimension=2)
    assert unit.dtype == np.float32
    assert np.allclose(unit, [[0.6, 0.8], [0.0, -1.0]])
    assert np.allclose(np.linalg.norm(validate([[1e30, 1e-30]], rows=1, dimension=2), axis=1), 1.0)
    assert validate(np.array([[3, 4]]), rows=1, dimension=2).tolist() == unit[:1].tolist()
    assert validate(np.zeros((0, 2)), rows=0, dimension=2).shape == (0, 2)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0]], r"shape \(1, 2\) for 2 texts"),
        ([[1.0], [2.0]], r"shape \(2, 1\)"),
        ([1.0, 2.0], r"shape \(2,\)"),
        ([[1.0, 2.0], [np.nan, 1.0]], "length nan for text 2 of 2"),
        ([[np.inf, 2.0], [1.0, 1.0]], "length inf for text 1 of 2"),
        ([[1.0, 2.0], [0.0, 0.0]], "length 0 for text 2 of 2"),
        ([["a", "b"], ["c", "d"]], "no numbers"),
        ([[1.0], [1.0, 2.0]], "no numbers"),
        (None, "no numbers"),
        ([[True, False], [True, True]], "no numbers"),
    ],
)
def test_what_is_no_embedding_is_refused(vectors: object, message: str) -> None:
    with pytest.raises(EmbeddingFailed, match=message):
        validate(vectors, rows=2, dimension=2)


def test_a_callers_vector_is_normalised() -> None:
    assert np.allclose(normalise([3.0, 4.0], dimension=2), [0.6, 0.8])


@pytest.mark.parametrize(
    "vector", [[1.0], [0.0, 0.0], [np.nan, 1.0], "ab", None, [[1.0, 2.0]], [[1.0], [1.0, 2.0]]]
)
def test_a_callers_vector_that_points_nowhere_is_refused(vector: object) -> None:
    with pytest.raises(InvalidInput, match="2 finite numbers"):
        normalise(vector, dimension=2)


def test_the_nearest_come_first() -> None:
    vectors = unit_vectors(50)
    table = VectorTable.build(np.arange(50), vectors)
    found = table.search(vectors[7], 5)
    exact = vectors.astype(np.float64) @ vectors[7].astype(np.float64)
    assert found.ordinals.tolist() == np.argsort(-exact)[:5].tolist()
    assert np.allclose(found.cosines, np.sort(exact)[::-1][:5], atol=2e-3)
    assert found.cosines.dtype == np.float32
    assert table.search(vectors[7], 0).ordinals.size == 0
    assert table.search(vectors[7], 1000).ordinals.size == 50


def test_equal_ones_come_newest_first_whatever_the_limit() -> None:
    vectors = np.repeat(unit_vectors(1), 9, axis=0)
    table = VectorTable.build(np.array([4, 1, 8, 0, 3, 7, 2, 6, 5]), vectors)
    for limit in range(10):
        assert table.search(vectors[0], limit).ordinals.tolist() == list(range(8, -1, -1))[:limit]


@given(st.data())
def test_a_changed_table_is_the_table_of_what_is_left(data: st.DataObject) -> None:
    vectors = unit_vectors(12)
    table = VectorTable(DIMENSION)
    kept: dict[int, int] = {}
    for ordinal, row, remove in data.draw(
        st.lists(st.tuples(st.integers(0, 20), st.integers(0, 11), st.booleans()), max_size=40)
    ):
        if remove:
            kept.pop(ordinal, None)
            table.remove(ordinal)
        else:
            kept[ordinal] = row
            table.add(ordinal, vectors[row])
    fresh = VectorTable.build(
        np.array(sorted(kept), dtype=np.int64), vectors[[kept[each] for each in sorted(kept)]]
    )
    limit = data.draw(st.integers(0, 25))
    mask = np.array(data.draw(st.lists(st.booleans(), max_size=25)), dtype=np.bool_)
    assert len(table) == len(fresh) == len(kept)
    assert pairs(table.search(vectors[0], limit)) == pairs(fresh.search(vectors[0], limit))
    admitted = table.search(vectors[0], 25, mask)
    assert pairs(admitted) == [
        (ordinal, cosine)
        for ordinal, cosine in pairs(fresh.search(vectors[0], 25))
        if ordinal < len(mask) and mask[ordinal]
    ]


def test_few_admitted_score_as_among_all() -> None:
    vectors = unit_vectors(500, dimension=256)
    table = VectorTable.build(np.arange(500), vectors)
    everything = dict(pairs(table.search(vectors[3], 500)))
    for few in ([3], [1, 499], list(range(0, 500, 7))):
        mask = np.zeros(500, dtype=np.bool_)
        mask[few] = True
        found = table.search(vectors[3], 500, mask)
        assert sorted(found.ordinals.tolist()) == few
        assert all(everything[ordinal] == cosine for ordinal, cosine in pairs(found))


def test_cosines_of_named_ordinals() -> None:
    vectors = unit_vectors(3)
    table = VectorTable.build(np.array([5, 6, 7]), vectors)
    found = table.cosines(vectors[1], [7, 99, 6])
    assert np.isnan(found[1])
    assert pytest.approx(1.0, abs=2e-3) == found[2]
    assert found[0] == dict(pairs(table.search(vectors[1], 3)))[7]


def test_a_stored_vector_scores_as_the_one_just_added() -> None:
    vectors = unit_vectors(20)
    fresh = VectorTable.build(np.arange(20), vectors)
    stored = VectorTable.build(np.arange(20), vectors.astype(np.float16))
    assert pairs(fresh.search(vectors[0], 20)) == pairs(stored.search(vectors[0], 20))


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_memory_grows_with_the_table(size: int) -> None:
    table = VectorTable(DIMENSION)
    for ordinal, vector in enumerate(unit_vectors(size)):
        table.add(ordinal, vector)
    assert 4 * DIMENSION * size <= table.nbytes <= 4 * (4 * DIMENSION + 108) * (size + 64)


def test_what_does_not_fit_is_refused() -> None:
    table = VectorTable.build(np.array([1]), unit_vectors(1))
    with pytest.raises(InvalidInput, match=r"shape \(3,\) can't be added"):
        table.add(2, np.zeros(3, dtype=np.float32))
    with pytest.raises(InvalidInput, match="Ordinal -1"):
        table.add(-1, unit_vectors(1)[0])
    with pytest.raises(InvalidInput, match=r"shape \(3,\)"):
        table.search(np.zeros(3, dtype=np.float32), 1)
    with pytest.raises(InvalidInput, match="limit of -1"):
        table.search(unit_vectors(1)[0], -1)
    with pytest.raises(InvalidInput, match="dimension=0"):
        VectorTable(0)
    with pytest.raises(InvalidInput, match="don't match"):
        VectorTable.build(np.array([1, 2]), unit_vectors(1))
    with pytest.raises(InvalidInput, match="no two vectors"):
        VectorTable.build(np.array([1, 1]), unit_vectors(2))


def test_an_empty_table_finds_nothing() -> None:
    table = VectorTable(DIMENSION)
    table.remove(4)
    assert table.search(unit_vectors(1)[0], 10).ordinals.size == 0


def test_threads_share_a_table() -> None:
    vectors = unit_vectors(200)
    table = VectorTable.build(np.arange(100), vectors[:100])

    def work(number: int) -> None:
        table.add(100 + number, vectors[100 + number])
        table.remove(number)
        assert table.search(vectors[number], 10).ordinals.size == 10

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(100)))
    fresh = VectorTable.build(np.arange(100, 200), vectors[100:])
    assert pairs(table.search(vectors[0], 100)) == pairs(fresh.search(vectors[0], 100))

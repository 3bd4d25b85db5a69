"""Groups of what is related: by vectors, by words, by both; and what they cost in exactness."""

from __future__ import annotations

import math

import numpy as np
import pytest

from germane.errors import InvalidInput
from germane.model.memory import NOWHERE, Vector
from germane.ranking.similarity import MOST_GROUPS, cluster


def towards(*degrees: float) -> dict[str, Vector]:
    """Unit vectors in a plane, named v0, v1, and so on."""
    return {
        f"v{place}": np.array([math.cos(math.radians(each)), math.sin(math.radians(each))], dtype=np.float32)
        for place, each in enumerate(degrees)
    }


def test_vectors_that_point_alike_stand_together() -> None:
    vectors = towards(0, 90, 10, 100, 180)
    assert cluster(list(vectors), vectors=vectors) == [["v0", "v2"], ["v1", "v3"], ["v4"]]


def test_groups_come_by_their_best_member_and_members_in_rank_order() -> None:
    vectors = towards(0, 90, 10, 100, 180)
    order = ["v3", "v4", "v2", "v1", "v0"]
    assert cluster(order, vectors=vectors) == [["v3", "v1"], ["v4"], ["v2", "v0"]]


def test_likeness_is_to_the_best_of_the_group() -> None:
    vectors = towards(0, 50, 80)
    assert cluster(["v0", "v1", "v2"], vectors=vectors) == [["v0", "v1"], ["v2"]]
    assert cluster(["v1", "v0", "v2"], vectors=vectors) == [["v1", "v0", "v2"]]
    assert cluster(["v0", "v1", "v2"], vectors=vectors, least_cosine=0.8) == [["v0"], ["v1", "v2"]]


def test_words_in_common_stand_together_where_there_are_no_vectors() -> None:
    terms = {"a": {"redi", "cach"}, "b": {"deploy"}, "c": {"cach", "hit"}, "d": {"deploy", "rollback"}}
    groups = [["a", "c"], ["b", "d"]]
    assert cluster(list("abcd"), terms=terms) == groups
    assert cluster(list("abcd"), vectors={}, terms=terms) == groups
    assert cluster(list("abcd"), terms=terms, least_overlap=0.4) == [["a"], ["b", "d"], ["c"]]


def test_what_has_no_vector_joins_by_its_words() -> None:
    vectors = towards(0, 90, 10) | {"nowhere": NOWHERE}
    terms = {"v1": {"redi"}, "nowhere": {"redi"}, "words": {"redi", "x"}, "v2": {"redi"}}
    ids = ["v0", "nowhere", "v1", "v2", "words", "mute"]
    assert cluster(ids, vectors=vectors, terms=terms) == [
        ["v0", "v2"],
        ["nowhere", "v1", "words"],
        ["mute"],
    ]
    assert cluster(ids, vectors=vectors, terms=terms, by="vectors") == [
        ["v0", "v2"],
        ["nowhere"],
        ["v1"],
        ["words"],
        ["mute"],
    ]
    assert cluster(ids, vectors=vectors, terms=terms, by="terms") == [
        ["v0"],
        ["nowhere", "v1", "v2", "words"],
        ["mute"],
    ]


def test_nothing_known_leaves_the_order_as_it_is() -> None:
    assert cluster(["b", "a"]) == [["b"], ["a"]]
    assert cluster([]) == []


def by_definition(terms: dict[str, set[int]], least: float) -> list[list[str]]:
    """Each joins the first leader that it is like, or leads as long as more leaders are wanted."""
    groups: list[list[str]] = []
    leading = 0
    for memory_id, own in terms.items():
        for group in groups[:leading]:
            leader = terms[group[0]]
            if len(leader & own) / len(leader | own) >= least:
                group.append(memory_id)
                break
        else:
            groups.append([memory_id])
            leading = min(leading + 1, MOST_GROUPS)
    return groups


@pytest.mark.parametrize(("count", "vocabulary"), [(60, 40), (400, 100), (3000, 900)])
def test_blocks_and_tables_group_as_the_definition_does(count: int, vocabulary: int) -> None:
    chance = np.random.default_rng(7)
    terms = {f"m{n}": {int(one) for one in chance.integers(0, vocabulary, 4)} for n in range(count)}
    groups = by_definition(terms, 0.3)
    assert cluster(list(terms), terms=terms, least_overlap=0.3) == groups
    hashes = {name: np.array(sorted(own), dtype=np.uint32) for name, own in terms.items()}
    assert cluster(list(terms), terms=hashes, least_overlap=0.3) == groups
    mixed = {name: hashes[name] if number % 2 else own for number, (name, own) in enumerate(terms.items())}
    assert cluster(list(terms), terms=mixed, least_overlap=0.3) == groups


def test_only_so_many_groups_are_looked_for() -> None:
    vectors = {
        f"p{place}": np.eye(MOST_GROUPS + 10, dtype=np.float32)[place] for place in range(MOST_GROUPS + 10)
    }
    vectors["late twin"] = vectors[f"p{MOST_GROUPS + 5}"]
    vectors["early twin"] = vectors["p0"]
    found = cluster(list(vectors), vectors=vectors)
    assert found[0] == ["p0", "early twin"]
    assert ["late twin"] in found
    assert len(found) == MOST_GROUPS + 11


def test_what_can_not_be_grouped_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Unknown cluster_by 'embedding'. Known: auto, vectors, terms"):
        cluster(["a"], by="embedding")  # type: ignore[arg-type] # The decision record's word.
    with pytest.raises(InvalidInput, match="stands twice"):
        cluster(["a", "a"])
    for least in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(InvalidInput, match="least_cosine="):
            cluster(["a"], least_cosine=least)
    two = {"a": np.ones(2, dtype=np.float32), "b": np.ones(3, dtype=np.float32)}
    with pytest.raises(InvalidInput, match="Vectors of 2 and 3 dimensions"):
        cluster(["a", "b"], vectors=two)

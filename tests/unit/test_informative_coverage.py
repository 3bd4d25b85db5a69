"""How much of a question a memory covers, by words that are rare in English at large."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.errors import InvalidInput
from germane.retrieval.quality import IdfTable, coverage, coverages, english_idf, information
from germane.retrieval.tokenizer import index_terms, query_terms, term_hash

CHECKSUM = "08c3f99559ec5874c64c7237aeeb2e10671e340c32f54022c2ec4f6f4620436e"
SOME = ["redis", "cache", "latency", "house", "dog", "xqzt", "postgres", "decide", "time"]
WORDS = st.lists(st.sampled_from(SOME), max_size=6)


def covered(question: str, memory: str) -> float:
    return coverage(query_terms(question), index_terms(memory).hashes)


def idf(word: str) -> float:
    (found,) = english_idf().of(np.array([term_hash(query_terms(word)[0])], dtype=np.uint32))
    return float(found)


def test_the_package_carries_the_table_that_was_counted() -> None:
    data = files("germane.retrieval").joinpath("data", "idf-1.bin").read_bytes()
    assert sha256(data).hexdigest() == CHECKSUM
    assert len(data) <= 250_000


def test_a_question_says_what_its_distinct_words_say() -> None:
    assert information(query_terms("giraffe horse horses")) == pytest.approx(idf("giraffe") + idf("horse"))
    assert information(()) == 0.0


def test_rare_words_weigh_more() -> None:
    assert idf("person") < idf("horse") < idf("giraffe") < idf("xqztv")


def test_all_some_and_none_of_a_question() -> None:
    assert covered("Where does the giraffe sleep?", "The giraffe sleeps standing.") == pytest.approx(1)
    assert 0.5 < covered("The person with the giraffe?", "A giraffe is tall.") < 1
    assert 0 < covered("The person with the giraffe?", "A person came by.") < 0.5
    assert covered("Where does the giraffe sleep?", "Rent is due.") == 0
    assert covered("what is it?", "What is it?") == 0
    assert covered("giraffe", "") == 0


@given(WORDS, st.lists(WORDS, max_size=4))
def test_coverage_is_a_share_that_grows_with_the_memory(asked: list[str], memories: list[list[str]]) -> None:
    terms = query_terms(" ".join(asked))
    hashes = [index_terms(" ".join(memory)).hashes for memory in memories]
    shares = coverages(terms, hashes)
    assert shares.shape == (len(memories),)
    assert np.all((shares >= 0) & (shares <= 1 + 1e-9))
    for memory, share in zip(memories, shares.tolist(), strict=True):
        longer = index_terms(" ".join([*memory, "giraffe", *asked])).hashes
        assert coverage(terms, longer) == pytest.approx(1 if terms else 0)
        assert coverage(terms, longer) >= share - 1e-9
        assert coverage((*terms, *terms), index_terms(" ".join(memory)).hashes) == share


def test_a_table_is_written_and_read() -> None:
    table = IdfTable.of_counts(np.array([9, 3], dtype=np.uint32), np.array([50, 1]), texts=100)
    again = IdfTable.from_bytes(table.to_bytes())
    asked = np.array([3, 9, 4], dtype=np.uint32)
    assert np.array_equal(again.of(asked), table.of(asked))
    assert again.of(asked) == pytest.approx(np.log([101 / 1.5, 101 / 50.5, 101 / 0.5]), abs=0.026)


@pytest.mark.parametrize(
    "data", [b"", b"germane idf 1\n\x09", b"germane idf 1\n\x09abcdef", b"something else"]
)
def test_anything_else_is_no_table(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="No table"):
        IdfTable.from_bytes(data)

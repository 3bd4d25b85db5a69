"""The index of words: the terms of a text, BM25 of whole texts, and of windows of dialogue."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from germane.errors import InvalidInput
from germane.retrieval import bm25 as module
from germane.retrieval.bm25 import K1, UNIT, B, Postings, Scores, summed
from germane.retrieval.tokenizer import Forward, forms, index_terms, query_terms, term_hash
from germane.retrieval.windows import RADIUS, Sessions
from support.examples import examples

# Any code point at all, half surrogates too, and what the grammar of words is made of.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
WORDY = st.text(st.sampled_from("aBcDZ09é学ひカー서ทـْ'’-_./\\@,+# \n"), max_size=60)
TEXTS = ANY_TEXT | WORDY
PARTS = st.from_regex(r"[0-9]+|[A-Z]?[a-z]+|[A-Z]+s?|[A-Za-z0-9]{1,9}", fullmatch=True)


@given(TEXTS)
def test_every_text_has_a_well_formed_record(text: str) -> None:
    forward = index_terms(text)
    assert forward.hashes.dtype == np.uint32
    assert forward.frequencies.dtype == np.uint8
    assert forward.hashes.shape == forward.frequencies.shape
    assert np.all(forward.hashes[1:] > forward.hashes[:-1])
    assert np.all(forward.frequencies > 0)
    assert forward.length == int(forward.frequencies.sum())
    assert index_terms(text) == forward


@given(TEXTS)
def test_a_text_is_found_by_every_term_that_it_asks_for(text: str) -> None:
    terms = query_terms(text)
    assert len(set(terms)) == len(terms)
    assert all(terms)
    assert {term_hash(term) for term in terms} <= set(index_terms(text).hashes.tolist())


@given(TEXTS, TEXTS)
def test_texts_on_lines_of_their_own_do_not_change_each_other(first: str, second: str) -> None:
    together = index_terms(f"{first}\n{second}")
    alone = set(index_terms(first).hashes.tolist()) | set(index_terms(second).hashes.tolist())
    assert set(together.hashes.tolist()) == alone


@given(PARTS)
def test_a_plain_word_is_known_by_what_the_levels_below_find_in_it(word: str) -> None:
    # Only a possessive sends a plain word through all levels, and they take its ending off.
    assert list(forms(word)) == list(forms(f"{word}'s"))


@given(st.lists(PARTS, min_size=2, max_size=4))
def test_a_name_is_known_as_a_whole_and_by_each_of_its_parts(parts: list[str]) -> None:
    whole, *rest = forms("_".join(parts))
    assert whole.text.replace("-", "") == "".join(parts).lower()
    assert rest == [form for part in parts for form in forms(part)]


def forward_of(words: Sequence[int]) -> Forward:
    hashes, counts = np.unique(np.array(words, dtype=np.uint32), return_counts=True)
    return Forward(
        hashes=hashes.astype(np.uint32),
        frequencies=np.minimum(counts, 255).astype(np.uint8),
        length=min(len(words), 65_535),
    )


def built(documents: dict[int, list[int]]) -> Postings:
    return Postings.build(
        np.array(list(documents), dtype=np.int64), [forward_of(words) for words in documents.values()]
    )


def textbook(documents: dict[int, list[int]], query: Sequence[int]) -> tuple[dict[int, float], float]:
    """BM25 and its bound as one would write them down, one document after another."""
    if not documents:
        return {}, 0.0
    count = len(documents)
    average = sum(map(len, documents.values())) / count or 1.0
    scores: dict[int, float] = {}
    limit = 0.0
    for term in set(query):
        having = sum(1 for words in documents.values() if term in words)
        for ordinal, words in documents.items():
            if term in words:
                often = words.count(term)
                idf = math.log(1 + (count - having + 0.5) / (having + 0.5))
                damping = K1 * (1 - B + B * len(words) / average)
                scores[ordinal] = scores.get(ordinal, 0.0) + idf * often * (K1 + 1) / (often + damping)
        having = max(having, 1)
        limit += 0.95 * math.log(1 + (count - having + 0.5) / (having + 0.5))
    return scores, limit


def check(found: Scores, documents: dict[int, list[int]], query: Sequence[int]) -> None:
    scores, limit = textbook(documents, query)
    assert found.ordinals.tolist() == sorted(scores)
    expected = [scores[ordinal] for ordinal in found.ordinals.tolist()]
    assert np.allclose(found.scores / UNIT, expected, rtol=0, atol=len(query) / UNIT)
    assert found.scores.dtype == found.ordinals.dtype == np.int64
    assert math.isclose(found.bound, limit, abs_tol=1e-9)


def same(one: Scores, other: Scores) -> bool:
    return (
        one.ordinals.tolist() == other.ordinals.tolist()
        and one.scores.tolist() == other.scores.tolist()
        and one.bound == other.bound
    )


TERM = st.sampled_from([0, 1, 2, 7, 2**31, 2**32 - 2, 2**32 - 1])
WORDS = st.lists(TERM, max_size=12)
ORDINAL = st.integers(0, 30) | st.integers(0, 2**40)
QUESTION = st.lists(TERM | st.integers(0, 2**32 - 1), max_size=6)


@given(st.dictionaries(ORDINAL, WORDS, max_size=12), QUESTION)
def test_scores_are_the_textbooks(documents: dict[int, list[int]], query: list[int]) -> None:
    check(built(documents).score(query), documents, query)


@given(st.dictionaries(ORDINAL, WORDS, min_size=1, max_size=12), QUESTION, st.randoms())
def test_no_order_shows(documents: dict[int, list[int]], query: list[int], random: Random) -> None:
    forwards = list(documents.items())
    random.shuffle(forwards)
    turned = query[::-1] + query
    assert same(built(dict(forwards)).score(turned), built(documents).score(query))


class Grown(RuleBasedStateMachine):
    """An index that changes is, at every moment, the one that would be built from what is left."""

    def __init__(self) -> None:
        super().__init__()
        self.documents: dict[int, list[int]] = {}
        self.index = Postings()

    @rule(documents=st.dictionaries(ORDINAL, WORDS, max_size=8))
    def build(self, documents: dict[int, list[int]]) -> None:
        self.documents, self.index = dict(documents), built(documents)

    @rule(ordinal=ORDINAL, words=WORDS)
    def add(self, ordinal: int, words: list[int]) -> None:
        self.documents[ordinal] = words
        self.index.add(ordinal, forward_of(words))

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        ordinal = data.draw(ORDINAL | st.sampled_from(sorted(self.documents) or [0]))
        self.documents.pop(ordinal, None)
        self.index.remove(ordinal)

    @rule(query=QUESTION)
    def ask(self, query: list[int]) -> None:
        found = self.index.score(query)
        check(found, self.documents, query)
        assert same(found, built(self.documents).score(query))

    @invariant()
    def counts(self) -> None:
        assert self.index.documents == len(self.documents)
        assert self.index.tokens == sum(map(len, self.documents.values()))


TestGrown = Grown.TestCase
TestGrown.settings = settings(max_examples=examples(25), stateful_step_count=20, deadline=None)


def test_many_changes_merge_and_still_score_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SMALLEST_TAIL", 50)
    random = np.random.default_rng(7)

    def words() -> list[int]:
        return [int(each) for each in random.zipf(1.3, size=20) % 500]

    documents = {ordinal: words() for ordinal in range(0, 600, 2)}
    index = built(documents)
    settled = {index._settled}
    for step in range(400):
        ordinal = int(random.integers(0, 700))
        if step % 3:
            documents[ordinal] = words()
            index.add(ordinal, forward_of(documents[ordinal]))
        else:
            documents.pop(ordinal, None)
            index.remove(ordinal)
        if step % 20 == 0:
            query = words()[:5]
            assert same(index.score(query), built(documents).score(query))
            settled.add(index._settled)
    assert len(settled) > 2
    before = index.nbytes
    for ordinal in list(documents):
        index.remove(ordinal)
    assert index.score([1, 2]).ordinals.size == 0
    assert index.nbytes < before / 10


def test_scores_on_words() -> None:
    texts = ["the cat sat on the mat", "cats and dogs", "", "nothing to see"]
    index = Postings.build(np.array([10, 20, 30, 40]), [index_terms(text) for text in texts])
    found = index.score([term_hash(term) for term in query_terms("Where is my cat?")])
    assert found.ordinals.tolist() == [10, 20]
    # The shorter text says it with more weight.
    assert found.scores[1] > found.scores[0]


def test_a_missing_term_raises_the_bound_like_the_rarest() -> None:
    index = built({1: [5, 6], 2: [6]})
    assert index.score([5, 99]).bound == index.score([5]).bound * 2
    assert index.score([6]).bound < index.score([99]).bound


def test_a_frequency_and_a_length_at_their_caps_fit() -> None:
    long = [3] * 70_000 + [4]
    found = built({0: long, 2**62: [4]}).score([3, 4])
    assert found.ordinals.tolist() == [0, 2**62]
    assert np.all(found.scores > 0)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**30)), max_size=20))
def test_summed_adds_up_by_key(pairs: list[tuple[int, int]]) -> None:
    keys, values = summed(
        np.array([key for key, _ in pairs], dtype=np.int64),
        np.array([value for _, value in pairs], dtype=np.int64),
    )
    expected: dict[int, int] = {}
    for key, value in pairs:
        expected[key] = expected.get(key, 0) + value
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == expected
    assert keys.tolist() == sorted(expected)


def test_threads_read_and_write_one_index() -> None:
    documents = {ordinal: [ordinal % 5, 9] for ordinal in range(200)}
    index = built(documents)

    def work(number: int) -> None:
        index.add(1000 + number, forward_of([9, number % 5]))
        index.remove(number)
        assert index.score([9]).ordinals.size >= 100

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(100)))
    left = {ordinal: words for ordinal, words in documents.items() if ordinal >= 100}
    left |= {1000 + number: [9, number % 5] for number in range(100)}
    assert same(index.score([9, 1]), built(left).score([9, 1]))


def arrays(
    ordinals: list[int], lengths: list[int], counts: list[int], hashes: int, frequencies: int
) -> Postings:
    return Postings.from_arrays(
        np.array(ordinals, dtype=np.int64),
        np.array(lengths, dtype=np.int64),
        np.array(counts, dtype=np.int64),
        np.zeros(hashes, dtype=np.uint32),
        np.ones(frequencies, dtype=np.uint8),
    )


@pytest.mark.parametrize(
    ("given_arrays", "message"),
    [
        (([1, 2], [1], [1], 1, 1), "2 ordinals, 1 lengths and 1 counts"),
        (([1], [1], [2], 1, 1), "sum to 2, but there are 1 hashes"),
        (([1], [1], [1], 1, 2), "1 hashes and 2 frequencies"),
        (([1, 1], [1, 1], [1, 1], 2, 2), "the same ordinal"),
        (([-1], [1], [1], 1, 1), "-1 is negative"),
    ],
)
def test_records_that_do_not_match_are_refused(
    given_arrays: tuple[list[int], list[int], list[int], int, int], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        arrays(*given_arrays)


def test_a_negative_ordinal_is_refused() -> None:
    with pytest.raises(InvalidInput, match="-3 is negative"):
        Postings().add(-3, forward_of([1]))


def test_an_index_holds_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SLOTS", 64)
    with pytest.raises(InvalidInput, match="65 documents are more than"):
        built({ordinal: [1] for ordinal in range(65)})
    index = built({ordinal: [1] for ordinal in range(64)})
    with pytest.raises(InvalidInput, match="at most 64 documents"):
        index.add(64, forward_of([1]))
    # Slots of removed documents are used again.
    index.remove(5)
    index.add(64, forward_of([2]))
    assert index.score([2]).ordinals.tolist() == [64]
    assert index.documents == 64


SPOKEN = ["redis", "cache", "tim", "deploy", "queue"]
turns = st.lists(
    st.tuples(
        st.integers(-1, 2), st.integers(0, 5), st.lists(st.sampled_from(SPOKEN), max_size=4), st.booleans()
    ),
    min_size=1,
    max_size=25,
)


def sessions_of(rows: list[tuple[int, int, list[str], bool]]) -> Sessions:
    return Sessions(
        np.array([session for session, *_ in rows], dtype=np.int64),
        np.array([created for _, created, *_ in rows], dtype=np.int64),
        np.array([bytes([number + 1]) * 16 for number in range(len(rows))], dtype="S16"),
        np.array([admitted for *_, admitted in rows], dtype=np.bool_),
    )


def windows_of(rows: list[tuple[int, int, list[str], bool]]) -> dict[int, list[int]]:
    """For each admitted turn the turns of its window, found one by one."""
    windows: dict[int, list[int]] = {}
    for number, (session, _, _, admitted) in enumerate(rows):
        if not admitted:
            continue
        line = [
            other
            for other, (its, _, _, there) in enumerate(rows)
            if there and (other == number or (its == session and session >= 0))
        ]
        line.sort(key=lambda other: (rows[other][1], other))
        at = line.index(number)
        windows[number] = line[max(0, at - RADIUS) : at + RADIUS + 1]
    return windows


@given(turns)
def test_window_scores_are_those_of_windows_counted_one_by_one(
    rows: list[tuple[int, int, list[str], bool]],
) -> None:
    postings = Postings.build(np.arange(len(rows)), [index_terms(" ".join(words)) for *_, words, _ in rows])
    question = query_terms(" ".join(SPOKEN[:3]))
    scores = sessions_of(rows).score(postings.of_terms([term_hash(term) for term in question]))
    windows = windows_of(rows)
    texts = {
        number: Counter(word for turn in window for word in rows[turn][2])
        for number, window in windows.items()
    }
    expected: Counter[int] = Counter()
    for word in SPOKEN[:3]:
        having = sum(1 for text in texts.values() if text[word])
        weight = math.log(1 + (len(windows) - having + 0.5) / (having + 0.5))
        for number, text in texts.items():
            if text[word]:
                expected[number] += round(weight * (K1 + 1) * UNIT * text[word] / (text[word] + K1))
    assert dict(zip(scores.ordinals.tolist(), scores.scores.tolist(), strict=True)) == dict(expected)
    assert scores.ordinals.tolist() == sorted(scores.ordinals.tolist())


@given(turns, st.lists(st.floats(-1, 1) | st.just(math.nan), min_size=25, max_size=25))
def test_smoothed_cosines_are_weighted_means_of_the_window(
    rows: list[tuple[int, int, list[str], bool]], cosines: list[float]
) -> None:
    found = sessions_of(rows).smoothed(np.array(cosines[: len(rows)]))
    windows = windows_of(rows)
    for number in range(len(rows)):
        near = [
            (1.0 if turn == number else 0.5, cosines[turn])
            for turn in windows.get(number, [])
            if not math.isnan(cosines[turn])
        ]
        if near:
            mean = sum(share * cosine for share, cosine in near) / sum(share for share, _ in near)
            assert found[number] == pytest.approx(mean)
        else:
            assert math.isnan(found[number])


@given(turns)
def test_a_window_lists_its_turns_and_their_weights(rows: list[tuple[int, int, list[str], bool]]) -> None:
    windows = windows_of(rows)
    numbers = sorted(windows)
    found, weights = sessions_of(rows).around(np.array(numbers, dtype=np.int64))
    for number, members, shares in zip(numbers, found.tolist(), weights.tolist(), strict=True):
        assert [member for member in members if member >= 0] == windows[number]
        assert [share for share in shares if share] == [
            1.0 if member == number else 0.5 for member in windows[number]
        ]

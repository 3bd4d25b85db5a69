from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from germane.retrieval.tokenizer import forms, index_terms, query_terms, term_hash

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

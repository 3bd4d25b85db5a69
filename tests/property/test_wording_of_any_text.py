"""Phrases are found word by word, whatever is said: as an expression for each of them would find them."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from germane.plans.frames import FRAMES
from germane.plans.intent import has, normalized_words, without
from support.examples import examples

OWN = ("pull request*|diff", "a* b|^fix", "?", "trade* off*|^x* y", "^is|no", "well-known*")
PATTERNS = [*(pattern for frame in FRAMES for pattern in frame.patterns), *OWN]
WORDS = sorted(
    {word.strip("*^") for pattern in PATTERNS for phrase in pattern.split("|") for word in phrase.split()}
)
TEXTS = st.lists(
    st.sampled_from([*WORDS, ".", ",", "x", "failing", "trades off", "notable", "well-known.", "it's"])
    | st.text(max_size=5),
    max_size=8,
).map(" ".join)


def by_expressions(pattern: str, words: str) -> bool:
    """One expression for each phrase: whole words, a star for the rest of one, a caret for a beginning."""
    for phrase in pattern.split("|"):
        parts = [re.escape(word.casefold()).replace(r"\*", r"\S*") for word in phrase.lstrip("^").split()]
        start = r"\^ " if phrase.startswith("^") else ""
        if re.search(rf"(?<= ){start}{' '.join(parts)}(?= )", words):
            return True
    return False


@settings(max_examples=examples(500))
@given(pattern=st.sampled_from(PATTERNS), text=TEXTS)
def test_a_pattern_is_found_where_any_of_its_phrases_stands(pattern: str, text: str) -> None:
    words = normalized_words(text)
    assert has(pattern, words) == by_expressions(pattern, words)


@given(pattern=st.sampled_from(OWN), text=TEXTS)
def test_what_is_taken_away_is_no_longer_found(pattern: str, text: str) -> None:
    words = normalized_words(text)
    left = without([pattern], words)
    if not has(pattern, words):
        assert left.split() == [word for word in words.split() if word not in ("^", "?")]
    else:
        assert len(left) < len(words)

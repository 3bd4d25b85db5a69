"""Windows of dialogue: what arrays add up is what counting turn by turn gives."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.retrieval.bm25 import K1, RADIUS, UNIT, Postings, Sessions
from germane.retrieval.tokenizer import index_terms, query_terms, term_hash

WORDS = ["redis", "cache", "tim", "deploy", "queue"]
turns = st.lists(
    st.tuples(
        st.integers(-1, 2), st.integers(0, 5), st.lists(st.sampled_from(WORDS), max_size=4), st.booleans()
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
    question = query_terms(" ".join(WORDS[:3]))
    scores = sessions_of(rows).score(postings.of_terms([term_hash(term) for term in question]))
    windows = windows_of(rows)
    texts = {
        number: Counter(word for turn in window for word in rows[turn][2])
        for number, window in windows.items()
    }
    expected: Counter[int] = Counter()
    for word in WORDS[:3]:
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

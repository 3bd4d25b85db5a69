"""Cutting texts into words and words into pieces."""

from __future__ import annotations

import pytest

from germane.embedders.static import WordPieces, bert_words, plain_words

VOCABULARY = {
    piece: number for number, piece in enumerate(["un", "##aff", "##able", "a", "##b", "able", "cab"])
}


def pieces_of(word: str) -> list[str]:
    names = list(VOCABULARY)
    return [names[number] for number in WordPieces(VOCABULARY)[word]]


def test_the_longest_piece_goes_first() -> None:
    assert pieces_of("unaffable") == ["un", "##aff", "##able"]
    assert pieces_of("able") == ["able"]
    assert pieces_of("ab") == ["a", "##b"]


def test_a_word_with_a_part_that_is_unknown_is_unknown_as_a_whole() -> None:
    assert pieces_of("cabs") == []
    assert WordPieces(VOCABULARY, unknown=(99,))["cabs"] == (99,)


def test_a_very_long_word_is_unknown_and_not_remembered() -> None:
    pieces = WordPieces(VOCABULARY)
    assert pieces["a" + "b" * 99] == (3, *[4] * 99)
    assert pieces["a" + "b" * 100] == ()
    assert set(pieces) == {"a" + "b" * 99}


def test_ids_stop_at_the_limit() -> None:
    pieces = WordPieces(VOCABULARY)
    assert pieces.ids(["able", "ab", "cab"], 10) == [5, 3, 4, 6]
    assert pieces.ids(["able", "ab", "cab"], 2) == [5, 3]
    assert pieces.ids([], 2) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop!", ["don", "'", "t", "stop", "!"]),
        ("Café Zürich", ["cafe", "zurich"]),
        ("mp3 at 10:30", ["mp", "3", "at", "10", ":", "30"]),
        ("", []),
        (" \n\t", []),
        ("犬 dog", ["犬", "dog"]),
    ],
)
def test_plain_words_part_letters_digits_and_marks(text: str, words: list[str]) -> None:
    assert plain_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop!", ["don", "'", "t", "stop", "!"]),
        ("mp3 snake_case", ["mp3", "snake", "_", "case"]),
        ("a\x00b\x7fc\td", ["abc", "d"]),
        ("naïve CAFÉ", ["naive", "cafe"]),
        ("日本語abc", ["日", "本", "語", "abc"]),
        ("5€ — “so”…", ["5€", "—", "“", "so", "”", "…"]),
        ("a\u200bb\ufffdc\u3000d", ["abc", "d"]),
        ("[SEP]", ["[", "sep", "]"]),
    ],
)
def test_bert_words_are_cut_as_bert_cuts_them(text: str, words: list[str]) -> None:
    assert bert_words(text) == words

"""Texts take the columns that a terminal gives them, and can't steer it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.model.text import bar, cell, cut, harmless, line_of, table, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("日本", 4),
        ("e\u0301", 1),
        ("ｶﾅ", 2),
        ("Ａ", 2),
        ("한글", 4),
        ("🙂", 2),
        ("\u200d", 0),
    ],
)
def test_wide_characters_take_two_columns_and_marks_none(text: str, columns: int) -> None:
    assert width(text) == columns


@given(st.text(), st.integers(0, 40))
def test_a_cell_is_exactly_as_wide_as_it_should_be(text: str, columns: int) -> None:
    assert width(cell(text, columns)) == columns
    assert width(cell(text, columns, right=True)) == columns


@given(st.text(), st.integers(0, 40))
def test_what_fits_is_not_cut_and_what_is_cut_says_so(text: str, columns: int) -> None:
    shown = cut(text, columns)

    assert shown == text if width(text) <= columns else shown == "" or shown.endswith("…")
    assert width(shown) <= max(columns, width(text) if width(text) <= columns else 0)


@given(st.text())
def test_one_line_stays_one_line_without_controls(text: str) -> None:
    shown = line_of(text)

    assert len(shown.splitlines()) <= 1
    assert not any(character in shown for character in "\x00\x07\x1b\x9b\u202e\u2066\ufeff")
    assert line_of(shown) == shown


def test_what_steers_a_terminal_is_taken_out_and_what_holds_emoji_together_is_not() -> None:
    assert harmless("a\x1b[31mb\n\tc\u202ed") == "a [31mb\n\tcd"
    assert harmless("👩\u200d🔬") == "👩\u200d🔬"


def test_columns_line_up_in_every_script() -> None:
    rows = table([("日本", "1", "x"), ("abc", "22", "y")], right=(1,))

    assert rows == ["日本   1  x", "abc   22  y"]


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(1, 10_000))
def test_a_bar_keeps_to_its_columns_and_shows_anything_above_nothing(
    part: int, whole: int, scale: int
) -> None:
    shown = bar(part, whole, scale=scale, columns=20)

    assert len(shown) <= 20
    assert ("█" in shown) == (part > 0)
    assert ("░" in shown) <= (whole > part)

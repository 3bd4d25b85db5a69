"""InDusk's unit, bit for bit."""

from __future__ import annotations

import pytest

from germane.tokens import get_counter


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("", 0),
        ("abc", 0),
        ("abcd", 1),
        ("abcdefg", 1),
        ("é", 0),
        ("éé", 1),
        ("漢字", 1),
        ("😀", 1),
        ("\ud800", 0),
    ],
)
def test_utf8_bytes_are_divided_and_rounded_down(text: str, units: int) -> None:
    assert get_counter("bytes_div_4_floor").count(text) == units


def test_a_unit_of_its_own_needs_no_margin() -> None:
    assert get_counter("bytes_div_4_floor").margin == 0

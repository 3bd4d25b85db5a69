"""Texts in columns of a fixed width: what a terminal needs of a text, and no more.

Level: model (imports nothing of the package).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["bar", "cell", "cut", "harmless", "line_of", "table", "width"]

_WIDE = ("W", "F")
_FILLED, _FREE = "█", "░"


def width(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide characters, none for combining ones.

    Widths are those of Unicode's annex 11; what a terminal joins into one emoji counts in parts.
    """
    if text.isascii():
        return len(text)
    return sum(_width_of(character) for character in text)


def line_of(text: str) -> str:
    """A harmless text on one line, its white space drawn together."""
    return " ".join(harmless(text).split())


def harmless(text: str) -> str:
    """A text without what could move a terminal's cursor, change its state or turn the writing around.

    Line feeds and tabs stay.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_harmless, text))


def cut(text: str, columns: int) -> str:
    """The text if it fits, else as much of it as fits together with an ellipsis."""
    if width(text) <= columns:
        return text
    kept, room = [], columns - 1
    for character in text:
        room -= _width_of(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip(" …") + "…" if columns > 0 else ""


def cell(text: str, columns: int, *, right: bool = False) -> str:
    """The text in exactly so many columns, cut or filled with spaces."""
    shown = cut(text, columns)
    space = " " * (columns - width(shown))
    return space + shown if right else shown + space


def bar(part: int, whole: int, *, scale: int, columns: int) -> str:
    """A bar of at most `columns`: filled for `part`, free up to `whole`, where `scale` fills all of it.

    Anything above 0 shows at least one mark.
    """
    if scale <= 0:
        return ""
    filled = _marks(part, scale, columns)
    return _FILLED * filled + _FREE * max(0, _marks(whole, scale, columns) - filled)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), gap: str = "  ") -> list[str]:
    """Rows of cells as aligned lines; each column is as wide as its widest cell.

    `right` names the columns, from 0, that are aligned to the right. Every row has the same length.
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            cell(text, columns, right=number in right)
            for number, (text, columns) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _width_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def _harmless(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return character if character in "\n\t" else " "
    # Joiners hold emoji and some scripts together; the other format characters steer the display.
    return "" if category in ("Cf", "Cs") and character not in "\u200c\u200d" else character


def _marks(amount: int, scale: int, columns: int) -> int:
    return min(columns, max(1, round(amount * columns / scale))) if amount > 0 else 0

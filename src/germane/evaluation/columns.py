"""Shares as people read them, in columns.

Level: evaluation. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["percent", "points", "table"]


def percent(share: float) -> str:
    """A share in per cent, with one decimal and no sign for it."""
    return f"{100 * share:.1f}"


def points(difference: float) -> str:
    """A difference of shares in percentage points, always with its sign."""
    shown = f"{100 * difference:+.1f}"
    return "0.0" if shown in ("+0.0", "-0.0") else shown


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart, the first to the left and the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )

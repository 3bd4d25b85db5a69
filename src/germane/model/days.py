"""Days in words.

Level: model (imports nothing). In English whatever the locale, since the words are stored and shown.
"""

from __future__ import annotations

from datetime import datetime

__all__ = ["MONTHS", "day_in_words"]

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def day_in_words(moment: datetime) -> str:
    """The day of a moment, such as `8 May 2023`."""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"

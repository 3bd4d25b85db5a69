"""A turn of a dialogue as a draft: the same for every layout that dialogues are kept in.

Level: exchange (imports nothing of the package but this room). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from germane.exchange.sources import EXTERNAL
from germane.model.draft import Draft

__all__ = ["MONTHS", "TURN", "Turn", "day_in_words", "turn_draft"]

TURN = "turn"
"""The tag of every turn of a dialogue."""

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
"""In English whatever the locale, since the words are stored data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one speaker said at once; `index` counts the turns of its session from 0.

    `role` is who a chat interface says it was (user, assistant, tool …), where it says so.
    """

    speaker: str
    text: str
    index: int
    role: str | None = None
    at: datetime | None = None


def turn_draft(turn: Turn, *, session: str, source: str, metadata: Mapping[str, Any] | None = None) -> Draft:
    """The turn as an episode of its session.

    The content names the day, where it is known, and the speaker: a turn is often found by either, and
    read alone it says nothing without them.
    """
    opening = f"{day_in_words(turn.at)} {turn.speaker}" if turn.at else turn.speaker
    said: dict[str, Any] = {"session": session, "index": turn.index, "speaker": turn.speaker}
    if turn.role:
        said["role"] = turn.role
    return Draft(
        content=f"{opening}: {turn.text}",
        kind="episode",
        tags=(TURN,),
        scope=f"session:{session}",
        trust=EXTERNAL,
        source=source,
        created_at=turn.at,
        metadata={**said, **(metadata or {})},
    )


def day_in_words(moment: datetime) -> str:
    """The day of a moment, such as `8 May, 2023`."""
    return f"{moment.day} {MONTHS[moment.month - 1]}, {moment.year}"

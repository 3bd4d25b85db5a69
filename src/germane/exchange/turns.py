"""A turn of a dialogue as a draft: the same for every layout that dialogues are kept in.

Level: exchange (imports nothing of the package but this room). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from germane.exchange.sources import EXTERNAL
from germane.model.days import day_in_words
from germane.model.draft import Draft

__all__ = ["TURN", "Turn", "turn_draft"]

TURN = "turn"
"""The tag of every turn of a dialogue."""


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

    The content names the speaker. The day, where it is known, stands in the metadata, so that the turn
    is found by it; a context writes it once above all that was said that day.
    """
    said: dict[str, Any] = {"session": session, "index": turn.index, "speaker": turn.speaker}
    if turn.role:
        said["role"] = turn.role
    if turn.at:
        said["day"] = day_in_words(turn.at)
    return Draft(
        content=f"{turn.speaker}: {turn.text}",
        kind="episode",
        tags=(TURN,),
        scope=f"session:{session}",
        trust=EXTERNAL,
        source=source,
        created_at=turn.at,
        metadata={**said, **(metadata or {})},
    )

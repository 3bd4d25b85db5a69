"""Messages for tests: ids that depend on the place and the text alone, and no clock.

Level: testing (nothing of the package imports it).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from germane.model.message import Message, Role, TextPart
from germane.testing.builders import START, make_id

__all__ = ["make_message"]


def make_message(text: str = "Is it raining?", *, place: int = 1, **overrides: Any) -> Message:
    """A user's message of one text, `place` minutes after START, with any field changed."""
    at = START + timedelta(minutes=place)
    values: dict[str, Any] = {
        "role": Role.USER,
        "parts": (TextPart(text=text),),
        "id": make_id(f"{place}\n{text}", at=at),
        "created_at": at,
    }
    return Message(**(values | overrides))

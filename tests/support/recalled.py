"""Text between the marks by which germane knows what came from memory."""

from __future__ import annotations

__all__ = ["recalled"]


def recalled(text: str) -> str:
    """The text as a context shows it in a message. It must hold no such mark itself."""
    assert "recalled-from-memory>" not in text
    return f"<recalled-from-memory>\n{text}\n</recalled-from-memory>"

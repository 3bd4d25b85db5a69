"""A trace as a table for people.

Level: model (imports errors only).
"""

from __future__ import annotations

from germane.model.trace import Trace

__all__ = ["explain"]


def explain(trace: Trace, *, tokens: int) -> str:
    """The account of one assembly as plain text."""
    return f"{trace.plan}: {tokens}"

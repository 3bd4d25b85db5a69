"""Ranks commits below what is known of other kinds, unless a question asks for history.

Level: ranking (imports kinds and model only). Pure.

A repository has thousands of commits, whose short messages share words with any question. They say what was
changed once, and not what holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from germane.kinds import COMMIT
from germane.model.memory import Memory

__all__ = ["SHARE_OF_COMMITS", "asks_for_history", "commits_among"]

SHARE_OF_COMMITS = 0.3
"""What is left of a commit's score where nobody asks for history."""

_CHANGE = (
    r"(?:add|alter|break|broke|broken|chang|commit|delet|drop|edit|fix|introduc|land|merg|mov|remov|renam"
    r"|replac|revert|rewr|rewor|switch|touch|updat|wrote|written|writ)\w*"
)
_HISTORY = re.compile(
    r"\b(?:commits?|committed|git (?:log|blame|history)|history of|(?:change|commit|version) history"
    rf"|since when|when (?:did|was|were|has|have)\b.*\b{_CHANGE}|who\b.*\b{_CHANGE}"
    r"|what(?:'s| has| have| was| were)?(?: been)? changed|what changes"
    r"|(?:last|latest|recent|recently) chang\w*"
    r"|how (?:did|has|have)\b.*\b(?:change|evolve)\w*)\b",
    re.IGNORECASE | re.DOTALL,
)


def asks_for_history(question: str) -> bool:
    """Whether a question asks when, by whom or how something was changed; English only."""
    return _HISTORY.search(question[:2_000]) is not None


def commits_among(memories: Iterable[Memory], question: str) -> list[int]:
    """The places of the memories that rank lower for being commits."""
    places = [place for place, memory in enumerate(memories) if memory.kind == COMMIT]
    return [] if not places or asks_for_history(question) else places

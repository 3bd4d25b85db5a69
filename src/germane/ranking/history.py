"""Ranks commits and releases by whether a question asks for history.

Level: ranking (imports kinds and model only). Pure.

A repository has thousands of commits, whose short messages share words with any question. They say what was
changed once, and not what holds. A changelog says what each release changed, in words that a question on
releases seldom has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from germane.kinds import CHANGELOG, COMMIT
from germane.model.memory import Memory

__all__ = ["asks_for_history", "history_factors", "rest_of_releases"]

_ORDINARY, _ASKED, _BY_AUTHOR, _RELEASED = -0.7, 0.3, 1.0, 1.0
"""What is added to the score of a commit or a release, in parts of it, by what a question asks for."""
_READ = 2_000
"""Characters of a question that are read."""

_CHANGE = (
    r"(?:add|alter|break|broke|broken|chang|commit|delet|drop|edit|fix|introduc|land|merg|mov|remov|renam"
    r"|replac|revert|rewr|rewor|switch|touch|updat|wrote|written|writ)\w*"
)
_HISTORY = re.compile(
    r"\b(?:commits?|committed|git (?:log|blame|history)|history of|(?:change|commit|version) history"
    rf"|since when|when (?:did|was|were|has|have)\b.*\b{_CHANGE}|who\b.*\b{_CHANGE}"
    rf"|what (?:did|has|have) (?:\w+ ){{1,3}}{_CHANGE}"
    r"|what(?:'s| has| have| was| were)?(?: been)? changed|what changes"
    r"|(?:last|latest|recent|recently) chang\w*"
    r"|how (?:did|has|have)\b.*\b(?:change|evolve)\w*)\b",
    re.IGNORECASE | re.DOTALL,
)
_WHICH = (
    r"(?:all|any|current|each|earlier|earliest|every|first|last|latest|most recent|newest|next|old|older"
    r"|oldest|past|previous|recent|this|what|which)"
)
_RELEASES = re.compile(
    rf"\b(?:change ?logs?|release notes?|{_WHICH}(?: \w+)? releases?|releases(?= (?:changed|brought|added))"
    rf"|{_CHANGE}(?: \w+)? (?:by|in|since|with) (?:\w+ )?(?:releases?|versions?)|in releases? \d[\w.]*"
    rf"|{_WHICH}(?: \w+)? versions?(?= .*\b{_CHANGE})|what(?:'s| is| was) new in (?:the )?(?:\w+ )?"
    r"(?:releases?|versions?))\b",
    re.IGNORECASE | re.DOTALL,
)
_TOPICLESS = re.compile(
    rf"\b(?:{_CHANGE}|{_WHICH}|releases?|released|versions?|changelogs?|notes?|new|news|breaking|recently"
    r"|bring|brings|brought|contain\w*|include\w*|give|show|list|summari\w+|tell|please|say|says|said|few"
    r"|one|two|three|four|five)\b",
    re.IGNORECASE,
)
"""What a question on releases may say without naming a topic."""

_NAMES = re.compile(r"(?:(?<=\bby )|(?<=\bdid )|(?<=\bfrom )|(?<=\bhas )|(?<=[^.!?] )(?=[^\W\d_a-z]))\w+")
"""Words that may be an author's name: those after such words, and capitalised ones inside a sentence."""


def asks_for_history(question: str) -> bool:
    """Whether a question asks when, by whom or how something was changed; English only."""
    return _HISTORY.search(question[:_READ]) is not None


def rest_of_releases(question: str) -> str | None:
    """What a question on releases says beside that; None for any other question. English only."""
    if _RELEASES.search(question[:_READ]) is None:
        return None
    return _TOPICLESS.sub(" ", question)


def history_factors(memories: Iterable[Memory], question: str) -> dict[int, float]:
    """By the place of each commit, what is added to its score for being one, in parts of it.

    It is more for those of an author whom a question on history names. The same for releases where the
    question asks for them.
    """
    weighed = {place: memory for place, memory in enumerate(memories) if memory.kind in (COMMIT, CHANGELOG)}
    if not weighed:
        return {}
    history, released = asks_for_history(question), rest_of_releases(question) is not None
    names = {name.casefold() for name in _NAMES.findall(question[:_READ])} if history else frozenset[str]()
    factors: dict[int, float] = {}
    for place, memory in weighed.items():
        if memory.kind == COMMIT:
            by = names and not names.isdisjoint(str(memory.metadata.get("author")).casefold().split())
            factors[place] = _BY_AUTHOR if by else _ASKED if history else _ORDINARY
        elif released:
            factors[place] = _RELEASED
    return factors

"""Shortens a long text to its head and its tail, never within what a reader sees as one character.

Level: ranking (imports protocols). Pure.
"""

from __future__ import annotations

from collections.abc import Callable

import regex

from germane.protocols import TokenCounter

__all__ = ["MARK", "cut_middle", "length_by"]

MARK = "…"
"""What stands for what was left out where a limit has no place for more words."""

_GRAPHEME = regex.compile(r"\X")
_LONGEST_GRAPHEME = 200
"""Characters looked at around a place; longer graphemes exist only to do harm, and may be cut."""
_CHARACTERS_OF_A_TOKEN = 16
"""No token that is common is longer, so a search for a place need not look further."""


def length_by(counter: TokenCounter | None) -> Callable[[str], int]:
    """What measures a text: the counter's tokens, or characters without one."""
    return len if counter is None else counter.count


def cut_middle(
    text: str,
    limit: int,
    hint: Callable[[int], str],
    *,
    head: float = 0.2,
    measure: Callable[[str], int] = len,
) -> str:
    """The text where it has at most `limit`, else its beginning and end, with a hint between them.

    `hint` is told how many characters are gone, and counts towards the limit. Where the hint doesn't fit,
    MARK stands in its place. `head` is the share of what is kept that comes from the beginning. The result
    has at most `limit`; MARK alone is the least, also for a limit of 0.
    """
    if measure(text) <= limit:
        return text
    found = _cut(text, limit, lambda gone: f"\n{hint(gone)}\n", head=head, measure=measure)
    if found is not None:
        return found
    alone = hint(len(text))
    if measure(alone) <= limit:
        return alone
    return _cut(text, limit, lambda _: MARK, head=head, measure=measure) or MARK


def _cut(
    text: str, limit: int, between: Callable[[int], str], *, head: float, measure: Callable[[str], int]
) -> str | None:
    """The beginning and the end with something between them; None where nothing of the text has a place."""
    room = limit - measure(between(len(text)))
    while room > 0:
        first = int(room * head)
        start = _grapheme_start(text, _prefix(text, first, measure))
        end = _grapheme_end(text, max(start, len(text) - _suffix(text, room - first, measure)))
        shown = f"{text[:start]}{between(end - start)}{text[end:]}"
        excess = measure(shown) - limit
        # Tokens don't add up where texts meet, so a little less may have to do.
        if excess <= 0:
            return shown
        room -= excess
    return None


def _prefix(text: str, limit: int, measure: Callable[[str], int]) -> int:
    """How many characters from the beginning have at most `limit`."""
    if measure is len:
        return min(limit, len(text))
    return _most(lambda size: measure(text[:size]) <= limit, min(len(text), limit * _CHARACTERS_OF_A_TOKEN))


def _suffix(text: str, limit: int, measure: Callable[[str], int]) -> int:
    if measure is len:
        return min(limit, len(text))
    most = min(len(text), limit * _CHARACTERS_OF_A_TOKEN)
    return _most(lambda size: measure(text[len(text) - size :]) <= limit, most)


def _most(fits: Callable[[int], bool], most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _grapheme_start(text: str, place: int) -> int:
    """The last place up to this one that divides no grapheme."""
    if _is_simple(text, place):
        return place
    found = begin = max(0, place - _LONGEST_GRAPHEME)
    for each in _GRAPHEME.finditer(text, begin, min(len(text), place + _LONGEST_GRAPHEME)):
        if each.end() > place:
            return each.start() if each.start() > begin or begin == 0 else place
        found = each.end()
    return found


def _grapheme_end(text: str, place: int) -> int:
    """The first place from this one on that divides no grapheme."""
    if _is_simple(text, place):
        return place
    begin = max(0, place - _LONGEST_GRAPHEME)
    for each in _GRAPHEME.finditer(text, begin, min(len(text), place + _LONGEST_GRAPHEME)):
        if each.start() >= place:
            return each.start()
        if each.end() >= place:
            return each.end()
    return place


def _is_simple(text: str, place: int) -> bool:
    """Whether both characters at a place are of ASCII, where only a carriage return joins its line feed."""
    around = text[max(0, place - 1) : place + 1]
    return around.isascii() and around != "\r\n"

"""Finds whether an English question asks for the first of something or for the last.

Level: retrieval (imports model only). Pure.

"First" and "last" are said of much that isn't time (first place, last name, how long did it last),
so a word counts only where its neighbours let it mean an order in time.
"""

from __future__ import annotations

import re
from functools import cache

from germane.model.query import Order

__all__ = ["parse_order"]

_HINT = re.compile(r"first|earliest|oldest|initial|original|last|latest|newest|recent", re.IGNORECASE)
_COUNT = r"(?:[0-9]+|two|three|four|five|six|seven|eight|nine|ten|few|couple|half|quarter)"
_NO_FIRST = (
    rf"(?:{_COUNT}|aid|class|degree|edition|floor|grade|hand|lady|language|line|name|normal|person|place|"
    r"principles?|priority|prize|rate|responders?|thing|world)"
)
_NO_LAST = (
    rf"(?:{_COUNT}|but|ditch|gasp|line|long|longer|minute|more|name|page|place|resort|straw|until|word|words)"
)
_WHOSE = r"(?:the|this|that|my|our|your|his|her|its|their|\w+['\u2019]s|whose|very|and|or)"
_DID = r"(?:did|was|were|have|has|had|is|are)"


def parse_order(text: str) -> Order | None:
    """OLDEST for a question about the first, NEWEST for one about the last, else None.

    One that asks for both has no order. Give it the question without its expression of time, since
    "last week" names a time and no order.
    """
    if not _HINT.search(text):
        return None
    first, last = (pattern.search(text) is not None for pattern in _patterns())
    if first == last:
        return None
    return Order.OLDEST if first else Order.NEWEST


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    first = [
        r"earliest|oldest|initially|originally",
        rf"first(?!-)(?=\s+\w)(?!\s+{_NO_FIRST}\b)",
        r"(?:at|came|come|was|were|happened|started)\s+first",
    ]
    last = [
        r"latest|newest|most\s+recent(?:ly)?",
        rf"{_WHOSE}\s+last(?!-)(?=\s+\w)(?!\s+{_NO_LAST}\b)",
        rf"{_DID}\s+(?:\w+\s+){{1,3}}last(?=\s+\w)(?!\s+(?:for|{_NO_LAST[3:-1]})\b)",
        r"(?:came|come|was|were|happened)\s+last",
    ]
    return _compiled(first), _compiled(last)


def _compiled(several: list[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(several)})\b", re.IGNORECASE)

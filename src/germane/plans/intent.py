"""Reads what somebody wants with what he says: an answer, a look back, or nothing but to be kind.

Level: plans (imports the wording alone). Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from germane.plans.wording import has, said, without

__all__ = [
    "ACKNOWLEDGEMENTS",
    "DEFAULT_LIMIT",
    "GREETINGS",
    "HINTED_LIMIT",
    "OTHER_LIMIT",
    "POLITE",
    "Aim",
    "Intent",
    "limit_of",
    "read_intent",
]

HINTED_LIMIT, OTHER_LIMIT, DEFAULT_LIMIT = 8, 3, 5
"""How many are looked for of what is hinted at, of the rest, and without any hint, in proportion."""

GREETINGS = (
    "hi|hello|hey|howdy|greetings|good morning|good afternoon|good evening|good day|welcome back",
    (
        "how are you|how are you doing|how is it going|how's it going|what's up|nice to meet you"
        "|how do you do|long time no see"
    ),
)
ACKNOWLEDGEMENTS = (
    (
        "thanks|thank you|thx|cheers|ok|okay|k|yes|yep|yeah|no|nope|sure|right|alright|fine|done|got it|i see"
        "|understood|great|perfect|cool|nice|awesome|excellent|wonderful|good|sounds good|looks good"
        "|makes sense|will do|agreed|exactly|bye|goodbye|see you|good night|haha|lol|good job|well done"
        "|no problem|lgtm"
    ),
)
POLITE = (
    "there|again|everyone|everybody|all|team|folks|so much|very much|a lot|very|much|for that|for you|to you",
)
_RECAPS = (
    (
        "recap*|summari*|summary|catch me up|catch us up|bring me up to date|bring us up to date"
        "|bring me up to speed|get me up to speed|where were we|where did we leave"
        "|where we left|what did we do|what have we done|what did we talk|what did we discuss"
        "|what happened|what has happened|what's happened|what's been happening|what has been happening"
        "|what's new|what is new|anything new|any news|what's the latest|what is the latest"
        "|what did i miss|what have i missed|what i missed|what's changed|what changed"
        "|what has changed|status update|so far|previously|pick up where"
    ),
)
_NO_TOPIC = (
    (
        "give me|give us|quick*|short|brief*|please|can you|could you|would you|let's|everything|things|stuff"
        "|lately|recently|currently|right now|today|since then|since last time|last time|about|off|again|up"
        "|while i was away|while i was out|was away|was out"
    ),
)
_TEMPORAL = (
    (
        "yesterday|today|recently|lately|earlier|last time|last week|last month|last year|this week"
        "|this month|this morning|the other day|days ago|weeks ago|months ago|when did|when was"
        "|since when|the last time"
    ),
)
_HINTS = (
    (
        "decisions",
        ("decide*|decision|decisions|chose|chosen|did we choose|did we pick|settle on|agreed on|adr*",),
    ),
    (
        "facts",
        ("fact|facts|prefer*|what do you know|what do we know|who is|who are|what is the|what are the",),
    ),
    (
        "procedures",
        ("how do i|how do we|how to|how should i|steps|procedure*|runbook*|playbook*|checklist*|workflow*",),
    ),
    ("episodes", ("meeting*|conversation*|discussion*|discussed|talked|remember when|incident*|session*",)),
)


class Aim(StrEnum):
    """What somebody wants with what he says."""

    ASK = "ask"  # Anything that memories may have to do with.
    GREET = "greet"  # A greeting, and nothing else.
    ACKNOWLEDGE = "acknowledge"  # Thanks or a yes, and nothing else.
    RECAP = "recap"  # To hear what happened.
    TEMPORAL = "temporal"  # To hear of a time.


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is wanted, and the sections that the words hint at, in the order of the plan.

    `plain` says that a look back names no topic: "catch me up".
    """

    aim: Aim
    hints: tuple[str, ...] = ()
    plain: bool = False

    @property
    def asks(self) -> bool:
        """Whether there is anything to look for; a greeting alone asks for nothing."""
        return self.aim not in (Aim.GREET, Aim.ACKNOWLEDGE)

    @property
    def looks_back(self) -> bool:
        """Whether what happened is wanted more than what holds."""
        return self.aim in (Aim.RECAP, Aim.TEMPORAL)


def read_intent(text: str, *, informative: Callable[[str], bool], dated: bool = False) -> Intent:
    """What a text wants.

    `informative` tells whether a text says anything to look for: a greeting is only one if nothing of
    that remains without it. `dated` says that the text names a time in a form that was understood.
    """
    words = said(text)
    for aim, phrases in ((Aim.GREET, GREETINGS), (Aim.ACKNOWLEDGE, ACKNOWLEDGEMENTS)):
        if any(has(pattern, words) for pattern in phrases):
            rest = without((*reversed(GREETINGS), *ACKNOWLEDGEMENTS, *POLITE), words)
            if not informative(rest) and not dated and not _looks_back(words):
                return Intent(aim=aim)
    hints = tuple(name for name, phrases in _HINTS if any(has(pattern, words) for pattern in phrases))
    if any(has(pattern, words) for pattern in _RECAPS):
        rest = without((*_RECAPS, *_TEMPORAL, *_NO_TOPIC, *GREETINGS, *POLITE), words)
        if not informative(rest):
            return Intent(aim=Aim.RECAP, hints=("decisions", "episodes"), plain=True)
        return Intent(aim=Aim.RECAP, hints=_with_episodes(hints))
    if dated or any(has(pattern, words) for pattern in _TEMPORAL):
        return Intent(aim=Aim.TEMPORAL, hints=_with_episodes(hints))
    return Intent(aim=Aim.ASK, hints=hints)


def limit_of(section: str, limit: int, hints: tuple[str, ...]) -> int:
    """How many memories are looked for in a section where `limit` are without any hint; at least one."""
    if not hints:
        return limit
    factor = HINTED_LIMIT if section in hints else OTHER_LIMIT
    return max(1, limit * factor // DEFAULT_LIMIT)


def _looks_back(words: str) -> bool:
    return any(has(pattern, words) for pattern in (*_RECAPS, *_TEMPORAL))


def _with_episodes(hints: tuple[str, ...]) -> tuple[str, ...]:
    return hints if "episodes" in hints else (*hints, "episodes")

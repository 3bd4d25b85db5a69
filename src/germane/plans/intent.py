"""What a text asks for: intent, complexity, and whether a context still serves.

Tells how much a question asks for, and lets the shares of a frame follow.

    simple    at most 6 words, none of them of design: each share that relevance fills is halved
    usual     the shares are the frame's
    complex   more than 40 words, or two questions, or two phrases of design: decisions and
              procedures get half as much again

What is halved lowers the total if the caller gave none. What grows takes first what no section
has a claim to, then from the others in proportion; the total is never raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

from germane.model.context import RefreshReason
from germane.model.plan import FrameChoice

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
        "|no problem|lgtm|hm|hmm*|uh|um|oh|ah|wow"
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
        "|what has changed|status update|so far|previously|pick up where|whats new|whats changed"
        "|whats happened|whats the latest|fill me in|fill us in|update me|update us"
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


class IntentKind(StrEnum):
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

    aim: IntentKind
    hints: tuple[str, ...] = ()
    plain: bool = False

    @property
    def asks(self) -> bool:
        """Whether there is anything to look for; a greeting alone asks for nothing."""
        return self.aim not in (IntentKind.GREET, IntentKind.ACKNOWLEDGE)

    @property
    def looks_back(self) -> bool:
        """Whether what happened is wanted more than what holds."""
        return self.aim in (IntentKind.RECAP, IntentKind.TEMPORAL)


def read_intent(text: str, *, informative: Callable[[str], bool], dated: bool = False) -> Intent:
    """What a text wants.

    `informative` tells whether a text says anything to look for: a greeting is only one if nothing of
    that remains without it. `dated` says that the text names a time in a form that was understood.
    """
    words = normalized_words(text)
    for aim, phrases in ((IntentKind.GREET, GREETINGS), (IntentKind.ACKNOWLEDGE, ACKNOWLEDGEMENTS)):
        if any(has(pattern, words) for pattern in phrases):
            rest = without((*reversed(GREETINGS), *ACKNOWLEDGEMENTS, *POLITE), words)
            looks_back = any(has(pattern, words) for pattern in (*_RECAPS, *_TEMPORAL))
            if not informative(rest) and not dated and not looks_back:
                return Intent(aim=aim)
    hints = tuple(name for name, phrases in _HINTS if any(has(pattern, words) for pattern in phrases))
    if any(has(pattern, words) for pattern in _RECAPS):
        rest = without((*_RECAPS, *_TEMPORAL, *_NO_TOPIC, *GREETINGS, *POLITE), words)
        if not informative(rest):
            return Intent(aim=IntentKind.RECAP, hints=("decisions", "episodes"), plain=True)
        return Intent(aim=IntentKind.RECAP, hints=_with_episodes(hints))
    if dated or any(has(pattern, words) for pattern in _TEMPORAL):
        return Intent(aim=IntentKind.TEMPORAL, hints=_with_episodes(hints))
    return Intent(aim=IntentKind.ASK, hints=hints)


def limit_of(section: str, limit: int, hints: tuple[str, ...]) -> int:
    """How many memories are looked for in a section where `limit` are without any hint; at least one."""
    if not hints:
        return limit
    factor = HINTED_LIMIT if section in hints else OTHER_LIMIT
    return max(1, limit * factor // DEFAULT_LIMIT)


def _with_episodes(hints: tuple[str, ...]) -> tuple[str, ...]:
    return hints if "episodes" in hints else (*hints, "episodes")


# Finds phrases in a text, word by word.
#
# A phrase is what `germane.model.plan.Frame` calls one alternative of a pattern. Words are what stands
# between spaces and punctuation, hyphens and apostrophes included, so that "wrong?" is the word "wrong".

_START = "^"
_PART_END = r"[.,;:!?\n\u3002\uff0c\uff1f\uff01\u061f]"
_TOKEN = re.compile(rf"{_PART_END}|\w+(?:['-]\w+)*")
_QUESTION_MARKS = "?\uff1f\u061f"
_KNOWN_PATTERNS = 512


def normalized_words(text: str) -> str:
    """The words of a text, case folded and joined by single spaces, in the form that `has` reads.

    Each part of a sentence begins with "^", and a question mark is a word.
    """
    found = [_START]
    for token in _TOKEN.findall(text.replace("\u2019", "'").casefold()):
        if token in _QUESTION_MARKS:
            found.append("?")
        found.append(_START if not (token[0].isalnum() or token[0] == "_") else token)
    return f" {' '.join(found)} "


def has(pattern: str, words: str) -> bool:
    """Whether any phrase of a pattern stands in what `normalized_words` made of a text."""
    for probe in _probes(pattern):
        if probe in words:
            return True
    return "* " in pattern and _compiled(pattern).search(words) is not None


def without(patterns: Iterable[str], words: str) -> str:
    """What is left of `normalized_words` words without these phrases, as a text."""
    for pattern in patterns:
        # A replaced phrase leaves the space that the next one has to begin with.
        words = _compiled(pattern).sub("", words)
    return " ".join(word for word in words.split() if word not in (_START, "?"))


def taken_out(pattern: str, text: str) -> str:
    """A text without the phrases of a pattern, and else as it stands."""
    anchored, free = _cutting(pattern)
    plain = text.replace("\u2019", "'")
    for phrases in (anchored, free):
        plain = phrases.sub(r"\g<before>", plain) if phrases is not None else plain
    return plain.strip().lstrip(",;:. ")


def count_words(words: str) -> int:
    """How many words `normalized_words` found."""
    return sum(1 for word in words.split() if word not in (_START, "?"))


@lru_cache(_KNOWN_PATTERNS)
def _probes(pattern: str) -> tuple[str, ...]:
    """The phrases as they stand among words; to compile hundreds takes longer than to look for them."""
    phrases = (f" {phrase.replace('^', '^ ')}" for phrase in pattern.casefold().split("|"))
    # What follows a star belongs to the same word, so that what comes before it is all there is to find.
    return tuple(
        phrase[:-1] if phrase.endswith("*") else f"{phrase} " for phrase in phrases if "*" not in phrase[:-1]
    )


@lru_cache(_KNOWN_PATTERNS)
def _cutting(pattern: str) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    """What finds the phrases of a pattern in a text as it stands: those that begin a part, and the rest."""
    phrases = pattern.split("|")
    found: list[re.Pattern[str] | None] = []
    for several, before in (
        ([phrase[1:] for phrase in phrases if phrase.startswith("^")], rf"(?:^|{_PART_END})\s*"),
        ([phrase for phrase in phrases if not phrase.startswith("^")], r"(?<![\w'-])"),
    ):
        either = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in several)
        whole = rf"(?P<before>{before})(?:{either})(?![\w'-])[^\S\n]*"
        found.append(re.compile(whole, re.IGNORECASE) if several else None)
    return found[0], found[1]


@lru_cache(_KNOWN_PATTERNS)
def _compiled(pattern: str) -> re.Pattern[str]:
    phrases = (
        re.escape(phrase.casefold()).replace(r"\*", r"\S*").replace(r"\^", r"\^ ")
        for phrase in pattern.split("|")
    )
    return re.compile(rf"(?<= )(?:{'|'.join(phrases)})(?= )")


FEW_WORDS, MANY_WORDS = 6, 40

_DESIGN = (
    "architecture*|architectural|design|redesign*",
    "trade-off*|tradeoff*|pros and cons|versus|vs|alternative*|compare*",
    "migrat*|rewrite|rearchitect*|replace",
    "scale|scales|scaling|scalab*|consisten*|availability|fault-toleran*|latency budget",
    "long-term|long term|consequence*|irreversible|constraint*|requirement*",
)
_MANY = 2
_GROWING = ("decisions", "procedures")


class Complexity(StrEnum):
    """How much a question asks for."""

    SIMPLE = "simple"
    USUAL = "usual"
    COMPLEX = "complex"


def complexity_of(text: str) -> Complexity:
    """How much a text asks for; an empty one is usual, since it says nothing of it."""
    words = normalized_words(text)
    count, designs = count_words(words), sum(has(pattern, words) for pattern in _DESIGN)
    if count > MANY_WORDS or designs >= _MANY or words.count(" ?") >= _MANY:
        return Complexity.COMPLEX
    return Complexity.SIMPLE if 0 < count <= FEW_WORDS and not designs else Complexity.USUAL


def scaled(shares: Mapping[str, int], complexity: Complexity) -> dict[str, int]:
    """The tokens of each section that relevance fills, before they are made to fit a total."""
    if complexity is Complexity.SIMPLE:
        return {name: tokens // 2 for name, tokens in shares.items()}
    if complexity is Complexity.COMPLEX:
        return {name: tokens * 3 // 2 if name in _GROWING else tokens for name, tokens in shares.items()}
    return dict(shares)


# Tells when a context no longer serves: one rule for each cause.
#
# Each rule returns whether it asks for a refresh, and the reason if so.

Verdict: TypeAlias = tuple[bool, RefreshReason | None]

LEAST_SIMILARITY = 0.5
"""A context is stale for a message of a lower similarity."""

LEAST_INFORMATION = 6.0
"""Nats. A message of less information, such as "it works", has no topic."""

LEAST_CONFIDENCE = 0.5
"""A frame that is chosen less surely than this is no reason to change it."""

_ABOUT_TO_ACT = (
    "go ahead|^proceed|let's do it|let's do this|let's go with|do it now|^ship it|^execute|^merge it"
    "|^deploy it|^apply it|^approve|^approved|make it so|i will go with|i'll go with"
    "|we go with|pull the trigger|^confirm"
)
_GENERAL = ("conversation", "question")
_NO: Verdict = (False, None)


def substance(text: str) -> str:
    """The text without phrases such as "do it now", otherwise unchanged."""
    return taken_out(_ABOUT_TO_ACT, text) if has(_ABOUT_TO_ACT, normalized_words(text)) else text


def beside_thanks(text: str) -> str:
    """The words of a text beside greetings, thanks and agreement."""
    return without((*GREETINGS, *ACKNOWLEDGEMENTS, *POLITE), normalized_words(text))


def frame_switch(current: str | None, choice: FrameChoice, *, similarity: float | None = None) -> Verdict:
    """Whether another frame was chosen, and surely enough. A context without a frame has none to leave.

    A question on the topic at hand belongs to whatever is being done, and so does a friendly word: these
    two frames are only switched to with another topic.
    """
    if current is None or choice.frame.name == current or choice.confidence < LEAST_CONFIDENCE:
        return _NO
    goes_on = similarity is None or similarity >= LEAST_SIMILARITY
    return _NO if choice.frame.name in _GENERAL and goes_on else (True, RefreshReason.FRAME)


def decision_point(text: str, *, current: str | None, acting: bool = False) -> Verdict:
    """Whether the agent is about to act: it says so, or has to; and isn't in the decision frame yet."""
    acts = acting or has(_ABOUT_TO_ACT, normalized_words(text))
    return (True, RefreshReason.DECISION_POINT) if acts and current != "decision" else _NO


def new_topic(similarity: float | None) -> Verdict:
    """Whether a message's similarity to the context is below one half; None, without a topic, is not."""
    return (True, RefreshReason.TOPIC) if similarity is not None and similarity < LEAST_SIMILARITY else _NO


def token_pressure(tokens: int, free_tokens: int | None) -> Verdict:
    """Whether a context is longer than the free tokens."""
    return (True, RefreshReason.PRESSURE) if free_tokens is not None and tokens > free_tokens else _NO

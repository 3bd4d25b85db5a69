"""How likely a sentence states something that is worth learning, by weights of its words and of its form.

Pure. The weights are data, fitted to labelled dialogues by `bench/clause_weights.py`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp
from typing import Final

import regex

from germane.model.text import text_cache

Weights = Mapping[str, Mapping[str, float]]
"""Weights by the names of features: of a `sentence`, and of the `dialogue` around it."""

_TOKEN: Final = regex.compile(r"\p{L}+(?:['’]\p{L}+)?|\d[\d.,:]*\p{L}*|[?!:;—–…\"“]")
_DAY: Final = regex.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|wed|thu|fri|sat|sun")
_MONTH: Final = regex.compile(
    r"(?:january|february|march|april|june|july|august|september|october|november|december)"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_NUMBERS: Final = frozenset(
    ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
)
_JESTS: Final = regex.compile(
    r"\b(?:lol|lmao|haha\w*|rofl|smh|jk)\b|[😂🤣😜😉😅🙄]|:\)|;\)|:D|xD", regex.IGNORECASE
)
_OPEN_QUOTE: Final = regex.compile(r"(?<!\S)['‘]\w")
_COLON: Final = regex.compile(r":\s*(?:$|['\"])", regex.MULTILINE)
_SUFFIX: Final = 3
_NEAR: Final = 2000
"""Characters of a message at most of which the other sentences are looked at, so that time is linear."""
_READ: Final = 60
"""Words at the beginning of each text around a sentence that are looked at: requests stand there."""
EARLIER: Final = 4
LATER: Final = 2
"""Messages of the user's before that of a sentence that are looked at, and those after it."""
_COMMON: Final = (
    "i my me we our a an the and is are am was in on at to of for with it 'm 's 've have has had not n't do "
    "live lives work works like likes name called move moved speak play drink eat allergic from by as #name "
    "#number #day #month"
)
_PLAIN_WORDS: Final = frozenset(_COMMON.split())
"""Words of plain statements, which tell nothing of another one."""
_UNKNOWN: Final = 20
"""Features around a sentence that weigh nothing, and count besides those found."""
_POWER: Final = 0.7
"""Of the number of features by which their sum is divided; 0 would be the sum, and 1 the mean."""
AROUND: Final = 2
"""How much the words around a sentence count against it, beside its own."""
_LENGTHS: Final = 8
"""Classes of length, of three words each; the last one has all longer ones."""


DOUBTFUL: Final = 0.5
"""How likely a sentence is at least worth learning of which a pattern takes a whole clause."""
VERY_DOUBTFUL: Final = 0.2
"""How likely one is of which a pattern knows what it says, such as an allergy."""
PLAIN: Final = 0.82
UNCLEAR: Final = 0.91
"""How likely a sentence has to be that no pattern fits: where nothing, or something, speaks against it."""
OUT_OF_PLACE: Final = 0.38
"""From which likelihood on a sentence isn't meant as a statement of the user's, by the words around it."""


def likelihood(
    own: Collection[str], around: Collection[str], weights: Weights | None = None, *, counts: int = AROUND
) -> float:
    """How likely a sentence is worth learning, from 0 to 1, by its features and those around it.

    What speaks against it around it is multiplied by `counts`. Without `weights`, those of the package count.
    """
    given = weights or _built_in()
    every, total = given["sentence"].get("", 0.0), _total(own, given["sentence"])
    against = max(0.0, share_of(around) * _total(around, given["dialogue"]))
    return _logistic(every + total - counts * against)


def out_of_place(around: Collection[str], weights: Weights | None = None) -> float:
    """How likely, from 0 to 1, what is around a sentence shows that it is played, pasted or taken back."""
    given = (weights or _built_in())["dialogue"]
    return _logistic(given.get("", 0.0) + share_of(around) * _total(around, given))


def share_of(found: Collection[str]) -> float:
    """How much each feature around a sentence counts: less than in a sum, by which long chats are suspect."""
    return float((len(found) + _UNKNOWN) ** -_POWER)


def features(sentence: str, message: str, question: str, doubts: Iterable[str] = ()) -> frozenset[str]:
    """What the weights of sentences are of: the words of one, its form, its place in the message, and doubts.

    The empty one is that of any sentence.
    """
    words = words_in(sentence)
    form, place = _of_form(sentence, words, question), _of_place(sentence, message)
    return frozenset(("", *_of_words(words), *form, *place, *(f"doubt: {each}" for each in doubts)))


def dialogue_features(
    sentence: str, message: str, earlier: Iterable[str], later: Iterable[str]
) -> frozenset[str]:
    """What the weights of dialogues are of: words beside a sentence, and in the messages before and after it.

    The empty one is that of any sentence.
    """
    before, _, after = message.partition(sentence)
    places = {"beside": (before, after), "earlier": earlier, "later": later}
    texts = ((place, text) for place, some in places.items() for text in some)
    return frozenset(("", *(f"{place} {each}" for place, text in texts for each in _first_words(text))))


@text_cache(1000)
def _first_words(text: str) -> tuple[str, ...]:
    """The words at the beginning of a text, and each with the next one; not those that any statement has."""
    words = words_in(text[:_NEAR])[:_READ]
    pairs = (
        f"{one} {two}" for one, two in pairwise(words) if not (one in _PLAIN_WORDS and two in _PLAIN_WORDS)
    )
    return (*(each for each in words if each not in _PLAIN_WORDS), *pairs)


def _total(found: Collection[str], weights: Mapping[str, float]) -> float:
    return sum(weights.get(each, 0.0) for each in found if each)


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-value))


@text_cache(1000)
def words_in(sentence: str) -> tuple[str, ...]:
    """The words of a sentence in lower case, with figures, days, months and names as such."""
    return tuple(_words(sentence))


def _words(sentence: str) -> Iterator[str]:
    for match in _TOKEN.finditer(sentence):
        word = match[0].replace("’", "'")
        low = word.casefold()
        if low[0].isdigit() or low in _NUMBERS:
            yield "#number"
        elif _DAY.fullmatch(low):
            yield "#day"
        elif _MONTH.fullmatch(low):
            yield "#month"
        elif word[0].isupper() and match.start() and word != "I" and not word.startswith("I'"):
            yield "#name"
        elif low.endswith("n't"):
            yield from (low[:-3], "n't")
        else:
            first, mark, rest = low.partition("'")
            yield from (first, f"'{rest}") if mark else (low,)


def _of_words(words: tuple[str, ...]) -> Iterator[str]:
    yield from words
    yield from map(" ".join, pairwise(("^", *words, "$")))
    yield f"^ {' '.join(words[:2])}…"
    yield f"^ {' '.join(words[:3])}…"
    yield from (f"-{word[-_SUFFIX:]}" for word in words if len(word) > _SUFFIX + 2 and word[0] != "#")


def _of_form(sentence: str, words: tuple[str, ...], question: str) -> Iterator[str]:
    length = len(words) // 3
    yield f"length {min(length, _LENGTHS)}"
    yield f"{'answer' if question else 'unasked'} of length {min(length, _LENGTHS // 2)}"
    yield from (f"has {mark}" for mark in "?!:…" if mark in sentence)
    if sentence[:1].islower():
        yield "lower case"
    if sentence[-1:] not in ".!?":
        yield "no full stop"


def _of_place(sentence: str, message: str) -> Iterator[str]:
    before, _, after = message.partition(sentence) if len(message) <= _NEAR else ("", sentence, "")
    beside, whole = f"{before} {after}".casefold(), f"{before}{sentence}{after}"
    places = {
        "last": not after.strip(),
        "first": not before.strip(),
        "alone": not beside.strip(),
        "beside a jest": _JESTS.search(whole),
        "beside a quotation": '"' in whole or "“" in whole,
        "beside a single quote": _OPEN_QUOTE.search(beside),
        "beside a colon": _COLON.search(beside),
        "beside a question": "?" in beside,
        "of several lines": "\n" in whole,
        "after a colon or a line": before.rstrip(" ").endswith((":", "\n")),
    }
    yield from (place for place, holds in places.items() if holds)


@cache
def _built_in() -> Weights:
    text = files("germane.extractors").joinpath("english-clauses.json").read_text(encoding="utf-8")
    weights: dict[str, dict[str, float]] = json.loads(text)
    return weights

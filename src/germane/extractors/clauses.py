"""How likely a sentence states something that is worth learning, by weights of its words and of its form.

Pure. The weights are data, fitted to labelled dialogues by `bench/clause_weights.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp
from typing import Final

import regex

from germane.model.text import text_cache

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
_BESIDE: Final = frozenset(
    ("if", "would", "says", "said", "thinks", "imagine", "pretend", "wish", "joke", "my", "i")
)
"""Words that tell something of the other sentences of a message."""
_OPEN_QUOTE: Final = regex.compile(r"(?<!\S)['‘]\w")
_COLON: Final = regex.compile(r":\s*(?:$|['\"])", regex.MULTILINE)
_SUFFIX: Final = 3
_NEAR: Final = 2000
"""Characters of a message at most of which the other sentences are looked at, so that time is linear."""
_LENGTHS: Final = 8
"""Classes of length, of three words each; the last one has all longer ones."""


DOUBTFUL: Final = 0.5
"""How likely a sentence is at least worth learning of which a pattern takes a whole clause."""
VERY_DOUBTFUL: Final = 0.3
"""How likely one is of which a pattern knows what it says, such as an allergy."""
PLAIN: Final = 0.78
UNCLEAR: Final = 0.9
"""How likely a sentence has to be that no pattern fits: where nothing, or something, speaks against it."""


def likelihood(sentence: str, message: str, question: str, doubts: Iterable[str] = ()) -> float:
    """How likely a sentence of a message is worth learning, from 0 to 1.

    `question` is the assistant's question before it; empty where there is none. `doubts` are what speaks
    against it, such as that it is a command.
    """
    weights, found = _built_in(), features(sentence, message, question, doubts)
    return 1 / (1 + exp(-sum(weights.get(each, 0.0) for each in found)))


def features(sentence: str, message: str, question: str, doubts: Iterable[str] = ()) -> frozenset[str]:
    """What the weights are of: the words of a sentence, its form, its place in the message, and the doubts.

    The empty one is that of any sentence.
    """
    words = words_in(sentence)
    form, place = _of_form(sentence, words, question), _of_place(sentence, message)
    return frozenset(("", *_of_words(words), *form, *place, *(f"doubt: {each}" for each in doubts)))


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
    beside = f"{before} {after}".casefold()
    if not after.strip():
        yield "last"
    if not before.strip():
        yield "first"
    if not beside.strip():
        yield "alone"
    whole = f"{before}{sentence}{after}"
    if _JESTS.search(whole):
        yield "beside a jest"
    if '"' in whole or "“" in whole:
        yield "beside a quotation"
    if _OPEN_QUOTE.search(beside):
        yield "beside a single quote"
    if _COLON.search(beside):
        yield "beside a colon"
    if "?" in beside:
        yield "beside a question"
    if "\n" in whole:
        yield "of several lines"
    yield from (f"beside {word}" for word in _BESIDE.intersection(regex.findall(r"\w+", beside)))


@cache
def _built_in() -> Mapping[str, float]:
    text = files("germane.extractors").joinpath("english-clauses.json").read_text(encoding="utf-8")
    weights: dict[str, float] = json.loads(text)
    return weights

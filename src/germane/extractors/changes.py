"""Whether one statement gives another value of what an earlier one states: another day, time or number.

Pure, and for English. Two statements are compared where both have a value of one type, such as a weekday,
and agree in what else they say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

from germane.retrieval.tokenizer import query_terms

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|(?-i:May)|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_TYPES: Final = {
    name: regex.compile(pattern, regex.IGNORECASE)
    for name, pattern in {
        "date": rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b)"
        r"(?:,? \d{4})?",
        "month": rf"\b{_MONTH}\b",
        "weekday": r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b",
        "time": r"\b\d{1,2}(?::\d\d)? ?(?:am|pm|a\.m\.|p\.m\.|o['’]clock)(?!\w)|\b\d{1,2}:\d\d\b"
        r"|\bnoon\b|\bmidnight\b",
        "ordinal": r"\b\d{1,2}(?:st|nd|rd|th)\b",
        "number": r"(?<![\w.])[$€£]?\d+(?:[.,:]\d+)*%?(?!\w)",
    }.items()
}
"""The types of values, the more specific first: what one has matched is no value of a later one."""
_CUE: Final = regex.compile(
    r"\b(?:now|these days|nowadays|any ?more|no longer|instead|moved|moving|changed|switched|upgraded|"
    r"migrated|renamed|replaced|rescheduled|postponed|extended|extending|doubled|raised|reduced|cut|left|"
    rf"from now on|from (?:today|tomorrow|next \p{{L}}+|{_MONTH})|as of|starting|"
    rf"since (?:last|this|yesterday|{_MONTH}|\p{{Lu}}\p{{Ll}}+day)|after all|new|used to|became|becomes|"
    r"turned|quit|gave up|actually|sorry|correction)\b",
    regex.IGNORECASE,
)
"""What says that something changed."""
_REPLACED: Final = regex.compile(
    r"\b(?:renamed|moved|switched|migrated|changed|replaced|upgraded|transferred)(?: everything)?(?: from)? "
    r"(?P<old>[^,.;]{1,40}?) (?:to|with|by|for) (?P<new>[^,.;]{1,60})",
    regex.IGNORECASE,
)
_BESIDE: Final = regex.compile(r"(?:(\p{L}+) )?(?<![\w.])[$€£]?\d+(?:[.,:]\d+)*%?(?: (\p{L}+))?")
_SHARED: Final = 0.5
"""The share of the earlier statement's words, without its values, that the later one has as well."""


@dataclass(frozen=True, slots=True)
class Change:
    """What changed: the type of the value, and whether the later statement says that it is a change."""

    value: str
    stated: bool


def change_of(new: str, old: str, *, subject: str = "", language: str = "english") -> Change | None:
    """How a later statement differs from an earlier one on the same thing; None where it doesn't."""
    replaced = _REPLACED.search(new)
    if replaced is not None:
        gone = _terms(replaced["old"], language)
        if gone and gone <= _terms(old, language):
            return Change("value", stated=True)
    mine, my_words = _parts(new)
    theirs, their_words = _parts(old)
    differing = [name for name in mine if name in theirs and not mine[name] & theirs[name]]
    if not differing or (differing == ["number"] and not _beside(new) & _beside(old)):
        return None
    stated = _CUE.search(new) is not None
    about, before = (_ordered(words, subject, language) for words in (my_words, their_words))
    alike = bool(before) and len(set(about) & set(before)) >= _SHARED * len(set(before))
    headed = bool(about) and bool(before) and about[0] == before[0]
    if not (alike or (headed and stated)):
        return None
    return Change(differing[0], stated=stated)


def _parts(text: str) -> tuple[dict[str, set[str]], str]:
    """The values of a text by type, and the text without them."""
    found: dict[str, set[str]] = {}
    for name, pattern in _TYPES.items():
        for match in pattern.findall(text):
            found.setdefault(name, set()).add(" ".join(sorted(match.casefold().replace(",", "").split())))
        text = pattern.sub(" ", text)
    return found, text


def _beside(text: str) -> set[str]:
    """The words before and after the numbers of a text: what it is a number of."""
    return {word.casefold() for pair in _BESIDE.findall(text) for word in pair if word}


def _ordered(text: str, subject: str, language: str) -> list[str]:
    free = {*_EMPTY, *query_terms(subject, language=language)}
    return [term for term in query_terms(_CUE.sub(" ", text), language=language) if term not in free]


def _terms(text: str, language: str) -> set[str]:
    return set(query_terms(text, language=language))


_EMPTY: Final = frozenset({"user", "we", "our", "date", "time"})

"""Whether one statement gives another value of what an earlier one states: another day, time or number.

Pure, and for English. A later statement changes an earlier one if it says that what the earlier one states
has ended, if both have a value of something there is one of, such as a home, or if both have a value of one
type, such as a weekday, and agree in what else they say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

from germane.extractors.rules import ChangePatterns, OppositePatterns, change_patterns
from germane.model.text import text_cache
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
        r"|\bnoon\b|\bmidnight\b|(?<=\bat )\d{1,2}(?= on\b|\W*$|,)",
        "ordinal": r"\b\d{1,2}(?:st|nd|rd|th)\b|\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth)\b",
        "frequency": r"\b(?:hourly|daily|weekly|fortnightly|monthly|yearly)\b"
        r"|\b(?:once|twice|\w+ times) (?:an?|per|each) \w+"
        r"|\bevery (?:other |second |\d+ )?(?:hours?|days?|weeks?|months?|years?|morning|evening|night)\b",
        "number": r"\+?\b\d+(?:[ -]\d{2,}){2,}\b|(?<![\w.])[$€£]?\d+(?:[.,:]\d+)*%?(?!\w)"
        r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b",
    }.items()
}
"""The types of values, the more specific first: what one has matched is no value of a later one."""
_REPLACED: Final = regex.compile(
    r"\b(?:renamed|moved|switched|migrated|changed|replaced|upgraded|transferred)(?: everything)?(?: from)? "
    r"(?P<old>[^,.;]{1,40}?) (?:to|with|by|for) (?P<new>[^,.;]{1,60})",
    regex.IGNORECASE,
)
_BESIDE: Final = regex.compile(
    r"(?:(\p{L}+) )?(?<![\w.])(?:[$€£]?\d+(?:[.,:]\d+)*%?|\b(?:two|three|four|five|six|seven|eight|nine|ten|"
    r"eleven|twelve)\b)(?: (\p{L}+))?"
)
_RELATIVE_BY_NAME: Final = regex.compile(
    r"The user['’]s (?:wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?)(?:['’]s name)? is"
)
_HELPERS: Final = frozenset(
    {
        "doctor",
        "dentist",
        "therapist",
        "lawyer",
        "accountant",
        "landlord",
        "boss",
        "manager",
        "teacher",
        "coach",
    }
)
"""Whoever tells of a change of the subject's, rather than of their own."""
_NAMED: Final = regex.compile(
    r"(?!(?:The|We|Our|My|They|It|He|She)\b)\p{Lu}\p{L}+(?=['’]s\b| (?:\p{Ll}+(?:s|ed)|left|quit|got)\b)"
)
"""The name that a statement begins with."""
_MOVES: Final = regex.compile(
    r"\b(?:moved|changed|switched|rescheduled|shifted) (?:my|our|the) ", regex.IGNORECASE
)
"""Names what changed, so that one word in common is enough."""
_SAYS_WHAT: Final = regex.compile(r"(?:The user|We|I) (?!['’]s\b)", regex.IGNORECASE)
"""Begins a statement whose first word is what somebody does, rather than what it is about."""
_AT_LEAST: Final = 2
"""The words that two such statements share at least, where the earlier one has as many."""
_SHARED: Final = 0.5
"""The share of the earlier statement's words, without its values, that the later one has as well."""


@dataclass(frozen=True, slots=True)
class Change:
    """What changed: the type of the value, and whether the later statement says that it is a change."""

    value: str
    stated: bool


def change_of(
    new: str, old: str, *, subject: str = "", language: str = "english", quoted: str = ""
) -> Change | None:
    """How a later statement differs from an earlier one on the same thing; None where it doesn't.

    `quoted` is the sentence of the later one, which may say more plainly that something changed.
    """
    patterns = change_patterns(language)
    stated = patterns is not None and says_change(f"{new}\n{quoted}", language)
    same_person = patterns is not None and (
        _person(new, patterns) == _person(old, patterns) or _names_person(new, old) or _names_person(old, new)
    )
    may_end = patterns is not None and (same_person or _names_partner(new, old, patterns))
    if patterns is not None and may_end and _ends(new, old, patterns, language):
        return Change("value", stated=True)
    if patterns is not None and same_person and _same_name(new, old):
        slot = _has_other_value(new, old, patterns, language, stated=stated)
        if slot or _differs_in_value(new, old, patterns.opposites, stated=stated):
            changes = stated or (slot and not _is_constant(new, patterns.opposites))
            return Change("value", stated=changes)
    mine, my_words = parts_of(new)
    theirs, their_words = parts_of(old)
    differing = [name for name in mine if name in theirs and _differ(mine[name], theirs[name], stated=stated)]
    about, before = (_ordered(words, subject, language) for words in (my_words, their_words))
    alike = bool(before) and len(set(about) & set(before)) >= _SHARED * len(set(before))
    headed = stated and bool(about) and bool(before) and about[0] == before[0]
    if not differing or not (alike or headed):
        return None
    if differing == ["number"] and not headed and not _beside(new) & _beside(old):
        return None
    # "Changed gyms, I go on Tuesdays" also shares the gym.
    shared = set(before) & {*about, *(_ordered(quoted, subject, language) if stated else ())}
    least = 1 if _MOVES.search(quoted) else _AT_LEAST
    if differing != ["number"] and _SAYS_WHAT.match(new) and len(shared) < min(least, len(set(before))):
        # "Plays chess on Sundays" says nothing of tennis on Saturdays.
        return None
    return Change(differing[0], stated=stated)


@text_cache(1024)
def says_change(text: str, language: str = "english") -> bool:
    """Whether a text says that something changed or corrects something."""
    patterns = change_patterns(language)
    return patterns is not None and patterns.changes.search(text) is not None


def opposes(one: str, other: str, language: str = "english") -> bool:
    """Whether two statements exclude each other, such as a denial of fish and a liking for salmon."""
    patterns = change_patterns(language)
    return patterns is not None and _excludes(one, other, patterns.opposites)


def on_other_topics(one: str, other: str, language: str = "english") -> bool:
    """Whether two statements give values of different properties: the user's name, and the boss's."""
    patterns = change_patterns(language)
    if patterns is None:
        return False
    mine, theirs = (_topic_of(text, patterns.opposites) for text in (one, other))
    return bool(mine) and bool(theirs) and mine != theirs


def stays(text: str, language: str = "english") -> bool:
    """Whether a statement gives the value of a property that one has for good, such as a birthday."""
    patterns = change_patterns(language)
    return patterns is not None and _is_constant(text, patterns.opposites)


def _person(text: str, patterns: ChangePatterns) -> str:
    """Whose affair a statement is: a relative's, or nobody's but the subject's."""
    match = patterns.person.match(text.removeprefix("The "))
    return "" if match is None or match["who"].casefold() in _HELPERS else match["who"].casefold()


def _same_name(new: str, old: str) -> bool:
    """Whether no statement begins with a name that the other lacks: "Anna lives in Kiel"."""
    names = (_NAMED.match(text) for text in (new, old))
    return all(
        name is None or regex.search(rf"\b{regex.escape(name[0])}\b", other) is not None
        for name, other in zip(names, (old, new), strict=True)
    )


def _names_person(one: str, other: str) -> bool:
    """Whether a statement begins with the name of whom the other one is about: "The user's sister Ada"."""
    name = _NAMED.match(one)
    return (
        name is not None
        and regex.match(rf"[^.]*?['’]s \p{{L}}+ {regex.escape(name[0])}\b", other) is not None
    )


def _names_partner(new: str, old: str, patterns: ChangePatterns) -> bool:
    """Whether a statement ends something of the subject's, where an earlier one names the partner."""
    return not _person(new, patterns) and _RELATIVE_BY_NAME.match(old) is not None


def _ends(new: str, old: str, patterns: ChangePatterns, language: str) -> bool:
    return _is_over(new, old, patterns, language) or _is_renamed(new, old, language)


def _is_over(new: str, old: str, patterns: ChangePatterns, language: str) -> bool:
    """Whether a statement says that what the earlier one states has ended, by half of its words or more."""
    if patterns.ends.search(old):
        return False
    before = _terms(old, language) - _EMPTY
    for match in patterns.ends.finditer(new):
        over = _terms(match["old"], language) - _EMPTY
        if over and len(over & before) * 2 >= len(over):
            return True
    return False


def _is_renamed(new: str, old: str, language: str) -> bool:
    replaced = _REPLACED.search(new)
    gone = _terms(replaced["old"], language) if replaced is not None else set()
    return bool(gone) and gone <= _terms(old, language)


def _has_other_value(new: str, old: str, patterns: ChangePatterns, language: str, *, stated: bool) -> bool:
    """Whether both statements have a value of something there is one of, and not the same."""
    for slot, always in patterns.slots:
        mine, theirs = slot.search(new), slot.search(old)
        if mine is None or theirs is None or not (stated or always):
            continue
        alike = mine.groupdict().get("what") == theirs.groupdict().get("what")
        if alike and not _terms(mine["value"], language) & _terms(theirs["value"], language):
            return True
    now, before = _terms(new, language), _terms(old, language)
    return stated and any(
        group & now and group & before and not group & now & before for group in patterns.exclusive
    )


def _differ(mine: set[str], theirs: set[str], *, stated: bool) -> bool:
    """Whether two sets of values exclude each other, such as "Tuesday and Friday" and "Friday and Monday"."""
    is_part = mine <= theirs or theirs <= mine
    return not mine & theirs or (stated and len(mine) == len(theirs) and not is_part)


def parts_of(text: str) -> tuple[dict[str, set[str]], str]:
    """The values of a text by type, such as "weekday" and "number", and the text without them."""
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
    patterns = change_patterns(language)
    text = text if patterns is None else patterns.changes.sub(" ", text)
    return [term for term in query_terms(text, language=language) if term not in free]


def _terms(text: str, language: str) -> set[str]:
    return set(query_terms(text, language=language))


_EMPTY: Final = frozenset(query_terms("user we our team date time trying using working project plan now"))


# Statements that exclude each other.


def _excludes(one: str, other: str, patterns: OppositePatterns) -> bool:
    """Whether two statements of one subject exclude each other, whichever is the later one."""
    return any(
        _denies(first, second, patterns) or _is_off_diet(first, second, patterns)
        for first, second in ((one, other), (other, one))
    ) or _is_reversed(one, other, patterns)


def _topic_of(text: str, patterns: OppositePatterns) -> frozenset[str]:
    """The terms of the property of which a statement gives the value; empty where it gives none."""
    match = patterns.topic.match(text)
    return frozenset() if match is None else frozenset(query_terms(match["what"]))


def _differs_in_value(one: str, other: str, patterns: OppositePatterns, *, stated: bool) -> bool:
    """Whether both statements give a value of one property, in the same words but for names and figures.

    Of a property that one has for good any other words will do. If a change is stated, the values may have
    names in common: "Ada Byron", "Ada Lovelace".
    """
    mine, theirs = patterns.topic.match(one), patterns.topic.match(other)
    if mine is None or theirs is None or _topic_of(one, patterns) != _topic_of(other, patterns):
        return False
    if _is_constant(one, patterns):
        return not set(query_terms(mine["value"])) & set(query_terms(theirs["value"]))
    values = [_NAME_OR_FIGURE.findall(match["value"]) for match in (mine, theirs)]
    mine_values, their_values = ({each.casefold() for each in some} for some in values)
    if not all(values) or not _differ(mine_values, their_values, stated=stated):
        return False
    rests = [set(query_terms(_NAME_OR_FIGURE.sub(" ", match["value"]))) for match in (mine, theirs)]
    return rests[0] == rests[1]


def _is_constant(text: str, patterns: OppositePatterns) -> bool:
    """Whether a statement gives the value of a property that one has for good, such as a birthday."""
    return bool(_telling(text) & patterns.constant)


def _denies(denial: str, statement: str, patterns: OppositePatterns) -> bool:
    """Whether one statement denies what the other states of the same subject."""
    match, states = patterns.denied.match(denial), patterns.states.match(statement)
    if match is None or states is None or patterns.denied.match(statement):
        return False
    denied = [term for term in query_terms(match["what"]) if term not in _FREE]
    stated = [term for term in query_terms(statement[states.end() :]) if term not in _FREE]
    if not denied or not stated:
        return False
    wider = set(stated).union(*(general for words, general in patterns.groups if words & set(stated)))
    first = {stated[0]}.union(*(general for words, general in patterns.groups if stated[0] in words))
    if match["verb"] and match["verb"].casefold() in _HAVE:
        return denied[0] in first and len(denied) == 1
    return not states["owner"] and denied[0] in first and set(denied) <= wider


def _is_off_diet(one: str, other: str, patterns: OppositePatterns) -> bool:
    """Whether one statement names a diet, and the other something eaten or drunk that it excludes."""
    mine, theirs = _telling(one), _telling(other)
    eats = patterns.states.match(other)
    if eats is None or patterns.denied.match(one) or patterns.denied.match(other):
        return False
    first = next(iter(query_terms(other[eats.end() :])), "")
    eaten = theirs.union(*(general for words, general in patterns.groups if words & theirs))
    return first in _EATS and any(
        diet & mine and not diet & theirs and eaten & bad for diet, bad in patterns.diets
    )


def _is_reversed(one: str, other: str, patterns: OppositePatterns) -> bool:
    """Whether two statements differ by nothing but a pair of opposite words: "open" and "closed"."""
    mine, theirs = _telling(one), _telling(other)
    return any(
        mine & pair and theirs & pair and not mine & theirs & pair and mine - pair == theirs - pair != set()
        for pair in patterns.pairs
    )


@text_cache(10_000)
def _telling(text: str) -> frozenset[str]:
    return frozenset(query_terms(text)) - _FREE


_NAME_OR_FIGURE = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}'’-]*|\d+(?:[.,:]\d+)*\p{L}?")
_HAVE = frozenset({"has no", "have no", "has not any", "owns no"})
_EATS = frozenset(query_terms("eat eats drink drinks had"))
_FREE = frozenset(query_terms("user we our really ever very usually always again still also now"))

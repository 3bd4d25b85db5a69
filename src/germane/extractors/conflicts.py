"""How likely a sentence speaks against a known memory, by weights of what both say and of what came before.

Pure, and for English. The weights are data, fitted to labelled dialogues by `bench/conflict_weights.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp
from typing import Final

import regex

from germane.extractors.answers import last_question
from germane.extractors.changes import parts_of
from germane.extractors.clauses import words_in
from germane.extractors.rules import SHORTEST
from germane.model.text import text_cache
from germane.retrieval.tokenizer import query_terms

REVISES: Final = 0.75
"""How likely a memory is replaced at least, so that the new statement becomes its next version."""
CONTRADICTS: Final = 0.7
"""How likely a sentence speaks against a memory at least, so that both are shown as a contradiction."""
_DENIES: Final = regex.compile(
    r"\b(?:no|not|never|nope|nah|none|nobody|without|nothing)\b|n['’]t\b", regex.IGNORECASE
)
_CORRECTS: Final = regex.compile(
    r"^\W*(?:(?:ah|oh|hm+|um|wait|sorry|well|ha|haha|actually|and|but|so|ok|okay)\W+)*"
    r"(?:no+|nope|nah|wrong|actually|wait|sorry|not)\b",
    regex.IGNORECASE,
)
_ENDS: Final = regex.compile(
    r"\b(?:sold|gave|gone|quit|left|cancel\w*|closed|stopped|dropped|ended|retired|moved|switched|swapped|"
    r"renamed|replaced|died|split|broke up|divorce\w*|went|finished|returned|handed|passed|over|instead|"
    r"anymore|any more|no longer|used to|old|former|ex|previous|new|now|since|these days|nowadays|finally|"
    r"again|became|turned|meanwhile|back)\b",
    regex.IGNORECASE,
)
_BESIDES: Final = regex.compile(r"\b(?:too|also|as well|besides|another|additionally)\b", regex.IGNORECASE)
_PERSON: Final = regex.compile(
    r"\b(?:my|our|his|her|their|user['’]s|the) (?:\w+ )?(?P<who>sister|brother|mother|mom|mum|dad|father|son|"
    r"daughter|wife|husband|partner|girlfriend|boyfriend|friend|boss|manager|colleague|neighbou?r|cousin|aunt|"
    r"uncle|flatmate|roommate|kids?|parents|grandma|grandpa|nephew|niece)\b",
    regex.IGNORECASE,
)
_NAME: Final = regex.compile(r"(?<=\S )(?!I\b)\p{Lu}[\p{L}\p{N}'’-]*")
_FREE: Final = frozenset(
    query_terms("user users we our i my is are has have the a an he she it they his her their")
)
_TELLING: Final = 300
"""Characters of a message, at most, that tells what a sentence is about; longer ones name everything."""
_SHARES: Final = (0.01, 0.26, 0.5, 0.76)
_COSINES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_LENGTHS: Final = (3, 6, 10, 16, 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A sentence of the user's, its `statement` in the third person, its whole message and the one before."""

    sentence: str
    statement: str
    message: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """How likely a remark speaks against a memory, and that it says that the memory was true until then."""

    likelihood: float
    replaces: float


def conflict(remark: Remark, known: str, *, cosine: float, rank: int) -> Conflict:
    """How likely a remark and the text of a known memory can't both be true now.

    `cosine` is that of the statement and the memory, and `rank` the place of the memory among those near,
    the nearest at 0.
    """
    weights, found = _built_in(), conflict_features(remark, known, cosine=cosine, rank=rank)
    against, changed = (_chance(weights[name], found) for name in ("against", "changed"))
    return Conflict(against, against * changed)


def is_comparable(remark: Remark, known: str) -> bool:
    """Whether a remark can speak against a memory: both have a word in common.

    A short answer may instead have another value of one type. What the user does "too" leaves what they did
    before as it was.
    """
    if _BESIDES.search(remark.sentence):
        return False
    mine = _terms(f"{remark.sentence} {remark.statement}") - _FREE
    types = _values(remark.sentence).keys() & _values(known).keys() - {"name"}
    is_short = len(remark.sentence.split()) < SHORTEST
    shared = {each for each in mine & _terms(known) if not each.isdigit()}
    return bool(shared or (is_short and types))


def conflict_features(remark: Remark, known: str, *, cosine: float, rank: int) -> frozenset[str]:
    """What the weights are of: what both share, values that differ, words of change, and who is meant."""
    mine = _terms(f"{remark.sentence} {remark.statement}") - _FREE
    theirs = _terms(known) - _FREE
    values = _values(known)
    of_values = frozenset[str]().union(*(_terms(each) for some in values.values() for each in some))
    head = theirs - of_values
    share, of_head = (_class(_part(mine, some), _SHARES) for some in (theirs, head))
    reply, message = (text if len(text) <= _TELLING else "" for text in (remark.before, remark.message))
    before = _terms(reply) - _FREE
    stated = _values(remark.sentence)
    differ = {name: not values[name] & stated[name] for name in values if name in stated}
    is_other = any(differ.values())
    near = _class(cosine, _COSINES)
    names_value, first = bool(of_values & before), min(rank, 1)
    found = {
        "",
        f"shared {min(len(mine & theirs), 4)}",
        f"share {share}",
        f"head {min(len(mine & head), 3)}",
        f"share of head {of_head}",
        f"value {min(len(mine & of_values), 2)} of {min(2, len(of_values))}",
        f"before value {names_value} head {min(len(head & before), 2)}",
        f"before {min(len(before & theirs), 4)} share {min(share, 1)}",
        f"message {min(len((_terms(message) - _FREE - mine) & theirs), 3)}",
        f"question {min(len(_terms(last_question(reply)) & theirs), 3)}",
        f"near {near}",
        f"rank {min(rank, 3)}",
        f"near {near} rank {first}",
        f"differs {is_other} same {not all(differ.values())} share of head {of_head}",
        f"length {_class(len(remark.sentence.split()), _LENGTHS)}",
        f"asks {remark.sentence.endswith('?')}",
        *(f"{name} {'differs' if differs else 'same'}" for name, differs in differ.items()),
        *_of_people(remark.sentence, known),
        *(f"word {word}" for word in words_in(remark.sentence)),
        *_of_known(known),
    }
    for name, pattern in (("denies", _DENIES), ("corrects", _CORRECTS), ("ends", _ENDS)):
        cue = f"{name} {pattern.search(remark.sentence) is not None}"
        found |= {
            cue,
            f"{cue} share {share}",
            f"{cue} head {of_head}",
            f"{cue} near {_class(near, (3, 5))} {first}",
            f"{cue} differs {is_other}",
            f"{cue} before {names_value} share {min(share, 1)}",
            f"{cue} value {min(len(mine & of_values), 1)}",
        }
    return frozenset(found)


def _of_people(sentence: str, known: str) -> Iterator[str]:
    mine, theirs = ({each["who"].casefold() for each in _PERSON.finditer(text)} for text in (sentence, known))
    yield f"person {bool(mine - theirs)} {bool(theirs - mine)} {bool(mine & theirs)}"


@text_cache(1000)
def _of_known(known: str) -> tuple[str, ...]:
    words = words_in(known)
    return (f"known {' '.join(words[:3])}…", *(f"known {word}" for word in words))


@text_cache(1000)
def _values(text: str) -> Mapping[str, frozenset[str]]:
    """The values of a text by their types, and the names after its first word."""
    found, rest = parts_of(text)
    names = {each.casefold() for each in _NAME.findall(rest)}
    return {name: frozenset(some) for name, some in (*found.items(), ("name", names)) if some}


@text_cache(1000)
def _terms(text: str) -> frozenset[str]:
    return frozenset(query_terms(text))


def _part(some: frozenset[str], of: frozenset[str]) -> float:
    return len(some & of) / max(1, len(of))


def _class(value: float, bounds: Iterable[float]) -> int:
    return sum(value >= bound for bound in bounds)


def _chance(weights: Mapping[str, float], found: Iterable[str]) -> float:
    return 1 / (1 + exp(-sum(weights.get(each, 0.0) for each in found)))


@cache
def _built_in() -> Mapping[str, Mapping[str, float]]:
    text = files("germane.extractors").joinpath("english-conflicts.json").read_text(encoding="utf-8")
    weights: dict[str, dict[str, float]] = json.loads(text)
    return weights

"""Whether a reply gives another value of a memory that the assistant has just named.

Pure, and for English. What the assistant names is what the user replies to, so that fewer words in common
are enough: after "on your Mac", "I'm on Fedora" is about the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import regex

from germane.extractors.changes import Change, says_change
from germane.extractors.statements import with_subject
from germane.model.conversation import Message, MessageRole
from germane.model.extraction import Proposal
from germane.model.text import text_cache
from germane.retrieval.tokenizer import query_terms

_FREE: Final = frozenset(query_terms("user we our us they their now new also still always really the one"))
_FRAME: Final = regex.compile(
    r"(?P<who>The user|We|I)(?! ?['’]s\b) (?:(?:also|now|currently|usually|mostly|always|only|just|still|"
    r"really|have|has|have been|has been|never|ever) )*(?P<verb>\p{L}+)(?: (?P<rest>[^.;!?]+))?",
    regex.IGNORECASE,
)
_OWNED: Final = regex.compile(
    r"(?:The user['’]s|Our|My|The) (?P<what>[\p{L}'’ -]{2,40}?) (?:is|are|was)(?: now| still)? "
    r"(?P<value>(?:[^.;!?]|\.(?=\S))+)",
    regex.IGNORECASE,
)
_WHOSE: Final = regex.compile(r"The user['’]s (?P<what>[\p{L}’'-]+)", regex.IGNORECASE)
_ROLE: Final = regex.compile(
    r"(?P<who>\p{Lu}[\p{L}’'-]*(?: \p{Lu}[\p{L}’'-]*)*) (?:is|are) (?P<what>(?:the|our|my) [^.;,!?]+)"
)
_PREPOSITION: Final = regex.compile(
    r"(?:in|on|at|to|for|with|from|by|as|near|of|over|under|about|into|up|out|off)\b", regex.IGNORECASE
)
_ARTICLE: Final = regex.compile(r"an? ", regex.IGNORECASE)
_AMOUNT: Final = regex.compile(
    r"(?:an? |the )?(?P<number>no|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"\d+(?:[.,]\d+)*)"
    r"[ -](?P<of>\p{L}+)",
    regex.IGNORECASE,
)
_BE: Final = frozenset({"is", "are", "am", "was"})
_HAVE: Final = frozenset({"has", "have", "owns", "own", "got"})
_REJECTS: Final = regex.compile(
    r"\b(?:instead|no longer|any ?more|any longer|these days|nowadays|no more|history|gone|"
    r"(?:moved|switched|changed|swapped|transferred|migrated|replaced|upgraded|downgraded|promoted|slipped|"
    r"shifted|adjourned|postponed|rescheduled|delayed|bumped|raised|lowered|handed)\b[^.;!?]* "
    r"(?:to|with|by|for))\b",
    regex.IGNORECASE,
)
"""Says that what the reply is about is no longer so."""
_AFFIRMS: Final = regex.compile(
    r"^(?:yes|yeah|yep|yup|exactly|right|correct|sure|ok|okay|thanks|great|perfect)\b|"
    r"\bby the way\b|\bbtw\b",
    regex.IGNORECASE,
)
_NAMED: Final = 0.5
"""The share of a memory's words that a message has at least to name it, without its names and figures."""
_VALUE: Final = regex.compile(r"(?<=\S )\p{Lu}[\p{L}\p{M}\p{N}'’-]*|(?<!\S)\S*\d\S*")
_LONGEST: Final = 600
"""Characters of a memory that states one thing."""


def replied_to(proposal: Proposal, messages: Mapping[str, Message]) -> str:
    """The assistant's message that the last quoted one replies to; empty where there is none."""
    quoted = messages[proposal.quotes[-1].message]
    earlier = [each for each in messages.values() if each.seq < quoted.seq and each.own_text]
    latest = max(earlier, key=lambda each: each.seq, default=None)
    return latest.own_text if latest is not None and latest.role is MessageRole.ASSISTANT else ""


def names(text: str, memory: str) -> bool:
    """Whether a message names what a memory states: half of its words, or one of its names or figures."""
    if len(memory) > _LONGEST:
        return False
    there, words = _terms(text), _terms(with_subject(memory))
    values = [each for value in _VALUE.findall(with_subject(memory)) if (each := _terms(value))]
    return any(each <= there for each in values) or len(there & words) >= max(1, _NAMED * len(words))


def reply_to(new: str, old: str, quoted: str, *, has_own: bool) -> Change | None:
    """How a reply differs from what the assistant named of a memory; None where it is about something else.

    `quoted` is the sentence of the reply, which may say more plainly that something changed, and `has_own`
    whether that names the property that it gives a value of.
    """
    mine, theirs = with_subject(new), with_subject(old)
    stated = says_change(f"{new}\n{quoted}")
    differs = _other_object(mine, theirs) or _other_owned(mine, theirs) or _other_role(mine, theirs)
    if differs:
        return Change("value", stated=stated)
    rejected = _REJECTS.search(quoted)
    if has_own or rejected is None or _terms(mine) >= _terms(theirs) or _AFFIRMS.search(quoted):
        return None
    whose = _WHOSE.match(mine)
    # "My sister moved to Kiel" is about nothing else, unless it says "instead".
    if whose and not _terms(whose["what"]) & _terms(theirs) and rejected[0].casefold() != "instead":
        return None
    return Change("value", stated=True)


def _other_object(new: str, old: str) -> bool:
    """Whether both say that the user does the same with something else: "plays the cello", "the violin"."""
    mine, theirs = _FRAME.match(new), _FRAME.match(old)
    if mine is None or theirs is None or not mine["rest"] or not theirs["rest"]:
        return False
    verbs = mine["verb"].casefold(), theirs["verb"].casefold()
    if verbs[0] in _HAVE and verbs[1] in _HAVE:
        return _other_amount(mine["rest"], theirs["rest"])
    alike = (verbs[0] in _BE and verbs[1] in _BE) or (
        bool(_terms(verbs[0])) and _terms(verbs[0]) == _terms(verbs[1])
    )
    if not alike or _terms(mine["rest"]) & _terms(theirs["rest"]):
        return alike and _other_amount(mine["rest"], theirs["rest"])
    starts = [_PREPOSITION.match(each["rest"]) for each in (mine, theirs)]
    if verbs[0] in _BE:
        articles = [_ARTICLE.match(each["rest"]) is not None for each in (mine, theirs)]
        return all(articles)
    return (starts[0] and starts[0][0].casefold()) == (starts[1] and starts[1][0].casefold())


def _other_amount(new: str, old: str) -> bool:
    """Whether both give an amount of the same thing, and not the same amount."""
    mine, theirs = _AMOUNT.match(new), _AMOUNT.match(old)
    if mine is None or theirs is None or not _terms(mine["of"]):
        return False
    return (
        _terms(mine["of"]) == _terms(theirs["of"])
        and mine["number"].casefold() != theirs["number"].casefold()
    )


def _other_owned(new: str, old: str) -> bool:
    """Whether both give a value of one thing of the user's, without a word in common."""
    mine, theirs = _OWNED.match(new), _OWNED.match(old)
    if mine is None or theirs is None or _terms(mine["what"]) != _terms(theirs["what"]):
        return False
    values = [set(each["value"].casefold().split()) for each in (mine, theirs)]
    return not values[0] & values[1]


def _other_role(new: str, old: str) -> bool:
    """Whether both say who somebody is, and not the same: "Ben is the owner", "Paula is the owner"."""
    mine, theirs = _ROLE.match(new), _ROLE.match(old)
    return (
        mine is not None
        and theirs is not None
        and mine["who"] != theirs["who"]
        and _terms(mine["what"]) == _terms(theirs["what"])
    )


@text_cache(10_000)
def _terms(text: str) -> frozenset[str]:
    return frozenset(query_terms(text)) - _FREE

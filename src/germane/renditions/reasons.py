"""What a decision record decides, for which reason, and what follows from it.

Level: kinds. Pure. Reads the templates of Nygard, MADR and Tyree, paragraphs led by a word
such as "Decision:", and texts without any form, by the words that a reason is usually given with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from germane.renditions.prose import Passage, as_text, prose_of, sentences_of

__all__ = ["Argument", "argument_of", "decisive"]

_TITLE = 100
"""Characters up to which a first line without a full stop is taken for a title."""

_DECIDES, _FOLLOWS, _WHY = "decides", "follows", "why"
_DRIVERS, _ASIDE, _FIELDS = "drivers", "aside", "fields"
_NAMES = {
    _DRIVERS: r"decision drivers?|drivers?|forces|requirements|criteria|constraints",
    _FIELDS: r"status|date|deciders?|decision[ -]makers?|authors?|consulted|informed|tags|technical story",
    _DECIDES: r"(?:the )?(?:decision|resolution|chosen|solution|proposal|we decided|entscheidung)\b.*",
    _FOLLOWS: r"(?:\w+ )?consequences?|implications?|results?|impact|outcome|trade-?offs?|folgen",
    _WHY: r"rationale|reasons?|reasoning|justification|motivation|argument\w*|why\b.*|begründung",
    _ASIDE: r"(?:considered )?(?:options|alternatives).*|pros and cons.*|references|links|related.*|see also",
}
_SECTIONS = tuple(
    (role, re.compile(rf"(?:\d+\.?\s+)?(?:{names})", re.IGNORECASE)) for role, names in _NAMES.items()
)
_LED = re.compile(
    r"^(?:[*_]{2})?(Context|Problem|Status|Decision(?: Drivers?| Outcome)?|Consequences?|Rationale|Reasons?"
    r"|Why|Outcome|Result|Alternatives|Options|Date|Deciders?|Decision[- ]makers?|Entscheidung|Begründung"
    r"|Konsequenzen)(?:[*_]{2})?[.:](?:[*_]{2})?\s+(?=\S)"
)
# The stronger a word stands for a reason, the more it counts.
_STRONG = (
    r"because|decisive\w*|(?:main|real|deciding|key|chief) (?:reason|argument)|(?:the|our|one) reasons?"
    r"|tipped|settled it|weil|denn|ausschlaggebend\w*"
)
_CLEAR = (
    r"so that|since(?! (?:\d|then|last|[A-Z]\w+ \d))|due to|in order to|rationale|(?:that|which) is why"
    r"|outweigh\w*|reasons?|therefore|damit|wegen|deshalb|daher"
)
_WEAK = (
    r"avoids?|otherwise|too (?:slow|expensive|complex|large|risky|hard|much)|cheaper|faster|simpler|safer"
    r"|cannot|can't|must not|needs? to"
)
_REASONS = tuple(
    (weight, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for weight, words in ((3, _STRONG), (2, _CLEAR), (1, _WEAK))
)
_DECIDING = re.compile(
    r"\bwe(?:'ll| will| shall| have| are going to)?\s+(?:now\s+)?(?:use|keep|adopt|choose|chose|chosen"
    r"|decided?|go|went|pick(?:ed)?|stay|move|moved|switch(?:ed)?|replaced?|drop(?:ped)?)\b|\bdecided\b|\bdecision\b"
    r"|\b(?:chosen option|chose|will be used|is adopted)\b",
    re.IGNORECASE,
)
_CHOSEN = re.compile(r"^Chosen option:\s+", re.IGNORECASE)
_FOLLOWING = re.compile(
    r"\b(?:as a (?:result|consequence)|this means|consequently|trade-?off|in return|we accept|the price"
    r"|it costs?|cost us)\b",
    re.IGNORECASE,
)
# How much a section is likely to give the reason, beside the words of a sentence.
_LIKELY = {_WHY: 6, _DECIDES: 5, _DRIVERS: 4, "": 3, _FOLLOWS: 1, _ASIDE: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """The parts of a decision, each empty where the text has none."""

    headline: str = ""
    status: str = ""
    decision: str = ""
    reason: str = ""
    consequence: str = ""


def argument_of(passages: Iterable[Passage], *, subject: str = "") -> Argument:
    """The parts of a decision record. A record without a title is headed by its subject, if it has one.

    The reason is empty where the decision's first sentence gives it already.
    """
    parts = [_part(passage) for passage in prose_of(passages)]
    headline, parts = _headline(parts, subject)
    status = next((p.text for role, p in parts if role == _FIELDS and _is_status(p)), "")
    told = [(role, p) for role, p in parts if role != _FIELDS]
    decided = [p for role, p in told if role == _DECIDES]
    sentences = [(role, each) for role, p in told for each in sentences_of(p.text)]
    if decided:
        decision = _CHOSEN.sub("", as_text([replace(p, leads=()) for p in decided], one_line=True))
        first = sentences_of(decision)[:1]
    else:
        candidates = [each for role, each in sentences if role == ""] or [each for _, each in sentences]
        first = [each for each in candidates if _DECIDING.search(each)][:1] or candidates[:1]
        decision = "".join(first)
    reason = "" if any(_weight(each) == _REASONS[0][0] for each in first) else _reason(sentences, first)
    consequence = _consequence(sentences, [*first, reason])
    if not headline and first:
        headline, decision = first[0], decision.removeprefix(first[0]).strip()
    return Argument(
        headline=headline,
        status=sentences_of(status)[0] if sentences_of(status) else "",
        decision=decision,
        reason=reason,
        consequence=consequence,
    )


def decisive(sentences: Sequence[str]) -> tuple[str, ...]:
    """The sentence that says what was decided, and the one that says best why, where there are any."""
    deciding = next((each for each in sentences if _DECIDING.search(each)), "")
    reason = max(sentences, key=_weight, default="")
    key = {deciding, reason if _weight(reason) > 1 else ""}
    return tuple(each for each in dict.fromkeys(sentences) if each in key)


def _part(passage: Passage) -> tuple[str, Passage]:
    """A passage with the role of its section; a word that leads it stands for a heading."""
    led = _LED.match(passage.text)
    if led:
        passage = replace(passage, text=passage.text[led.end() :], section=led[1])
    return _role(passage.section), passage


def _role(section: str) -> str:
    name = section.strip(" :").lower()
    return next((role for role, names in _SECTIONS if names.fullmatch(name)), "")


def _is_status(passage: Passage) -> bool:
    return passage.section.strip(" :").lower() == "status"


def _headline(parts: list[tuple[str, Passage]], subject: str) -> tuple[str, list[tuple[str, Passage]]]:
    """The title of a record, and its parts without it."""
    if not parts:
        return subject, parts
    role, first = parts[0]
    if first.leads and not _role(first.leads[0][1]):
        return first.leads[0][1], parts
    if (
        role == ""
        and not first.leads
        and len(first.text) <= _TITLE
        and first.text[-1] not in ".!?"
        and parts[1:]
    ):
        return first.text, parts[1:]
    return subject, parts


def _weight(sentence: str) -> int:
    return next((weight for weight, words in _REASONS if words.search(sentence)), 0)


def _reason(sentences: Sequence[tuple[str, str]], decided: Sequence[str]) -> str:
    """The sentence that gives the reason best: by its words, then by its section, then by its place."""
    best, most = "", 0
    started: set[str] = set()
    for role, sentence in sentences:
        weight = 10 * _weight(sentence)
        if not weight and role not in started:
            # Where no word tells, the first sentence of a section on reasons does.
            weight = {_WHY: 15, _DRIVERS: 8, "": 5}.get(role, 0)
        started.add(role)
        score = weight + _LIKELY.get(role, 3) if weight else 0
        if score > most and sentence not in decided:
            best, most = sentence, score
    return best


def _consequence(sentences: Sequence[tuple[str, str]], told: Sequence[str]) -> str:
    following = [each for role, each in sentences if role == _FOLLOWS and each not in told]
    if following:
        return following[0]
    return next(
        (each for role, each in sentences if role == "" and each not in told and _FOLLOWING.search(each)), ""
    )

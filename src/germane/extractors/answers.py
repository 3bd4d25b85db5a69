"""What a short answer states, by the question before it: "Where do you live?", "Osaka" as "I live in Osaka".

Pure. The patterns are data; see `english.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

_LONGEST: Final = 12
"""Words of an answer at most; what is longer is a statement of its own."""
_ADDRESSED: Final = {"your": "my", "yours": "mine", "yourself": "myself", "you": "I"}
_ADDRESS: Final = regex.compile(rf"\b(?:{'|'.join(_ADDRESSED)})\b", regex.IGNORECASE)
_END: Final = regex.compile(r"(?<=[.!?…])\s+|\n+")
_SEEN: Final = 400
"""Characters of a question at most."""
_STARTS: Final = regex.compile(
    r"(?:in|on|at|near|by|from|to|outside|under|behind|over|between|around|about|next|since|for|until|till|"
    r"before|after|during|every|each|once|twice|daily|weekly|monthly|yearly|always|usually|mostly|only|"
    r"today|tomorrow|yesterday|this|last|all|two|three|four|five|half|a|an|\d+(?:x| times| ?[-–] ?\d+)?(?= )|"
    r"early|late|mid|\w+days)\b",
    regex.IGNORECASE,
)
"""Begins an answer that needs no preposition before it."""

_CLOCK: Final = regex.compile(r"\d{1,2}(?::\d\d| ?[ap]\.?m\b|$)|noon\b|midnight\b", regex.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPattern:
    """A form of question, and the statement in the first person that it makes with an answer.

    `content` takes the groups of `asks`, `{answer}`, `{place}` and `{day}`, which are the answer with a
    preposition, and `{who}`, whom a pronoun stands for. `yes` and `no` are the statements of an answer that
    only affirms or denies; a form without them takes no such answer.
    """

    asks: regex.Pattern[str]
    kind: str
    content: str | None
    yes: str | None
    no: str | None
    attribute: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPatterns:
    """The forms of questions, the first that fits first, and what answers consist of.

    `skipped` are questions that ask for no fact. `affirms` and `denies` match the beginning of an answer,
    `opener` what stands before its value and `end` what follows it. An answer that matches `empty` states
    nothing, or is a sentence of its own.
    """

    forms: tuple[AnswerPattern, ...]
    skipped: regex.Pattern[str]
    affirms: regex.Pattern[str]
    denies: regex.Pattern[str]
    opener: regex.Pattern[str]
    end: regex.Pattern[str]
    empty: regex.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What an answer states, in the first person, with the kind and the attribute of its form."""

    text: str
    kind: str
    attribute: str | None


def answered(question: str, answer: str, patterns: AnswerPatterns, *, who: str = "") -> Answered | None:
    """What an answer states; None where no form fits the question or the answer states nothing.

    `who` is whom "he", "she" or "they" of the question stands for, such as "my dog"; empty if unknown.
    """
    if patterns.skipped.search(question):
        return None
    for form in patterns.forms:
        match = form.asks.search(question)
        if match is None:
            continue
        groups = {name: _turned(text) for name, text in match.groupdict().items() if text}
        groups.setdefault("who", who)
        template, value = _template(form, answer, patterns)
        if template is None or ("{who}" in template and not groups["who"]):
            return None
        start = _STARTS.match(value)
        fields = {
            **groups,
            "answer": value,
            "place": value if start else f"{'at' if value[:1].isdigit() else 'in'} {value}",
            "day": value if start else f"{'at' if _CLOCK.match(value) else 'on'} {value}",
        }
        try:
            text = template.format(**fields)
        except KeyError:  # An optional group of the question that isn't there.
            return None
        attribute = form.attribute and form.attribute.format(**fields)
        return Answered(text=" ".join(text.split()).rstrip(" :,"), kind=form.kind, attribute=attribute)
    return None


def last_question(text: str) -> str:
    """The question at the end of a text, or the last one in it; empty if there is none."""
    end = text.rfind("?") + 1
    first = max(0, end - _SEEN)
    starts = [match.end() for match in _END.finditer(text, first, max(0, end - 1))]
    return text[starts[-1] if starts else first : end].strip()


def _template(form: AnswerPattern, answer: str, patterns: AnswerPatterns) -> tuple[str | None, str]:
    """The statement that a form makes with an answer, and the value of the answer."""
    yes, no = patterns.affirms.match(answer), patterns.denies.match(answer)
    bare = yes or no
    value = _value(answer[bare.end() :] if bare else answer, patterns)
    if yes:
        return form.yes, value
    if no:
        return (form.no if not value else None), ""
    return (form.content if value else None), value


def _value(answer: str, patterns: AnswerPatterns) -> str:
    """The value of an answer: without its opener and what follows it; empty where it states none."""
    plain = patterns.end.sub("", patterns.opener.sub("", answer.strip(" ,;:–—-"))).strip(" ,;:–—-.!")
    return "" if patterns.empty.search(plain) or len(plain.split()) > _LONGEST else plain


def _turned(text: str) -> str:
    """A part of a question as the one who answers would put it: "your dog" as "my dog"."""
    return _ADDRESS.sub(lambda match: _ADDRESSED[match[0].casefold()], text.strip())

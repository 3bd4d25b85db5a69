"""The extractor without a model: patterns of English, precise rather than complete.

Pure: the patterns are data of the package, or a file of the user's. What they find is a plain statement of
the user's, in the third person.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import regex

from germane.errors import InvalidInput, UnreadableSource
from germane.model.conversation import Message, MessageRole
from germane.model.extraction import Proposal, Quote
from germane.model.memory import Memory
from germane.retrieval.dates import MONTH, parse_moment

USER: Final = "user"
"""The subject of what the user states of themselves."""

_MACRO = regex.compile(r"\{([a-z_]+)\}")
_CODE = regex.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", regex.DOTALL)
_PASTED = regex.compile(r"(?m)^\s*(?:>|\||#{1,6} |[-+]{3}|\d+:\d+:\d+|(?:From|Subject|To|Cc): ).*$")
_SENTENCE = regex.compile(
    r"(?<![\d\s]\s?[ap]\.m\.)(?<!\b(?:e\.g|i\.e|Dr|Mr|Mrs|Ms|St|vs|etc)\.)(?<=[.!?…]['\"”’)\]]*)\s+|\n+"
)
_LONGEST: Final = 400
"""Characters of a sentence; what is longer is material rather than a statement."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One pattern of the file: what it matches becomes a memory."""

    name: str
    text: regex.Pattern[str]
    kind: str
    attribute: str | None
    content: str | None


@dataclass(frozen=True, slots=True)
class _Refused:
    """Sentences from which nothing is learned, except memories of one kind."""

    reason: str
    text: regex.Pattern[str]
    exempt: str | None


@dataclass(frozen=True, slots=True)
class _Patterns:
    patterns: tuple[_Pattern, ...]
    refused: tuple[_Refused, ...]


class RuleExtractor:
    """Proposes what a user states plainly: name, home, work, allergies, preferences, dates, decisions, rules.

    It reads the user's messages alone, in English. `patterns` is a TOML file of patterns in place of the
    built-in ones, in the form of `germane/extractors/english.toml`, whose `words` it may use. Raises
    UnreadableSource for a file that can't be read as one.
    """

    name = "rules"

    def __init__(self, patterns: str | Path | None = None) -> None:
        self._patterns = _built_in() if patterns is None else _read(Path(patterns))

    def extract(
        self,
        messages: Sequence[Message],
        known: Sequence[Memory] = (),  # noqa: ARG002 - What is known doesn't change what was stated.
    ) -> tuple[Proposal, ...]:
        """The proposals of the user's messages, in their order; a corrected statement isn't proposed."""
        found: list[Proposal] = []
        for message in messages:
            if message.role is not MessageRole.USER:
                continue
            for sentence in sentences(message.own_text):
                corrected = _corrected(sentence, message, found)
                if corrected is not None:
                    found[corrected[0]] = corrected[1]
                    continue
                found += self._of_sentence(sentence, message)
        return tuple({(each.content, each.quotes[0].message): each for each in found}.values())

    def _of_sentence(self, sentence: str, message: Message) -> Iterator[Proposal]:
        taken: list[tuple[int, int]] = []
        refused = [each for each in self._patterns.refused if each.text.search(sentence)]
        speaker = _speaker(message)
        for pattern in self._patterns.patterns:
            if any(each.exempt != pattern.kind for each in refused):
                continue
            for match in pattern.text.finditer(sentence):
                start, end = match.span()
                if not any(start < last and first < end for first, last in taken):
                    taken.append((start, end))
                    yield _proposal(pattern, match, sentence, message, speaker)


def refusal_of(sentence: str, kind: str) -> str:
    """Why a sentence teaches nothing of this kind, by the built-in patterns; empty where it may."""
    reasons = (
        each.reason
        for each in _built_in().refused
        if (kind not in ("rule", "constraint") or each.exempt != "rule") and each.text.search(sentence)
    )
    return next(reasons, "")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, as they stand in it, without code, quoted lines and tables."""
    stripped = _PASTED.sub("\n", _CODE.sub("\n", text))
    for each in _SENTENCE.split(stripped):
        sentence = each.strip()
        if sentence and len(sentence) <= _LONGEST:
            yield sentence


def _proposal(
    pattern: _Pattern, match: regex.Match[str], sentence: str, message: Message, speaker: str
) -> Proposal:
    groups = {name: value.strip() for name, value in match.groupdict().items() if value is not None}
    subject = "The user" if speaker == USER else speaker
    owner = f"{subject}'" if subject.endswith("s") else f"{subject}'s"
    who = {"Subject": subject, "Subjects": owner, **groups}
    if pattern.content is None:
        content = third_person(match[0], subject)
    else:
        content = third_person(pattern.content.format(**who), subject)
    when = groups.get("when")
    starts = None
    if when is not None and message.created_at is not None:
        starts = parse_moment(regex.sub(r"^(?:on|in|at|by|from|since) ", "", when), now=message.created_at)
    return Proposal(
        content=_sentence_case(content),
        kind=pattern.kind,
        subject=speaker,
        attribute=pattern.attribute and _attribute(pattern.attribute.format(**groups)),
        quotes=(Quote(message=message.id or str(message.seq), text=sentence),),
        valid_from=starts,
    )


def _attribute(text: str) -> str:
    plain = regex.sub(r"\b(?:new|current|next|upcoming|favorite)\b ?", _usual, text.casefold())
    return " ".join(plain.split())


def _usual(match: regex.Match[str]) -> str:
    return "favourite " if match[0].startswith("favo") else ""


def _speaker(message: Message) -> str:
    """The name of who wrote a message, where the message has one; else the user."""
    if not message.extra:
        return USER
    fields = json.loads(message.extra)
    name = fields.get("name") if isinstance(fields, Mapping) else None
    return name.strip() if isinstance(name, str) and name.strip() else USER


# Statements of the first person, in the third.

_IRREGULAR: Final = {"have": "has", "do": "does", "am": "is", "go": "goes", "are": "are"}
_UNCHANGED = regex.compile(
    r"^(?:was|were|had|did|can|could|will|would|should|shall|must|may|might|is|has|does|"
    r"\w+ed|went|got|made|took|bought|met|saw|ate|came|left|began|ran|wrote|built|broke|chose|drove|flew|gave|"
    r"grew|knew|lost|paid|read|sang|sold|sent|slept|spoke|spent|taught|thought|told|understood|won|wore|found|"
    r"felt|fell|forgot|kept|heard|held|quit|set|put|cut|swam|hurt|became|brought|caught|learnt|led|said|stood)$",
    regex.IGNORECASE,
)
_ADVERBS = (
    r"(?:(?:just|recently|finally|actually|really|also|currently|still|now|already|absolutely|always|usually|"
    r"generally|mostly|personally|definitely|totally|never|only|often|sometimes|both|no longer) )*"
)
_I_VERB = regex.compile(rf"\bI ({_ADVERBS})([\w'’]+)")
_FIRST: Final = (
    (regex.compile(r"\bI['’]m\b|\bI am\b"), "{subject} is"),
    (regex.compile(r"\bI['’]ve got\b"), "{subject} has"),
    (regex.compile(r"\bI['’]ve\b"), "{subject} has"),
    (regex.compile(r"\bI['’]ll\b"), "{subject} will"),
    (regex.compile(r"\bI['’]d\b"), "{subject} would"),
    (regex.compile(r"\bI (?:don['’]t|do not)\b"), "{subject} doesn't"),
)
_MINE: Final = (
    (regex.compile(r"\b[Mm]y\b"), "{owner}"),
    (regex.compile(r"\bmine\b"), "{owner}"),
    (regex.compile(r"\bmyself\b"), "themselves"),
    (regex.compile(r"\bme\b"), "{subject}"),
    (regex.compile(r"\bI\b"), "{subject}"),
)


def third_person(text: str, subject: str = "The user") -> str:
    """A statement of the first person in the third: "I like tea" as "the user likes tea"."""
    inner = "the user" if subject == "The user" else subject
    owner = f"{inner}'" if inner.endswith("s") else f"{inner}'s"
    for pattern, form in _FIRST:
        text = pattern.sub(form.format(subject=inner, owner=owner), text)
    text = _I_VERB.sub(lambda match: f"{inner} {match[1]}{_third(match[2])}", text)
    for pattern, form in _MINE:
        text = pattern.sub(form.format(subject=inner, owner=owner), text)
    return text


def _third(verb: str) -> str:
    low = verb.casefold()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if _UNCHANGED.match(low) or "'" in low or "’" in low:
        return verb
    if low.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def _sentence_case(text: str) -> str:
    """The text as a sentence: a capital at the beginning, a full stop at the end."""
    plain = " ".join(text.split()).strip(" ,;:–—-")
    plain = plain[:1].upper() + plain[1:]
    return plain if plain.endswith((".", "!", "…")) else f"{plain}."


# Corrections of what was stated just before: "no, it's Thursday".

_CORRECTS = regex.compile(
    r"^(?:no|nope|oops|sorry|wait|actually|correction|hang on|ah|oh|hm+|my bad|my mistake|scratch that)\b"
    r"(?:[,.!:–—-]+ ?|\s)(?:(?:no|sorry|wait|actually|I mean|not [^,]+),? )*"
    r"(?:it['’]?s|it is|that['’]?s|that is|I meant|I mean|make (?:it|that)|it should be|should be|it was|"
    r"s?he['’]s)\s+(?:actually |really |now )?(?:called |named )?(?P<value>[^.!?;\n]+)"
    r"|^(?:I meant|I mean(?:t to say)?|make (?:it|that)|correction:?)\s+(?P<value>[^.!?;\n]+)",
    regex.IGNORECASE,
)
_TYPES: Final = tuple(
    regex.compile(text, regex.IGNORECASE)
    for text in (
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b",
        rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? )?{MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?)?(?:,? \d{{4}})?",
        r"\b\d{1,2}(?::\d\d)? ?(?:am|pm|a\.m\.|p\.m\.)|\b\d{1,2}:\d\d\b|\bnoon\b|\bmidnight\b",
        r"\b(?:19|20)\d\d\b",
        r"[$€£]?\b\d[\d.,]*\d\b|[$€£]?\b\d+\b",
        r"(?<=[\w,] )(?-i:\p{Lu}[\p{L}\p{M}'’-]+)(?: (?-i:\p{Lu}[\p{L}\p{M}'’-]+))*",
    )
)
_ENDING = regex.compile(r",? (?:not|instead of|rather than) [^,]+$|,? (?:sorry|actually|instead|though)\W*$")


def _corrected(sentence: str, message: Message, found: Sequence[Proposal]) -> tuple[int, Proposal] | None:
    """The place of a proposal that the sentence corrects, and the corrected one; None for none.

    The new value has to be of the same type as one in the latest proposals: a weekday for a weekday.
    """
    match = _CORRECTS.match(sentence)
    if match is None or sentence.endswith("?"):
        return None
    value = _ENDING.sub("", match["value"]).strip()
    for form in _TYPES:
        new = form.search(f"is {value}")
        if new is None:
            continue
        for place in range(len(found) - 1, max(-1, len(found) - 4), -1):
            old = list(form.finditer(found[place].content))
            old = [each for each in old if each[0] not in ("The", "User")]
            if len(old) == 1 and old[0][0].casefold() != new[0].casefold():
                start, end = old[0].span()
                content = f"{found[place].content[:start]}{new[0]}{found[place].content[end:]}"
                quote = Quote(message=message.id or str(message.seq), text=sentence)
                return place, found[place].evolve(content=content, quotes=(*found[place].quotes, quote))
        return None
    return None


# The patterns of a file.


@cache
def _built_in() -> _Patterns:
    return _made(_english(), "english.toml")


@cache
def _english() -> Mapping[str, Any]:
    text = files("germane.extractors").joinpath("english.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _read(path: Path) -> _Patterns:
    try:
        return _made(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnreadableSource(f"{path} can't be read as a TOML file of patterns: {error}") from error


def _made(given: Mapping[str, Any], name: str) -> _Patterns:
    words: dict[str, str] = {}
    try:
        for word, text in {**_english()["words"], **given.get("words", {})}.items():
            words[word] = _filled(text, words)
        patterns = tuple(
            _Pattern(
                name=each["name"],
                text=_compiled(r"{start}" + f"(?:{each['text']})", words),
                kind=each.get("kind", "fact"),
                attribute=each.get("attribute"),
                content=each.get("content"),
            )
            for each in given["pattern"]
        )
        refused = tuple(
            _Refused(each["reason"], _compiled(each["text"], words), each.get("except"))
            for each in given.get("refused", ())
        )
    except (KeyError, TypeError, AttributeError, regex.error, InvalidInput) as error:
        raise UnreadableSource(
            f"{name} is no file of patterns: {error}. It needs tables [[pattern]] with 'name' and 'text'."
        ) from error
    return _Patterns(patterns, refused)


def _compiled(text: str, words: Mapping[str, str]) -> regex.Pattern[str]:
    return regex.compile(_filled(text, words), regex.IGNORECASE)


def _filled(text: str, words: Mapping[str, str]) -> str:
    def put(match: regex.Match[str]) -> str:
        if match[1] not in words:
            raise InvalidInput(f"{{{match[1]}}} is none of the words: {', '.join(words)}")
        return words[match[1]]

    return _MACRO.sub(put, text)

"""The extractor without a model: patterns of English, precise rather than complete.

Pure: the patterns are data of the package, or a file of the user's. What they find is a plain statement of
the user's, in the third person.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import regex

from germane.errors import InvalidInput, UnreadableSource
from germane.extractors import clauses
from germane.extractors.answers import AnswerPattern, AnswerPatterns, answered
from germane.extractors.corrections import corrected_answer, corrected_by, gives_value
from germane.extractors.references import of_known, topic_of
from germane.extractors.statements import (
    MessagePatterns,
    Statement,
    asserted,
    is_taken_back,
    spelled_out,
    statements,
    third_person,
)
from germane.model.conversation import Message, MessageRole
from germane.model.extraction import Proposal
from germane.model.memory import Memory
from germane.retrieval.dates import Span, parse_moment, span_of
from germane.retrieval.tokenizer import query_terms

USER: Final = "user"
"""The subject of what the user states of themselves."""

_MEETING: Final = 3
"""Speakers of a meeting, at least; two people chat."""

SHORTEST: Final = 4
"""Words of a sentence that stands for itself without a pattern."""

_POINTS: Final = "It points to something that it doesn't name."
"""The reason of `unclear` for which a sentence is never learned as it stands: nobody could read it alone."""

_PARTS: Final = ("trailing", "since", "until", "personal", "command", "opening", "momentary", "liking")
"""The patterns of `messages` that match a part of a sentence, by their names."""

_MACRO = regex.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One pattern of the file: what it matches becomes a memory."""

    name: str
    text: regex.Pattern[str]
    kind: str
    attribute: str | None
    content: str | None
    whole: bool
    named: bool


@dataclass(frozen=True, slots=True)
class _Refused:
    """Sentences from which nothing is learned, except memories of one kind.

    `hedge` marks words such as "maybe", which a proposal may have, too, `spreads` what makes a whole sentence
    useless, and `weak` what a model that has read the dialogue judges better.
    """

    reason: str
    text: regex.Pattern[str]
    exempt: str | None
    hedge: bool = False
    spreads: bool = False
    weak: bool = False


@dataclass(frozen=True, slots=True)
class _Patterns:
    patterns: tuple[_Pattern, ...]
    refused: tuple[_Refused, ...]
    unclear: tuple[_Refused, ...]
    messages: MessagePatterns
    parts: Mapping[str, regex.Pattern[str]]
    answers: AnswerPatterns | None


class RuleExtractor:
    """Proposes what a user states plainly: name, home, work, allergies, preferences, dates, decisions, rules.

    It reads the user's messages alone, in English. A sentence that no pattern fits is learned as it stands
    where the weights of its words speak for it. `patterns` is a TOML file of patterns in place of the
    built-in ones and of the weights, in the form of `germane/extractors/english.toml`, whose `words` it may
    use. Raises UnreadableSource for a file that can't be read as one.
    """

    name = "rules"

    def __init__(self, patterns: str | Path | None = None) -> None:
        self._patterns = _built_in() if patterns is None else _read(Path(patterns))
        self._weighs = patterns is None

    def extract(
        self,
        messages: Sequence[Message],
        known: Sequence[Memory] = (),
    ) -> tuple[Proposal, ...]:
        """The proposals of the user's messages, in their order; a corrected statement isn't proposed.

        What is known tells what a change by a pronoun is about: "it's on Friday now".
        """
        found: list[Proposal] = []
        topics = _topics(messages) if known else {}
        answered = any(message.role is MessageRole.ASSISTANT for message in messages)
        speakers = {each.author for each in messages if each.role is MessageRole.USER}
        in_meeting = len(speakers) >= _MEETING
        stated = statements(messages, self._patterns.messages)
        # One that isn't meant so can be corrected, and what corrects it counts.
        doubted = {each.quotes[-1] for each in stated if self._is_doubted(each)}
        for statement in stated:
            corrected = corrected_by(statement, found)
            if corrected is not None:
                place, changed = corrected
                found[place : place + 1] = [changed]
                continue
            of_memory = self._of_known(statement, known, topics) if known else None
            if of_memory is not None and of_memory.quotes[-1] not in doubted and self._may_teach(statement):
                # Of two changes of one memory the later one counts: "I sold it, it's a Kia now".
                found = [each for each in found if each.replaces != of_memory.replaces]
                found.append(of_memory)
                continue
            of_answer = corrected_answer(statement)
            if of_answer is not None:
                found.append(of_answer)
                continue
            plain = list(self._of_statement(statement, answered=answered, in_meeting=in_meeting))
            plain = plain or list(self._of_answer(statement))
            found += plain or (() if in_meeting else self._of_weights(statement))
        meant = (each for each in found if each.quotes[-1] not in doubted)
        return tuple({(each.content, each.quotes[-1].message): each for each in meant}.values())

    def doubtful(self, messages: Sequence[Message], proposed: Sequence[Proposal]) -> Iterator[Proposal]:
        """The user's other sentences, which say too little for a memory unless they change a known one."""
        taken = {(quote.message, quote.text) for each in proposed for quote in each.quotes}
        for statement in statements(messages, self._patterns.messages) if self._weighs else ():
            quote = statement.quotes[-1]
            is_new = statement.message.author == USER and (quote.message, quote.text) not in taken
            if is_new and may_teach(statement.resolved) and not self._is_doubted(statement):
                yield self._as_stated(statement)

    def _of_known(
        self, statement: Statement, known: Sequence[Memory], topics: Mapping[str, frozenset[str]]
    ) -> Proposal | None:
        topic = topics[statement.quotes[-1].message]
        return of_known(statement, known, topic, self._patterns.messages.people)

    def _is_doubted(self, statement: Statement) -> bool:
        """Whether a statement of the user's isn't meant so, by the messages around it."""
        is_weighed = self._weighs and statement.message.author == USER
        out = clauses.out_of_place(_around(statement, statement.later)) if is_weighed else 0.0
        return out >= clauses.OUT_OF_PLACE or is_taken_back(statement.later, self._patterns.messages)

    def _may_teach(self, statement: Statement) -> bool:
        return not any(each.text.search(asserted(statement.text)) for each in self._patterns.refused)

    def _of_statement(self, statement: Statement, *, answered: bool, in_meeting: bool) -> Iterator[Proposal]:
        """The proposals of a sentence; two share no words. A rule needs an assistant that it is for.

        In a meeting most statements are about the meeting itself: only personal ones and decisions count.
        """
        sentence = statement.resolved
        taken: list[tuple[int, int]] = []
        refused = [each for each in self._patterns.refused if each.text.search(sentence)]
        speaker = statement.message.author
        directed = answered or speaker == USER
        allowed = [
            each
            for each in self._patterns.patterns
            if all(other.exempt == each.kind for other in refused)
            and (each.kind != "rule" or directed)
            and (not each.named or speaker != USER)
        ]
        matches = [(each, match) for each in allowed for match in each.text.finditer(sentence)]
        is_weighed = self._weighs and speaker == USER and bool(matches)
        # What somebody says besides is left out of the memory, and of what it is judged by.
        own = _without_trailing(sentence, self._patterns.parts)
        plainly, likely = _likelihood(statement, own) if is_weighed else (1.0, 1.0)
        # Of whole clauses the first one counts, since it may go on to the end of the sentence.
        for pattern, match in sorted(matches, key=lambda pair: pair[0].whole and 1 + pair[1].start()):
            start, end = match.span()
            is_taken = any(start < last and first < end for first, last in taken)
            if is_taken or (likely < clauses.DOUBTFUL if pattern.whole else plainly < clauses.VERY_DOUBTFUL):
                continue
            taken.append((start, end))
            is_personal = _is_in("personal", match[0], self._patterns.parts)
            if in_meeting and not is_personal and pattern.kind != "decision":
                continue
            stated = match.groupdict().get("rest") or _without_trailing(match[0], self._patterns.parts)
            # The mark shows that the sentence goes on where the pattern ends.
            whole = (
                f"{stated} …" if match[0] == stated and sentence[end : end + 2].lstrip().isalnum() else stated
            )
            if not any(
                each.exempt != pattern.kind and each.text.search(whole) for each in self._patterns.unclear
            ):
                yield _proposal(pattern, match, statement, speaker, self._patterns.parts)

    def _of_answer(self, statement: Statement) -> Iterator[Proposal]:
        """What a short answer says to the question before it, unless the answer is refused or unclear."""
        question, given = statement.question, self._patterns.answers
        if question is None or given is None or statement.message.author != USER:
            return
        answer = asserted(spelled_out(statement.text))
        if any(each.text.search(answer) for each in self._patterns.refused):
            return
        found = answered(question.text, answer, given, who=statement.person)
        if found is None or any(each.text.search(found.text) for each in self._patterns.unclear):
            return
        yield Proposal(
            content=_sentence_case(third_person(found.text)),
            kind=found.kind,
            subject=USER,
            attribute=found.attribute and _attribute(found.attribute),
            quotes=(question, statement.quotes[-1]),
        )

    def _of_weights(self, statement: Statement) -> Iterator[Proposal]:
        """A sentence of the user's as it stands, where it is probably worth learning."""
        sentence = statement.resolved
        if not self._weighs or statement.message.author != USER or not may_teach(sentence):
            return
        doubts, (_, likely) = doubts_of(statement), _likelihood(statement, sentence)
        if _POINTS not in doubts and likely >= (clauses.UNCLEAR if doubts else clauses.PLAIN):
            yield self._as_stated(statement)

    def _as_stated(self, statement: Statement) -> Proposal:
        parts = self._patterns.parts
        plain = _without_trailing(parts["opening"].sub("", statement.resolved), parts)
        starts, ends = _period(statement.text, parts, statement.message.created_at)
        return Proposal(
            content=_sentence_case(third_person(plain)),
            kind="preference" if _is_in("liking", plain, parts) else "fact",
            subject=USER,
            quotes=statement.quotes,
            valid_from=starts,
            valid_until=ends,
        )


def read(messages: Sequence[Message]) -> tuple[Statement, ...]:
    """The sentences in which the user states something, by the built-in patterns."""
    return statements(messages, _built_in().messages)


def may_teach(sentence: str) -> bool:
    """Whether a sentence may be worth learning as it stands: no question, no joke, and nothing momentary."""
    given = _built_in()
    refused = any(each.text.search(sentence) for each in given.refused)
    return not refused and not _is_in("momentary", sentence, given.parts)


def doubts_of(statement: Statement) -> tuple[str, ...]:
    """What speaks against learning a sentence as it stands: that it is short, or a command, for instance."""
    given, sentence = _built_in(), statement.resolved
    form = {
        "short": len(sentence.split()) < SHORTEST,
        "command": _is_in("command", sentence, given.parts),
    }
    unclear = (each.reason for each in given.unclear if each.text.search(sentence))
    return (*(name for name, holds in form.items() if holds), *unclear)


def _likelihood(statement: Statement, sentence: str) -> tuple[float, float]:
    """How likely it is worth learning: for a pattern that knows what it says, and for any other words."""
    question = "" if statement.question is None else statement.question.text
    own = clauses.features(sentence, statement.message.own_text, question, doubts_of(statement))
    # What the next message corrects is judged without it: the correction counts.
    around = _around(statement, () if any(map(gives_value, statement.later[:1])) else statement.later)
    return clauses.likelihood(own, around, counts=1), clauses.likelihood(own, around)


def _around(statement: Statement, later: Sequence[str]) -> frozenset[str]:
    return clauses.dialogue_features(statement.text, statement.message.own_text, statement.earlier, later)


def _topics(messages: Sequence[Message]) -> Mapping[str, frozenset[str]]:
    """What each message and the three before it are about, by the message's id."""
    return {
        message.id or str(message.seq): topic_of(
            each.own_text for each in messages[max(0, place - 3) : place + 1]
        )
        for place, message in enumerate(messages)
    }


def refusal_of(clause: str, sentence: str, kind: str, content: str) -> str:
    """Why a clause of a sentence doesn't teach a statement of this kind; empty where it may.

    "Maybe" in a clause is no reason if the statement says it, too.
    """
    stated, whole = asserted(spelled_out(clause)), asserted(spelled_out(sentence))
    for each in _built_in().refused:
        if each.weak or (kind in ("rule", "constraint") and each.exempt == "rule"):
            continue
        found = each.text.search(whole if each.spreads else stated)
        if found is not None and not (each.hedge and _says(content, found[0])):
            return each.reason
    return ""


def _says(text: str, words: str) -> bool:
    """Whether a text has all of these words, in any form: "thinks" for "think"."""
    terms = set(query_terms(words))
    return terms <= set(query_terms(text)) if terms else words.casefold() in text.casefold()


def message_patterns() -> MessagePatterns:
    """The built-in patterns of whole messages."""
    return _built_in().messages


@dataclass(frozen=True, slots=True, kw_only=True)
class OppositePatterns:
    """How a language denies, as data; see `english.toml`.

    `denied` finds as `what` the thing that a statement denies of its subject, and `states` the subject of one
    that affirms, as `owner` where it is about what somebody has. `topic` finds as `what` of which property a
    statement gives the `value`. `groups` are words by the word for all of them, `diets` what a diet excludes,
    and `pairs` words that exclude each other. A property of `constant` has one value for good.
    """

    denied: regex.Pattern[str]
    states: regex.Pattern[str]
    topic: regex.Pattern[str]
    groups: tuple[tuple[frozenset[str], frozenset[str]], ...]
    diets: tuple[tuple[frozenset[str], frozenset[str]], ...]
    pairs: tuple[frozenset[str], ...]
    constant: frozenset[str]


@dataclass(frozen=True, slots=True)
class ChangePatterns:
    """How a language says that something changed; see `english.toml`.

    `ends` finds as `old` what has ended, `changes` a word of change, and `person` whose affair a statement
    is. Each of `slots` finds as `value` what there is one of, with whether another value is a change by
    itself. Of the terms of a group of `exclusive` a statement has one at a time.
    """

    ends: regex.Pattern[str]
    changes: regex.Pattern[str]
    person: regex.Pattern[str]
    slots: tuple[tuple[regex.Pattern[str], bool], ...]
    exclusive: tuple[frozenset[str], ...]
    opposites: OppositePatterns


@cache
def change_patterns(language: str = "english") -> ChangePatterns | None:
    """The built-in patterns of changes; None for another language."""
    if language != "english":
        return None
    given, words = _english(), _words({})
    return ChangePatterns(
        ends=_compiled(given["ends"]["text"], words),
        changes=_compiled(given["changes"]["text"], words),
        person=_compiled(r"\b(?:user|our|\w+)['’]?s? (?:{word} )?(?P<who>{relative})\b", words),
        slots=tuple((_compiled(each["text"], words), each.get("stated", False)) for each in given["slot"]),
        exclusive=tuple(frozenset(query_terms(each["words"])) for each in given["exclusive"]),
        opposites=_opposites(given, words),
    )


def _opposites(given: Mapping[str, Any], words: Mapping[str, str]) -> OppositePatterns:
    def terms(text: str) -> frozenset[str]:
        return frozenset(query_terms(text))

    texts = dict(given["opposites"])
    constant = terms(texts.pop("constant"))
    return OppositePatterns(
        **{name: _compiled(text, words) for name, text in texts.items()},
        groups=tuple((terms(each["words"]), terms(each["general"])) for each in given["group"]),
        diets=tuple((terms(each["general"]), terms(each["words"])) for each in given["diet"]),
        pairs=tuple(terms(each["words"]) for each in given["opposite"]),
        constant=constant,
    )


@cache
def same_words(language: str = "english") -> tuple[frozenset[str], ...]:
    """Groups of terms that state the same, by the built-in patterns; none for another language."""
    if language != "english":
        return ()
    groups = (each["words"] for each in _english()["same"])
    return tuple(frozenset(query_terms(words, language=language)) for words in groups)


def _proposal(
    pattern: _Pattern,
    match: regex.Match[str],
    statement: Statement,
    speaker: str,
    parts: Mapping[str, regex.Pattern[str]],
) -> Proposal:
    message = statement.message
    groups = {name: value.strip() for name, value in match.groupdict().items() if value is not None}
    subject = "The user" if speaker == USER else speaker
    owner = f"{subject}'" if subject.endswith("s") else f"{subject}'s"
    if "rest" in groups and pattern.content != "{rest}":
        groups["rest"] = groups["rest"][:1].lower() + groups["rest"][1:]
    who = {"Subject": subject, "Subjects": owner, **groups}
    if pattern.content is None:
        content = third_person(_without_trailing(match[0], parts), subject)
    else:
        content = third_person(pattern.content.format(**who), subject)
    starts, ends = _period(statement.text, parts, message.created_at)
    when = groups.get("when")
    if when is not None and message.created_at is not None:
        starts = parse_moment(regex.sub(r"^(?:on|in|at|by|from|since) ", "", when), now=message.created_at)
    return Proposal(
        content=_sentence_case(content),
        # Preferences are those of the user, who is always told of; of others they are facts.
        kind="fact" if speaker != USER and pattern.kind == "preference" else pattern.kind,
        subject=speaker,
        attribute=pattern.attribute and _attribute(pattern.attribute.format(**groups)),
        quotes=statement.quotes,
        valid_from=starts,
        valid_until=ends,
    )


def _is_in(name: str, text: str, parts: Mapping[str, regex.Pattern[str]]) -> bool:
    return name in parts and parts[name].search(text) is not None


def _without_trailing(text: str, parts: Mapping[str, regex.Pattern[str]]) -> str:
    return parts["trailing"].sub("", text) if "trailing" in parts else text


def _period(
    sentence: str, parts: Mapping[str, regex.Pattern[str]], now: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """From when until before when a sentence says that it holds; None leaves an end open.

    Of days without a year the beginning is the nearest one, and the end the next one.
    """
    if now is None:
        return None, None
    starts = min(
        (span[0] for span in _spans("since", sentence, parts, now)),
        key=lambda at: abs(at - now),
        default=None,
    )
    ends = min(
        (span[1] for span in _spans("until", sentence, parts, now) if span[1] > (starts or now)), default=None
    )
    return starts, ends


def _spans(name: str, sentence: str, parts: Mapping[str, regex.Pattern[str]], now: datetime) -> list[Span]:
    """The spans that a day of a sentence may be, where it has no year one of each year about now."""
    match = parts[name].search(sentence) if name in parts else None
    if match is None:
        return []
    day = regex.sub(r"^(?:the )?end of ", "", match["day"], flags=regex.IGNORECASE)
    read = (span_of(day, now=now, year=now.year + away) for away in (-1, 0, 1))
    return [each for each in read if each is not None]


def _attribute(text: str) -> str:
    plain = regex.sub(r"\b(?:new|current|next|upcoming|favorite)\b ?", _usual, text.casefold())
    return " ".join(plain.split())


def _usual(match: regex.Match[str]) -> str:
    return "favourite " if match[0].startswith("favo") else ""


def _sentence_case(text: str) -> str:
    """The text as a sentence: a capital at the beginning, a full stop at the end."""
    plain = " ".join(text.split()).strip(" ,;:–—-")
    plain = plain[:1].upper() + plain[1:]
    return plain if plain.endswith((".", "!", "…")) else f"{plain}."


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
    try:
        words = _words(given.get("words", {}))
        patterns = tuple(
            _Pattern(
                name=each["name"],
                text=_compiled(r"{start}" + f"(?:{each['text']})", words),
                kind=each.get("kind", "fact"),
                attribute=each.get("attribute"),
                content=each.get("content"),
                whole=each.get("whole", False),
                named=each.get("named", False),
            )
            for each in given["pattern"]
        )
        refused, unclear = (
            tuple(
                _Refused(
                    each["reason"],
                    _compiled(each["text"], words),
                    each.get("except"),
                    each.get("hedge", False),
                    each.get("spreads", False),
                    each.get("weak", False),
                )
                for each in given.get(table, ())
            )
            for table in ("refused", "unclear")
        )
        whole = {name: _compiled(text, words) for name, text in given.get("messages", {}).items()}
        parts = {name: whole.pop(name) for name in _PARTS if name in whole}
        answers = _answers_of(given, words) if "answers" in given else None
    except (KeyError, TypeError, AttributeError, regex.error, InvalidInput) as error:
        raise UnreadableSource(
            f"{name} is no file of patterns: {error}. It needs tables [[pattern]] with 'name' and 'text'."
        ) from error
    return _Patterns(patterns, refused, unclear, MessagePatterns(**whole), parts, answers)


def _answers_of(given: Mapping[str, Any], words: Mapping[str, str]) -> AnswerPatterns:
    forms = tuple(
        AnswerPattern(
            asks=_compiled(r"{asked}" + f"(?:{each['asks']})" + r"\W*\?", words),
            kind=each.get("kind", "fact"),
            content=each.get("content"),
            yes=each.get("yes"),
            no=each.get("no"),
            attribute=each.get("attribute"),
        )
        for each in given["answer"]
    )
    return AnswerPatterns(
        forms=forms, **{name: _compiled(text, words) for name, text in given["answers"].items()}
    )


def _words(given: Mapping[str, str]) -> dict[str, str]:
    """The parts of patterns by their names, each with the parts that it names filled in."""
    exclusive = " ".join(each["words"] for each in _english()["exclusive"])
    words = {"exclusive": "|".join(exclusive.split())}
    for word, text in {**_english()["words"], **given}.items():
        words[word] = _filled(text, words)
    return words


def _compiled(text: str, words: Mapping[str, str]) -> regex.Pattern[str]:
    return regex.compile(_filled(text, words), regex.IGNORECASE)


def _filled(text: str, words: Mapping[str, str]) -> str:
    def put(match: regex.Match[str]) -> str:
        if match[1] not in words:
            raise InvalidInput(f"{{{match[1]}}} is none of the words: {', '.join(words)}")
        return words[match[1]]

    return _MACRO.sub(put, text)

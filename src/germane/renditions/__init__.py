"""A memory at three lengths, made when it is written: by its kind's template and a shortener.

Pure: the same text, kind and counter give the same renditions. The shortener only extracts: it keeps
whole sentences from the start, and where not even one fits, whole words; it never cuts inside either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import regex

from germane.kinds import Kind, Template, constraint_label
from germane.model.memory import Outcome, Rendition, Renditions
from germane.protocols import Summarizer, TokenCounter
from germane.renditions.passages import PassageScores, best_passages
from germane.renditions.prose import (
    ProsePassage,
    argument_of,
    as_text,
    decisive,
    ends_a_thought,
    is_marked,
    names_of_images,
    passages_of,
    prose_of,
    sentence_ends,
    sentences_of,
)

__all__ = ["Rendition", "Renditions"]

MICRO_TOKENS = 20
"""About one line (the note on context management says around 20)."""

MICRO_SENTENCE_TOKENS = 30
"""Tokens that a micro may have where 20 would end inside its first sentence."""

SUMMARY_TOKENS = 100
"""The upper end of the 50 to 100 tokens that the same note gives a summary."""

OUTCOMES = "outcomes"
"""The metadata that lists the outcomes of a memory that was remembered with more than one."""

_ELLIPSIS = "…"
_CUT = f" {_ELLIPSIS}"
_CUT_INSIDE = regex.compile(rf"\S{_ELLIPSIS}")
"""A text cut at a word: a cut behind a sentence has a space before its mark."""
_LAST_CLAUSE = regex.compile(rf"(.{{40,}})[,;:](?:\s[^,;:{_ELLIPSIS}]*)\S{_ELLIPSIS}(.*)")
"""What a text cut at a word has before its last comma, semicolon or colon, and what follows the cut."""
_FIELD = regex.compile(r"\{(\w+)\}")
_SPACES = regex.compile(r"\s+")
_WORD_EDGE = regex.compile(r"(?w)\b")
_CHARS_PER_TOKEN = 24
"""Far more than any text's average, so that shortening a huge text needs to read only its start."""
_TOO_SHORT = 6
"""Tokens below which the first words of a piece say nothing; it is left out then, unless it comes first."""
_TOO_SHORT_PART = 6
"""The same in a longer level: below a part of so many of its tokens."""
# What a text begins with that says itself how strict it is.
_OWN_LABEL = regex.compile(
    r"\**(never|no|nobody|nothing|do not|don['’]t|must not|avoid|ask(?: first)?|careful)\b(:?)\**(?=[\s,])",
    flags=regex.IGNORECASE,
)
_STATUS_ENDS = regex.compile(r"[,;(·\n]")
_ARGUED = frozenset({"headline", "status", "decision", "reason", "consequence"})
"""The fields that are read from a decision record, for the templates that name one."""
_SUBJECT_WORD = regex.compile(r"[\p{L}\p{N}]+")
_CAMEL = regex.compile(r"(?<=\p{Ll})(?=\p{Lu})")
_SHORT_WORD, _MIDDLE_WORD = 2, 6
_Cut = Callable[[str, int, TokenCounter], str]
_LABEL = 40
"""Characters up to which a subject stands before a text that doesn't name it."""


def renditions_of(
    kind: Kind, fields: Mapping[str, Any], counter: TokenCounter, summarizer: Summarizer | None = None
) -> Renditions:
    """The three renditions of a memory.

    `fields` are its content, subject, outcome, confidence and metadata. With a summarizer, a
    content longer than a summary is shortened by it; what it returns is cut to length like any
    other text, so a talkative model can't break the level's bound.
    """
    counter = _CountedOnce(counter)
    values = _values_of(fields)
    if "constraint" in _fields_of(kind.full):
        values |= _constraint(values)
    elif values.get("subject"):
        values["about"] = _about(values["subject"], values["content"])
    full = "".join(_texts(kind.full, values, one_line=False)).strip()
    full_tokens = counter.count(full)
    whole = Rendition(text=full, tokens=full_tokens)
    plain = kind.summary == kind.full and full_tokens <= SUMMARY_TOKENS and not is_marked(full)
    if plain and full_tokens <= MICRO_TOKENS and kind.micro == kind.full and "\n" not in full:
        return Renditions(micro=whole, summary=whole, full=whole, counter=counter.name)
    if wanted := _ARGUED.intersection(_fields_of(kind.summary, kind.micro)):
        values |= _argument(wanted, values)
    summary_values = micro_values = values
    if summarizer is not None and counter.count(values["content"]) > SUMMARY_TOKENS:
        summary_values = {**values, "content": summarizer.summarize(values["content"], SUMMARY_TOKENS)}
        micro_values = {**values, "content": summarizer.summarize(values["content"], MICRO_TOKENS)}
    argued = kind.lifecycle == "decision"
    summary = full if plain else _within(kind.summary, summary_values, SUMMARY_TOKENS, counter, argued=argued)
    micro = _micro(kind, micro_values, counter)
    # A template of parts of the content, such as its headline, is empty where the content has none of them.
    summary = summary or shorten(full, SUMMARY_TOKENS, counter)
    micro = micro or shorten(_one_line(full), MICRO_TOKENS, counter)
    return Renditions(
        micro=Rendition(text=micro, tokens=counter.count(micro)),
        summary=Rendition(text=summary, tokens=counter.count(summary)),
        full=whole,
        counter=counter.name,
    )


def _micro(kind: Kind, values: Mapping[str, str], counter: TokenCounter) -> str:
    """The micro: whole sentences where one fits, else the first one's clauses, else its words."""
    micro = _within(kind.micro, values, MICRO_TOKENS, counter, one_line=True)
    if not _CUT_INSIDE.search(micro):
        return micro
    longer = _within(kind.micro, values, MICRO_SENTENCE_TOKENS, counter, one_line=True)
    if not _CUT_INSIDE.search(longer):
        return longer
    clause = _LAST_CLAUSE.match(micro)
    return f"{clause[1]}{_ELLIPSIS}{clause[2]}" if clause else micro


def with_outcomes(
    renditions: Renditions, kind: Kind, fields: Mapping[str, Any], counter: TokenCounter
) -> Renditions:
    """The renditions with several outcomes at the end of each, where those of the kind don't name them."""
    outcomes = _outcomes(fields)
    if not outcomes or any("{assessment}" in piece.text for piece in kind.full):
        return renditions

    def with_mark(one: Rendition) -> Rendition:
        text = f"{one.text} [{outcomes}]"
        return Rendition(text=text, tokens=counter.count(text))

    return Renditions(
        micro=with_mark(renditions.micro),
        summary=with_mark(renditions.summary),
        full=with_mark(renditions.full),
        counter=renditions.counter,
    )


class _CountedOnce:
    """Counts each text of one memory once: many checks whether a rendition fits count the same text."""

    def __init__(self, counter: TokenCounter) -> None:
        self.name, self.margin = counter.name, counter.margin
        self._count = counter.count
        self._counts: dict[str, int] = {}

    def count(self, text: str) -> int:
        known = self._counts.get(text)
        if known is None:
            known = self._counts[text] = self._count(text)
        return known


def render_title(kind: Kind, fields: Mapping[str, Any], fallback: str) -> str:
    """What heads a memory where each has a heading of its own, on one line."""
    title = "".join(_texts(kind.title, _values_of(fields), one_line=False))
    return _one_line(title) or _one_line(fallback)


def shorten(text: str, limit: int, counter: TokenCounter) -> str:
    """The start of `text` in at most `limit` tokens, cut where a sentence or else a word ends.

    A cut is marked by an ellipsis, which counts. A single word too long for the limit is replaced by a note
    of its length, since half a word says less than nothing.
    """
    if limit <= 0:
        return ""
    head = text[: limit * _CHARS_PER_TOKEN].rstrip()
    complete = len(head) == len(text.rstrip())
    if complete and counter.count(head) <= limit:
        return head
    # The end of the head is an end of a sentence or word only because the head was cut there.
    ends = [end for end in sentence_ends(head) if complete or end < len(head)]
    sentences = _longest(head, ends, limit, counter, mark=_CUT)
    if sentences:
        return sentences
    words = _words(head, limit, counter, complete=complete)
    if words:
        return words
    note = f"[{len(text):,} characters]"
    return note if counter.count(note) <= limit else ""


def excerpt(
    text: str,
    limit: int,
    counter: TokenCounter,
    *,
    argued: bool = False,
    scores: PassageScores | None = None,
) -> str:
    """The best passages of a text by `scores`, else its first sentences, in at most `limit` tokens.

    An ellipsis stands for what is left out; "" where not one sentence fits. Without scores, blocks of code
    and rows of tables come in once all sentences are there. With `argued`, the sentences that decide and give
    the reason are shown, wherever they stand. A heading or a line that announces the next one never ends an
    excerpt. Where a sentence alone is longer than a summary, it is cut where a word ends.
    """
    shown = text
    if is_marked(text):
        passages = tuple(passages_of(text))
        whole = _with_blocks(passages, limit, counter)
        if whole:
            return whole
        shown = as_text(prose_of(passages)) or as_text(passages) or text

    def cut(shown: str, limit: int, counter: TokenCounter) -> str:
        best = best_passages(text, limit, counter, scores) if scores is not None else ""
        return best or _first_sentences(shown, limit, counter)

    return _argued(shown, limit, counter, cut=cut) if argued else cut(shown, limit, counter)


def _with_blocks(passages: Sequence[ProsePassage], limit: int, counter: TokenCounter) -> str:
    """All sentences with as many of the first blocks of code and rows of tables as fit, or "" without any."""
    every = sum(passage.form in ("code", "table") for passage in passages)
    low, high, best = 0, every, ""
    while low <= high:
        blocks = (low + high) // 2
        shown = as_text(prose_of(passages, blocks=blocks)) + (_CUT if blocks < every else "")
        if shown != _CUT and counter.count(shown) <= limit:
            best, low = shown, blocks + 1
        else:
            high = blocks - 1
    return best


def _first_sentences(text: str, limit: int, counter: TokenCounter) -> str:
    head = text[: max(limit, 0) * _CHARS_PER_TOKEN].rstrip()
    ends = [end for end in sentence_ends(head) if end < len(head) and ends_a_thought(head, end)]
    cut = _longest(head, ends, limit, counter, mark=_CUT)
    return cut if cut or limit < SUMMARY_TOKENS else shorten(text, limit, counter)


def _words(head: str, limit: int, counter: TokenCounter, *, complete: bool) -> str:
    """The longest start of `head` that ends with a word and fits, looked for first where it should be."""
    guess = len(head) * limit // max(counter.count(head), 1)
    words = ""
    for start, end in ((guess * 4 // 5, guess * 6 // 5 + 1), (0, len(head))):
        edges = [match.start() for match in _WORD_EDGE.finditer(head, start, end)]
        if edges and edges[-1] == end and not (complete and end == len(head)):
            # An edge only because nothing behind it was looked at.
            edges.pop()
        words = _longest(head, edges, limit, counter, mark=_ELLIPSIS)
        if words and len(words) < edges[-1]:
            # A longer one was tried and doesn't fit.
            return words
    return words


def _longest(head: str, ends: list[int], limit: int, counter: TokenCounter, *, mark: str) -> str:
    """The longest prefix of `head` that ends at one of `ends` and fits with its mark, found by bisection."""
    low, high, best = 0, len(ends) - 1, ""
    while low <= high:
        middle = (low + high) // 2
        cut = head[: ends[middle]].rstrip()
        if mark == _ELLIPSIS:
            cut = cut.rstrip(",;:")
        marked = cut if cut.endswith(_ELLIPSIS) else cut + mark
        if cut and counter.count(marked) <= limit:
            best, low = marked, middle + 1
        else:
            high = middle - 1
    return best


def _within(
    template: Template,
    values: Mapping[str, str],
    limit: int,
    counter: TokenCounter,
    *,
    one_line: bool = False,
    argued: bool = False,
) -> str:
    """The filled template in at most `limit` tokens: fixed pieces stay, and later ones give way first.

    What doesn't fit whole loses its code and tables before its sentences. With `argued`, a content that has
    to be cut keeps the sentence that gives its reason.
    """
    texts: list[str] = []
    whole = ""
    # A template may show parts of the content alone.
    needed = values["content"] if any("{content}" in piece.text for piece in template) else ""
    for content in _contents(needed, limit, one_line=one_line, whole=argued):
        filled = values if content == needed else {**values, "content": content}
        texts = _texts(template, filled, one_line=one_line)
        whole = "".join(texts).strip()
        if counter.count(whole) <= limit:
            return whole
    if not argued and all(piece.fixed or not text for piece, text in zip(template[:-1], texts, strict=False)):
        # What gives way stands last, so that the text is cut as one.
        return shorten(whole, limit, counter)
    spare = limit - sum(
        counter.count(text) for piece, text in zip(template, texts, strict=True) if piece.fixed and text
    )
    due = [
        min(piece.least, counter.count(text)) if piece.least and text else 0
        for piece, text in zip(template, texts, strict=True)
    ]
    pieces: list[str] = []
    for number, (piece, text) in enumerate(zip(template, texts, strict=True)):
        if piece.fixed or not text:
            pieces.append(text)
            continue
        most = spare - sum(due[number + 1 :])
        cut = _argued if argued and piece.text == "{content}" else shorten
        short = _keep_edges(cut(text, most, counter), text)
        tokens = counter.count(short) if short else 0
        if (
            number
            and tokens < max(_TOO_SHORT, limit // _TOO_SHORT_PART)
            and short != text
            and not short.endswith(_CUT)
        ):
            # The first words of a reason, say, cost more than they tell.
            short, tokens = "", 0
        spare -= tokens
        pieces.append(short)
    shown = "".join(pieces).strip()
    return shown if counter.count(shown) <= limit else shorten(shown, limit, counter)


def _texts(template: Template, values: Mapping[str, str], *, one_line: bool) -> list[str]:
    """Each piece of a template with its values; empty for one of whose fields one has no value."""
    texts = []
    for form, names in [_parsed(piece.text) for piece in template]:
        found = tuple([values.get(name, "") for name in names])
        texts.append(form % found if all(found) else "")
    return [_keep_edges(_one_line(text), text) for text in texts] if one_line else texts


def _contents(content: str, limit: int, *, one_line: bool, whole: bool) -> Iterator[str]:
    """A content as a level may show it: with all that it says, then without its code and tables.

    Unless `whole` is set, what stands too far behind to come into `limit` tokens isn't read.
    """
    if not is_marked(content):
        yield content
        return
    passages: list[ProsePassage] = []
    size = 0
    for passage in passages_of(content):
        passages.append(passage)
        size += len(passage.text)
        if size > limit * _CHARS_PER_TOKEN and not whole:
            # All of it won't fit, and nothing behind this can come into it.
            break
    else:
        yield as_text(passages, one_line=one_line) or names_of_images(content) or content
    left_out = any(passage.form in ("code", "table") for passage in passages)
    text = as_text(prose_of(passages), one_line=one_line)
    if text:
        yield text + _CUT if left_out else text
    elif size > limit * _CHARS_PER_TOKEN:
        yield as_text(passages, one_line=one_line)


def _argued(text: str, limit: int, counter: TokenCounter, cut: _Cut = shorten) -> str:
    """The start of a text with the sentences that decide and give the reason, wherever these stand."""
    start = cut(text, limit, counter)
    for sentences in (decisive(sentences_of(text)), decisive(sentences_of(text))[-1:]):
        after = " ".join(each for each in sentences if each not in start)
        if not after:
            continue
        least = cut(text, limit - counter.count(f" {after}"), counter)
        after = " ".join(each for each in sentences if each not in least)
        # A beginning of some words tells less than the sentences that would be given up for the reason.
        if least.endswith(_CUT) and counter.count(f"{least} {after}") <= limit:
            return f"{least} {after}"
    return start


def _fields_of(*templates: Template) -> list[str]:
    """The names of the fields in templates."""
    return [name for template in templates for piece in template for name in _parsed(piece.text)[1]]


def _about(subject: str, content: str) -> str:
    """The subject, empty where the content names it: by its first word, in any form, or as part of a name."""
    text = content.casefold()
    if subject.casefold() in text or len(subject) > _LABEL or "\n" in subject:
        return ""
    words = _SUBJECT_WORD.findall(subject if subject.islower() else _CAMEL.sub(" ", subject))
    first = next((word for word in words if len(word) > _SHORT_WORD), "")
    return "" if first and _stem(first.casefold()) in text else subject


def _stem(word: str) -> str:
    """The part that the forms of a word have in common, roughly; endings are left out of long words."""
    if len(word) <= _MIDDLE_WORD:
        return word.removesuffix("s") if len(word) > _SHORT_WORD + 1 else word
    return word[: max(_MIDDLE_WORD - 1, len(word) * 3 // 5)]


def _constraint(values: Mapping[str, str]) -> dict[str, str]:
    """The label of a constraint; a text that begins with such a word itself has it made bold instead."""
    content = values["content"]
    own = _OWN_LABEL.match(content)
    if own is None:
        return {"constraint": constraint_label(values.get("action", ""))}
    return {"constraint": "", "content": f"**{own[1]}{own[2]}**{content[own.end() :]}"}


def _argument(wanted: frozenset[str], values: Mapping[str, str]) -> dict[str, str]:
    """These parts of a decision record. What the metadata says of one comes first."""
    found = argument_of(passages_of(values["content"]), subject=values.get("subject", ""))
    parts = {name: values.get(name) or getattr(found, name) for name in wanted}
    if parts.get("decision") == parts.get("headline"):
        parts["decision"] = ""
    if status := parts.get("status"):
        # "Superseded by [ADR-3](0003.md) · 2026-01-02" is a status, a link and a date.
        shown = as_text(passages_of(status), one_line=True) or status
        parts["status"] = _STATUS_ENDS.split(shown, maxsplit=1)[0].strip(" .*_") or status
    return parts


def _values_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The fields as texts, with those that are derived from others."""
    # White space at the edges of a piece is the template's: a value brings none of its own.
    values = {name: _as_text(value).strip() for name, value in fields.items()}
    outcome, confidence = fields.get("outcome"), fields.get("confidence")
    assessment = [_outcomes(fields) or str(Outcome(outcome))] if outcome else []
    if isinstance(confidence, int | float) and confidence < 1:
        assessment.append(f"{confidence:.2f} confidence")
    steps = fields.get("steps")
    values["assessment"] = ", ".join(assessment)
    values["steps_lines"] = "\n".join(map(str, steps)) if isinstance(steps, list | tuple) else ""
    values["title"] = values.get("title") or values.get("subject", "")
    return values


def _outcomes(fields: Mapping[str, Any]) -> str:
    """The outcomes from the first to the latest, where there are several: `success, then failure`."""
    listed = fields.get(OUTCOMES)
    if not isinstance(listed, list) or len(listed) < 2 or listed[-1] != fields.get("outcome"):  # noqa: PLR2004 - One alone is the outcome.
        return ""
    return ", then ".join(map(str, listed))


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return str(value)


def _one_line(text: str) -> str:
    if text.isascii() and text.isprintable():
        # The only white space in it are spaces, and most texts are such.
        return " ".join(text.split())
    return _SPACES.sub(" ", text).strip()


def _keep_edges(text: str, raw: str) -> str:
    """The text with the white space at the edges of the piece, which the template put there."""
    text = text.strip()
    if not text:
        return ""
    start, end = raw[: len(raw) - len(raw.lstrip())], raw[len(raw.rstrip()) :]
    return start + text + end


@cache
def _parsed(text: str) -> tuple[str, tuple[str, ...]]:
    """A piece with `%s` for each of its fields, and the fields' names."""
    parts = _FIELD.split(text)
    return "%s".join(literal.replace("%", "%%") for literal in parts[::2]), tuple(parts[1::2])

"""A memory at three lengths, made when it is written: by its kind's template and a shortener.

Level: kinds (imports protocols, model and errors). Pure: the same text, kind and counter give the
same renditions. The shortener only extracts: it keeps whole sentences from the start, and where
not even one fits, whole words; it never cuts inside either.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import regex

from germane.kinds import Kind, Piece, Template
from germane.model.memory import Outcome, Rendition, Renditions
from germane.protocols import Summarizer, TokenCounter

__all__ = ["MICRO_TOKENS", "SUMMARY_TOKENS", "excerpt", "render_title", "renditions_of", "shorten"]

MICRO_TOKENS = 20
"""About one line (the note on context management says around 20)."""

SUMMARY_TOKENS = 100
"""The upper end of the 50 to 100 tokens that the same note gives a summary."""

_ELLIPSIS = "…"
_CUT = " …"
_FIELD = regex.compile(r"\{(\w+)\}")
_SPACES = regex.compile(r"\s+")
# A sentence ends at closing punctuation before white space, at a full stop of a script that
# writes none after it, or at the end of a line; not after the number of a list or an initial.
_SENTENCE_END = regex.compile(
    r"(?<!(?:^|[\s(])(?:\d{1,3}|\p{L}))[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？]+[”’」』）]*|\n+"
)
_WORD_EDGE = regex.compile(r"(?w)\b")
_MARKUP = regex.compile(r"^\s{0,3}#{1,6}\s+", flags=regex.MULTILINE)
# What a decision record decides: the text under a heading of that name, or a paragraph led by it.
_DECISION = regex.compile(
    r"^(?:#{1,6}\s*Decision(?:\s+Outcome)?\b[^\n]*\n+(.*?)(?=^#{1,6}\s|\Z)"
    r"|\**Decision\**[.:]\**\s+(.*?)(?=^\**\p{Lu}\w+\**[.:]|\n\n|\Z))",
    flags=regex.MULTILINE | regex.DOTALL,
)
_CHARS_PER_TOKEN = 24
"""Far more than any text's average, so that shortening a huge text needs to read only its start."""


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
    full = _fill(kind.full, values)
    full_tokens = counter.count(full)
    if full_tokens <= MICRO_TOKENS and kind.micro == kind.summary == kind.full and "\n" not in full:
        whole = Rendition(text=full, tokens=full_tokens)
        return Renditions(micro=whole, summary=whole, full=whole, counter=counter.name)
    summary_values = micro_values = values
    if summarizer is not None and counter.count(values["content"]) > SUMMARY_TOKENS:
        summary_values = {**values, "content": summarizer.summarize(values["content"], SUMMARY_TOKENS)}
        micro_values = {**values, "content": summarizer.summarize(values["content"], MICRO_TOKENS)}
    summary = _within(kind.summary, summary_values, SUMMARY_TOKENS, counter)
    micro = _within(kind.micro, micro_values, MICRO_TOKENS, counter, one_line=True)
    return Renditions(
        micro=Rendition(text=micro, tokens=counter.count(micro)),
        summary=Rendition(text=summary, tokens=counter.count(summary)),
        full=Rendition(text=full, tokens=full_tokens),
        counter=counter.name,
    )


class _CountedOnce:
    """Counts each text of one memory once: that a rendition fits is often asked of a text counted before."""

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
    return _one_line(_fill(kind.title, _values_of(fields))) or _one_line(fallback)


def shorten(text: str, limit: int, counter: TokenCounter) -> str:
    """The start of `text` in at most `limit` tokens, cut where a sentence or else a word ends.

    A cut is marked by an ellipsis. A single word too long for the limit is replaced by a note of
    its length, since half a word says less than nothing.
    """
    if limit <= 0:
        return ""
    head = text[: limit * _CHARS_PER_TOKEN].rstrip()
    if len(head) == len(text.rstrip()) and counter.count(head) <= limit:
        return head
    ends = [match.end() for match in _SENTENCE_END.finditer(head)]
    sentences = _longest(head, ends, limit, counter, mark="")
    if sentences:
        return sentences
    edges = [match.start() for match in _WORD_EDGE.finditer(head)]
    if len(head) < len(text.rstrip()) and edges and edges[-1] == len(head):
        edges.pop()  # The end of the head is an edge only because the head was cut there.
    words = _longest(head, edges, limit, counter, mark=_ELLIPSIS)
    if words:
        return words
    note = f"[{len(text):,} characters]"
    return note if counter.count(note) <= limit else ""


def excerpt(text: str, limit: int, counter: TokenCounter) -> str:
    """The first sentences of a text in at most `limit` tokens, marked by an ellipsis; "" where not one fits.

    A heading or a line that announces the next one never ends it. Where a sentence alone is longer than a
    summary, it is cut where a word ends.
    """
    head = text[: limit * _CHARS_PER_TOKEN].rstrip()
    ends = [match.end() for match in _SENTENCE_END.finditer(head)]
    cut = _longest(head, [end for end in ends if _ends_a_thought(head, end)], limit, counter, mark=_CUT)
    return cut if cut or limit < SUMMARY_TOKENS else shorten(text, limit, counter)


def _ends_a_thought(text: str, end: int) -> bool:
    line = text[text.rfind("\n", 0, len(text[:end].rstrip())) + 1 : end].strip()
    return not (line.startswith("#") or line.endswith(":"))


def _longest(head: str, ends: list[int], limit: int, counter: TokenCounter, *, mark: str) -> str:
    """The longest prefix of `head` that ends at one of `ends` and fits, found by bisection."""
    low, high, best = 0, len(ends) - 1, ""
    while low <= high:
        middle = (low + high) // 2
        cut = head[: ends[middle]].rstrip()
        if cut and counter.count(cut + mark) <= limit:
            best, low = cut + mark, middle + 1
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
) -> str:
    """The filled template in at most `limit` tokens; fixed pieces stay, later ones give way first."""
    pieces = [(piece, _piece(piece, values)) for piece in template]
    texts = [_keep_edges(_one_line(_without_markup(text)), text) if one_line else text for _, text in pieces]
    whole = "".join(texts).strip()
    if counter.count(whole) <= limit:
        return whole
    spare = limit - sum(
        counter.count(text) for (piece, _), text in zip(pieces, texts, strict=True) if piece.fixed and text
    )
    kept: list[str] = []
    for (piece, _), text in zip(pieces, texts, strict=True):
        if piece.fixed:
            kept.append(text)
            continue
        short = _keep_edges(shorten(_without_markup(text), spare, counter), text)
        spare -= counter.count(short)
        kept.append(short)
    shown = "".join(kept).strip()
    return shown if counter.count(shown) <= limit else shorten(shown, limit, counter)


def _values_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The fields as texts, with those that are derived from others."""
    # White space at the edges of a piece is the template's: a value brings none of its own.
    values = {name: _as_text(value).strip() for name, value in fields.items()}
    content = values.get("content", "")
    outcome, confidence = fields.get("outcome"), fields.get("confidence")
    standing = [str(Outcome(outcome))] if outcome else []
    if isinstance(confidence, int | float) and confidence < 1:
        standing.append(f"{confidence:.2f} confidence")
    steps = fields.get("steps")
    values["standing"] = ", ".join(standing)
    values["ACTION"] = values.get("action", "warn").upper()
    values["steps_lines"] = "\n".join(map(str, steps)) if isinstance(steps, list | tuple) else ""
    values["title"] = values.get("title") or values.get("subject", "")
    values["headline"] = _first_line(content)
    decision = _DECISION.search(content) if "Decision" in content else None
    rest = content.strip().partition("\n")[2].strip()
    values["decision"] = (decision.group(1) or decision.group(2)).strip() if decision else rest
    return values


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return str(value)


def _first_line(text: str) -> str:
    return _without_markup(text.strip().split("\n", 1)[0]).strip()


def _without_markup(text: str) -> str:
    return _MARKUP.sub("", text) if "#" in text else text


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


def _fill(template: Template, values: Mapping[str, str]) -> str:
    return "".join(_piece(piece, values) for piece in template).strip()


def _piece(piece: Piece, values: Mapping[str, str]) -> str:
    form, names = _parsed(piece.text)
    found = tuple([values.get(name, "") for name in names])
    return form % found if all(found) else ""


@cache
def _parsed(text: str) -> tuple[str, tuple[str, ...]]:
    """A piece with `%s` for each of its fields, and the fields' names."""
    parts = _FIELD.split(text)
    return "%s".join(literal.replace("%", "%%") for literal in parts[::2]), tuple(parts[1::2])

"""Texts that address the model that reads them, and secrets; by the rules in `suspicion.toml`."""

from __future__ import annotations

import base64
import binascii
import html
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import unquote

import regex

from germane.model.text import text_cache

ALLOWED: Final = "pragma: allowlist secret"
"""A line with this comment holds no secret."""

SECRET: Final = "secret:"  # noqa: S105 - It names a rule.
"""What the name of a rule for secrets begins with."""

_WITHOUT_WIDTH: Final = r"\u200b\u200c\u200d\u2060\ufeff\u180e"
_HIDDEN: Final = regex.compile(
    r"[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u180e\u00ad\U000e0000-\U000e01ef]"
)
_UNSEEN: Final = regex.compile(
    r"[\u200b\u202a-\u202e\u2060-\u206f\ufeff\u180e]|(?<=[\p{Latin}\d\s])[\u200c\u200d]+"
    r"|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e01ef]+"
)
_SPACES: Final = regex.compile(r"\s+")
_CODE: Final = regex.compile(r"(?s)```.*?```|`[^`\n]+`")
"""Markdown's blocks and spans of code."""
_MIXED: Final = regex.compile(r"\b(?=\w*\p{Latin})(?=\w*[\p{Cyrillic}\p{Greek}])\w+\b")
_LATIN: Final = str.maketrans(
    "асеорхуіјѕԁһАВСЕНІКМОРТХοαινΑΒΕΗΙΚΜΝΟΡΤΧ", "aceopxyijsdhABCEHIKMOPTXoaivABEHIKMNOPTX"
)
"""Letters of other scripts that look like Latin ones, where a word mixes both."""

_TAGS: Final = regex.compile(
    r"(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}"
)
_OVERRIDES: Final = regex.compile(r"[\u202d\u202e]")
_EMBEDDINGS: Final = regex.compile(r"[\u202a\u202b\u2066-\u2069]")
_RIGHT_TO_LEFT: Final = regex.compile(r"[\p{Hebrew}\p{Arabic}\p{Syriac}\p{Thaana}\p{Nko}]")
_LONG_ZERO_WIDTH: Final = regex.compile(f"[{_WITHOUT_WIDTH}]{{4}}")
_BETWEEN_LETTERS: Final = regex.compile(rf"\p{{Latin}}[{_WITHOUT_WIDTH}]+(?=\p{{Latin}})")
_FEW_ZERO_WIDTH: Final = 3

_BASE64: Final = regex.compile(r"(?<![\w+/=])[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX: Final = regex.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}[ :]?){20,}(?!\w)")
_ESCAPE: Final = regex.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_ESCAPES: Final = regex.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}){8,}")
_MOST_DECODED: Final = 20
"""Encoded parts of a text that are decoded; more is a file of data."""
_LONGEST: Final = 200_000
"""Characters of a text that are looked at."""
_PLACEHOLDER: Final = regex.compile(
    r"(?i)example|placeholder|change-?me|dummy|redacted|your[-_]|x{4}|\.\.\.|\*\*\*|1234567890|abcdef"
)
_FEWEST_DISTINCT: Final = 6


class _Rule(NamedTuple):
    """A pattern by its name; a text without any of `needs`, in small letters, doesn't match.

    With `in_code` false, what stands in Markdown's code isn't searched: there a marker is shown, not used.
    """

    name: str
    pattern: regex.Pattern[str]
    needs: tuple[str, ...]
    raw: bool = False
    in_code: bool = True

    def finds(self, text: str, lowered: str) -> bool:
        return any(map(lowered.__contains__, self.needs)) and self.pattern.search(text) is not None


@text_cache(20_000)
def findings_of(text: str) -> tuple[str, ...]:
    """The names of the rules that a text of untrusted origin matches, each once: see also `secrets_in`."""
    text = text[:_LONGEST]
    return tuple(dict.fromkeys((*_hidden(text), *_addressing(text), *_encoded(text), *secrets_in(text))))


@text_cache(20_000)
def secrets_in(text: str) -> tuple[str, ...]:
    """The names of the formats of secrets that occur in a text, as `secret:NAME`, each once.

    Placeholders, and lines with `pragma: allowlist secret`, hold none.
    """
    return tuple(f"{SECRET}{name}" for name in dict.fromkeys(_secrets(text[:_LONGEST])))


def visible(text: str) -> str:
    """The text without hidden characters: those of no width, tags, and what turns the direction of writing.

    Joiners stay where emoji and other scripts than Latin need them.
    """
    return text if text.isascii() else _UNSEEN.sub("", text)


def _hidden(text: str) -> Iterator[str]:
    if text.isascii():
        return
    few = len(_BETWEEN_LETTERS.findall(text)) < _FEW_ZERO_WIDTH
    if _TAGS.search(text) or _LONG_ZERO_WIDTH.search(text) or not few:
        yield "hidden-text"
    if _OVERRIDES.search(text) or (_EMBEDDINGS.search(text) and not _RIGHT_TO_LEFT.search(text)):
        yield "bidirectional"


def _addressing(text: str) -> Iterator[str]:
    whole = _searchable(text)
    used = _searchable(_CODE.sub(" ", text)) if "`" in text else whole
    for rule in _rules()[0]:
        raw, normalised, lowered = whole if rule.in_code else used
        if rule.finds(raw if rule.raw else normalised, lowered):
            yield rule.name


def _searchable(text: str) -> tuple[str, str, str]:
    """The text, the same normalised with single spaces, and that in small letters."""
    normalised = _SPACES.sub(" ", _normalised(text))
    return text, normalised, normalised.casefold()


def _normalised(text: str) -> str:
    if text.isascii():
        return text
    folded = _HIDDEN.sub("", unicodedata.normalize("NFKC", text)[:_LONGEST])  # One character may become 18.
    return _MIXED.sub(lambda word: word[0].translate(_LATIN), folded)


def _encoded(text: str) -> Iterator[str]:
    """The rules that an encoded part of the text matches, if it says anything once it is decoded."""
    if any(each for decoded in _decoded(text) for each in (*_addressing(decoded), *_hidden(decoded))):
        yield "encoded"


def _decoded(text: str) -> Iterator[str]:
    for decode, pattern in ((_from_base64, _BASE64), (_from_hex, _HEX), (_from_escapes, _ESCAPES)):
        for match in islice(pattern.finditer(text), _MOST_DECODED):
            decoded = decode(match[0])
            if decoded and _is_text(decoded):
                yield decoded
    for whole in (html.unescape(text) if "&#" in text else text, unquote(text) if "%2" in text else text):
        if whole != text:
            yield whole


def _from_base64(text: str) -> str:
    whole = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _from_hex(text: str) -> str:
    try:
        return bytes.fromhex(text.replace(":", " ")).decode()
    except ValueError:
        return ""


def _from_escapes(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)


def _is_text(text: str) -> bool:
    return all(each.isprintable() or each.isspace() for each in text)


def _secrets(text: str) -> Iterator[str]:
    lowered = text.casefold()
    allows = ALLOWED in text
    for rule in _rules()[1]:
        if any(map(lowered.__contains__, rule.needs)):
            matches = rule.pattern.finditer(text)
            real = (each for each in matches if not _stands_for_one(each.groupdict().get("value") or each[0]))
            if any(not (allows and ALLOWED in _line_at(text, each.start())) for each in real):
                yield rule.name


def _line_at(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0]


def _stands_for_one(secret: str) -> bool:
    return _PLACEHOLDER.search(secret) is not None or len(set(secret)) < _FEWEST_DISTINCT


@cache
def _rules() -> tuple[tuple[_Rule, ...], tuple[_Rule, ...]]:
    """The rules for texts that address a model, and those for secrets."""
    text = files("germane.retrieval").joinpath("suspicion.toml").read_text(encoding="utf-8")
    given = tomllib.loads(text)
    found = []
    for table, flags in (("rule", regex.I), ("secret", 0)):
        found.append(
            tuple(
                _Rule(
                    name=each["name"],
                    pattern=regex.compile(each["pattern"], flags),
                    needs=tuple(each["needs"]),
                    raw=each.get("raw", False),
                    in_code=each.get("in_code", True),
                )
                for each in given[table]
            )
        )
    return found[0], found[1]
